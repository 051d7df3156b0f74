"""Copies of databases in use: each file as it was at one moment, while its owner goes on writing.

A read transaction of a second connection holds the moment: what is written later goes into the log
behind it. Meanwhile the log cannot begin anew and the file cannot be built anew, so the moment is
to be given back soon; see `Database.truncate_log`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from reverie.memory_graph.errors import StorageFailedError
from reverie.memory_graph.store.catalog import CATALOG_ID, CATALOG_VERSION, SEALED as CATALOG_SEALED
from reverie.memory_graph.store.check import check
from reverie.memory_graph.store.driver_errors import our_error
from reverie.memory_graph.store.schema import PARTITION_ID, PARTITION_VERSION, SEALED
from reverie.memory_graph.store.seal import Seal
from reverie.memory_graph.store.sqlite import Database, check_version, open_to_read, sync_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

STEP_PAGES = 1024  # 4 MiB are copied between two looks at whether to go on
_KINDS = {"catalog": (CATALOG_ID, CATALOG_VERSION), "partition": (PARTITION_ID, PARTITION_VERSION)}


class Moment:
    """A database as it is when this is made, until it is closed. For one thread at a time.

    Attributes:
        path: the file.
        size_bytes: of the copy.
        users: how many a partition has.
    """

    def __init__(self, path: Path, kind: str) -> None:
        """Hold the moment.

        Args:
            path: a database that its owner may have open.
            kind: "catalog" or "partition".

        Raises:
            StorageError: it cannot be read.
            OverloadedError: its owner is recovering it.
        """
        if not path.is_file():
            msg = f"{path} is gone"
            raise StorageFailedError(msg, path=str(path))
        application_id, version = _KINDS[kind]
        self.path = path
        self._db = open_to_read(path, application_id=application_id, version=version)
        try:
            self._db.rows("BEGIN")
            # The moment begins with the first thing that is read.
            (pages,) = self._db.only_row("PRAGMA page_count")
            (page_bytes,) = self._db.only_row("PRAGMA page_size")
            self.users = 0
            if kind == "partition":
                (self.users,) = self._db.only_row("SELECT COUNT(*) FROM users WHERE live = 1")
        except BaseException:
            self._db.close()
            raise
        self.size_bytes = int(pages) * int(page_bytes)

    def copy_to(self, target: Path, go_on: Callable[[], None] = lambda: None) -> None:
        """Write the database as it was into a new file, and sync it.

        Args:
            target: the file, which must not be there; for its owner only.
            go_on: called now and then; what it raises ends the copying.

        Raises:
            FileExistsError: there is a file of this name.
            StorageError: it cannot be read or written.
        """
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        source = self._db._usable()  # noqa: SLF001 (sqlite.py has no room for this)
        try:
            into = apsw.Connection(str(target))
            try:
                # No journal and no syncs on the way: half a copy is thrown away.
                into.pragma("journal_mode", "off")
                into.pragma("synchronous", 0)
                with into.backup("main", source, "main") as work:
                    while not work.done:
                        work.step(STEP_PAGES)
                        go_on()
            finally:
                into.close()
        except apsw.Error as exc:
            raise our_error(exc, target) from exc
        sync_file(target)

    def close(self) -> None:
        """Give the moment back; a second call does nothing."""
        self._db.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def examine_copy(path: Path, kind: str) -> list[str]:
    """Return every broken invariant of a copy that nobody has open, in words; writes nothing.

    Raises:
        StorageError: it is so damaged that nobody could open it.
    """
    check_version()
    try:
        connection = apsw.Connection(
            f"{path.absolute().as_uri()}?immutable=1",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
    except apsw.Error as exc:
        raise our_error(exc, path) from exc
    db = Database(connection, path)
    try:
        with db.read():
            Seal(db, SEALED if kind == "partition" else CATALOG_SEALED).verify()
            return check(db) if kind == "partition" else []
    finally:
        db.close()


def sqlite_version() -> str:
    """Return the version of the SQLite library that is used."""
    return apsw.sqlite_lib_version()


__all__ = ["Moment", "examine_copy", "sqlite_version"]
