r"""Check a GBNF grammar before llama.cpp's sampler sees it.

The sampler runs in C++ without a net: a grammar that it cannot follow ends the process, at the
first token or, when there are too many ways to go on, by running out of memory. So a grammar is
read here first, by the rules of https://github.com/ggml-org/llama.cpp/tree/master/grammars, and
refused with the line that is wrong. What is refused beyond plain mistakes:

- a rule that comes to itself without reading a character (left recursion, also by way of an item
  that may be empty, also as `(x?)*`): it never ends;
- a rule that can never be finished (`root ::= "a" root`): no answer would be whole;
- repetitions, nesting and sizes beyond the bounds below, counted as llama.cpp expands them.

What cannot be told beforehand is a grammar that is ambiguous in ever more ways the longer the text
gets (`s ::= "a" s "b" | "a" s "c" | "d"`); a host's timeout ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NoReturn, TypeAlias

import msgspec

from reverie.memory_graph.errors import InvalidValueError

MAX_CHARS = 256 * 1024
MAX_ELEMENTS = 20_000  # after expansion of repetitions
MAX_REPEAT = 512
MAX_DEPTH = 32  # of parentheses; llama.cpp reads them by recursion
MAX_CHAIN = 1000  # of rules that stand at the beginning of one another
ROOT = "root"

_CACHED = 64  # grammars found sound, by their text

_TOKEN = re.compile(
    r"(?P<space>[ \t]+|\#[^\n]*)"
    r"|(?P<newline>\r?\n)"
    r"|(?P<define>::=)"
    r"|(?P<name>[A-Za-z0-9-]+)"
    r'|(?P<text>"(?:[^"\\]|\\[\s\S])*")'
    r"|(?P<chars>\[(?:[^\]\\]|\\[\s\S])*\])"
    r"|(?P<any>\.)"
    r"|(?P<repeat>[*+?]"
    r"|\{[ ]*(?P<least>[0-9]{1,6})[ ]*(?P<comma>,[ ]*(?P<most>[0-9]{1,6})?[ ]*)?\})"
    r"|(?P<punctuation>[|()])"
)
_ESCAPE = re.compile(r'\\(?:[trn\\"\[\]]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|\\|[^\\]')
_PLAIN = {"t": "\t", "r": "\r", "n": "\n"}


class _Chars(msgspec.Struct, frozen=True):
    """Reads `count` characters, of which none may be missing."""

    count: int


class _Ref(msgspec.Struct, frozen=True):
    name: str
    line: int


class _Sequence(msgspec.Struct):
    items: list[_Node]


class _Choice(msgspec.Struct):
    items: list[_Node]


class _Repeat(msgspec.Struct):
    item: _Node
    least: int
    most: int | None
    line: int


_Node: TypeAlias = _Chars | _Ref | _Sequence | _Choice | _Repeat


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    line: int
    least: int = 0
    most: int | None = None


@lru_cache(maxsize=_CACHED)
def check_grammar(text: str) -> None:
    """Return when llama.cpp can follow the grammar.

    Raises:
        InvalidValueError: it cannot; the message names the line, and `line` is its number (0 when
            no single line is at fault).
    """
    if len(text) > MAX_CHARS:
        _refuse(0, f"it has {len(text):,} characters; {MAX_CHARS:,} are allowed")
    if "\0" in text or not text.isascii():
        _require_text(text)
    rules = _Reader(text).rules()
    if ROOT not in rules:
        _refuse(0, f"it has no rule {ROOT!r}")
    for node in rules.values():
        for ref in _refs(node):
            if ref.name not in rules:
                _refuse(ref.line, f"no rule is named {ref.name!r}")
    size = sum(_size(node) for node in rules.values())
    if size > MAX_ELEMENTS:
        _refuse(0, f"it expands to {size:,} elements; {MAX_ELEMENTS:,} are allowed")
    _require_end(rules)
    _require_progress(rules)


def _refuse(line: int, reason: str) -> NoReturn:
    where = f", line {line}" if line else ""
    msg = f"the grammar cannot be used{where}: {reason}"
    raise InvalidValueError(msg, line=line)


def _require_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(0, "it holds half a character (a lone surrogate)")
    if "\0" in text:
        _refuse(text[: text.index("\0")].count("\n") + 1, "it holds a NUL character")


# -- reading ---------------------------------------------------------------------------


def _tokens(text: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            _refuse(line, f"{text[at : at + 12]!r} is not understood")
        kind, part = found.lastgroup, found[0]
        if kind == "repeat":
            yield _repeat_token(found, line)
        elif kind != "space":
            yield _Token(kind, part, line)
        line += part.count("\n")
        at = found.end()
    yield _Token("end", "", line)


def _repeat_token(found: re.Match[str], line: int) -> _Token:
    part = found[0]
    if part in "*+?":
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[part]
        return _Token("repeat", part, line, least, most)
    least = int(found["least"])
    most = least if found["comma"] is None else int(found["most"]) if found["most"] else None
    if max(least, most or 0) > MAX_REPEAT:
        _refuse(line, f"{part} repeats more than {MAX_REPEAT} times")
    if most is not None and (most < least or most == 0):
        _refuse(line, f"{part} allows nothing")
    return _Token("repeat", part, line, least, most)


class _Reader:
    """A recursive reader of rules; its depth is bounded."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _skip_newlines(self) -> None:
        while self._next.kind == "newline":
            self._at += 1

    def rules(self) -> dict[str, _Node]:
        rules: dict[str, _Node] = {}
        self._skip_newlines()
        while self._next.kind != "end":
            name = self._next
            if name.kind != "name" or self._tokens[self._at + 1].kind != "define":
                _refuse(name.line, f"a rule begins with a name and ::=, not with {name.text!r}")
            if name.text in rules:
                _refuse(name.line, f"rule {name.text!r} is given twice")
            self._at += 2
            self._skip_newlines()
            rules[name.text] = self._choice(0)
            if self._next.kind not in {"newline", "end"}:
                _refuse(self._next.line, f"{self._next.text!r} is out of place")
            self._skip_newlines()
        return rules

    def _choice(self, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            _refuse(self._next.line, f"more than {MAX_DEPTH} parentheses in one another")
        items = [self._sequence(depth)]
        while self._next.text == "|" and self._next.kind == "punctuation":
            self._at += 1
            self._skip_newlines()
            items.append(self._sequence(depth))
        return items[0] if len(items) == 1 else _Choice(items)

    def _sequence(self, depth: int) -> _Node:
        items: list[_Node] = []
        while True:
            if depth:
                self._skip_newlines()
            token = self._next
            match token.kind:
                case "text":
                    items.append(_Chars(len(_characters(token))))
                case "chars":
                    items.append(_Chars(_check_class(token)))
                case "any":
                    items.append(_Chars(1))
                case "name":
                    if self._tokens[self._at + 1].kind == "define":
                        _refuse(token.line, f"rule {token.text!r} must begin on a line of its own")
                    items.append(_Ref(token.text, token.line))
                case "repeat":
                    if not items or items[-1] == _Chars(0):
                        _refuse(token.line, f"there is nothing before {token.text} to repeat")
                    items[-1] = _Repeat(items[-1], token.least, token.most, token.line)
                case "punctuation" if token.text == "(":
                    self._at += 1
                    items.append(self._choice(depth + 1))
                    if self._next.text != ")" or self._next.kind != "punctuation":
                        _refuse(token.line, "the parenthesis is not closed")
                case _:
                    return items[0] if len(items) == 1 else _Sequence(items)
            self._at += 1


def _characters(token: _Token) -> list[str]:
    """Return the characters that a literal or the inside of a class stands for."""
    found: list[str] = []
    for part in _ESCAPE.findall(token.text[1:-1]):
        if part == "\\":
            _refuse(token.line, f"an unknown escape in {token.text[:40]}")
        if part[0] != "\\":
            found.append(part)
            continue
        digits = part[2:]
        code = int(digits, 16) if digits else ord(_PLAIN.get(part[1], part[1]))
        if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:  # noqa: PLR2004 (Unicode)
            _refuse(token.line, f"{part} is no character")
        found.append(chr(code))
    return found


def _check_class(token: _Token) -> int:
    """Check a class of characters; return how many elements llama.cpp makes of it."""
    inside = _ESCAPE.findall(token.text[1:-1])
    chars = _characters(token)
    if inside and inside[0] == "^":
        inside, chars = inside[1:], chars[1:]
    if not chars:
        _refuse(token.line, f"{token.text} allows no character")
    at = 0
    while at < len(chars):
        if at + 2 < len(chars) and inside[at + 1] == "-":
            if chars[at] > chars[at + 2]:
                _refuse(token.line, f"the range in {token.text[:40]} runs backwards")
            at += 2
        at += 1
    return len(chars)


# -- what it means ---------------------------------------------------------------------


def _refs(node: _Node) -> Iterator[_Ref]:
    match node:
        case _Ref():
            yield node
        case _Sequence(items) | _Choice(items):
            for item in items:
                yield from _refs(item)
        case _Repeat(item):
            yield from _refs(item)
        case _Chars():
            pass


def _size(node: _Node) -> int:
    match node:
        case _Chars(count):
            return count
        case _Ref():
            return 1
        case _Sequence(items) | _Choice(items):
            return 1 + sum(map(_size, items))
        case _Repeat(item, least, most):
            return (2 + _size(item)) * max(least + 1, most or 0)


def _require_end(rules: dict[str, _Node]) -> None:
    """Refuse rules that can never be finished."""
    able: set[str] = set()

    def ends(node: _Node) -> bool:
        match node:
            case _Chars():
                return True
            case _Ref(name):
                return name in able
            case _Sequence(items):
                return all(map(ends, items))
            case _Choice(items):
                return any(map(ends, items))
            case _Repeat(item, least):
                return least == 0 or ends(item)

    _grow(rules, able, ends)
    if unable := sorted(rules.keys() - able):
        _refuse(0, f"rule {unable[0]!r} can never be finished")


def _require_progress(rules: dict[str, _Node]) -> None:
    """Refuse rules that come to themselves before they have read a character."""
    empty: set[str] = set()  # rules that may read nothing
    _grow(rules, empty, lambda node: _may_be_empty(node, empty))
    for node in rules.values():
        _check_repeats(node, empty)
    _require_no_cycle({name: sorted(set(_first(node, empty))) for name, node in rules.items()})


def _may_be_empty(node: _Node, empty: set[str]) -> bool:
    match node:
        case _Chars(count):
            return count == 0
        case _Ref(name):
            return name in empty
        case _Sequence(items):
            return all(_may_be_empty(item, empty) for item in items)
        case _Choice(items):
            return any(_may_be_empty(item, empty) for item in items)
        case _Repeat(item, least):
            return least == 0 or _may_be_empty(item, empty)


def _first(node: _Node, empty: set[str]) -> Iterator[str]:
    """Yield the rules that may stand at the very beginning of `node`."""
    match node:
        case _Ref(name):
            yield name
        case _Sequence(items):
            for item in items:
                yield from _first(item, empty)
                if not _may_be_empty(item, empty):
                    break
        case _Choice(items):
            for item in items:
                yield from _first(item, empty)
        case _Repeat(item):
            yield from _first(item, empty)
        case _Chars():
            pass


def _check_repeats(node: _Node, empty: set[str]) -> None:
    match node:
        case _Sequence(items) | _Choice(items):
            for item in items:
                _check_repeats(item, empty)
        case _Repeat(item, _, most, line):
            if most is None and _may_be_empty(item, empty):
                _refuse(line, "what is repeated without end may be empty, so it never ends")
            _check_repeats(item, empty)
        case _Chars() | _Ref():
            pass


def _grow(rules: dict[str, _Node], found: set[str], holds: Callable[[_Node], bool]) -> None:
    """Add to `found` every rule for which `holds` comes true, until nothing changes."""
    more = True
    while more:
        more = False
        for name, node in rules.items():
            if name not in found and holds(node):
                found.add(name)
                more = True


def _require_no_cycle(first: dict[str, list[str]]) -> None:
    height: dict[str, int] = {}  # of finished rules: the longest chain of beginnings below
    for start in first:  # noqa: PLC0206 (it is looked up for others, too)
        path = {} if start in height else {start: iter(first[start])}
        while path:
            name = next(reversed(path))
            below = next((rule for rule in path[name] if rule not in height), None)
            if below is None:
                height[name] = 1 + max((height[rule] for rule in first[name]), default=0)
                if height[name] > MAX_CHAIN:
                    _refuse(0, f"more than {MAX_CHAIN} rules begin one another")
                del path[name]
            elif below in path:
                _refuse(0, f"rule {below!r} comes to itself before it has read a character")
            else:
                path[below] = iter(first[below])
