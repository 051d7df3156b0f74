"""Values by namespace and key, kept as memories: what the LangGraph store does with reverie.

Each namespace is one user of reverie, "ns:" and its labels joined by dots (labels hold none), in a
world that is the store's own. So reads of one namespace cannot reach another, whatever its labels
are, and a namespace is erased by erasing its user.

A value is one pinned memory, with the value in its metadata; where several of its texts are to be
found, each further text is a memory after it. What stands for the key is their event, by which they
are looked up. A new value of a key supersedes the old one, which stays in the history.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary
from zlib import crc32

import msgspec

from reverie import door
from reverie.actors import commands as c
from reverie.actors.lane import MAX_BULK
from reverie.adapters import digest
from reverie.adapters.matching import fits
from reverie.memory_graph.drafts import MemoryDraft
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.graph import number
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.views import Item
from reverie.nearest import call_many, of_several
from reverie.runtime import Runtime
from reverie.user import User

Namespace: TypeAlias = tuple[str, ...]

PREFIX = "ns:"
PAGE = 500  # rows that are read at once
FEW = 50  # nearest rows that are read at once, at least
EMBEDDED = 256  # texts that are embedded at once
FIRST, MOST = 8, 256  # namespaces that are read at once: from, to
TRIES = 3  # of a write that meets rows which ended meanwhile
LOCKS = 64

# Names in metadata.
KEY, VALUE, CREATED, ORIGIN, TTL, PLAIN, FURTHER = (
    f"store_{name}" for name in ("key", "value", "created", "first", "ttl_s", "plain", "text")
)
_HEADS: dict[str, Any] = {f"metadata.{KEY}": {"exists": True}}
_PLAIN: dict[str, Any] = {**_HEADS, f"metadata.{PLAIN}": {"exists": True}}
_INDEXED: dict[str, Any] = {
    "OR": [
        {**_HEADS, f"metadata.{PLAIN}": {"exists": False}},
        {f"metadata.{FURTHER}": {"exists": True}},
    ]
}

_locks: WeakKeyDictionary[Runtime, list[threading.RLock]] = WeakKeyDictionary()
_locks_lock = threading.Lock()


class Put(NamedTuple):
    """A checked write. `value` None deletes; `texts` are found by meaning."""

    namespace: Namespace
    key: str
    value: dict[str, Any] | None
    texts: Sequence[str]
    ttl_s: float | None


class Head(NamedTuple):
    """A value that is there."""

    namespace: Namespace
    item: Item

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its fields."""
        return self.item.metadata or {}

    @property
    def origin(self) -> str:
        """The id of the first memory of this key since it was last deleted."""
        return str(self.metadata.get(ORIGIN, self.item.id))


def user_id_of(namespace: Namespace) -> str:
    """Return the user that keeps a namespace."""
    return PREFIX + ".".join(namespace)


