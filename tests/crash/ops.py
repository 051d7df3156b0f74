"""The writes of the crash suite: how each is sent, and what must be seen once it is done.

What a data folder should hold is a `Model`: a value for every place. A place is a text, a name, a
triple or a checkpoint; each operation makes places of its own, so that afterwards each operation
can be judged alone: none of its places have changed, or all of them, and each exists once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import msgspec

import reverie
from reverie.memory_graph.drafts import MemoryDraft
from reverie.models.protocol import Extraction, Turn

Place: TypeAlias = tuple[str, str, str, str]  # world, user, kind, name
Value: TypeAlias = str
Changes: TypeAlias = dict[Place, Value | None]  # None: the place is empty
Seen: TypeAlias = dict[Place, list[tuple[Value, str]]]  # (value, node id); over one is too many

MESSAGE, MEMORY, ENTITY, RELATION, TAG = "message", "memory", "entity", "relation", "tag"
NOTED = "noted: "
HOLDS, ENDED = "holds", "ended"
LIVES_IN = "lives_in"


class NoteTaker:
    """An `Extractor` that makes exactly one memory of each turn, as if it had been asked to: so
    its importance does not depend on what is known already, which differs between two runs."""

    def extract(self, turns: list[Turn], history: list[Turn]) -> list[Extraction]:
        return [
            Extraction(t.id, (MemoryDraft(NOTED + t.text, importance=1.0, sources=(t.id,)),))
            for t in turns
        ]


class Model:
    """What a data folder should hold.

    `ids` are the node ids that answers named. `saved` keeps both under (world, tag).
    """

    def __init__(self) -> None:
        self.values: dict[Place, Value] = {}
        self.ids: dict[Place, str] = {}
        self.saved: dict[tuple[str, str], tuple[dict[Place, Value], dict[Place, str]]] = {}

    def of_world(self, world: str) -> tuple[dict[Place, Value], dict[Place, str]]:
        """Return the values and ids of a world, without its checkpoints."""
        values = {p: v for p, v in self.values.items() if p[0] == world and p[2] != TAG}
        return values, {p: i for p, i in self.ids.items() if p in values}

    def apply(self, op: Op, answer: str) -> None:
        """Make the changes of an operation that was answered."""
        for place, value in op.changes(self).items():
            if value is None:
                del self.values[place]
                self.ids.pop(place, None)
            else:
                self.values[place] = value
        op.remember_in(self)
        self.ids |= op.ids(msgspec.json.decode(answer))


class Op(msgspec.Struct, frozen=True, kw_only=True, tag_field="op"):
    """A request. `id` is its request id, `thread` the one that sends it."""

    id: str
    thread: int
    world: str
    user: str

    def send(self, runtime: reverie.Runtime) -> str:
        """Carry it out and return the answer as JSON."""
        answer = self._call(runtime, runtime.user(self.user, self.world))
        return msgspec.json.encode(answer).decode()

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        raise NotImplementedError

    def changes(self, model: Model) -> Changes:
        """Return the value afterwards of every place that it changes."""
        raise NotImplementedError

    def remember_in(self, model: Model) -> None:
        """Keep what later operations need of this one."""

    def ids(self, answer: Any) -> dict[Place, str]:
        """Return the node ids that a decoded answer names."""
        return {}

    def amiss(self, runtime: reverie.Runtime, answer: Any) -> str:
        """Return what is wrong that no single place shows; "" for nothing."""
        return ""

    def at(self, kind: str, name: str) -> Place:
        return (self.world, self.user, kind, name)

    def kept(self, status: str, importance: float) -> Value:
        """Return the value of a memory that this operation makes."""
        return f"{status} {importance:.3f} {self.id} {self.thread}"

    @property
    def metadata(self) -> dict[str, Any]:
        return {"request": self.id, "thread": self.thread}


class Add(Op, frozen=True, kw_only=True, tag="add"):
    """Turns of a session; with `infer`, each must become one memory, sooner or later."""

    texts: tuple[str, ...]
    session: str
    infer: bool

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.add(self.texts, session=self.session, infer=self.infer, request_id=self.id).ids

    def changes(self, model: Model) -> Changes:
        status = "extracted" if self.infer else "skipped"
        found: Changes = {self.at(MESSAGE, t): f"{status} {self.session}" for t in self.texts}
        if self.infer:
            found |= {self.at(MEMORY, NOTED + t): "active 1.000 - -" for t in self.texts}
        return found

    def ids(self, answer: list[str]) -> dict[Place, str]:
        return {self.at(MESSAGE, t): i for t, i in zip(self.texts, answer, strict=True)}


class Remember(Op, frozen=True, kw_only=True, tag="remember"):
    """A statement about somebody new."""

    text: str
    name: str

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.remember(
            self.text,
            entities=[(self.name, "person")],
            metadata=self.metadata,
            request_id=self.id,
        )

    def changes(self, model: Model) -> Changes:
        return {
            self.at(MEMORY, self.text): self.kept("active", 0.7),
            self.at(ENTITY, self.name): "person",
        }

    def ids(self, answer: dict[str, str]) -> dict[Place, str]:
        return {self.at(MEMORY, self.text): answer["memory_id"]}


class Observe(Op, frozen=True, kw_only=True, tag="observe"):
    """An event with a person, in a place; its time is that of the call."""

    text: str
    person: str
    place: str

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.observe(
            self.text,
            participants=[self.person],
            place=self.place,
            metadata=self.metadata,
            request_id=self.id,
        )

    def changes(self, model: Model) -> Changes:
        return {
            self.at(MEMORY, self.text): self.kept("active", 0.5),
            self.at(ENTITY, self.person): "person",
            self.at(ENTITY, self.place): "place",
        }

    def ids(self, answer: dict[str, str]) -> dict[Place, str]:
        return {self.at(MEMORY, self.text): answer["memory_id"]}


class OnMemory(Op, frozen=True, kw_only=True):
    """A change of a memory: its id, and the text that it has."""

    memory_id: str
    old: str

    def ids(self, answer: Any) -> dict[Place, str]:
        return {self.at(MEMORY, self.old): self.memory_id}

    def changed(self, model: Model, status: str) -> Value:
        """Return the old value with another status."""
        _, _, rest = model.values[self.at(MEMORY, self.old)].partition(" ")
        return f"{status} {rest}"


class Update(OnMemory, frozen=True, kw_only=True, tag="update"):
    """Another text: a new memory that supersedes the old one and keeps its attributes."""

    text: str

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.update(self.memory_id, self.text, request_id=self.id)

    def changes(self, model: Model) -> Changes:
        return {
            self.at(MEMORY, self.old): self.changed(model, "superseded"),
            self.at(MEMORY, self.text): self.changed(model, "active"),
        }

    def ids(self, answer: dict[str, str]) -> dict[Place, str]:
        return {**super().ids(answer), self.at(MEMORY, self.text): answer["id"]}

    def amiss(self, runtime: reverie.Runtime, answer: dict[str, str]) -> str:
        texts = [m.text for m in runtime.user(self.user, self.world).history(answer["id"])]
        both_ends = list(itertools.pairwise(texts))
        return "" if (self.old, self.text) in both_ends else f"not in one history: {texts}"


class Edit(OnMemory, frozen=True, kw_only=True, tag="edit"):
    """Another importance, in place."""

    importance: float

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.update(self.memory_id, importance=self.importance, request_id=self.id)

    def changes(self, model: Model) -> Changes:
        status, _, *rest = model.values[self.at(MEMORY, self.old)].split(" ")
        value = " ".join([status, f"{self.importance:.3f}", *rest])
        return {self.at(MEMORY, self.old): value}


class Delete(OnMemory, frozen=True, kw_only=True, tag="delete"):
    """The end of a memory."""

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.delete(self.memory_id, reason=self.id, request_id=self.id)

    def changes(self, model: Model) -> Changes:
        return {self.at(MEMORY, self.old): self.changed(model, f"expired:{self.id}")}


class Restore(OnMemory, frozen=True, kw_only=True, tag="restore"):
    """The return of a memory that was deleted."""

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.restore(self.memory_id, request_id=self.id)

    def changes(self, model: Model) -> Changes:
        return {self.at(MEMORY, self.old): self.changed(model, "active")}


class Relate(Op, frozen=True, kw_only=True, tag="relate"):
    """A triple; with `old`, the tail that a functional predicate had until now."""

    head: str
    predicate: str
    tail: str
    old: str | None = None

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.relate(
            self.head,
            self.predicate,
            self.tail,
            head_type="person",
            tail_type="place",
            functional=self.predicate == LIVES_IN,
            request_id=self.id,
        )

    def changes(self, model: Model) -> Changes:
        found: Changes = {self._triple(self.tail): HOLDS, self.at(ENTITY, self.tail): "place"}
        if self.old is None:
            found[self.at(ENTITY, self.head)] = "person"
        else:
            found[self._triple(self.old)] = ENDED
        return found

    def ids(self, answer: str) -> dict[Place, str]:
        return {self._triple(self.tail): answer}

    def _triple(self, tail: str) -> Place:
        return self.at(RELATION, f"{self.head} {self.predicate} {tail}")


class Pin(Op, frozen=True, kw_only=True, tag="pin"):
    """A checkpoint of the world. Nobody else may write to it meanwhile."""

    label: str

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return runtime.checkpoint(self.label, self.world)

    def changes(self, model: Model) -> Changes:
        return {(self.world, "", TAG, self.label): HOLDS}

    def remember_in(self, model: Model) -> None:
        model.saved[self.world, self.label] = model.of_world(self.world)


class Rewind(Op, frozen=True, kw_only=True, tag="rewind"):
    """The return of the world to a checkpoint. Nobody else may write to it meanwhile."""

    label: str

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return runtime.rewind(self.label, self.world)

    def changes(self, model: Model) -> Changes:
        now, _ = model.of_world(self.world)
        then, _ = model.saved[self.world, self.label]
        return {
            place: then.get(place)
            for place in now.keys() | then.keys()
            if now.get(place) != then.get(place)
        }

    def remember_in(self, model: Model) -> None:
        _, ids = model.saved[self.world, self.label]
        model.ids = {p: i for p, i in model.ids.items() if p[0] != self.world} | ids


class Fork(Op, frozen=True, kw_only=True, tag="fork"):
    """A new world that is made of a checkpoint."""

    label: str
    new_world: str

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return runtime.fork(self.label, self.new_world, world=self.world)

    def changes(self, model: Model) -> Changes:
        then, _ = model.saved[self.world, self.label]
        return {self._there(place): value for place, value in then.items()}

    def remember_in(self, model: Model) -> None:
        _, ids = model.saved[self.world, self.label]
        model.ids |= {self._there(place): node_id for place, node_id in ids.items()}

    def _there(self, place: Place) -> Place:
        _, *rest = place
        return (self.new_world, *rest)  # type: ignore[return-value]  # three are left


class Forget(Op, frozen=True, kw_only=True, tag="forget"):
    """The erasure of the user, also from checkpoints. Nobody else may write to it meanwhile."""

    def _call(self, runtime: reverie.Runtime, user: reverie.User) -> Any:
        return user.forget()

    def changes(self, model: Model) -> Changes:
        return {place: None for place in model.values if self._is_mine(place)}

    def remember_in(self, model: Model) -> None:
        for slot, (values, ids) in model.saved.items():
            model.saved[slot] = (
                {p: v for p, v in values.items() if not self._is_mine(p)},
                {p: i for p, i in ids.items() if not self._is_mine(p)},
            )

    def _is_mine(self, place: Place) -> bool:
        return place[:2] == (self.world, self.user)


AnyOp: TypeAlias = (
    Add
    | Remember
    | Observe
    | Update
    | Edit
    | Delete
    | Restore
    | Relate
    | Pin
    | Rewind
    | Fork
    | Forget
)
SAVE_SLOTS = (Pin, Rewind, Fork, Forget)  # have no request id


def observed(runtime: reverie.Runtime, worlds: tuple[str, ...]) -> Seen:
    """Return everything that is found in each place."""
    found: Seen = {}

    def see(place: Place, value: Value, node_id: str) -> None:
        found.setdefault(place, []).append((value, node_id))

    for world in worlds:
        for slot in runtime.checkpoints(world):
            see((world, "", TAG, slot.tag), HOLDS, "")
        for user_id in runtime.users(world):
            user = runtime.user(user_id, world)
            for item in _items(user):
                kind, value = item.type, f"{item.status} {item.session}"
                if kind == MEMORY:
                    of = cast("Mapping[str, Any]", item.metadata or {"request": "-", "thread": "-"})
                    rest = f"{of['request']} {of['thread']}"
                    status = (
                        "expired:" + item.retired_why if item.status == "expired" else item.status
                    )
                    value = f"{status} {item.importance:.3f} {rest}"
                see((world, user_id, kind, item.text), value, item.id)
            for entity in user.entities(limit=10_000):
                see((world, user_id, ENTITY, entity.name), entity.type, entity.id)
                if not entity.name.startswith("Head"):
                    continue
                for triple in user.neighbors(entity.name, include_retired=True).relations:
                    name = f"{triple.head} {triple.predicate} {triple.tail}"
                    value = HOLDS if triple.retired_at is None else ENDED
                    see((world, user_id, RELATION, name), value, triple.id)
    return found


def _items(user: reverie.User) -> list[reverie.Item]:
    items: list[reverie.Item] = []
    cursor: str | None = None
    while True:
        page = user.list(
            limit=10_000, cursor=cursor, types=None, include_retired=True, include_archived=True
        )
        items += page.items
        cursor = page.cursor
        if cursor is None:
            return items
