"""From what matched to what is connected: a bounded personalised PageRank by local push.

The walk restarts at the seeds with probability `RESTART` and otherwise follows an edge with
probability proportional to its decayed weight times the trust in its kind. The push algorithm
(Andersen, Chung, Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006) settles the
largest residual first, so stopping after `MAX_PUSHES` leaves out only what matters least; the
newest `FAN_OUT` neighbours of a node are followed, so a hub costs no more than any other node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

import msgspec

from reverie.memory_graph import decay, nodes as n
from reverie.memory_graph.graph import MemoryGraph
from reverie.memory_graph.visible import Moment, relation_holds

RESTART = 0.3
MAX_PUSHES = 24
MAX_HOPS = 3
FAN_OUT = 12
EPSILON = 1e-3
FOREVER = math.inf

# How far a step along each kind of edge carries; kinds that reach half the graph carry nothing.
TRUST: dict[str, float] = {
    n.PREVIOUS: 1.0,
    n.DERIVED_FROM: 1.0,
    n.CONTAINS_ENTITY: 0.8,
    n.RELATION: 0.8,
    n.SUPERSEDES: 0.4,
    n.RELATED_TO: 0.3,
    n.SUMMARIZES: 0.2,
    n.IN_TOPIC: 0.3,
    n.IN_SESSION: 0.0,
    n.SENT_BY: 0.0,
    n.PARTICIPATED_IN: 0.0,
}


class Reached(msgspec.Struct, gc=False):
    """A node that the walk reached: its mass, and the step that first brought it there."""

    mass: float = 0.0
    residual: float = 0.0
    hops: int = 0
    came_from: str | None = None
    via: str = ""  # kind of the edge, or the predicate of a relation


def spread(graph: MemoryGraph, seeds: Mapping[str, float], moment: Moment) -> dict[str, Reached]:
    """Return what a walk from `seeds` (node id -> weight >= 0) reaches, seeds included.

    Relations count when they are believed and hold at the moment. Deterministic: ties go to the
    smaller node id.
    """
    total = sum(seeds.values())
    reached: dict[str, Reached] = {}
    heap: list[tuple[float, str]] = []
    for node_id, weight in seeds.items():
        if weight > 0:  # so that total is positive here
            share = weight / total
            if graph.degree(node_id):
                reached[node_id] = Reached(residual=share)
                heap.append((-share, node_id))
            else:  # nothing leads on from here
                reached[node_id] = Reached(mass=share)
    heapify(heap)
    for _ in range(MAX_PUSHES):
        while heap and -heap[0][0] != reached[heap[0][1]].residual:
            heappop(heap)  # an older entry of a node whose residual has grown, or was settled
        if not heap or -heap[0][0] < EPSILON:
            break
        node_id = heappop(heap)[1]
        here = reached[node_id]
        mass, here.residual = here.residual, 0.0
        steps = [] if here.hops >= MAX_HOPS else _steps(graph, node_id, moment)
        if not steps:
            here.mass += mass
            continue
        here.mass += RESTART * mass
        scale = (1 - RESTART) * mass / sum(weight for _, weight, _ in steps)
        for other, weight, via in steps:
            there = reached.get(other)
            if there is None:
                there = reached[other] = Reached(hops=here.hops + 1, came_from=node_id, via=via)
            there.residual += scale * weight
            heappush(heap, (-there.residual, other))
    for found in reached.values():
        found.mass += RESTART * found.residual
    return reached


def _steps(graph: MemoryGraph, node_id: str, moment: Moment) -> list[tuple[str, float, str]]:
    """Return (neighbour, decayed and trusted weight, what the edge says) of a node."""
    now = moment.now if moment.as_of is None else moment.as_of
    steps: list[tuple[str, float, str]] = []
    for other, edge in graph.around(node_id, FAN_OUT):
        kind = edge.kind
        trust = TRUST[kind]
        if not trust:
            continue
        if isinstance(edge, n.Relation):
            if relation_holds(edge, moment):
                weight = decay.weight_at(edge.weight, edge.at, now, decay.HALF_LIFE_S[kind])
                steps.append((other, trust * weight, edge.predicate))
            continue
        weight = edge.weight
        if weight > decay.FLOOR and (half_life := decay.HALF_LIFE_S[kind]) < FOREVER:
            weight = decay.weight_at(weight, edge.at, now, half_life)
        steps.append((other, trust * weight, kind))
    return steps
