"""A small town that tests of it share."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reverie.town import Outcome, Plan
from reverie.town.truth import Truth

SMALL = Plan(folder=Path("not-set"), days=2, npcs=8, pace=0.4)


class Played(msgspec.Struct):
    """What is left of a played town: its outcome, the comparison with the script, and a page."""

    outcome: Outcome
    truth: Truth
    page: str
