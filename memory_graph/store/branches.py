"""Histories that branch: from a position in the tree to verified events, and what may be dropped.

Kept for the head of a live user: its two newest snapshots and every event after the older one.
Kept for a pin: the newest snapshot at or below it and every event from there up to it. Everything
else goes when a snapshot is saved, a world is rewound, or a pin is lifted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from reverie.memory_graph.errors import InvariantError, JournalDamagedError
from reverie.memory_graph.store.records import Loaded
from reverie.memory_graph.store.schema import RowHash
from reverie.memory_graph.store.users import live_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reverie.memory_graph.ids import Key
    from reverie.memory_graph.store.sqlite import Database
    from reverie.memory_graph.store.users import User

HEAD_SNAPSHOTS = 2
PIN_SNAPSHOTS = 1
END = 2**63 - 1  # the largest seq that a column holds


class Segment(NamedTuple):
    """The part of one generation that lies on a path: the events after `lo`, up to `hi`."""

    generation: int
    lo: int
    hi: int


class Snapshot(NamedTuple):
    """A row of the table `snapshots`."""

    seq: int
    embedder: str
    format: int
    checksum: bytes
    state: bytes


def path_to(db: Database, uid: int, generation: int, seq: int) -> Iterator[Segment]:
    """Yield the segments from position (generation, seq) back to the beginning, newest first.

    Ends early where the tree was pruned, or damaged: the caller then misses events, and says so.
    """
    while True:
        row = db.row(
            "SELECT base_generation, base_seq FROM generations WHERE uid = ? AND generation = ?",
            (uid, generation),
        )
        if row is None:
            return
        base_generation, base_seq = row
        yield Segment(generation, base_seq, seq)
        if base_generation is None or base_generation >= generation:
            return
        generation, seq = base_generation, base_seq


def load_position(db: Database, user: User, generation: int, seq: int) -> Loaded:
    """Return the state of `user` at a position of its history.

    Raises:
        JournalDamagedError: an event up to `seq` is missing, damaged, or one too many.
    """
    verify = RowHash(user.key)
    warnings: list[str] = []
    segments: list[Segment] = []
    snapshot: Snapshot | None = None
    for segment in path_to(db, user.uid, generation, seq):
        segments.append(segment)
        snapshot = _newest_good(db, user, segment, verify, warnings)
        if snapshot is not None:
            break
    start = 0 if snapshot is None else snapshot.seq
    tail: list[tuple[int, bytes]] = []
    for segment in reversed(segments):
        _refuse_extra(db, user, segment)
        for found, payload, checksum in db.rows(
            "SELECT seq, payload, checksum FROM journal "
            "WHERE uid = ? AND generation = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (user.uid, segment.generation, max(start, segment.lo), segment.hi),
        ):
            expected = start + len(tail) + 1
            if found != expected:
                raise _damaged(user, expected, "is missing")
            # A damaged record can hold any type, whatever its column says.
            is_bytes = isinstance(payload, bytes)
            if not is_bytes or checksum != verify.event(segment.generation, found, payload):
                raise _damaged(user, found, "does not verify")
            tail.append((found, payload))
    if start + len(tail) != seq:
        raise _damaged(user, start + len(tail) + 1, "is missing")
    return Loaded(
        generation=generation,
        seq=seq,
        embedder=None if snapshot is None else snapshot.embedder,
        snapshot=None if snapshot is None else snapshot.state,
        snapshot_seq=start,
        snapshot_format=None if snapshot is None else snapshot.format,
        tail=tail,
        warnings=warnings,
    )


def _newest_good(
    db: Database, user: User, segment: Segment, verify: RowHash, warnings: list[str]
) -> Snapshot | None:
    for seq in _snapshot_seqs(db, user.uid, segment):
        snapshot = _read_snapshot(db, user.uid, segment.generation, seq)
        if _holds(snapshot, segment.generation, verify):
            return snapshot
        warnings.append(
            f"snapshot {seq} (generation {segment.generation}) of user {user.user_id!r} in world "
            f"{user.world!r} is damaged; an older state and the journal are used"
        )
    return None


def _snapshot_seqs(db: Database, uid: int, segment: Segment) -> list[int]:
    rows = db.rows(
        "SELECT seq FROM snapshots WHERE uid = ? AND generation = ? AND seq BETWEEN ? AND ? "
        "ORDER BY seq DESC",
        (uid, *segment),
    )
    return [seq for (seq,) in rows]


def _read_snapshot(db: Database, uid: int, generation: int, seq: int) -> Snapshot:
    row = db.only_row(
        "SELECT seq, embedder, format, checksum, state FROM snapshots "
        "WHERE uid = ? AND generation = ? AND seq = ?",
        (uid, generation, seq),
    )
    return Snapshot(*row)


def _holds(snapshot: Snapshot, generation: int, verify: RowHash) -> bool:
    values: tuple[Any, ...] = snapshot
    seq, embedder, fmt, checksum, state = values
    if not (isinstance(embedder, str) and isinstance(fmt, int) and isinstance(state, bytes)):
        return False  # a damaged record can hold any type, whatever its column says
    found = verify.snapshot(generation, seq, embedder=embedder, fmt=fmt, state=state)
    return bool(found == checksum)


def _refuse_extra(db: Database, user: User, segment: Segment) -> None:
    """An event where none can be: before its branch begins, or after the head."""
    head = user.head if user.live and segment.generation == user.generation else END
    row = db.row(
        "SELECT MIN(seq) FROM (SELECT MIN(seq) AS seq FROM journal "
        "WHERE uid = ?1 AND generation = ?2 AND seq <= ?3 UNION ALL SELECT MIN(seq) FROM journal "
        "WHERE uid = ?1 AND generation = ?2 AND seq > ?4)",
        (user.uid, segment.generation, segment.lo, head),
    )
    if row is not None and row[0] is not None:
        seq = row[0] if isinstance(row[0], int) else segment.hi + 1
        raise _damaged(user, seq, "was never written by a live owner")


def _damaged(user: User, seq: int, what: str) -> JournalDamagedError:
    msg = f"journal of user {user.user_id!r} in world {user.world!r}: event {seq} {what}"
    return JournalDamagedError(msg, world=user.world, user_id=user.user_id, seq=seq)


# -- snapshots ---------------------------------------------------------------------------


def save_snapshot(
    db: Database, key: Key, seq: int, state: bytes, *, embedder: str, fmt: int
) -> None:
    """Keep `state` as what the events up to `seq` add up to, then drop what it makes needless.

    One that is older than the newest is passed over: the events between may be gone already.

    Raises:
        InvariantError: no such user, or `seq` lies outside of its present generation.
    """
    user = live_user(db, key)
    segment = next(path_to(db, user.uid, user.generation, user.head), None)
    if segment is None or not segment.lo <= seq <= segment.hi:
        msg = f"a snapshot at {seq} is outside of the present generation, which is {segment}"
        raise InvariantError(msg, world=key.world, user_id=key.user_id)
    verify = RowHash(key)
    if _drop_damaged(db, user, verify) > seq:
        return
    checksum = verify.snapshot(user.generation, seq, embedder=embedder, fmt=fmt, state=state)
    db.rows(
        "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)",
        (user.uid, user.generation, seq, embedder, fmt, checksum, state),
    )
    measure(db, user)
    prune(db, user)


def _drop_damaged(db: Database, user: User, verify: RowHash) -> int:
    """Delete damaged snapshots, so that none of them counts as the fallback, down to a good one.
    Returns the seq of that, or 0."""
    for segment in path_to(db, user.uid, user.generation, user.head):
        for seq in _snapshot_seqs(db, user.uid, segment):
            if _holds(
                _read_snapshot(db, user.uid, segment.generation, seq), segment.generation, verify
            ):
                return seq
            db.rows(
                "DELETE FROM snapshots WHERE uid = ? AND generation = ? AND seq = ?",
                (user.uid, segment.generation, seq),
            )
    return 0


def measure(db: Database, user: User) -> None:
    """Count anew the bytes of the newest snapshot below the head, and of the events after it."""
    tail_bytes = snapshot_bytes = 0
    for segment in path_to(db, user.uid, user.generation, user.head):
        seqs = _snapshot_seqs(db, user.uid, segment)
        lo = seqs[0] if seqs else segment.lo
        (size,) = db.only_row(
            "SELECT COALESCE(SUM(LENGTH(payload)), 0) FROM journal "
            "WHERE uid = ? AND generation = ? AND seq > ? AND seq <= ?",
            (user.uid, segment.generation, lo, segment.hi),
        )
        tail_bytes += size
        if seqs:
            (snapshot_bytes,) = db.only_row(
                "SELECT LENGTH(state) FROM snapshots WHERE uid = ? AND generation = ? AND seq = ?",
                (user.uid, segment.generation, lo),
            )
            break
    db.rows(
        "UPDATE users SET tail_bytes = ?, snapshot_bytes = ? WHERE uid = ?",
        (tail_bytes, snapshot_bytes, user.uid),
    )


# -- pruning -----------------------------------------------------------------------------


class Kept(NamedTuple):
    """What the head and the pins of one user need."""

    snapshots: set[tuple[int, int]]  # (generation, seq)
    events: dict[int, list[tuple[int, int]]]  # generation -> ranges (lo, hi]


def kept(db: Database, user: User, *, with_pins: bool = True) -> Kept:
    """Return what must not be pruned for `user` as it stands."""
    needed = Kept(set(), {})
    if user.live:
        _keep_path(db, user.uid, (user.generation, user.head), HEAD_SNAPSHOTS, needed)
    if with_pins:
        for position in db.rows(
            "SELECT DISTINCT generation, seq FROM pins WHERE uid = ?", (user.uid,)
        ):
            _keep_path(db, user.uid, position, PIN_SNAPSHOTS, needed)
    return needed


def _keep_path(db: Database, uid: int, position: tuple[int, ...], count: int, needed: Kept) -> None:
    for segment in path_to(db, uid, position[0], position[1]):
        seqs = _snapshot_seqs(db, uid, segment)[:count]
        needed.snapshots.update((segment.generation, seq) for seq in seqs)
        count -= len(seqs)
        lo = segment.lo if count else seqs[-1]
        needed.events.setdefault(segment.generation, []).append((lo, segment.hi))
        if not count:
            return


def prune(db: Database, user: User) -> None:
    """Delete the snapshots, events and generations of `user` that nothing needs any more."""
    needed = kept(db, user)
    for generation, seq in db.rows(
        "SELECT generation, seq FROM snapshots WHERE uid = ?", (user.uid,)
    ):
        is_kept = (generation, seq) in needed.snapshots
        # Past the head only damage can put one; it stays as it is, for `check` to report.
        is_strange = user.live and generation == user.generation and seq > user.head
        if not is_kept and not is_strange:
            db.rows(
                "DELETE FROM snapshots WHERE uid = ? AND generation = ? AND seq = ?",
                (user.uid, generation, seq),
            )
    for (generation,) in db.rows("SELECT generation FROM generations WHERE uid = ?", (user.uid,)):
        ranges = sorted(needed.events.get(generation, []))
        is_present = user.live and generation == user.generation
        if not ranges and not is_present:
            db.rows(
                "DELETE FROM generations WHERE uid = ? AND generation = ?", (user.uid, generation)
            )
        end = user.head if is_present else END
        for lo, hi in _gaps(ranges, end):
            db.rows(
                "DELETE FROM journal WHERE uid = ? AND generation = ? AND seq > ? AND seq <= ?",
                (user.uid, generation, lo, hi),
            )


def _gaps(ranges: list[tuple[int, int]], end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of (0, end] that no range covers."""
    at = 0
    for lo, hi in ranges:
        if lo > at:
            yield (at, lo)
        at = max(at, hi)
    if at < end:
        yield (at, end)
