"""Text files line by line, each of a bounded length, and turns of several lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from reverie.formats import MAX_LINE_BYTES, split_lines
from reverie.importers.records import MAX_TEXT_BYTES, Entry, bad, record
from reverie.memory_graph.errors import InputError, InvalidTextError, InvalidValueError

if TYPE_CHECKING:
    import io

    from reverie.memory_graph.drafts import TurnDraft


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


class OpenTurn:
    """A turn whose lines are still being read. A text over its bound is counted, and not held."""

    def __init__(
        self, number: int, where: str, text: str, made: Callable[[str], TurnDraft | None]
    ) -> None:
        """Begin one.

        Args:
            number: of its first line.
            where: the file, for people.
            text: of its first line.
            made: gives the draft of the whole text, None where it is no turn; may raise InputError.
        """
        self._number = number
        self._where = f"{where}, line {number}"
        self._made = made
        self._lines = [text]
        self._chars = len(text)

    def add(self, line: str) -> None:
        """Go on with another line."""
        self._chars += len(line) + 1
        if self._chars <= MAX_TEXT_BYTES:
            self._lines.append(line)

    def close(self, title: str, source: str) -> Iterator[Entry]:
        """Yield the turn, if it is one, or what is wrong with it."""
        try:
            if self._chars > MAX_TEXT_BYTES:
                msg = f"{self._chars:,} characters; at most {MAX_TEXT_BYTES:,} are read of a turn"
                raise InvalidValueError(msg)
            draft = self._made("\n".join(self._lines))
        except InputError as exc:
            yield bad(self._number, self._where, exc)
            return
        if draft is not None:
            yield record(draft, title, source, self._number)
