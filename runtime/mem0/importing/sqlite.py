"""SQLite files of other programs, opened for reading only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from reverie.memory_graph.errors import InvalidValueError


@contextmanager
def reading(path: Path) -> Iterator[apsw.Connection]:
    """Open a file; an error of SQLite inside becomes an InvalidValueError that names the file."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            yield connection
        finally:
            connection.close()
    except apsw.Error as exc:
        msg = f"{path} cannot be read: {type(exc).__name__}: {exc}"
        raise InvalidValueError(msg, path=str(path)) from exc


def columns(connection: apsw.Connection, table: str) -> set[str]:
    """Return the columns of a table, none when there is no such table."""
    found = connection.execute("select name from pragma_table_info(?)", (table,))
    return {str(name) for (name,) in found}
