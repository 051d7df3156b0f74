"""What differs between two states of one user: what came, ended, changed, or is not there.

Ids are counters, so two branches of a history may give one id to different things. What is compared
is therefore one thing only if its id, its text and the time of its recording are the same: a text
is never edited in place, and its recording time never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from reverie.memory_graph import nodes as n
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.views import Item, RelationView, as_item

T = TypeVar("T")
Presence: TypeAlias = Literal["there", "came", "gone"]
MAX_SHOWN = 1000  # of each kind of difference of one user, by default

# Of a memory: what a reading does to it is no change of what it says.
_READINGS = ("hits", "last_access")
_MOVING = ("weight", "at")  # of a relation, likewise


class Change(msgspec.Struct, frozen=True):
    """A memory, summary or relation that is in both states: each field as it was and as it is, as
    plain values (lists, not tuples), in one process as between several."""

    id: str
    text: str
    fields: dict[str, tuple[Any, Any]]


class RelationshipChange(msgspec.Struct, frozen=True):
    """How the user stands to `other` in one dimension, as of the last move in each state; None
    where it never had moved."""

    other: str
    dimension: str
    before: float | None
    after: float | None


class OwnerChange(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What else is noted of a user, as it was and as it is; None is no difference. The fields are
    those of `nodes.User`."""

    created_at: tuple[float, float] | None = None
    group: tuple[str | None, str | None] | None = None
    groups: tuple[dict[str, bool], dict[str, bool]] | None = None
    members: tuple[dict[str, tuple[n.Stay, ...]], dict[str, tuple[n.Stay, ...]]] | None = None
    profile: tuple[Profile | None, Profile | None] | None = None
    model_spent_at: tuple[float | None, float | None] | None = None
    reflected: tuple[int, int] | None = None
    foci: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """Those that differ, by name."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: pair for name, pair in told.items() if pair is not None}


class UserDiff(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What differs of one user between two states, the first and the second.

    Attributes:
        user_id: whose.
        presence: "came" when it is only in the second, "gone" when it is only in the first.
        added: memories and summaries that only the second has.
        ended: those of both that were active in the first only.
        changed: others of both, some field of which differs; that they were read is none.
        missing: those that only the first has: the second is older, or another branch.
        relations_added: relations that only the second has.
        relations_ended: those of both that were believed in the first only.
        relations_changed: others of both that differ.
        relations_missing: those that only the first has.
        relationships: dimensions of relationships that moved.
        owner: other things that are noted of the user: its groups, its profile and so on.
        turns_added: how many messages only the second has.
        turns_missing: how many only the first has.
        read: how many memories of both were read in between.
        counts: how many there are of each of the lists above, by its name, where some are left out.
    """

    user_id: str
    presence: Presence = "there"
    added: tuple[Item, ...] = ()
    ended: tuple[Item, ...] = ()
    changed: tuple[Change, ...] = ()
    missing: tuple[Item, ...] = ()
    relations_added: tuple[RelationView, ...] = ()
    relations_ended: tuple[RelationView, ...] = ()
    relations_changed: tuple[Change, ...] = ()
    relations_missing: tuple[RelationView, ...] = ()
    relationships: tuple[RelationshipChange, ...] = ()
    owner: OwnerChange = OwnerChange()
    turns_added: int = 0
    turns_missing: int = 0
    read: int = 0
    counts: dict[str, int] = {}

    def count(self, name: str) -> int:
        """Return how many differences of a list there are, those left out among them."""
        return self.counts.get(name, len(getattr(self, name)))

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, but perhaps what was read."""
        return self == UserDiff(user_id=self.user_id, read=self.read)


def diff(
    user_id: str, before: UserMemory | None, after: UserMemory | None, *, limit: int = MAX_SHOWN
) -> UserDiff:
    """Return what differs between two states of a user, None being no user.

    Args:
        user_id: whose.
        before: the first state.
        after: the second state.
        limit: how many differences of each kind are told; all are counted.
    """
    presence: Presence = "came" if before is None else "gone" if after is None else "there"
    old, new = before or UserMemory(), after or UserMemory()
    found = {**_texts(old, new), **_relations(old, new), "relationships": _bonds(old, new)}
    turns_old, turns_new = _turns(old), _turns(new)
    was = {m.id: m.hits for m in old.graph.nodes(n.Memory) if isinstance(m, n.Memory)}
    read = sum(
        m.hits > was.get(m.id, m.hits) for m in new.graph.nodes(n.Memory) if isinstance(m, n.Memory)
    )
    return UserDiff(
        user_id=user_id,
        presence=presence,
        **{name: tuple(items[:limit]) for name, items in found.items()},
        owner=_owner_change(_owner(old), _owner(new)),
        turns_added=len(turns_new - turns_old),
        turns_missing=len(turns_old - turns_new),
        read=read,
        counts={name: len(items) for name, items in found.items() if len(items) > limit},
    )


def _texts(old: UserMemory, new: UserMemory) -> dict[str, list[Any]]:
    def those(memory: UserMemory) -> dict[tuple[Any, ...], n.Memory | n.Summary]:
        return {
            (node.id, node.text, node.recorded_at): node
            for node in memory.graph.nodes()
            if isinstance(node, n.Memory | n.Summary)
        }

    def is_active(node: n.Memory | n.Summary) -> bool:
        return node.retired_at is None and getattr(node, "status", "active") == "active"

    return _sorted_out(
        those(old),
        those(new),
        is_active,
        lambda _, node: as_item(new, node),
        lambda _, node: as_item(old, node),
        lambda key, fields: Change(key[0], key[1], fields),
        _READINGS,
        ("added", "ended", "changed", "missing"),
    )


def _relations(old: UserMemory, new: UserMemory) -> dict[str, list[Any]]:
    def those(memory: UserMemory) -> dict[tuple[Any, ...], n.Relation]:
        names = memory.display
        return {
            (edge.id, names(tail), edge.predicate, names(head), edge.recorded_at): edge
            for tail, head, edge in memory.graph.edges()
            if isinstance(edge, n.Relation)
        }

    def view(key: tuple[Any, ...], edge: n.Relation) -> RelationView:
        return RelationView(
            id=edge.id,
            head=key[1],
            predicate=edge.predicate,
            tail=key[3],
            weight=edge.weight,
            confidence=edge.confidence,
            recorded_at=edge.recorded_at,
            valid_from=edge.valid_from,
            valid_to=edge.valid_to,
            retired_at=edge.retired_at,
            source=edge.source,
        )

    return _sorted_out(
        those(old),
        those(new),
        lambda edge: edge.retired_at is None,
        view,
        view,
        lambda key, fields: Change(key[0], " ".join(key[1:4]), fields),
        _MOVING,
        ("relations_added", "relations_ended", "relations_changed", "relations_missing"),
    )


def _sorted_out(
    old: Mapping[tuple[Any, ...], T],
    new: Mapping[tuple[Any, ...], T],
    is_active: Callable[[T], bool],
    view_new: Callable[[tuple[Any, ...], T], Any],
    view_old: Callable[[tuple[Any, ...], T], Any],
    change: Callable[[tuple[Any, ...], dict[str, tuple[Any, Any]]], Change],
    passed_over: Iterable[str],
    names: tuple[str, str, str, str],
) -> dict[str, list[Any]]:
    added: list[Any] = []
    ended: list[Any] = []
    changed: list[Any] = []
    for key, node in new.items():
        if (was := old.get(key)) is None:
            added.append(view_new(key, node))
        elif is_active(was) and not is_active(node):
            ended.append(view_new(key, node))
        elif fields := _fields(was, node, passed_over):
            changed.append(change(key, _plain(fields)))
    missing = [view_old(key, node) for key, node in old.items() if key not in new]
    return dict(zip(names, (added, ended, changed, missing), strict=True))


def _fields(was: Any, node: Any, passed_over: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    return {
        name: (before, after)
        for name in type(node).__struct_fields__
        if name not in passed_over
        and (before := getattr(was, name)) != (after := getattr(node, name))
    }


def _plain(fields: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return fields as they are after a way between processes, which knows no types of values."""
    sent = msgspec.msgpack.encode(fields)
    return msgspec.msgpack.decode(sent, type=dict[str, tuple[Any, Any]])


def _bonds(old: UserMemory, new: UserMemory) -> list[RelationshipChange]:
    def those(memory: UserMemory) -> dict[tuple[str, str], tuple[float, float]]:
        return {
            (memory.display(other), name): (standing.value, standing.at)
            for other, bond in memory.bonds.items()
            for name, standing in bond.dimensions.items()
        }

    before, after = those(old), those(new)
    return [
        RelationshipChange(*key, before.get(key, (None,))[0], after.get(key, (None,))[0])
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _owner(memory: UserMemory) -> n.User:
    owner: n.User = memory.graph.get(n.USER_NODE, n.User)
    return owner


def _owner_change(was: n.User, is_now: n.User) -> OwnerChange:
    """Return what differs, with nothing in it that the graph goes on to change."""
    sent = msgspec.msgpack.encode(OwnerChange(**_fields(was, is_now, ())))
    return msgspec.msgpack.decode(sent, type=OwnerChange)


def _turns(memory: UserMemory) -> set[tuple[str, str, float]]:
    return {
        (turn.id, turn.text, turn.recorded_at)
        for turn in memory.graph.nodes(n.Message)
        if isinstance(turn, n.Message)
    }
