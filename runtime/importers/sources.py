"""Files as streams of bytes: plain ones, and the wanted members of a .zip, which is never unpacked.

A member is chosen by the last part of its name and read as a stream, so no name becomes a path. A
zip that grows beyond reason is refused while it is read, whatever it says of itself.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from reverie.fields import require_utf8
from reverie.importers.records import Progress
from reverie.memory_graph.errors import InvalidValueError

MAX_MEMBERS = 200_000  # of one zip
MAX_INFLATED_BYTES = 32 * 1024**3  # of one member
MAX_RATIO = 250  # bytes of text for each of the zip; exports have about 10, bombs 1,000
RATIO_FROM_BYTES = 16 * 1024**2  # what is smaller does no harm
BUFFER_BYTES = 1 << 17
_ENCRYPTED = 0x1
_FAULTS = (OSError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Member:
    """A file, or one in a zip.

    Attributes:
        path: of the file or the zip.
        name: of the file, without folders.
        size_bytes: as the file system or the zip says.
        packed_bytes: of a member as it lies in the zip.
    """

    path: Path
    name: str
    size_bytes: int
    packed_bytes: int | None = None
    inside: zipfile.ZipInfo | None = None

    @property
    def stem(self) -> str:
        """A name for its conversation: that of the zip where its own says nothing."""
        own = Path(self.name).stem
        return self.path.stem if self.inside is not None and own in {"_chat", ""} else own

    def open(self, progress: Callable[[int], None] | None = None) -> io.BufferedReader:
        """Open it for reading; `progress` is told how many bytes were read since.

        Raises:
            InvalidValueError: it cannot be read.
            InvalidTextError: it begins with the mark of another encoding than UTF-8.
        """
        file: io.BufferedReader = io.BufferedReader(_Stream(self, progress), BUFFER_BYTES)
        try:
            require_utf8(file.peek(4), _shown(self.path, self.name))
        except BaseException:
            file.close()
            raise
        return file


class _Stream(io.RawIOBase):
    """The bytes of a member, counted and bounded."""

    def __init__(self, member: Member, progress: Callable[[int], None] | None) -> None:
        self._member = member
        self._progress = progress
        self._read_bytes = 0
        self._zip: zipfile.ZipFile | None = None
        try:
            if member.inside is None:
                self._raw: io.BufferedIOBase = member.path.open("rb")
            else:
                self._zip = zipfile.ZipFile(member.path)
                self._raw = self._zip.open(member.inside)  # type: ignore[assignment]  # IO[bytes]
        except (*_FAULTS, ValueError) as exc:
            if self._zip is not None:
                self._zip.close()
            raise unreadable(member.path, member.name, exc) from exc

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: object) -> int:
        """Read into a buffer; see `io.RawIOBase`."""
        view = memoryview(buffer)  # type: ignore[arg-type]  # what the buffered reader gives
        try:
            data = self._raw.read(len(view))
        except (*_FAULTS, ValueError) as exc:
            raise unreadable(self._member.path, self._member.name, exc) from exc
        view[: len(data)] = data
        self._read_bytes += len(data)
        self._require_reason()
        if self._progress is not None and data:
            self._progress(len(data))
        return len(data)

    def _require_reason(self) -> None:
        packed = self._member.packed_bytes
        if packed is None or self._read_bytes <= RATIO_FROM_BYTES:
            return
        if self._read_bytes > min(MAX_INFLATED_BYTES, MAX_RATIO * packed):
            msg = (
                f"{self._member.path}: {self._member.name} has grown to {self._read_bytes:,} bytes "
                f"out of {packed:,}; that is no export"
            )
            raise InvalidValueError(msg, file=str(self._member.path))

    def close(self) -> None:
        """Close the file, and the zip."""
        if not self.closed:
            if hasattr(self, "_raw"):
                self._raw.close()
            if self._zip is not None:
                self._zip.close()
        super().close()


def members(path: Path, is_wanted: Callable[[str], bool], what: str) -> list[Member]:
    """Return the file itself, or those of a zip that are wanted, sorted by their names.

    Args:
        path: of the file.
        is_wanted: says so of a member, by the last part of its name.
        what: what they are called, for the message.

    Raises:
        InvalidValueError: the file cannot be read, is encrypted, or holds no such member.
    """
    try:
        size_bytes = path.stat().st_size
        if path.is_dir():
            msg = f"{path} is a folder; name the file in it"
            raise InvalidValueError(msg, file=str(path))
        if not zipfile.is_zipfile(path):
            with path.open("rb"):
                pass
            return [Member(path, path.name, size_bytes)]
        with closing(zipfile.ZipFile(path)) as archive:
            infos = archive.infolist()
    except (*_FAULTS, ValueError) as exc:
        if isinstance(exc, InvalidValueError):
            raise
        raise unreadable(path, "", exc) from exc
    if len(infos) > MAX_MEMBERS:
        msg = f"{path} holds {len(infos):,} files; at most {MAX_MEMBERS:,} are looked through"
        raise InvalidValueError(msg, file=str(path))
    found = [info for info in infos if not info.is_dir() and is_wanted(_last(info))]
    if not found:
        msg = f"{path}: there is no {what} in this zip"
        raise InvalidValueError(msg, file=str(path))
    if any(info.flag_bits & _ENCRYPTED for info in found):
        msg = f"{path} is encrypted; unpack it first"
        raise InvalidValueError(msg, file=str(path))
    found.sort(key=_last)
    return [Member(path, _last(i), i.file_size, i.compress_size, i) for i in found]


def _last(info: zipfile.ZipInfo) -> str:
    return info.filename.replace("\\", "/").rpartition("/")[2]


def unreadable(path: Path, name: str, cause: Exception) -> InvalidValueError:
    """Return the error for a file that cannot be read."""
    msg = f"{_shown(path, name)} cannot be read: {cause}"
    return InvalidValueError(msg, file=str(path)).because(cause)


def _shown(path: Path, name: str) -> str:
    return f"{path}, {name}" if name and name != path.name else str(path)


def told(progress: Progress | None, total_bytes: int) -> Callable[[int], None] | None:
    """Return what adds up bytes and tells `progress` of (bytes done, bytes in all)."""
    if progress is None:
        return None
    done = 0

    def add(size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        progress(done, max(done, total_bytes))

    return add


def chunks(file: io.BufferedReader) -> Iterator[bytes]:
    """Iterate over the bytes of a stream, a buffer at a time."""
    while data := file.read1(BUFFER_BYTES):
        yield data


__all__ = ["Member", "chunks", "members", "told", "unreadable"]
