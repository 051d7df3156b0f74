"""What a process asks of the disk, written down in one order: the raw material of power cuts.

A `Recorder` passes everything through and notes it: each write, truncation, sync, new name, removal
and rename below one folder, of SQLite through a file layer (VFS) of its own, of everybody else
through wrapped functions of `os` and `pathlib`. What a power cut could leave of it is worked out
by lost_power.py.

Of files that SQLite does not write, the content is noted when it is synced, renamed or written in
one go; hnswlib writes its files where no Python function can see it. SQLite's `-shm` is left out:
it is rebuilt at each opening.

A recorder can also end the process, as kill -9 does: from that moment nothing reaches the disk any
more, and what was handed to the kernel stays. Needs Linux, for the names of open files.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import apsw

HERE = "."  # the name of the folder that is recorded, for itself


class Named(NamedTuple):
    """A new file has got a name."""

    path: str
    file: int


class Made(NamedTuple):
    """A new folder has got a name."""

    path: str


class Removed(NamedTuple):
    """A name is gone."""

    path: str


class Renamed(NamedTuple):
    """A file has got another name; what had that name is gone."""

    old: str
    new: str
    file: int


class FolderSynced(NamedTuple):
    """The names in a folder are durable."""

    path: str


class Written(NamedTuple):
    """Bytes were handed to the kernel."""

    file: int
    offset: int
    data: bytes


class Truncated(NamedTuple):
    """A file was cut to a size, or grown to it."""

    file: int
    size: int


class Synced(NamedTuple):
    """The content of a file is durable."""

    file: int


class Marked(NamedTuple):
    """What the caller of the product knows at this moment."""

    line: Any


Record: TypeAlias = (
    Named | Made | Removed | Renamed | FolderSynced | Written | Truncated | Synced | Marked
)
_names = itertools.count(1)


class Recorder:
    """Records what happens below `root` while `recording` is on. `records` is all of it."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.records: list[Record] = []
        self.is_killed = False
        self._kill_at: int | None = None
        self._lock = threading.RLock()  # what is done and what is noted have one order
        self._files: dict[str, int] = {}  # of each path, as the running process sees it
        self._known: dict[int, bytes] = {}  # content of files that are seen as a whole
        self._recorded: set[str] = set()  # files of which each write is seen
        self._numbers = itertools.count(1)
        self._handles: dict[int, str] = {}  # of `os.open`

    # -- what the caller tells -------------------------------------------------------------

    def mark(self, line: object) -> None:
        """Note something in between; a killed process says nothing more."""
        with self._lock:
            if not self.is_killed:
                self._note(Marked(line))

    def kill_after(self, records: int) -> None:
        """Kill the process once so many more records have been made."""
        self._kill_at = len(self.records) + records

    def revive(self) -> None:
        """Let a new process begin."""
        self._kill_at, self.is_killed = None, False

    def adopt(self) -> None:
        """Take what lies below the root already as durable."""
        for place, folders, files in os.walk(self.root):
            for name in folders:
                self._note(Made(self._relative(Path(place, name)) or ""))
            for name in files:
                if not name.endswith("-shm"):
                    path = self._relative(Path(place, name)) or ""
                    self._observe(path)
                    self._note(Synced(self._files[path]))
            self._note(FolderSynced(self._relative(Path(place)) or HERE))

    # -- the parts that note ---------------------------------------------------------------

    def _note(self, record: Record) -> None:
        self.records.append(record)
        if self._kill_at is not None and len(self.records) >= self._kill_at:
            self.is_killed = True

    def _relative(self, path: str | Path) -> str | None:
        """Return the name below the root, `HERE` for itself, None for what lies elsewhere."""
        try:
            return Path(os.path.abspath(path)).relative_to(self.root).as_posix()  # noqa: PTH100 (links stay)
        except ValueError:
            return None

    def _name(self, path: str) -> int:
        number = self._files[path] = next(self._numbers)
        self._note(Named(path, number))
        return number

    def _observe(self, path: str) -> None:
        """Note what a file that SQLite does not write holds now, if that is new."""
        number = self._files.get(path) or self._name(path)
        data = (self.root / path).read_bytes()
        if self._known.get(number) != data:
            self._known[number] = data
            self._note(Truncated(number, 0))
            self._note(Written(number, 0, data))

    def folder_synced(self, path: str | Path) -> None:
        with self._lock:
            if not self.is_killed and (relative := self._relative(path)) is not None:
                self._note(FolderSynced(relative))

    # -- SQLite ----------------------------------------------------------------------------

    def opened(self, path: str, *, is_new: bool) -> int:
        """Return the number of a file that SQLite opens."""
        relative = self._relative(path) or ""
        with self._lock:
            self._recorded.add(relative)
            known = None if is_new else self._files.get(relative)
            return self._name(relative) if known is None else known

    def do(self, act: Callable[[], None], record: Record) -> None:
        """Carry something out and note it, as one step; raises IOError in a killed process."""
        with self._lock:
            if self.is_killed:
                msg = "killed"
                raise apsw.IOError(msg)
            act()
            self._note(record)

    def remove(self, act: Callable[[], None], path: str) -> None:
        relative = self._relative(path) or ""
        self.do(act, Removed(relative))
        self._files.pop(relative, None)

    def covers(self, path: str | Path | None) -> bool:
        """Whether a file lies below the root."""
        return path is not None and self._relative(path) is not None

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Let everything below the root go through this recorder."""
        name = f"recorder-{next(_names)}"
        before = apsw.vfs_names()[0]  # the first is the default
        layer = _Layer(self, name)
        with _folder_syncs_of_sqlite(self), self._wrapped_functions():
            apsw.set_default_vfs(name)
            try:
                yield
            finally:
                apsw.set_default_vfs(before)
                layer.unregister()

    # -- everybody else --------------------------------------------------------------------

    @contextmanager
    def _wrapped_functions(self) -> Iterator[None]:
        wrapped: list[tuple[Any, str, Any]] = [
            (os, "open", self._open),
            (os, "write", self._write),
            (os, "close", self._close),
            (os, "fsync", self._fsync),
            (os, "replace", self._replace),
            (os, "rename", self._replace),
            (os, "unlink", self._unlink),
            (os, "remove", self._unlink),
            (os, "mkdir", self._mkdir),
            (Path, "write_bytes", self._write_whole),
            (Path, "write_text", self._write_whole),
        ]
        originals = [(owner, name, getattr(owner, name)) for owner, name, _ in wrapped]
        for (owner, name, original), (_, _, wrapper) in zip(originals, wrapped, strict=True):
            setattr(owner, name, wrapper(original))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)

    def _open(self, original: Callable[..., int]) -> Callable[..., int]:
        def open_(path: Any, flags: int, *more: Any, **named: Any) -> int:
            relative = self._relative(path) if isinstance(path, str | Path) else None
            if relative is None or Path(path).is_dir():
                return original(path, flags, *more, **named)
            with self._lock:
                if self.is_killed:
                    return original(os.devnull, os.O_RDWR)
                handle = original(path, flags, *more, **named)
                if flags & os.O_CREAT and relative not in self._files:
                    self._name(relative)
                elif flags & os.O_TRUNC:
                    self._note(Truncated(self._files[relative], 0))
                self._handles[handle] = relative
                return handle

        return open_

    def _write(self, original: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
        def write(handle: int, data: bytes) -> int:
            relative = self._handles.get(handle)
            if relative is None:
                return original(handle, data)
            with self._lock:
                if self.is_killed:
                    return len(data)
                offset = os.lseek(handle, 0, os.SEEK_CUR)
                count = original(handle, data)
                self._note(Written(self._files[relative], offset, bytes(data[:count])))
                return count

        return write

    def _close(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def close(handle: int) -> None:
            self._handles.pop(handle, None)
            original(handle)

        return close

    def _fsync(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def fsync(handle: int) -> None:
            path = Path(f"/proc/self/fd/{handle}").readlink()
            relative = self._relative(path)
            with self._lock:
                if relative is None:
                    original(handle)
                elif not self.is_killed:
                    original(handle)
                    if path.is_dir():
                        self._note(FolderSynced(relative))
                        return
                    if relative not in self._recorded:
                        self._observe(relative)
                    self._note(Synced(self._files[relative]))

        return fsync

    def _replace(self, original: Callable[..., None]) -> Callable[..., None]:
        def replace(old: str | Path, new: str | Path, **more: Any) -> None:
            source, target = self._relative(old), self._relative(new)
            with self._lock:
                if source is None or target is None:
                    original(old, new, **more)
                elif not self.is_killed:
                    self._observe(source)
                    original(old, new, **more)
                    number = self._files[target] = self._files.pop(source)
                    self._note(Renamed(source, target, number))

        return replace

    def _unlink(self, original: Callable[..., None]) -> Callable[..., None]:
        def unlink(path: str | Path, **more: Any) -> None:
            relative = self._relative(path)
            with self._lock:
                if relative is None:
                    original(path, **more)
                elif not self.is_killed:
                    original(path, **more)
                    if self._files.pop(relative, None) is not None:
                        self._note(Removed(relative))

        return unlink

    def _mkdir(self, original: Callable[..., None]) -> Callable[..., None]:
        def mkdir(path: str | Path, *more: Any, **named: Any) -> None:
            relative = self._relative(path)
            with self._lock:
                if relative is None:
                    original(path, *more, **named)
                elif not self.is_killed:
                    original(path, *more, **named)
                    self._note(Made(relative))

        return mkdir

    def _write_whole(self, original: Callable[..., int]) -> Callable[..., int]:
        def write(path: Path, *more: Any, **named: Any) -> int:
            relative = self._relative(path)
            if relative is None:
                return original(path, *more, **named)
            with self._lock:
                if self.is_killed:
                    return 0
                count = original(path, *more, **named)
                self._observe(relative)
                return count

        return write


class _Layer(apsw.VFS):
    """SQLite's file layer, with a recorder in between."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        super().__init__(name, "unix")
        self._recorder = recorder

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 (SQLite's)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not self._recorder.covers(path):
            return super().xOpen(name, flags)
        return _File(self._recorder, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001
        def act() -> None:
            super(_Layer, self).xDelete(filename, syncdir)

        if self._recorder.covers(filename):
            self._recorder.remove(act, filename)
        else:
            act()


class _File(apsw.VFSFile):
    """One open file below the root."""

    def __init__(
        self, recorder: Recorder, path: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        is_new = not Path(path).exists()
        if is_new and recorder.is_killed:
            msg = "killed"
            raise apsw.CantOpenError(msg)
        super().__init__("unix", name, flags)
        self._recorder = recorder
        self._number = recorder.opened(path, is_new=is_new)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        data = bytes(data)
        act = super().xWrite
        self._recorder.do(lambda: act(data, offset), Written(self._number, offset, data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        act = super().xTruncate
        self._recorder.do(lambda: act(newsize), Truncated(self._number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        act = super().xSync
        self._recorder.do(lambda: act(flags), Synced(self._number))


_OpenFolder = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))


@contextmanager
def _folder_syncs_of_sqlite(recorder: Recorder) -> Iterator[None]:
    """Note when SQLite syncs a folder: it opens one for nothing else, after the first sync of a
    new log or journal and after some removals."""
    system = apsw.VFS(f"system-{next(_names)}", "unix")
    address = system.xGetSystemCall("openDirectory")
    if not address:
        msg = "this SQLite has no openDirectory to watch"
        raise RuntimeError(msg)
    original = _OpenFolder(address)

    def open_folder(path: bytes, handle: Any) -> int:  # the path of a file in the folder
        code: int = original(path, handle)
        if code == apsw.SQLITE_OK:
            recorder.folder_synced(Path(os.fsdecode(path)).parent)
        return code

    callback = _OpenFolder(open_folder)
    pointer = ctypes.cast(callback, ctypes.c_void_p).value
    system.xSetSystemCall("openDirectory", pointer or 0)
    try:
        yield
    finally:
        system.xSetSystemCall("openDirectory", 0)
        system.unregister()
