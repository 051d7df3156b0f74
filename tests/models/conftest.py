"""Models for the tests of this folder: a tiny one made here, and where the real ones lie."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest
from tiny_bert import write_bert
from tiny_llama import write_adapter, write_llama

from reverie.models.convert_minilm import convert_minilm


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF embedding model of 80 kB that llama.cpp loads."""
    folder = tmp_path_factory.mktemp("tiny")
    convert_minilm(write_bert(folder / "source"), folder / "tiny.gguf")
    return folder / "tiny.gguf"


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF language model of 200 kB that llama.cpp loads; beside it two adapters, a and b."""
    folder = tmp_path_factory.mktemp("tiny-llama")
    write_adapter(folder / "a.gguf", seed=1)
    write_adapter(folder / "b.gguf", seed=2)
    return write_llama(folder / "tiny.gguf")


@pytest.fixture
def models_folder() -> Path:
    """Where the pulled models lie."""
    named = os.environ.get("REVERIE_MODELS")
    return Path(named) if named else platformdirs.user_cache_path("reverie") / "models"
