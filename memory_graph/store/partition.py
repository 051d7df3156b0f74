"""A partition: one SQLite file that owns the histories of many users.

A partition has one owner at a time. Opening it raises the epoch in the file, and every write
checks in its own transaction that the epoch is still the one it opened with: an owner that was
replaced, however long it slept, learns it before it can write a row.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    ClosedError,
    DataFolderError,
    DataFolderLockedError,
    FencedError,
    OverloadedError,
    ReverieError,
    StorageError,
    StorageFailedError,
)
from reverie.memory_graph.events import JOURNAL_FORMAT
from reverie.memory_graph.store import branches, outbox, results, slots
from reverie.memory_graph.store.check import check
from reverie.memory_graph.store.migrations import partition_from_1
from reverie.memory_graph.store.records import ErasureCounts
from reverie.memory_graph.store.schema import (
    PARTITION_ID,
    PARTITION_SCHEMA,
    PARTITION_VERSION,
    SEALED,
    TEXT_COLUMNS,
    USER_TABLES,
    RowHash,
)
from reverie.memory_graph.store.sqlite import (
    BUSY_TIMEOUT_S,
    Database,
    closed_on_error,
    open_database,
    open_to_read,
)
from reverie.memory_graph.store.users import begin_history, find_user, fresh_generation, users_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from reverie.memory_graph.ids import Key
    from reverie.memory_graph.store.records import (
        Loaded,
        PendingTurns,
        QuarantinedTurn,
        UserImage,
    )


class Transaction:
    """The writes of one transaction. It ends with the `with` block that gave it.

    The methods that need a user raise `InvariantError` when it has no history.
    """

    def __init__(self, db: Database) -> None:
        """Made by `Partition.write`."""
        self._open: Database | None = db

    @property
    def _db(self) -> Database:
        if self._open is None:
            msg = "this transaction has ended"
            raise ClosedError(msg)
        return self._open

    def end(self) -> None:
        """Refuse further writes; called when the block is left."""
        self._open = None

    # -- the journal ---------------------------------------------------------------------

    def append(self, key: Key, events: Sequence[bytes]) -> int:
        """Add encoded events to the end of a user's history; a new user begins one.

        Returns:
            The head: the seq of the last event. Seqs run from 1 without a gap.
        """
        faults.reach("append.before")
        user = find_user(self._db, key)
        if user is None or not user.live:
            user = begin_history(self._db, key)
        verify, generation, uid = RowHash(key), user.generation, user.uid
        self._db.change_many(
            "INSERT INTO journal (uid, generation, seq, checksum, payload) VALUES (?, ?, ?, ?, ?)",
            [
                (uid, generation, seq, verify.event(generation, seq, event), event)
                for seq, event in enumerate(events, user.head + 1)
            ],
        )
        head = user.head + len(events)
        checksum = verify.user(uid, generation, head, user.live, user.origin)
        self._db.rows(
            "UPDATE users SET head = ?, tail_bytes = tail_bytes + ?, checksum = ? WHERE uid = ?",
            (head, sum(map(len, events)), checksum, uid),
        )
        faults.reach("append.after")
        return head

    def save_snapshot(
        self, key: Key, seq: int, blob: bytes, *, embedder: str, format_version: int = 1
    ) -> None:
        """Keep `blob` as the state after event `seq`, then drop what it makes needless.

        Args:
            key: whose state it is.
            seq: between the last rewind and the head.
            blob: the encoded state; the store does not read it.
            embedder: id of the model that made the vectors in it.
            format_version: of the encoding of `blob`.

        Raises:
            InvariantError: `seq` is past the head, or before the last rewind.
        """
        faults.reach("snapshot.before")
        branches.save_snapshot(self._db, key, seq, blob, embedder=embedder, fmt=format_version)
        faults.reach("snapshot.after")

    # -- requests ------------------------------------------------------------------------

    def result_of(self, request_id: str, fingerprint: bytes) -> bytes | None:
        """Return the result of an earlier request of this id in this partition, or None.

        Raises:
            RequestReusedError: its fingerprint differs.
            StaleGenerationError: its user was rewound since.
        """
        return results.result_of(self._db, request_id, fingerprint)

    def keep_result(
        self, request_id: str, key: Key | None, fingerprint: bytes, result: bytes
    ) -> None:
        """Keep a result for `result_of`, erased with `key`; the last 20,000 are kept."""
        faults.reach("result.before")
        results.keep_result(self._db, request_id, key, fingerprint, result)
        faults.reach("result.after")

    def drop_result(self, request_id: str) -> None:
        """Give up the result of a request, to keep another one in its place."""
        results.drop_result(self._db, request_id)

    # -- the outbox ----------------------------------------------------------------------

    def enqueue(self, key: Key, turn_ids: Iterable[str]) -> None:
        """Let turns wait for extraction; one that is there already keeps its place."""
        outbox.enqueue(self._db, key, turn_ids)

    def dequeue(self, key: Key, turn_ids: Iterable[str]) -> None:
        """Remove turns that are done, waiting or quarantined ones alike."""
        outbox.dequeue(self._db, key, turn_ids)

    def fail(self, key: Key, turn_id: str, error: str) -> int:
        """Count a failed extraction; returns the attempts so far, 0 for a turn not there."""
        return outbox.fail(self._db, key, turn_id, error)

    def quarantine(self, key: Key, turn_id: str) -> None:
        """Give a turn up until it is requeued."""
        outbox.quarantine(self._db, key, turn_id)

    def requeue(self, key: Key, turn_ids: Iterable[str]) -> int:
        """Let quarantined turns wait again, attempts at 0; returns how many there were."""
        return outbox.requeue(self._db, key, turn_ids)

    # -- save slots ----------------------------------------------------------------------

    def pin(self, world: str, tag: str, *, operation: str) -> int:
        """Note where every user of a world stands; returns how many. See `slots.pin`."""
        return slots.pin(self._db, world, tag, operation)

    def unpin(self, world: str, tag: str) -> int:
        """Remove a pin and what only it kept; returns how many users it had."""
        return slots.unpin(self._db, world, tag)

    def rewind(self, world: str, tag: str, *, operation: str) -> int:
        """Put every user of a world back to a pin; returns how many. See `slots.rewind`."""
        return slots.rewind(self._db, world, tag, operation)

    def import_user(self, image: UserImage, world: str, *, operation: str) -> bool:
        """Make the user of an image in `world`; False when done before. See `slots.import_user`."""
        return slots.import_user(self._db, image, world, operation)

    # -- erasure -------------------------------------------------------------------------

    def erase(self, key: Key) -> ErasureCounts:
        """Delete every row of a user: all generations, pins, results and turns.

        Copies remain in the file until `Partition.scrub` has run after the transaction.
        """
        db = self._db
        user = find_user(db, key)
        if user is None:
            return ErasureCounts()
        deleted = {
            table: db.change(f"DELETE FROM {table} WHERE uid = ?", (user.uid,))  # noqa: S608
            for table in USER_TABLES
        }
        db.rows("DELETE FROM users WHERE uid = ?", (user.uid,))
        db.rows("UPDATE owner SET floor = MAX(floor, ?)", (user.generation,))
        return ErasureCounts(
            events=deleted["journal"],
            snapshots=deleted["snapshots"],
            results=deleted["results"],
            turns=deleted["outbox"],
            pins=deleted["pins"],
            generations=deleted["generations"],
        )

    def erase_imported(self, world: str, operation: str) -> list[Key]:
        """Delete every row of the users of `world` that an operation imported; returns them."""
        keys = [user.key for user in users_of(self._db, world) if user.origin == operation]
        for key in keys:
            self.erase(key)
        return keys


class Partition:
    """One open partition file. Used by one thread at a time, not always the same one."""

    def __init__(self, db: Database, epoch: int, owner: str, vfs: str | None = None) -> None:
        """Take over an open file; use `Partition.open`."""
        self._db = db
        self.epoch = epoch
        self.owner = owner
        self.path = db.path
        self._vfs = vfs

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        index: int,
        owner: str,
        held_by: str | None = None,
        create: bool = True,
        vfs: str | None = None,
    ) -> Partition:
        """Open or create the file and take it over from whoever had it.

        Args:
            path: the file; its folder exists.
            index: the number of the partition; a file of another number is refused.
            owner: who opens it, for people; no other opener may have the same name.
            held_by: how the name of the present owner must begin. Whoever comes back (a partition
                that is reopened, an actor that is restarted) must not take it from an owner that
                has replaced it meanwhile.
            create: whether a missing or empty file is made; never when it had data before.
            vfs: name of a registered SQLite file layer; None is the system's.

        Raises:
            FencedError: it is not `held_by`; nothing was changed.
            StorageFailedError: damaged, or gone though it had an owner.
            DataFolderLockedError: another process is in the middle of a write, and did not end it
                within `BUSY_TIMEOUT_S`: it may be stopped.
            DataFolderError: not a partition, not this one, or of a newer format.
            StorageReadOnlyError: it cannot be written.
        """
        try:
            create = create and held_by is None
            return cls._open(path, index, owner, held_by, create=create, vfs=vfs)
        except OverloadedError as exc:
            holder = _holder(path)
            msg = (
                f"{path} is in the middle of a write of {holder or 'another process'}, which did "
                f"not end within {BUSY_TIMEOUT_S:g} s; if that process is stopped, continue or end "
                "it"
            )
            raise DataFolderLockedError(msg, path=str(path), owner=holder) from exc

    @classmethod
    def _open(
        cls,
        path: Path,
        index: int,
        owner: str,
        held_by: str | None,
        *,
        create: bool,
        vfs: str | None,
    ) -> Partition:
        db = open_database(
            path,
            application_id=PARTITION_ID,
            version=PARTITION_VERSION,
            schema=PARTITION_SCHEMA,
            migrations={1: partition_from_1},
            create=create,
            vfs=vfs,
        )
        with closed_on_error(db), db.write():
            faults.reach("epoch.before")
            db.keep_seal(SEALED)
            db.rows(
                "INSERT OR IGNORE INTO owner (id, epoch, owner, partition) VALUES (1, 0, '', ?)",
                (index,),
            )
            _require_journal_format(db)
            (holder,) = db.only_row("SELECT owner FROM owner")
            if held_by is not None and not holder.startswith(held_by):
                msg = f"{path} was taken over by {holder} from {held_by}"
                raise FencedError(msg, path=str(path), owner=holder)
            epoch, found = db.only_row(
                "UPDATE owner SET epoch = epoch + 1, owner = ? RETURNING epoch, partition",
                (owner,),
            )
            if found != index:
                msg = f"{path} holds partition {found}, not {index}"
                raise DataFolderError(msg, path=str(path))
            faults.reach("epoch.after")
        return cls(db, epoch, owner, vfs)

    def reopen(self, *, index: int) -> Partition:
        """Close the file, open it again under the same name, and recover it from disk.

        Raises:
            FencedError: another owner has opened it since.
            StorageError: as `open`; this one is closed, and can be reopened later.
        """
        with suppress(StorageError):
            self.close()
        return Partition.open(
            self.path, index=index, owner=self.owner, held_by=self.owner, vfs=self._vfs
        )

    @property
    def is_broken(self) -> bool:
        """Whether an input/output error was met: it must be closed and opened again."""
        return self._db.is_broken

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._db.close()

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction; when the block ends without an exception, all of it is durable.

        Raises:
            FencedError: another owner has opened the partition since; nothing was stored.
            StorageFullError: no space; nothing was stored, the partition stays usable.
            StorageFailedError: an input/output error; the partition must be reopened.
        """
        txn = Transaction(self._db)
        try:
            with self._db.write(self.require_ownership):
                yield txn
        finally:
            txn.end()

    def require_ownership(self) -> None:
        """Refuse an owner that was replaced; costs some 3 microseconds.

        Raises:
            FencedError: another owner has opened the partition since.
        """
        row = self._db.row("SELECT epoch, owner FROM owner")
        if row is None:
            msg = f"{self.path} has lost its owner row"
            raise StorageFailedError(msg, path=str(self.path))
        epoch, owner = row
        if epoch != self.epoch:
            msg = f"{self.path} was taken over by {owner} (epoch {epoch}, ours is {self.epoch})"
            raise FencedError(msg, path=str(self.path), owner=owner, epoch=epoch)

    # -- reads ---------------------------------------------------------------------------

    def worlds(self) -> list[str]:
        """Return the worlds that have users here, in order."""
        rows = self._db.rows("SELECT DISTINCT world FROM users WHERE live = 1 ORDER BY world")
        return [world for (world,) in rows]

    def users(self, world: str) -> list[str]:
        """Return the ids of a world's users here, in order."""
        return [user.user_id for user in users_of(self._db, world) if user.live]

    def state(self, key: Key) -> tuple[int, int] | None:
        """Return (generation, head) of a user, or None when it is absent."""
        user = find_user(self._db, key)
        return (user.generation, user.head) if user is not None and user.live else None

    def load(self, key: Key) -> Loaded | None:
        """Return what a user's graph is built from, or None when it is absent.

        Raises:
            JournalDamagedError: names the first event that is missing, damaged or one too many.
        """
        with self._db.read():
            user = find_user(self._db, key)
            if user is None or not user.live:
                return None
            return branches.load_position(self._db, user, user.generation, user.head)

    def tail_bytes(self, key: Key) -> int:
        """Return the size of the events after the newest snapshot; 0 for an absent user."""
        user = find_user(self._db, key)
        return 0 if user is None else user.tail_bytes

    def snapshot_bytes(self, key: Key) -> int:
        """Return the size of the newest snapshot; 0 without one."""
        user = find_user(self._db, key)
        return 0 if user is None else user.snapshot_bytes

    def next_generation(self, key: Key) -> int:
        """Return the generation of what a user writes next: of an absent one, a new generation."""
        with self._db.read():
            user = find_user(self._db, key)
            return user.next_generation if user is not None else fresh_generation(self._db)

    def pending(self, limit: int, *, per_user: int = 32) -> list[PendingTurns]:
        """Return up to `limit` users with up to `per_user` turns to extract, oldest first."""
        with self._db.read():
            return outbox.pending(self._db, limit, per_user)

    def pending_of(self, key: Key, limit: int) -> list[str]:
        """Return up to `limit` turns of one user that wait for extraction, oldest first."""
        with self._db.read():
            user = find_user(self._db, key)
            return [] if user is None else outbox.pending_of(self._db, user.uid, limit)

    def quarantined(self, world: str | None = None) -> list[QuarantinedTurn]:
        """Return the turns that were given up, in one world or in all."""
        return outbox.quarantined(self._db, world)

    def tags(self, world: str) -> list[str]:
        """Return the tags pinned in a world, in order."""
        rows = self._db.rows("SELECT tag FROM tags WHERE world = ? ORDER BY tag", (world,))
        return [tag for (tag,) in rows]

    def all_tags(self) -> set[tuple[str, str]]:
        """Return every (world, tag) that is pinned here."""
        return set(self._db.rows("SELECT world, tag FROM tags"))

    def export_pin(self, world: str, tag: str, after: str = "") -> Iterator[UserImage]:
        """Return the pinned users after `after` in the order of their ids, each read when it is
        asked for.

        Raises:
            UnknownCheckpointError: no such tag in this world; at once.
            JournalDamagedError: a user does not verify; when it is reached.
        """
        slots.require_tag(self._db, world, tag)
        return slots.export_pin(self._db, world, tag, after)

    def positions(self, world: str, tag: str | None) -> list[tuple[str, int, int]]:
        """Return where the users of a world stand, or stood; see `slots.positions`."""
        with self._db.read():
            if tag is not None:
                slots.require_tag(self._db, world, tag)
            return slots.positions(self._db, world, tag)

    def load_pinned(self, key: Key, tag: str) -> Loaded | None:
        """Return what a user's graph is built from as it was pinned; None for one that was not."""
        return slots.load_pinned(self._db, key, tag)

    def export_user(self, key: Key) -> UserImage | None:
        """Return a user as it is now, whole, or None when it is absent."""
        with self._db.read():
            return slots.export_user(self._db, key)

    # -- the whole file ------------------------------------------------------------------

    def scrub(self) -> None:
        """Leave no copy of deleted rows in the file or its log. Run after `Transaction.erase`.

        Deleted rows are overwritten where they lay, but rows that SQLite once moved between
        pages leave copies in the unused part of the old page, which it does not clear (measured:
        9 of 9,000). Hence the file is built anew. This takes time and memory in proportion to
        the file, so erase several users first, then scrub once.

        Raises:
            OverloadedError: another connection reads the file; try again.
            StorageFullError: no space for the second copy; try again.
        """
        self._db.rewrite()
        self._db.truncate_log()

    @staticmethod
    def rows_hold(path: Path, needle: bytes) -> bool:
        """Return whether a row of a partition file, of whatever user, holds a byte string.

        Opens the file beside its owner, claims nothing and writes nothing.

        Raises:
            StorageError: it cannot be read.
            OverloadedError: its owner is recovering it.
        """
        db = open_to_read(path, application_id=PARTITION_ID, version=PARTITION_VERSION)
        try:
            return any(
                db.row(f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1", (needle,))  # noqa: S608
                for table, column in TEXT_COLUMNS
            )
        finally:
            db.close()

    def check(self) -> list[str]:
        """Return every broken invariant in words; empty for a sound partition."""
        return check(self._db)


def _require_journal_format(db: Database) -> None:
    """Refuse events of a newer encoding; note that those of this one may follow.

    Raises:
        DataFolderError: there may be some.
    """
    (found,) = db.only_row("SELECT journal_format FROM owner")
    if found > JOURNAL_FORMAT:
        msg = (
            f"{db.path} was written by a newer version of reverie: its journal has format {found}, "
            f"this version reads up to {JOURNAL_FORMAT}"
        )
        raise DataFolderError(msg, path=str(db.path), found=found, supported=JOURNAL_FORMAT)
    if found < JOURNAL_FORMAT:
        db.rows("UPDATE owner SET journal_format = ?", (JOURNAL_FORMAT,))


def _holder(path: Path) -> str:
    """Return who owns a partition that cannot be written now; "" when that cannot be read."""
    with suppress(ReverieError):
        db = open_to_read(path, application_id=PARTITION_ID, version=PARTITION_VERSION)
        try:
            row = db.row("SELECT owner FROM owner")
            return "" if row is None else str(row[0])
        finally:
            db.close()
    return ""
