"""The elements of a JSON array as bytes, one at a time, out of a stream of any length.

Only the brackets and strings of JSON are followed here, by regular expressions over one buffer
after another; what an element says is decoded by whoever gets it. So an element that is broken (a
byte that is no UTF-8, a missing comma inside it) costs itself alone: a parser of events would stop
at that byte, and lose what comes after it. An element over its bound is passed over while it is
read, and never held.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_ELEMENT_BYTES = 64 * 1024**2  # one conversation; the longest real ones have a tenth of it
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_IN_STRING = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.DOTALL)
_INSIDE = re.compile(rb"(?:[^\"\[\]{}]++|" + _STRING + rb")*+", re.DOTALL)
_BETWEEN = re.compile(rb"(?:[^\"\[\]{},]++|" + _STRING + rb")*+", re.DOTALL)
_OPEN, _CLOSE = frozenset(b"[{"), frozenset(b"]}")


@dataclass(frozen=True)
class Element:
    """One element: its number from 1, and its bytes, or why it cannot be used."""

    number: int
    data: bytes = b""
    fault: str = ""


class Splitter:
    """Takes buffers in order and gives the elements that they complete; see the module's text.

    A document that is no array is taken as a row of objects: one, or one a line.
    """

    def __init__(self, max_bytes: int = MAX_ELEMENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._depth = 0  # brackets that are open; that of the array is one of them
        self._is_begun = self._is_row = self._is_done = self._is_told = False
        self._is_in_string = self._is_escaped = False
        self._was_between = False  # the last bracket stood between elements
        self._parts: list[bytes] = []
        self._size_bytes = 0
        self._number = 0

    def feed(self, data: bytes) -> Iterator[Element]:
        """Yield the elements that end in `data`."""
        start = pos = 0 if self._is_begun else self._begin(data)
        while pos < len(data) and not self._is_done:
            if self._is_escaped:
                self._is_escaped = False
                pos += 1
            elif self._is_in_string:
                pos = self._string(data, pos)
            else:
                pos = self._bracket(data, pos)
                if self._is_end(here := data[pos - 1]):
                    self._keep(data[start : pos if self._is_row else pos - 1])
                    start = pos
                    yield from self._element()
                    self._is_done = here == ord("]")
        if not self._is_done:
            self._keep(data[start:])
        elif not self._is_told and (rest := data[start:].strip(_SPACE)):
            self._is_told = True
            yield Element(self._number + 1, fault=f"something follows the end: {rest[:20]!r}")

    def finish(self) -> Iterator[Element]:
        """Yield what is wrong with the end of the document, if anything is."""
        if not self._is_begun:
            yield Element(1, fault="the file is empty")
        elif not self._is_done and not (self._is_row and self._is_blank()):
            yield Element(self._number + 1, fault="the file ends in the middle of it")

    def _begin(self, data: bytes) -> int:
        """Return where the first element begins: after the bracket of the array."""
        text = data.removeprefix(_BOM).lstrip(_SPACE)
        if not text:
            return len(data)
        self._is_begun = True
        self._is_row = text[:1] != b"["
        self._depth = 0 if self._is_row else 1
        return len(data) - len(text) + self._depth

    def _bracket(self, data: bytes, pos: int) -> int:
        """Go on to the next bracket, comma between elements, or quote of a string that does not
        end here; returns the place after it, or the end."""
        is_between = self._depth == 1 and not self._is_row
        found = (_BETWEEN if is_between else _INSIDE).match(data, pos)
        pos = pos if found is None else found.end()
        self._was_between = self._depth <= 1
        if pos == len(data):
            self._was_between = False
            return pos
        here = data[pos]
        if here == ord('"'):
            self._is_in_string = True
        elif here in _OPEN:
            self._depth += 1
        elif here in _CLOSE:
            self._depth = max(self._depth - 1, 0 if self._is_row else 1)
        return pos + 1

    def _is_end(self, here: int) -> bool:
        """Whether the byte that `_bracket` has found ends an element."""
        if not self._was_between:
            return False
        return here == ord("}") and self._depth == 0 if self._is_row else here in b",]"

    def _string(self, data: bytes, pos: int) -> int:
        found = _IN_STRING.match(data, pos)
        pos = pos if found is None else found.end()
        if pos < len(data):
            self._is_in_string = data[pos] != ord('"')
            self._is_escaped = self._is_in_string  # a backslash at the end of the buffer
            pos += 1
        return pos

    def _keep(self, part: bytes) -> None:
        self._size_bytes += len(part)
        if self._size_bytes > self._max_bytes:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _is_blank(self) -> bool:
        return self._size_bytes <= self._max_bytes and not b"".join(self._parts).strip(_SPACE)

    def _element(self) -> Iterator[Element]:
        data, size_bytes = b"".join(self._parts), self._size_bytes
        self._parts.clear()
        self._size_bytes = 0
        if size_bytes > self._max_bytes:
            self._number += 1
            fault = f"it has {size_bytes:,} bytes; at most {self._max_bytes:,} are read of one"
            yield Element(self._number, fault=fault)
        elif data.strip(_SPACE):
            self._number += 1
            yield Element(self._number, data)


def elements(buffers: Iterable[bytes], *, max_bytes: int = MAX_ELEMENT_BYTES) -> Iterator[Element]:
    """Yield the elements of a JSON array, in order.

    Args:
        buffers: its bytes, in parts of any size.
        max_bytes: of one element; longer ones are told, and not held.
    """
    splitter = Splitter(max_bytes)
    for data in buffers:
        yield from splitter.feed(data)
    yield from splitter.finish()
