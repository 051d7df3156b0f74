"""A disk that fails: a file layer (VFS) of SQLite that returns errors when it is told to.

It also keeps what would be found after a power cut. A write counts once its file was synced. When a
sync fails, the kernel calls the pages clean that it could not write: they can still be read, a
later sync succeeds, and yet they never reach the disk (Rebello et al., "Can Applications Recover
from fsync Failures?", USENIX ATC 2020).
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import apsw

Kind: TypeAlias = Literal[
    "full",  # a file cannot grow
    "write",  # a write fails, and nothing of it is there
    "short-write",  # a write fails, and half of it is there
    "sync",  # a sync fails
    "read-only",  # the file system takes no more writes, as after an error of its own
    "read",  # a read fails
    "short-read",  # a page is not there, as of a file that was cut: SQLite takes it for zeros
    "open",  # a file cannot be opened: too many are
]
Target: TypeAlias = Literal["main", "log", "catalog", "catalog-log"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TARGETS: tuple[Target, ...] = get_args(Target)

_names = itertools.count(1)
_ERRORS: dict[Kind, tuple[type[apsw.Error], int]] = {
    "full": (apsw.FullError, apsw.SQLITE_FULL),
    "write": (apsw.IOError, apsw.SQLITE_IOERR_WRITE),
    "short-write": (apsw.IOError, apsw.SQLITE_IOERR_WRITE),
    "sync": (apsw.IOError, apsw.SQLITE_IOERR_FSYNC),
    "read-only": (apsw.IOError, apsw.SQLITE_IOERR_WRITE),
    "read": (apsw.IOError, apsw.SQLITE_IOERR_READ),
    "open": (apsw.CantOpenError, apsw.SQLITE_CANTOPEN),
}


def target_of(path: str) -> Target | None:
    """Return what kind of file a path names; None for one that is never synced."""
    name = Path(path).name
    if name.endswith("-wal"):
        return "catalog-log" if name.startswith("catalog") else "log"
    if name.endswith(".db"):
        return "catalog" if name.startswith("catalog") else "main"
    return None


class Fault:
    """Fails calls of one kind: the `first` one that comes and `times` - 1 after it, while on."""

    def __init__(self, kind: Kind, target: Target, first: int, times: int) -> None:
        self.kind = kind
        self.target = target
        self.failed = 0
        self._first = first
        self._left = times
        self._seen = 0
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """Whether all of it has happened."""
        return self._left == 0

    def end(self) -> None:
        """The disk is as good as new."""
        with self._lock:
            self._left = 0

    def hits(self, path: str, *kinds: Kind) -> bool:
        """Whether a call on a file, which may fail in these ways, has to fail now."""
        if self.kind not in kinds or target_of(path) != self.target:
            return False
        with self._lock:
            self._seen += 1
            if self._seen < self._first or not self._left:
                return False
            self._left -= 1
            self.failed += 1
            return True

    def error(self, path: str) -> apsw.Error:
        """Return the error that SQLite gets."""
        kind, code = _ERRORS[self.kind]
        error = kind(f"planted: {self.kind} of {Path(path).name}")
        error.extendedresult = code  # type: ignore[attr-defined]
        return error


class Disk:
    """All files that are opened through it; `faults` is what goes wrong at present."""

    def __init__(self) -> None:
        self.faults: tuple[Fault, ...] = ()
        self.after_failed_sync: list[str] = []  # what was done to a handle whose sync had failed
        self.durable: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, int]]] = {}  # written, not synced: (offset, end)
        self.lock = threading.RLock()

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Let all of SQLite go through this disk."""
        name = f"disk-{next(_names)}"
        before = apsw.vfs_names()[0]  # the first is the default
        layer = _Layer(self, name)
        apsw.set_default_vfs(name)
        try:
            with self._outside():
                yield
        finally:
            apsw.set_default_vfs(before)
            layer.unregister()

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """See what is written to a log and synced past SQLite. Needs Linux."""
        system_write, system_fsync = os.write, os.fsync

        def path_of(handle: int) -> str | None:
            path = str(Path(f"/proc/self/fd/{handle}").readlink())
            return path if path in self.durable else None

        def write(handle: int, data: bytes) -> int:
            path = path_of(handle)
            if path is None:
                return system_write(handle, data)
            with self.lock:
                at = os.lseek(handle, 0, os.SEEK_CUR)
                written = system_write(handle, data)
                self.pending[path].append((at, at + written))
                return written

        def fsync(handle: int) -> None:
            path = path_of(handle)
            with self.lock:
                system_fsync(handle)
                if path is not None:
                    self.settle(path, Path(path).read_bytes())

        os.write, os.fsync = write, fsync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.write, os.fsync = system_write, system_fsync

    def settle(self, path: str, data: bytes) -> None:
        """What was written to a file since its last sync, which now holds `data`, is durable."""
        durable = self.durable[path]
        del durable[len(data) :]
        durable.extend(bytes(len(data) - len(durable)))
        for start, end in self.pending[path]:
            durable[start:end] = data[start:end]
        self.pending[path].clear()

    def cut_power(self, folder: Path, into: Path) -> None:
        """Make a copy of a data folder as a power cut would leave it now."""
        ignored = shutil.ignore_patterns(
            "*.db", "*-wal", "*-shm", "OWNER.json", "*.hnsw*", "*.sum*"
        )
        shutil.copytree(folder, into, ignore=ignored)
        with self.lock:
            for path, data in self.durable.items():
                (into / Path(path).relative_to(folder)).write_bytes(data)

    def may_hit(self, path: str, *kinds: Kind) -> None:
        """Raise what is due."""
        if (fault := self.hit(path, *kinds)) is not None:
            raise fault.error(path)

    def hit(self, path: str, *kinds: Kind) -> Fault | None:
        """Return what is due on a file, whose call may fail in these ways."""
        return next((fault for fault in self.faults if fault.hits(path, *kinds)), None)

    @property
    def is_read_only(self) -> bool:
        """Whether files can only be opened to be read."""
        return any(
            fault.kind == "read-only" and fault.failed and not fault.is_over
            for fault in self.faults
        )


