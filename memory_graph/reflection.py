"""Reflection: insights that a user draws from what was gathered since the last time.

Each new memory brings its importance (0 to 1). Once the sum since the last reflection reaches a
threshold, the entities with most of it, faded by age, become the foci, and for each an insight is
made of its neighbourhood: the newest memories that mention it. An insight is a Summary of order 2,
of the entity; insights of order 3, of the owner, are made of several of these. Both are made by the
same path as other summaries, derive from what they were made of, and are retired with it: what was
put away must not answer in the words of a conclusion. Nothing but the owner's own memories goes
in.

What can be counted is counted here: how often two come up together, how often it was unpleasant,
who told of it. The figures are of the very memories that the insight cites.

Pure functions of a user's state. That a reflection began is an event, so replay does the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from reverie.memory_graph import decay, events, graph as g, nodes as n
from reverie.memory_graph.material import (
    MAX_CANDIDATES,
    Candidate,
    Material,
    Regularity,
    candidates,
    choose,
    feeds,
    made,
    source,
    telling,
    worth,
)
from reverie.memory_graph.topk import DECIMALS

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory
    from reverie.memory_graph.write import Writer

REFLECT_AT = 15.0  # of 0 to 1 for each memory: 150 where importance goes from 1 to 10
MAX_SINCE = 1_024  # memories since the last reflection that are looked at, the newest
MAX_FOCI = 3
ALIKE = 0.8  # share of memories that two entities have in common, from which on one will do
MAX_LINKED = 256  # texts that mention a focus, the newest, among which its neighbourhood is
MIN_SOURCES = 3  # of an insight
MIN_INSIGHTS = 3  # new ones, from which one of the next order is made
MAX_INSIGHTS = 12  # that one of the next order is made of, the newest
INSIGHT, WHOLE = 2, 3  # orders of an insight about an entity, and of one about all of these
SELF = n.subject_of(n.USER_NODE, WHOLE)  # what an insight of order 3 is of
INSIGHT_TOKENS = 100  # about; less than a summary, for it tells less

MIN_COUNT = 3  # times that make a regularity
MIN_SHARE = 0.25  # of the neighbourhood, for two that come up together
MOST_SHARE = 0.6  # of it, for how it was, and for who told of it
MAX_TOGETHER = 2
STRONG = 0.3  # sentiment, of either sign, from which on something was pleasant or not


# -- when, and about whom --------------------------------------------------------------


def owner_of(memory: UserMemory) -> n.User:
    """Return the node of the owner, which knows how far the last reflection had read."""
    owner: n.User = memory.graph.get(n.USER_NODE, n.User)
    return owner


def threshold(memory: UserMemory, reflect_at: float | None) -> float | None:
    """Return the importance from which on a reflection is due: as the owner's profile says, else
    `reflect_at`; None is never."""
    profile = owner_of(memory).profile
    return reflect_at if profile is None or profile.reflect_at is None else profile.reflect_at


def _since(memory: UserMemory) -> Iterator[n.Memory]:
    """Iterate over the memories since the last reflection that may be told, newest first."""
    top, last = memory.graph.counters.get(g.MEMORY, 0), owner_of(memory).reflected
    for number in range(top, max(last, top - MAX_SINCE), -1):
        node = memory.graph.node(f"{g.MEMORY}{number}")
        if isinstance(node, n.Memory) and feeds(memory, node.id):
            yield node


def gathered(memory: UserMemory, most: float = float("inf")) -> float:
    """Return the importance gathered since the last reflection; not looked at further once it has
    reached `most`."""
    found = 0.0
    for node in _since(memory):
        found += node.importance
        if found >= most:
            break
    return found


def is_due(memory: UserMemory, reflect_at: float | None) -> bool:
    """Return whether enough was gathered since the last reflection."""
    wanted = threshold(memory, reflect_at)
    return wanted is not None and gathered(memory, wanted) >= wanted


def choose_foci(memory: UserMemory, now: float) -> tuple[str, ...]:
    """Return the entities that gathered most importance since the last reflection, faded by age,
    and of which enough is known for an insight; the first one most. What comes up with one of them
    nearly always is passed over: the insight would be the same."""
    graph = memory.graph
    worths: dict[str, float] = {}
    mentioned: dict[str, set[str]] = {}
    for node in _since(memory):
        at = node.recorded_at if node.valid_from is None else node.valid_from
        faded = node.importance * decay.recency(at, now)
        for entity, _ in graph.out(node.id, n.CONTAINS_ENTITY):
            worths[entity] = worths.get(entity, 0.0) + faded
            mentioned.setdefault(entity, set()).add(node.id)
    foci: list[str] = []
    for entity in sorted(worths, key=lambda e: (-round(worths[e], DECIMALS), g.number(e))):
        if len(foci) == MAX_FOCI:
            break
        here = mentioned[entity]
        alike = (len(here & mentioned[f]) / len(here | mentioned[f]) for f in foci)
        if _is_enough(memory, entity) and max(alike, default=0.0) < ALIKE:
            foci.append(entity)
    return tuple(foci)


def _is_enough(memory: UserMemory, entity: str) -> bool:
    return sum(1 for _ in islice(neighbourhood(memory, entity), MIN_SOURCES)) == MIN_SOURCES


def begin(writer: Writer, reflect_at: float | None, *, force: bool = False) -> tuple[str, ...]:
    """Begin a reflection if one is due, and return its foci; () when none is, or nothing is told.

    Args:
        writer: of the owner.
        reflect_at: as of `threshold`.
        force: whatever was gathered is enough, if it is anything.
    """
    memory = writer.memory
    if not (gathered(memory) > 0 if force else is_due(memory, reflect_at)):
        return ()
    foci = choose_foci(memory, writer.at)
    covers = memory.graph.counters.get(g.MEMORY, 0)
    writer.emit(events.Reflected(at=writer.at, covers=covers, foci=foci))
    return foci


def apply_reflected(memory: UserMemory, event: events.Reflected) -> None:
    """Note how far a reflection has read, and what is to be made; raises InvariantError."""
    for entity in event.foci:
        memory.graph.get(entity, n.Entity)
    owner = owner_of(memory)
    owner.reflected, owner.foci = event.covers, event.foci


def due(memory: UserMemory) -> Iterator[str]:
    """Yield the subjects of insights that are to be made now: foci of the last reflection that have
    none yet, then the owner when there are enough new ones."""
    owner, graph = owner_of(memory), memory.graph
    yield from (entity for entity in owner.foci if entity not in graph.outdated)
    if not owner.reflected or owner.foci:
        return
    if SELF in graph.outdated:
        yield SELF
        return
    last = graph.node(graph.summaries.get(SELF, ""))
    covered = last.covers if isinstance(last, n.Summary) else 0
    fresh = sum(g.number(insight.id) > covered for insight in _insights(memory))
    if fresh >= MIN_INSIGHTS:
        yield SELF


def is_insight(subject: str) -> bool:
    """Return whether a subject of summaries is one of insights."""
    return subject.startswith(g.ENTITY) or subject == SELF


# -- of what ---------------------------------------------------------------------------


def neighbourhood(memory: UserMemory, entity: str) -> Iterator[n.Memory]:
    """Iterate over the newest memories that mention an entity and may be told, newest first, of one
    event one: the owner may have seen it and be told of it as well."""
    seen: set[str] = set()
    linked = (memory.graph.node(i) for i in islice(memory.graph.tails_back(entity), MAX_LINKED))
    for node in linked:
        if not isinstance(node, n.Memory) or not feeds(memory, node.id):
            continue
        if memory.graph.edge(node.id, entity, n.CONTAINS_ENTITY) is None:
            continue
        if node.event is not None and node.event in seen:
            continue
        if node.event is not None:
            seen.add(node.event)
        yield node


def _insights(memory: UserMemory) -> list[n.Summary]:
    """Return the insights about entities that hold, the newest last, `MAX_INSIGHTS` at most."""
    graph = memory.graph
    newest = (graph.node(i) for subject, i in graph.summaries.items() if subject[0] == g.ENTITY)
    live = [s for s in newest if isinstance(s, n.Summary) and s.retired_at is None and not s.stale]
    return sorted(live, key=lambda s: g.number(s.id))[-MAX_INSIGHTS:]


def material(memory: UserMemory, subject: str, max_tokens: int) -> Material | None:
    """Return what an insight is made of, None with too little. All its sources are cited, for what
    is counted is counted over all of them."""
    tokens = min(max_tokens, INSIGHT_TOKENS)
    found = _of_all(memory, tokens) if subject == SELF else _of_entity(memory, subject, tokens)
    if found is None:
        return None
    return msgspec.structs.replace(found, follows=memory.graph.summaries.get(subject, ""))


def _of_entity(memory: UserMemory, entity: str, max_tokens: int) -> Material | None:
    near = list(islice(neighbourhood(memory, entity), MAX_CANDIDATES))
    told = candidates(memory, near)
    if len(told) < MIN_SOURCES or not isinstance(memory.graph.node(entity), n.Entity):
        return None
    picked, order = choose(memory, told, max_tokens)
    whole = made("insight", memory.display(entity), told, picked, order, max_tokens)
    return msgspec.structs.replace(
        whole,
        # Not as `made` leaves it, which may leave some out.
        sources=tuple(map(source, told)),
        picked=tuple(sorted(picked)),
        central=tuple(order),
        covers=memory.graph.counters.get(g.MEMORY, 0),
        order=INSIGHT,
        focus=entity,
        regularities=tuple(regularities(memory, entity, told)),
    )


def _of_all(memory: UserMemory, max_tokens: int) -> Material | None:
    insights = _insights(memory)
    first = [(s, telling(s.text.split("\n", 1)[0])) for s in insights]  # what it concludes
    told = [Candidate(s, text, s.to_at, worth(text)) for s, text in first if text]
    if len(told) < MIN_INSIGHTS:
        return None
    whole = made("insight", "", told, *choose(memory, told, max_tokens), max_tokens)
    covers = memory.graph.counters.get(g.SUMMARY, 0)
    return msgspec.structs.replace(whole, covers=covers, order=WHOLE)


# -- what can be counted ---------------------------------------------------------------


def regularities(
    memory: UserMemory, entity: str, told: Sequence[Candidate]
) -> Iterator[Regularity]:
    """Yield what happens again and again in memories that mention an entity: with whom it comes up,
    most often first; whether it was pleasant or not; and who told of it."""
    graph, total = memory.graph, len(told)
    nodes = [c.node for c in told]
    with_whom = Counter(
        other for node in nodes for other, _ in graph.out(node.id, n.CONTAINS_ENTITY)
    )
    del with_whom[entity]
    ranked = sorted(with_whom, key=lambda e: (-with_whom[e], g.number(e)))
    often = [e for e in ranked if _is_regular(with_whom[e], total, MIN_SHARE)]
    for other in often[:MAX_TOGETHER]:
        yield Regularity("together", with_whom[other], total, memory.display(other))
    for kind, test in _MOODS.items():
        count = sum(isinstance(node, n.Memory) and test(node.sentiment) for node in nodes)
        if _is_regular(count, total, MOST_SHARE):
            yield Regularity(kind, count, total)
    tellers = Counter(
        node.told_by
        for node in nodes
        if isinstance(node, n.Memory) and node.provenance == "told" and node.told_by
    )
    if tellers:
        teller, count = min(tellers.items(), key=lambda one: (-one[1], one[0]))
        if _is_regular(count, total, MOST_SHARE):
            yield Regularity("told", count, total, teller)


_MOODS: dict[str, Callable[[float], bool]] = {
    "unpleasant": lambda sentiment: sentiment <= -STRONG,
    "pleasant": lambda sentiment: sentiment >= STRONG,
}


def _is_regular(count: int, total: int, share: float) -> bool:
    return count >= MIN_COUNT and count >= share * total


# -- whether it holds together ---------------------------------------------------------


def broken(memory: UserMemory) -> Iterator[str]:
    """Yield a line for each insight that breaks a promise of this module; see check.py."""
    graph, owner = memory.graph, owner_of(memory)
    if not 0 <= owner.reflected <= graph.counters.get(g.MEMORY, 0):
        yield f"a reflection has read up to memory {owner.reflected}, which does not exist"
    for entity in owner.foci:
        if not isinstance(graph.node(entity), n.Entity):
            yield f"an insight is due about {entity}, which is no entity"
    for node in graph.nodes(n.Summary):
        assert isinstance(node, n.Summary)  # noqa: S101
        focus = node.of if node.order == INSIGHT else None
        if node.focus != focus or (focus is None and isinstance(graph.node(node.of), n.Entity)):
            yield f"summary {node.id} of order {node.order} is of {node.of}, about {node.focus}"
        for cited, _ in graph.out(node.id, n.DERIVED_FROM):
            below = graph.node(cited)
            if isinstance(below, n.Summary):
                if below.order >= node.order:
                    yield f"summary {node.id} derives from {cited}, which is of no lower order"
                if node.retired_at is None and below.retired_at is not None and not node.stale:
                    yield f"summary {node.id} shows {cited}, which was retired"
