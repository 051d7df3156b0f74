"""A short form of the isolation fuzz, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import isolation
from crash.short import options, until_found

from reverie.memory_graph.ids import check_key

pytestmark = pytest.mark.slow


def test_nobody_reads_or_changes_what_belongs_to_another(tmp_path: Path) -> None:
    row = isolation.run(options(tmp_path, 5_000))
    assert row.findings == []
    assert row.is_clean
    assert row.count >= 5_000
    assert row.acknowledged > 0
    kinds = "search context get list history entities neighbors stats external digest".split()
    kinds += "add remember update delete restore relate repeat audit".split()
    kinds += ["refused id", "save slot", "forget"]
    assert min(row.figures[f"operations: {kind}"] for kind in kinds) > 0


def test_every_family_has_ids_that_differ() -> None:
    for name, members in isolation.FAMILIES.items():
        assert len(set(members)) == len(members) >= 4, name
        for member in members:
            assert check_key(member, member) == (member, member)


@pytest.mark.parametrize("bug", isolation.BUGS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    until_found(["crossed"], lambda seed: isolation.run(options(tmp_path, 5_000, bug, seed=seed)))
