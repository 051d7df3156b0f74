"""A world in one file: who was there and what they remember, to be taken to another machine.

    magic                               8 bytes, one of which no text file survives
    head                                what world it is, its embedder, which reverie wrote it
    user, user, ...                     one part each
    end                                 how many there are

Each part is a kind, a length, a checksum and that many bytes, compressed by zlib (a library of our
own would be faster, and one more to install; vectors, which are most of a file, hardly shrink).
The checksum of a part covers all that is before it, too: parts cannot be left out, doubled or put
in another order, and that of the end is the checksum of the whole file. It protects from damage,
not from forgery: whoever imports a file trusts who gave it, and ids in it are checked like any.
"""

from __future__ import annotations

import errno
import os
import tempfile
import zlib
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import msgspec

from reverie.memory_graph.errors import StorageError, WorldFileError
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.memory_graph.store.records import UserImage
from reverie.memory_graph.store.sqlite import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"\x89RVW\r\n\x1a\n"
FILE_FORMAT = 1
MAX_PART_BYTES = 2**31  # of one user, before it is compressed; a larger one is refused at both ends
LEVEL = 1  # of the compression: 6 takes three times as long, and saves 2% of a world with vectors
HEAD, USER, END = b"H", b"U", b"E"
DIGEST_BYTES = 16

_part = Struct(f">cQQ{DIGEST_BYTES}s")  # kind, bytes compressed, bytes, checksum
_encode = msgspec.msgpack.Encoder().encode

T = TypeVar("T")


class FileHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a world before its users are read.

    Attributes:
        format: of all parts after this one.
        written_by: version of reverie that wrote it.
        world: its name there.
        tag: the checkpoint that it was made of; None when it was the world as it was.
        made_at: in seconds on the world's clock.
        embedder: id of the model that made its vectors; None when it has none yet.
        dim: of the vectors.
        spec: the name of the model, if it is one that reverie knows.
        masked: the highest number of a placeholder that was given out, by kind of what is masked.
        masks: the kinds that are masked.
    """

    format: int
    written_by: str
    world: str
    tag: str | None
    made_at: float
    embedder: str | None = None
    dim: int = 0
    spec: str = ""
    masked: dict[str, int] = {}
    masks: tuple[str, ...] = ()


class FileUser(msgspec.Struct, frozen=True):
    """A user: `digest` is that of the state that `image` describes."""

    digest: str
    image: UserImage


class FileEnd(msgspec.Struct, frozen=True):
    """The last part."""

    users: int


class _Version(msgspec.Struct, frozen=True):
    format: int
    written_by: str = "?"


class WorldFileWriter:
    """Writes the parts, in order, into an open file."""

    def __init__(self, file: BinaryIO, head: FileHead) -> None:
        """Begin with the magic bytes and the head."""
        self.users = 0
        self._file = file
        self._hash = blake2b(MAGIC, digest_size=DIGEST_BYTES)
        file.write(MAGIC)
        self._write(HEAD, _encode(head))

    def user(self, encoded: bytes) -> None:
        """Add a user, an encoded `FileUser`.

        Raises:
            WorldFileError: it is larger than a part may be.
        """
        if len(encoded) > MAX_PART_BYTES:
            msg = f"a user takes {len(encoded):,} bytes; a world file holds {MAX_PART_BYTES:,} each"
            raise WorldFileError(msg)
        self._write(USER, encoded)
        self.users += 1

    def end(self) -> None:
        """Say that it is whole."""
        self._write(END, _encode(FileEnd(self.users)))

    def _write(self, kind: bytes, data: bytes) -> None:
        packed = zlib.compress(data, LEVEL)
        self._hash.update(_sizes(kind, packed, len(data)))
        self._hash.update(packed)
        self._file.write(_part.pack(kind, len(packed), len(data), self._hash.digest()))
        self._file.write(packed)


@contextmanager
def writing(path: Path, head: FileHead) -> Iterator[WorldFileWriter]:
    """Give a writer to the body. The file has its name only once it is whole and synced; what had
    the name before is replaced then, and stays after any error.

    Raises:
        StorageError: it cannot be written.
    """
    with _disk_errors(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        # Readable by its owner only, as what people said may be in it.
        handle, name = tempfile.mkstemp(prefix=".reverie-", suffix=".new", dir=path.parent)
        new = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                writer = WorldFileWriter(file, head)
                yield writer
                writer.end()
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)  # from here on, it is there
            sync_folder(path.absolute().parent)
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)


class WorldFile:
    """An open world file, which was read to its end once and found whole.

    Attributes:
        head: what is known of its world.
        users: how many it holds.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Read it through; use `reading`."""
        self._path = path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self.head, self.users = self._verify()

    def _verify(self) -> tuple[FileHead, int]:
        parts = self._parts()
        kind, data = next(parts)
        if kind != HEAD:
            raise _damaged(self._path, "does not begin with a head")
        version = self._decode(data, _Version)
        if version.format > FILE_FORMAT:
            msg = (
                f"{self._path} was written by a newer version of reverie ({version.written_by}): "
                f"it has format {version.format}, this version reads up to {FILE_FORMAT}"
            )
            raise WorldFileError(msg, path=str(self._path), found=version.format)
        head = self._decode(data, FileHead)
        for users, (kind, data) in enumerate(parts):
            if kind == END:
                if self._decode(data, FileEnd).users != users:
                    raise _damaged(self._path, "has lost users")
                return head, users
        raise _damaged(self._path, "has no end")

    def images(self) -> Iterator[FileUser]:
        """Yield its users, one in memory at a time."""
        for kind, data in self._parts():
            if kind == USER:
                yield self._decode(data, FileUser)

    def _parts(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the kind and the bytes of each part, in order; the last one is the end.

        Raises:
            WorldFileError: it is no world file, or damaged.
        """
        file, at = self._file, len(MAGIC)
        file.seek(0)
        if file.read(at) != MAGIC:
            msg = f"{self._path} is no world file of reverie"
            raise WorldFileError(msg, path=str(self._path))
        seen = blake2b(MAGIC, digest_size=DIGEST_BYTES)
        kind = b""
        while kind != END:
            header = file.read(_part.size)
            at += _part.size
            if len(header) < _part.size:
                raise _damaged(self._path, "is cut short")
            kind, packed_bytes, size_bytes, checksum = _part.unpack(header)
            if packed_bytes > self._size - at or size_bytes > MAX_PART_BYTES:
                raise _damaged(self._path, f"is cut short or damaged at byte {at}")
            packed = file.read(packed_bytes)
            at += packed_bytes
            seen.update(_sizes(kind, packed, size_bytes))
            seen.update(packed)
            if seen.digest() != checksum or kind not in {HEAD, USER, END}:
                raise _damaged(self._path, f"does not verify before byte {at}")
            if kind == END and at < self._size:
                raise _damaged(self._path, "goes on after its end")
            yield kind, self._unpacked(packed, size_bytes)

    def _unpacked(self, packed: bytes, size_bytes: int) -> bytes:
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(packed, size_bytes + 1)  # no more, whatever it would become
        except (zlib.error, MemoryError) as exc:
            raise _damaged(self._path, "cannot be unpacked").because(exc) from exc
        if len(data) != size_bytes or not unpacker.eof or unpacker.unused_data:
            raise _damaged(self._path, "has a part of another size than it says")
        return data

    def _decode(self, data: bytes, kind: type[T]) -> T:
        try:
            return msgspec.msgpack.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise _damaged(self._path, f"holds no {kind.__name__}").because(exc) from exc


@contextmanager
def reading(path: Path) -> Iterator[WorldFile]:
    """Open a world file for the body, after it was read through once: damage is known before the
    first user is taken out of it.

    Raises:
        WorldFileError: no world file, damaged, cut short, or of a newer format.
        StorageError: it cannot be read.
    """
    with _disk_errors(path), path.open("rb") as file:
        yield WorldFile(path, file)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if isinstance(exc, StorageError):
            raise
        raise disk_error(exc, path) from exc


def _damaged(path: Path, how: str) -> WorldFileError:
    return WorldFileError(f"{path} {how}: nothing is imported", path=str(path))


def _sizes(kind: bytes, packed: bytes, size_bytes: int) -> bytes:
    return _part.pack(kind, len(packed), size_bytes, bytes(DIGEST_BYTES))
