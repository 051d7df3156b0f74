"""A runtime of one process for graph queries."""

from __future__ import annotations

import pytest
from support import Factory, Home


@pytest.fixture
def home(factory: Factory) -> Home:
    return Home(factory(background=False), factory.clock)
