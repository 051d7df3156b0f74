"""The outbox: turns that are stored but not extracted yet. One leaves it only when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from reverie.memory_graph.ids import Key
from reverie.memory_graph.store.records import OutboxTurn, PendingTurns, QuarantinedTurn
from reverie.memory_graph.store.users import live_user

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reverie.memory_graph.store.sqlite import Database

MAX_ERROR_CHARS = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[OutboxTurn]).decode


def enqueue(db: Database, key: Key, turn_ids: Iterable[str]) -> None:
    """Add turns at the end; one that is there already keeps its place."""
    uid = live_user(db, key).uid
    db.change_many(
        "INSERT OR IGNORE INTO outbox (uid, turn_id) VALUES (?, ?)", [(uid, t) for t in turn_ids]
    )


def dequeue(db: Database, key: Key, turn_ids: Iterable[str]) -> None:
    """Remove turns, waiting or quarantined; unknown ones are passed over."""
    uid = live_user(db, key).uid
    db.change_many("DELETE FROM outbox WHERE uid = ? AND turn_id = ?", [(uid, t) for t in turn_ids])


def fail(db: Database, key: Key, turn_id: str, error: str) -> int:
    """Count a failed attempt and keep its error. Returns the attempts so far, 0 if not there."""
    rows = db.rows(
        "UPDATE outbox SET attempts = attempts + 1, error = ? WHERE uid = ? AND turn_id = ? "
        "RETURNING attempts",
        (error[:MAX_ERROR_CHARS], live_user(db, key).uid, turn_id),
    )
    return int(rows[0][0]) if rows else 0


def quarantine(db: Database, key: Key, turn_id: str) -> None:
    """Put a turn aside: it is listed, and no more handed out."""
    db.rows(
        "UPDATE outbox SET quarantined = 1 WHERE uid = ? AND turn_id = ?",
        (live_user(db, key).uid, turn_id),
    )


def requeue(db: Database, key: Key, turn_ids: Iterable[str]) -> int:
    """Hand out quarantined turns again, their attempts forgotten. Returns how many there were."""
    uid = live_user(db, key).uid
    return sum(
        db.change(
            "UPDATE outbox SET quarantined = 0, attempts = 0, error = '' "
            "WHERE uid = ? AND turn_id = ? AND quarantined = 1",
            (uid, turn_id),
        )
        for turn_id in turn_ids
    )


def pending(db: Database, limit: int, per_user: int) -> list[PendingTurns]:
    """Return up to `limit` users with waiting turns, the one that waits longest first."""
    found = []
    for uid, world, user_id, generation in db.rows(
        "SELECT uid, world, user_id, generation FROM "
        "(SELECT uid, MIN(position) AS first FROM outbox WHERE quarantined = 0 GROUP BY uid) "
        "JOIN users USING (uid) ORDER BY first LIMIT ?",
        (limit,),
    ):
        turn_ids = pending_of(db, uid, per_user)
        found.append(PendingTurns(Key(world, user_id), generation, turn_ids))
    return found


def pending_of(db: Database, uid: int, limit: int) -> list[str]:
    """Return up to `limit` waiting turns of one user, oldest first."""
    rows = db.rows(
        "SELECT turn_id FROM outbox WHERE uid = ? AND quarantined = 0 ORDER BY position LIMIT ?",
        (uid, limit),
    )
    return [turn_id for (turn_id,) in rows]


def quarantined(db: Database, world: str | None) -> list[QuarantinedTurn]:
    """Return the turns that were given up, in one world or in all of them."""
    rows = db.rows(
        "SELECT world, user_id, turn_id, attempts, error FROM outbox JOIN users USING (uid) "
        "WHERE quarantined = 1 AND (?1 IS NULL OR world = ?1) ORDER BY world, user_id, position",
        (world,),
    )
    return [QuarantinedTurn(Key(w, user), turn, n, error) for w, user, turn, n, error in rows]


def pack(db: Database, uid: int) -> bytes:
    """Return the whole outbox of a user as one blob; empty when there is nothing in it."""
    return pack_turns(turns_of(db, uid))


def pack_turns(turns: list[OutboxTurn]) -> bytes:
    """Return turns as one blob; empty when there are none."""
    return _encode(turns) if turns else b""


def unpack(blob: bytes) -> list[OutboxTurn]:
    """Return what `pack` wrote."""
    return _decode(blob) if blob else []


def turns_of(db: Database, uid: int) -> list[OutboxTurn]:
    """Return the whole outbox of a user, in order."""
    rows = db.rows(
        "SELECT turn_id, quarantined, attempts, error FROM outbox WHERE uid = ? ORDER BY position",
        (uid,),
    )
    return [OutboxTurn(turn, bool(aside), n, error) for turn, aside, n, error in rows]


def replace(db: Database, uid: int, turns: Iterable[OutboxTurn]) -> None:
    """Make `turns` the whole outbox of a user."""
    db.rows("DELETE FROM outbox WHERE uid = ?", (uid,))
    db.change_many(
        "INSERT INTO outbox (uid, turn_id, quarantined, attempts, error) VALUES (?, ?, ?, ?, ?)",
        [(uid, t.turn_id, t.is_quarantined, t.attempts, t.error) for t in turns],
    )
