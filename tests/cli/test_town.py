"""`reverie town`: it plays, tells, saves, goes on, and writes its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from typer.testing import Result

Run: TypeAlias = Callable[..., Result]
RunJson: TypeAlias = Callable[..., Any]
SMALL = ("--npcs", 6, "--days", 1)


def test_it_plays_and_answers(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "town.html"
    asked = "Who knows that the player stole the amulet?"
    shown = run("town", *SMALL, "--data", tmp_path / "t", "--report", page, "--ask", asked)
    told = "“The player stole the amulet of Saint Oda from the chapel.”"
    assert f"{asked} {told}: Lin Yue (saw it), Old Wat (saw it)" in shown.stdout
    assert "digest of all memories" in shown.stdout
    assert "day 1: who knows that the player stole the amulet?" in shown.stderr
    assert "Old Wat (saw it)" in shown.stderr
    html = page.read_text("utf-8")
    assert "Saltmere" in html
    assert "林月" in html
    assert "What if nobody had seen it?" in html


def test_it_goes_on_from_a_save(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    data = ("--data", tmp_path / "t", "--no-what-if")
    first = run_json("town", *SMALL, *data)
    assert first["npcs"] == 6
    assert first["digests"].keys() == {
        "Mira Holt", "Tom Reed", "Lin Yue", "Chen Wei", "Father Osric", "Old Wat"
    }  # fmt: skip
    assert first["truth"]["unknown"] == first["truth"]["leaked"] == []
    again = run("town", *SMALL, *data, expect=1)
    assert "--resume" in again.stderr
    resumed = run_json("town", "--days", 2, *data, "--resume")
    other = run_json("town", "--npcs", 6, "--days", 2, "--data", tmp_path / "u", "--no-what-if")
    assert resumed["digest"] == other["digest"] != first["digest"]
    assert resumed["knowers"] == other["knowers"]


def test_nobody_to_go_on_with(run_json: RunJson, tmp_path: Path) -> None:
    told = run_json("town", "--resume", "--data", tmp_path / "none", expect=1)
    assert told["error"] == "DATA_FOLDER" or "no town" in told["message"]


def test_a_language_model_that_is_not_there(run_json: RunJson, tmp_path: Path) -> None:
    gguf = tmp_path / "none.gguf"
    told = run_json("town", *SMALL, "--data", tmp_path / "t", "--language-model", gguf, expect=1)
    assert "none.gguf" in told["message"]


def test_its_memories_can_be_searched(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    run("town", *SMALL, "--data", tmp_path / "t", "--no-what-if")
    found = run_json(
        "search", "--data", tmp_path / "t" / "memory", "--world", "town", "--user", "Old Wat",
        "Who stole the amulet?",
    )  # fmt: skip
    assert "The player stole the amulet" in str(found)
