"""One write to many users: noted in the catalog first, so that it reaches each of them, once.

Users lie in many partitions, which commit one by one. What goes to several of them is noted as an
intent before the first is written to and struck out after the last; what a crash leaves is sent
again at the next opening. That is safe since a delivery that is there changes nothing (hearsay.py)
and a membership that holds is not begun again. What goes to one partition is one transaction by
itself and needs no note.

The note of a small batch is struck out together with the next one being made, or when somebody
needs the catalog without it: so a batch costs one commit of the catalog and one of each partition.

Save slots and deliveries exclude each other: `alone` waits for all that are under way.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import msgspec
import structlog

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.lane import raise_error
from reverie.memory_graph.errors import (
    ClosedError,
    JournalDamagedError,
    OverloadedError,
    ReverieError,
    StorageError,
    UnavailableError,
)
from reverie.memory_graph.ids import Key, partition_of
from reverie.memory_graph.store import Catalog, Intent

DELIVERY = "deliver"
FEW = 1000  # deliveries whose note may wait to be struck out: quickly looked at after a crash
RETRIES = 100  # of what is refused because a shard has too much to do
RETRY_S = 0.05

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Parcel(msgspec.Struct, frozen=True, omit_defaults=True):
    """One write for several users; the `user_id` of `command` is empty."""

    command: c.Witness | c.Membership
    owners: tuple[str, ...]

    def opened(self) -> list[c.Witness | c.Membership]:
        """Return the command for each of them."""
        return [msgspec.structs.replace(self.command, user_id=owner) for owner in self.owners]


class Gate:
    """A lock that many share or one has alone; who waits to be alone comes first. Reentrant for
    who is alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharing = 0
        self._waiting = 0
        self._owner: int | None = None
        self._depth = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Keep out who wants to be alone."""
        me = threading.get_ident()
        if self._owner == me:
            yield
            return
        with self._changed:
            while self._owner is not None or self._waiting:
                self._changed.wait()
            self._sharing += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep everybody else out; wait until nobody is in. Not from within `shared`."""
        me = threading.get_ident()
        if self._owner == me:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        with self._changed:
            self._waiting += 1
            try:
                while self._owner is not None or self._sharing:
                    self._changed.wait()
                self._owner = me
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._owner = None
                self._changed.notify_all()

    @contextmanager
    def alone_first(self, first: Callable[[], T]) -> Iterator[T]:
        """Call `first` alone, and then share for the block, which is given what it returned;
        nobody else is alone in between. Not from within `shared`."""
        with self.alone():
            got = first()
            with self._changed:
                self._sharing += 1
        try:
            yield got
        finally:
            with self._changed:
                self._sharing -= 1
                self._changed.notify_all()


