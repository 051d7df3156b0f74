"""The nearest memories by meaning alone: neither words, nor the graph, nor time count.

The command is part of the union in commands.py; how a shard carries it out stands here too.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from reverie.actors.bases import Read
from reverie.memory_graph import graph as g, nodes as n
from reverie.memory_graph.filters import compile_filter
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.topk import DECIMALS
from reverie.memory_graph.views import Item, as_item
from reverie.memory_graph.visible import Moment, is_visible


class Near(msgspec.Struct, frozen=True):
    """A memory and its cosine with the question, -1 to 1."""

    item: Item
    similarity: float


class Nearest(Read, frozen=True, kw_only=True, tag="nearest"):
    """Answer: list of `Near`, active memories, best first; equal ones in the order in which they
    were recorded. `vector` is float32 bytes made by `embedder`; the first `offset` are left out."""

    vector: bytes
    embedder: str | None = None
    limit: int = 10
    offset: int = 0
    filters: dict[str, Any] | None = None


def nearest(memory: UserMemory, command: Nearest) -> list[Near]:
    """Carry out `Nearest`; raises FilterError."""
    where = None if command.filters is None else compile_filter(command.filters, memory)
    if memory.vectors is None:
        return []
    moment = Moment(command.now)
    graph = memory.graph

    def is_wanted(node_id: str) -> bool:
        node = graph.node(node_id)
        return (
            isinstance(node, n.Memory)
            and is_visible(node, moment)
            and (where is None or where(node))
        )

    query = np.frombuffer(command.vector, dtype="<f4")
    wanted = command.offset + command.limit
    active = [i for ids in graph.statements.values() for i in ids]
    if 4 * len(active) <= len(memory.vectors) or wanted >= len(active):
        # Where turns are the most, passing over all that are nearer would be slower.
        cosines = memory.vectors.similarities(query, active)
        ranked = [
            (node_id, round(cosine, DECIMALS))
            for node_id, cosine in zip(active, cosines, strict=True)
            if not math.isnan(cosine) and is_wanted(node_id)
        ]
    else:
        near = memory.vectors.search(query, wanted, is_wanted)
        ranked = [(node_id, round(cosine, DECIMALS)) for node_id, cosine in near]
    ranked.sort(key=lambda pair: (-pair[1], g.number(pair[0])))
    return [
        Near(as_item(memory, graph.get(node_id, n.Memory), moment), cosine)
        for node_id, cosine in ranked[command.offset : wanted]
    ]
