"""A short form of the pressure suite, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import pressure
from crash.short import options

pytestmark = pytest.mark.slow


def test_what_is_too_much_is_refused_and_memory_stays_bounded(tmp_path: Path) -> None:
    row = pressure.run(options(tmp_path, 800))
    assert row.findings == []
    assert row.is_clean
    assert row.count == 800
    assert row.acknowledged > 0
    assert row.figures["searches"] > 0
    assert 0 < row.figures["async calls refused"] < row.figures["refused"]


@pytest.mark.parametrize("bug", pressure.BUGS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    row = pressure.run(options(tmp_path, 600, bug))
    assert row.wrong, row.figures
