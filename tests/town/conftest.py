"""A small town that is played once, and looked at by many tests."""

from __future__ import annotations

import msgspec
import pytest
from town_played import SMALL, Played

from reverie.town import Outcome, run
from reverie.town.report import page
from reverie.town.truth import compare


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Two days of eight people, and the same with a theft that nobody saw."""
    found: list[Played] = []

    def finish(outcome: Outcome) -> None:
        truth = compare(outcome.play)
        found.append(Played(outcome, truth, page(outcome, truth)))

    plan = msgspec.structs.replace(SMALL, folder=tmp_path_factory.mktemp("town") / "small")
    run(plan, at_end=finish)
    return found[0]
