"""The seal of a file: what tells that no row of its small tables is missing, changed or made up.

One row holds a sum over the rows of each sealed table, and the number of transactions. Every write
changes it in its own transaction, from what the driver tells of each changed row. At opening all
sealed rows are read and summed anew.

A log that is cut or damaged ends early, and SQLite takes what is before the damage for everything:
acknowledged transactions would vanish without a word. So the number of the last one is also noted
in a small file beside the database, the witness, after each commit and without a sync. What it
notes was synced in the log before, so it is never ahead of an undamaged file. A power cut may leave
it behind, which only means that it proves less.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from reverie.memory_graph.errors import StorageFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from reverie.memory_graph.store.sqlite import Database, Value

SEAL_SCHEMA = """CREATE TABLE seal (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        commits INTEGER NOT NULL,
        sums BLOB NOT NULL,
        checksum BLOB NOT NULL) STRICT"""
WAY_OUT = "restore it from a backup, or save what is whole with: reverie check --repair"

_SUM_BYTES = 16
_MODULO = 1 << (8 * _SUM_BYTES)
_WITNESS = b"RVW1"
_WITNESS_BYTES = len(_WITNESS) + 8 + 8

_encode = msgspec.msgpack.Encoder().encode


def row_sum(table: str, row: Sequence[Value]) -> int:
    """Return what a row adds to the sum of its table."""
    data = _encode((table, *row))
    return int.from_bytes(blake2b(data, digest_size=_SUM_BYTES).digest(), "big")


def table_sum(table: str, rows: Iterable[Sequence[Value]]) -> int:
    """Return the sum of all rows of a table, in whatever order."""
    return sum(row_sum(table, row) for row in rows) % _MODULO


def seal_row(tables: Sequence[str], commits: int, sums: dict[str, int]) -> tuple[Any, ...]:
    """Return the row of the table `seal`."""
    packed = b"".join(sums[name].to_bytes(_SUM_BYTES, "big") for name in tables)
    return 1, commits, packed, _check(commits, packed)


def read_seal(tables: Sequence[str], row: Sequence[Any]) -> tuple[int, dict[str, int]] | None:
    """Return (commits, sums) from a row of the table `seal`; None when it does not verify."""
    _, commits, packed, checksum = row
    if not isinstance(commits, int) or not isinstance(packed, bytes):
        return None
    if checksum != _check(commits, packed) or len(packed) != _SUM_BYTES * len(tables):
        return None
    parts = [packed[i : i + _SUM_BYTES] for i in range(0, len(packed), _SUM_BYTES)]
    return commits, {
        name: int.from_bytes(part, "big") for name, part in zip(tables, parts, strict=True)
    }


def _check(commits: int, packed: bytes) -> bytes:
    return blake2b(commits.to_bytes(8, "big", signed=True) + packed, digest_size=8).digest()


class Witness:
    """The file beside a database that knows the number of its last transaction."""

    def __init__(self, database: Path) -> None:
        """Name it; nothing is opened yet."""
        self.path = database.with_suffix(".commits")
        self._handle: int | None = None

    def read(self) -> int:
        """Return the number; 0 when the file is missing or does not verify."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return 0
        number, check = data[len(_WITNESS) : -8], data[-8:]
        if len(data) != _WITNESS_BYTES or not data.startswith(_WITNESS):
            return 0
        if blake2b(number, digest_size=8).digest() != check:
            return 0
        return int.from_bytes(number, "big")

    def write(self, commits: int) -> None:
        """Note a number. An error costs only what it would have proven."""
        number = commits.to_bytes(8, "big")
        data = _WITNESS + number + blake2b(number, digest_size=8).digest()
        with suppress(OSError):
            if self._handle is None:
                self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, data)  # one sector, which is written whole or not at all

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):
                os.close(handle)


