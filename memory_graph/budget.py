"""What a memory weighs, and which are archived to keep a budget: the least weighty first.

    weight(t) = strength * 2 ** (-(t - seen) / half_life)
    strength  = importance + 0.25 * |sentiment| + 0.25 * hits / (hits + 4)
    half_life = 30 days * 2 ** (2 * importance - 1)
    seen      = when it was recorded or last read, whichever is later

So a weight is 0 to 1.5. The half-life is stretched by importance as that of edges is (decay.py).
The terms of strength are the same at any time, so the weight of what is not read only falls.

Archived for want of room are, in this order: what weighs least; then what has importance 1; then
the ten most important ones. What is equal goes in the order of ids. Pinned memories never go: if
they alone exceed the budget, all of them stay, and nothing else does.

Pure functions of a user's state. Nothing is kept beside the graph, so this is exact after replay,
rewind and import. To bound the cost, a write that goes over a budget makes room for some more, a
`SLACK` of the budget: looking at all n memories at each n * SLACK writes is a constant number of
looks a write.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from reverie.memory_graph import decay, graph as g, nodes as n
from reverie.memory_graph.visible import is_live

if TYPE_CHECKING:
    from reverie.memory_graph.drafts import MemoryDraft
    from reverie.memory_graph.profile import Profile
    from reverie.memory_graph.state import UserMemory
    from reverie.memory_graph.write import Writer

HALF_LIFE_S = 30 * decay.DAY_S
EMOTION = 0.25
USE = 0.25
USE_HALF = 4  # readings that give half of it
LEAST_STRENGTH = 1e-6  # of what has none, to be ordered by its age
MOST_IMPORTANT = 10  # that go last
SLACK = 1 / 32  # of a budget


def strength(memory: n.Memory) -> float:
    """Return what a memory weighs when it was just seen; 0 to 1.5."""
    use = memory.hits / (memory.hits + USE_HALF)
    return memory.importance + EMOTION * abs(memory.sentiment) + USE * use


def seen_at(memory: n.Memory) -> float:
    """Return when a memory was recorded or last read, in seconds."""
    return (
        memory.recorded_at
        if memory.last_access is None
        else max(memory.recorded_at, memory.last_access)
    )


def half_life_s(memory: n.Memory) -> float:
    """Return in which time the weight of a memory halves: 15 to 60 days, in seconds."""
    return HALF_LIFE_S * math.exp2(2.0 * memory.importance - 1.0)


def weight(memory: n.Memory, now: float) -> float:
    """Return what a memory weighs at time `now` (seconds); what was seen later has not decayed."""
    age = max(0.0, now - seen_at(memory))
    return strength(memory) * math.exp2(-age / half_life_s(memory))


def _rank(memory: n.Memory, now: float) -> float:
    """Return the logarithm of the weight, which does not vanish in a thousand half-lives."""
    age = max(0.0, now - seen_at(memory))
    return math.log2(max(strength(memory), LEAST_STRENGTH)) - age / half_life_s(memory)


def profile_of(graph: g.MemoryGraph) -> Profile | None:
    """Return the limits of the owner of a graph, None without any."""
    owner = graph.node(n.USER_NODE)
    return owner.profile if isinstance(owner, n.User) else None


def time_to_live(graph: g.MemoryGraph, draft: MemoryDraft) -> float | None:
    """Return how long a new memory lives, in seconds: as it says, or as its owner's profile says of
    its kind, if it is not pinned."""
    profile = profile_of(graph)
    if draft.ttl_s is not None or draft.pinned or profile is None:
        return draft.ttl_s
    return profile.ttl_s.get(draft.kind)


def active_bytes(memory: UserMemory) -> int:
    """Return what a budget of bytes counts: the texts of all active memories in UTF-8, and for each
    of them a vector of float32, if there are vectors."""
    dim = 0 if memory.vectors is None else memory.vectors.dim
    return memory.graph.active_bytes + 4 * dim * memory.graph.active


def active(memory: UserMemory) -> Iterator[n.Memory]:
    """Iterate over the active memories, in no order that means anything."""
    graph = memory.graph
    for ids in graph.statements.values():
        for memory_id in ids:
            node: n.Memory = graph.get(memory_id, n.Memory)
            yield node


def mortal(memory: UserMemory) -> Iterator[n.Memory]:
    """Iterate over the active memories that have a time to live, as `active` does; they are among
    the veiled ones, which are few as long as few have gone."""
    graph = memory.graph
    if len(graph.veiled) >= graph.active:
        return (m for m in active(memory) if m.ttl_s is not None)
    veiled = (graph.node(node_id) for node_id in graph.veiled)
    memories = (m for m in veiled if isinstance(m, n.Memory))
    return (m for m in memories if m.status == "active" and m.ttl_s is not None)


def over_budget(memory: UserMemory) -> str | None:
    """Return which budget is exceeded, as a reason for people; None when none is."""
    profile = profile_of(memory.graph)
    if profile is None:
        return None
    if profile.memories is not None and memory.graph.active > profile.memories:
        return f"budget: {profile.memories} memories"
    if profile.bytes is not None and active_bytes(memory) > profile.bytes:
        return f"budget: {profile.bytes} bytes"
    return None


def keep_budget(writer: Writer, spared: Collection[str] = ()) -> int:
    """End what has outlived its time, then archive what weighs least, until the budgets of the
    owner are kept; nothing is done while they are.

    Args:
        writer: of the owner; its time is the time of the weights.
        spared: ids of memories that go after all others, for they were just asked for.

    Returns:
        How many memories were ended or archived.
    """
    memory = writer.memory
    if over_budget(memory) is None:
        return 0
    count = expire(writer)
    # The reason is looked up anew each time: two budgets may be exceeded, one after the other.
    if over_budget(memory) is None:
        return count
    at = writer.at
    left = [m for m in active(memory) if not m.pinned]
    ranks = {m.id: _rank(m, at) for m in left}

    def by_importance(m: n.Memory) -> tuple[float, float, int]:
        return m.importance, ranks[m.id], g.number(m.id)

    top = {m.id: place for place, m in enumerate(sorted(left, key=by_importance)[-MOST_IMPORTANT:])}

    def order(m: n.Memory) -> tuple[int, float, int]:
        if m.id in spared:
            return 3, 0.0, g.number(m.id)
        if (place := top.get(m.id)) is not None:
            return 2, float(place), g.number(m.id)
        return int(m.importance >= 1.0), ranks[m.id], g.number(m.id)

    reason = ""
    for m in sorted(left, key=order):
        over = over_budget(memory)
        reason = over or reason
        if over is None and (order(m)[0] > 0 or _has_slack(memory)):
            break
        count += writer.retire(m.id, "archived", reason, faded=True)
    return count


def _has_slack(memory: UserMemory) -> bool:
    profile = profile_of(memory.graph)
    if profile is None:
        return True
    return not any(
        limit is not None and used > limit - int(SLACK * limit)
        for limit, used in (
            (profile.memories, memory.graph.active),
            (profile.bytes, active_bytes(memory)),
        )
    )


def expire(writer: Writer) -> int:
    """End the active memories that have outlived their time; returns how many.

    Each ends when its time was over, whenever this is found out.
    """
    over = [m for m in mortal(writer.memory) if not is_live(m, writer.at)]
    for m in sorted(over, key=lambda m: g.number(m.id)):
        ended = m.recorded_at + (m.ttl_s or 0.0)
        writer.retire(m.id, "expired", f"time to live: {m.ttl_s:g} s", ended)
    return len(over)


def fade(writer: Writer) -> int:
    """Archive the unpinned memories that weigh less than the owner's profile wants; returns how
    many."""
    profile = profile_of(writer.graph)
    if profile is None or profile.archive_below is None:
        return 0
    below, at = profile.archive_below, writer.at
    light = [m for m in active(writer.memory) if not m.pinned and weight(m, at) < below]
    for m in sorted(light, key=lambda m: g.number(m.id)):
        why = f"weight: {weight(m, at):.3g} of at least {below:g}"
        writer.retire(m.id, "archived", why, faded=True)
    return len(light)


def next_due(memory: UserMemory) -> float:
    """Return from when on there may be something to tend, in seconds; infinity if never.

    It is not later than the first end of a time to live, and the first fall of a weight below
    `archive_below`, as long as nothing is written or read.
    """
    if over_budget(memory) is not None and any(not m.pinned for m in active(memory)):
        return -math.inf
    profile = profile_of(memory.graph)
    below = None if profile is None else profile.archive_below
    due = min((m.recorded_at + (m.ttl_s or 0.0) for m in mortal(memory)), default=math.inf)
    if below:
        falling = (_falls_at(m, below) for m in active(memory) if not m.pinned)
        due = min(due, min(falling, default=math.inf))
    return due


def _falls_at(memory: n.Memory, below: float) -> float:
    """Return when the weight of a memory falls below a bound, in seconds."""
    if (full := strength(memory)) < below:
        return -math.inf
    return seen_at(memory) + half_life_s(memory) * math.log2(full / below)


def stats(memory: UserMemory) -> tuple[int, int, bool]:
    """Return how many active memories are pinned, what a budget of bytes counts, and whether a
    budget is exceeded because of pinned ones."""
    pinned = sum(m.pinned for m in active(memory))
    return pinned, active_bytes(memory), over_budget(memory) is not None


def broken(memory: UserMemory) -> Iterator[str]:
    """Yield a line for each broken invariant of what has faded, and of the budgets."""
    graph = memory.graph
    every = [m for m in graph.nodes(n.Memory) if isinstance(m, n.Memory)]
    alive = [m for m in every if m.status == "active"]
    size = sum(len(m.text.encode("utf-8", "surrogatepass")) for m in alive)
    if (len(alive), size) != (graph.active, graph.active_bytes):
        yield f"{graph.active} memories of {graph.active_bytes} bytes are counted as active"
    if over_budget(memory) is not None and not all(m.pinned for m in alive):
        yield f"{over_budget(memory)} is exceeded by memories that are not pinned"
    waiting = set()
    for m in every:
        if m.faded and m.status != "archived":
            yield f"memory {m.id} is {m.status}, and marked as faded"
        if (m.away_at is not None) and m.status not in {"archived", "quarantined"}:
            yield f"memory {m.id} is {m.status}, and marked as put away"
        told = graph.node(m.gist or "")
        if m.gist is None:
            if m.faded and m.ttl_s is None:
                waiting.add(m.id)
        elif not (isinstance(told, n.Summary) and told.gist and told.retired_at is None):
            yield f"memory {m.id} names {m.gist}, which is no gist that answers"
        elif graph.edge(told.id, m.id, n.DERIVED_FROM) is None or not m.faded:
            yield f"memory {m.id} names {m.gist}, which does not derive from it as a faded one"
    if waiting != graph.waiting:
        yield f"waiting for a gist are {sorted(graph.waiting)}, should be {sorted(waiting)}"
