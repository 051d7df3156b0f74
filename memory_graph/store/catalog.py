"""The catalog of a data folder: its worlds and tags, and the operations that are under way.

Written by the runtime alone. An operation over all partitions (checkpoint, rewind, fork, drop)
is noted as an intent before its first step and struck out after its last one; what is found
unfinished at the next start is done again.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    CheckpointExistsError,
    DataFolderError,
    InvariantError,
    StorageError,
)
from reverie.memory_graph.store.migrations import catalog_from_1
from reverie.memory_graph.store.seal import SEAL_SCHEMA
from reverie.memory_graph.store.sqlite import Database, closed_on_error, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CATALOG_ID = 0x52455643  # "REVC"
CATALOG_VERSION = 2
MAX_PARTITIONS = 4096

SCHEMA = (
    """CREATE TABLE folder (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        partitions INTEGER NOT NULL) STRICT""",
    """CREATE TABLE worlds (
        name TEXT PRIMARY KEY,
        embedder TEXT NOT NULL,
        dim INTEGER NOT NULL,
        spec TEXT NOT NULL,
        created REAL NOT NULL) STRICT""",
    """CREATE TABLE tags (
        world TEXT NOT NULL,
        tag TEXT NOT NULL,
        made_at REAL NOT NULL,
        PRIMARY KEY (world, tag)) STRICT""",
    """CREATE TABLE intents (
        number INTEGER PRIMARY KEY,
        operation TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL,
        payload BLOB NOT NULL) STRICT""",
    SEAL_SCHEMA,
)
SEALED = ("folder", "worlds", "tags", "intents")


class World(NamedTuple):
    """A world: its embedder (id and number of dimensions), and a text that the runtime reads."""

    name: str
    embedder: str
    dim: int
    spec: str
    created: float


class Tag(NamedTuple):
    """A checkpoint of a world; `made_at` in seconds on the runtime's clock."""

    world: str
    tag: str
    made_at: float


class Intent(NamedTuple):
    """An operation that was begun and not finished; the store does not read its payload."""

    operation: str
    kind: str
    payload: bytes


class Catalog:
    """The open catalog. Used by one thread at a time. After an input/output error it is recovered
    from disk before it is used again."""

    def __init__(self, db: Database, partitions: int) -> None:
        """Take over an open file; use `Catalog.open`."""
        self._db = db
        self._is_writing = self._is_closed = False
        self.partitions = partitions

    @classmethod
    def open(cls, path: Path, *, partitions: int, create: bool = True) -> Catalog:
        """Open the catalog, or create it for a folder of `partitions` partitions.

        Raises:
            DataFolderError: another kind of file, or a newer format.
            StorageReadOnlyError: it cannot be written.
            StorageFailedError: it is damaged.
        """
        return cls(*cls._open(path, partitions, create=create))

    @staticmethod
    def _open(path: Path, partitions: int, *, create: bool) -> tuple[Database, int]:
        db = open_database(
            path,
            application_id=CATALOG_ID,
            version=CATALOG_VERSION,
            schema=SCHEMA,
            migrations={1: catalog_from_1},
            create=create,
        )
        with closed_on_error(db):
            with db.write():
                db.keep_seal(SEALED)
                db.rows("INSERT OR IGNORE INTO folder VALUES (1, ?)", (partitions,))
                (stored,) = db.only_row("SELECT partitions FROM folder")
            if not 1 <= stored <= MAX_PARTITIONS:
                msg = f"{path} names {stored} partitions"
                raise DataFolderError(msg, path=str(path))
        return db, stored

    def _usable(self) -> Database:
        """Return the open file. One that failed is opened again, but not within a transaction."""
        if self._db.is_broken and not (self._is_writing or self._is_closed):
            with suppress(StorageError):
                self._db.close()
            self._db, _ = self._open(self._db.path, self.partitions, create=False)
        return self._db

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._is_closed = True
        self._db.close()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Make the changes of the body one transaction; each is one by itself otherwise."""
        if self._is_writing:
            yield
            return
        db = self._usable()
        self._is_writing = True
        try:
            with db.write():
                yield
        finally:
            self._is_writing = False

    def scrub(self) -> None:
        """Leave no copy of deleted rows in the file or its log."""
        self._db.rewrite()
        self._db.truncate_log()

    # -- worlds --------------------------------------------------------------------------

    def add_world(self, world: World) -> None:
        """Add a world.

        Raises:
            CheckpointExistsError: there is one of this name.
        """
        with self.write():
            if self.world(world.name) is not None:
                msg = f"world {world.name!r} exists already"
                raise CheckpointExistsError(msg, world=world.name)
            self._db.rows("INSERT INTO worlds VALUES (?, ?, ?, ?, ?)", world)

    def world(self, name: str) -> World | None:
        """Return a world, or None."""
        row = self._usable().row(
            "SELECT name, embedder, dim, spec, created FROM worlds WHERE name = ?", (name,)
        )
        return None if row is None else World(*row)

    def worlds(self) -> list[World]:
        """Return all worlds, in the order of their names."""
        rows = self._usable().rows(
            "SELECT name, embedder, dim, spec, created FROM worlds ORDER BY name"
        )
        return [World(*row) for row in rows]

    def set_world_embedder(self, name: str, embedder: str, dim: int, spec: str) -> None:
        """Note that the vectors of a world come from another model now.

        Raises:
            InvariantError: no such world.
        """
        with self.write():
            if not self._db.change(
                "UPDATE worlds SET embedder = ?, dim = ?, spec = ? WHERE name = ?",
                (embedder, dim, spec, name),
            ):
                msg = f"world {name!r} is not in the catalog"
                raise InvariantError(msg, world=name)

    # -- tags ----------------------------------------------------------------------------

    def add_tag(self, world: str, tag: str, made_at: float) -> None:
        """Add a checkpoint; one that is there keeps its time."""
        with self.write():
            self._db.rows("INSERT OR IGNORE INTO tags VALUES (?, ?, ?)", (world, tag, made_at))

    def remove_tag(self, world: str, tag: str) -> None:
        """Remove a checkpoint; one that is not there is passed over."""
        with self.write():
            self._db.rows("DELETE FROM tags WHERE world = ? AND tag = ?", (world, tag))

    def tags(self, world: str) -> list[Tag]:
        """Return the checkpoints of a world, oldest first."""
        rows = self._usable().rows(
            "SELECT world, tag, made_at FROM tags WHERE world = ? ORDER BY made_at, tag", (world,)
        )
        return [Tag(*row) for row in rows]

    # -- intents -------------------------------------------------------------------------

    def begin_intent(self, operation: str, kind: str, payload: bytes) -> None:
        """Note an operation before its first step.

        Raises:
            InvariantError: one of this id is under way.
        """
        faults.reach("intent.before")
        with self.write():
            self._db.rows(
                "INSERT INTO intents (operation, kind, payload) VALUES (?, ?, ?)",
                (operation, kind, payload),
            )
        faults.reach("intent.after")

    def finish_intent(self, operation: str) -> None:
        """Strike an operation out after its last step; an unknown one is passed over."""
        faults.reach("intent-end.before")
        with self.write():
            self._db.rows("DELETE FROM intents WHERE operation = ?", (operation,))
        faults.reach("intent-end.after")

    def unfinished(self) -> list[Intent]:
        """Return the operations under way, in the order in which they began."""
        rows = self._usable().rows("SELECT operation, kind, payload FROM intents ORDER BY number")
        return [Intent(*row) for row in rows]
