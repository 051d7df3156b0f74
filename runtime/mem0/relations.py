"""The `relations` of mem0 1.x with a graph, read from the typed relations of reverie.

Names are kept as they were said (mem0 lowers them and puts underscores between words). What holds
of the user has the user_id as its source, as in mem0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reverie.actors import commands as c
from reverie.mem0.scope import Scope, user_of_owner
from reverie.mem0.store import MOST, Record, Store
from reverie.memory_graph.graph import number
from reverie.memory_graph.views import RelationView
from reverie.nearest import call_many

Triple = dict[str, str]


def of_owner(
    store: Store, owner: str, names: Iterable[str] | None = None, *, ended: bool = False
) -> list[RelationView]:
    """Return the relations of a user, once each, those around `names` only if they are given."""
    user = store.user(owner)
    if names is None:
        names = ["user", *(e.name for e in user.entities(limit=MOST))]
    commands: list[c.UserCommand] = [
        c.Neighbors(
            **user._read(),  # noqa: SLF001 (of our own package)
            name=user.masking.asked_name(name),
            retired=ended,
            limit=MOST,
        )
        for name in dict.fromkeys(names)
    ]
    found: dict[str, RelationView] = {}
    for around in call_many(store.rt, commands):
        if around is not None:
            found |= {relation.id: relation for relation in around.relations}
    return sorted(found.values(), key=lambda relation: number(relation.id))


def triple(owner: str, relation: RelationView, end: str) -> Triple:
    """Return a relation as mem0 shows it; `end` names its tail: "target" or "destination"."""
    who = user_of_owner(owner) or owner
    head = who if relation.head == "user" else relation.head
    tail = who if relation.tail == "user" else relation.tail
    return {"source": head, "relationship": relation.predicate, end: tail}


def added(store: Store, owner: str, kept: Sequence[str], since: float) -> dict[str, Any]:
    """Return what a write did to the relations of a user.

    Args:
        store: of the user.
        owner: the user.
        kept: ids of the memories that it made.
        since: its time; relations that ended then or later were ended by it.
    """
    new, gone = [], []
    if kept:
        items = [store.user(owner).get(memory_id) for memory_id in kept]
        names = ["user", *(name for item in items for name in item.entities)]
        for relation in of_owner(store, owner, names, ended=True):
            if relation.retired_at is not None and relation.retired_at >= since:
                gone.append([triple(owner, relation, "target")])
            elif relation.source in kept:
                new.append([triple(owner, relation, "target")])
    return {"deleted_entities": gone, "added_entities": new}


def listed(store: Store, scope: Scope, within: Sequence[Record], limit: int) -> list[Triple]:
    """Return the relations of a scope, for `get_all`. Where an agent or a run is named, those that
    came from the memories `within`."""
    known = {(record.owner, record.item.id) for record in within}
    is_part = scope.agent_id is not None or scope.run_id is not None
    found: list[Triple] = []
    for owner in store.owners(scope):
        found += [
            triple(owner, relation, "target")
            for relation in of_owner(store, owner)
            if not is_part or (owner, relation.source) in known
        ]
    return found[:limit]


def around(store: Store, records: Sequence[Record], limit: int) -> list[Triple]:
    """Return the relations of whom and what found memories mention, for `search`."""
    names: dict[str, list[str]] = {}
    for record in records:
        names.setdefault(record.owner, []).extend(record.item.entities)
    found: list[Triple] = []
    for owner, wanted in names.items():
        ids = {record.item.id for record in records if record.owner == owner}
        found += [
            triple(owner, relation, "destination")
            for relation in of_owner(store, owner, ["user", *wanted])
            if relation.source in ids or {relation.head, relation.tail} & set(wanted)
        ]
    return found[:limit]
