"""A short form of the pressure suite, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import pressure, report
from crash.short import options, until, until_found

pytestmark = pytest.mark.slow


def test_what_is_too_much_is_refused_and_memory_stays_bounded(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        row = pressure.run(options(tmp_path, 800, seed=seed))
        assert row.findings == []
        assert row.is_clean
        assert row.count == 800
        return row

    def is_full(row: report.Row) -> bool:
        figures = row.figures
        is_refused = 0 < figures["async calls refused"] < figures["refused"]
        return row.acknowledged > 0 and figures["searches"] > 0 and is_refused

    until(is_full, attempt)


@pytest.mark.parametrize("bug", pressure.BUGS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    until_found(["wrong"], lambda seed: pressure.run(options(tmp_path, 600, bug, seed=seed)))