class FanOut:
    """Carries writes to many users; see the module's text. Safe to share between threads."""

    def __init__(self, catalog: Catalog, router: Router, lock: threading.RLock) -> None:
        self._catalog = catalog
        self._lock = lock  # guards the catalog
        self.router = router
        self.gate = Gate()
        self._under_way: set[str] = set()
        self._done: list[str] = []  # carried out, and to be struck out
        self._errors: dict[str, ReverieError] = {}  # of unfinished ones, by operation
        self._naming = threading.Lock()
        self._named: dict[tuple[str, str], list[int]] = {}  # (who uses it, next number)

    # -- asking ------------------------------------------------------------------------

    def ask(self, commands: Sequence[c.UserCommand]) -> list[Any]:
        """Return the answers to commands of several users, or raise the first error.

        They are sent user by user, so that what is asked of one comes in one batch: there a shard
        does what several searches share only once.
        """
        order = sorted(range(len(commands)), key=lambda i: commands[i].key)
        answers: list[Any] = [None] * len(commands)
        sent = self.router.call_many([commands[i] for i in order])
        for i, answer in zip(order, sent, strict=True):
            answers[i] = answer
        for answer in answers:
            raise_error(answer)
        return answers

    @contextmanager
    def naming(self, events: Sequence[tuple[str, str]]) -> Iterator[None]:
        """While events of these (world, id) are being numbered and delivered: of two threads that
        tell of the same, the second counts the first's. See `number`."""
        with self._naming:
            for event in events:
                self._named.setdefault(event, [0, 0])[0] += 1
        try:
            yield
        finally:
            with self._naming:
                for event in events:
                    self._named[event][0] -= 1
                    if not self._named[event][0]:
                        del self._named[event]

    def number(self, event: tuple[str, str], known: int) -> int:
        """Return the number of an event that has happened `known` times, and count it."""
        with self._naming:
            use = self._named[event]
            found = max(known, use[1])
            use[1] = found + 1
            return found

    # -- delivering --------------------------------------------------------------------

    def deliver(
        self, parcels: Sequence[Parcel], *, noted: bool = True, struck_out: bool = False
    ) -> list[list[Any]]:
        """Carry out all writes and return the answers, as the owners of each parcel stand.

        The caller has the gate.

        Args:
            parcels: all of one world.
            noted: all of them are carried out, or none, also over a crash.
            struck_out: the note is gone when this returns.

        Raises:
            ReverieError: of the first that failed; the others are carried out. After an error of
                the disk or of a shard, the rest is carried out before the next operation on save
                slots, or at the next opening, if it was `noted`.
        """
        places: list[tuple[int, c.Witness | c.Membership]] = []
        for parcel in parcels:
            places += [(self._partition(command), command) for command in parcel.opened()]
        operation, payload = None, b""
        if noted and len({number for number, _ in places}) > 1:
            operation = uuid.uuid4().hex
            payload = msgspec.msgpack.encode(tuple(parcels))
            self._under_way.add(operation)
        try:
            if operation is not None:
                self._note(operation, payload)
            answers = self._send(places)
        finally:
            self._under_way.discard(operation or "")
        errors = [a for a in answers if isinstance(a, ReverieError)]
        if operation is not None and not any(map(_may_pass, errors)):
            with self._lock:
                self._done.append(operation)
                if struck_out or len(places) > FEW:
                    self._strike_out_now()
        if errors:
            raise errors[0]
        flat = iter(answers)
        return [[next(flat) for _ in parcel.owners] for parcel in parcels]

    def _partition(self, command: c.UserCommand) -> int:
        return partition_of(command.key, self.router.partitions)

    def _send(self, places: Sequence[tuple[int, c.Witness | c.Membership]]) -> list[Any]:
        """Send commands sorted by partition, so that a batch of them needs few commits, and
        each user's in their order."""
        order = sorted(range(len(places)), key=lambda i: places[i][0])
        answers: list[Any] = [None] * len(places)
        for attempt in range(RETRIES):
            got = self.router.call_many([places[i][1] for i in order])
            for i, answer in zip(order, got, strict=True):
                answers[i] = answer
            order = [i for i in order if isinstance(answers[i], OverloadedError)]
            if not order:
                break
            if attempt < RETRIES - 1:
                time.sleep(RETRY_S)
        return answers

    # -- the notes ---------------------------------------------------------------------

    def _note(self, operation: str, payload: bytes) -> None:
        with self._lock:
            with self._catalog.write():
                self._strike_out()
                self._catalog.begin_intent(operation, DELIVERY, payload)
            self._done.clear()

    def _strike_out(self) -> None:
        """Remove the notes of what is done; the lock is held."""
        for operation in self._done:
            self._catalog.finish_intent(operation)

    def _strike_out_now(self) -> None:
        if self._done:
            with self._catalog.write():
                self._strike_out()
            self._done.clear()

    def _open_intents(self) -> list[Intent]:
        done = set(self._done)
        return [
            intent
            for intent in self._catalog.unfinished()
            if intent.kind == DELIVERY and intent.operation not in done
        ]

    def resume(self) -> None:
        """Finish what a crash or an error interrupted; what cannot be finished stays noted. To be
        called alone, or before anybody delivers."""
        with self._lock:
            self._strike_out_now()
            for intent in self._open_intents():
                log.warning("finishing an interrupted delivery")
                places = [
                    (self._partition(command), command)
                    for parcel in _parcels(intent)
                    for command in parcel.opened()
                ]
                errors = [a for a in self._send(places) if isinstance(a, ReverieError)]
                waiting = [error for error in errors if _may_pass(error)]
                if waiting:
                    log.error("a delivery cannot be finished", error=str(waiting[0]))
                    self._errors[intent.operation] = waiting[0]
                    continue
                self._errors.pop(intent.operation, None)
                self._catalog.finish_intent(intent.operation)

    def require_settled(self, *worlds: str) -> None:
        """Refuse, after `resume`, what may come only after all deliveries.

        Raises:
            ReverieError: of a delivery in one of the worlds that cannot be finished.
        """
        with self._lock:
            for intent in self._open_intents():
                if _world(intent) in worlds:
                    raise self._errors[intent.operation]

    def strike(self, key: Key) -> None:
        """Let no note name or hold anything for a user that is about to be erased; what others
        still wait for is kept. To be called alone."""
        self.resume()
        with self._lock:
            for intent in self._open_intents():
                if _world(intent) == key.world:
                    left = [
                        Parcel(parcel.command, owners)
                        for parcel in _parcels(intent)
                        if (owners := tuple(o for o in parcel.owners if o != key.user_id))
                    ]
                    with self._catalog.write():
                        self._catalog.finish_intent(intent.operation)
                        if left:
                            payload = msgspec.msgpack.encode(tuple(left))
                            self._catalog.begin_intent(intent.operation, DELIVERY, payload)
            self._catalog.scrub()

    def line(self, intent: Intent) -> str:
        """Return a line about a delivery that was begun and could not be finished."""
        why = self._errors.get(intent.operation, "not tried yet")
        return f"unfinished delivery in world {_world(intent)!r}: {why}"

    def is_open(self, intent: Intent) -> bool:
        """Whether something noted is neither done nor under way here."""
        return intent.operation not in self._done and intent.operation not in self._under_way

    def close(self) -> None:
        """Remove the notes of what is done. One that is left is looked at at the next opening."""
        with self._lock, suppress(StorageError):
            self._strike_out_now()


def _parcels(intent: Intent) -> tuple[Parcel, ...]:
    return msgspec.msgpack.decode(intent.payload, type=tuple[Parcel, ...])


def _world(intent: Intent) -> str:
    return _parcels(intent)[0].command.world


def _may_pass(error: ReverieError) -> bool:
    """Whether the same may be carried out later. What is refused for what it says, or goes to a
    user whose journal is damaged, must not hold up all others for good."""
    passing = isinstance(error, StorageError | UnavailableError | ClosedError)
    return passing and not isinstance(error, JournalDamagedError)
