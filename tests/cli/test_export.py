"""`reverie export`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie

Run = Callable[..., Any]


@pytest.mark.usefixtures("told")
def test_a_user_is_written_whole(run: Run, run_json: Run, data: Path, tmp_path: Path) -> None:
    with reverie.open(data, embedder="standin", background=False) as rt:
        stats = rt.user("user").stats()
    shown = run("export", tmp_path / "out").stdout
    assert "messages.jsonl" in shown
    assert "user user of world default" in shown
    done = run_json("export", tmp_path / "out.zip", "--vectors")
    files = done["manifest"]["files"]
    for name in ("messages", "memories", "entities", "relations"):
        assert files[f"{name}.jsonl"]["rows"] == getattr(stats, name)
    assert "vectors.npy" in files
    texts = (tmp_path / "out" / "messages.jsonl").read_text(encoding="utf-8")
    assert "我对芒果过敏。" in texts
    taken = run_json("export", tmp_path / "out", expect=1)
    assert taken["error"] == "InvalidValueError"
    missing = run_json("export", tmp_path / "no", "--user", "nobody", expect=1)
    assert missing["error"] == "InvalidValueError"
    assert not (tmp_path / "no").exists()


@pytest.mark.usefixtures("told")
def test_json_of_every_file_can_be_read(run: Run, tmp_path: Path) -> None:
    run("export", tmp_path / "out")
    for path in (tmp_path / "out").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert isinstance(json.loads(line), dict)
