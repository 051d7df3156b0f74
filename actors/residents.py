"""Which users are in memory: loaded on first use, and let go by least recent use.

A `Resident` is a user's state with what is known of its copy on disk. The disk always has the
truth: dropping a resident loses at most readings that were not journaled yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import msgspec
import structlog

from reverie.memory_graph import events, faults
from reverie.memory_graph.apply import apply
from reverie.memory_graph.errors import (
    DataFolderError,
    FencedError,
    InternalError,
    InvariantError,
    JournalDamagedError,
    ReverieError,
    StorageError,
    StorageFailedError,
)
from reverie.memory_graph.events import decode_event, encode_event
from reverie.memory_graph.ids import Key, key_hash, partition_of
from reverie.memory_graph.snapshot import SNAPSHOT_FORMAT, decode_snapshot, encode_snapshot
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store import Loaded, Partition, Transaction

log = structlog.get_logger(__name__)

INDEX_FORMAT = 1  # of a vector index and its digest, which stands beside it after this number
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


def build_state(key: Key, loaded: Loaded, *, exact_limit: int) -> UserMemory:
    """Return the state that a snapshot and the events after it add up to.

    Raises:
        DataFolderError: the snapshot was written by a newer version.
        JournalDamagedError: one of them cannot be applied.
    """
    seq = loaded.snapshot_seq
    try:
        memory = UserMemory(exact_limit=exact_limit)
        if loaded.snapshot is not None:
            memory = decode_snapshot(loaded.snapshot, exact_limit=exact_limit)
        for seq, payload in loaded.tail:  # noqa: B007 (named in the error)
            apply(memory, decode_event(payload))
    except DataFolderError as exc:
        msg = f"user {key.user_id!r} in world {key.world!r}: {exc.message}"
        raise DataFolderError(msg, **exc.details) from exc
    except (ReverieError, msgspec.DecodeError) as exc:
        msg = (
            f"the journal of user {key.user_id!r} in world {key.world!r} cannot be applied at "
            f"sequence {seq}: {exc}"
        )
        raise JournalDamagedError(msg, world=key.world, user_id=key.user_id, seq=seq) from exc
    memory.seq = loaded.seq
    return memory


class Residents:
    """The users in memory of one shard, and the open partitions that they come from.

    Attributes:
        folder: the data folder.
        partitions: partition number -> open partition.
        unopened: partition number -> what stands for one that is damaged or gone.
        failed: partitions to reopen before they are used again, after an input/output error.
        size_bytes: estimated bytes of all users in memory.
    """

    def __init__(
        self,
        folder: Path,
        partitions: Mapping[int, Partition | Unopened],
        partition_count: int,
        settings: ShardSettings,
    ) -> None:
        self.folder = folder
        self.partitions = {n: p for n, p in partitions.items() if isinstance(p, Partition)}
        self.unopened = {n: p for n, p in partitions.items() if isinstance(p, Unopened)}
        self.failed: set[int] = set()
        self.size_bytes = 0
        self._partition_count = partition_count
        self._settings = settings
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
        """Return an open partition; one that failed is recovered from disk first.

        Raises:
            StorageError: it is damaged or gone.
        """
        partition = self.partitions.get(number) or self.unopened.get(number)
        if partition is None:
            msg = f"partition {number} is not owned by this shard"
            raise InternalError(msg)
        if number in self.failed or partition.is_broken:
            self.failed.add(number)  # also while it cannot be opened
            for key in [k for k in self._users if self.number(k) == number]:
                self.drop(key)
            again = partition.reopen(index=number)
            self.partitions[number] = again
            self.unopened.pop(number, None)
            self.failed.discard(number)
            return again
        return cast("Partition", partition)

    @property
    def numbers(self) -> list[int]:
        """The partitions of this shard, also those that cannot be opened; none once closed."""
        return sorted([*self.partitions, *self.unopened])

    def usable(self) -> list[int]:
        """Return the partitions of this shard without those that are damaged or gone."""
        for number in list(self.unopened):
            with suppress(StorageError):
                self.partition(number)
        return sorted(self.partitions)

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
        memory = build_state(key, loaded, exact_limit=self._settings.exact_limit)
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
            except Exception as exc:  # noqa: BLE001 (what was answered already stays true)
                self._pass_over("no room made", exc, keys)

    def _passivate(self, partition: Partition, keys: Sequence[Key]) -> None:
        faults.reach("passivation.before")
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
        faults.reach("passivation.after")

    def flush_touches(self, partition: Partition, keys: Iterable[Key]) -> None:
        """Journal the readings of some users; a failure loses readings, never a write."""
        waiting = [k for k in keys if (r := self._users.get(k)) is not None and r.touches]
        if not waiting:
            return
        try:
            with partition.write() as txn:
                for key in waiting:
                    self.append(txn, key, self._users[key])
        except BaseException as exc:  # noqa: BLE001 (raised again there if it is an interrupt)
            self._pass_over("touches lost", exc, waiting)

    def _pass_over(self, what: str, exc: BaseException, keys: Sequence[Key]) -> None:
        """After an error that costs nobody an answer, of whatever kind: what is on disk is read
        again at the next use, from a reopened partition if it failed. Raises an interrupt again."""
        if isinstance(exc, StorageFailedError):
            self.failed.update(map(self.number, keys))
        for key in keys:
            self.drop(key)
        if not isinstance(exc, Exception):
            raise exc
        log.warning(what, partition=self.number(keys[0]), error=f"{type(exc).__name__}: {exc}")

    def flush(self, *, snapshot: bool) -> None:
        """Journal pending readings and save indices; with `snapshot`, also write a snapshot of
        every user whose journal has a tail."""
        by_partition: dict[int, list[Key]] = {}
        for key in self._users:
            by_partition.setdefault(self.number(key), []).append(key)
        for number, keys in by_partition.items():
            with self.using(number) as partition:
                partition.require_ownership()
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
                        key,
                        resident.memory.seq,
                        blob,
                        embedder=resident.memory.embedder or "",
                        format_version=SNAPSHOT_FORMAT,
                    )
                    resident.snapshot_bytes, resident.tail_bytes = len(blob), 0
        except BaseException as exc:  # noqa: BLE001 (raised again there if it is an interrupt)
            # Measure again what is on disk at the next activation.
            self._pass_over("snapshot failed", exc, keys)

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
            found = path.with_suffix(".sum").read_bytes()  # whatever a power loss left in it
            number, _, digest = found.decode("ascii", "replace").strip().partition(" ")
            if number == str(INDEX_FORMAT):  # one of another format is built anew
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
            digest = vectors.save_index(path)
            faults.reach("index-sum.before")
            path.with_suffix(".sum").write_text(f"{INDEX_FORMAT} {digest}", encoding="ascii")
            faults.reach("index-sum.after")
        except OSError as exc:
            log.warning("index not saved", path=path.name, error=str(exc))

    def close(self) -> None:
        """Journal pending readings and close the partitions."""
        with suppress(StorageError):  # what was acknowledged is on disk; readings are not
            self.flush(snapshot=False)
        for partition in self.partitions.values():
            partition.close()
        self.partitions, self.unopened = {}, {}
        self._users.clear()


class Unopened:
    """In the place of a partition that is damaged or gone: only its own users are unavailable."""

    is_broken = True

    def __init__(self, path: Path, owner: str, held_by: str | None) -> None:
        """Remember how it is to be opened."""
        self.path = path
        self._owner = owner
        self._held_by = held_by

    def reopen(self, *, index: int) -> Partition:
        """Try again; somebody may have put the file back.

        Raises:
            StorageError: it still cannot be opened.
        """
        try:
            return Partition.open(
                self.path, index=index, owner=self._owner, held_by=self._held_by, create=False
            )
        except FencedError as exc:  # put back, and so it knows nothing of us
            msg = f"{self.path} was replaced while the folder was open: close it and open it again"
            raise StorageFailedError(msg, path=str(self.path)) from exc

    def close(self) -> None:
        """Do nothing."""


def open_partitions(
    folder: Path,
    numbers: Iterable[int],
    owner: str,
    *,
    held_by: str | None = None,
    create: bool = True,
) -> dict[int, Partition | Unopened]:
    """Open partitions of a data folder, and claim each for `owner`.

    One that is damaged or gone is tried again when it is used, and refuses only its own users.

    Args:
        folder: the data folder.
        numbers: of the partitions.
        owner: who opens them, for people.
        held_by: with it, only those whose present owner has a name that begins so are claimed; see
            `Partition.open`.
        create: whether missing files are made: in a new folder only.

    Raises:
        FencedError: a partition has another owner by now.
        StorageError: a partition cannot be opened for another reason than damage, or none of them
            can be. Those opened before it are closed again.
    """
    opened: dict[int, Partition | Unopened] = {}
    error: StorageError | None = None
    try:
        for number in numbers:
            path = folder / "partitions" / f"p{number:04d}.db"
            try:
                opened[number] = Partition.open(
                    path, index=number, owner=owner, held_by=held_by, create=create
                )
            except (StorageFailedError, DataFolderError) as exc:
                log.error("a partition cannot be opened", partition=path.name, error=str(exc))
                opened[number] = Unopened(path, owner, held_by)
                error = error or exc
        if error is not None and held_by is None and all(p.is_broken for p in opened.values()):
            raise error  # noqa: TRY301 (closes nothing, as nothing is open)
    except BaseException:
        for partition in opened.values():
            partition.close()
        raise
    return opened
