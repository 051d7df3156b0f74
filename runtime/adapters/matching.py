"""Filters over values, as LangGraph writes them: {"kind": "note", "stars": {"$gte": 3}}.

A plain value means equal; a mapping without operators is looked for inside a nested mapping; a list
has to be equal element by element. `$gt`, `$gte`, `$lt` and `$lte` compare as numbers what can be
read as numbers, else text with text; what cannot be compared does not fit. An unknown operator is
an error: a filter that was ignored would show what it should hide.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from reverie.memory_graph.errors import FilterError

MAX_LEVELS = 16
MAX_CONDITIONS = 256

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER)


def check_filter(spec: object) -> None:
    """Raise FilterError when `spec` is no filter: no mapping with text keys, an unknown operator,
    over 16 levels or 256 conditions."""
    if not isinstance(spec, Mapping):
        msg = f"a filter must be a mapping, not {type(spec).__name__}"
        raise FilterError(msg)
    for name in spec:
        if isinstance(name, str) and name.startswith("$"):
            msg = f"{name} stands where the name of a field belongs"
            raise FilterError(msg, operator=name[:100])
    _check(spec, 0, [MAX_CONDITIONS])


def _check(spec: object, level: int, budget: list[int]) -> None:
    budget[0] -= 1
    if budget[0] < 0:
        msg = f"a filter may hold {MAX_CONDITIONS} conditions at most"
        raise FilterError(msg)
    if level > MAX_LEVELS:
        msg = f"a filter may be nested {MAX_LEVELS} levels deep at most"
        raise FilterError(msg)
    if isinstance(spec, list | tuple):
        for one in spec:
            _check(one, level + 1, budget)
    if not isinstance(spec, Mapping):
        return
    if not all(isinstance(name, str) for name in spec):
        msg = "the names in a filter must be texts"
        raise FilterError(msg)
    if any(name.startswith("$") for name in spec):
        for name in spec:
            if name not in OPERATORS:
                msg = f"unknown operator {name[:100]!r}; known: {', '.join(OPERATORS)}"
                raise FilterError(msg, operator=name[:100])
        return
    for one in spec.values():
        _check(one, level + 1, budget)


def fits(value: Mapping[str, Any], spec: Mapping[str, Any] | None) -> bool:
    """Return whether a value fits a checked filter; None fits all."""
    return all(_matches(value.get(name), wanted) for name, wanted in (spec or {}).items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compare(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and fits(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(map(_matches, value, wanted))
        )
    return bool(value == wanted)


def _compare(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    compare = _ORDER[name]
    left, right = _number(value), _number(operand)
    if left is not None and right is not None:
        return compare(left, right)
    both_texts = isinstance(value, str) and isinstance(operand, str)
    return both_texts and compare(value, operand)


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number
