"""Reads the rows of a damaged SQLite file from its pages, without the help of SQLite.

A healthy header, root or index is not needed: every page is looked at, and every record that can be
decoded is returned under the table whose columns it fits. That proves nothing; what a row is worth
is told by its own checksum and by the seal of the file (seal.py).

The layout is that of https://www.sqlite.org/fileformat2.html: pages of `PAGE_BYTES`, nothing
reserved, text in UTF-8. Pages in the log count, where the log is whole and, as another reading,
also past the first damaged frame: later frames may be whole, and the seal shows whether they are.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from reverie.memory_graph.store.seal import read_seal, table_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from reverie.memory_graph.store.sqlite import Value

PAGE_BYTES = 4096
HEADER_BYTES = 100  # before the content of the first page
WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
BIG_ENDIAN_SUMS = 0x377F0683

TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x0A, 0x02
PAGE_HEADER_BYTES = {TABLE_LEAF: 8, INDEX_LEAF: 8, INDEX_INTERIOR: 12}
INT_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
REAL_TYPE, ZERO_TYPE, ONE_TYPE, FIRST_BLOB_TYPE = 7, 8, 9, 12

Pages = dict[int, bytes]  # page number, from 1 -> content
Row = tuple[Any, ...]  # of the types that the columns of its table have

SIGNED = "i"  # kinds of columns: i integer, t text, b blob, r real; capitals may be NULL


class Table(NamedTuple):
    """How the rows of a table are told from others.

    `kinds` has a letter for each column; `has_number` says that the first one is the row number;
    `is_clustered` that it is WITHOUT ROWID.
    """

    kinds: str
    has_number: bool = False
    is_clustered: bool = False


PARTITION_TABLES = {
    "owner": Table("iitiii", has_number=True),
    "users": Table("ittiiiiiTb", has_number=True),
    "names": Table("ittb", has_number=True),
    "generations": Table("iiIib", is_clustered=True),
    "journal": Table("iiibb"),
    "snapshots": Table("iiitibb"),
    "results": Table("itIibbb", has_number=True),
    "outbox": Table("iitiit", has_number=True),
    "tags": Table("ttt", is_clustered=True),
    "pins": Table("ttiiibb", is_clustered=True),
    "rewinds": Table("tt", is_clustered=True),
    "seal": Table("iibb", has_number=True),
    "sqlite_schema": Table("tttiT"),
}
CATALOG_TABLES = {
    "folder": Table("ii", has_number=True),
    "worlds": Table("ttitr"),
    "tags": Table("ttr"),
    "intents": Table("ittb", has_number=True),
    "seal": Table("iibb", has_number=True),
    "sqlite_schema": Table("tttiT"),
}


class Salvaged(NamedTuple):
    """What one reading of a file has given.

    Attributes:
        rows: of each table; nothing is proven of them.
        whole: the sealed tables whose rows are, all of them, what was written.
        commits: the number of the last transaction; 0 when the seal does not verify.
    """

    rows: Mapping[str, list[Row]]
    whole: frozenset[str]
    commits: int


def salvage(
    path: Path, tables: Mapping[str, Table], sealed: Sequence[str]
) -> tuple[Salvaged, list[Salvaged]]:
    """Read a database file with its log; a missing one has no rows.

    Returns:
        The best reading, and the others: the one with the most whole tables, of these the newest,
        of these the one that SQLite would give.
    """
    found = [_rows_of(pages, tables, sealed) for pages in _readings(path)]
    order = sorted(range(len(found)), key=lambda i: (-len(found[i].whole), -found[i].commits, i))
    return found[order[0]], [found[i] for i in order[1:]]


# -- pages -------------------------------------------------------------------------------


def _readings(path: Path) -> Iterator[Pages]:
    """Yield the pages as SQLite would see them, then with all frames of the log, then without."""
    data = path.read_bytes() if path.is_file() else b""
    parts = (data[i : i + PAGE_BYTES] for i in range(0, len(data), PAGE_BYTES))
    base = {n: part.ljust(PAGE_BYTES, b"\0") for n, part in enumerate(parts, 1)}
    log = path.with_name(path.name + "-wal")
    frames = list(_frames(log.read_bytes())) if log.is_file() else []
    chained = frames[: next((i for i, f in enumerate(frames) if not f.is_chained), len(frames))]
    yield _overlay(base, chained)
    if len(chained) < len(frames):
        yield _overlay(base, frames)
    if frames:
        yield base


class _Frame(NamedTuple):
    page: int
    pages: int  # of the whole file after this frame, which then ends a transaction; else 0
    content: bytes
    is_chained: bool  # its checksum, which goes over all frames before it, too, verifies


def _frames(log: bytes) -> Iterator[_Frame]:
    if len(log) < WAL_HEADER_BYTES:
        return
    size = FRAME_HEADER_BYTES + PAGE_BYTES
    magic, *_, salt_1, salt_2, sum_1, sum_2 = struct.unpack(">8I", log[:WAL_HEADER_BYTES])
    heads = [
        struct.unpack(">6I", log[i : i + FRAME_HEADER_BYTES])
        for i in range(WAL_HEADER_BYTES, len(log) - size + 1, size)
    ]
    salts = (salt_1, salt_2)
    if salts not in {head[2:4] for head in heads[:2]} and heads:
        salts = heads[0][2:4]  # the header is damaged
    order = ">" if magic == BIG_ENDIAN_SUMS else "<"
    is_chained = _sums(log[: WAL_HEADER_BYTES - 8], order, 0, 0) == (sum_1, sum_2)
    for i, head in enumerate(heads):
        start = WAL_HEADER_BYTES + i * size
        content = log[start + FRAME_HEADER_BYTES : start + size]
        if is_chained:
            sum_1, sum_2 = _sums(log[start : start + 8], order, sum_1, sum_2)
            sum_1, sum_2 = _sums(content, order, sum_1, sum_2)
            is_chained = head[2:4] == salts and head[4:6] == (sum_1, sum_2)
        if head[2:4] == salts:  # others are left over from before the log was last begun anew
            yield _Frame(head[0], head[1], content, is_chained)


def _sums(data: bytes, order: str, sum_1: int, sum_2: int) -> tuple[int, int]:
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for i in range(0, len(words), 2):
        sum_1 = (sum_1 + words[i] + sum_2) & 0xFFFFFFFF
        sum_2 = (sum_2 + words[i + 1] + sum_1) & 0xFFFFFFFF
    return sum_1, sum_2


def _overlay(base: Pages, frames: Sequence[_Frame]) -> Pages:
    """Return the pages after the last frame that ends a transaction."""
    ends = [i for i, frame in enumerate(frames) if frame.pages]
    if not ends:
        return base
    pages = base | {frame.page: frame.content for frame in frames[: ends[-1] + 1]}
    return {n: page for n, page in pages.items() if n <= frames[ends[-1]].pages}


# -- records -----------------------------------------------------------------------------


def _rows_of(pages: Pages, tables: Mapping[str, Table], sealed: Sequence[str]) -> Salvaged:
    rows: dict[str, list[Row]] = {name: [] for name in tables}
    for is_clustered, number, values in _records(pages):
        for name, table in tables.items():
            if table.is_clustered == is_clustered:
                row = _fitted(table, number, values)
                if row is not None:
                    rows[name].append(row)
                    break
    seals = [found for row in rows["seal"] if (found := read_seal(sealed, row)) is not None]
    if len(seals) != 1:
        return Salvaged(rows, frozenset(), 0)
    commits, sums = seals[0]
    whole = frozenset(name for name in sealed if table_sum(name, rows[name]) == sums[name])
    return Salvaged(rows, whole, commits)


def _fitted(table: Table, number: int | None, values: Row) -> Row | None:
    """Return a record as a row of a table, or None when it cannot be one."""
    if len(values) != len(table.kinds):
        return None
    row = list(values)
    if table.has_number:
        if row[0] is not None:
            return None
        row[0] = number
    for i, kind in enumerate(table.kinds):
        value = row[i]
        if kind == "r" and isinstance(value, int):
            row[i] = float(value)  # as which it was stored, to save space
        elif value is None:
            if kind.islower():
                return None
        elif not isinstance(value, {"i": int, "t": str, "b": bytes, "r": float}[kind.lower()]):
            return None
    return tuple(row)


def _records(pages: Pages) -> Iterator[tuple[bool, int | None, Row]]:
    """Yield (is of an index, row number, values) of each record that can be decoded."""
    for page_number, page in pages.items():
        start = HEADER_BYTES if page_number == 1 else 0
        kind = page[start]
        if kind not in PAGE_HEADER_BYTES:
            continue
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        first = start + PAGE_HEADER_BYTES[kind]
        seen: Counter[int] = Counter()
        for i in range(min(count, PAGE_BYTES // 4)):
            at = int.from_bytes(page[first + 2 * i : first + 2 * i + 2], "big")
            seen[at] += 1
            if seen[at] > 1 or not first <= at < PAGE_BYTES:
                continue
            try:
                yield _record(pages, page, kind, at)
            except (IndexError, ValueError, KeyError, struct.error):  # this one is damaged
                continue


def _record(pages: Pages, page: bytes, kind: int, at: int) -> tuple[bool, int | None, Row]:
    if kind == INDEX_INTERIOR:
        at += 4  # the number of a page below
    size, at = _varint(page, at)
    number = None
    if kind == TABLE_LEAF:
        number, at = _varint(page, at)
    return kind != TABLE_LEAF, number, _values(_payload(pages, page, kind, at, size))


def _payload(pages: Pages, page: bytes, kind: int, at: int, size: int) -> bytes:
    """Return the bytes of a record, which may go on in a chain of other pages."""
    most = PAGE_BYTES - 35 if kind == TABLE_LEAF else (PAGE_BYTES - 12) * 64 // 255 - 23
    if size <= most:
        data = page[at : at + size]
        if len(data) < size:
            raise ValueError(size)
        return data
    if size > len(pages) * PAGE_BYTES:
        raise ValueError(size)
    least = (PAGE_BYTES - 12) * 32 // 255 - 23
    local = least + (size - least) % (PAGE_BYTES - 4)
    local = local if local <= most else least
    parts = [page[at : at + local]]
    left = size - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while left > 0:
        more = pages[following]
        following = int.from_bytes(more[:4], "big")
        parts.append(more[4 : 4 + left])
        left -= len(parts[-1])
    return b"".join(parts)


def _values(data: bytes) -> Row:
    end, at = _varint(data, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(data, at)
        kinds.append(kind)
    at = end
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(data, kind, at)
        values.append(value)
    if at != len(data):
        raise ValueError(at)
    return tuple(values)


def _value(data: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in INT_BYTES:
        end = at + INT_BYTES[kind]
        return int.from_bytes(data[at:end], "big", signed=True), end
    if kind == REAL_TYPE:
        return struct.unpack(">d", data[at : at + 8])[0], at + 8
    if kind in {ZERO_TYPE, ONE_TYPE}:
        return kind - ZERO_TYPE, at
    if kind < FIRST_BLOB_TYPE:
        raise ValueError(kind)
    end = at + (kind - FIRST_BLOB_TYPE) // 2
    part = data[at:end]
    if len(part) < end - at:
        raise ValueError(kind)
    return (part.decode() if kind % 2 else part), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 (the bit that says that more follows)
            return value, at + i + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9
