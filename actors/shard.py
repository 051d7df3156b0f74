"""A shard: the single owner of some partitions and of the users in them.

A plain class, single-threaded, without a clock, a model or a thread of its own; the inline backend
calls it in its process and the Ray backend wraps it in an actor. The hot path of a write batch:

    for each partition: BEGIN (checks the owner epoch)
        for each command: request id seen? -> first answer
                          apply its events to the state, append them to the journal
    COMMIT, synced: the moment of durability
    only now are the answers returned

States are changed before the commit, so that the commands of one batch see each other and an
event that cannot be applied is never journaled. Nobody can read in between; if the transaction
fails, the changed states are thrown away and read again from disk.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from traceback import format_exc
from typing import Any

import msgspec
import structlog

from reverie.actors import commands as c
from reverie.actors.erasure import erase_user
from reverie.actors.reads import read
from reverie.actors.writes import Outbox, write
from reverie.memory_graph import events
from reverie.memory_graph import nodes as n
from reverie.memory_graph.apply import apply
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.errors import (
    InternalError,
    InvariantError,
    JournalDamagedError,
    RequestReusedError,
    ReverieError,
    StaleGenerationError,
    StorageError,
    StorageFailedError,
)
from reverie.memory_graph.events import decode_event, encode_event
from reverie.memory_graph.ids import Key, key_hash, partition_of
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store import Loaded, Partition, Transaction, UserImage
from reverie.memory_graph.write import Writer

log = structlog.get_logger(__name__)

MAX_TOUCHES = 64  # readings kept in memory per user before they are journaled
PASSIVATION_TAIL_BYTES = 64 * 1024  # a longer tail is snapshotted when its user leaves memory


class ShardSettings(msgspec.Struct, frozen=True):
    """Limits of one shard.

    Attributes:
        byte_budget: estimated bytes of resident users; the least recently used leave above it.
        exact_limit: rows up to which vector search is exact.
        snapshot_min_bytes: a journal tail shorter than this never causes a snapshot.
    """

    byte_budget: int = 2 * 1024**3
    exact_limit: int = 4000
    snapshot_min_bytes: int = 1024 * 1024


class Resident:
    """A user in memory. `touches` are readings that its state knows and the journal does not yet:
    applied at once, so that answers do not depend on when they are journaled."""

    __slots__ = (
        "generation",
        "index_seq",
        "memory",
        "size_bytes",
        "snapshot_bytes",
        "tail_bytes",
        "touches",
    )

    def __init__(self, memory: UserMemory, generation: int) -> None:
        self.memory = memory
        self.generation = generation
        self.tail_bytes = 0
        self.snapshot_bytes = 0
        self.size_bytes = 0
        self.index_seq = -1  # at which the saved vector index was up to date
        self.touches: list[events.Event] = []


class Shard:
    """Owns partitions; see the module's text."""

    def __init__(
        self,
        folder: Path,
        partitions: Mapping[int, Partition],
        partition_count: int,
        settings: ShardSettings,
        owner: str = "",
    ) -> None:
        """Take ownership of open partitions.

        Args:
            folder: the data folder (for index files and erasure).
            partitions: partition number -> open partition.
            partition_count: how many partitions the data folder has.
            settings: limits.
            owner: who owns them, for people; used again when one has to be reopened.
        """
        self.owner = owner
        self._failed: set[int] = set()  # partitions to reopen, after an input/output error
        self.folder = folder
        self.partitions = dict(partitions)
        self.partition_count = partition_count
        self.settings = settings
        self._residents: OrderedDict[Key, Resident] = OrderedDict()
        self._resident_bytes = 0

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
                writes.setdefault(partition_of(command.key, self.partition_count), []).append(i)
            else:
                others.append(i)
        for number, places in writes.items():
            self._write_all(number, [(i, batch[i]) for i in places], answers)  # type: ignore[misc]
        for i in others:
            try:
                answers[i] = self._other(batch[i])
            except ReverieError as exc:
                answers[i] = exc
                command = batch[i]
                if isinstance(exc, StorageFailedError) and isinstance(command, c.Command):
                    self._failed.add(self._number(command.key))
            except Exception as exc:  # noqa: BLE001 (a fault of ours must not stop the shard)
                log.error("command failed", command=type(batch[i]).__name__, trace=format_exc())
                answers[i] = InternalError(f"{type(exc).__name__}: {exc}")
        self._make_room()
        return answers

    def _other(self, command: c.AnyCommand) -> Any:
        match command:
            case c.Stats():
                return self._stats(command.key)
            case c.Turns():
                return self._turns(command)
            case c.Read():
                return self._read(command)
            case c.Forget():
                return self._forget(command.key)
            case c.ListUsers():
                keys = [k for p in self.partitions.values() for k in self._users(p, command.world)]
                return sorted((k.world, k.user_id) for k in keys)
            case c.ListPending():
                return self._pending(command)
            case c.Slot():
                return self._slot(command)
            case c.ExportSlot():
                return [
                    msgspec.msgpack.encode(image)
                    for p in self.partitions.values()
                    for image in p.export_pin(command.world, command.tag)
                ]
            case c.ImportUser():
                return self._import(command)
            case c.CheckShard():
                return [line for p in self.partitions.values() for line in p.check()]
            case c.Flush():
                return self._flush(snapshot=command.snapshot)
            case _:
                msg = f"unknown command {type(command).__name__}"
                raise InternalError(msg)

    def close(self) -> None:
        """Journal pending touches and close the partitions. Safe to call twice."""
        if not self.partitions:
            return
        with suppress(StorageError):  # what was acknowledged is on disk; touches are not
            self._flush(snapshot=False)
        for partition in self.partitions.values():
            partition.close()
        self.partitions = {}
        self._residents.clear()

    # -- writing -----------------------------------------------------------------------

    def _write_all(
        self, number: int, commands: Sequence[tuple[int, c.Write]], answers: list[Any]
    ) -> None:
        touched: set[Key] = set()
        try:
            partition = self._partition(number)
            with partition.write() as txn:
                for i, command in commands:
                    touched.add(command.key)
                    try:
                        answers[i] = self._write_one(partition, txn, command)
                    except (StorageError, InternalError):
                        raise
                    except ReverieError as exc:
                        answers[i] = exc
        except Exception as exc:  # noqa: BLE001 (whatever it is, nothing was acknowledged)
            error = exc if isinstance(exc, ReverieError) else _internal(exc)
            for key in touched:
                self._drop(key)
            if isinstance(exc, StorageFailedError):
                self._failed.add(number)
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
        if isinstance(error, StorageError | MemoryError) or len(commands) == 1:
            for i, _ in commands:
                answers[i] = error
            log.error("writes failed", partition=number, error=str(error), writes=len(commands))
            return
        for single in commands:
            self._write_all(number, [single], answers)

    def _write_one(self, partition: Partition, txn: Transaction, command: c.Write) -> Any:
        fingerprint = b""
        if command.request_id is not None:
            fingerprint = _fingerprint(command)
            if (seen := _result_of(txn, command, fingerprint)) is not None:
                return msgspec.msgpack.decode(seen, type=c.ANSWERS[type(command)])
        key = command.key
        resident = self._resident(
            partition, key, create=not isinstance(command, c.Settle | c.FailTurn)
        )
        if resident is None:
            return c.Settled([], 0)  # the user was forgotten meanwhile
        writer, box = Writer(resident.memory, command.at), Outbox()
        try:
            answer = write(writer, command, resident.generation, txn, box)
        except ReverieError:
            if writer.is_changed:  # perhaps half applied: read it again, from this transaction
                if resident.touches:
                    txn.append(key, [encode_event(event) for event in resident.touches])
                self._drop(key)
            raise
        self._append(txn, key, resident, writer.events)
        box.apply(txn, key)
        if command.request_id is not None:
            kept_as = f"{_scope(command)}{command.request_id}"
            txn.keep_result(kept_as, key, fingerprint, msgspec.msgpack.encode(answer))
        return answer

    @staticmethod
    def _append(
        txn: Transaction, key: Key, resident: Resident, fresh: Sequence[events.Event] = ()
    ) -> None:
        """Journal the readings that wait, then what a write has just applied."""
        rows = [encode_event(event) for event in (*resident.touches, *fresh)]
        resident.touches.clear()
        if not rows:
            return
        head = txn.append(key, rows)
        if head != resident.memory.seq:
            msg = f"journal head {head} and state {resident.memory.seq} of {key} differ"
            raise InvariantError(msg)
        resident.tail_bytes += sum(map(len, rows))

    def _after_write(self, partition: Partition, key: Key) -> None:
        resident = self._residents.get(key)
        if resident is None:
            return
        if resident.memory.seq == 0:  # nothing was written: this user does not exist
            self._drop(key)
            return
        self._resize(resident)
        if resident.tail_bytes > max(self.settings.snapshot_min_bytes, resident.snapshot_bytes):
            self._snapshot(partition, [key])

    def _snapshot(self, partition: Partition, keys: Iterable[Key]) -> None:
        """Write snapshots; a failure costs only time at the next opening, never data."""
        try:
            with partition.write() as txn:
                for key in keys:
                    resident = self._residents[key]
                    blob = encode_snapshot(resident.memory)
                    txn.save_snapshot(
                        key, resident.memory.seq, blob, embedder=resident.memory.embedder or ""
                    )
                    resident.snapshot_bytes, resident.tail_bytes = len(blob), 0
        except ReverieError as exc:
            log.warning("snapshot failed", partition=partition.path.name, error=str(exc))
            for key in keys:  # measure again what is on disk at the next activation
                self._drop(key)

    # -- residency ---------------------------------------------------------------------

    def _partition(self, number: int) -> Partition:
        """Return an open partition; one that failed is recovered from disk first."""
        partition = self.partitions.get(number)
        if partition is None:
            msg = f"partition {number} is not owned by this shard"
            raise InternalError(msg)
        if number in self._failed:
            for key in [k for k in self._residents if self._number(k) == number]:
                self._drop(key)
            with suppress(StorageError):
                partition.close()
            partition = Partition.open(partition.path, index=number, owner=self.owner)
            self.partitions[number] = partition
            self._failed.discard(number)
        return partition

    def _number(self, key: Key) -> int:
        return partition_of(key, self.partition_count)

    def _users(self, partition: Partition, world: str | None) -> Iterable[Key]:
        worlds = partition.worlds() if world is None else [world]
        return (Key(w, u) for w in worlds for u in partition.users(w))

    def _resident(self, partition: Partition, key: Key, *, create: bool) -> Resident | None:
        """Return the user's state, from memory or from disk; None when it does not exist."""
        resident = self._residents.get(key)
        if resident is not None:
            self._residents.move_to_end(key)
            return resident
        loaded = partition.load(key)
        if loaded is None:
            if not create:
                return None
            fresh = UserMemory(exact_limit=self.settings.exact_limit)
            resident = Resident(fresh, partition.next_generation(key))
        else:
            resident = self._activate(key, loaded)
        self._residents[key] = resident
        self._resize(resident)
        return resident

    def _activate(self, key: Key, loaded: Loaded) -> Resident:
        """Build a state from a snapshot and the events after it."""
        for warning in loaded.warnings:
            log.warning("snapshot passed over", world=key.world, user_id=key.user_id, why=warning)
        limit = self.settings.exact_limit
        seq = loaded.snapshot_seq
        try:
            memory = UserMemory(exact_limit=limit)
            if loaded.snapshot is not None:
                memory = decode_snapshot(loaded.snapshot, exact_limit=limit)
            for seq, payload in loaded.tail:  # noqa: B007 (named in the error)
                apply(memory, decode_event(payload))
        except (ReverieError, msgspec.DecodeError) as exc:
            msg = (
                f"the journal of user {key.user_id!r} in world {key.world!r} cannot be applied at "
                f"sequence {seq}: {exc}"
            )
            raise JournalDamagedError(msg, world=key.world, user_id=key.user_id, seq=seq) from exc
        memory.seq = loaded.seq
        resident = Resident(memory, loaded.generation)
        self._load_index(key, resident)
        resident.snapshot_bytes = len(loaded.snapshot or b"")
        resident.tail_bytes = sum(len(payload) for _, payload in loaded.tail)
        return resident

    def _resize(self, resident: Resident) -> None:
        self._resident_bytes -= resident.size_bytes
        resident.size_bytes = resident.memory.size_bytes
        self._resident_bytes += resident.size_bytes

    def _drop(self, key: Key) -> None:
        """Forget a state in memory; the disk has the truth."""
        resident = self._residents.pop(key, None)
        if resident is not None:
            self._resident_bytes -= resident.size_bytes

    def _make_room(self) -> None:
        """Let the least recently used users leave memory until the byte budget is kept."""
        if self._resident_bytes <= self.settings.byte_budget:
            return
        leaving: dict[int, list[Key]] = {}
        freed = 0
        target = self._resident_bytes - self.settings.byte_budget * 15 // 16
        for key, resident in self._residents.items():
            if freed >= target or freed + resident.size_bytes >= self._resident_bytes:
                break
            freed += resident.size_bytes
            leaving.setdefault(partition_of(key, self.partition_count), []).append(key)
        for number, keys in leaving.items():
            try:
                self._passivate(self._partition(number), keys)
            except StorageError as exc:  # what was answered already stays true
                log.warning("no room made", partition=number, error=str(exc))

    def _passivate(self, partition: Partition, keys: Sequence[Key]) -> None:
        self._flush_touches(partition, keys)
        long = [
            key
            for key in keys
            if (resident := self._residents.get(key)) is not None
            and resident.tail_bytes > max(PASSIVATION_TAIL_BYTES, resident.snapshot_bytes // 4)
        ]
        if long:
            self._snapshot(partition, long)
        for key in keys:
            if (resident := self._residents.get(key)) is not None:
                self._save_index(key, resident)
            self._drop(key)

    def _flush_touches(self, partition: Partition, keys: Iterable[Key]) -> None:
        waiting = [k for k in keys if (r := self._residents.get(k)) is not None and r.touches]
        if not waiting:
            return
        try:
            with partition.write() as txn:
                for key in waiting:
                    self._append(txn, key, self._residents[key])
        except (StorageError, InvariantError) as exc:
            log.warning("touches lost", partition=partition.path.name, error=str(exc))
            for key in waiting:
                self._drop(key)

    def _flush(self, *, snapshot: bool) -> c.ShardStats:
        by_partition: dict[int, list[Key]] = {}
        for key in self._residents:
            by_partition.setdefault(partition_of(key, self.partition_count), []).append(key)
        for number, keys in by_partition.items():
            partition = self._partition(number)
            self._flush_touches(partition, keys)
            for key in keys:
                if (resident := self._residents.get(key)) is not None:
                    self._save_index(key, resident)
            if snapshot:
                long = [k for k in keys if k in self._residents and self._residents[k].tail_bytes]
                if long:
                    self._snapshot(partition, long)
        return c.ShardStats(len(self._residents), self._resident_bytes, sorted(self.partitions))

    # -- the vector index of large users, beside the snapshots -------------------------

    def _index_path(self, key: Key) -> Path:
        return self.folder / "indices" / f"{key_hash(key).hex()}.hnsw"

    def _load_index(self, key: Key, resident: Resident) -> None:
        vectors = resident.memory.vectors
        if vectors is None or len(vectors) <= self.settings.exact_limit:
            return
        path = self._index_path(key)
        with suppress(OSError, ReverieError):
            digest = path.with_suffix(".sum").read_text(encoding="ascii").strip()
            if vectors.load_index(path, digest):
                resident.index_seq = resident.memory.seq

    def _save_index(self, key: Key, resident: Resident) -> None:
        """Keep an approximate index so that it need not be rebuilt; losing it costs only time."""
        vectors = resident.memory.vectors
        if vectors is None or len(vectors) <= self.settings.exact_limit:
            return
        if resident.index_seq == resident.memory.seq or vectors.backlog:
            return
        path = self._index_path(key)
        try:
            path.with_suffix(".sum").write_text(vectors.save_index(path), encoding="ascii")
            resident.index_seq = resident.memory.seq
        except OSError as exc:
            log.warning("index not saved", path=path.name, error=str(exc))

    # -- reading -----------------------------------------------------------------------

    def _read(self, command: c.Read) -> Any:
        key = command.key
        partition = self._partition(self._number(key))
        resident = self._resident(partition, key, create=False)
        if resident is None:
            if isinstance(command, c.Digest):
                return ""
            return read(UserMemory(), command)
        if isinstance(command, c.Digest):
            self._flush_touches(partition, [key])
        answer = read(resident.memory, command)
        if isinstance(command, c.Search) and command.touch and command.as_of is None and answer:
            writer = Writer(resident.memory, command.now)
            writer.touch([hit.id for hit in answer], command.now)
            resident.touches += writer.events
            if len(resident.touches) >= MAX_TOUCHES:
                self._flush_touches(partition, [key])
        return answer

    def _stats(self, key: Key) -> c.UserStats:
        partition = self._partition(self._number(key))
        resident = self._resident(partition, key, create=False)
        if resident is None:
            return c.UserStats()
        memory = resident.memory
        nodes = list(memory.graph.nodes())
        turns = [m.status for m in nodes if isinstance(m, n.Message)]
        memories = [m.status for m in nodes if isinstance(m, n.Memory)]
        return c.UserStats(
            generation=resident.generation,
            seq=memory.seq,
            messages=len(turns),
            memories=len(memories),
            active=memories.count("active"),
            entities=sum(isinstance(m, n.Entity) for m in nodes),
            relations=len(memory.graph.relations),
            summaries=sum(isinstance(m, n.Summary) for m in nodes),
            sessions=len(memory.graph.sessions),
            pending=turns.count("pending"),
            quarantined=turns.count("quarantined"),
            vectors=0 if memory.vectors is None else len(memory.vectors),
            embedder=memory.embedder,
            bytes=memory.size_bytes,
        )

    def _turns(self, command: c.Turns) -> c.TurnBatch:
        """Return the oldest pending turns of a user, and what was said before the first."""
        key = command.key
        partition = self._partition(self._number(key))
        ids = partition.pending_of(key, command.limit)
        resident = self._resident(partition, key, create=False) if ids else None
        if resident is None:
            return c.TurnBatch(0, [], [])
        graph = resident.memory.graph
        turns = [
            m for i in ids if isinstance(m := graph.node(i), n.Message) and m.status == "pending"
        ]
        history: list[n.Message] = []
        here = turns[0].id if turns else None
        while here is not None and len(history) < command.history:
            here = next((head for head, _ in graph.out(here, n.PREVIOUS)), None)
            if here is not None:
                history.append(graph.get(here, n.Message))
        views = [_turn_view(resident.memory, m) for m in turns]
        return c.TurnBatch(
            resident.generation, views, [_turn_view(resident.memory, m) for m in reversed(history)]
        )

    def _pending(self, command: c.ListPending) -> list[c.PendingUser]:
        found: list[c.PendingUser] = []
        for partition in self.partitions.values():
            if command.quarantined:
                by_user: dict[Key, list[tuple[str, str]]] = {}
                for turn in partition.quarantined(command.world):
                    by_user.setdefault(turn.key, []).append((turn.turn_id, turn.error))
                found += [
                    c.PendingUser(k.world, k.user_id, [t for t, _ in ts], [e for _, e in ts])
                    for k, ts in by_user.items()
                ]
            else:
                found += [
                    c.PendingUser(p.key.world, p.key.user_id, p.turn_ids)
                    for p in partition.pending(command.limit, per_user=command.limit)
                    if command.world in {None, p.key.world}
                ]
        return found

    # -- erasure and save slots --------------------------------------------------------

    def _forget(self, key: Key) -> c.Erased:
        partition = self._partition(self._number(key))
        try:
            resident = self._resident(partition, key, create=False)
        except JournalDamagedError:
            resident = None  # what cannot be read must still be erasable
        texts = [] if resident is None else _texts(resident.memory)
        self._drop(key)
        return erase_user(self.folder, partition, key, texts, self._index_path(key))

    def _slot(self, command: c.Slot) -> int:
        count = 0
        for partition in self.partitions.values():
            here = [
                k
                for k in self._residents
                if k.world == command.world
                and self.partitions.get(partition_of(k, self.partition_count)) is partition
            ]
            if command.action == "pin":
                self._flush_touches(partition, here)
            with partition.write() as txn:
                match command.action:
                    case "pin":
                        count += txn.pin(command.world, command.tag, operation=command.operation)
                    case "rewind":
                        count += txn.rewind(command.world, command.tag, operation=command.operation)
                    case "unpin":
                        count += txn.unpin(command.world, command.tag)
                    case _:
                        msg = f"unknown action {command.action!r}"
                        raise InternalError(msg)
            if command.action == "rewind":
                for key in here:
                    self._drop(key)
        return count

    def _import(self, command: c.ImportUser) -> bool:
        partition = self._partition(partition_of(command.key, self.partition_count))
        image = msgspec.msgpack.decode(command.image, type=UserImage)
        with partition.write() as txn:
            txn.import_user(image, command.world, operation=command.operation)
        self._drop(command.key)
        return True

    def check_user(self, key: Key) -> list[str]:
        """Return the broken invariants of one user; damage on disk is a line too."""
        partition = self._partition(self._number(key))
        try:
            resident = self._resident(partition, key, create=False)
        except ReverieError as exc:
            return [str(exc)]
        return [] if resident is None else check_memory(resident.memory)


def open_shard(
    folder: Path, numbers: Iterable[int], partition_count: int, settings: ShardSettings, owner: str
) -> Shard:
    """Open partitions of a data folder, claiming each, and return the shard that owns them.

    Raises:
        StorageError: a partition cannot be opened. Those opened before it are closed again.
    """
    opened: dict[int, Partition] = {}
    try:
        for number in numbers:
            path = folder / "partitions" / f"p{number:04d}.db"
            opened[number] = Partition.open(path, index=number, owner=owner)
    except BaseException:
        for partition in opened.values():
            partition.close()
        raise
    return Shard(folder, opened, partition_count, settings, owner)


def _fingerprint(command: c.Write) -> bytes:
    """Return what identifies a request: everything but its time and its vectors, which may
    differ when the same request is made again."""
    fields = msgspec.to_builtins(command)
    for name in ("at", "embedder", "dim", "vector", "vectors"):
        fields.pop(name, None)
    for draft in (fields.get("draft", {}), *fields.get("turns", ())):
        draft.pop("vector", None)
    return blake2b(msgspec.msgpack.encode(fields, order="deterministic"), digest_size=16).digest()


def _scope(command: c.Write) -> str:
    """Return what request ids are stored with: two users may choose the same one."""
    return f"{key_hash(command.key).hex()}:"


def _result_of(txn: Transaction, command: c.Write, fingerprint: bytes) -> bytes | None:
    """Return the result of an earlier request of the same id, or None.

    Raises:
        RequestReusedError, StaleGenerationError: as `Transaction.result_of`.
    """
    scope = _scope(command)
    try:
        return txn.result_of(f"{scope}{command.request_id}", fingerprint)
    except (RequestReusedError, StaleGenerationError) as exc:
        msg = exc.message.replace(scope, "")
        raise type(exc)(msg, request_id=command.request_id) from None


def _internal(exc: Exception) -> InternalError:
    log.error("write failed", trace=format_exc())
    error = InternalError(f"{type(exc).__name__}: {exc}")
    error.__cause__ = exc
    return error


def _turn_view(memory: UserMemory, turn: n.Message) -> c.TurnView:
    return c.TurnView(
        turn.id, memory.display(turn.session), turn.speaker, turn.role, turn.text, turn.said_at
    )


def _texts(memory: UserMemory) -> list[str]:
    return [
        node.text
        for node in memory.graph.nodes()
        if isinstance(node, n.Memory | n.Message | n.Summary)
    ]
