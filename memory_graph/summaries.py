"""Which summaries are to be made anew, and what goes into each: a session, a topic, the user.

All of it follows from the graph. A summary says how far it had read (`covers`), so what came since
is known; what it told and was put away since has retired it (see apply.py); what was replaced has
made it stale. A new one is made of the sources of the last, as far as they may still be told, and
of what came since: never of the text of the last, which may hold what is to be forgotten.

Work is bounded: the newest `MAX_SESSIONS` sessions (all when they are asked for), and of each
subject the newest `MAX_WALK` turns or memories.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Literal

import msgspec

from reverie.memory_graph import gist, graph as g, nodes as n, reflection
from reverie.memory_graph.material import (
    Material,
    candidates,
    choose,
    feeds,
    made,
    of_turns,
    size,
    worth_of,
)

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

MAX_SESSIONS = 256
MAX_TOPICS = 1024
MAX_WALK = 256
MAX_TRIED = 16  # subjects of one look that turn out to have nothing to tell
MIN_SOURCES = 2  # one statement is its own summary
GROWTH = 0.1  # of the user's memories, that must be new before the user's summary is made anew
FACTS_SHARE = 0.65  # of the user's summary; the rest is for events
MAX_FACTS = 40  # of the user, that go before its events to a language model
MAX_EVENTS = 32  # the newest, of which some are told
OWNER_GAIN = 0.5  # worth of a fact about the owner beside those about others


class SummaryPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a summary is due.

    Attributes:
        messages: new ones of a session that goes on.
        least: new ones of a session that has ended: another one goes on, or it was idle.
        idle_s: seconds without a turn after which a session has ended.
        members: new ones of a topic.
        memories: new ones of the user, and a tenth of all.
        everything: whatever has changed is due, of all sessions.
        max_tokens: of each summary, about.
        reflect_at: importance gathered from which on the user reflects (see reflection.py); None
            never, unless the user's profile says so.
        kinds: what is made: "all", only "summaries", only "insights", or only what has "faded" (see
            gist.py), which is among the summaries too.
    """

    messages: int = 40
    least: int = 8
    idle_s: float = 6 * 3600.0
    members: int = 5
    memories: int = 20
    everything: bool = False
    max_tokens: int = 200
    reflect_at: float | None = None
    kinds: Literal["all", "summaries", "insights", "faded"] = "all"


def due(memory: UserMemory, now: float, policy: SummaryPolicy) -> Iterator[str]:
    """Yield the node ids of what is due: first what lost its summary, then by what came since.

    Args:
        memory: the user's state.
        now: of the runtime's clock, in seconds.
        policy: when something is due.
    """
    graph = memory.graph
    if policy.kinds == "faded":
        if gist.group(memory) is not None:
            yield gist.SUBJECT
        return
    lost = sorted(graph.outdated - {reflection.SELF}, key=lambda i: (i != n.USER_NODE, -_number(i)))
    if policy.kinds != "summaries":
        yield from filter(reflection.is_insight, lost)
        yield from reflection.due(memory)
    if policy.kinds == "insights":
        return
    yield from (subject for subject in lost if not reflection.is_insight(subject))
    for subject in _grown(memory, now, policy):
        if subject not in graph.outdated:
            yield subject
    if gist.group(memory, _least_faded(policy)) is not None:
        yield gist.SUBJECT


def _least_faded(policy: SummaryPolicy) -> int:
    return MIN_SOURCES if policy.everything else gist.LEAST


def _grown(memory: UserMemory, now: float, policy: SummaryPolicy) -> Iterator[str]:
    graph = memory.graph
    wanted = 1 if policy.everything else max(policy.memories, int(GROWTH * _covered(memory)))
    if graph.counters.get(g.MEMORY, 0) - _covered(memory) >= wanted:
        yield n.USER_NODE
    members = 1 if policy.everything else policy.members
    for topic in islice(reversed(graph.topics.values()), MAX_TOPICS):
        fresh = _members(memory, topic, _covered(memory, topic))
        if sum(1 for _ in islice(fresh, members)) == members:
            yield topic
    newest = graph.node(f"{g.MESSAGE}{graph.counters.get(g.MESSAGE, 0)}")
    current = newest.session if isinstance(newest, n.Message) else None
    most = None if policy.everything else MAX_SESSIONS
    for session in islice(reversed(graph.sessions.values()), most):
        if _is_session_due(memory, session, now, policy, is_current=session == current):
            yield session


def _number(node_id: str) -> int:
    return 0 if node_id == n.USER_NODE else g.number(node_id)


def _newest(memory: UserMemory, subject: str) -> n.Summary | None:
    found = memory.graph.node(memory.graph.summaries.get(subject, ""))
    return found if isinstance(found, n.Summary) else None


def _covered(memory: UserMemory, subject: str = n.USER_NODE) -> int:
    newest = _newest(memory, subject)
    return 0 if newest is None else newest.covers


def _is_session_due(
    memory: UserMemory, session_id: str, now: float, policy: SummaryPolicy, *, is_current: bool
) -> bool:
    session: n.Session = memory.graph.get(session_id, n.Session)
    fresh = session.messages - _covered(memory, session_id)
    if policy.everything or fresh >= policy.messages:
        return fresh > 0
    if fresh < policy.least:
        return False
    last = memory.graph.node(session.last_message or "")
    is_idle = isinstance(last, n.Message) and now - last.recorded_at >= policy.idle_s
    return is_idle or not is_current


