"""What the errors of the SQLite driver become."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import apsw

from reverie.memory_graph.errors import (
    InternalError,
    InvariantError,
    OverloadedError,
    ReverieError,
    StorageError,
    StorageFailedError,
    StorageFullError,
    StorageReadOnlyError,
)
from reverie.memory_graph.store.seal import WAY_OUT

if TYPE_CHECKING:
    from pathlib import Path

OPEN_BYTES = 64 * 1024  # what opening a file takes: the index of its log, and its first pages


# What reading a row raises when a column holds another type than its table, or a row is missing.
NO_SUCH_ROW = (TypeError, ValueError, IndexError, AttributeError)


def our_error(
    exc: apsw.Error, path: Path, connection: apsw.Connection | None = None
) -> ReverieError:
    """Return the error of this package that tells the same as the driver's `exc`."""
    where = str(path)
    match exc:
        case apsw.FullError():
            return full(path)
        case apsw.IOError() if connection is not None and _is_index_full(exc, connection):
            return full(path)
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StorageReadOnlyError(f"{where} cannot be written: {exc}", path=where)
        case apsw.IOError():
            return StorageFailedError(f"{where}: input/output error: {exc}", path=where)
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged(path, exc)
        case apsw.SQLError() if "unsupported file format" in str(exc):
            return damaged(path, exc)
        case apsw.BusyError() | apsw.LockedError():
            return OverloadedError(f"{where} is in use by another connection", path=where)
        case apsw.ConstraintError() | apsw.TooBigError():
            return InvariantError(f"{where}: {exc}", path=where)
        case _:
            return InternalError(f"{where}: {type(exc).__name__}: {exc}", path=where)


def _is_index_full(exc: apsw.IOError, connection: apsw.Connection) -> bool:
    """Whether the index of the log could not grow. A sync that says it is full has failed."""
    is_index = getattr(exc, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE
    return is_index and connection.system_errno in {errno.ENOSPC, errno.EDQUOT}


def damaged(path: Path, why: object) -> StorageFailedError:
    """Return the error of a file that does not hold what was written."""
    return StorageFailedError(f"{path} is damaged: {why}; {WAY_OUT}", path=str(path))


def full(path: Path) -> StorageFullError:
    """Return the error of a file that cannot grow."""
    msg = (
        f"no space left for {path}; nothing was stored, and nothing is lost: free some space and "
        f"try again (opening a folder takes {OPEN_BYTES // 1024} KiB for each of its databases)"
    )
    return StorageFullError(msg, path=str(path))


def disk_error(exc: OSError, path: Path) -> StorageError:
    """Return the error of this package that tells the same as one of the system."""
    if isinstance(exc, StorageError):
        return exc
    if exc.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return StorageReadOnlyError(f"{path} cannot be written: {exc}", path=str(path))
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFullError(f"no space left for {path}: {exc}", path=str(path))
    return StorageFailedError(f"{path}: {exc}", path=str(path))
