"""A short form of the kill -9 suite, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import report, short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_kill_9_loses_nothing_doubles_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:

    def attempt(seed: int) -> report.Row:
        status, row = short.run("kill9", tmp_path, "60", "--seed", str(seed))
        assert (status, row.findings) == (0, [])
        assert row.count >= 60
        assert row.acknowledged > 0
        return row

    def is_on_both_sides_of_a_commit(row: report.Row) -> bool:
        return all(row.figures[f"unacknowledged that {what}"] for what in ("landed", "did not"))

    short.until(is_on_both_sides_of_a_commit, attempt)


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("ack-before-commit", ["lost"]),
        ("no-request-ids", ["duplicated"]),
        # An extraction that was cut in two looks lost, a turn without its outbox broken, and a
        # write without its request id is done again.
        ("commit-in-pieces", ["wrong", "lost", "duplicated"]),
    ],
)
def test_a_planted_bug_is_found(bug: str, kinds: list[str], tmp_path: Path) -> None:
    short.until_found(kinds, lambda seed: short.with_bug("kill9", tmp_path, "60", bug, seed))
