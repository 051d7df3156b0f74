"""`reverie keys create`: in the folder that is meant, or in none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

RunJson: TypeAlias = Callable[..., Any]
CREATE = ("keys", "create", "--role", "read", "--world", "小镇")


def test_a_folder_that_is_not_there_is_made_only_when_that_is_said(
    run_json: RunJson, data: Path
) -> None:
    for is_empty in (False, True):
        if is_empty:
            data.mkdir()
        found = run_json(*CREATE, expect=1)
        assert found["error"] == "DataFolderError"
        assert str(data) in found["message"]
        assert "--new" in found["message"]
        assert data.exists() == is_empty
    first = run_json(*CREATE, "--new")
    second = run_json(*CREATE, "--new")  # it is there now
    third = run_json(*CREATE)
    ids = [key["id"] for key in run_json("keys", "list")["keys"]]
    assert ids == [first["id"], second["id"], third["id"]]


def test_what_is_no_data_folder_is_left_alone(run_json: RunJson, data: Path) -> None:
    data.mkdir()
    (data / "论文.txt").write_text("mine", encoding="utf-8")
    for more in ((), ("--new",)):
        assert run_json(*CREATE, *more, expect=1)["error"] == "DataFolderError"
    assert [path.name for path in data.iterdir()] == ["论文.txt"]
