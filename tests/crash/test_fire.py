"""A short form of the save slots under fire, and that it finds planted bugs."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import fire, report
from crash.short import options, until, until_found

pytestmark = pytest.mark.slow


KINDS = ("stale outcomes", "checkpoints", "rewinds", "forks", "edits")


def clean(row: report.Row, count: int) -> report.Row:
    """Assert that nothing was found, and that enough was done."""
    assert row.findings == []
    assert row.is_clean
    assert row.count >= count
    assert row.acknowledged > 0
    return row


def has_met_all(row: report.Row) -> bool:
    """Return whether all kinds of operations met in a round."""
    return all(row.figures[kind] > 0 for kind in KINDS)


def test_rewinds_and_forks_are_one_cut_through_all_that_is_under_way(tmp_path: Path) -> None:
    until(has_met_all, lambda seed: clean(fire.run(options(tmp_path, 60, seed=seed + 1)), 60))


@pytest.mark.ray
def test_the_same_on_two_actors(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        return clean(fire.run(options(tmp_path, 24, seed=seed + 1), actors=2), 24)

    until(has_met_all, attempt)


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("no-generation", ["wrong"]),
        ("fork-of-head", ["crossed"]),
        ("fork-shares-state", ["crossed", "wrong"]),  # also as two states with one journal
        ("rewind-keeps-memory", ["wrong"]),
    ],
)
def test_a_planted_bug_is_found(bug: str, kinds: list[str], tmp_path: Path) -> None:
    until_found(kinds, lambda seed: fire.run(options(tmp_path, 80, bug, seed=seed + 1)))


def write(begun: int, ended: int) -> fire.Write:
    return fire.Write("x", is_turn=False, begun=begun, ended=ended)


SAVE, LOAD = fire.Operation("checkpoint", "s", 10, 20), fire.Operation("rewind", "s", 30, 40)


@pytest.mark.parametrize(
    ("begun", "ended", "now", "saved"),
    [
        (1, 5, "there", "there"),
        (5, 15, "either", "either"),  # one that is in the save is there, one that is not is gone
        (21, 25, "gone", "gone"),
        (25, 35, "either", "gone"),
        (41, 45, "there", "gone"),
    ],
)
def test_what_a_write_should_be(begun: int, ended: int, now: str, saved: str) -> None:
    assert fire.values(write(begun, ended), [SAVE, LOAD]) == (now, {"s": saved})
