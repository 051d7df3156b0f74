"""`reverie import mcp-memory`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., Any]

LINES = [
    '{"type": "entity", "name": "李明", "entityType": "人物", "observations": ["喜欢乌龙茶"]}',
    '{"type": "entity", "name": "Chengdu", "entityType": "city", "observations": []}',
    '{"type": "entity", "name": "broken"',
    '{"type": "relation", "from": "李明", "to": "Chengdu", "relationType": "lives in"}',
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_it_says_what_was_new_and_which_lines_were_left_out(
    run: Run, run_json: Run, file: Path
) -> None:
    told = run("import", "mcp-memory", file, "--embedder", "standin")
    assert "2 entities, 1 observations and 1 relations are new; 0 were known" in told.output
    assert "line 3 was left out" in told.output
    again = run_json("import", "mcp-memory", file)["done"]
    assert again["added"] == {"entities": 0, "observations": 0, "relations": 0, "known": 4}
    assert [one["line"] for one in again["bad_lines"]] == [3]
    hits = run_json("search", "谁喜欢乌龙茶？")["hits"]
    assert hits[0]["text"] == "喜欢乌龙茶"


def test_a_bad_line_can_stop_it(run_json: Run, file: Path) -> None:
    told = run_json(
        "import", "mcp-memory", file, "--on-bad-line", "stop", "--embedder", "standin", expect=1
    )
    assert told["error"] == "InvalidTextError"
    assert told["details"] == {"line": 3}


def test_a_file_that_says_that_it_is_no_utf_8_is_told_so(run_json: Run, file: Path) -> None:
    file.write_bytes(file.read_text(encoding="utf-8").encode("utf-16"))
    told = run_json("import", "mcp-memory", file, "--embedder", "standin", expect=1)
    assert told["error"] == "InvalidTextError"
    assert f"{file}: its text is UTF-16" in told["message"]


def test_mcp_refuses_unknown_sets_of_tools_and_other_machines(run_json: Run) -> None:
    wide = run_json("mcp", "--http", "--host", "0.0.0.0", expect=1)  # noqa: S104 (refused)
    assert wide["error"] == "ConfigError"
    assert "keys" in wide["message"]
