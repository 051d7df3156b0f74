"""Where backups are kept: a folder of this machine, or whatever fsspec reaches by a URL."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol

from reverie.memory_graph.errors import BackupError, ConfigError, ReverieError, StorageError
from reverie.memory_graph.store import sync_folder
from reverie.memory_graph.store.driver_errors import disk_error

CHUNK_BYTES = 1024 * 1024
EXTRA = "backups to a URL need the fsspec library: pip install 'reverie[remote]'"


class Place(Protocol):
    """A folder, by whatever way it is reached. Names are relative, with forward slashes."""

    def __str__(self) -> str:
        """Return its path or URL."""
        ...

    def folders(self) -> list[str]:
        """Return the names of the folders in it, sorted; none when it is not there."""
        ...

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file, None when there is none of this name."""
        ...

    def reading(self, name: str) -> Any:
        """Return a context manager that opens a file."""
        ...

    def inner(self, name: str) -> Place:
        """Return a folder in it, which need not be there."""
        ...

    def make(self) -> None:
        """Make it, for its owner only where that can be said."""
        ...

    def write_to(self, staging: Path) -> Path:
        """Return the local folder that files are to be written to before `put`."""
        ...

    def put(self, name: str, written: Path) -> None:
        """Take over a file that was written and synced there; its name is durable afterwards."""
        ...

    def remove(self) -> None:
        """Remove it with all that is in it, as far as that can be done."""
        ...


class LocalPlace:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def folders(self) -> list[str]:
        """Return the names of the folders in it, sorted."""
        with _disk_errors(self.path):
            if not self.path.is_dir():
                return []
            return sorted(entry.name for entry in self.path.iterdir() if entry.is_dir())

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file, None when there is none of this name."""
        path = self.path / name
        with _disk_errors(path):
            return path.stat().st_size if path.is_file() else None

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """Open a file. What was just written is read from the disk, not from memory."""
        path = self.path / name
        with _disk_errors(path), path.open("rb") as file:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            yield file

    def inner(self, name: str) -> LocalPlace:
        """Return a folder in it."""
        return LocalPlace(self.path / name)

    def make(self) -> None:
        """Make it and the folders above; it must not be there."""
        with _disk_errors(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700)
            sync_folder(self.path.parent)

    def write_to(self, staging: Path) -> Path:  # noqa: ARG002 (of the protocol)
        """Return itself: nothing has to be moved later."""
        return self.path

    def put(self, name: str, written: Path) -> None:
        """Make the name of a file durable."""
        with _disk_errors(written):
            sync_folder((self.path / name).parent)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)


class RemotePlace:
    """What fsspec reaches. Files are written on this machine first, one at a time."""

    def __init__(self, fs: Any, path: str, url: str) -> None:
        self._fs = fs
        self._path = path.rstrip("/")
        self._url = url.rstrip("/")

    def __str__(self) -> str:
        return self._url

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"

    def folders(self) -> list[str]:
        """Return the names of the folders in it, sorted."""
        with _remote_errors(self):
            self._fs.invalidate_cache()
            if not self._fs.isdir(self._path):
                return []
            found = self._fs.ls(self._path, detail=True)
            return sorted(PurePosixPath(e["name"]).name for e in found if e["type"] == "directory")

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file, None when there is none of this name."""
        with _remote_errors(self):
            path = self._at(name)
            return int(self._fs.size(path)) if self._fs.isfile(path) else None

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """Open a file."""
        with _remote_errors(self), self._fs.open(self._at(name), "rb") as file:
            yield file

    def inner(self, name: str) -> RemotePlace:
        """Return a folder in it."""
        return RemotePlace(self._fs, self._at(name), f"{self._url}/{name}")

    def make(self) -> None:
        """Make it, where there are folders."""
        with _remote_errors(self):
            self._fs.makedirs(self._path, exist_ok=True)

    def write_to(self, staging: Path) -> Path:
        """Return the staging folder."""
        return staging

    def put(self, name: str, written: Path) -> None:
        """Send a file there, and remove it here."""
        with _remote_errors(self):
            self._fs.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)
            with written.open("rb") as source, self._fs.open(self._at(name), "wb") as target:
                shutil.copyfileobj(source, target, CHUNK_BYTES)
        written.unlink()

    def remove(self) -> None:
        """Remove it with all that is in it, as far as that can be done."""
        with suppress(Exception):
            self._fs.rm(self._path, recursive=True)


def place_of(where: str | Path) -> Place:
    """Return the place that a path or a URL (with "://") names.

    Raises:
        ConfigError: the extra "remote" is missing, or the library for this kind of URL.
    """
    if isinstance(where, Path) or "://" not in where:
        return LocalPlace(Path(where).expanduser().absolute())
    try:
        from fsspec.core import url_to_fs
    except ImportError as exc:
        raise ConfigError(EXTRA, missing="fsspec") from exc
    try:
        fs, path = url_to_fs(where)
    except (ImportError, ValueError) as exc:  # no such kind, or its library is not here
        msg = f"{where} cannot be reached: {exc}"
        raise ConfigError(msg, place=where) from exc
    return RemotePlace(fs, path, where)


def digest_of(place: Place, name: str, also: Callable[[bytes], object] | None = None) -> str:
    """Return the SHA-256 of a file in hex, read now; `also` is given each piece of it."""
    seen = hashlib.sha256()
    with place.reading(name) as file:
        while chunk := file.read(CHUNK_BYTES):
            seen.update(chunk)
            if also is not None:
                also(chunk)
    return seen.hexdigest()


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if isinstance(exc, StorageError):
            raise
        raise disk_error(exc, path) from exc


@contextmanager
def _remote_errors(place: RemotePlace) -> Iterator[None]:
    """Each kind of file system has errors of its own."""
    try:
        yield
    except ReverieError:
        raise
    except Exception as exc:
        msg = f"{place} cannot be reached: {type(exc).__name__}: {exc}"
        raise BackupError(msg, place=str(place)) from exc