class _Layer(apsw.VFS):
    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        super().__init__(name, "unix")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 (SQLite's)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or target_of(path) is None:
            return super().xOpen(name, flags)
        self._disk.may_hit(path, "open")
        if self._disk.is_read_only:  # what SQLite falls back to by itself
            flags[0] &= ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            flags[0] |= apsw.SQLITE_OPEN_READONLY
        return _File(self._disk, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001
        super().xDelete(filename, syncdir)
        with self._disk.lock:
            self._disk.durable.pop(filename, None)
            self._disk.pending.pop(filename, None)


class _File(apsw.VFSFile):
    """One open file, by one handle."""

    def __init__(
        self, disk: Disk, path: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._path = path
        self._sync_failed = False
        with disk.lock:
            disk.durable.setdefault(path, bytearray(super().xRead(super().xFileSize(), 0)))
            disk.pending.setdefault(path, [])

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if self._disk.hit(self._path, "short-read"):
            return b""
        self._disk.may_hit(self._path, "read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._use("written")
        data = bytes(data)
        if offset + len(data) > super().xFileSize():
            self._disk.may_hit(self._path, "full")
        if (fault := self._disk.hit(self._path, "short-write")) is not None:
            self._write(data[: len(data) // 2], offset)
            raise fault.error(self._path)
        self._disk.may_hit(self._path, "write", "read-only")
        self._write(data, offset)

    def _write(self, data: bytes, offset: int) -> None:
        with self._disk.lock:
            super().xWrite(data, offset)
            self._disk.pending[self._path].append((offset, offset + len(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._use("cut")
        self._disk.may_hit(self._path, "write", "read-only")
        with self._disk.lock:
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._use("synced")
        with self._disk.lock:
            pending = self._disk.pending[self._path]
            try:
                self._disk.may_hit(self._path, "sync", "read-only")
            except apsw.Error:
                pending.clear()  # the kernel forgets that they were ever dirty
                self._sync_failed = True
                raise
            super().xSync(flags)
            self._disk.settle(self._path, bytes(super().xRead(super().xFileSize(), 0)))

    def _use(self, how: str) -> None:
        """Note what nobody may do: go on with a handle whose sync has failed."""
        if self._sync_failed:
            self._disk.after_failed_sync.append(f"{Path(self._path).name} was {how}")
