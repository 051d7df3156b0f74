"""A short form of the damage suite, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import damage
from crash.short import options, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_damage_is_never_a_wrong_state_and_what_is_whole_is_saved(tmp_path: Path) -> None:
    row = damage.run(options(tmp_path, 450))
    assert row.findings == []
    assert row.is_clean
    assert row.count >= 400
    counts = row.figures
    kinds = ("the same", "file named", "user and sequence named", "repaired", "users rolled back")
    assert all(counts[kind] > 5 for kind in kinds), counts
    assert counts["users unchanged"] > 100


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("no-checksums", ["wrong"]),
        ("any-snapshot", ["wrong"]),
        ("no-seal", ["lost", "wrong"]),
        ("no-witness", ["lost"]),
        ("repair-drops-users", ["lost"]),
    ],
)
def test_a_planted_bug_is_found(bug: damage.Bug, kinds: list[str], tmp_path: Path) -> None:
    until(
        lambda row: all(getattr(row, kind) for kind in kinds),
        lambda seed: damage.run(options(tmp_path, 200, bug, seed=seed)),
    )
