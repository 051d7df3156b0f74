"""A short form of the suite of two owners, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import report, short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.ray
def test_an_owner_that_was_replaced_learns_it_and_nothing_of_it_lands(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        status, row = short.run("takeover", tmp_path, "6", "--seed", str(seed), uses_ray=True)
        assert (status, row.findings) == (0, [])
        assert row.is_clean
        assert row.count == 6
        figures = row.figures
        stopped = figures["stopped at random"] + figures["stopped at a point"]
        assert stopped == figures["processes"] == 4
        assert figures["orphans that learnt it"] == figures["actors that learnt it"] == 2
        assert row.acknowledged > 0
        return row

    kinds = ("attempts after it", "refused writes", "went on", "held a lock")
    short.until(lambda row: all(row.figures[kind] > 0 for kind in kinds), attempt)


@pytest.mark.parametrize(
    ("bug", "finding"),
    [
        ("no-epoch-check", "not refused after the takeover"),
        ("epoch-checked-too-early", "broken:"),
        ("unchecked-reads", "not refused after the takeover: Note(what='read"),
        ("reopening-takes-back", "not refused after the takeover"),
    ],
)
def test_a_planted_bug_is_found(bug: str, finding: str, tmp_path: Path) -> None:
    short.until(
        lambda row: any(line.startswith(finding) for line in row.findings),
        lambda seed: short.with_bug("takeover", tmp_path, "12", bug, seed, uses_ray=True),
    )
