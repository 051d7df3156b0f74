"""What commands print: JSON for programs, tables for people.

Text out of memory is shown as it is, never as markup, and without control characters, which could
make a terminal do things.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reverie.memory_graph.errors import ReverieError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_KEPT = {"\n", "\t"}


def emit(document: object) -> None:
    """Print one JSON document on a line of stdout; `document` holds structs and plain values."""
    import msgspec

    text = msgspec.json.encode(document, enc_hook=str).decode()
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def console() -> Console:
    """Return a console for stdout."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def notes() -> Console:
    """Return a console for stderr: progress, hints and errors."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, stderr=True)


def note(line: str) -> None:
    """Print a line for people on stderr."""
    notes().print(printable(line), soft_wrap=True)


def show_error(error: ReverieError, *, as_json: bool) -> None:
    """Print an error: one red line on stderr, or one JSON document on stdout."""
    if as_json:
        wire = error.to_wire()
        emit({"error": wire.code, "message": wire.message, "details": wire.details})
        return
    notes().print(plain(f"{type(error).__name__}: {error.message}", "bold red"), soft_wrap=True)


def printable(text: str) -> str:
    """Return `text` with control characters, but line breaks and tabs, made visible."""
    if text.isprintable():
        return text
    return "".join(
        repr(char)[1:-1] if unicodedata.category(char) == "Cc" and char not in _KEPT else char
        for char in text
    )


def plain(text: str, style: str = "") -> Text:
    """Return text that rich shows as it is."""
    from rich.text import Text

    return Text(printable(text), style)


def moment(at: float | None) -> str:
    """Return a time in seconds as UTC to the minute; "" for None, a number outside of years."""
    if at is None:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return f"t={at:g}"


def table(*columns: str, title: str | None = None) -> Table:
    """Return a table with `columns`; a name that begins with ">" is set to the right."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for name in columns:
        made.add_column(name.removeprefix(">"), justify="right" if name[:1] == ">" else "left")
    return made


def pairs(rows: Iterable[tuple[str, object]]) -> Table:
    """Return a table of names and values without a head."""
    made = table("", "")
    made.show_header = False
    for name, value in rows:
        made.add_row(plain(name, "bold"), plain(str(value)))
    return made
