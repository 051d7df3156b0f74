"""Save slots of a world over all shards: checkpoint, rewind, fork, and what a crash left half done.

A world lies in many partitions, which commit one by one. So the operation is noted in the catalog
first; each shard's part is idempotent under the operation's id; what is found unfinished at the
next opening is done again to its end.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import structlog

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.lane import raise_error
from reverie.memory_graph.errors import (
    CheckpointExistsError,
    ReverieError,
    UnknownCheckpointError,
)
from reverie.memory_graph.ids import Key, key_hash, partition_of
from reverie.memory_graph.store import Catalog, Tag, UserImage, World

ERASURE = "forget"

log = structlog.get_logger(__name__)


class SlotPlan(msgspec.Struct, frozen=True):
    """A world-wide operation, as it is noted in the catalog."""

    world: str
    tag: str
    at: float
    new_world: str = ""


class ErasurePlan(msgspec.Struct, frozen=True):
    """What is left to do when a crash interrupts an erasure; says nothing of who was erased.

    Attributes:
        partition: where the user's rows were.
        name: hash of the user, which its files are named by.
    """

    partition: int
    name: str


class Slots:
    """Carries out world-wide operations and erasures; one at a time."""

    def __init__(self, catalog: Catalog, router: Router, lock: threading.RLock) -> None:
        self._catalog = catalog
        self._router = router
        self._lock = lock  # guards the catalog

    def resume(self) -> None:
        """Finish what a crash or an error interrupted; nothing else may come before it."""
        for intent in self._catalog.unfinished():
            log.warning("finishing an interrupted operation", kind=intent.kind)
            if intent.kind == ERASURE:
                left = msgspec.msgpack.decode(intent.payload, type=ErasurePlan)
                self._router.everywhere(c.Scrub(left.partition, left.name))
            else:
                plan = msgspec.msgpack.decode(intent.payload, type=SlotPlan)
                self._steps(intent.kind)(plan, intent.operation)
            self._catalog.finish_intent(intent.operation)

    def checkpoint(self, world: str, tag: str, at: float) -> int:
        """Pin a world under a tag; returns the number of users.

        Raises:
            CheckpointExistsError: the tag is taken in this world.
        """
        with self._lock:
            if any(t.tag == tag for t in self._catalog.tags(world)):
                msg = f"world {world!r} has a checkpoint {tag!r} already; drop it first"
                raise CheckpointExistsError(msg, world=world, tag=tag)
            return self._run("checkpoint", SlotPlan(world, tag, at))

    def rewind(self, world: str, tag: str, at: float) -> int:
        """Put every user of a world back to a tag; returns their number.

        Raises:
            UnknownCheckpointError: no such tag.
        """
        with self._lock:
            self._require(world, tag)
            return self._run("rewind", SlotPlan(world, tag, at))

    def fork(self, world: str, tag: str, new_world: str, at: float) -> int:
        """Make a new world of a tag; returns the number of users.

        Raises:
            UnknownCheckpointError: no such tag.
            CheckpointExistsError: the new world exists.
        """
        with self._lock:
            self._require(world, tag)
            if self._catalog.world(new_world) is not None or any(
                users for users in self._router.everywhere(c.ListUsers(world=new_world))
            ):
                msg = f"world {new_world!r} exists already; fork into a new name"
                raise CheckpointExistsError(msg, world=new_world)
            return self._run("fork", SlotPlan(world, tag, at, new_world))

    def drop(self, world: str, tag: str) -> None:
        """Give up a tag and the history that only it keeps.

        Raises:
            UnknownCheckpointError: no such tag.
        """
        with self._lock:
            self._require(world, tag)
            self._run("drop", SlotPlan(world, tag, 0.0))

    def forget(self, key: Key) -> c.Erased:
        """Erase a user for good. A crash after its rows are gone leaves copies in the file's free
        pages; the next opening scrubs them."""
        operation = uuid.uuid4().hex
        plan = ErasurePlan(partition_of(key, self._router.partitions), key_hash(key).hex())
        with self._lock:
            self._catalog.begin_intent(operation, ERASURE, msgspec.msgpack.encode(plan))
            erased: c.Erased = self._router.call(c.Forget(world=key.world, user_id=key.user_id))
            self._catalog.finish_intent(operation)
        return erased

    def tags(self, world: str) -> Sequence[Tag]:
        """Return a world's tags, oldest first."""
        with self._lock:
            return self._catalog.tags(world)

    def _require(self, world: str, tag: str) -> None:
        known = [t.tag for t in self._catalog.tags(world)]
        if tag not in known:
            msg = f"world {world!r} has no checkpoint {tag!r}; it has: {', '.join(known) or 'none'}"
            raise UnknownCheckpointError(msg, world=world, tag=tag)

    def _run(self, kind: str, plan: SlotPlan) -> int:
        self.resume()
        operation = uuid.uuid4().hex
        self._catalog.begin_intent(operation, kind, msgspec.msgpack.encode(plan))
        try:
            count = self._steps(kind)(plan, operation)
        except ReverieError:
            if kind == "checkpoint":
                self._undo(plan, operation)
            raise
        self._catalog.finish_intent(operation)
        return count

    def _undo(self, plan: SlotPlan, operation: str) -> None:
        """A checkpoint of some partitions only is none, and must not be completed later, when
        the world is another one."""
        with self._catalog.write():
            self._catalog.finish_intent(operation)
            self._catalog.begin_intent(uuid.uuid4().hex, "drop", msgspec.msgpack.encode(plan))
        with suppress(ReverieError):  # then the next operation, or opening, does it
            self.resume()

    def _steps(self, kind: str) -> Callable[[SlotPlan, str], int]:
        return {
            "checkpoint": self._checkpoint,
            "rewind": self._rewind,
            "fork": self._fork,
            "drop": self._drop,
        }[kind]

    def _checkpoint(self, plan: SlotPlan, operation: str) -> int:
        counts = self._router.at_once(c.Slot("pin", plan.world, plan.tag, operation))
        self._catalog.add_tag(plan.world, plan.tag, plan.at)
        return sum(counts)

    def _rewind(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.at_once(c.Slot("rewind", plan.world, plan.tag, operation)))

    def _drop(self, plan: SlotPlan, operation: str) -> int:
        self._catalog.remove_tag(plan.world, plan.tag)
        return sum(self._router.at_once(c.Slot("unpin", plan.world, plan.tag, operation)))

    def _fork(self, plan: SlotPlan, operation: str) -> int:
        count = 0
        for images in self._router.everywhere(c.ExportSlot(plan.world, plan.tag)):
            commands = [
                c.ImportUser(
                    world=plan.new_world,
                    user_id=msgspec.msgpack.decode(image, type=UserImage).key.user_id,
                    image=image,
                    operation=operation,
                )
                for image in images
            ]
            for answer in self._router.call_many(commands):
                raise_error(answer)
            count += len(commands)
        source = self._catalog.world(plan.world)
        if source is not None and self._catalog.world(plan.new_world) is None:
            self._catalog.add_world(
                World(plan.new_world, source.embedder, source.dim, source.spec, plan.at)
            )
        return count
