"""What earlier requests returned, so that a request sent twice is carried out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.memory_graph.errors import RequestReusedError, StaleGenerationError
from reverie.memory_graph.store.schema import result_hash
from reverie.memory_graph.store.users import known_user, user_of

if TYPE_CHECKING:
    from reverie.memory_graph.ids import Key
    from reverie.memory_graph.store.sqlite import Database

MAX_RESULTS = 20_000  # of one partition; the oldest go first
PRUNE_EVERY = 512  # results that may be kept beyond the bound, so that pruning is rare


def result_of(db: Database, request_id: str, fingerprint: bytes) -> bytes | None:
    """Return the result that was kept for a request, or None when it is new.

    Raises:
        RequestReusedError: the id was used for another request.
        StaleGenerationError: the user was rewound since.
    """
    row = db.row(
        "SELECT uid, generation, fingerprint, result FROM results WHERE request_id = ?",
        (request_id,),
    )
    if row is None:
        return None
    uid, generation, known_fingerprint, result = row
    if known_fingerprint != fingerprint:
        msg = f"request id {request_id!r} was used before, for a different request"
        raise RequestReusedError(msg, request_id=request_id)
    user = None if uid is None else user_of(db, uid)
    if user is not None and user.next_generation != generation:
        msg = f"request {request_id!r} was carried out before a rewind, which undid it"
        raise StaleGenerationError(msg, request_id=request_id)
    return bytes(result)


def drop_result(db: Database, request_id: str) -> None:
    """Give up the result of a request; an unknown one is passed over."""
    db.rows("DELETE FROM results WHERE request_id = ?", (request_id,))


def keep_result(
    db: Database, request_id: str, key: Key | None, fingerprint: bytes, result: bytes
) -> None:
    """Keep the result of a request; without a `key` it belongs to no user and outlives all."""
    user = None if key is None else known_user(db, key)
    row = (
        request_id,
        None if user is None else user.uid,
        0 if user is None else user.next_generation,
        fingerprint,
        result,
    )
    rows = db.rows(
        "INSERT INTO results (request_id, uid, generation, fingerprint, result, checksum) "
        "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (*row, result_hash(*row)),
    )
    number = rows[0][0]
    if number % PRUNE_EVERY == 0:
        db.rows("DELETE FROM results WHERE id <= ?", (number - MAX_RESULTS,))
