"""What was said in a period, or of a topic: the material of a summary that is made when it is asked
for, and not kept.

A topic is one of that name, or an entity of exactly that name; else what a search for it finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from reverie.memory_graph import graph as g, nodes as n
from reverie.memory_graph.errors import UnknownMemoryError
from reverie.memory_graph.material import (
    Material,
    candidates,
    choose,
    feeds,
    made,
    of_turns,
)
from reverie.memory_graph.text import name_key
from reverie.memory_graph.views import Hit

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

MAX_WALK = 256  # newest turns and memories of the period that are looked at
MAX_MENTIONS = 20_000  # newest texts that mention an entity
MAX_HITS = 200  # of a search for a topic
NEAR = 0.8  # of the best hit's nearness in meaning, from which on a hit without the words counts
MAX_UNWORDED = 8


class Period(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is asked for: turns said, and memories that hold from, between two times in seconds
    (None is open); of one session, or of all."""

    since: float | None = None
    until: float | None = None
    session: str | None = None

    def holds(self, at: float) -> bool:
        """Return whether a time is within."""
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


def is_named(memory: UserMemory, topic: str) -> bool:
    """Return whether a topic or an entity has exactly this name; a search is needed otherwise."""
    key = name_key(topic)
    return key in memory.graph.topics or key in memory.graph.names


def named(memory: UserMemory, topic: str) -> list[str]:
    """Return the turns and memories of a topic, or that mention an entity, of this name."""
    graph, key = memory.graph, name_key(topic)
    found: list[str] = []
    if (topic_id := graph.topics.get(key)) is not None:
        found += [tail for tail, _ in graph.into(topic_id, n.IN_TOPIC)]
    if (entity := graph.names.get(key)) is not None:
        newest = graph.newest_tails(entity, MAX_MENTIONS)
        found += [i for i in newest if graph.edge(i, entity, n.CONTAINS_ENTITY) is not None]
    return found


def relevant(hits: Sequence[Hit]) -> list[str]:
    """Return the hits that are about what was searched for: those with a word of it, and those that
    are about as near in meaning as the nearest of them. If none has a word of it, the few nearest
    in meaning: a search always finds something."""
    worded = [hit for hit in hits if hit.parts.get("words", 0.0) > 0]
    nearest = max((_meaning(hit) for hit in worded or hits), default=0.0)
    near = [hit for hit in hits if _meaning(hit) >= NEAR * nearest > 0 and hit not in worded]
    if worded:
        return [hit.id for hit in [*worded, *near]]
    return [hit.id for hit in sorted(near, key=_meaning, reverse=True)[:MAX_UNWORDED]]


def _meaning(hit: Hit) -> float:
    return hit.parts.get("meaning", 0.0)


def talk(
    memory: UserMemory,
    period: Period,
    name: str,
    about: Sequence[str] | None,
    max_tokens: int,
) -> Material:
    """Return what was said in a period.

    Args:
        memory: the user's state.
        period: which.
        name: of the topic, empty without one.
        about: ids of the turns and memories of a topic, None for all.
        max_tokens: of the summary, about.

    Raises:
        UnknownMemoryError: no such session.
    """
    graph = memory.graph
    session = None if period.session is None else graph.sessions.get(period.session)
    if period.session is not None and session is None:
        msg = f"no session {period.session!r} for this user"
        raise UnknownMemoryError(msg, session=period.session)
    nodes: Iterable[n.Node | None] = (
        graph.nodes() if about is None else map(graph.node, dict.fromkeys(about))
    )
    turns: dict[str, n.Message] = {}
    memories: list[n.Memory] = []
    for node in nodes:
        if isinstance(node, n.Message) and period.holds(node.said_at):
            turns[node.id] = node
        elif isinstance(node, n.Memory):
            if period.holds(_begins(node)):
                memories.append(node)
            if about is not None:  # its turns are of the topic, too
                turns |= {t.id: t for t in _turns_of(memory, node) if period.holds(t.said_at)}
    if session is not None:
        turns = {i: turn for i, turn in turns.items() if turn.session == session}
        memories = []  # those of its turns are found by these
    told = candidates(memory, _newest(memory, turns.values(), memories))
    found = made("talk", name, told, *choose(memory, told, max_tokens), max_tokens)
    times = [turn.said_at for turn in turns.values()] + [c.at for c in told]
    return msgspec.structs.replace(
        found,
        from_at=min(times, default=0.0) if period.since is None else period.since,
        to_at=max(times, default=0.0) if period.until is None else period.until,
        messages=len(turns),
    )


def _newest(
    memory: UserMemory, turns: Iterable[n.Message], memories: Iterable[n.Memory]
) -> list[n.Memory | n.Message]:
    """Return the newest of what may be told; memories of a turn of the period are of it, too."""
    last = sorted(turns, key=lambda turn: (turn.said_at, g.number(turn.id)))[-MAX_WALK:]
    fed = sorted((m for m in memories if feeds(memory, m.id)), key=lambda m: (_begins(m), m.id))
    return of_turns(memory, last, fed[-MAX_WALK:])


def _begins(memory: n.Memory) -> float:
    return memory.recorded_at if memory.valid_from is None else memory.valid_from


def _turns_of(memory: UserMemory, kept: n.Memory) -> list[n.Message]:
    sources = (memory.graph.node(i) for i, _ in memory.graph.out(kept.id, n.DERIVED_FROM))
    return [turn for turn in sources if isinstance(turn, n.Message)]
