"""mem0's filters over payloads, as Qdrant reads them; mem0 hands them to its vector store.

A key is a field of the payload, or a path into nested mappings ("a.b"). Of a list, one element has
to fit. A field that is absent or null fits no operator, `ne` and `nin` included. Every condition
has to hold, also several on one key (mem0 keeps only the last of some), and AND, OR and NOT may be
nested. Unknown operators are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias

from reverie.mem0.exceptions import ValidationError
from reverie.mem0.scope import ANY

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]
Test: TypeAlias = Callable[[Any], bool]

MAX_DEPTH = 16
MAX_CONDITIONS = 256
OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains")
_LOGIC = {"AND": "AND", "OR": "OR", "NOT": "NOT", "$and": "AND", "$or": "OR", "$not": "NOT"}
_ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?(\.\d+)?(Z|[+-]\d{2}:?\d{2})?)?")
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}


def compile_filters(filters: Mapping[str, Any] | None) -> Predicate:
    """Return a predicate over payloads.

    Raises:
        ValidationError: an unknown operator, a value that it cannot be used with, a list that is
            none or is empty, over 16 levels or 256 conditions.
    """
    return _all(filters or {}, 0, [MAX_CONDITIONS])


def _all(filters: Any, depth: int, budget: list[int]) -> Predicate:
    if not isinstance(filters, Mapping):
        _refuse(f"filters must be a mapping, not {type(filters).__name__}")
    if depth > MAX_DEPTH:
        _refuse(f"filters may be nested {MAX_DEPTH} levels deep at most")
    tests = [
        _logic(_LOGIC[key], value, depth, budget)
        if key in _LOGIC
        else _condition(str(key), value, budget)
        for key, value in filters.items()
    ]
    return lambda payload: all(test(payload) for test in tests)


def _logic(word: str, value: Any, depth: int, budget: list[int]) -> Predicate:
    if not isinstance(value, list) or (not value and word != "AND"):
        some = "a list" if word == "AND" else "a non-empty list"
        _refuse(f"{word} operator requires {some} of conditions")
    tests = [_all(part, depth + 1, budget) for part in value]
    if word == "AND":
        return lambda payload: all(test(payload) for test in tests)
    if word == "OR":
        return lambda payload: any(test(payload) for test in tests)
    return lambda payload: not any(test(payload) for test in tests)


def _condition(key: str, value: Any, budget: list[int]) -> Predicate:
    if isinstance(value, str) and value == ANY:
        return lambda _: True
    conditions = value if isinstance(value, Mapping) else {_plain(value): value}
    if not conditions:
        _refuse(f"no condition is given for {key!r}")
    budget[0] -= len(conditions)
    if budget[0] < 0:
        _refuse(f"filters may hold {MAX_CONDITIONS} conditions at most")
    tests = [_test(key, operator, wanted) for operator, wanted in conditions.items()]
    return lambda payload: all(any(map(test, values_at(payload, key))) for test in tests)


def _plain(value: Any) -> str:
    return "in" if isinstance(value, list) else "eq"


def _test(key: str, operator: Any, wanted: Any) -> Test:
    match operator:
        case "eq":
            return lambda value: same(value, wanted)
        case "ne":
            return lambda value: value is not None and not same(value, wanted)
        case "in" | "nin":
            if not isinstance(wanted, list | tuple):
                _refuse(f"{operator} on {key!r} requires a list")
            several = list(wanted)
            if operator == "in":
                return lambda value: any(same(value, w) for w in several)
            return lambda value: value is not None and not any(same(value, w) for w in several)
        case "contains" | "icontains":
            if not isinstance(wanted, str):
                _refuse(f"{operator} on {key!r} requires a text")
            if operator == "contains":
                return lambda value: isinstance(value, str) and wanted in value
            low = wanted.casefold()
            return lambda value: isinstance(value, str) and low in value.casefold()
        case _:
            return _range(key, operator, wanted)


def _range(key: str, operator: Any, wanted: Any) -> Test:
    if operator not in _COMPARED:
        known = ", ".join(OPERATORS)
        _refuse(f"Unsupported metadata filter operator: {operator!r} on {key!r}; known: {known}")
    compare = _COMPARED[operator]
    if isinstance(wanted, str) and _ISO_TIME.fullmatch(wanted):
        bound = _moment(wanted)
        if bound is not None:
            return lambda value: (
                isinstance(value, str)
                and (then := _moment(value)) is not None
                and compare(then, bound)
            )
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or wanted != wanted:  # noqa: PLR0124 (NaN)
        _refuse(f"{operator} on {key!r} requires a number or an ISO 8601 time")
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and compare(value, wanted)
    )


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def same(value: Any, wanted: Any) -> bool:
    """Return whether two values are equal; True is not 1."""
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def values_at(payload: Mapping[str, Any], key: str) -> Iterator[Any]:
    """Yield the values of a field; a list gives its elements. The key as it stands comes before
    the path that it may be."""
    if key in payload:
        found: Any = payload[key]
    else:
        found = payload
        for part in key.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return
            found = found[part]
    if isinstance(found, list):
        yield from found
    else:
        yield found


def _refuse(why: str) -> NoReturn:
    raise ValidationError(why, "VALIDATION_006", suggestion="See docs/mem0.md for the filters.")
