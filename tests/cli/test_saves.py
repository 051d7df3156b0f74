"""`reverie diff`, `export-world` and `import-world`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie

Run = Callable[..., Any]


@pytest.fixture
def saved(data: Path) -> dict[str, str]:
    """A town with a checkpoint and more after it; the digests of its users."""
    with reverie.open(data, embedder="standin", background=False) as rt:
        town = rt.world("town")
        town.user("ana").remember("Ana keeps bees.")
        town.user("李娜").remember("李娜住在上海。", tags=["a"])
        town.checkpoint("day 1")
        town.user("ana").remember("Ana sold the bees.", replaces="m1")
        town.user("ana").relate("Ana", "knows", "Bo")
        town.user("李娜").update("m1", importance=0.9)
        town.user("bo").remember("Bo has come.")
        return {user: town.user(user).digest() for user in town.users()}


@pytest.mark.usefixtures("saved")
def test_what_differs_is_told_by_user(run: Run, run_json: Run) -> None:
    shown = run("diff", "day 1", "--world", "town").stdout
    for text in ("Ana sold the bees.", "Ana keeps bees.", "importance: 0.7 -> 0.9", "Ana knows Bo"):
        assert text in shown
    assert "day 1 to now: 3 of 3 users differ; added 2, ended 1, changed 1" in shown
    found = run_json("diff", "day 1", "--world", "town")
    assert [user["user_id"] for user in found["changed"]] == ["ana", "bo", "李娜"]
    assert found["came"] == ["bo"]
    one = run_json("diff", "day 1", "--world", "town", "--user", "李娜")
    assert [user["user_id"] for user in one["changed"]] == ["李娜"]
    same = run("diff", "day 1", "day 1", "--world", "town")
    assert "nothing differs between day 1 and day 1" in same.stderr
    assert run_json("diff", "day 9", "--world", "town", expect=1)["error"] == (
        "UnknownCheckpointError"
    )


def test_a_world_goes_to_another_folder(
    run: Run, run_json: Run, tmp_path: Path, saved: dict[str, str]
) -> None:
    file, other = tmp_path / "镇.rvw", tmp_path / "other"
    assert "镇.rvw: 3 users" in run("export-world", file, "--world", "town").stdout
    into = ("--data", other, "--embedder", "standin")
    assert run_json("import-world", file, *into)["world"] == "town"
    assert "world copy: 3 users" in run("import-world", file, *into, "--world", "copy").stdout
    assert run_json("import-world", file, *into, expect=1)["error"] == "CheckpointExistsError"
    with reverie.open(other, embedder="standin", background=False) as rt:
        for world in map(rt.world, ("town", "copy")):
            assert {user: world.user(user).digest() for user in world.users()} == saved
    assert run_json("export-world", file, "--world", "town", "--tag", "day 1")["users"] == 2
    missing = run_json("export-world", file, "--world", "no", expect=1)
    assert missing["error"] == "InvalidValueError"
    file.write_bytes(b"no world")
    refused = run_json("import-world", file, *into, "--world", "x", expect=1)
    assert refused["error"] == "WorldFileError"
