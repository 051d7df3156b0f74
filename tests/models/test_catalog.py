"""The catalogue: every entry pinned, every spec resolved or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reverie.memory_graph.errors import ConfigError, ModelMissingError
from reverie.models.catalog import CATALOG, find_entry, list_models, model_path


def test_every_entry_is_pinned_and_free() -> None:
    assert set(CATALOG) == {"minilm", "multilingual", "smollm2"}
    for name, entry in CATALOG.items():
        assert entry.name == name
        assert entry.licence in {"Apache-2.0", "MIT"}
        for digest in (entry.sha256, entry.wheel_sha256, *entry.members.values()):
            assert re.fullmatch("[0-9a-f]{64}", digest)
    assert (CATALOG["multilingual"].query_prefix, CATALOG["multilingual"].passage_prefix) == (
        "query: ",
        "passage: ",
    )


def test_a_missing_model_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="reverie models pull minilm"):
        model_path("minilm", tmp_path)


def test_a_path_may_stand_for_a_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    with pytest.raises(ModelMissingError, match=re.escape("mine.gguf")):
        model_path(str(file), tmp_path)
    file.write_bytes(b"GGUF")
    assert model_path(str(file), tmp_path / "elsewhere") == file


@pytest.mark.parametrize("name", ["", "MiniLM", "gpt"])
def test_an_unknown_name_lists_the_known(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="minilm, multilingual, smollm2"):
        find_entry(name)
    with pytest.raises(ConfigError):
        model_path(name, tmp_path)


def test_list_models_tells_what_is_there(tmp_path: Path) -> None:
    entry = CATALOG["minilm"]
    with (tmp_path / entry.file_name).open("wb") as file:
        file.truncate(entry.size_bytes)
    (tmp_path / CATALOG["smollm2"].file_name).write_bytes(b"half")
    assert {item.entry.name: item.present for item in list_models(tmp_path)} == {
        "minilm": True,
        "multilingual": False,
        "smollm2": False,
    }
