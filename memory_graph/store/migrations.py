"""How a partition or a catalog of an older format becomes one of this format, in one transaction.

A migration reads what the old tables hold, makes the tables anew as `schema` has them now, and puts
the rows back. When the schema changes again, the tables of the format between are written out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reverie.memory_graph.ids import Key
from reverie.memory_graph.store.schema import PARTITION_SCHEMA, SEALED, RowHash, result_hash
from reverie.memory_graph.store.seal import SEAL_SCHEMA, Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reverie.memory_graph.store.sqlite import Database

_CHANGED = ("owner", "users", "generations", "results", "pins")


def partition_from_1(db: Database) -> None:
    """Add the seal, the names, and the checksums of users, branches, results and pins.

    From format 1 on, each of these rows was taken at its word; so it is here, for the last time.
    """
    rows = {table: db.rows(f"SELECT * FROM {table}") for table in _CHANGED}  # noqa: S608
    keys = {uid: Key(world, user_id) for uid, world, user_id, *_ in rows["users"]}
    for table in _CHANGED:
        db.rows(f"DROP TABLE {table}")
    for statement in PARTITION_SCHEMA:
        if _name(statement) in {*_CHANGED, "names", "seal", "results_of_user", "pins_of_user"}:
            db.rows(statement)
    for row in rows["owner"]:
        db.rows("INSERT INTO owner VALUES (?, ?, ?, ?, ?, 1)", row)
    hashes = {uid: RowHash(key) for uid, key in keys.items()}
    _insert(db, "users", rows["users"], lambda u: hashes[u[0]].user(u[0], u[3], u[4], u[5], u[8]))
    _insert(
        db, "names", [(uid, *key) for uid, key in keys.items()], lambda r: hashes[r[0]].name(r[0])
    )
    _insert(
        db, "generations", rows["generations"], lambda r: hashes[r[0]].generation(r[1], r[2], r[3])
    )
    _insert(db, "results", rows["results"], lambda r: result_hash(*r[1:]))
    _insert(db, "pins", rows["pins"], lambda r: hashes[r[2]].pin(r[1], r[3], r[4], r[5]))
    Seal(db, SEALED).make()


def catalog_from_1(db: Database) -> None:
    """Add the seal."""
    db.rows(SEAL_SCHEMA)
    Seal(db, ("folder", "worlds", "tags", "intents")).make()


def _name(statement: str) -> str:
    return statement.split()[2]


def _insert(
    db: Database,
    table: str,
    rows: Sequence[tuple[Any, ...]],
    checksum: Callable[[tuple[Any, ...]], bytes],
) -> None:
    """Put rows into a table that has got a checksum as its last column."""
    if rows:
        marks = ", ".join("?" * (len(rows[0]) + 1))
        db.change_many(
            f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 (our constants)
            [(*row, checksum(row)) for row in rows],
        )
