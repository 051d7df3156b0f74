"""A server over the memory that the examples of the operations are about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_helpers import serving
from starlette.testclient import TestClient


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with that memory, which is not to be changed."""
    folder = tmp_path_factory.mktemp("prepared") / "data"
    with serving(folder, prepared=True):
        pass
    return folder


@pytest.fixture
def client(prepared: Path, tmp_path: Path) -> Iterator[TestClient]:
    """A server over a copy of it."""
    shutil.copytree(prepared, tmp_path / "data")
    with serving(tmp_path / "data") as found:
        yield found
