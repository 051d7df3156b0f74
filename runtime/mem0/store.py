"""What the facade does with reverie: memories by scope and by mem0's id, through the public API."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from reverie import door
from reverie.actors import commands as c
from reverie.mem0 import ids
from reverie.mem0.filters import Predicate
from reverie.mem0.payload import CREATED, ID, MARK, USER, Payload, encode, payload_of
from reverie.mem0.scope import ANY, Scope
from reverie.memory_graph.drafts import Kept, MemoryDraft
from reverie.memory_graph.errors import UnknownMemoryError
from reverie.memory_graph.state import as_bytes
from reverie.memory_graph.views import Item
from reverie.nearest import call_many, of_several
from reverie.runtime import Runtime
from reverie.user import User

PAGE = 500  # items that are read at once
FEW = 50  # at least, of a search
MOST = door.MAX_LIMIT
EMBEDDED = 256  # texts that are embedded at once
LOCKS = 64
IMPORTANCE = 0.7  # as of User.remember
_UNMARKED = {f"metadata.{MARK}": {"exists": False}}  # not written by the facade


class Record(NamedTuple):
    """A memory: who owns it, its version that holds now, its id in mem0, and its payload."""

    owner: str
    item: Item
    id: str
    payload: Payload


class Entry(NamedTuple):
    """A memory to keep. `replaces` is the version before it."""

    owner: str
    text: str
    metadata: dict[str, Any]
    replaces: str | None = None
    request_id: str | None = None
    valid_from: float | None = None


class Store:
    """The memories of one world of a runtime, as mem0 sees them. Safe to share between threads."""

    def __init__(self, runtime: Runtime, world: str) -> None:
        self.rt = runtime
        self.world = world
        self._owners: dict[int, str] = {}
        self._foreign: dict[str, tuple[str, str]] | None = None  # imported id -> owner, memory
        self._lock = threading.Lock()
        self._locks = [threading.RLock() for _ in range(LOCKS)]

    def user(self, owner: str) -> User:
        """Return a user of reverie."""
        return self.rt.user(owner, self.world)

    def lock_of(self, public_id: object) -> threading.RLock:
        """Return the lock that changes of this memory hold, from reading it to writing it."""
        return self._locks[crc32(str(public_id).encode("utf-8", "replace")) % LOCKS]

    # -- writing -----------------------------------------------------------------------

    def keep(self, entries: Sequence[Entry]) -> list[Record]:
        """Store memories verbatim, each as a new one even if its text is known; all that lie in one
        partition are one transaction.

        Raises:
            InputError: one of them is malformed; nothing was stored.
        """
        users = [self.user(entry.owner) for entry in entries]
        drafts = [self._draft(u, e) for u, e in zip(users, entries, strict=True)]
        embedder = self.rt.mind.embedder(self.world)
        written: list[c.Remember] = []
        for start in range(0, len(drafts), EMBEDDED):
            part = drafts[start : start + EMBEDDED]
            vectors = embedder.embed([draft.text for draft in part], "passage")
            for i, (draft, vector) in enumerate(zip(part, vectors, strict=True), start):
                entry = entries[i]
                shared = users[i]._write(  # noqa: SLF001 (of our own package)
                    entry.request_id or self.rt.new_request_id(), with_vectors=True
                )
                written.append(
                    c.Remember(
                        **shared,
                        draft=msgspec.structs.replace(draft, vector=as_bytes(vector)),
                        supersedes=() if entry.replaces is None else (entry.replaces,),
                        again=True,
                    )
                )
        answers: list[Kept] = call_many(self.rt, written)
        return [self._kept(command, kept) for command, kept in zip(written, answers, strict=True)]

    def check(self, entry: Entry) -> None:
        """Raise InputError for what `keep` would refuse."""
        self._draft(self.user(entry.owner), entry)

    def _draft(self, user: User, entry: Entry) -> MemoryDraft:
        draft = MemoryDraft(
            entry.text,
            importance=IMPORTANCE,
            metadata=entry.metadata,
            valid_from=entry.valid_from,
        )
        return user.masking.memory(door.memory(draft, self.rt.config.max_text_bytes))

    def _kept(self, command: c.Remember, kept: Kept) -> Record:
        draft = command.draft
        item = Item(
            id=kept.memory_id,
            type="memory",
            text=draft.text,
            at=command.at,
            recorded_at=command.at,
            metadata=draft.metadata,
        )
        return self._record(command.user_id, item, None)

    def revise(self, record: Record, text: str, payload: Mapping[str, Any]) -> Record:
        """Store a new version of a memory, which keeps its id; the old one stays in its history."""
        marks = {ID: record.id, CREATED: record.payload["created_at"]}
        entry = Entry(record.owner, text, encode(payload, marks), record.item.id)
        return self.keep([entry])[0]

    def mark(self, owner: str, memory_id: str, metadata: dict[str, Any]) -> None:
        """Give a memory that extraction has made the metadata of the call that it came from."""
        self.user(owner).update(memory_id, metadata=metadata)

    def retire(self, records: Sequence[Record]) -> None:
        """End memories; their history stays."""
        commands: list[c.UserCommand] = [
            c.Retire(
                **self.user(record.owner)._write(self.rt.new_request_id()),  # noqa: SLF001
                memory_id=record.item.id,
                status="expired",
                reason="deleted",
            )
            for record in records
        ]
        call_many(self.rt, commands)

    def reset(self) -> None:
        """Erase every user of the world."""
        for owner in self.rt.users(self.world):
            self.user(owner).forget()
        with self._lock:
            self._owners.clear()
            self._foreign = None

    # -- by id -------------------------------------------------------------------------

    def find(self, public_id: object) -> Record | None:
        """Return the memory of an id as it is now, None when there is none or it was deleted."""
        found = self.versions(public_id)
        if found is None:
            return None
        owner, items = found
        live = [item for item in items if item.status == "active"]
        return self.record(owner, live[-1]) if live else None

    def versions(self, public_id: object) -> tuple[str, Sequence[Item]] | None:
        """Return the owner and all versions of a memory, oldest first, also of a deleted one."""
        there = self._place(public_id)
        if there is None:
            return None
        owner, memory_id, check = there
        try:
            items = self.user(owner).history(memory_id)
        except UnknownMemoryError:
            return None
        first = next(item for item in items if item.id == memory_id)
        if check is not None and ids.check_of(first) != check:
            return None
        return owner, items

    def _place(self, public_id: object) -> tuple[str, str, int | None] | None:
        if (parts := ids.derived(public_id)) is not None:
            owner = self._owner(parts.owner)
            if owner is not None:
                return owner, f"m{parts.number}", parts.check
        known = self._imported().get(str(public_id))
        return None if known is None else (*known, None)

    def _owner(self, hashed: int) -> str | None:
        with self._lock:
            if hashed not in self._owners:
                owners = self.rt.users(self.world)
                self._owners = {ids.owner_hash(self.world, owner): owner for owner in owners}
            return self._owners.get(hashed)

    def _imported(self) -> dict[str, tuple[str, str]]:
        """Return where the memories are whose ids were not made here; looked for once."""
        with self._lock:
            if self._foreign is None:
                found: dict[str, tuple[str, str]] = {}
                for owner in self.rt.users(self.world):
                    where = {f"metadata.{ID}": {"exists": True}}
                    for item in self._items(owner, where, ended=True):
                        found.setdefault(str((item.metadata or {})[ID]), (owner, item.id))
                self._foreign = found
            return self._foreign

    def note_imported(self, records: Sequence[Record]) -> None:
        """Let imported ids be found that were stored after the first look for them."""
        known = self._imported()
        with self._lock:
            for record in records:
                known.setdefault(record.id, (record.owner, record.item.id))

    def record(self, owner: str, item: Item) -> Record:
        """Return a memory with its payload; one that the facade did not write takes over what is
        known of the turn that it came from."""
        inherited = None
        if MARK not in (item.metadata or {}) and item.sources:
            try:
                inherited = self.user(owner).get(item.sources[0]).metadata
            except UnknownMemoryError:
                inherited = None
        return self._record(owner, item, inherited)

    def _record(self, owner: str, item: Item, inherited: Mapping[str, Any] | None) -> Record:
        known = (item.metadata or {}).get(ID)
        public_id = ids.derive(self.world, owner, item) if known is None else str(known)
        return Record(owner, item, public_id, payload_of(owner, item, inherited))

    # -- by scope ----------------------------------------------------------------------

    def owners(self, scope: Scope) -> list[str]:
        """Return the users of reverie that may hold what a scope finds."""
        single = scope.single_owner
        return self.rt.users(self.world) if single is None else [single]

    def listed(self, scope: Scope, fits: Predicate, limit: int | None = None) -> list[Record]:
        """Return the memories of a scope that fit, in the order in which they were stored."""
        streams = [self._stream(owner, scope, fits, limit) for owner in self.owners(scope)]
        merged = heapq.merge(*streams, key=lambda record: record.item.recorded_at)
        return list(islice(merged, limit))

    def _stream(
        self, owner: str, scope: Scope, fits: Predicate, limit: int | None
    ) -> Iterator[Record]:
        page = PAGE if limit is None else min(PAGE, max(1, limit))
        ids = self._ids(owner, scope)
        for item in self._items(owner, _where(scope), page=page):
            record = self.record(owner, item)
            if _is_in(ids, record.payload) and fits(record.payload):
                yield record

    def _items(
        self, owner: str, where: dict[str, Any], *, page: int = PAGE, ended: bool = False
    ) -> Iterator[Item]:
        user, cursor = self.user(owner), None
        while True:
            found = user.list(
                limit=page,
                cursor=cursor,
                filters=where,
                include_archived=ended,
                include_retired=ended,
            )
            yield from found.items
            if (cursor := found.cursor) is None:
                return

    def nearest(
        self, scope: Scope, fits: Predicate, question: str, limit: int
    ) -> list[tuple[Record, float]]:
        """Return the memories of a scope that fit, nearest to a question first, with cosines."""
        if limit < 1:
            return []
        owners = self.owners(scope)
        found: list[tuple[Record, float]] = []
        page, offset = min(MOST, max(FEW, 2 * limit)), 0
        while owners:
            users = [self.user(owner) for owner in owners]
            pages = of_several(users, question, limit=page, offset=offset, filters=_where(scope))
            unfinished: list[str] = []
            for owner, near in zip(owners, pages, strict=True):
                fitting, ids_of = 0, self._ids(owner, scope)
                for one in near:
                    record = self.record(owner, one.item)
                    if _is_in(ids_of, record.payload) and fits(record.payload):
                        found.append((record, one.similarity))
                        fitting += 1
                        if fitting >= limit:
                            break
                if len(near) == page and fitting < limit:
                    unfinished.append(owner)
            owners, offset, page = unfinished, offset + page, min(MOST, 4 * page)
        found.sort(key=lambda pair: -pair[1])
        return found[:limit]

    def _ids(self, owner: str, scope: Scope) -> dict[str, tuple[str, Any]]:
        """Return the ids of a scope, each as it was given and as a masked folder has stored it."""
        masked = self.user(owner).masking.value(dict(scope.ids()))
        return {name: (value, masked[name]) for name, value in scope.ids().items() if value != ANY}


def _where(scope: Scope) -> dict[str, Any]:
    """Return the filter of reverie that lets through all that a scope may find, and little else."""
    marked: dict[str, Any] = {
        f"metadata.{name}": {"eq": value}
        for name, value in scope.ids().items()
        if name != "user_id" and value != ANY
    }
    if scope.user_id is not None:
        marked[f"metadata.{USER}"] = {"eq": True}
    return {"OR": [marked, _UNMARKED]} if marked else {"type": "memory"}


def _is_in(ids: Mapping[str, tuple[str, Any]], payload: Mapping[str, Any]) -> bool:
    return all(payload.get(name) in known for name, known in ids.items())
