"""The data folder: where its files lie, and the lock that lets one process own it.

    <path>/catalog.db              worlds, tags, operations under way
    <path>/partitions/p0003.db     the users' histories
    <path>/indices/                vector indices, rebuilt when missing
    <path>/traces/                 what the models were asked and answered
    <path>/damaged/                files that a repair has replaced
    <path>/LOCK, OWNER.json        the lock, and who holds it

File names are made of numbers and hashes only, never of a caller's text.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from filelock import FileLock, Timeout

from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    ConfigError,
    DataFolderError,
    DataFolderLockedError,
)
from reverie.memory_graph.ids import key_hash
from reverie.memory_graph.store import forks
from reverie.memory_graph.store.catalog import MAX_PARTITIONS, Catalog
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.memory_graph.store.partition import Partition
from reverie.memory_graph.store.replace import DAMAGED, MARK, finish
from reverie.memory_graph.store.seal import WAY_OUT
from reverie.memory_graph.store.sqlite import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from reverie.memory_graph.ids import Key

DEFAULT_PARTITIONS = 16

CATALOG = "catalog.db"
PRIVATE = 0o700  # the mode of a new folder: what people said is in it
_FOLDERS = ("partitions", "indices", "traces")
# A power loss while the folder is made may leave any of them without the others.
_OURS = {CATALOG, "catalog.commits", "LOCK", "OWNER.json", "OWNER.json.new"}
_OURS |= {"reverie.toml"}  # settings, which may be there before anything else
_OURS |= {f"{CATALOG}{suffix}" for suffix in ("-journal", "-wal", "-shm")}


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
        self._is_forked = False
        self.owner = owner
        forks.guard(self)

    @classmethod
    def open(cls, path: Path, *, owner: str, partitions: int = DEFAULT_PARTITIONS) -> DataFolder:
        """Lock a data folder and open its catalog; make both when there is nothing yet.

        What is made is for its owner only; the mode of a folder that is there stays as it is.

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
            require_ours(path)
            path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            lock = _lock(path)
        except OSError as exc:
            raise disk_error(exc, path) from exc
        try:
            for name in _FOLDERS:
                (path / name).mkdir(mode=PRIVATE, exist_ok=True)
            finish(path)
            if not (path / CATALOG).exists():
                _sync_names_above(path)
            catalog = Catalog.open(path / CATALOG, partitions=partitions)
            try:
                _name_owner(path, owner)
                sync_folder(path)
            except BaseException:
                catalog.close()
                raise
        except OSError as exc:
            lock.release()
            raise disk_error(exc, path) from exc
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

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written: only then may missing partitions be made."""
        return not self.catalog.worlds()

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
        if self._is_forked or not self._lock.is_locked:
            return
        try:
            self.catalog.close()
        finally:
            (self.path / "OWNER.json").unlink(missing_ok=True)
            self._lock.release()

    def leave_to_parent(self) -> None:
        """Keep a forked process from unlocking the folder."""
        self._is_forked = True
        forks.keep(self._lock)

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


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Lock a data folder without opening anything in it.

    Raises:
        DataFolderLockedError: somebody has it open.
        DataFolderError: it is no data folder.
        StorageError: it cannot be written.
    """
    if not (path / CATALOG).is_file() and not any((path / "partitions").glob("p*.db*")):
        msg = f"{path} is no data folder of reverie"
        raise DataFolderError(msg, path=str(path))
    try:
        lock = _lock(path)
        try:
            _name_owner(path, "repair")
            yield
        finally:
            (path / "OWNER.json").unlink(missing_ok=True)
            lock.release()
    except OSError as exc:
        raise disk_error(exc, path) from exc


def require_ours(path: Path) -> None:
    """Refuse a path that can be no data folder, not even a new one.

    Raises:
        DataFolderError: it is a file, or holds other files, or partitions without a catalog.
    """
    if not path.exists():
        return
    if not path.is_dir():
        msg = f"{path} is a file; a data folder is needed"
        raise DataFolderError(msg, path=str(path))
    names = {entry.name.partition(MARK)[0] for entry in path.iterdir()}
    if CATALOG not in names and any((path / "partitions").glob("p*.db")):
        msg = f"{path} holds partitions but no {CATALOG}; {WAY_OUT}"
        raise DataFolderError(msg, path=str(path))
    if CATALOG not in names and names - _OURS - {*_FOLDERS, DAMAGED}:
        msg = f"{path} is not empty and is no data folder of reverie"
        raise DataFolderError(msg, path=str(path))


def _sync_names_above(path: Path) -> None:
    """Make the name of a new data folder survive a power loss, and those of the folders above:
    this opener has made them, or one that was killed before it came here."""
    for folder in path.resolve().parents:
        try:
            sync_folder(folder)
        except OSError as exc:  # a folder of somebody else, or of another kind of file system
            if exc.errno not in {errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL}:
                raise


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
    faults.reach("owner-name.before")
    new.replace(path / "OWNER.json")
    faults.reach("owner-name.after")


def _holder(path: Path) -> FolderOwner:
    try:
        return msgspec.json.decode((path / "OWNER.json").read_bytes(), type=FolderOwner)
    except (OSError, msgspec.DecodeError):  # the holder is just starting or ending
        return FolderOwner()
