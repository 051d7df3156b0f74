"""A short form of the suite of Ray failures, and that it finds the bugs planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import short

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(600)]


def test_while_nodes_come_and_go_every_call_is_answered_and_nothing_is_lost(tmp_path: Path) -> None:
    status, row = short.run("nodes", tmp_path, "4", uses_ray=True)
    assert (status, row.findings) == (0, [])
    assert row.is_clean
    assert row.count == 4
    assert row.acknowledged > 0
    figures = row.figures
    deaths = ("append.after", "commit.before", "commit.after", "actor-reply.before", "embed")
    assert sum(figures.get(point, 0) for point in deaths) > 0
    assert figures["refused in time"] == 80
    assert figures.get("room", 0) + figures.get("no room", 0) == 2


# The two of the client ("no-retries", "endless-retries") are also found by test_replaced.py,
# without a cluster.
@pytest.mark.parametrize(
    ("bug", "kind"), [("ack-before-commit", "lost"), ("no-request-ids", "duplicated")]
)
def test_a_planted_bug_is_found(bug: str, kind: str, tmp_path: Path) -> None:
    status, row = short.run("nodes", tmp_path, "4", "--bug", bug, uses_ray=True)
    assert status == 1
    assert getattr(row, kind) > 0
