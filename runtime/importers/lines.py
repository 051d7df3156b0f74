"""Text files line by line, each of a bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reverie.formats import MAX_LINE_BYTES, split_lines
from reverie.memory_graph.errors import InvalidTextError

if TYPE_CHECKING:
    import io


def text_lines(file: io.BufferedReader) -> Iterator[tuple[int, str | InvalidTextError]]:
    """Yield (number, text) of each line without its end; an error for one that is no text."""
    for number, raw in split_lines(file, keep_blank=True):
        if raw is None:
            yield number, InvalidTextError(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
            continue
        try:
            yield number, raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as exc:
            msg = f"not UTF-8 (byte {exc.start + 1} of the line); save the file as UTF-8"
            yield number, InvalidTextError(msg)