class Rows:
    """The values of one world. Safe to share between threads; all writes of one runtime to one
    namespace go one after the other."""

    def __init__(self, runtime: Runtime, world: str) -> None:
        self.rt = runtime
        self.world = world
        with _locks_lock:
            self._locks = _locks.setdefault(runtime, [threading.RLock() for _ in range(LOCKS)])

    def user(self, namespace: Namespace) -> User:
        """Return the user that keeps a namespace; raises InvalidIdError."""
        return self.rt.user(user_id_of(namespace), self.world)

    def namespaces(self, prefix: Namespace = ()) -> list[Namespace]:
        """Return the namespaces that were ever written to and begin with whole labels, sorted."""
        names = (u.removeprefix(PREFIX) for u in self.rt.users(self.world) if u.startswith(PREFIX))
        split = (tuple(name.split(".")) for name in names)
        return sorted(one for one in split if all(one) and one[: len(prefix)] == prefix)

    # -- reading -----------------------------------------------------------------------

    def find(self, wanted: Sequence[tuple[Namespace, str]]) -> list[Head | None]:
        """Return the values of some keys, None where there is none."""
        live = self._live([(self.user(one), self._id(one, key)) for one, key in wanted])
        return [
            None if item is None else Head(namespace, item)
            for (namespace, _), (item, _) in zip(wanted, live, strict=True)
        ]

    def _live(self, wanted: Sequence[tuple[User, str]]) -> list[tuple[Item | None, list[str]]]:
        """Return, of keys by what stands for them, the memory with the value that is there, and
        the ids of it and its further texts."""
        knows = [c.Knows(**_read(user), event=event) for user, event in wanted]
        found: list[list[c.Knower]] = call_many(self.rt, knows)
        ids = [[knower.memory_id for knower in knowers] for knowers in found]
        gets = [
            c.Get(**_read(user), node_id=own[0])
            for (user, _), own in zip(wanted, ids, strict=True)
            if own
        ]
        items = iter(call_many(self.rt, gets))
        return [(next(items) if own else None, own) for own in ids]

    def listed(self, namespaces: Sequence[Namespace], *, plain: bool = False) -> Iterator[Head]:
        """Yield the values of namespaces, those of each in the order in which their keys came.

        Args:
            namespaces: are read as far as needed, some at once.
            plain: only what is not found by meaning.
        """
        for part in _growing(namespaces):
            for heads in self.heads(part, _PLAIN if plain else _HEADS):
                yield from sorted(heads.values(), key=lambda head: number(head.origin))

    def used(self, namespaces: Sequence[Namespace]) -> Iterator[Namespace]:
        """Yield those of some namespaces that hold a value."""
        for part in _growing(namespaces):
            commands = [_list(self.user(one), _HEADS, 1) for one in part]
            pages: list[c.Page] = call_many(self.rt, commands)
            yield from (one for one, page in zip(part, pages, strict=True) if page.items)

    def nearest(
        self,
        namespaces: Sequence[Namespace],
        question: str,
        where: Mapping[str, Any] | None,
        wanted: int,
    ) -> list[tuple[Head, float]]:
        """Return the values nearest to a question, with the cosine of the best text of each.

        Args:
            namespaces: where to look.
            question: any text.
            where: a checked filter over values.
            wanted: how many.
        """
        searches = [_Search(self, one, where, wanted) for one in namespaces]
        going, page, offset = searches, min(door.MAX_LIMIT, max(FEW, 2 * wanted)), 0
        while going and wanted:
            users = [self.user(search.namespace) for search in going]
            pages = of_several(users, question, limit=page, offset=offset, filters=_INDEXED)
            for search, near in zip(going, pages, strict=True):
                search.take(near)
            going = [
                search
                for search, near in zip(going, pages, strict=True)
                if len(near) == page and len(search.found) < wanted
            ]
            offset, page = offset + page, min(door.MAX_LIMIT, 4 * page)
        found = [pair for search in searches for pair in search.found]
        return sorted(found, key=lambda pair: -pair[1])[:wanted]

    def heads(
        self, namespaces: Sequence[Namespace], where: dict[str, Any] = _HEADS
    ) -> list[dict[str, Head]]:
        """Return the values of namespaces, by what stands for their keys."""
        found = self._items(namespaces, where)
        return [  # the newest of each key: one may be replaced between two pages
            {str(item.event): Head(one, item) for item in items}
            for one, items in zip(namespaces, found, strict=True)
        ]

    def _items(self, namespaces: Sequence[Namespace], where: dict[str, Any]) -> list[list[Item]]:
        users = [self.user(namespace) for namespace in namespaces]
        found: list[list[Item]] = [[] for _ in users]
        after: dict[int, str | None] = dict.fromkeys(range(len(users)))
        while after:
            commands = [_list(users[i], where, PAGE, at) for i, at in after.items()]
            pages: list[c.Page] = call_many(self.rt, commands)
            for i, page in zip(list(after), pages, strict=True):
                found[i] += page.items
                after[i] = page.cursor
            after = {i: cursor for i, cursor in after.items() if cursor is not None}
        return found

    def _id(self, namespace: Namespace, key: str, *, is_written: bool = False) -> str:
        """Return what stands for a key."""
        mask = self.user(namespace).masking
        return digest(mask.text(key) if is_written else mask.question(key))

    # -- writing -----------------------------------------------------------------------

    def write(self, puts: Sequence[Put]) -> None:
        """Carry out writes of different keys. Those of one namespace are one transaction, as long
        as they are no more than some hundred.

        Raises:
            InputError: one of them is malformed; nothing was stored.
        """
        users = [self.user(put.namespace) for put in puts]
        drafts = [self._drafts(user, put) for user, put in zip(users, puts, strict=True)]
        indexed = [own for own, put in zip(drafts, puts, strict=True) if put.texts]
        vectors = self._embed([draft.text for own in indexed for draft in own])
        for own in indexed:
            own[:] = [msgspec.structs.replace(draft, vector=next(vectors)) for draft in own]
        held = sorted({crc32(user.key.user_id.encode()) % LOCKS for user in users})
        for i in held:
            self._locks[i].acquire()
        try:
            self._replace(users, puts, drafts)
        finally:
            for i in held:
                self._locks[i].release()

    def _replace(
        self, users: Sequence[User], puts: Sequence[Put], drafts: Sequence[list[MemoryDraft]]
    ) -> None:
        for left in reversed(range(TRIES)):
            try:
                groups = self._commands(users, puts, drafts)
                part: list[c.UserCommand] = []
                for group in groups:  # a value and its further texts go together
                    if part and len(part) + len(group) > MAX_BULK:
                        call_many(self.rt, part)
                        part = []
                    part += group
                call_many(self.rt, part)
            except InvalidValueError:  # what was to be replaced has ended since it was read
                if not left:
                    raise
            else:
                return

    def _commands(
        self, users: Sequence[User], puts: Sequence[Put], drafts: Sequence[list[MemoryDraft]]
    ) -> list[list[c.UserCommand]]:
        events = [self._id(put.namespace, put.key, is_written=True) for put in puts]
        known = self._live(list(zip(users, events, strict=True)))
        groups: list[list[c.UserCommand]] = []
        for user, put, own, event, (old, ids) in zip(
            users, puts, drafts, events, known, strict=True
        ):
            if put.value is None:
                groups.append([self._retire(user, memory_id) for memory_id in ids])
                continue
            marks: list[dict[str, Any]] = [{}, *({FURTHER: True} for _ in own[1:])]
            if old is not None:
                before = old.metadata or {}
                marks[0][CREATED] = before.get(CREATED, old.recorded_at)
                marks[0][ORIGIN] = before.get(ORIGIN, old.id)
            groups.append(
                [
                    self._remember(user, draft, event, mark, () if i else ids)
                    for i, (draft, mark) in enumerate(zip(own, marks, strict=True))
                ]
            )
        return groups

    def _remember(
        self,
        user: User,
        draft: MemoryDraft,
        event: str,
        mark: dict[str, Any],
        replaced: Sequence[str],
    ) -> c.Remember:
        shared = user._write(  # noqa: SLF001 (of our own package)
            self.rt.new_request_id(), with_vectors=draft.vector is not None
        )
        whole = msgspec.structs.replace(
            draft, event=event, metadata={**(draft.metadata or {}), **mark}
        )
        return c.Remember(**shared, draft=whole, supersedes=tuple(replaced), again=True)

    def _retire(self, user: User, memory_id: str) -> c.Retire:
        return c.Retire(
            **user._write(self.rt.new_request_id()),  # noqa: SLF001 (of our own package)
            memory_id=memory_id,
            status="expired",
            reason="deleted",
        )

    def _drafts(self, user: User, put: Put) -> list[MemoryDraft]:
        """Return the memories of a value, without vectors: the first holds it."""
        if put.value is None:
            return []
        texts = put.texts or [user_id_of(put.namespace)]
        most = self.rt.config.max_text_bytes
        plain = [
            door.memory(MemoryDraft(text, importance=0.7, ttl_s=put.ttl_s, pinned=True), most)
            for text in texts
        ]
        fields: dict[str, Any] = {KEY: put.key, VALUE: put.value}
        if put.ttl_s is not None:
            fields[TTL] = put.ttl_s
        if not put.texts:
            fields[PLAIN] = True
        # The store's own bound on values is wider than that on metadata.
        plain[0] = msgspec.structs.replace(plain[0], metadata=fields)
        return [user.masking.memory(draft) for draft in plain]

    def _embed(self, texts: Sequence[str]) -> Iterator[bytes]:
        found: list[bytes] = []
        for start in range(0, len(texts), EMBEDDED):
            embedder = self.rt.mind.embedder(self.world)
            found += map(as_bytes, embedder.embed(texts[start : start + EMBEDDED], "passage"))
        return iter(found)

    def refresh(self, heads: Sequence[Head]) -> None:
        """Let values with a time to live, live on from now as long as they were to at first."""
        now = self.rt.now(self.world)
        mortal = [head for head in heads if TTL in head.metadata and now > head.item.recorded_at]
        lives_s = [now - head.item.recorded_at + head.metadata[TTL] for head in mortal]
        users = [self.user(head.namespace) for head in mortal]
        events = [str(head.item.event) for head in mortal]
        live = self._live(list(zip(users, events, strict=True)))
        commands = [
            c.Update(
                **user._write(self.rt.new_request_id()),  # noqa: SLF001 (of our own package)
                memory_id=memory_id,
                ttl_s=lives,
            )
            for user, lives, (_, ids) in zip(users, lives_s, live, strict=True)
            for memory_id in ids
        ]
        call_many(self.rt, commands)


