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
    assert "no town" in told["message"]


def test_a_start_that_fails_leaves_nothing_behind(run_json: RunJson, tmp_path: Path) -> None:
    data, gguf = tmp_path / "a" / "t", tmp_path / "none.gguf"
    (tmp_path / "日记.txt").write_text("昨天下雨。")
    for wrong, told_of in (
        (("--language-model", gguf), "none.gguf"),
        (("--embedder", gguf), "none.gguf"),
        (("--replay", gguf), "none.gguf"),
        (("--ask", ""), "blank"),
        (("--ask", "谁偷了护身符？", "--ask", "\0"), "NUL"),
        (("--report", tmp_path / "none" / "town.html"), "no such folder"),
        (("--report", tmp_path), "it is a folder"),
        (("--report", tmp_path / "日记.txt"), "is there already"),
        (("--report", data / "memory" / "catalog.db"), "lies in the data folder"),
    ):
        told = run_json("town", *SMALL, "--data", data, *wrong, expect=1)
        assert told_of in told["message"], wrong
        assert [p.name for p in tmp_path.iterdir()] == ["日记.txt"], wrong
    for folder in (tmp_path / "日记.txt", tmp_path / "日记.txt" / "t", Path("/proc/x")):
        told = run_json("town", *SMALL, "--data", folder, expect=1)
        assert told["error"].endswith("Error"), folder
    assert (tmp_path / "日记.txt").read_text() == "昨天下雨。"


def test_another_town_than_was_asked_for_is_not_gone_on_with(
    run_json: RunJson, tmp_path: Path
) -> None:
    data = ("--data", tmp_path / "t", "--no-what-if")
    run_json("town", *SMALL, *data)
    for option, value in (("--npcs", 7), ("--seed", 2), ("--pace", 0.75)):
        told = run_json("town", *data, "--resume", "--days", 1, option, value, expect=1)
        assert f"not {value}: leave {option} out" in told["message"]
    assert run_json("town", *data, "--resume", *SMALL, "--seed", 1)["npcs"] == 6
    (tmp_path / "t" / "day-1.json").unlink()
    told = run_json("town", *SMALL, *data, expect=1)
    assert "before its first save" in told["message"]


def test_its_memories_can_be_searched(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    run("town", *SMALL, "--data", tmp_path / "t", "--no-what-if")
    found = run_json(
        "search", "--data", tmp_path / "t" / "memory", "--world", "town", "--user", "Old Wat",
        "Who stole the amulet?",
    )  # fmt: skip
    assert "The player stole the amulet" in str(found)


def test_scenes_are_told_and_a_town_is_played_again(
    run: Run, run_json: RunJson, tmp_path: Path
) -> None:
    page = tmp_path / "town.html"
    first = run_json("town", *SMALL, "--scenes", 28, "--data", tmp_path / "t")
    scenes = first["scenes"]
    assert (scenes["model"], scenes["by_model"], scenes["in_its_words"]) == (None, 0, 0)
    assert scenes["by_script"]["no model"] > 10
    shown = run("town", "--replay", tmp_path / "t", "--data", tmp_path / "u", "--report", page)
    assert first["digest"] in shown.stdout
    assert "by the script: no model" in shown.stdout
    assert "by the script (no model): " in shown.stderr
    assert "What was chosen" in page.read_text("utf-8")
    told = run_json(
        "town", "--replay", tmp_path / "t", "--data", tmp_path / "v", "--seed", 2, expect=1
    )
    assert "leave --seed out to play it again" in told["message"]
    told = run_json("town", *SMALL, "--data", tmp_path / "u", "--resume", "--scenes", 3, expect=1)
    assert "leave --scenes out to go on with it" in told["message"]
    plain = run_json("town", *SMALL, "--data", tmp_path / "w")
    assert plain["scenes"] is None
    assert plain["digest"] != first["digest"]
