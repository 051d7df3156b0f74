"""A short form of the suite on failing disks, and that it finds the bugs planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import disk, report, short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_disks_that_fail(tmp_path: Path) -> None:
    status, row = short.run("disk", tmp_path, "0")
    assert (status, row.findings, row.is_clean) == (0, [], True)
    assert row.count >= len(disk.SHORT) + len(disk.HOLES)
    assert row.figures["calls that failed"] >= len(disk.SHORT)
    assert row.figures["power cuts"] == len(disk.SHORT)
    assert row.figures["errors that a caller got"] > 0
    assert row.figures["refused"] >= len(disk.HOLES)
    assert row.acknowledged > 0


@pytest.mark.parametrize(
    ("bug", "count"),
    [
        # At most so many runs: not every failed sync shows every bug.
        ("sync-errors-swallowed", "20"),
        ("goes-on-after-failed-sync", "20"),
        ("sync-retried", "20"),
        ("log-trusted", "20"),
        ("names-trusted", "1"),
    ],
)
def test_a_planted_bug_is_found(bug: str, count: str, tmp_path: Path) -> None:
    said = {
        "goes-on-after-failed-sync": "after its sync had failed",
        "sync-retried": "after its sync had failed",
        "names-trusted": "acknowledged, and lost",
    }.get(bug, "")

    def is_found(row: report.Row) -> bool:
        return row.wrong + row.lost > 0 and any(said in line for line in row.findings)

    def attempt(seed: int) -> report.Row:
        return short.with_bug("disk", tmp_path, count, bug, seed)

    short.until(is_found, attempt)
