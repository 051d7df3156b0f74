"""A user's graph as plain rows: for graph queries and for exports, page by page.

A row of a node is its label and its values in the order of `NODES[label]`; a row of an edge is its
kind, the ids of its ends, and its values in the order of `EDGES[kind]`. Vectors are not in it. What
a read may not show (see visible.py) is left out, with the edges of it. Weights, and how the owner
stands to others, are as they have decayed at the time of the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from reverie.memory_graph import decay, nodes as n
from reverie.memory_graph.relationships import value_of
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.visible import Moment, is_visible, relation_holds

MAX_PAGE_CHARS = 4_000_000  # of texts; one more text may go over it
MAX_PAGE_EDGES = 50_000  # as well, the edges of one more node

STANDS_TO = "STANDS_TO"  # owner -> entity, one for each dimension of a relationship

TEXT, NUMBER, WHOLE, FLAG, TEXTS = "STRING", "DOUBLE", "INT64", "BOOL", "STRING[]"

# label -> field -> type. The id comes first, and is the key.
NODES: dict[str, dict[str, str]] = {
    "User": {"id": TEXT, "name": TEXT, "created_at": NUMBER},
    "Session": {
        "id": TEXT,
        "name": TEXT,
        "started_at": NUMBER,
        "last_at": NUMBER,
        "messages": WHOLE,
    },
    "Message": {
        "id": TEXT,
        "speaker": TEXT,
        "role": TEXT,
        "text": TEXT,
        "said_at": NUMBER,
        "recorded_at": NUMBER,
        "external_id": TEXT,
        "metadata": TEXT,
        "status": TEXT,
    },
    "Memory": {
        "id": TEXT,
        "text": TEXT,
        "kind": TEXT,
        "status": TEXT,
        "recorded_at": NUMBER,
        "valid_from": NUMBER,
        "valid_to": NUMBER,
        "retired_at": NUMBER,
        "expires_at": NUMBER,
        "confidence": NUMBER,
        "importance": NUMBER,
        "sentiment": NUMBER,
        "slot": TEXT,
        "provenance": TEXT,
        "told_by": TEXT,
        "event": TEXT,
        "pinned": FLAG,
        "tags": TEXTS,
        "metadata": TEXT,
        "last_access": NUMBER,
        "hits": WHOLE,
    },
    "Entity": {
        "id": TEXT,
        "name": TEXT,
        "type": TEXT,
        "aliases": TEXTS,
        "first_seen": NUMBER,
        "last_seen": NUMBER,
        "mentions": WHOLE,
    },
    "Summary": {
        "id": TEXT,
        "text": TEXT,
        "recorded_at": NUMBER,
        "from_at": NUMBER,
        "to_at": NUMBER,
        "retired_at": NUMBER,
        "gist": FLAG,
        "level": WHOLE,
    },
    "Topic": {"id": TEXT, "name": TEXT, "created_at": NUMBER},
}
_WEIGHTED = {"weight": NUMBER, "at": NUMBER}
# kind -> field -> type.
EDGES: dict[str, dict[str, str]] = {
    n.PARTICIPATED_IN: {"role": TEXT, **_WEIGHTED},
    n.IN_SESSION: _WEIGHTED,
    n.SENT_BY: _WEIGHTED,
    n.PREVIOUS: _WEIGHTED,
    n.CONTAINS_ENTITY: _WEIGHTED,
    n.RELATED_TO: _WEIGHTED,
    n.RELATION: {
        "id": TEXT,
        "predicate": TEXT,
        "valid_from": NUMBER,
        "valid_to": NUMBER,
        "recorded_at": NUMBER,
        "retired_at": NUMBER,
        "confidence": NUMBER,
        "source": TEXT,
        **_WEIGHTED,
    },
    n.DERIVED_FROM: _WEIGHTED,
    n.SUMMARIZES: _WEIGHTED,
    n.SUPERSEDES: _WEIGHTED,
    n.IN_TOPIC: _WEIGHTED,
    STANDS_TO: {"dimension": TEXT, "value": NUMBER, "rest": NUMBER, "moved_at": NUMBER},
}
_SOMEBODY = ("User", "Entity")
# kind -> labels of tails, labels of heads.
ENDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    n.PARTICIPATED_IN: (_SOMEBODY, ("Session",)),
    n.IN_SESSION: (("Message",), ("Session",)),
    n.SENT_BY: (("Message",), _SOMEBODY),
    n.PREVIOUS: (("Message",), ("Message",)),
    n.CONTAINS_ENTITY: (("Message", "Memory", "Summary"), ("Entity",)),
    n.RELATED_TO: (("Entity",), ("Entity",)),
    n.RELATION: (_SOMEBODY, _SOMEBODY),
    n.DERIVED_FROM: (("Memory", "Summary"), ("Message", "Memory", "Summary")),
    n.SUMMARIZES: (("Summary",), ("Session", "Topic", "User", "Entity")),
    n.SUPERSEDES: (("Memory",), ("Memory",)),
    n.IN_TOPIC: (("Memory",), ("Topic",)),
    STANDS_TO: (("User",), ("Entity",)),
}

NodeRow: TypeAlias = tuple[str, list[Any]]
EdgeRow: TypeAlias = tuple[str, str, str, list[Any]]


class GraphPage(msgspec.Struct, frozen=True):
    """One page of a user's graph.

    Attributes:
        seq: sequence of the last event of the state that it shows.
        generation: of the user, which a rewind raises; with `seq`, the version of the graph.
        nodes: rows of nodes; see the head of this file.
        edges: rows of all edges that leave these nodes.
        next: where the next page starts; None after the last.
        until: the earliest time, in seconds, at which one of these memories is no longer shown
            because its time to live is over; None for never.
        is_known: the version is the one that was known already, and nothing else is told.
    """

    seq: int
    generation: int
    nodes: list[NodeRow] = []
    edges: list[EdgeRow] = []
    next: int | None = None
    until: float | None = None
    is_known: bool = False


def page(
    memory: UserMemory, generation: int, owner: str, moment: Moment, start: int, limit: int
) -> GraphPage:
    """Return the rows of up to `limit` nodes, after the first `start`.

    Args:
        memory: the state of the user.
        generation: of the user.
        owner: id of the user, the name of the User node.
        moment: from where it is looked.
        start: number of nodes that the pages before have passed.
        limit: nodes of this page; long texts and many edges make it shorter.
    """
    nodes: list[NodeRow] = []
    edges: list[EdgeRow] = []
    ends: list[float] = []
    chars, passed = 0, start
    for node in islice(memory.graph.nodes(), start, None):
        if len(nodes) >= limit or chars >= MAX_PAGE_CHARS or len(edges) >= MAX_PAGE_EDGES:
            break
        passed += 1
        if not _is_shown(node, moment):
            continue
        values = _values(node, owner)
        nodes.append((type(node).__name__, values))
        chars += sum(len(v) for v in values if isinstance(v, str))
        if isinstance(node, n.Memory) and node.ttl_s is not None:
            ends.append(node.recorded_at + node.ttl_s)
        edges += _edges(memory, node.id, moment)
        if isinstance(node, n.User):
            edges += _standings(memory, moment.now)
    return GraphPage(
        memory.seq,
        generation,
        nodes,
        edges,
        passed if passed < len(memory.graph) else None,
        min((end for end in ends if end > moment.now), default=None),
    )


def _is_shown(node: n.Node | None, moment: Moment) -> bool:
    if isinstance(node, n.Memory | n.Message | n.Summary):
        return is_visible(node, moment)
    return node is not None


def _values(node: n.Node, owner: str) -> list[Any]:
    match node:
        case n.User():
            return [node.id, owner, node.created_at]
        case n.Memory():
            known = {
                "expires_at": None if node.ttl_s is None else node.recorded_at + node.ttl_s,
                "tags": list(node.tags),
                "metadata": _json(node.metadata),
            }
        case n.Message():
            known = {"metadata": _json(node.metadata)}
        case n.Entity():
            known = {"aliases": list(node.aliases)}
        case n.Summary():
            known = {"level": node.order}
        case _:
            known = {}
    fields = NODES[type(node).__name__]
    return [known[name] if name in known else getattr(node, name) for name in fields]


def _json(metadata: n.Metadata | None) -> str | None:
    return None if metadata is None else msgspec.json.encode(metadata).decode()


def _edges(memory: UserMemory, tail: str, moment: Moment) -> Iterator[EdgeRow]:
    for head, edge in memory.graph.leaving(tail):
        if not _is_shown(memory.graph.node(head), moment):
            continue
        if isinstance(edge, n.Relation) and not (moment.retired or relation_holds(edge, moment)):
            continue
        weight = decay.weight_at(edge.weight, edge.at, moment.now, decay.half_life_s(edge.kind))
        fields = EDGES[edge.kind]
        values = [weight if name == "weight" else getattr(edge, name) for name in fields]
        yield edge.kind, tail, head, values


def _standings(memory: UserMemory, now: float) -> Iterator[EdgeRow]:
    for other, bond in memory.bonds.items():
        for name, standing in bond.dimensions.items():
            value = value_of(standing, now)
            yield STANDS_TO, n.USER_NODE, other, [name, value, standing.dimension.rest, standing.at]
