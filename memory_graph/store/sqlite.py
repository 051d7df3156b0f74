"""One SQLite file: how it is opened, written and read, and what its errors become.

The only module that imports the driver, with driver_errors.py. Laws kept here:

- one COMMIT is one fsync of the write-ahead log, and nothing is acknowledged before it;
- an input/output error breaks the connection for good (`StorageFailedError` from then on): the
  kernel may have dropped the pages that it could not write, so a second fsync proves nothing;
- a file that was removed or replaced under its name is not written any more: what lands in it ends
  with this process;
- text that is deleted is overwritten: `secure_delete` is on for every page of every file.

A trap of the driver: a text of several statements stops at the first one that returns a row until
that row is fetched, so every statement here is run alone and fetched to its end.
"""

from __future__ import annotations

import errno
import functools
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import apsw

from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    DataFolderError,
    InternalError,
    InvariantError,
    ReverieError,
    StorageFailedError,
    StorageReadOnlyError,
)
from reverie.memory_graph.store import forks
from reverie.memory_graph.store.driver_errors import NO_SUCH_ROW, damaged, full, our_error
from reverie.memory_graph.store.seal import WAY_OUT, Seal, Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

Value = None | int | float | bytes | str

MIN_SQLITE = (3, 51, 3)  # earlier ones can corrupt a file when the log restarts
BUSY_TIMEOUT_S = 5.0
CHECKPOINT_PAGES = 1_000  # 4 MB of log, then its pages move into the main file
WAL_LIMIT_BYTES = 16 * 1024 * 1024  # a log that grew beyond is cut back
RENEWED_BYTES = 1024 * 1024  # of a log at a time, when it is written anew

_PRAGMAS = (
    "synchronous = FULL",
    "secure_delete = ON",
    "foreign_keys = OFF",
    "temp_store = MEMORY",  # a spilled sort must not leave text in the system's temporary folder
    "cell_size_check = ON",
    "trusted_schema = OFF",
    f"journal_size_limit = {WAL_LIMIT_BYTES}",
)


@functools.cache
def check_version() -> None:
    """Refuse an SQLite library older than `MIN_SQLITE`.

    Raises:
        StorageFailedError: too old; the message names the way out.
    """
    found = apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")[:3]) < MIN_SQLITE:
        wanted = ".".join(map(str, MIN_SQLITE))
        msg = f"SQLite {found} is too old; install apsw >= {wanted}"
        raise StorageFailedError(msg, found=found, wanted=wanted)


