"""Save slots of a world over all shards: checkpoint, rewind, fork, and what a crash left half done.

A world lies in many partitions, which commit one by one. So the operation is noted in the catalog
first; each shard's part is idempotent under the operation's id; what is found unfinished at the
next opening is done again to its end. A checkpoint or a fork that fails is undone instead: half of
one is none, and completing it later would mix it with what was written meanwhile.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec
import structlog

from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.lane import MAX_BULK, raise_error
from reverie.actors.shard_commands import PAGE_BYTES
from reverie.fanout import DELIVERY, FanOut
from reverie.memory_graph.errors import (
    CheckpointExistsError,
    InternalError,
    ReverieError,
    UnknownCheckpointError,
)
from reverie.memory_graph.ids import Key, key_hash, partition_of
from reverie.memory_graph.store import Catalog, Intent, Tag, UserImage, World as StoredWorld
from reverie.repeats import NOBODY

ERASURE = "forget"
BURIAL, BURIED = "bury", "buried"  # carried out by lifecycle.py, which needs more than shards
ANSWER = "answer"  # what is left of an operation under a request id: its answer is to be kept
# By which operation one that fails is undone.
UNDO = {"checkpoint": "drop", "fork": "unfork", "import": "unfork", "hold": "release"}
ONLY_HERE = {"import", "hold"}  # whoever began it must also end it: found later, it is undone
HELD = "\x01held "  # how tags begin that no caller can name

log = structlog.get_logger(__name__)

T = TypeVar("T")


class SlotPlan(msgspec.Struct, frozen=True):
    """A world-wide operation, as it is noted in the catalog."""

    world: str
    tag: str
    at: float
    new_world: str = ""
    mark: c.Mark | None = None


class AnswerPlan(msgspec.Struct, frozen=True):
    """The answer to a request of a world that is done."""

    world: str
    mark: c.Mark
    count: int


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
        self.fanout = FanOut(catalog, router, lock)
        self._errors: dict[str, ReverieError] = {}  # of unfinished operations, by operation
        self._to_undo: set[str] = set()  # failed, and not even this could be noted yet
        self._under_way: set[str] = set()  # of `ONLY_HERE`, in this process

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the catalog, with no delivery to several users under way: a save holds all of an
        event or nothing of it."""
        with self.fanout.gate.alone(), self.lock:
            yield

    def resume(self) -> None:
        """Finish what a crash or an error interrupted. What cannot be finished is logged, stays
        noted, and fails later operations on its world; see `unfinished`."""
        with self._alone():
            self.fanout.resume()
            for intent in self._catalog.unfinished():
                ours = intent.kind not in {DELIVERY, BURIAL, BURIED}
                if intent.operation not in self._under_way and ours:
                    self._finish(intent)

    def _finish(self, intent: Intent) -> None:
        log.warning("finishing an interrupted operation", kind=intent.kind)
        self._errors.pop(intent.operation, None)
        try:
            if intent.operation in self._to_undo or intent.kind in ONLY_HERE:
                self._undo(intent)
            elif intent.kind == ERASURE:
                left = msgspec.msgpack.decode(intent.payload, type=ErasurePlan)
                self._router.everywhere(c.Scrub(left.partition, left.name))
                self._catalog.finish_intent(intent.operation)
            elif intent.kind == ANSWER:
                self._keep_answer(intent)
            else:
                self._carry_out(intent)
        except ReverieError as exc:
            log.error("an operation cannot be finished", kind=intent.kind, error=str(exc))
            self._errors.setdefault(intent.operation, exc)

    @contextmanager
    def cut(self, take: Callable[[], T]) -> Iterator[T]:
        """Call `take` between two writes: no operation on several users is half done, no shard is
        writing, and the readings are journaled. Within the block, which is given what it returned,
        everything goes on but operations on save slots and erasures, which wait for its end."""

        def at_rest() -> T:
            with self.lock:
                self.resume()
                with self._router.at_rest() as transports:
                    for transport in transports:
                        raise_error(transport([c.Flush()])[0])
                    return take()

        with self.fanout.gate.alone_first(at_rest) as taken:
            yield taken

    def unfinished(self) -> list[str]:
        """Return a line for each operation that was begun and could not be finished."""
        with self.lock:
            return [
                self._line(intent)
                for intent in self._catalog.unfinished()
                if intent.operation not in self._under_way and self.fanout.is_open(intent)
            ]

    def _line(self, intent: Intent) -> str:
        if intent.kind == DELIVERY:
            return self.fanout.line(intent)
        nameless = intent.kind in {ERASURE, BURIAL, BURIED, ANSWER}
        where = "" if nameless else f" of world {_plan(intent).world!r}"
        why = self._errors.get(intent.operation, "not tried yet")
        return f"unfinished {intent.kind}{where}: {why}"

    def checkpoint(self, world: str, tag: str, at: float, mark: c.Mark | None = None) -> int:
        """Pin a world under a tag; returns the number of users.

        Raises:
            CheckpointExistsError: the tag is taken in this world.
        """
        with self._alone():
            self._settle(world)
            if (seen := self._answered(world, mark)) is not None:
                return seen
            if any(t.tag == tag for t in self._catalog.tags(world)):
                msg = f"world {world!r} has a checkpoint {tag!r} already; drop it first"
                raise CheckpointExistsError(msg, world=world, tag=tag)
            return self._run("checkpoint", SlotPlan(world, tag, at, mark=mark))

    def rewind(self, world: str, tag: str, at: float, mark: c.Mark | None = None) -> int:
        """Put every user of a world back to a tag; returns their number.

        Raises:
            UnknownCheckpointError: no such tag.
        """
        with self._alone():
            self._settle(world)
            if (seen := self._answered(world, mark)) is not None:
                return seen
            self.require(world, tag)
            return self._run("rewind", SlotPlan(world, tag, at, mark=mark))

    def fork(
        self, world: str, tag: str, new_world: str, at: float, mark: c.Mark | None = None
    ) -> int:
        """Make a new world of a tag; returns the number of users.

        Raises:
            UnknownCheckpointError: no such tag.
            CheckpointExistsError: the new world exists.
        """
        with self._alone():
            self._settle(world, new_world)
            if (seen := self._answered(world, mark)) is not None:
                return seen
            self.require(world, tag)
            self.require_new(new_world, "fork into a new name")
            return self._run("fork", SlotPlan(world, tag, at, new_world, mark))

    def drop(self, world: str, tag: str, mark: c.Mark | None = None) -> None:
        """Give up a tag and the history that only it keeps.

        Raises:
            UnknownCheckpointError: no such tag.
        """
        with self._alone():
            self._settle(world)
            if self._answered(world, mark) is None:
                self.require(world, tag)
                self._run("drop", SlotPlan(world, tag, 0.0, mark=mark))

    def forget(self, key: Key, mark: c.Mark | None = None) -> c.Erased:
        """Erase a user for good. A crash after its rows are gone leaves copies in the file's free
        pages; the next opening scrubs them."""
        operation = uuid.uuid4().hex
        plan = ErasurePlan(partition_of(key, self._router.partitions), key_hash(key).hex())
        with self._alone():
            self.fanout.strike(key)
            for intent in self._catalog.unfinished():
                # A fork done later would bring the user back; an erasure whose answer was lost may
                # be this one, and nothing but the next opening would finish it.
                if intent.operation in self._to_undo or intent.kind == ERASURE:
                    self._finish(intent)
            self._catalog.begin_intent(operation, ERASURE, msgspec.msgpack.encode(plan))
            command = c.Forget(world=key.world, user_id=key.user_id, mark=mark)
            erased: c.Erased = self._router.call(command)
            self._catalog.finish_intent(operation)
        return erased

    # -- notes of burials ----------------------------------------------------------------

    def note(self, operation: str, kind: str, payload: bytes) -> None:
        """Note a burial before its first step."""
        with self.lock:
            self._catalog.begin_intent(operation, kind, payload)

    def note_instead(self, operation: str, kind: str, payload: bytes) -> None:
        """Note the next part of a burial in the place of the part before, which leaves no trace."""
        with self.lock:
            with self._catalog.write():
                self._catalog.finish_intent(operation)
                self._catalog.begin_intent(operation, kind, payload)
            self._catalog.scrub()

    def strike_out(self, operation: str) -> None:
        """Strike a burial out after its last step."""
        with self.lock:
            self._catalog.finish_intent(operation)

    def burials(self) -> list[Intent]:
        """Return the burials that were begun and not finished."""
        with self.lock:
            return [i for i in self._catalog.unfinished() if i.kind in {BURIAL, BURIED}]

    def tags(self, world: str) -> Sequence[Tag]:
        """Return a world's tags, oldest first."""
        with self.lock:
            return self._catalog.tags(world)

    def require(self, world: str, tag: str) -> Tag:
        """Return a checkpoint.

        Raises:
            UnknownCheckpointError: no such tag.
        """
        known = {t.tag: t for t in self.tags(world)}
        if tag not in known:
            msg = f"world {world!r} has no checkpoint {tag!r}; it has: {', '.join(known) or 'none'}"
            raise UnknownCheckpointError(msg, world=world, tag=tag)
        return known[tag]

    def positions(self, world: str, tag: str | None) -> dict[str, tuple[int, int]]:
        """Return (generation, seq) by user id, where the users of a world stood under a tag, or
        stand now if it is None; those that are equal are of the same state."""
        found = self._router.everywhere(c.Positions(world, tag))
        return {user_id: (generation, seq) for part in found for user_id, generation, seq in part}

    def ask(self, commands: Sequence[c.UserCommand]) -> list[object]:
        """Return an answer or an error for each command, in order; one call per shard."""
        return self._router.call_many(commands)

    def _settle(self, *worlds: str) -> None:
        """Finish what was interrupted; nothing else may come before it in these worlds.

        Raises:
            ReverieError: of an operation on one of the worlds that cannot be finished.
        """
        self.resume()
        self.fanout.require_settled(*worlds)
        for intent in self._catalog.unfinished():
            if intent.kind not in {ERASURE, DELIVERY, BURIAL, BURIED, ANSWER}:
                plan, error = _plan(intent), self._errors.get(intent.operation)
                if error is not None and not {plan.world, plan.new_world}.isdisjoint(worlds):
                    raise error

    def _run(self, kind: str, plan: SlotPlan) -> int:
        return self._carry_out(_intent(kind, plan, uuid.uuid4().hex), is_new=True)

    def _carry_out(self, intent: Intent, *, is_new: bool = False) -> int:
        """Do all steps; after an error or an interrupt, undo those of a checkpoint or a fork."""
        plan = _plan(intent)
        try:
            if is_new:  # here, since an interrupt is most likely while this is synced
                self._catalog.begin_intent(*intent)
            count = self._steps(intent.kind)(plan, intent.operation)
            with self._catalog.write():
                self._conclude(intent.kind, plan)
                answer = self._note_answer(intent.operation, plan.world, plan.mark, count)
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
        self._keep_answer(answer)
        return count

    # -- answers to requests -------------------------------------------------------------

    def answered(self, world: str, mark: c.Mark | None) -> int | None:
        """Return what was answered to a request of a world, None to one that is new; what was
        interrupted is finished first."""
        if mark is None:
            return None
        with self._alone():
            self.resume()
            return self._answered(world, mark)

    def _answered(self, world: str, mark: c.Mark | None) -> int | None:
        if mark is None:
            return None
        seen = self._router.call(c.Answered(world=world, user_id=NOBODY, mark=mark))
        return None if seen is None else msgspec.msgpack.decode(seen, type=int)

    def _note_answer(
        self, operation: str, world: str, mark: c.Mark | None, count: int
    ) -> Intent | None:
        """Strike an operation out in the transaction that is open; what is left to do of one under
        a request id, to keep its answer, is noted in its place."""
        self._catalog.finish_intent(operation)
        if mark is None:
            return None
        # A name of its own: an interrupt that comes now must not find the operation to undo it.
        payload = msgspec.msgpack.encode(AnswerPlan(world, mark, count))
        left = Intent(f"{operation}-answer", ANSWER, payload)
        self._catalog.begin_intent(*left)
        return left

    def _keep_answer(self, noted: Intent | None) -> None:
        if noted is None:
            return
        plan = msgspec.msgpack.decode(noted.payload, type=AnswerPlan)
        kept = msgspec.msgpack.encode(plan.count)
        self._router.call(
            c.KeepAnswer(world=plan.world, user_id=NOBODY, mark=plan.mark, answer=kept)
        )
        self._catalog.finish_intent(noted.operation)

    def _undo(self, intent: Intent) -> None:
        if all(intent.operation != other.operation for other in self._catalog.unfinished()):
            self._to_undo.discard(intent.operation)  # the interrupt came after the last step
            return
        plan = msgspec.structs.replace(_plan(intent), mark=None)  # what is undone has no answer
        undoing = _intent(UNDO.get(intent.kind, intent.kind), plan, intent.operation)
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
            "release": self._release,
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
                    StoredWorld(plan.new_world, source.embedder, source.dim, source.spec, plan.at)
                )

    def _checkpoint(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.at_once(c.Slot("pin", plan.world, plan.tag, operation)))

    def _rewind(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.at_once(c.Slot("rewind", plan.world, plan.tag, operation)))

    def _drop(self, plan: SlotPlan, operation: str) -> int:
        self._catalog.remove_tag(plan.world, plan.tag)
        return sum(self._router.at_once(c.Slot("unpin", plan.world, plan.tag, operation)))

    def _fork(self, plan: SlotPlan, operation: str) -> int:
        images = (image for image, _ in self.images(plan.world, plan.tag))
        return self._bring(plan.new_world, ((image, "") for image in images), operation)

    def images(
        self, world: str, tag: str, *, digests: bool = False, max_bytes: int = PAGE_BYTES
    ) -> Iterator[tuple[bytes, str]]:
        """Yield the users of a tag as encoded images, each with the digest of its state if they are
        asked for; about `max_bytes` are in memory at a time.

        Raises:
            UnknownCheckpointError: no such tag, or no more.
        """
        for lane in self._router.lanes:
            at, after = 0, ""
            while at >= 0:
                asked = c.ExportSlot(world, tag, at, after, max_bytes, digests)
                page: c.ImagePage = raise_error(lane.call([asked])[0])
                yield from zip(page.images, page.digests or [""] * len(page.images), strict=True)
                at, after = page.partition, page.after

    def _bring(self, world: str, images: Iterable[tuple[bytes, str]], operation: str) -> int:
        """Make users of images in a world; the answer says how many."""
        count = size_bytes = 0
        commands: list[c.ImportUser] = []

        def send() -> None:
            for answer in self._router.call_many(commands):
                raise_error(answer)
            commands.clear()

        for image, digest in images:
            commands.append(
                c.ImportUser(
                    world=world,
                    user_id=msgspec.msgpack.decode(image, type=UserImage).key.user_id,
                    image=image,
                    operation=operation,
                    digest=digest,
                )
            )
            count, size_bytes = count + 1, size_bytes + len(image)
            if len(commands) == MAX_BULK or size_bytes > PAGE_BYTES:  # so little is under way
                send()
                size_bytes = 0
        send()
        return count

    # -- a tag of its own for the time of an export; a world out of a file ---------------

    @contextmanager
    def held(self, world: str, at: float) -> Iterator[str]:
        """Pin a world as it is now for the time of the block, which is given the tag. Other
        operations go on meanwhile; after a crash, the next opening lifts the pin."""
        operation = uuid.uuid4().hex
        intent = _intent("hold", SlotPlan(world, HELD + operation, at), operation)
        self._under_way.add(operation)
        try:
            with self._alone():
                self._settle(world)
                self._catalog.begin_intent(*intent)
                self._checkpoint(_plan(intent), operation)
            yield HELD + operation
        finally:
            with self.lock:  # or another thread would find it between the two, and finish it
                self._under_way.discard(operation)
                self._give_up(intent)

    def import_world(
        self,
        images: Iterable[tuple[bytes, str]],
        world: StoredWorld,
        *,
        has_embedder: bool,
        mark: c.Mark | None = None,
    ) -> int:
        """Make a world of images and the digests of their states; returns the number of users. All
        or nothing: after any error, also a crash, its users are erased again.

        Raises:
            CheckpointExistsError: the world exists, or somebody wrote to it meanwhile.
            WorldFileError: a user in it is not sound.
        """
        operation = uuid.uuid4().hex
        intent = _intent("import", SlotPlan(world.name, "", world.created, world.name), operation)
        with self._alone():
            self._settle(world.name)
            self.require_new(world.name)
            self._under_way.add(operation)
            try:
                self._catalog.begin_intent(*intent)
                count = self._bring(world.name, images, operation)
                with self._catalog.write():
                    if has_embedder:
                        self._catalog.add_world(world)
                    answer = self._note_answer(operation, world.name, mark, count)
            except BaseException:
                self._give_up(intent)
                raise
            finally:
                self._under_way.discard(operation)
            self._keep_answer(answer)
        return count

    def _give_up(self, intent: Intent) -> None:
        """Undo one of `ONLY_HERE`; if that fails, the next operation or opening does it."""
        try:
            self._undo(intent)
        except ReverieError as exc:
            self._errors[intent.operation] = exc
            log.error("cannot be undone now", kind=intent.kind, error=str(exc))

    def require_new(self, world: str, way_out: str = "import it under another name") -> None:
        """Refuse the name of a world that exists.

        Raises:
            CheckpointExistsError: there is one.
        """
        with self.lock:
            known = self._catalog.world(world) is not None
            if known or any(self._router.everywhere(c.ListUsers(world=world))):
                msg = f"world {world!r} exists already; {way_out}"
                raise CheckpointExistsError(msg, world=world)

    def _release(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.everywhere(c.Slot("unpin", plan.world, plan.tag, operation)))

    def _unfork(self, plan: SlotPlan, operation: str) -> int:
        return sum(self._router.everywhere(c.Slot("unfork", plan.new_world, plan.tag, operation)))


def _intent(kind: str, plan: SlotPlan, operation: str) -> Intent:
    return Intent(operation, kind, msgspec.msgpack.encode(plan))


def _plan(intent: Intent) -> SlotPlan:
    return msgspec.msgpack.decode(intent.payload, type=SlotPlan)
