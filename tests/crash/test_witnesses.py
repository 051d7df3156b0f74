"""A short form of the suite of deliveries, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import report, short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_each_witness_has_each_event_once_after_kill_9(tmp_path: Path) -> None:

    def attempt(seed: int) -> report.Row:
        status, row = short.run("witnesses", tmp_path, "12", "--seed", str(seed))
        assert (status, row.findings) == (0, [])
        assert row.acknowledged > 0
        return row

    short.until(
        lambda row: all(row.figures[f"unacknowledged and {w}"] for w in ("landed", "absent")),
        attempt,
    )


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [("no-intents", ["wrong"]), ("no-memory-of-deliveries", ["duplicated"])],
)
def test_a_planted_bug_is_found(bug: str, kinds: list[str], tmp_path: Path) -> None:
    short.until_found(kinds, lambda seed: short.with_bug("witnesses", tmp_path, "20", bug, seed))
