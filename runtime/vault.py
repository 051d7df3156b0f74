"""The mapping from placeholders back to values, in one file of the data folder, encrypted.

`masks.vault` is a text file of lines. The first says which kinds are masked; it is clear, so that
a folder that is opened without the key still knows that it is masked. Every other line is either
a Fernet token (AES-CBC with HMAC) of new records, or a clear note that needs no key to be written:
a user was erased, a world was forked. The key is never written anywhere.

Lines are appended and synced before what uses them is stored: a number that is on disk in a text
always has its value on disk too. A line that a crash cut short was never used, and is dropped.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from reverie.memory_graph.errors import (
    ConfigError,
    DataFolderError,
    StorageFailedError,
    StorageFullError,
)
from reverie.memory_graph.store import sync_folder

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

FILE = "masks.vault"
FORMAT = 1
_EXTRA = "pip install 'reverie[mask]'"


class Record(NamedTuple):
    """One value, as it was met: `form` is its spelling, `user_id` who said it. With `key` "" only
    the highest number that was ever given out."""

    world: str
    kind: str
    number: int
    key: str
    form: str
    user_id: str


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """A clear line: the hash of an erased user, or (from, to) of a forked world."""

    forget: str = ""
    fork: tuple[str, str] | None = None


class _Head(msgspec.Struct, frozen=True):
    masks: int
    kinds: list[str]
    check: str  # a token of the kinds, which only the right key opens


def new_mask_key() -> str:
    """Return a new key for `reverie.open(mask_key=...)`. Keep it apart from the data folder: who
    has both can read what was masked, and without it nobody can."""
    return _fernet_class().generate_key().decode()


def _fernet_class() -> type[Fernet]:
    try:
        from cryptography.fernet import Fernet
    except ImportError as exc:
        msg = f"masking needs the cryptography library; {_EXTRA}"
        raise ConfigError(msg, setting="mask_key").because(exc) from None
    return Fernet


def _cipher(key: str | bytes) -> Fernet:
    fernet = _fernet_class()
    try:
        return fernet(key)
    except (ValueError, TypeError):  # the message must not hold the key
        msg = "mask_key is no key; make one with reverie.new_mask_key()"
        raise ConfigError(msg, setting="mask_key") from None


class Vault:
    """The file. Not safe to share between threads; the owner locks.

    Attributes:
        kinds: what is masked in this folder.
        has_key: whether values can be read and added.
        is_grown: whether the file does not say yet what is masked: it must be rewritten.
        records: what the file holds, in order, notes among them; () without the key.
    """

    def __init__(self, folder: Path, kinds: Sequence[str], key: str | bytes | None) -> None:
        """Open the file of a folder, or make it when `kinds` are to be masked.

        Raises:
            ConfigError: a key that is none or not the one; none, where the file has to be made.
            DataFolderError: the file is damaged, or of a newer version.
            StorageFailedError: it cannot be read or written.
        """
        self._path = folder / FILE
        self._key = None if key is None else _cipher(key)
        self._is_failed = False
        self.is_grown = False
        self.kinds: tuple[str, ...] = ()
        self.records: Sequence[Record | Note] = ()
        lines = self._lines()
        if lines:
            self._read(lines)
        if set(kinds) - set(self.kinds):
            if self._key is None:
                msg = (
                    "mask= needs mask_key=: make one with reverie.new_mask_key(), and keep it "
                    "apart from the data folder"
                )
                raise ConfigError(msg, setting="mask_key")
            self.kinds = tuple(sorted({*self.kinds, *kinds}))
            self.is_grown = True
        if key is not None and not self.kinds:
            msg = "mask_key= without mask=: nothing is masked in this data folder yet"
            raise ConfigError(msg, setting="mask")

    @property
    def has_key(self) -> bool:
        """Whether values can be read and added."""
        return self._key is not None

    def _lines(self) -> list[bytes]:
        try:
            whole = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise self._failed(exc) from exc
        end = whole.rfind(b"\n") + 1
        if 0 < end < len(whole):  # cut short by a crash: it was never used
            try:
                os.truncate(self._path, end)
            except OSError as exc:
                raise self._failed(exc) from exc
        return whole[:end].splitlines()

    def _read(self, lines: list[bytes]) -> None:
        try:
            head = msgspec.json.decode(lines[0], type=_Head)
        except msgspec.MsgspecError as exc:
            raise self._damaged(1) from exc
        if head.masks != FORMAT:
            msg = f"{self._path} is of format {head.masks}, which this version cannot read"
            raise DataFolderError(msg, path=str(self._path))
        self.kinds = tuple(head.kinds)
        if self._key is None:
            return
        from cryptography.fernet import InvalidToken

        try:
            kinds = self._key.decrypt(head.check)
        except InvalidToken:
            msg = "mask_key is not the key that this data folder was masked with"
            raise ConfigError(msg, setting="mask_key") from None
        if kinds != msgspec.json.encode(head.kinds):
            raise self._damaged(1)
        found: list[Record | Note] = []
        for i, line in enumerate(lines[1:], 2):
            try:
                if line.startswith(b"{"):
                    found.append(msgspec.json.decode(line, type=Note))
                else:
                    found += msgspec.json.decode(self._key.decrypt(line), type=list[Record])
            except (InvalidToken, msgspec.MsgspecError) as exc:
                raise self._damaged(i) from exc
        self.records = found

    def append(self, records: Sequence[Record]) -> None:
        """Add records; they are on disk when this returns.

        Raises:
            StorageError: they are not; nothing more is taken until the folder is opened again.
        """
        self._append(self._token(records))

    def note(self, note: Note) -> None:
        """Add a note; needs no key. Raises as `append` does."""
        if self.kinds:
            self._append(msgspec.json.encode(note))

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace the file by one of these records alone. Raises as `append` does."""
        key = self._require_key()
        check = key.encrypt(msgspec.json.encode(list(self.kinds)))
        head = _Head(FORMAT, list(self.kinds), check.decode())
        lines = [msgspec.json.encode(head)]
        if kept := list(records):
            lines.append(self._token(kept))
        new = self._path.with_name(f"{FILE}.new")
        self._require_sound()
        try:
            with new.open("wb") as file:
                file.write(b"".join(line + b"\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as exc:
            raise self._failed(exc) from exc

    def _append(self, line: bytes) -> None:
        self._require_sound()
        try:
            with self._path.open("ab") as file:
                file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())  # durable from here on
        except OSError as exc:
            raise self._failed(exc) from exc

    def _token(self, records: Sequence[Record]) -> bytes:
        return self._require_key().encrypt(msgspec.json.encode(records))

    def _require_key(self) -> Fernet:
        if self._key is None:
            raise AssertionError  # the caller asks first
        return self._key

    def _require_sound(self) -> None:
        if self._is_failed:
            msg = f"{self._path} failed before; open the data folder again"
            raise StorageFailedError(msg, path=str(self._path))

    def _failed(self, exc: OSError) -> StorageFailedError | StorageFullError:
        self._is_failed = True  # what is on disk of it is not known any more
        kind = StorageFullError if exc.errno == errno.ENOSPC else StorageFailedError
        return kind(f"{self._path}: {exc.strerror or exc}", path=str(self._path)).because(exc)

    def _damaged(self, line: int) -> DataFolderError:
        msg = f"{self._path}, line {line}: damaged; what was masked cannot be read back"
        return DataFolderError(msg, path=str(self._path), line=line)
