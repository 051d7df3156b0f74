"""The gist of what has faded: summaries of what was archived for a budget or for its weight.

Such memories no longer answer, so what they said is told in short: those that mention the same
entity together, some that are alike at a time. Each of these summaries stays beside the others,
unlike the running ones of summaries.py, for what it derives from does not change any more. It is
taken back when one of its memories is hidden, deleted or replaced after all; the others then wait
for another.
"""

from __future__ import annotations

import math
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

import msgspec

from reverie.memory_graph import graph as g, nodes as n
from reverie.memory_graph.material import Material, candidates, choose, made
from reverie.memory_graph.topk import DECIMALS

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

SUBJECT: Final = "faded"  # stands for all groups, among the subjects of summaries
LEAST = 12  # memories of one group from which on it is told
MOST = 24  # of one summary; no more sources leave a shard than material.MAX_SOURCES
MAX_LOOKED_AT = 1_024  # of the waiting, the oldest


def group(memory: UserMemory, least: int = LEAST) -> tuple[str | None, list[n.Memory]] | None:
    """Return the oldest memory that waits and those most like it, of the focus that has most.

    The focus of a memory is the entity of those it mentions that is mentioned most in all; those
    without any share none.

    Args:
        memory: the user's state.
        least: how many there must be.

    Returns:
        The id of the entity (None: of those without) and the memories, or None with too few.
    """
    graph = memory.graph
    if len(graph.waiting) < least:
        return None
    groups: dict[str | None, list[n.Memory]] = {}
    for memory_id in nsmallest(MAX_LOOKED_AT, graph.waiting, key=g.number):
        node: n.Memory = graph.get(memory_id, n.Memory)
        groups.setdefault(_focus(graph, memory_id), []).append(node)
    focus, found = max(groups.items(), key=lambda kv: (len(kv[1]), -_number(kv[0])))
    return (focus, _alike(memory, found)) if len(found) >= least else None


def _alike(memory: UserMemory, found: list[n.Memory]) -> list[n.Memory]:
    """Return the oldest and those most like it, `MOST` at most, in their order: a summary of one
    thing is found by what is asked about it, one of many things by nothing."""
    if len(found) <= MOST:
        return found
    like = [0.0] * len(found)
    if memory.vectors is not None:
        vector = memory.vectors.vector(found[0].id)
        if vector is not None:
            ids = [m.id for m in found]
            cosines = memory.vectors.similarities(vector, ids)
            like = [0.0 if math.isnan(cosine) else cosine for cosine in cosines]
    nearest = sorted(range(1, len(found)), key=lambda i: (-round(like[i], DECIMALS), i))
    return [found[i] for i in sorted([0, *nearest[: MOST - 1]])]


def _focus(graph: g.MemoryGraph, memory_id: str) -> str | None:
    mentions = {
        entity_id: node.mentions
        for entity_id, _ in graph.out(memory_id, n.CONTAINS_ENTITY)
        if isinstance(node := graph.node(entity_id), n.Entity)
    }
    return max(mentions, key=lambda e: (mentions[e], -g.number(e)), default=None)


def _number(focus: str | None) -> int:
    return 0 if focus is None else g.number(focus)


def material(memory: UserMemory, least: int, max_tokens: int) -> Material | None:
    """Return what the next gist is made of, None with nothing to tell. All its sources are taken in
    by it, though it shows only those that stand for all."""
    found = group(memory, least)
    if found is None:
        return None
    focus, members = found
    told = candidates(memory, members)
    name = "" if focus is None else memory.display(focus)
    whole = made(SUBJECT, name, told, *choose(memory, told, max_tokens), max_tokens)
    return msgspec.structs.replace(whole, covers=memory.graph.counters.get(g.MEMORY, 0))
