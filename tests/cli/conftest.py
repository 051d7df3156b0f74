"""Run commands in this process, with a data folder of the test's own and the stand-in embedder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import structlog
from typer.testing import CliRunner, Result

from reverie.cli.app import app

Run: TypeAlias = Callable[..., Result]
RunJson: TypeAlias = Callable[..., Any]
WriteLines: TypeAlias = Callable[..., Path]

TALK = [
    {"text": "I live in Berlin.", "time": "2024-03-01T10:00:00Z", "id": "a1"},
    {"text": "Noted.", "role": "assistant", "time": "2024-03-01T10:01:00Z", "id": "a2"},
    {"text": "I love coffee.", "time": "2024-03-02T10:00:00Z", "id": "a3"},
    {"text": "I live in Oslo now.", "time": "2024-05-01T10:00:00Z", "id": "a4"},
    {"text": "我对芒果过敏。", "time": "2024-05-02T10:00:00Z", "id": "a5"},
]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder that commands use when they are not told another."""
    monkeypatch.setenv("REVERIE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    yield tmp_path / "data"
    structlog.reset_defaults()


@pytest.fixture
def run() -> Run:
    """Run a command line and expect an exit status."""

    def run_it(*args: object, expect: int = 0) -> Result:
        result = CliRunner().invoke(app, [str(arg) for arg in args])
        assert result.exit_code == expect, (result.output, result.exception)
        return result

    return run_it


@pytest.fixture
def run_json(run: Run) -> RunJson:
    """Run a command line with --json and return the one document that it printed."""

    def run_it(*args: object, expect: int = 0) -> Any:
        result = run(*args, "--json", expect=expect)
        (line,) = result.stdout.splitlines()
        return json.loads(line)

    return run_it


@pytest.fixture
def lines(tmp_path: Path) -> WriteLines:
    """Write a JSONL file of objects, and of texts as they are."""

    def write(items: list[dict[str, Any] | str], name: str = "talk.jsonl") -> Path:
        path = tmp_path / name
        texts = [i if isinstance(i, str) else json.dumps(i, ensure_ascii=False) for i in items]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def talk(lines: WriteLines) -> Path:
    """A file with a short conversation."""
    return lines(list(TALK))


@pytest.fixture
def told(run: Run, talk: Path) -> None:
    """The conversation is in memory, each turn recorded at its own time."""
    run("ingest", talk, "--follow-time", "--embedder", "standin")
