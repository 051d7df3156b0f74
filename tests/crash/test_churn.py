"""A short form of the passivation churn, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import churn
from crash.short import options, until_found

pytestmark = pytest.mark.slow


def test_users_keep_all_that_they_were_told_however_often_they_leave_memory(
    tmp_path: Path,
) -> None:
    row = churn.run(options(tmp_path, 1_000))
    assert row.findings == []
    assert row.is_clean
    assert row.count >= 1_000
    assert row.acknowledged > 0
    assert row.figures["passivations"] > row.figures["users"]
    assert row.figures["activations"] > row.figures["users"]
    assert 0 < row.figures["hit ratio"] < 1
    assert 0 < row.figures["most resident bytes"] <= row.figures["budget in bytes"]


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [("touches-lost", ["lost"]), ("unjournaled-tail", ["lost", "wrong"]), ("no-budget", ["wrong"])],
)
def test_a_planted_bug_is_found(bug: str, kinds: list[str], tmp_path: Path) -> None:
    until_found(kinds, lambda seed: churn.run(options(tmp_path, 1_500, bug, seed=seed)))
