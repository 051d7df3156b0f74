"""The rows of each file of an export, made of a user's whole state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from reverie.memory_graph import nodes as n
from reverie.memory_graph.snapshot import Snapshot

Row: TypeAlias = dict[str, Any]

# The file of each kind of node; the user is user.json, profile.json and groups.jsonl.
FILES: dict[type[n.Node], str] = {
    n.User: "user.json",
    n.Session: "sessions.jsonl",
    n.Message: "messages.jsonl",
    n.Memory: "memories.jsonl",
    n.Entity: "entities.jsonl",
    n.Summary: "summaries.jsonl",
    n.Topic: "topics.jsonl",
}


class Whole:
    """A user's state with what is needed to tell its nodes in full."""

    def __init__(self, snapshot: Snapshot, errors: Mapping[str, str]) -> None:
        """Take a snapshot, and the errors of quarantined turns by their ids."""
        self.snapshot = snapshot
        self._errors = errors
        self._names = {node.id: _name(node) for node in snapshot.nodes}
        self._out: dict[str, dict[str, list[str]]] = {}
        self._replaced: dict[str, list[str]] = {}
        for tail, head, edge in snapshot.edges:
            if edge.kind in {n.CONTAINS_ENTITY, n.DERIVED_FROM, n.IN_TOPIC, n.SUPERSEDES}:
                self._out.setdefault(tail, {}).setdefault(edge.kind, []).append(head)
            if edge.kind == n.SUPERSEDES:
                self._replaced.setdefault(head, []).append(tail)

    @property
    def user(self) -> n.User:
        """The node of the user."""
        return next(node for node in self.snapshot.nodes if isinstance(node, n.User))

    def nodes(self, kind: type[n.Node]) -> Iterator[Row]:
        """Yield a row for each node of a kind, in the order in which they were recorded."""
        for node in self.snapshot.nodes:
            if isinstance(node, kind):
                yield self._row(node)

    def _row(self, node: n.Node) -> Row:
        row: Row = msgspec.structs.asdict(node)
        match node:
            case n.Message():
                row |= {
                    "session_name": self._names.get(node.session),
                    "error": self._errors.get(node.id),
                    "entities": self._named(node.id, n.CONTAINS_ENTITY),
                }
            case n.Memory():
                row |= {
                    "sources": self._ids(node.id, n.DERIVED_FROM),
                    "supersedes": self._ids(node.id, n.SUPERSEDES),
                    "superseded_by": self._replaced.get(node.id, []),
                    "entities": self._named(node.id, n.CONTAINS_ENTITY),
                    "topics": self._named(node.id, n.IN_TOPIC),
                }
            case n.Summary():
                row |= {
                    "of_name": self._names.get(node.of),
                    "sources": self._ids(node.id, n.DERIVED_FROM),
                }
            case _:
                pass
        return row

    def _ids(self, node_id: str, kind: str) -> Sequence[str]:
        return self._out.get(node_id, {}).get(kind, [])

    def _named(self, node_id: str, kind: str) -> list[str]:
        return [self._names.get(i, i) for i in self._ids(node_id, kind)]

    def relations(self) -> Iterator[Row]:
        """Yield a row for each typed relation."""
        for tail, head, edge in self.snapshot.edges:
            if isinstance(edge, n.Relation):  # an edge goes from its tail to its head
                yield msgspec.structs.asdict(edge) | {
                    "head": tail,
                    "head_name": self._names.get(tail),
                    "tail": head,
                    "tail_name": self._names.get(head),
                }

    def links(self) -> Iterator[Row]:
        """Yield a row for each other edge."""
        for tail, head, edge in self.snapshot.edges:
            if isinstance(edge, n.Edge):
                yield msgspec.structs.asdict(edge) | {"tail": tail, "head": head}

    def relationships(self) -> Iterator[Row]:
        """Yield a row for each dimension of each relationship."""
        for other, bond in self.snapshot.bonds:
            for name, standing in bond.dimensions.items():
                yield msgspec.structs.asdict(standing.dimension) | {
                    "other": other,
                    "other_name": self._names.get(other),
                    "dimension": name,
                    "value": standing.value,
                    "at": standing.at,
                    "moves_dropped": bond.dropped,
                }

    def moves(self) -> Iterator[Row]:
        """Yield a row for each move of a relationship that is kept."""
        for other, bond in self.snapshot.bonds:
            for move in bond.moves:
                yield msgspec.structs.asdict(move) | {
                    "other": other,
                    "other_name": self._names.get(other),
                }


def _name(node: n.Node) -> str:
    return "user" if isinstance(node, n.User) else str(getattr(node, "name", node.id))
