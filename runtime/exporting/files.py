"""Where an export is written: a folder or a .zip, under another name until it is whole."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Protocol

import msgspec

from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.store import sync_folder
from reverie.memory_graph.store.driver_errors import disk_error

_DATE = (1980, 1, 1, 0, 0, 0)  # of what is in a zip; when it was written, the manifest says
_MODE = 0o600 << 16  # readable by its owner only, as what people said is in it


class FileFacts(msgspec.Struct, frozen=True):
    """What the manifest says of a file. `rows` is None of one that has none."""

    rows: int | None
    bytes: int
    sha256: str


class File:
    """An open file of an export, which is counted and hashed while it is written."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._hash = sha256()
        self._bytes = 0
        self._rows: int | None = None

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._raw.write(data)
        self._hash.update(data)
        self._bytes += len(data)

    def row(self, row: object) -> None:
        """Append a row of JSON."""
        self.write(msgspec.json.encode(row) + b"\n")
        self._rows = (self._rows or 0) + 1

    def begin_rows(self) -> None:
        """Say that it is a file of rows, of which it may have none."""
        self._rows = 0

    @property
    def facts(self) -> FileFacts:
        """What was written so far."""
        return FileFacts(self._rows, self._bytes, self._hash.hexdigest())


class _Place(Protocol):
    def open(self, name: str) -> AbstractContextManager[IO[bytes]]: ...


class Target:
    """An export that is being written."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self.files: dict[str, FileFacts] = {}

    @contextmanager
    def file(self, name: str) -> Iterator[File]:
        """Open the next file; one is open at a time."""
        with self._place.open(name) as raw:
            made = File(raw)
            yield made
        self.files[name] = made.facts


class _Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        handle = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())


class _Zip:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def open(self, name: str) -> IO[bytes]:
        info = zipfile.ZipInfo(name, _DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = _MODE
        return self._archive.open(info, "w", force_zip64=True)


@contextmanager
def writing(path: Path) -> Iterator[Target]:
    """Give a target to the body: a .zip when the path ends so, else a folder. It has its name only
    once it is whole and synced; after any error, nothing of it is left.

    Raises:
        InvalidValueError: there is something under this name already (an empty folder is taken).
        StorageError: it cannot be written.
    """
    is_zip = path.suffix.lower() == ".zip"
    try:
        _require_free(path, is_zip=is_zip)
        with ExitStack() as stack:
            prefix, parent = ".reverie-", path.absolute().parent
            if is_zip:
                handle, name = tempfile.mkstemp(prefix=prefix, suffix=".new", dir=parent)
                new = Path(name)
                stack.callback(new.unlink, missing_ok=True)
                with os.fdopen(handle, "wb") as raw:
                    with zipfile.ZipFile(raw, "w") as archive:
                        yield Target(_Zip(archive))
                    raw.flush()
                    os.fsync(raw.fileno())
            else:
                new = Path(tempfile.mkdtemp(prefix=prefix, suffix=".new", dir=parent))
                stack.callback(shutil.rmtree, new, ignore_errors=True)
                yield Target(_Folder(new))
                sync_folder(new)
            _require_free(path, is_zip=is_zip)
            new.rename(path)  # from here on, it is there
            sync_folder(parent)
    except OSError as exc:
        raise disk_error(exc, path) from exc


def _require_free(path: Path, *, is_zip: bool) -> None:
    is_there = path.exists() or path.is_symlink()
    if is_there and (is_zip or not path.is_dir() or any(path.iterdir())):
        msg = f"{path} is there already; an export takes a new name, or an empty folder"
        raise InvalidValueError(msg, path=str(path))
