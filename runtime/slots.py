"""Save slots of a world over all shards: checkpoint, rewind, fork, and what a crash left half done.

A world lies in many partitions, which commit one by one. So the operation is noted in the catalog
first; each shard's part is idempotent under the operation's id; what is found unfinished at the
next opening is done again to its end. A checkpoint or a fork that fails is undone instead: half of
one is none, and completing it later would mix it with what was written meanwhile.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence

import msgspec
import structlog

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.lane import MAX_BULK, raise_error
from reverie.memory_graph.errors import (
    CheckpointExistsError,
    InternalError,
    ReverieError,
    UnknownCheckpointError,
)
from reverie.memory_graph.ids import Key, key_hash, partition_of
from reverie.memory_graph.store import Catalog, Intent, Tag, UserImage, World

ERASURE = "forget"
UNDO = {"checkpoint": "drop", "fork": "unfork"}  # by which operation one that fails is undone

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
        self.lock = lock  # guards the catalog
        self._errors: dict[str, ReverieError] = {}  # of unfinished operations, by operation
        self._to_undo: set[str] = set()  # failed, and not even this could be noted yet

    def resume(self) -> None:
        """Finish what a crash or an error interrupted. What cannot be finished is logged, stays
        noted, and fails later operations on its world; see `unfinished`."""
        with self.lock:
            for intent in self._catalog.unfinished():
                self._finish(intent)

    def _finish(self, intent: Intent) -> None:
        log.warning("finishing an interrupted operation", kind=intent.kind)
        self._errors.pop(intent.operation, None)
        try:
            if intent.operation in self._to_undo:
                self._undo(intent)
            elif intent.kind == ERASURE:
                left = msgspec.msgpack.decode(intent.payload, type=ErasurePlan)
                self._router.everywhere(c.Scrub(left.partition, left.name))
                self._catalog.finish_intent(intent.operation)
            else:
                self._carry_out(intent)
        except ReverieError as exc:
            log.error("an operation cannot be finished", kind=intent.kind, error=str(exc))
            self._errors.setdefault(intent.operation, exc)

    def unfinished(self) -> list[str]:
        """Return a line for each operation that was begun and could not be finished."""
        with self.lock:
            return [self._line(intent) for intent in self._catalog.unfinished()]

    def _line(self, intent: Intent) -> str:
        where = "" if intent.kind == ERASURE else f" of world {_plan(intent).world!r}"
        why = self._errors.get(intent.operation, "not tried yet")
        return f"unfinished {intent.kind}{where}: {why}"

    def checkpoint(self, world: str, tag: str, at: float) -> int:
        """Pin a world under a tag; returns the number of users.

        Raises:
            CheckpointExistsError: the tag is taken in this world.
        """
        with self.lock:
            self._settle(world)
            if any(t.tag == tag for t in self._catalog.tags(world)):
                msg = f"world {world!r} has a checkpoint {tag!r} already; drop it first"
                raise CheckpointExistsError(msg, world=world, tag=tag)
            return self._run("checkpoint", SlotPlan(world, tag, at))

    def rewind(self, world: str, tag: str, at: float) -> int:
        """Put every user of a world back to a tag; returns their number.

        Raises:
            UnknownCheckpointError: no such tag.
        """
        with self.lock:
            self._settle(world)
            self._require(world, tag)
            return self._run("rewind", SlotPlan(world, tag, at))

    def fork(self, world: str, tag: str, new_world: str, at: float) -> int:
        """Make a new world of a tag; returns the number of users.

        Raises:
            UnknownCheckpointError: no such tag.
            CheckpointExistsError: the new world exists.
        """
        with self.lock:
            self._settle(world, new_world)
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
        with self.lock:
            self._settle(world)
            self._require(world, tag)
            self._run("drop", SlotPlan(world, tag, 0.0))

    def forget(self, key: Key) -> c.Erased:
        """Erase a user for good. A crash after its rows are gone leaves copies in the file's free
        pages; the next opening scrubs them."""
        operation = uuid.uuid4().hex
        plan = ErasurePlan(partition_of(key, self._router.partitions), key_hash(key).hex())
        with self.lock:
            for intent in self._catalog.unfinished():
                # A fork done later would bring the user back; an erasure whose answer was lost may
                # be this one, and nothing but the next opening would finish it.
                if intent.operation in self._to_undo or intent.kind == ERASURE:
                    self._finish(intent)
            self._catalog.begin_intent(operation, ERASURE, msgspec.msgpack.encode(plan))
            erased: c.Erased = self._router.call(c.Forget(world=key.world, user_id=key.user_id))
            self._catalog.finish_intent(operation)
        return erased

    def tags(self, world: str) -> Sequence[Tag]:
        """Return a world's tags, oldest first."""
        with self.lock:
            return self._catalog.tags(world)

    def _require(self, world: str, tag: str) -> None:
        known = [t.tag for t in self._catalog.tags(world)]
        if tag not in known:
            msg = f"world {world!r} has no checkpoint {tag!r}; it has: {', '.join(known) or 'none'}"
            raise UnknownCheckpointError(msg, world=world, tag=tag)

    def _settle(self, *worlds: str) -> None:
        """Finish what was interrupted; nothing else may come before it in these worlds.

        Raises:
            ReverieError: of an operation on one of the worlds that cannot be finished.
        """
        self.resume()
        for intent in self._catalog.unfinished():
            if intent.kind != ERASURE:
                plan, error = _plan(intent), self._errors.get(intent.operation)
                if error is not None and not {plan.world, plan.new_world}.isdisjoint(worlds):
                    raise error

    def _run(self, kind: str, plan: SlotPlan) -> int:
        intent = Intent(uuid.uuid4().hex, kind, msgspec.msgpack.encode(plan))
        return self._carry_out(intent, is_new=True)

    def _carry_out(self, intent: Intent, *, is_new: bool = False) -> int:
        """Do all steps; after an error or an interrupt, undo those of a checkpoint or a fork."""
        plan = _plan(intent)
        try:
            if is_new:  # here, since an interrupt is most likely while this is synced
                self._catalog.begin_intent(*intent)
            count = self._steps(intent.kind)(plan, intent.operation)
            with self._catalog.write():
                self._conclude(intent.kind, plan)
                self._catalog.finish_intent(intent.operation)
        except BaseException as exc:
            if isinstance(exc, ReverieError):
                self._errors[intent.operation] = exc
            if intent.kind in UNDO:
                self._to_undo.add(intent.operation)
                try:
                    self._undo(intent)
                except ReverieError as undoing:  # the next operation, or opening, does it
                    self._errors[intent.operation] = undoing
                    log.error("cannot be undone now", kind=intent.kind, error=str(undoing))
            raise
        self._errors.pop(intent.operation, None)
        return count

    def _undo(self, intent: Intent) -> None:
        if all(intent.operation != other.operation for other in self._catalog.unfinished()):
            self._to_undo.discard(intent.operation)  # the interrupt came after the last step
            return
        undoing = intent._replace(kind=UNDO.get(intent.kind, intent.kind))
        with self._catalog.write():  # from here on it cannot be completed any more
            self._catalog.finish_intent(intent.operation)
            self._catalog.begin_intent(*undoing)
        self._to_undo.discard(intent.operation)
        self._carry_out(undoing)

    def _steps(self, kind: str) -> Callable[[SlotPlan, str], int]:
        known = {
            "checkpoint": self._checkpoint,
            "rewind": self._rewind,
            "fork": self._fork,
            "unfork": self._unfork,
            "drop": self._drop,
        }
        if kind not in known:
            msg = f"the catalog names an unknown operation {kind!r}"
            raise InternalError(msg)
        return known[kind]

    def _conclude(self, kind: str, plan: SlotPlan) -> None:
        """What makes a finished operation visible, in the transaction that strikes it out."""
        if kind == "checkpoint":
            self._catalog.add_tag(plan.world, plan.tag, plan.at)
        elif kind == "fork":
            source = self._catalog.world(plan.world)
            if source is not None and self._catalog.world(plan.new_world) is None:
                self._catalog.add_world(
                    World(plan.new_world, source.embedder, source.dim, source.spec, plan.at)
                )

    def _checkpoint(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.at_once(c.Slot("pin", plan.world, plan.tag, operation)))

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
            for start in range(0, len(commands), MAX_BULK):  # so little is under way at an error
                for answer in self._router.call_many(commands[start : start + MAX_BULK]):
                    raise_error(answer)
            count += len(commands)
        return count

    def _unfork(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.everywhere(c.Slot("unfork", plan.new_world, plan.tag, operation)))


def _plan(intent: Intent) -> SlotPlan:
    return msgspec.msgpack.decode(intent.payload, type=SlotPlan)
