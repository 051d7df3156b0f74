"""`reverie check` finds damage and says so with its exit status."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from reverie.memory_graph.ids import DEFAULT_WORLD, Key, partition_of

Run = Callable[..., Any]


@pytest.mark.usefixtures("told")
def test_a_sound_folder(run: Run, run_json: Run) -> None:
    assert run_json("check") == {"users": 1, "problems": []}
    assert "problems: none" in run("check").stdout


@pytest.mark.usefixtures("told")
def test_damage_is_found(run: Run, run_json: Run, data: Path, talk: Path) -> None:
    run("ingest", talk, "--user", "other")
    number = partition_of(Key(DEFAULT_WORLD, "user"), 16)
    assert number != partition_of(Key(DEFAULT_WORLD, "other"), 16)
    with apsw.Connection(str(data / "partitions" / f"p{number:04d}.db")) as connection:
        connection.execute("UPDATE journal SET payload = x'00' WHERE seq = 3").fetchall()
        assert connection.changes() == 1
    connection.close()
    found = run_json("check", expect=3)
    assert found["users"] == 2
    assert found["problems"]
    assert not any("other" in line for line in found["problems"])
    assert found["problems"][-1] in run("check", expect=3).stdout
    repaired = run_json("check", "--repair")
    assert (repaired["users"], repaired["problems"]) == (2, [])
    assert repaired["repaired"]["files"] == [f"p{number:04d}.db"]
    (loss,) = repaired["repaired"]["losses"]
    assert (loss["user_id"], loss["first_seq"]) == ("user", 3)
    assert (data / "damaged" / "1" / f"p{number:04d}.db").is_file()
    assert run_json("check") == {"users": 2, "problems": []}
    assert "nothing to repair" in run("check", "--repair").stdout


def test_a_mistyped_folder_is_not_made(run: Run, run_json: Run, tmp_path: Path) -> None:
    missing = tmp_path / "mistyped"
    for command in (["check"], ["stats"], ["show"], ["search", "x"], ["context", "x"]):
        error = run_json(*command, "--data", missing, expect=1)
        assert error["error"] == "DataFolderError"
        assert "reverie ingest" in error["message"]
    assert not missing.exists()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    assert run_json("check", "--data", foreign, expect=1)["error"] == "DataFolderError"
