"""The data folder: where its files lie, and the lock that lets one process own it.

    <path>/catalog.db              worlds, tags, operations under way
    <path>/partitions/p0003.db     the users' histories
    <path>/indices/                vector indices, rebuilt when missing
    <path>/traces/                 what the models were asked and answered
    <path>/LOCK, OWNER.json        the lock, and who holds it

File names are made of numbers and hashes only, never of a caller's text.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from filelock import FileLock, Timeout

from reverie.memory_graph.errors import (
    ConfigError,
    DataFolderError,
    DataFolderLockedError,
    StorageError,
    StorageFailedError,
    StorageFullError,
    StorageReadOnlyError,
)
from reverie.memory_graph.ids import key_hash
from reverie.memory_graph.store.catalog import MAX_PARTITIONS, Catalog
from reverie.memory_graph.store.partition import Partition
from reverie.memory_graph.store.sqlite import sync_folder

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from reverie.memory_graph.ids import Key

DEFAULT_PARTITIONS = 16

_CATALOG = "catalog.db"
_FOLDERS = ("partitions", "indices", "traces")
_OURS = {_CATALOG, f"{_CATALOG}-wal", f"{_CATALOG}-shm", "LOCK", "OWNER.json", "OWNER.json.new"}


class FolderOwner(msgspec.Struct, frozen=True):
    """Who holds a data folder, for people; the lock itself is the kernel's."""

    pid: int = 0
    host: str = "?"
    started: float = 0.0  # seconds since 1970, UTC
    command: str = "?"
    owner: str = "?"


class DataFolder:
    """An open and locked data folder, in the name of `owner`. `warnings` say what differs from what
    was asked for."""

    def __init__(
        self, path: Path, lock: FileLock, catalog: Catalog, owner: str, warnings: list[str]
    ) -> None:
        """Take over an open folder; use `DataFolder.open`."""
        self.path = path
        self.catalog = catalog
        self.warnings = warnings
        self.indices = path / "indices"
        self.traces = path / "traces"
        self._lock = lock
        self.owner = owner

    @classmethod
    def open(cls, path: Path, *, owner: str, partitions: int = DEFAULT_PARTITIONS) -> DataFolder:
        """Lock a data folder and open its catalog; make both when there is nothing yet.

        Args:
            path: an empty or missing folder, or a data folder.
            owner: who opens it, for people.
            partitions: how many to create; a folder keeps the number that it was made with.

        Raises:
            DataFolderLockedError: another opener has it; `pid`, `host` and `command` say who.
            DataFolderError: something else lies there, or it has a newer format.
            StorageReadOnlyError: it cannot be written.
            ConfigError: `partitions` is out of range.
        """
        if not 1 <= partitions <= MAX_PARTITIONS:
            msg = f"partitions must lie between 1 and {MAX_PARTITIONS}, not {partitions}"
            raise ConfigError(msg, partitions=partitions)
        path = Path(path).absolute()
        try:
            _require_ours(path)
            path.mkdir(parents=True, exist_ok=True)
            lock = _lock(path)
        except OSError as exc:
            raise _storage_error(exc, path) from exc
        try:
            for name in _FOLDERS:
                (path / name).mkdir(exist_ok=True)
            catalog = Catalog.open(path / _CATALOG, partitions=partitions)
            _name_owner(path, owner)
            sync_folder(path)
        except OSError as exc:
            lock.release()
            raise _storage_error(exc, path) from exc
        except BaseException:
            lock.release()
            raise
        warnings = []
        if catalog.partitions != partitions:
            warnings.append(
                f"{path} has {catalog.partitions} partitions since it was made; "
                f"{partitions} were asked for"
            )
        return cls(path, lock, catalog, owner, warnings)

    @property
    def partitions(self) -> int:
        """How many partitions the folder has; fixed when it was made."""
        return self.catalog.partitions

    def require_partitions(self) -> None:
        """Refuse a folder that has lost a partition: an empty one in its place would look sound.

        Raises:
            DataFolderError: a world was made in it, and a partition file is missing or empty.
        """
        if not self.catalog.worlds():
            return  # nothing was ever written
        paths = map(self.partition_path, range(self.partitions))
        lost = [p.name for p in paths if not p.is_file() or not p.stat().st_size]
        if lost:
            msg = (
                f"{self.path} has lost {', '.join(lost)}: restore the missing files from a backup; "
                "nothing was changed"
            )
            raise DataFolderError(msg, path=str(self.path), lost=lost)

    def partition_path(self, index: int) -> Path:
        """Return the file of a partition, whether it exists or not."""
        return self.path / "partitions" / f"p{index:04d}.db"

    def index_path(self, key: Key) -> Path:
        """Return the file name, without a suffix, for a user's vector index."""
        return self.indices / key_hash(key).hex()

    def open_partition(self, index: int) -> Partition:
        """Open a partition in the name of this folder's owner. See `Partition.open`."""
        return Partition.open(self.partition_path(index), index=index, owner=self.owner)

    def close(self) -> None:
        """Close the catalog and let others in; a second call does nothing."""
        if not self._lock.is_locked:
            return
        try:
            self.catalog.close()
        finally:
            (self.path / "OWNER.json").unlink(missing_ok=True)
            self._lock.release()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the folder."""
        self.close()


def _require_ours(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        msg = f"{path} is a file; a data folder is needed"
        raise DataFolderError(msg, path=str(path))
    names = {entry.name for entry in path.iterdir()}
    if _CATALOG not in names and any((path / "partitions").glob("p*.db")):
        msg = f"{path} holds partitions but no {_CATALOG}: restore it from a backup"
        raise DataFolderError(msg, path=str(path))
    if _CATALOG not in names and names - _OURS - set(_FOLDERS):
        msg = f"{path} is not empty and is no data folder of reverie"
        raise DataFolderError(msg, path=str(path))


def _lock(path: Path) -> FileLock:
    # Not bound to a thread: a runtime may be closed by another thread than opened it.
    lock = FileLock(path / "LOCK", timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        holder = _holder(path)
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(holder.started))
        msg = (
            f"{path} is in use by process {holder.pid} on {holder.host} "
            f"({holder.command}), since {since}"
        )
        raise DataFolderLockedError(
            msg,
            path=str(path),
            pid=holder.pid,
            host=holder.host,
            command=holder.command,
            started=holder.started,
        ) from None
    return lock


def _name_owner(path: Path, owner: str) -> None:
    text = msgspec.json.encode(
        FolderOwner(
            pid=os.getpid(),
            host=socket.gethostname(),
            started=time.time(),
            command=Path(sys.argv[0] or sys.executable).name,
            owner=owner,
        )
    )
    new = path / "OWNER.json.new"
    new.write_bytes(text)
    new.replace(path / "OWNER.json")


def _holder(path: Path) -> FolderOwner:
    try:
        return msgspec.json.decode((path / "OWNER.json").read_bytes(), type=FolderOwner)
    except (OSError, msgspec.DecodeError):  # the holder is just starting or ending
        return FolderOwner()


def _storage_error(exc: OSError, path: Path) -> StorageError:
    if isinstance(exc, StorageError):
        return exc
    if exc.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return StorageReadOnlyError(f"{path} cannot be written: {exc}", path=str(path))
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFullError(f"no space left for {path}: {exc}", path=str(path))
    return StorageFailedError(f"{path}: {exc}", path=str(path))
