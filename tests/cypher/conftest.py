"""A runtime of one process for graph queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Factory, Home


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[Factory]:
    made = Factory(tmp_path, None)
    yield made
    made.finish()


@pytest.fixture
def home(factory: Factory) -> Home:
    return Home(factory(background=False), factory.clock)
