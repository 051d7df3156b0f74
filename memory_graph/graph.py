"""One user's graph: a `networkx.MultiDiGraph` whose nodes and edges carry the structs of nodes.py.

networkx stores an attribute dictionary for every node and edge, 184 bytes each before the first
value. Here both are a slotted view over one struct instead (`Attributes`), which algorithms of
networkx read like a dictionary: `graph.nx.nodes["m1"]["text"]`, `weight="weight"`.

This class keeps the structure consistent (names, sessions, counters); what an event means is in
apply.py, and how to search is elsewhere.
"""

from __future__ import annotations

import sys
from bisect import insort
from collections.abc import Iterator, KeysView, Mapping, MutableMapping
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import networkx as nx

from reverie.memory_graph import decay, nodes as n
from reverie.memory_graph.errors import InvariantError
from reverie.memory_graph.text import name_key, normalise

if TYPE_CHECKING:
    Digraph: TypeAlias = "nx.MultiDiGraph[str]"

Payload: TypeAlias = n.Node | n.Edge | n.Relation
_Keyed: TypeAlias = dict[str, "Attributes"]

# Node ids are a letter for the kind and a number: m1 is the first memory of its user.
MEMORY, MESSAGE, SESSION, ENTITY, RELATION, SUMMARY, TOPIC = "mtseryk"


def number(node_id: str) -> int:
    """Return the number in a node id: 12 for "m12"."""
    return int(node_id[1:])


