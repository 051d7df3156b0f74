"""An open runtime, and what all tests of tools need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Factory

from reverie import Runtime


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime with simulated time; its folder is checked at the end."""
    factory = Factory(tmp_path, actors=None)
    yield factory(background=False)
    factory.finish()
