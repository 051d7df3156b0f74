"""Questions to a whole town, in words: who knows of it, and from whom?"""

from __future__ import annotations

import msgspec

from reverie.town.evening import who_knows
from reverie.town.play import Play
from reverie.town.record import Knower

HITS = 3  # of each person
PEOPLE = 1000  # that are asked at most, from the first


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a town knows about a question.

    Attributes:
        question: as it was asked.
        event: id of what happened that the question is about; None when nobody knows anything.
        knowers: who knows of it; those who saw it first.
    """

    question: str
    event: str | None = None
    knowers: tuple[Knower, ...] = ()


def ask(play: Play, question: str) -> Answer:
    """Ask everybody, take the event that comes to mind best, and return who knows of it.

    It reads memories as any question does, which makes them stronger.

    Args:
        play: the town, open.
        question: in any language that its embedder reads.
    """
    names = list(play.setting.people)[:PEOPLE]
    found = play.rt.search_many(
        [(name, question) for name in names],
        world=play.world.name,
        limit=HITS,
        types="memory",
        filters={"event": {"exists": True}},
    )
    best: dict[str, float] = {}
    for hits in found:
        for hit in hits:
            event = str(hit.event)
            best[event] = max(best.get(event, hit.score), hit.score)
    if not best:
        return Answer(question)
    event = min(best, key=lambda name: (-best[name], name))
    return Answer(question, event, tuple(who_knows(play, event)))