def _statement(text: str) -> int:
    """Return 64 bits that stand for a normalised text; texts would be held twice otherwise."""
    digest = blake2b(normalise(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _shared(text: str) -> str:
    """Return the one copy of a text in this process: witnesses of an event have it in common."""
    return sys.intern(text) if type(text) is str else text


class Attributes(MutableMapping[str, Any]):
    """A mapping view of a struct's fields, in place of a dictionary per node and edge."""

    __slots__ = ("data",)

    data: Payload

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Set fields, or the whole struct under the name `data` (as networkx does on adding)."""
        for key, value in {**dict(other), **kwargs}.items():
            self[key] = value

    def __getitem__(self, key: str) -> Any:
        try:
            return self.data if key == "data" else getattr(self.data, key)
        except AttributeError:
            raise KeyError(key) from None

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "data":
            self.data = value
        else:
            setattr(self.data, key, value)

    def __delitem__(self, key: str) -> None:
        msg = f"{key}: fields of a node or edge cannot be removed"
        raise TypeError(msg)

    def __iter__(self) -> Iterator[str]:
        return iter(self.data.__struct_fields__)

    def __len__(self) -> int:
        return len(self.data.__struct_fields__)


class _Digraph(nx.MultiDiGraph):  # type: ignore[misc] # networkx has no types
    node_attr_dict_factory = Attributes
    edge_attr_dict_factory = Attributes


class MemoryGraph:
    """The nodes and edges of one user.

    Attributes:
        nx: the graph itself. Read it with any algorithm of networkx; change it only by events.
        names: normalised entity name or alias -> entity id.
        longest_name: most words that one of `names` has.
        sessions: the caller's session id -> session node id.
        externals: the caller's message id -> message node id.
        slots: slot -> ids of the active memories in it, oldest first.
        statements: hash of a normalised text -> ids of the active memories that say it, oldest
            first (one whose time to live is over counts as active until it is retired).
        relations: relation id -> (head, tail).
        counters: highest number given per kind letter.
        topics: normalised name of a topic -> its id.
        happened: id of what happened in the world -> the memories of it, oldest first, also those
            that have ended.
        summaries: what a summary is of (`Summary.subject`) -> the newest, also a retired one.
        outdated: those whose newest summary is stale, or was retired with nothing in its place.
        edge_count: number of edges.
        active: number of active memories, and `active_bytes`, the UTF-8 bytes of their texts.
        waiting: ids of the memories that have faded and are in no gist yet.
        veiled: texts that a reader of now may not see: memories that are not active or whose time
            may run out, and replaced summaries. All others are visible.
    """

    __slots__ = (
        "active",
        "active_bytes",
        "counters",
        "edge_count",
        "externals",
        "happened",
        "longest_name",
        "names",
        "nx",
        "outdated",
        "relations",
        "sessions",
        "slots",
        "statements",
        "summaries",
        "topics",
        "veiled",
        "waiting",
    )

    def __init__(self) -> None:
        self.nx: Digraph = _Digraph()
        self.names: dict[str, str] = {}
        self.longest_name = 0
        self.sessions: dict[str, str] = {}
        self.externals: dict[str, str] = {}
        self.slots: dict[str, list[str]] = {}
        self.topics: dict[str, str] = {}
        self.happened: dict[str, tuple[str, ...]] = {}
        self.summaries: dict[str, str] = {}
        self.outdated: set[str] = set()
        self.veiled: set[str] = set()
        self.waiting: set[str] = set()
        self.active = 0
        self.active_bytes = 0
        self.statements: dict[int, tuple[str, ...]] = {}
        self.relations: dict[str, tuple[str, str]] = {}
        self.counters: dict[str, int] = {}
        self.edge_count = 0  # networkx counts by walking over all nodes
        self.add(n.User())

    # -- nodes -------------------------------------------------------------------------

    def add(self, node: n.Node) -> None:
        """Add a node and index its names.

        Raises:
            InvariantError: the id is taken, or is not the next of its kind (ids are given in
                journal order).
        """
        if self.nx.has_node(node.id):
            msg = f"node {node.id} exists already"
            raise InvariantError(msg)
        if node.id != n.USER_NODE:
            self.count(node.id)
        self.restore(node)

    def restore(self, node: n.Node) -> None:
        """Add a node that had its id already (from a snapshot); `counters` are the caller's."""
        self.nx.add_node(node.id, data=node)
        match node:
            case n.Session():
                self.sessions[node.name] = node.id
            case n.Message() if node.external_id is not None:
                self.externals[node.external_id] = node.id
            case n.Entity():
                # A name belongs to one entity for good, whatever the order of replay.
                self._name(name_key(node.name), node.id)
                node.aliases = tuple(a for a in node.aliases if self.name(a, node.id))
            case n.Memory():
                node.text = _shared(node.text)
                if node.event is not None:
                    node.event = _shared(node.event)
                    self.happened[node.event] = (*self.happened.get(node.event, ()), node.id)
                if node.status == "active":
                    self.activate(node)
                self.veil(node)
                self.await_gist(node)
            case n.Topic():
                self.topics.setdefault(name_key(node.name), node.id)
            case n.Summary() if node.gist:
                self.outdate(node)
            case n.Summary():
                self.summaries[node.subject] = node.id
                self.outdated.discard(node.subject)
                self.outdate(node)
            case _:  # it has no name and no index of its own
                pass

    def count(self, node_id: str) -> None:
        """Record that `node_id` is in use, so that `next_id` goes on after it.

        Raises:
            InvariantError: the id is malformed or not the next one of its kind.
        """
        kind, number = node_id[:1], node_id[1:]
        if not number.isdecimal() or int(number) != self.counters.get(kind, 0) + 1:
            msg = f"id {node_id!r} is not the next of its kind ({self.next_id(kind)})"
            raise InvariantError(msg)
        self.counters[kind] = int(number)

    def next_id(self, kind: str, ahead: int = 0) -> str:
        """Return the id that the next node of `kind` (a letter) gets, `ahead` ids further on."""
        return sys.intern(f"{kind}{self.counters.get(kind, 0) + 1 + ahead}")

    def node(self, node_id: str) -> n.Node | None:
        """Return the struct of a node, or None."""
        box = self.nx._node.get(node_id)  # noqa: SLF001 (the view costs 10 times as much)
        return None if box is None else cast("n.Node", box.data)

    def get(self, node_id: str, kind: type[n.Node]) -> Any:
        """Return the struct of a node that must exist and be of `kind`.

        Raises:
            InvariantError: it does not exist or is of another kind.
        """
        found = self.node(node_id)
        if not isinstance(found, kind):
            msg = f"{node_id!r} is no {kind.__name__} of this graph"
            raise InvariantError(msg)
        return found

    def nodes(self, kind: type[n.Node] | None = None) -> Iterator[n.Node]:
        """Iterate over the structs of all nodes (of one kind) in the order they were added."""
        for box in self.nx._node.values():  # noqa: SLF001
            if kind is None or isinstance(box.data, kind):
                yield box.data

    def __len__(self) -> int:
        return int(self.nx.number_of_nodes())

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.nx._node  # noqa: SLF001

    # -- names -------------------------------------------------------------------------

    def entity_named(self, name: str) -> n.Entity | None:
        """Return the entity of exactly this name or alias (normalised), or None."""
        found = self.names.get(name_key(name))
        return None if found is None else cast("n.Entity", self.node(found))

    def name(self, name: str, entity_id: str) -> bool:
        """Let `name` stand for an entity; False when it stands for one (or this one) already."""
        key = name_key(name)
        if not key or key in self.names:
            return False
        self._name(key, entity_id)
        return True

    def _name(self, key: str, entity_id: str) -> None:
        self.names[key] = entity_id
        self.longest_name = max(self.longest_name, key.count(" ") + 1)

    def activate(self, memory: n.Memory) -> None:
        """Index an active memory by its slot (in the order of ids) and by what it says."""
        if memory.slot:
            insort(self.slots.setdefault(memory.slot, []), memory.id, key=number)
        said = _statement(memory.text)
        known = self.statements.get(said, ())
        if memory.id not in known:
            self.statements[said] = tuple(sorted((*known, memory.id), key=number))
            self.active += 1
            self.active_bytes += len(memory.text.encode("utf-8", "surrogatepass"))

    def deactivate(self, memory: n.Memory) -> None:
        """Take a memory that is no longer active out of those indices."""
        if memory.slot and (members := self.slots.get(memory.slot)) and memory.id in members:
            members.remove(memory.id)
            if not members:
                del self.slots[memory.slot]
        self.veiled.add(memory.id)
        said = _statement(memory.text)
        known = self.statements.get(said, ())
        if memory.id in known:
            self.active -= 1
            self.active_bytes -= len(memory.text.encode("utf-8", "surrogatepass"))
        if rest := tuple(i for i in known if i != memory.id):
            self.statements[said] = rest
        else:
            self.statements.pop(said, None)

    def veil(self, memory: n.Memory) -> None:
        """Keep `veiled` true after a change of a memory's status or time to live."""
        if memory.status == "active" and memory.ttl_s is None:
            self.veiled.discard(memory.id)
        else:
            self.veiled.add(memory.id)

    def await_gist(self, memory: n.Memory) -> None:
        """Keep `waiting` true after a change of what a memory has become."""
        may_be_told = memory.status == "archived" and memory.faded and memory.ttl_s is None
        if may_be_told and memory.gist is None:
            self.waiting.add(memory.id)
        else:
            self.waiting.discard(memory.id)

    def outdate(self, summary: n.Summary) -> None:
        """Keep `veiled` and `outdated` true after a change of a summary."""
        if summary.retired_at is not None:
            self.veiled.add(summary.id)
        is_newest = self.summaries.get(summary.subject) == summary.id
        if is_newest and (summary.stale or summary.retired_at is not None):
            self.outdated.add(summary.subject)

    def saying(self, text: str) -> list[n.Memory]:
        """Return the active memories that say exactly this (after normalisation), oldest first."""
        found = map(self.node, self.statements.get(_statement(text), ()))
        wanted = normalise(text)
        return [m for m in found if isinstance(m, n.Memory) and normalise(m.text) == wanted]

    # -- edges -------------------------------------------------------------------------

    def link(self, tail: str, head: str, edge: n.Edge | n.Relation, *, known: bool = False) -> None:
        """Add an edge; its key is its kind, or its id for a relation. A relation's id must be
        the next one, unless it is `known` (from a snapshot).

        Raises:
            InvariantError: an end is missing or the edge exists.
        """
        key = edge.id if isinstance(edge, n.Relation) else edge.kind
        if tail not in self or head not in self or self.nx.has_edge(tail, head, key):
            msg = f"edge {tail} -[{key}]-> {head} exists or has no end"
            raise InvariantError(msg)
        self.nx.add_edge(tail, head, key, data=edge)
        self.edge_count += 1
        if isinstance(edge, n.Relation):
            if not known:
                self.count(edge.id)
            self.relations[edge.id] = (tail, head)

    def unlink(self, tail: str, head: str, edge: n.Edge | n.Relation) -> None:
        """Remove an edge for good; the id of a relation is not given again."""
        key = edge.id if isinstance(edge, n.Relation) else edge.kind
        self.nx.remove_edge(tail, head, key)
        self.edge_count -= 1
        self.relations.pop(key, None)

    def remove_entity(self, entity_id: str) -> None:
        """Remove an entity that nothing is linked to, with its names; its id is not given again.

        Raises:
            InvariantError: it is no entity, or has an edge.
        """
        entity: n.Entity = self.get(entity_id, n.Entity)
        if self.degree(entity_id):
            msg = f"{entity_id!r} is linked to other nodes"
            raise InvariantError(msg)
        for name in (entity.name, *entity.aliases):
            if self.names.get(name_key(name)) == entity_id:
                del self.names[name_key(name)]
        self.nx.remove_node(entity_id)

    def edge(self, tail: str, head: str, key: str) -> n.Edge | n.Relation | None:
        """Return the struct of an edge, or None."""
        box = self.nx._succ.get(tail, {}).get(head, {}).get(key)  # noqa: SLF001
        return None if box is None else cast("n.Edge | n.Relation", box.data)

    def relation(self, relation_id: str) -> n.Relation:
        """Return a relation by its id; raises InvariantError when there is none."""
        ends = self.relations.get(relation_id)
        found = None if ends is None else self.edge(*ends, relation_id)
        if not isinstance(found, n.Relation):
            msg = f"{relation_id!r} is no relation of this graph"
            raise InvariantError(msg)
        return found

    def strengthen(self, tail: str, head: str, kind: str, at: float, gain: float) -> None:
        """Touch the edge of `kind`, or add it with weight 1."""
        edge = self.edge(tail, head, kind)
        if edge is None:
            self.link(tail, head, n.Edge(kind, 1.0, at))
        else:
            self.touch(edge, at, gain, self.importance(tail, head))

    def touch(self, edge: n.Edge | n.Relation, at: float, gain: float, importance: float) -> None:
        """Reinforce an edge at time `at` (formula in decay.py)."""
        half_life = decay.half_life_s(edge.kind, importance)
        edge.weight, edge.at = decay.reinforce(edge.weight, edge.at, at, half_life, gain)

    def importance(self, *node_ids: str) -> float:
        """Return the highest importance among the memories of `node_ids`, 0.5 if there is none."""
        found = [m.importance for i in node_ids if isinstance(m := self.node(i), n.Memory)]
        return max(found, default=0.5)

    def out(self, node_id: str, kind: str) -> Iterator[tuple[str, n.Edge | n.Relation]]:
        """Iterate over (head, edge) of the edges of `kind` that leave a node."""
        return self._along(self.nx._succ, node_id, kind)  # noqa: SLF001

    def into(self, node_id: str, kind: str) -> Iterator[tuple[str, n.Edge | n.Relation]]:
        """Iterate over (tail, edge) of the edges of `kind` that enter a node."""
        return self._along(self.nx._pred, node_id, kind)  # noqa: SLF001

    @staticmethod
    def _along(
        adjacency: Mapping[str, Mapping[str, _Keyed]], node_id: str, kind: str
    ) -> Iterator[tuple[str, n.Edge | n.Relation]]:
        for other, keyed in adjacency.get(node_id, {}).items():
            for box in keyed.values():
                if box.data.kind == kind:  # type: ignore[union-attr]
                    yield other, cast("n.Edge | n.Relation", box.data)

    def leaving(self, node_id: str) -> Iterator[tuple[str, n.Edge | n.Relation]]:
        """Iterate over (head, edge) of all edges that leave a node."""
        for head, keyed in self.nx._succ[node_id].items():  # noqa: SLF001
            for box in keyed.values():
                yield head, cast("n.Edge | n.Relation", box.data)

    def heads_by_kind(self, node_id: str) -> dict[str, list[str]]:
        """Return the nodes that the edges of a node lead to, by kind of edge."""
        found: dict[str, list[str]] = {}
        for head, keyed in self.nx._succ[node_id].items():  # noqa: SLF001
            for box in keyed.values():
                found.setdefault(box.data.kind, []).append(head)
        return found

    def edges(self) -> Iterator[tuple[str, str, n.Edge | n.Relation]]:
        """Iterate over (tail, head, edge) of all edges, in the order the tails were added."""
        for tail, heads in self.nx._succ.items():  # noqa: SLF001
            for head, keyed in heads.items():
                for box in keyed.values():
                    yield tail, head, box.data

    def around(self, node_id: str, limit: int) -> list[tuple[str, n.Edge | n.Relation]]:
        """Return (neighbour, edge) in both directions, of the newest `limit` neighbours of each
        direction only: a hub costs no more than any other node."""
        found: list[tuple[str, n.Edge | n.Relation]] = []
        for adjacency in (self.nx._succ[node_id], self.nx._pred[node_id]):  # noqa: SLF001
            if adjacency:
                for other in islice(reversed(adjacency), limit):
                    for box in adjacency[other].values():
                        found.append((other, box.data))  # noqa: PERF401 (measured: faster)
        return found

    def tails(self, node_id: str) -> KeysView[str]:
        """Return the nodes with an edge into a node."""
        return cast("KeysView[str]", self.nx._pred[node_id].keys())  # noqa: SLF001

    def tails_back(self, node_id: str) -> Iterator[str]:
        """Iterate over the nodes with an edge into a node, the last that got one first."""
        tails: dict[str, Any] = self.nx._pred[node_id]  # noqa: SLF001
        return reversed(tails)

    def newest_tails(self, node_id: str, limit: int) -> list[str]:
        """Return the last `limit` nodes that got an edge into a node, the newest first."""
        tails: dict[str, Any] = self.nx._pred[node_id]  # noqa: SLF001
        return list(islice(reversed(tails), limit))

    def degree(self, node_id: str) -> int:
        """Return the number of neighbours, both directions."""
        return len(self.nx._succ[node_id]) + len(self.nx._pred[node_id])  # noqa: SLF001
