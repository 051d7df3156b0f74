"""Which users are in memory: loaded on first use, and let go by least recent use.

A `Resident` is a user's state with what is known of its copy on disk. The disk always has the
truth: dropping a resident loses at most readings that were not journaled yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from reverie.memory_graph import events
from reverie.memory_graph.apply import apply
from reverie.memory_graph.errors import (
    InternalError,
    InvariantError,
    JournalDamagedError,
    ReverieError,
    StorageError,
    StorageFailedError,
)
from reverie.memory_graph.events import decode_event, encode_event
from reverie.memory_graph.ids import Key, key_hash, partition_of
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store import Loaded, Partition, Transaction

log = structlog.get_logger(__name__)

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
        self.touches: list[events.Event] = []


class Residents:
    """The users in memory of one shard, and the open partitions that they come from.

    Attributes:
        folder: the data folder.
        partitions: partition number -> open partition.
        failed: partitions to reopen before they are used again, after an input/output error.
        size_bytes: estimated bytes of all users in memory.
    """

    def __init__(
        self,
        folder: Path,
        partitions: Mapping[int, Partition],
        partition_count: int,
        settings: ShardSettings,
        owner: str,
    ) -> None:
        self.folder = folder
        self.partitions = dict(partitions)
        self.failed: set[int] = set()
        self.size_bytes = 0
        self._partition_count = partition_count
        self._settings = settings
        self._owner = owner
        self._users: OrderedDict[Key, Resident] = OrderedDict()

    def __len__(self) -> int:
        return len(self._users)

    def keys(self) -> list[Key]:
        """Return the users in memory, least recently used first."""
        return list(self._users)

    def all(self) -> list[Resident]:
        """Return the states in memory, least recently used first."""
        return list(self._users.values())

    def peek(self, key: Key) -> Resident | None:
        """Return a user that is in memory, without loading or touching it."""
        return self._users.get(key)

    # -- partitions --------------------------------------------------------------------

    def partition(self, number: int) -> Partition:
        """Return an open partition; one that failed is recovered from disk first."""
        partition = self.partitions.get(number)
        if partition is None:
            msg = f"partition {number} is not owned by this shard"
            raise InternalError(msg)
        if number in self.failed or partition.is_broken:
            self.failed.add(number)  # also while it cannot be opened
            for key in [k for k in self._users if self.number(k) == number]:
                self.drop(key)
            with suppress(StorageError):
                partition.close()
            partition = Partition.open(partition.path, index=number, owner=self._owner)
            self.partitions[number] = partition
            self.failed.discard(number)
        return partition

    @contextmanager
    def using(self, number: int) -> Iterator[Partition]:
        """Give an open partition to the body; when it fails there, it is reopened next time."""
        try:
            yield self.partition(number)
        except StorageFailedError:
            self.failed.add(number)
            raise

    def number(self, key: Key) -> int:
        """Return the number of the partition that owns a user."""
        return partition_of(key, self._partition_count)

    # -- in and out of memory ----------------------------------------------------------

    def get(self, partition: Partition, key: Key, *, create: bool) -> Resident | None:
        """Return the user's state, from memory or from disk; None when it does not exist."""
        resident = self._users.get(key)
        if resident is not None:
            self._users.move_to_end(key)
            return resident
        loaded = partition.load(key)
        if loaded is None:
            if not create:
                return None
            fresh = UserMemory(exact_limit=self._settings.exact_limit)
            resident = Resident(fresh, partition.next_generation(key))
        else:
            resident = self._activate(key, loaded)
        self._users[key] = resident
        self.resize(resident)
        return resident

    def _activate(self, key: Key, loaded: Loaded) -> Resident:
        """Build a state from a snapshot and the events after it."""
        for warning in loaded.warnings:
            log.warning("snapshot passed over", world=key.world, user_id=key.user_id, why=warning)
        limit = self._settings.exact_limit
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

    def resize(self, resident: Resident) -> None:
        """Estimate anew what a resident takes, after a change."""
        self.size_bytes -= resident.size_bytes
        resident.size_bytes = resident.memory.size_bytes
        self.size_bytes += resident.size_bytes

    def drop(self, key: Key) -> None:
        """Forget a state in memory; the disk has the truth."""
        resident = self._users.pop(key, None)
        if resident is not None:
            self.size_bytes -= resident.size_bytes

    def make_room(self) -> None:
        """Let the least recently used users leave memory until the byte budget is kept."""
        if self.size_bytes <= self._settings.byte_budget:
            return
        leaving: dict[int, list[Key]] = {}
        freed = 0
        target = self.size_bytes - self._settings.byte_budget * 15 // 16
        for key, resident in self._users.items():
            if freed >= target or freed + resident.size_bytes >= self.size_bytes:
                break
            freed += resident.size_bytes
            leaving.setdefault(self.number(key), []).append(key)
        for number, keys in leaving.items():
            try:
                with self.using(number) as partition:
                    self._passivate(partition, keys)
            except StorageError as exc:  # what was answered already stays true
                log.warning("no room made", partition=number, error=str(exc))

    def _passivate(self, partition: Partition, keys: Sequence[Key]) -> None:
        self.flush_touches(partition, keys)
        long = [
            key
            for key in keys
            if (resident := self._users.get(key)) is not None
            and resident.tail_bytes > max(PASSIVATION_TAIL_BYTES, resident.snapshot_bytes // 4)
        ]
        if long:
            self.snapshot(partition, long)
        for key in keys:
            if (resident := self._users.get(key)) is not None:
                self._save_index(key, resident)
            self.drop(key)

    def flush_touches(self, partition: Partition, keys: Iterable[Key]) -> None:
        """Journal the readings of some users; a failure loses readings, never a write."""
        waiting = [k for k in keys if (r := self._users.get(k)) is not None and r.touches]
        if not waiting:
            return
        try:
            with partition.write() as txn:
                for key in waiting:
                    self.append(txn, key, self._users[key])
        except (StorageError, InvariantError) as exc:
            log.warning("touches lost", partition=partition.path.name, error=str(exc))
            self._pass_over(exc, waiting)

    def _pass_over(self, exc: Exception, keys: Sequence[Key]) -> None:
        """After an error that costs nobody an answer: what is on disk is read again at the next
        use, from a reopened partition if it failed."""
        if isinstance(exc, StorageFailedError):
            self.failed.update(map(self.number, keys))
        for key in keys:
            self.drop(key)

    def flush(self, *, snapshot: bool) -> None:
        """Journal pending readings and save indices; with `snapshot`, also write a snapshot of
        every user whose journal has a tail."""
        by_partition: dict[int, list[Key]] = {}
        for key in self._users:
            by_partition.setdefault(self.number(key), []).append(key)
        for number, keys in by_partition.items():
            with self.using(number) as partition:
                self.flush_touches(partition, keys)
                for key in keys:
                    if (resident := self._users.get(key)) is not None:
                        self._save_index(key, resident)
                if snapshot:
                    long = [k for k in keys if k in self._users and self._users[k].tail_bytes]
                    if long:
                        self.snapshot(partition, long)

    # -- the way to the disk -----------------------------------------------------------

    @staticmethod
    def append(
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

    def snapshot(self, partition: Partition, keys: Sequence[Key]) -> None:
        """Write snapshots; a failure costs only time at the next opening, never data."""
        try:
            with partition.write() as txn:
                for key in keys:
                    resident = self._users[key]
                    blob = encode_snapshot(resident.memory)
                    txn.save_snapshot(
                        key, resident.memory.seq, blob, embedder=resident.memory.embedder or ""
                    )
                    resident.snapshot_bytes, resident.tail_bytes = len(blob), 0
        except ReverieError as exc:
            log.warning("snapshot failed", partition=partition.path.name, error=str(exc))
            self._pass_over(exc, keys)  # measure again what is on disk at the next activation

    # -- the vector index of large users, beside the snapshots -------------------------

    def index_path(self, key: Key) -> Path:
        """Return where a user's vector index is kept, if it has one."""
        return self.folder / "indices" / f"{key_hash(key).hex()}.hnsw"

    def _load_index(self, key: Key, resident: Resident) -> None:
        vectors = resident.memory.vectors
        if vectors is None or len(vectors) <= self._settings.exact_limit:
            return
        path = self.index_path(key)
        with suppress(OSError, ReverieError):
            digest = path.with_suffix(".sum").read_text(encoding="ascii").strip()
            vectors.load_index(path, digest)

    def _save_index(self, key: Key, resident: Resident) -> None:
        """Keep an approximate index so that it need not be rebuilt; losing it costs only time."""
        vectors = resident.memory.vectors
        if vectors is None or len(vectors) <= self._settings.exact_limit:
            return
        if not vectors.is_changed or vectors.backlog:
            return
        path = self.index_path(key)
        try:
            path.with_suffix(".sum").write_text(vectors.save_index(path), encoding="ascii")
        except OSError as exc:
            log.warning("index not saved", path=path.name, error=str(exc))

    def close(self) -> None:
        """Journal pending readings and close the partitions."""
        with suppress(StorageError):  # what was acknowledged is on disk; readings are not
            self.flush(snapshot=False)
        for partition in self.partitions.values():
            partition.close()
        self.partitions = {}
        self._users.clear()
