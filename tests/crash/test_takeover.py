"""A short form of the suite of two owners, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.ray
def test_an_owner_that_was_replaced_learns_it_and_nothing_of_it_lands(tmp_path: Path) -> None:
    status, row = short.run("takeover", tmp_path, "6", uses_ray=True)
    assert (status, row.findings) == (0, [])
    assert row.is_clean
    assert row.count == 6
    figures = row.figures
    assert figures["attempts after it"] > 0
    assert figures["refused writes"] > 0
    assert min(figures["went on"], figures["held a lock"]) > 0
    assert figures["stopped at random"] + figures["stopped at a point"] == figures["processes"] == 4
    assert figures["orphans that learnt it"] == figures["actors that learnt it"] == 2
    assert row.acknowledged > 0


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
    status, row = short.run("takeover", tmp_path, "12", "--bug", bug, uses_ray=True)
    assert status == 1
    assert any(line.startswith(finding) for line in row.findings), row.findings
