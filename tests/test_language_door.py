"""The language model as a setting: who closes it, and settings that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_language import FakeLanguageModel

import reverie
from reverie.memory_graph.errors import ConfigError


def test_a_model_that_was_handed_over_is_left_open(tmp_path: Path) -> None:
    model = FakeLanguageModel(lambda _: "{}")
    for name in ("one", "two"):  # it serves one runtime after the other
        with reverie.open(tmp_path / name, embedder="standin", language_model=model) as rt:
            rt.user("ana").remember("Tea is at four.")
    assert model.complete("still there?", max_tokens=8).text == "{}"


def test_summaries_cannot_be_written_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="language_model"):
        reverie.open(tmp_path, embedder="standin", summaries="written")
    reverie.open(tmp_path, embedder="standin").close()  # nothing was left locked
