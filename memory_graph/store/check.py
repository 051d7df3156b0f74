"""The checker: every invariant of a partition file that SQLite does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.memory_graph.errors import JournalDamagedError, StorageError
from reverie.memory_graph.store.branches import HEAD_SNAPSHOTS, kept, load_position, path_to
from reverie.memory_graph.store.schema import USER_TABLES
from reverie.memory_graph.store.users import users_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reverie.memory_graph.store.sqlite import Database
    from reverie.memory_graph.store.users import User


def check(db: Database) -> list[str]:
    """Return every broken invariant in words; an empty list means a sound file. Reads it all."""
    try:
        with db.read():
            return [*_of_pages(db), *_of_orphans(db), *_of_users(db)]
    except StorageError as exc:  # too damaged to be walked
        return [exc.message]


def _of_pages(db: Database) -> Iterator[str]:
    for (line,) in db.rows("PRAGMA integrity_check"):
        if line != "ok":
            yield f"{db.path.name}: {line}"


def _of_orphans(db: Database) -> Iterator[str]:
    for table in USER_TABLES:
        for (uid,) in db.rows(
            f"SELECT DISTINCT uid FROM {table} WHERE uid IS NOT NULL "  # noqa: S608 (our constant)
            "AND uid NOT IN (SELECT uid FROM users)"
        ):
            yield f"{table}: rows of user number {uid}, which does not exist"
    for table in ("journal", "snapshots"):
        for uid, generation in db.rows(
            f"SELECT DISTINCT uid, generation FROM {table} AS t WHERE NOT EXISTS "  # noqa: S608
            "(SELECT 1 FROM generations AS g WHERE g.uid = t.uid AND g.generation = t.generation)"
        ):
            yield f"{table}: rows of user number {uid} in unknown generation {generation}"
    for world, tag in db.rows(
        "SELECT DISTINCT world, tag FROM pins EXCEPT SELECT world, tag FROM tags"
    ):
        yield f"pins: world {world!r} has pins of the unknown tag {tag!r}"
    for (uid,) in db.rows("SELECT DISTINCT uid FROM outbox JOIN users USING (uid) WHERE live = 0"):
        yield f"outbox: user number {uid} is absent but has waiting turns"


def _of_users(db: Database) -> Iterator[str]:
    for user in users_of(db):
        yield from check_user(db, user)


def check_user(db: Database, user: User) -> Iterator[str]:
    """Yield every broken invariant of one user's rows in words. Reads all that it is built from."""
    if user.live:
        yield from _of_position(db, user, "", user.generation, user.head)
        yield from _of_fallback(db, user)
    for tag, generation, seq in db.rows(
        "SELECT tag, generation, seq FROM pins WHERE uid = ?", (user.uid,)
    ):
        yield from _of_position(db, user, f"checkpoint {tag!r}: ", generation, seq)


def _of_position(db: Database, user: User, where: str, generation: int, seq: int) -> Iterator[str]:
    segment = next(path_to(db, user.uid, generation, seq), None)
    if segment is None or segment.lo > segment.hi:
        yield f"{where}user {user.user_id!r} of {user.world!r} stands in no known generation"
        return
    try:
        yield from (
            where + warning for warning in load_position(db, user, generation, seq).warnings
        )
    except JournalDamagedError as exc:
        yield where + exc.message


def _of_fallback(db: Database, user: User) -> Iterator[str]:
    """Once a user has two snapshots, every event after the older one must be there. Not so right
    after a rewind: of a checkpoint only the newest snapshot, and what follows it, is kept."""
    for row in db.rows(
        "SELECT generation, seq FROM snapshots WHERE uid = ? AND generation = ? AND seq > ?",
        (user.uid, user.generation, user.head),
    ):
        yield f"snapshots: user {user.user_id!r} of {user.world!r} has one past its head: {row}"
    without_pins = kept(db, user, with_pins=False)
    is_rewound = all(generation != user.generation for generation, _ in without_pins.snapshots)
    if len(without_pins.snapshots) < HEAD_SNAPSHOTS or is_rewound:
        return
    for generation, ranges in without_pins.events.items():
        for lo, hi in ranges:
            (count,) = db.only_row(
                "SELECT COUNT(*) FROM journal "
                "WHERE uid = ? AND generation = ? AND seq > ? AND seq <= ?",
                (user.uid, generation, lo, hi),
            )
            if count != hi - lo:
                yield (
                    f"journal: user {user.user_id!r} of {user.world!r} misses events after the "
                    f"older snapshot: {count} of {hi - lo} in generation {generation}"
                )
