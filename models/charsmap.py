"""SentencePiece's "precompiled charsmap": the text normaliser that a Unigram tokenizer carries.

The map replaces runs of characters, longest match first. On disk it is a byte count, a Darts-clone
double-array trie over UTF-8, and the replacements as NUL-terminated strings
(https://github.com/google/sentencepiece, src/normalizer.cc; https://github.com/s-yata/darts-clone).
In a trie unit, bit 31 marks a value; otherwise bits 0-7 are the label, bit 8 says that the node
ends a key, and from bit 10 on stands the offset: child = unit ^ offset ^ label.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TypeAlias
from unicodedata import ucd_3_2_0 as ucd  # frozen tables: the same map on every Python

import numpy as np
from numpy.typing import NDArray

CodePoints: TypeAlias = tuple[int, ...]
Trie: TypeAlias = dict[int, "Trie | int"]  # byte -> node; byte 0 -> position of the replacement

_MAX_UNITS = 1 << 20
_LEAF_BIT = 1 << 8
_VALUE_BIT = 1 << 31
_OFFSET_SHIFT = 10
_OFFSET_LIMIT = 1 << 21
_LOOK_BACK = 2048  # units behind the end where a node of several children may still be placed


def compositions() -> dict[CodePoints, CodePoints]:
    """Return the NFKC rules whose left side has several characters.

    They join a letter with its combining accents, half-width kana with voicing marks, and Hangul
    jamo into syllables. Composites come as Unicode 3.2 has them.
    """
    rules: dict[CodePoints, CodePoints] = {}

    def add(sequence: str, composed: str) -> None:
        if len(sequence) > 1 and sequence != composed:
            rules.setdefault(_points(sequence), _points(composed))

    for code in [*range(0xA0, 0xAC00), *range(0xE000, 0x30000)]:  # no Hangul, no surrogates
        char = chr(code)
        decomposition = ucd.decomposition(char)
        is_canonical = bool(decomposition) and not decomposition.startswith("<")
        if is_canonical and ucd.normalize("NFC", char) == char:
            add(ucd.normalize("NFD", char), ucd.normalize("NFKC", char))
    for code in range(0xFF66, 0xFF9E):  # half-width kana
        for mark in "\uff9e\uff9f":  # voiced, semi-voiced
            composed = ucd.normalize("NFKC", chr(code) + mark)
            if len(composed) == 1:
                add(chr(code) + mark, composed)
    for lead in range(19):
        for vowel in range(21):
            syllable = 0xAC00 + (lead * 21 + vowel) * 28
            open_syllable = chr(0x1100 + lead) + chr(0x1161 + vowel)
            add(open_syllable, chr(syllable))
            for tail in range(1, 28):
                add(open_syllable + chr(0x11A7 + tail), chr(syllable + tail))
    return rules


def build_charsmap(rules: Mapping[CodePoints, CodePoints]) -> bytes:
    """Return the binary map of `rules`, each from a run of code points to its replacement."""
    replacements = bytearray()
    position_of: dict[bytes, int] = {}
    root: Trie = {}
    for key, value in sorted(rules.items()):
        replacement = _utf8(value)
        if replacement not in position_of:
            position_of[replacement] = len(replacements)
            replacements += replacement + b"\0"
        _insert(root, _utf8(key), position_of[replacement])
    units = _double_array(root)
    return struct.pack("<I", units.nbytes) + units.tobytes() + bytes(replacements)


def _points(text: str) -> CodePoints:
    return tuple(map(ord, text))


def _utf8(points: CodePoints) -> bytes:
    return "".join(map(chr, points)).encode("utf-8", "surrogatepass")


def _insert(root: Trie, key: bytes, position: int) -> None:
    node = root
    for byte in key:
        child = node.setdefault(byte, {})
        assert isinstance(child, dict)  # noqa: S101 - only byte 0 maps to a number
        node = child
    node[0] = position


class _Units:
    """The double array while it is being filled."""

    def __init__(self) -> None:
        self.units = [0] * _MAX_UNITS
        self._used = bytearray(_MAX_UNITS)  # searched for its zeros
        self._used[0] = 1  # the root
        self._bases: set[int] = set()
        self._first_free = 1
        self.last = 0  # the highest unit that a reader may look at

    def place(self, labels: list[int]) -> int:
        """Claim units for children of these ascending labels; return their common base."""
        self._first_free = self._next_free(self._first_free)
        spot = self._first_free
        if len(labels) > 1:
            spot = self._next_free(max(spot, self.last - _LOOK_BACK))
        base = spot ^ labels[0]
        while base == 0 or base in self._bases or any(self._used[base ^ at] for at in labels):
            spot = self._next_free(spot + 1)
            base = spot ^ labels[0]
        self._bases.add(base)
        for label in labels:
            self._used[base ^ label] = 1
        self.last = max(self.last, base | 0xFF)  # any byte may be tried from this base
        return base

    def _next_free(self, spot: int) -> int:
        return self._used.index(0, spot)  # ValueError when the array is full


def _double_array(root: Trie) -> NDArray[np.uint32]:
    array = _Units()
    units = array.units
    todo = [(0, root)]
    while todo:
        at, node = todo.pop()
        base = array.place(sorted(node))
        offset = at ^ base
        if offset >= _OFFSET_LIMIT:
            msg = "the map has too many rules for this kind of trie"
            raise ValueError(msg)
        label = units[at] & 0xFF
        units[at] = label | offset << _OFFSET_SHIFT | (_LEAF_BIT if 0 in node else 0)
        for byte, child in sorted(node.items()):
            if isinstance(child, int):
                units[base] = child | _VALUE_BIT
            else:
                units[base ^ byte] = byte
                todo.append((base ^ byte, child))
    return np.array(units[: array.last + 1], "<u4")
