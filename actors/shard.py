"""A shard: the single owner of some partitions and of the users in them.

A plain class, single-threaded, without a clock, a model or a thread of its own; the inline backend
calls it in its process and the Ray backend wraps it in an actor. The hot path of a write batch:

    for each partition: BEGIN (checks the owner epoch)
        for each command: request id seen? -> first answer
                          apply its events to the state, append them to the journal
    COMMIT, synced: the moment of durability
    only now are the answers returned

Reads come from memory; before they are answered the epoch is checked once more.

States are changed before the commit, so that the commands of one batch see each other and an
event that cannot be applied is never journaled. Nobody can read in between; if the transaction
fails, the changed states are thrown away and read again from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from traceback import format_exc
from typing import Any, TypeVar

import msgspec
import structlog

from reverie.actors import commands as c, kept, requests, saves
from reverie.actors.erasure import erase_user, receipt_of, remove_files
from reverie.actors.limits import Due, within_budget
from reverie.actors.reads import read, run_searches, stats_of, texts_of, turn_batch
from reverie.actors.residents import Residents, ShardSettings, Unopened, open_partitions
from reverie.actors.writes import Outbox, write
from reverie.memory_graph import faults, nodes as n
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.errors import (
    InternalError,
    JournalDamagedError,
    OverloadedError,
    ReverieError,
    StaleGenerationError,
    StorageError,
    StorageFailedError,
    StorageFullError,
)
from reverie.memory_graph.events import encode_event
from reverie.memory_graph.ids import Key
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store import Partition, Transaction, UserImage
from reverie.memory_graph.views import Hit
from reverie.memory_graph.words import clear_caches
from reverie.memory_graph.write import Writer

log = structlog.get_logger(__name__)

T = TypeVar("T")

MAX_PENDING = 1_000_000  # turns of one user that the checker looks at
MAX_TOUCHES = 64  # readings kept in memory per user before they are journaled


class _HalfWrittenError(Exception):
    """Part of a command is in the transaction, so the transaction must not be committed."""


class Shard:
    """Owns partitions; see the module's text."""

    def __init__(
        self,
        folder: Path,
        partitions: Mapping[int, Partition | Unopened],
        partition_count: int,
        settings: ShardSettings,
    ) -> None:
        """Take ownership of open partitions.

        Args:
            folder: the data folder (for index files and erasure).
            partitions: partition number -> open partition.
            partition_count: how many partitions the data folder has.
            settings: limits.
        """
        self.residents = Residents(folder, partitions, partition_count, settings)
        self.settings = settings
        self.due = Due()
        self._due: dict[int, list[Key]] = {}  # users whose readings are to be journaled

    @property
    def partitions(self) -> Mapping[int, Partition]:
        """The open partitions, by number; empty once closed."""
        return self.residents.partitions

    # -- the one entrance --------------------------------------------------------------

    def execute(self, batch: Sequence[c.AnyCommand]) -> list[Any]:
        """Carry out commands and return an answer or an error for each, in order.

        Writes come first, all writes of a partition in one transaction, then everything else:
        commands of one batch are concurrent, and a client that wants order waits for the answer.
        """
        answers: list[Any] = [None] * len(batch)
        writes: dict[int, list[int]] = {}
        others: list[int] = []
        for i, command in enumerate(batch):
            if isinstance(command, c.Write):
                writes.setdefault(self.residents.number(command.key), []).append(i)
            else:
                others.append(i)
        for number, places in writes.items():
            self._write_all(number, [(i, batch[i]) for i in places], answers)  # type: ignore[misc]
        for places in self._by_user(batch, others):
            if len(places) > 1:
                with suppress(ReverieError):  # of one of them: then each is tried alone
                    searches = [s for i in places if isinstance(s := batch[i], c.Search)]
                    for i, hits in zip(places, self._search(searches), strict=True):
                        answers[i] = hits
                    continue
            for i in places:
                answers[i] = self._answer(batch[i])
        self._require_ownership(batch, others, answers)
        for number, keys in self._due.items():  # one sync for all readers of a partition
            with suppress(Exception):  # of a partition that failed: readings may be lost
                self.residents.flush_touches(self.residents.partition(number), keys)
        self._due.clear()
        self.residents.make_room()
        faults.reach("reply.before")
        return answers

    def _require_ownership(
        self, batch: Sequence[c.AnyCommand], places: list[int], answers: list[Any]
    ) -> None:
        """Answers about users come from memory: an owner that was replaced while it worked, or
        slept, must not give them, for they may be of before the replacement's writes."""
        by_partition: dict[int, list[int]] = {}
        for i in places:
            command = batch[i]
            if isinstance(command, c.Read):  # its error, too, may come from an old state
                by_partition.setdefault(self.residents.number(command.key), []).append(i)
        for number, answered in by_partition.items():
            try:
                with self.residents.using(number) as partition:
                    partition.require_ownership()
            except StorageError as exc:
                for i in answered:
                    answers[i] = exc

    @staticmethod
    def _by_user(batch: Sequence[c.AnyCommand], places: list[int]) -> list[list[int]]:
        """Return the places of all in groups: when all are reads, those of one user follow each
        other, in order, for its graph and indices are then in the processor's cache; its searches
        are one group. Anything else keeps its order and is alone."""
        users = {i: command.key for i in places if isinstance(command := batch[i], c.Read)}
        if len(users) < len(places):
            return [[i] for i in places]
        groups: list[list[int]] = []
        searched: Key | None = None
        for i in sorted(places, key=users.__getitem__):
            key = users[i] if isinstance(batch[i], c.Search) else None
            if key is not None and key == searched:
                groups[-1].append(i)
            else:
                groups.append([i])
            searched = key
        return groups

    def _answer(self, command: c.AnyCommand) -> Any:
        """Return the answer or the error of a command that is no write."""
        try:
            return self._other(command)
        except ReverieError as exc:
            if isinstance(exc, StorageFailedError) and isinstance(command, c.Command):
                self.residents.failed.add(self.residents.number(command.key))
            return exc
        except Exception as exc:  # noqa: BLE001 (a fault of ours must not stop the shard)
            log.error("command failed", command=type(command).__name__, trace=format_exc())
            return InternalError(f"{type(exc).__name__}: {exc}")

    def _other(self, command: c.AnyCommand) -> Any:  # noqa: C901 (one branch a kind)
        match command:
            case c.Stats():
                return self._stats(command.key)
            case c.Turns():
                return self._turns(command)
            case c.Check():
                return self._check(command.key)
            case c.Compare():
                return saves.compare(self.residents, command, exact_limit=self.settings.exact_limit)
            case c.Read():
                return self._read(command)
            case c.Forget():
                return self._forget(command)
            case c.Answered():
                with self.residents.using(self.residents.number(command.key)) as partition:
                    return kept.answered(partition, command)
            case c.KeepAnswer():
                with self.residents.using(self.residents.number(command.key)) as partition:
                    return kept.keep_answer(partition, command)
            case c.DueUsers():
                return self._due_users(command)
            case c.ListUsers():
                keys = self._each(lambda p: self._users(p, command.world), partial=command.partial)
                return sorted((k.world, k.user_id) for k in keys)
            case c.ListPending():
                return self._pending(command)
            case c.Slot():
                return self._slot(command)
            case c.ExportSlot():
                return saves.page(self.residents, command, exact_limit=self.settings.exact_limit)
            case c.Positions():
                return self._each(lambda p: p.positions(command.world, command.tag))
            case c.ImportUser():
                return self._import(command)
            case c.CheckShard():
                return [n for number in self.residents.numbers for n in self._check_file(number)]
            case c.Scrub():
                return self._scrub(command)
            case c.Flush():
                self.residents.flush(snapshot=command.snapshot)
                return c.ShardStats(
                    len(self.residents), self.residents.size_bytes, self.residents.numbers
                )
            case _:
                msg = f"unknown command {type(command).__name__}"
                raise InternalError(msg)

    def _each(self, ask: Callable[[Partition], Iterable[T]], *, partial: bool = False) -> list[T]:
        """Return what all partitions answer; one that failed is reopened, or fails the command,
        unless it is `partial` and may do without those that are damaged or gone."""
        found: list[T] = []
        for number in self.residents.usable() if partial else self.residents.numbers:
            with self.residents.using(number) as partition:
                found += ask(partition)
        return found

    def close(self) -> None:
        """Journal pending touches and close the partitions. Safe to call twice."""
        self.residents.close()

    # -- writing -----------------------------------------------------------------------

    def _write_all(
        self, number: int, commands: Sequence[tuple[int, c.Write]], answers: list[Any]
    ) -> None:
        touched: set[Key] = set()
        try:
            partition = self.residents.partition(number)
            with partition.write() as txn:
                for i, command in commands:
                    touched.add(command.key)
                    try:
                        answers[i] = self._write_one(partition, txn, command)
                    except (StorageError, InternalError, _HalfWrittenError):
                        raise
                    except ReverieError as exc:
                        answers[i] = exc
        except BaseException as exc:
            for key in touched:  # nothing was acknowledged; the disk has what was before
                self.residents.drop(key)
            if not isinstance(exc, Exception):  # an interrupt, which may come between any two lines
                raise
            cause = exc.__cause__ if isinstance(exc, _HalfWrittenError) else exc
            error = cause if isinstance(cause, ReverieError) else _internal(exc)
            if isinstance(error, StorageFailedError):
                self.residents.failed.add(number)
            self._answer_alone(number, commands, answers, error)
            return
        for key in touched:
            self._after_write(partition, key)

    def _answer_alone(
        self,
        number: int,
        commands: Sequence[tuple[int, c.Write]],
        answers: list[Any],
        error: ReverieError,
    ) -> None:
        """A batch failed as a whole. A fault of the disk is everybody's; otherwise each command
        is tried alone, so that one that cannot be carried out takes no other with it."""
        if isinstance(error, StorageError) or len(commands) == 1:
            for i, _ in commands:
                answers[i] = error
            log.error("writes failed", partition=number, error=str(error), writes=len(commands))
            return
        for single in commands:
            self._write_all(number, [single], answers)

    def _write_one(self, partition: Partition, txn: Transaction, command: c.Write) -> Any:
        fingerprint = b""
        if command.request_id is not None:
            fingerprint = requests.fingerprint(command)
            if (seen := requests.result_of(txn, command, fingerprint)) is not None:
                return msgspec.msgpack.decode(seen, type=c.ANSWERS[type(command)])
        key = command.key
        resident = self.residents.get(
            partition,
            key,
            create=not isinstance(
                command, c.Settle | c.FailTurn | c.Summarise | c.Tend | c.ModelSpent
            ),
        )
        if resident is None:
            msg = f"user {key.user_id!r} was forgotten while work for it was under way"
            raise StaleGenerationError(msg)
        writer, box = Writer(resident.memory, command.at), Outbox()
        try:
            faults.reach("apply.before")
            answer = write(writer, command, resident.generation, txn, box)
            answer = within_budget(writer, answer)
            faults.reach("apply.after")
        except ReverieError:
            if writer.is_changed:  # perhaps half applied: read it again, from this transaction
                if resident.touches:
                    txn.append(key, [encode_event(event) for event in resident.touches])
                self.residents.drop(key)
            raise
        try:
            self.residents.append(txn, key, resident, writer.events)
            box.apply(txn, key)
            if command.request_id is not None:
                kept_as = f"{requests.scope(command)}{command.request_id}"
                txn.keep_result(kept_as, key, fingerprint, msgspec.msgpack.encode(answer))
        except ReverieError as exc:
            raise _HalfWrittenError from exc
        return answer

    def _after_write(self, partition: Partition, key: Key) -> None:
        self.due.changed(key)
        resident = self.residents.peek(key)
        if resident is None:
            return
        if resident.memory.seq == 0:  # nothing was written: this user does not exist
            self.residents.drop(key)
            return
        self.residents.resize(resident)
        if resident.tail_bytes > max(self.settings.snapshot_min_bytes, resident.snapshot_bytes):
            self.residents.snapshot(partition, [key])

    def _users(self, partition: Partition, world: str | None) -> Iterable[Key]:
        worlds = partition.worlds() if world is None else [world]
        return (Key(w, u) for w in worlds for u in partition.users(w))

    # -- reading -----------------------------------------------------------------------

    def _read(self, command: c.Read) -> Any:
        if isinstance(command, c.Search):
            return self._search([command])[0]
        key = command.key
        partition = self.residents.partition(self.residents.number(key))
        resident = self.residents.get(partition, key, create=False)
        if resident is None:
            return "" if isinstance(command, c.Digest) else read(UserMemory(), command)
        if isinstance(command, c.Digest):
            self.residents.flush_touches(partition, [key])
        return read(resident.memory, command, resident.generation)

    def _search(self, commands: Sequence[c.Search]) -> list[list[Hit]]:
        """Answer the searches of one user, all from the same state; then record the readings."""
        key = commands[0].key
        number = self.residents.number(key)
        resident = self.residents.get(self.residents.partition(number), key, create=False)
        if resident is None:
            return run_searches(UserMemory(), commands)
        answers = run_searches(resident.memory, commands)
        read_at: dict[float, list[str]] = {}
        for command, hits in zip(commands, answers, strict=True):
            if command.touch and command.as_of is None and hits:
                read_at.setdefault(command.now, []).extend(hit.id for hit in hits)
        before = len(resident.touches)
        for now, ids in read_at.items():
            writer = Writer(resident.memory, now)
            writer.touch(ids, now)
            resident.touches += writer.events
            self.due.changed(key)
        if before < MAX_TOUCHES <= len(resident.touches):
            self._due.setdefault(number, []).append(key)
        return answers

    def _stats(self, key: Key) -> c.UserStats:
        partition = self.residents.partition(self.residents.number(key))
        resident = self.residents.get(partition, key, create=False)
        if resident is None:
            return c.UserStats()
        return stats_of(resident.memory, resident.generation)

    def _turns(self, command: c.Turns) -> c.TurnBatch:
        """Return the oldest pending turns of a user, and what goes before the first."""
        key = command.key
        partition = self.residents.partition(self.residents.number(key))
        ids = partition.pending_of(key, command.limit)
        resident = self.residents.get(partition, key, create=False) if ids else None
        if resident is None:
            return c.TurnBatch(0, [], [])
        return turn_batch(resident.memory, resident.generation, ids, command.history)

    def _due_users(self, command: c.DueUsers) -> c.DuePage:
        keys = self._each(lambda p: self._users(p, command.world))

        def load(key: Key) -> UserMemory | None:
            self.residents.make_room()  # all users of a world may be more than fit
            partition = self.residents.partition(self.residents.number(key))
            try:
                resident = self.residents.get(partition, key, create=False)
            except JournalDamagedError as exc:  # the others are looked after all the same
                log.error("not tended", world=key.world, user_id=key.user_id, error=str(exc))
                return None
            return None if resident is None else resident.memory

        return self.due.page(keys, command, load)

    def _pending(self, command: c.ListPending) -> list[c.PendingUser]:
        if command.quarantined:
            by_user: dict[Key, list[tuple[str, str]]] = {}
            for turn in self._each(lambda p: p.quarantined(command.world)):
                by_user.setdefault(turn.key, []).append((turn.turn_id, turn.error))
            return [
                c.PendingUser(k.world, k.user_id, [t for t, _ in ts], [e for _, e in ts])
                for k, ts in by_user.items()
            ]
        return [
            c.PendingUser(user.key.world, user.key.user_id, user.turn_ids)
            for user in self._each(
                lambda p: p.pending(command.limit, per_user=command.limit), partial=command.partial
            )
            if command.world in {None, user.key.world}
        ]

    # -- erasure and save slots --------------------------------------------------------

    def _forget(self, command: c.Forget) -> c.Erased:
        key = command.key
        partition = self.residents.partition(self.residents.number(key))
        if (seen := receipt_of(partition, command.mark)) is not None:
            return seen
        try:
            resident = self.residents.get(partition, key, create=False)
        except JournalDamagedError:
            resident = None  # what cannot be read must still be erasable
        texts = [] if resident is None else texts_of(resident.memory)
        self.residents.drop(key)
        clear_caches()
        return erase_user(self.residents.folder, partition, key, texts, command.mark)

    def _scrub(self, command: c.Scrub) -> bool:
        """Finish an erasure that a crash interrupted after its rows were gone."""
        if command.partition not in self.residents.numbers:
            return False
        remove_files(self.residents.folder, command.name)
        with self.residents.using(command.partition) as partition:
            partition.scrub()
        return True

    def _slot(self, command: c.Slot) -> int:
        count = 0
        self.due.world_changed(command.world)
        for number in self.residents.numbers:
            faults.reach("slot.before")
            with self.residents.using(number) as partition:
                count += self._slot_of(partition, number, command)
            faults.reach("slot.after")
        return count

    def _slot_of(self, partition: Partition, number: int, command: c.Slot) -> int:
        world, tag, operation = command.world, command.tag, command.operation
        here = [
            k
            for k in self.residents.keys()  # noqa: SIM118 (a copy: users are dropped below)
            if k.world == world and self.residents.number(k) == number
        ]
        if command.action == "pin":
            self.residents.flush_touches(partition, here)
        stale: list[Key] = []
        with partition.write() as txn:
            match command.action:
                case "pin":
                    count = txn.pin(world, tag, operation=operation)
                case "rewind":
                    count, stale = txn.rewind(world, tag, operation=operation), here
                case "unpin":
                    count = txn.unpin(world, tag)
                case "unfork":
                    stale = txn.erase_imported(world, operation)
                    count = len(stale)
                case _:
                    msg = f"unknown action {command.action!r}"
                    raise InternalError(msg)
        for key in stale:
            self.residents.drop(key)
        if command.action == "unfork" and stale:
            try:  # or a copy might outlast the user that it was made of
                partition.scrub()
            except (StorageFullError, OverloadedError) as exc:
                log.warning("copies may be left", partition=number, error=str(exc))
        return count

    def _import(self, command: c.ImportUser) -> bool:
        partition = self.residents.partition(self.residents.number(command.key))
        image = msgspec.msgpack.decode(command.image, type=UserImage)
        if command.digest:
            limit = self.settings.exact_limit
            saves.require_sound(image, command.key, command.digest, exact_limit=limit)
        faults.reach("import.before")
        with partition.write() as txn:
            txn.import_user(image, command.world, operation=command.operation)
        self.due.changed(command.key)
        self.residents.drop(command.key)
        faults.reach("import.after")
        return True

    def _check_file(self, number: int) -> list[str]:
        """Return what is wrong with a partition; that it cannot be opened is a line too."""
        try:
            with self.residents.using(number) as partition:
                return partition.check()
        except StorageError as exc:
            return [exc.message]

    def _check(self, key: Key) -> list[str]:
        """Return the broken invariants of one user; damage on disk is a line too."""
        partition = self.residents.partition(self.residents.number(key))
        try:
            resident = self.residents.get(partition, key, create=False)
        except ReverieError as exc:
            return [str(exc)]
        if resident is None:
            return []
        outbox = dict.fromkeys(partition.pending_of(key, MAX_PENDING), "pending")
        away = partition.quarantined(key.world)
        outbox |= {turn.turn_id: "quarantined" for turn in away if turn.key == key}
        open_ = {
            turn.id: turn.status
            for turn in resident.memory.graph.nodes()
            if isinstance(turn, n.Message) and turn.status in {"pending", "quarantined"}
        }
        strange = sorted(i for i in outbox.keys() | open_ if outbox.get(i) != open_.get(i))
        return check_memory(resident.memory) + [
            f"turn {i} is {open_.get(i, 'done')}, but {outbox.get(i, 'not')} in the outbox"
            for i in strange
        ]


def open_shard(
    folder: Path,
    numbers: Iterable[int],
    partition_count: int,
    settings: ShardSettings,
    owner: str,
    *,
    held_by: str | None = None,
    create: bool = True,
) -> Shard:
    """Claim partitions of a data folder (see `open_partitions`), and return the shard of them."""
    partitions = open_partitions(folder, numbers, owner, held_by=held_by, create=create)
    return Shard(folder, partitions, partition_count, settings)


def _internal(exc: Exception) -> InternalError:
    log.error("write failed", trace=format_exc())
    error = InternalError(f"{type(exc).__name__}: {exc}")
    error.__cause__ = exc
    return error
