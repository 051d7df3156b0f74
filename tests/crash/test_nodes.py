"""A short form of the suite of Ray failures, and that it finds the bugs planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import report, short

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(600)]


def test_while_nodes_come_and_go_every_call_is_answered_and_nothing_is_lost(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        status, row = short.run("nodes", tmp_path, "4", "--seed", str(seed), uses_ray=True)
        assert (status, row.findings) == (0, [])
        assert row.is_clean
        assert row.count == 4
        assert row.acknowledged > 0
        assert row.figures["refused in time"] == 80
        assert row.figures.get("room", 0) + row.figures.get("no room", 0) == 2
        return row

    deaths = ("append.after", "commit.before", "commit.after", "actor-reply.before", "embed")
    short.until(lambda row: any(row.figures.get(point) for point in deaths), attempt)


# The two of the client ("no-retries", "endless-retries") are also found by test_replaced.py,
# without a cluster.
@pytest.mark.parametrize(
    ("bug", "kind"), [("ack-before-commit", "lost"), ("no-request-ids", "duplicated")]
)
def test_a_planted_bug_is_found(bug: str, kind: str, tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        return short.with_bug("nodes", tmp_path, "4", bug, seed, uses_ray=True)

    short.until_found([kind], attempt)