class Database:
    """One open SQLite file. Used by one thread at a time, not always the same one."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        """Take over a connection; use `open_database`."""
        self.path = path
        self._connection: apsw.Connection | None = connection
        self._failure: str | None = None
        self._is_writing = False
        self._is_spoiled = False
        self._log_pages = 0
        self._files: list[tuple[str, tuple[int, int] | None]] = []
        self._is_forked = False
        self._seal: Seal | None = None
        forks.guard(self)

        def count_log_pages(_connection: apsw.Connection, _name: str, pages: int) -> int:
            self._log_pages = pages
            return apsw.SQLITE_OK

        # Replaces SQLite's own checkpointing, which swallows the errors of its fsync.
        connection.set_wal_hook(count_log_pages)

    def keep_seal(self, tables: Sequence[str], *, commits: int = 0) -> None:
        """Verify the seal, in the transaction that is open, and keep it in this and later ones.

        Args:
            tables: that it vouches for.
            commits: the least number of transactions to go on from.

        Raises:
            StorageFailedError: the sealed tables are not what was written, or the newest
                transactions are gone.
        """
        seal = Seal(self, tables)
        seal.verify()
        seal.commits = max(seal.commits, commits)
        self._seal = seal

        def changed(update: apsw.PreUpdate) -> None:
            if update.database_name == "main":
                seal.changed(update.table_name, update.old, update.new)

        assert self._connection is not None  # noqa: S101 (it was just read)
        self._connection.preupdate_hook(changed, id=seal)

    # -- statements ----------------------------------------------------------------------

    def rows(self, sql: str, args: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all of its rows."""
        try:
            return self._usable().execute(sql, args).fetchall()
        except apsw.Error as exc:
            raise self._failed(exc) from exc
        except UnicodeDecodeError as exc:  # a text column whose bytes are no text any more
            self._is_spoiled = self._is_writing
            msg = f"{self.path} is damaged: {exc}; {WAY_OUT}"
            raise StorageFailedError(msg, path=str(self.path)) from exc

    def row(self, sql: str, args: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        """Run one statement and return its first row, or None."""
        found = self.rows(sql, args)
        return found[0] if found else None

    def only_row(self, sql: str, args: Sequence[Value] = ()) -> tuple[Any, ...]:
        """Run one statement and return its one row; that there is none is damage."""
        found = self.rows(sql, args)
        if len(found) != 1:
            self._is_spoiled = self._is_writing
            raise damaged(self.path, f"{len(found)} rows where one belongs")
        return found[0]

    def change(self, sql: str, args: Sequence[Value] = ()) -> int:
        """Run one statement and return how many rows it changed."""
        self.rows(sql, args)
        return self._usable().changes()

    def change_many(self, sql: str, many: Iterable[Sequence[Value]]) -> None:
        """Run one statement once for each of `many` argument lists."""
        try:
            self._usable().executemany(sql, many).fetchall()
        except apsw.Error as exc:
            raise self._failed(exc) from exc

    # -- transactions --------------------------------------------------------------------

    @contextmanager
    def write(self, guard: Callable[[], None] | None = None) -> Iterator[None]:
        """Run the body in one transaction: all of it is on disk afterwards, or none of it.

        Args:
            guard: runs inside the transaction before the body; what it raises refuses the write.

        Raises:
            StorageFullError: nothing was stored; the file stays usable.
            StorageFailedError: an input/output error, or the file is not there any more; every
                later call raises it, too.
            OverloadedError: another connection held the file for `BUSY_TIMEOUT_S`.
        """
        if self._usable().in_transaction:
            msg = "a transaction is open already"
            raise InvariantError(msg)
        try:
            self.rows("BEGIN IMMEDIATE")
            self._is_writing = True
            if self._seal is not None:
                self._seal.begin()
            if guard is not None:
                guard()
            yield
            if self._seal is not None:
                self._seal.before_commit()
            faults.reach("commit.before")
            self.rows("COMMIT")  # THE MOMENT OF DURABILITY: the log is synced when this returns.
            self._require_names()
            if self._seal is not None:
                self._seal.committed()
            faults.reach("commit.after")
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._is_writing = self._is_spoiled = False
        self._checkpoint_if_due()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Let every statement of the body see the same state; joins an open transaction."""
        if self._usable().in_transaction:
            yield
            return
        try:
            self.rows("BEGIN")
            yield
        finally:
            self._roll_back()

    @property
    def is_broken(self) -> bool:
        """Whether an input/output error was met: every call fails until the file is reopened."""
        return self._failure is not None and not self._is_forked

    def _require_names(self) -> None:
        """Refuse to acknowledge what was written to a file that has lost its name, with its folder
        or alone: nobody would find it. Costs some 4 microseconds."""
        if not self._files:  # the first transaction, which has made the log
            names = (str(self.path), f"{self.path}-wal")
            self._files = [(name, _identity(name)) for name in names]
        for name, known in self._files:
            if known is None or _identity(name) != known:
                self._break(f"{name} was removed or replaced while it was open")
                msg = f"{name} was removed or replaced while it was open; {WAY_OUT}"
                raise StorageFailedError(msg, path=str(self.path))

    def leave_to_parent(self) -> None:
        """Refuse every call in a forked process."""
        self._is_forked = True
        self._failure = "it belongs to the process that this one was forked from"
        connection, self._connection = self._connection, None
        if connection is not None:
            forks.keep(connection)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._usable().in_transaction

    def _roll_back(self) -> None:
        connection = self._connection
        # SQLite ends the transaction itself on some errors (disk full, input/output).
        if connection is None or not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK").fetchall()
        except apsw.Error as exc:
            self._break(f"rollback failed: {exc}")

    def _checkpoint_if_due(self) -> None:
        if self._log_pages < CHECKPOINT_PAGES:
            return
        self._log_pages = 0
        faults.reach("log-move.before")
        # The write is durable whatever happens here, so an error must not deny it: it breaks the
        # file for the next call. A reader in the way only means that a later commit tries again.
        try:
            self._usable().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.BusyError, apsw.LockedError, apsw.FullError):
            pass
        except apsw.Error as exc:
            self._break(f"checkpoint failed: {exc}")
        faults.reach("log-move.after")

    # -- the whole file ------------------------------------------------------------------

    def truncate_log(self) -> None:
        """Move the log into the main file and cut it to zero bytes.

        Raises:
            OverloadedError: a reader is in the way; try again.
            StorageFailedError: the log is not empty afterwards.
        """
        faults.reach("log-cut.before")
        try:
            self._usable().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as exc:
            raise self._failed(exc) from exc
        faults.reach("log-cut.after")
        self._log_pages = 0
        log = self.path.with_name(self.path.name + "-wal")
        try:
            if left := log.stat().st_size:
                msg = f"{log} still holds {left:,} bytes after its checkpoint"
                raise StorageFailedError(msg, path=str(log))
            sync_file(log)  # SQLite does not: a power loss could bring the old log back
        except FileNotFoundError:
            pass
        except OSError as exc:
            if isinstance(exc, StorageFailedError):
                raise
            self._break(f"sync of the log failed: {exc}")
            msg = f"{log}: input/output error: {exc}"
            raise StorageFailedError(msg, path=str(log)) from exc

    def rewrite(self) -> None:
        """Build the file anew from its live rows. Needs memory and disk for another copy of it."""
        faults.reach("rewrite.before")
        self.rows("VACUUM")
        faults.reach("rewrite.after")

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        connection, self._connection = self._connection, None
        if self._seal is not None:
            self._seal.witness.close()
        if connection is None:
            return
        try:
            connection.close()
        except apsw.Error as exc:
            raise self._failed(exc) from exc

    # -- errors --------------------------------------------------------------------------

    def _usable(self) -> apsw.Connection:
        if self._failure is not None:
            msg = f"{self.path} failed and must be reopened: {self._failure}"
            raise StorageFailedError(msg, path=str(self.path))
        if self._connection is None:
            msg = f"{self.path} is closed"
            raise StorageFailedError(msg, path=str(self.path))
        if self._is_spoiled:
            msg = f"{self.path}: a statement of this transaction failed, so it cannot go on"
            raise StorageFailedError(msg, path=str(self.path))
        return self._connection

    def give_up(self, failure: str) -> None:
        """Close the file without moving its log into it."""
        self._break(failure)
        self.close()

    def _break(self, failure: str) -> None:
        self._failure = failure
        if self._connection is not None:
            # Closing, also by the garbage collector, would checkpoint, and so retry the fsync.
            with suppress(apsw.Error):
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _failed(self, exc: apsw.Error) -> ReverieError:
        if isinstance(exc, apsw.IOError):
            self._break(str(exc))
        # SQLite may have ended the transaction, or done half of the statement: a caller that
        # catches this error must not be able to write on, or to commit.
        self._is_spoiled = self._is_writing
        return our_error(exc, self.path, self._connection)


def _identity(name: str) -> tuple[int, int] | None:
    """Return what tells one file from another, None when there is none of this name."""
    try:
        found = os.stat(name)  # noqa: PTH116 (takes half the time of Path)
    except OSError:
        return None
    return found.st_ino, found.st_dev


@contextmanager
def closed_on_error(database: Database) -> Iterator[None]:
    """Close `database` when the body raises, and leave its log as it is: of a damaged one, what is
    past the damage may be all that is left."""
    try:
        yield
    except BaseException as exc:
        database.give_up(str(exc))
        if isinstance(exc, NO_SUCH_ROW) and not isinstance(exc, ReverieError):
            raise damaged(database.path, exc) from exc
        raise


def open_database(
    path: Path,
    *,
    application_id: int,
    version: int,
    schema: Sequence[str],
    migrations: Mapping[int, Callable[[Database], None]],
    create: bool = True,
    vfs: str | None = None,
) -> Database:
    """Open `path`; create it with `schema` when it is new, migrate it when its format is older.

    Args:
        path: the file; its folder exists.
        application_id: what kind of file it is, stored in its header.
        version: the format that this code writes.
        schema: the statements that make the tables.
        migrations: by format, what makes the next one of it, inside a transaction.
        create: whether a missing or empty file is made. One that had data is not: a new one in its
            place would look sound.
        vfs: name of a registered SQLite file layer; None is the system's.

    Raises:
        DataFolderError: another kind of file, a newer format, or no SQLite file at all.
        StorageReadOnlyError: the file or its folder cannot be written.
        StorageFailedError: damaged, gone, or the file system cannot hold a write-ahead log.
    """
    check_version()
    is_created = not path.exists()
    if not create or Witness(path).read():  # before SQLite makes one, or writes a header
        if is_created:
            msg = f"{path} is gone; {WAY_OUT}"
            raise StorageFailedError(msg, path=str(path))
        if not path.stat().st_size:
            msg = f"{path} is empty, and was not; {WAY_OUT}"
            raise StorageFailedError(msg, path=str(path))
    try:
        connection = apsw.Connection(str(path), vfs=vfs)
    except apsw.Error as exc:
        raise our_error(exc, path) from exc
    try:
        connection.set_busy_timeout(int(BUSY_TIMEOUT_S * 1000))
        _identify(connection, path, application_id, version)
        _configure(connection, path)
        database = Database(connection, path)
        with database.write():
            renew_log(path)
            if database.row("SELECT 1 FROM sqlite_schema LIMIT 1") is None:
                if not create or Witness(path).read():
                    msg = f"{path} has no tables, and had some; {WAY_OUT}"
                    raise StorageFailedError(msg, path=str(path))  # noqa: TRY301
                for statement in schema:
                    database.rows(statement)
                database.rows(f"PRAGMA application_id = {application_id}")
                database.rows(f"PRAGMA user_version = {version}")
            else:
                _migrate(database, version, migrations)
            _require_shape(database, schema)
    except BaseException as exc:
        with suppress(apsw.Error):  # as in `Database._break`
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        error = our_error(exc, path, connection) if isinstance(exc, apsw.Error) else None
        if isinstance(exc, NO_SUCH_ROW) and not isinstance(exc, ReverieError):
            error = damaged(path, exc)
        connection.close()
        if error is not None:
            raise error from exc
        raise
    if is_created:
        sync_folder(path.parent)
    return database


def open_to_read(path: Path, *, application_id: int, version: int) -> Database:
    """Open `path` beside its owner, to look at it: no statement of this connection can write.

    Args:
        path: the file; it exists.
        application_id: what kind of file it is.
        version: the newest format that this code reads.

    Raises:
        DataFolderError: another kind of file, a newer format, or no SQLite file at all.
        StorageReadOnlyError: it cannot be opened.
        OverloadedError: its owner is recovering it.
    """
    check_version()
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as exc:
        raise our_error(exc, path) from exc
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(int(BUSY_TIMEOUT_S * 1000))
        _require_kind(connection, path, application_id, version)
    except BaseException as exc:
        connection.close()
        if isinstance(exc, apsw.Error):
            raise our_error(exc, path) from exc
        raise
    return Database(connection, path)


def _identify(connection: apsw.Connection, path: Path, application_id: int, version: int) -> None:
    """Look before anything is written: a stranger's database must stay as it is."""
    if connection.readonly("main"):  # SQLite falls back to reading without a word
        msg = f"{path} cannot be written"
        raise StorageReadOnlyError(msg, path=str(path))
    _require_kind(connection, path, application_id, version)


def _migrate(
    database: Database, version: int, migrations: Mapping[int, Callable[[Database], None]]
) -> None:
    (found,) = database.only_row("PRAGMA user_version")
    while found < version:
        try:
            migrations[found](database)
        except (KeyError, InternalError, InvariantError) as exc:
            msg = f"{database.path} is damaged: it has no table of its format {found}; {WAY_OUT}"
            raise StorageFailedError(msg, path=str(database.path)) from exc
        found += 1
        database.rows(f"PRAGMA user_version = {found}")


def _require_shape(database: Database, schema: Sequence[str]) -> None:
    """Refuse a file whose header or table of tables is damaged, before anything relies on it."""
    found = sorted(sql for (sql,) in database.rows("SELECT sql FROM sqlite_schema") if sql)
    settings = [database.rows(f"PRAGMA {name}")[0][0] for name in ("encoding", "auto_vacuum")]
    if found != sorted(schema) or settings != ["UTF-8", 0]:
        msg = f"{database.path} is damaged: its tables are not those of its format; {WAY_OUT}"
        raise StorageFailedError(msg, path=str(database.path))


def _require_kind(
    connection: apsw.Connection, path: Path, application_id: int, version: int
) -> None:
    try:
        kind = connection.pragma("application_id")
        found = connection.pragma("user_version")
        is_empty = not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    except apsw.NotADBError as exc:
        msg = f"{path} is no file of reverie, or its header is damaged: then {WAY_OUT}"
        raise DataFolderError(msg, path=str(path)) from exc
    if is_empty and kind == found == 0:
        return
    if kind != application_id:
        msg = f"{path} is a database of something else, or its header is damaged: then {WAY_OUT}"
        raise DataFolderError(msg, path=str(path))
    if not isinstance(found, int) or found > version:
        msg = (
            f"{path} was written by a newer version of reverie: it has format {found}, "
            f"this version reads up to {version}"
        )
        raise DataFolderError(msg, path=str(path), found=int(found or 0), supported=version)


def _configure(connection: apsw.Connection, path: Path) -> None:
    mode = connection.pragma("journal_mode", "wal")
    if mode != "wal":
        msg = f"{path}: no write-ahead log here (mode {mode}); use a local disk"
        raise StorageFailedError(msg, path=str(path))
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").fetchall()
    if connection.pragma("secure_delete") != 1 or connection.pragma("synchronous") != 2:  # noqa: PLR2004
        msg = f"{path}: this SQLite refuses secure_delete or synchronous=FULL"
        raise StorageFailedError(msg, path=str(path))


def sync_file(path: Path) -> None:
    """Make what a file holds, and its size, survive a power loss.

    Not for the main file of an open database: closing a handle on it ends SQLite's locks.
    """
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def renew_log(path: Path) -> None:
    """Write the log of a database anew, as it is, and sync it; with the write lock held.

    Whoever left it there may have had a sync that failed. The kernel then keeps in memory what it
    could not write, calls it clean, and does not try again: it can be read, and yet a power loss
    takes it, and all of the log that was synced after it.

    Raises:
        StorageFullError, StorageFailedError: that did not work; nothing was lost by it.
    """
    log = path.with_name(path.name + "-wal")
    if not log.exists():
        return
    try:
        handle = os.open(log, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            at = 0
            while data := os.read(handle, RENEWED_BYTES):
                os.lseek(handle, at, os.SEEK_SET)
                while data:
                    written = os.write(handle, data)
                    at, data = at + written, data[written:]
            if at:
                os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise full(path) from exc
        msg = f"{log}: input/output error: {exc}"
        raise StorageFailedError(msg, path=str(path)) from exc


def sync_folder(folder: Path) -> None:
    """Make the names of new files in `folder` survive a power loss."""
    if os.name == "nt":  # folders cannot be opened there; its file systems journal names
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