class _Search:
    """What is nearest in one namespace, as it comes in."""

    def __init__(
        self, rows: Rows, namespace: Namespace, where: Mapping[str, Any] | None, wanted: int
    ) -> None:
        self.namespace = namespace
        self.found: list[tuple[Head, float]] = []
        self._rows, self._where, self._wanted = rows, where, wanted
        self._seen: set[str] = set()
        self._known: dict[str, Head] | None = None

    def take(self, near: Sequence[c.Near]) -> None:
        """Take a page of rows, best first, until there are enough."""
        for one in near:
            if len(self.found) >= self._wanted:
                return
            event = str(one.item.event)
            if event in self._seen:
                continue
            self._seen.add(event)
            holds = KEY in (one.item.metadata or {})
            head = Head(self.namespace, one.item) if holds else self._head(event)
            if head is not None and fits(head.metadata[VALUE], self._where):
                self.found.append((head, one.similarity))

    def _head(self, event: str) -> Head | None:
        """Return the value that a further text belongs to, None when its time is over."""
        if self._known is None:
            (self._known,) = self._rows.heads([self.namespace])
        return self._known.get(event)


def _read(user: User) -> dict[str, Any]:
    return user._read()  # noqa: SLF001 (of our own package)


def _list(user: User, where: dict[str, Any], limit: int, after: str | None = None) -> c.ListItems:
    return c.ListItems(**_read(user), limit=limit, after=after, filters=where, types=("memory",))


def _growing(namespaces: Sequence[Namespace]) -> Iterator[Sequence[Namespace]]:
    start, size = 0, FIRST
    while start < len(namespaces):
        yield namespaces[start : start + size]
        start, size = start + size, min(MOST, 4 * size)


__all__ = ["Head", "Namespace", "Put", "Rows", "user_id_of"]
