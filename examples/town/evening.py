"""The end of a day: memories are tended, and the town is asked what it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.memory_graph import budget, nodes as n
from reverie.town.record import Away, Counts, DayFigures, Knower, Thought, Trace
from reverie.town.setting import PLAYER

if TYPE_CHECKING:
    from reverie.memory_graph.relationships import Relationship
    from reverie.town.ledger import Happening
    from reverie.town.play import Play

STORY = "amulet"  # the planted deed that the town is asked about
COUNTED = 50  # people who are counted one by one; of larger towns the first
TRACED = 6  # memories whose weight is followed


def evening(play: Play, day: int) -> DayFigures:
    """Tend the memories of a town, and write down how it stands at the end of a day."""
    play.world.tend()
    for name in counted(play):
        user = play.world.user(name)
        play.record.thoughts += [
            Thought(day, name, user.get(insight).text) for insight in user.reflect()
        ]
    play.record.away = _away(play)
    knowers = who_knows(play, STORY)
    figures = DayFigures(
        day,
        {name: _counts(play, name) for name in counted(play)},
        tuple(knowers),
        {tie.owner: round(tie.value, 4) for tie in _ties(play, "trust", PLAYER)},
        _affinities(play),
    )
    play.record.days.append(figures)
    return figures


def counted(play: Play) -> list[str]:
    """Return who is counted one by one."""
    return list(play.setting.people)[:COUNTED]


def who_knows(play: Play, event: str) -> list[Knower]:
    """Ask the town who knows of an event, and from whom: those who saw it, then those who heard of
    it, by the length of the chain."""
    found = []
    for knower in play.world.who_knows(event):
        item = play.world.user(knower.user_id).get(knower.memory_id)
        row = Knower(knower.user_id, item.text, knower.heard, knower.confidence, item.status)
        found.append(row)
    return sorted(found, key=lambda row: (len(row.heard), row.name, row.heard))


def how(knower: Knower) -> str:
    """Return from whom somebody knows, in words: "saw it", or "from A, who had it from B"."""
    if not knower.heard:
        return "saw it"
    return "from " + ", who had it from ".join(reversed(knower.heard))


def _counts(play: Play, name: str) -> Counts:
    user = play.world.user(name)
    stats = user.stats()
    hearsay = user.list(limit=1, filters={"provenance": "told"}).total
    everything = user.list(limit=1, include_archived=True).total
    return Counts(stats.active, everything - stats.active, hearsay, stats.summaries)


def _away(play: Play) -> tuple[int, tuple[Away, ...]]:
    """Return how many memories were put away, and the first of each person."""
    found, total = [], 0
    for name in counted(play):
        page = play.world.user(name).audit(limit=1)
        total += page.total
        found += [
            Away(name, line.text, line.at or 0.0, line.became, line.why) for line in page.lines
        ]
    return total, tuple(found)


def _ties(play: Play, dimension: str, other: str) -> list[Relationship]:
    return play.world.relationships(dimension, towards=other)


def _affinities(play: Play) -> tuple[tuple[str, str, float], ...]:
    """Return the affinities among those who are counted."""
    people = set(counted(play))
    return tuple(
        (name, tie.other, round(tie.value, 4))
        for name in counted(play)
        for tie in play.world.user(name).relationships.list("affinity")
        if tie.other in people
    )


# -- the weight of memories over time ----------------------------------------------------------


def follow(play: Play, tick: int) -> None:
    """Write down what the memories that are followed weigh now; the most telling ones are chosen
    as they appear."""
    now = play.clock.now()
    _choose(play, tick)
    for trace in play.record.traces:
        item = play.world.user(trace.name).get(trace.memory_id)
        if trace.points and item.hits > trace.points[-1][2]:
            trace.seen_at = now  # what reads here does so at the begin of an hour
        memory = n.Memory(
            id=trace.memory_id,
            text=item.text,
            kind="event",
            importance=item.importance or 0.0,
            sentiment=trace.sentiment,
            recorded_at=item.recorded_at,
            last_access=trace.seen_at,
            hits=item.hits,
        )
        weight = round(budget.weight(memory, now), 4)
        trace.points.append((tick, weight, item.hits, item.status == "active"))


def _choose(play: Play, tick: int) -> None:
    """Follow the story in the minds of its first witness and its first listener, and the first
    deed of each kind, great and small, in the mind of somebody who was there."""
    traces, book = play.record.traces, play.book
    known = {(trace.name, trace.event) for trace in traces}
    wanted: list[tuple[str, str]] = []
    story = book.ledger.happenings.get(STORY)
    if story is not None and story.witnesses:
        wanted.append((story.witnesses[0], STORY))
        heard = next((t for t in book.ledger.of(STORY) if t.is_new), None)
        wanted += [] if heard is None else [(heard.listener, STORY)]
    kinds = {book.ledger.happenings[trace.event].claim.deed for trace in traces}
    if len(kinds) < TRACED:
        for happening in _of_tick(play, tick):
            if happening.id != STORY and happening.claim.deed not in kinds:
                wanted.append((happening.witnesses[0], happening.id))
                kinds.add(happening.claim.deed)
    for name, event in wanted:
        if (name, event) in known or len(traces) >= TRACED + 2:
            continue
        memory_id = next(
            (k.memory_id for k in play.world.who_knows(event) if k.user_id == name), None
        )
        if memory_id is not None:
            deed = play.setting.deeds[book.ledger.happenings[event].claim.deed]
            item = play.world.user(name).get(memory_id)
            traces.append(Trace(name, event, memory_id, item.text, deed.sentiment))
            known.add((name, event))


def _of_tick(play: Play, tick: int) -> list[Happening]:
    """Return what was seen at a tick; the book is in the order of time."""
    found = []
    for happening in reversed(play.book.ledger.happenings.values()):
        if happening.tick < tick:
            break
        if happening.witnesses:
            found.append(happening)
    return found[::-1]