class Seal:
    """Keeps the seal of an open database up to date; `Database.write` calls it."""

    def __init__(self, db: Database, tables: Sequence[str]) -> None:
        """Prepare; nothing is read before `verify`."""
        self._db = db
        self._tables = tuple(tables)
        self._sums: dict[str, int] = {}
        self._delta = dict.fromkeys(tables, 0)
        self._is_dirty = False
        self._is_in_doubt = False  # whether the file has what is kept here
        self.commits = 0
        self.witness = Witness(db.path)

    def make(self) -> None:
        """Seal what is there, taken at its word: of a file of a format that had no seal."""
        sums = {name: self._sum(name) for name in self._tables}
        self._db.rows("INSERT INTO seal VALUES (?, ?, ?, ?)", seal_row(self._tables, 0, sums))

    def verify(self) -> None:
        """Read all sealed tables, in the transaction that is open, and compare. A new file gets
        its seal.

        Raises:
            StorageFailedError: they are not what was written, or the newest transactions are gone.
        """
        sums = {name: self._sum(name) for name in self._tables}
        rows = self._db.rows("SELECT id, commits, sums, checksum FROM seal")
        seen = self.witness.read()
        if not rows and not seen and not any(sums.values()):  # a new file
            rows = [seal_row(self._tables, 0, sums)]
            self._db.rows("INSERT INTO seal VALUES (?, ?, ?, ?)", rows[0])
        found = read_seal(self._tables, rows[0]) if len(rows) == 1 else None
        if found is None:
            self._refuse("its seal does not verify")
        self.commits, self._sums = found
        if wrong := [name for name in self._tables if sums[name] != self._sums[name]]:
            self._refuse(f"rows of {', '.join(wrong)} do not verify")
        if self.commits < seen:
            lost = seen - self.commits
            self._refuse(
                f"its last {lost:,} transaction{'s' if lost > 1 else ''} of {seen:,} "
                "are gone: the log beside it was damaged, cut or removed"
            )

    def _sum(self, table: str) -> int:
        for (line,) in self._db.rows(f"PRAGMA integrity_check({table})"):
            if line != "ok":
                self._refuse(str(line).splitlines()[-1])
        return table_sum(table, self._db.rows(f"SELECT * FROM {table}"))  # noqa: S608 (our constant)

    def _refuse(self, what: str) -> NoReturn:
        path = self._db.path
        msg = f"{path} is damaged: {what}; {WAY_OUT}"
        raise StorageFailedError(msg, path=str(path))

    # -- one transaction -----------------------------------------------------------------

    def begin(self) -> None:
        """A transaction begins.

        An interrupt may have cut the last one off between any two lines, also after its commit and
        before that was noted here: then the file says how it ended.

        Raises:
            StorageFailedError: the seal in the file does not verify.
        """
        if self._is_in_doubt:
            row = self._db.only_row("SELECT id, commits, sums, checksum FROM seal")
            found = read_seal(self._tables, row)
            if found is None:
                self._refuse("its seal does not verify")
            self.commits, self._sums = max(self.commits, found[0]), found[1]
        self._is_in_doubt = True
        self._is_dirty = False
        self._delta = dict.fromkeys(self._tables, 0)

    def changed(self, table: str, old: Sequence[Value] | None, new: Sequence[Value] | None) -> None:
        """Take in one changed row; called by the driver."""
        self._is_dirty = True
        if table not in self._delta:
            return
        if old is not None:
            self._delta[table] -= row_sum(table, old)
        if new is not None:
            self._delta[table] += row_sum(table, new)

    def before_commit(self) -> None:
        """Put the seal on what the transaction has changed."""
        if not self._is_dirty:
            return
        sums = {name: (self._sums[name] + self._delta[name]) % _MODULO for name in self._tables}
        self._db.rows(
            "UPDATE seal SET commits = ?2, sums = ?3, checksum = ?4 WHERE id = ?1",
            seal_row(self._tables, self.commits + 1, sums),
        )

    def committed(self) -> None:
        """The transaction is durable."""
        if self._is_dirty:
            for name in self._tables:
                self._sums[name] = (self._sums[name] + self._delta[name]) % _MODULO
            self.commits += 1
            self.witness.write(self.commits)
        self._is_dirty = False
        self._delta = dict.fromkeys(self._tables, 0)
        self._is_in_doubt = False
