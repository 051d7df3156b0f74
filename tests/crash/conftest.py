"""What all tests of the crash suites share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Suites silence the logs: let them speak again."""
    yield
    structlog.reset_defaults()