def _members(memory: UserMemory, topic: str, after: int) -> Iterator[n.Memory]:
    """Iterate over the memories of a topic with a number above `after`, newest first."""
    for tail in memory.graph.tails_back(topic):
        node = memory.graph.node(tail)
        if isinstance(node, n.Memory):
            if g.number(tail) <= after:
                return
            yield node


def _turns(memory: UserMemory, session: str, count: int) -> Iterator[n.Message]:
    """Iterate over the last `count` turns of a session, newest first."""
    found = (memory.graph.node(tail) for tail in memory.graph.tails_back(session))
    return islice((turn for turn in found if isinstance(turn, n.Message)), count)


def _told_before(memory: UserMemory, subject: str) -> tuple[list[n.Memory], list[n.Message]]:
    """Return what the last summary was made of, as far as it may still be told."""
    last = memory.graph.summaries.get(subject)
    if last is None:
        return [], []
    nodes = [
        memory.graph.node(i) for i, _ in memory.graph.out(last, n.DERIVED_FROM) if feeds(memory, i)
    ]
    return (
        [node for node in nodes if isinstance(node, n.Memory)],
        [node for node in nodes if isinstance(node, n.Message)],
    )


def material(
    memory: UserMemory, subject: str, now: float, max_tokens: int = 200
) -> Material | None:
    """Return what a summary of a session, topic or the user is made of, None with too little.

    Args:
        memory: the user's state.
        subject: node id.
        now: in seconds; of the user, only what holds by then is told as a fact.
        max_tokens: of the summary, about.
    """
    if reflection.is_insight(subject):
        return reflection.material(memory, subject, max_tokens)
    if subject == gist.SUBJECT:
        return gist.material(memory, MIN_SOURCES, max_tokens)
    # What lost its summary, or may have got something back, is read again from its end.
    covered = 0 if subject in memory.graph.outdated else _covered(memory, subject)
    match memory.graph.node(subject):
        case n.Session() as session:
            found = _of_session(memory, session, covered, max_tokens)
        case n.Topic() as topic:
            found = _of_topic(memory, topic, covered, max_tokens)
        case n.User():
            found = _of_user(memory, covered, now, max_tokens)
        case _:
            return None
    if len(found.sources) < MIN_SOURCES:
        return None
    return msgspec.structs.replace(found, follows=memory.graph.summaries.get(subject, ""))


def _of_session(memory: UserMemory, session: n.Session, covered: int, max_tokens: int) -> Material:
    known, before = _told_before(memory, session.id)
    fresh = _turns(memory, session.id, min(session.messages - covered, MAX_WALK))
    told = candidates(memory, of_turns(memory, [*before, *fresh], known))
    found = made("session", session.name, told, *choose(memory, told, max_tokens), max_tokens)
    return msgspec.structs.replace(
        found,
        from_at=session.started_at,
        to_at=session.last_at,
        messages=session.messages,
        covers=session.messages,
    )


def _of_topic(memory: UserMemory, topic: n.Topic, covered: int, max_tokens: int) -> Material:
    known, _ = _told_before(memory, topic.id)
    fresh = islice(_members(memory, topic.id, covered), MAX_WALK)
    told = candidates(memory, [*known, *(m for m in fresh if feeds(memory, m.id))])
    found = made("topic", topic.name, told, *choose(memory, told, max_tokens), max_tokens)
    return msgspec.structs.replace(found, covers=memory.graph.counters.get(g.MEMORY, 0))


def _of_user(memory: UserMemory, covered: int, now: float, max_tokens: int) -> Material:
    """Facts and preferences that hold now, the newest first; then recent events likewise."""
    known, _ = _told_before(memory, n.USER_NODE)
    top = memory.graph.counters.get(g.MEMORY, 0)
    ids = (f"{g.MEMORY}{i}" for i in range(top, max(covered, top - MAX_WALK), -1))
    fresh = (memory.graph.node(i) for i in ids if feeds(memory, i))
    memories = {m.id: m for m in [*known, *fresh] if isinstance(m, n.Memory)}.values()
    facts = candidates(memory, (m for m in memories if m.kind != "event" and _holds(m, now)), _own)
    facts.reverse()
    recent = sorted((m for m in memories if m.kind == "event"), key=_when)[-MAX_EVENTS:]
    events = candidates(memory, recent)
    events.reverse()
    budget = int(FACTS_SHARE * max_tokens) if events else max_tokens
    picked, order = choose(memory, facts, budget)
    left = max_tokens - sum(size(facts[i].text) + 1 for i in picked)
    more, others = choose(memory, events, left) if left > 0 else ([], [])
    found = made(
        "user",
        "",
        [*facts, *events],
        [*picked, *(i + len(facts) for i in more)],
        [*order[:MAX_FACTS], *(i + len(facts) for i in others), *order[MAX_FACTS:]],
        max_tokens,
    )
    return msgspec.structs.replace(found, covers=top)


def _own(node: n.Memory | n.Message) -> float:
    slot = node.slot if isinstance(node, n.Memory) else None
    return worth_of(node) + OWNER_GAIN * (slot or "").startswith("user|")


def _when(memory: n.Memory) -> tuple[float, int]:
    at = memory.recorded_at if memory.valid_from is None else memory.valid_from
    return at, g.number(memory.id)


def _holds(memory: n.Memory, now: float) -> bool:
    return (memory.valid_from is None or memory.valid_from <= now) and (
        memory.valid_to is None or memory.valid_to > now
    )
