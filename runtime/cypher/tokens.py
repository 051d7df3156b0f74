"""What a graph query may say. Nothing that is not known to be reading passes.

The text is cut into tokens that know strings, quoted names and comments, the tokens are checked,
and what the engine gets is written anew from them: without comments, and with each string in one
form. So it can read nothing other than what was checked here, whatever its own rules are for
strings, comments and spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from reverie.memory_graph.errors import QueryError

MAX_QUERY_BYTES = 64 * 1024
MAX_TOKENS = 5_000
MAX_DEPTH = 64  # of brackets
MAX_SHOWN = 40  # characters of a query that an error repeats

_BEGINS = frozenset({"match", "optional", "with", "unwind", "return", "call"})

# Words of statements that do more than read, wherever they stand outside of quotes. One that is
# meant as a name can stand in backticks.
_REFUSED = frozenset(
    "add alter analyze attach begin checkpoint comment commit copy create database delete detach"
    " drop execute explain export extension foreach force from grant import insert install into"
    " load macro merge prepare profile project reload remove rename revoke rollback sequence set"
    " transaction truncate uninstall update upsert use vacuum write".split()
)

# Words after which a bracket is no call of a function.
_BEFORE_BRACKET = frozenset(
    "acyclic all and any as asc by case contains desc distinct else ends exists in is limit match"
    " none not null on optional or order return shortest single skip starts then trail union unwind"
    " when where with wshortest xor yield".split()
)

# Functions of values alone: they read no file, no setting, no clock and no chance.
FUNCTIONS = frozenset(
    "abs acos all any array_append array_cat array_concat array_contains array_extract array_has"
    " array_indexof array_position array_prepend array_slice asin atan atan2 avg cardinality cast"
    " cbrt ceil ceiling century coalesce collect concat concat_ws contains cos cost cot count"
    " count_if date date_part date_trunc datepart datetrunc dayname degrees duration element_at"
    " end_node ends_with epoch_ms even factorial floor greatest histogram id ifnull initcap"
    " interval is_acyclic is_trail keys label labels last_day lcase least left length levenshtein"
    " list_any_value list_append list_cat list_concat list_contains list_creation list_distinct"
    " list_element list_extract list_filter list_has list_has_all list_has_any list_indexof"
    " list_max list_min list_position list_prepend list_product list_reduce list_reverse"
    " list_reverse_sort list_slice list_sort list_sum list_to_string list_transform list_unique ln"
    " log log10 log2 lower lpad ltrim make_date map map_extract map_keys map_values max min"
    " monthname negate nodes none nullif percentilecont percentiledisc pi pow prefix properties"
    " radians range regexp_extract regexp_extract_all regexp_full_match regexp_matches"
    " regexp_replace regexp_split_to_array rels relationships repeat replace reverse right round"
    " rpad rtrim sign sin single size split_part sqrt start_node starts_with str_split string"
    " string_split string_to_array struct_extract struct_pack substr substring suffix sum tan"
    " time_bucket timestamp to_date to_days to_double to_float to_hours to_int16 to_int32 to_int64"
    " to_int8 to_interval to_minutes to_months to_seconds to_string to_timestamp to_years tolower"
    " toupper trim typeof ucase upper".split()
)
CALLS = frozenset({"show_tables", "table_info"})  # of the schema; the only ones after CALL

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+ | //[^\r\n]* | /\*(?:[^*]|\*(?!/))*\*/)
    | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
    | (?P<quoted>`[^`\r\n]+`)
    | (?P<param>\$[A-Za-z_][A-Za-z0-9_]*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_]))
    | (?P<mark>[][(){}.,:|<>=+\-*/%^!&~;])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_PLAIN = {"\\": "\\", "'": "'", '"': '"', "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(slots=True)
class Token:
    """A piece of a query. `value` is what a string says; `is_apart` means that space was before."""

    kind: str
    text: str
    value: str = ""
    is_apart: bool = False


@dataclass(slots=True)
class Query:
    """A checked query: its tokens, and the names of its parameters."""

    tokens: list[Token]
    parameters: frozenset[str] = field(default_factory=frozenset)

    def text(self, change: Callable[[str], str] = str) -> str:
        """Return the query as the engine gets it; `change` is applied to what each string says."""
        parts: list[str] = []
        for token in self.tokens:
            said = _literal(change(token.value)) if token.kind == "string" else token.text
            parts += [" ", said] if token.is_apart else [said]
        return "".join(parts)


def parse(query: object) -> Query:
    """Return a query that only reads, of one statement.

    Raises:
        QueryError: it is none, it may do something else, or it is too long or too deep.
    """
    if not isinstance(query, str) or not query.strip():
        msg = f"a query must be a text, not {query!r:.100}"
        raise QueryError(msg)
    if len(query) > MAX_QUERY_BYTES or len(query.encode("utf-8", "replace")) > MAX_QUERY_BYTES:
        msg = f"a query has at most {MAX_QUERY_BYTES:,} bytes: pass values as parameters"
        raise QueryError(msg)
    tokens = list(_tokens(query))
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    _check(tokens)
    return Query(tokens, frozenset(t.text[1:] for t in tokens if t.kind == "param"))


def _tokens(query: str) -> Iterator[Token]:
    at, count, is_apart = 0, 0, False
    while at < len(query):
        found = _TOKEN.match(query, at)
        if found is None:
            _refuse_character(query, at)
        at = found.end()
        kind, text = str(found.lastgroup), found.group()
        if kind == "space":
            is_apart = True
            continue
        value = _said(text) if kind == "string" else ""
        if kind == "quoted" and not text.isprintable():
            msg = "a name in backticks holds a character that cannot be seen"
            raise QueryError(msg)
        count += 1
        if count > MAX_TOKENS:
            msg = f"a query has at most {MAX_TOKENS:,} words and marks: pass values as parameters"
            raise QueryError(msg)
        yield Token(kind, text, value, is_apart)
        is_apart = False


def _refuse_character(query: str, at: int) -> NoReturn:
    here = query[at]
    if here in "'\"`" or query.startswith("/*", at):
        msg = f"a quote or comment that begins at character {at + 1} has no end"
    elif here.isascii():
        msg = f"{here!r} at character {at + 1} means nothing here"
    else:
        msg = f"{here!r} (character {at + 1}) may stand only in strings and names in backticks"
    raise QueryError(msg, at=at + 1)


def _said(literal: str) -> str:
    """Return what a string literal says; raises QueryError for an escape that is not known."""

    def one(match: re.Match[str]) -> str:
        code, plain = match.groups()
        if code is not None:
            return chr(int(code, 16))
        if plain not in _PLAIN:
            msg = f"unknown escape \\{plain} in a string"
            raise QueryError(msg)
        return _PLAIN[plain]

    said = _ESCAPE.sub(one, literal[1:-1])
    if "\0" in said or (not said.isascii() and _has_surrogate(said)):
        msg = "a string in the query cannot be encoded"
        raise QueryError(msg)
    return said


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _check(tokens: list[Token]) -> None:
    if not tokens or tokens[0].text.lower() not in _BEGINS:
        shown = tokens[0].text[:MAX_SHOWN] if tokens else ""
        msg = f"a query begins with MATCH, OPTIONAL MATCH, WITH, UNWIND, RETURN or CALL: {shown!r}"
        raise QueryError(msg)
    open_: list[str] = []
    for i, token in enumerate(tokens):
        following = tokens[i + 1].text if i + 1 < len(tokens) else ""
        if token.kind == "mark":
            _bracket(open_, token.text)
        elif token.kind == "word":
            _word(tokens, i, token.text.lower(), following)
        elif token.kind == "quoted" and following == "(":
            msg = "a name in backticks is no function"
            raise QueryError(msg)
    if open_:
        msg = f"{open_[-1]!r} is not closed"
        raise QueryError(msg)


def _bracket(open_: list[str], mark: str) -> None:
    if mark == ";":
        msg = "one statement a query"
        raise QueryError(msg)
    if mark in _OPEN:
        open_.append(mark)
        if len(open_) > MAX_DEPTH:
            msg = f"more than {MAX_DEPTH} brackets in each other"
            raise QueryError(msg)
    elif mark in _CLOSE and (not open_ or _CLOSE.index(mark) != _OPEN.index(open_.pop())):
        msg = f"{mark!r} closes nothing"
        raise QueryError(msg)


def _word(tokens: list[Token], i: int, word: str, following: str) -> None:
    if word in _REFUSED:
        msg = (
            f"{word.upper()}: a query can only read. As a name, write it in backticks; as a text, "
            "in quotes"
        )
        raise QueryError(msg, word=word)
    before = tokens[i - 1].text.lower() if i else ""
    if word == "call":
        after = tokens[i + 1 : i + 3]
        named = after[0].text.lower() if after else ""
        if named not in CALLS or [t.text for t in after[1:]] != ["("]:
            msg = f"CALL takes only {' and '.join(sorted(CALLS))}, not {named[:MAX_SHOWN]!r}"
            raise QueryError(msg)
        return
    if following != "(" or word in _BEFORE_BRACKET:
        return
    if before == "call" and word in CALLS:
        return
    if word not in FUNCTIONS or before == ".":
        msg = f"unknown function {word[:MAX_SHOWN]!r}"
        raise QueryError(msg)
