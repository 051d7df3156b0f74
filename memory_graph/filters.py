"""Nested filters over items: `{"AND": [{"kind": "fact"}, {"at": {"gte": 1700000000}}]}`.

A filter is a mapping; several keys in one mapping mean AND. A key is a field of FIELDS,
`metadata.<key>`, or AND / OR (lists of filters) / NOT (one filter, or a list none of which may
hold). A value is an operator mapping `{"gte": 3, "lt": 5}`, or a plain value, which means `eq`
(`contains` for a field that holds several values, such as tags). Anything unknown is an error:
a filter that is silently ignored returns what it should have hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from reverie.memory_graph import nodes as n
from reverie.memory_graph.errors import FilterError
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.text import normalise

Readable: TypeAlias = n.Memory | n.Message | n.Summary
Predicate: TypeAlias = Callable[[Readable], bool]
Getter: TypeAlias = Callable[[UserMemory, Readable], Any]

MAX_DEPTH = 16
MAX_CONDITIONS = 256


def _attribute(name: str) -> Getter:
    return lambda _, node: getattr(node, name, None)


def _at(_: UserMemory, node: Readable) -> float:
    match node:
        case n.Message():
            return node.said_at
        case n.Summary():
            return node.to_at
        case n.Memory():
            return node.recorded_at if node.valid_from is None else node.valid_from


def _session(memory: UserMemory, node: Readable) -> str | None:
    turn = node if isinstance(node, n.Message) else _source(memory, node)
    return None if turn is None else memory.display(turn.session)


def _speaker(memory: UserMemory, node: Readable) -> str | None:
    turn = node if isinstance(node, n.Message) else _source(memory, node)
    return None if turn is None else turn.speaker


def _source(memory: UserMemory, node: Readable) -> n.Message | None:
    for head, _ in memory.graph.out(node.id, n.DERIVED_FROM):
        if isinstance(found := memory.graph.node(head), n.Message):
            return found
    return None


def _linked(edge_kind: str) -> Getter:
    return lambda memory, node: tuple(
        memory.display(head) for head, _ in memory.graph.out(node.id, edge_kind)
    )


_TYPES = {n.Memory: "memory", n.Message: "message", n.Summary: "summary"}

FIELDS: dict[str, Getter] = {
    "id": _attribute("id"),
    "type": lambda _, node: _TYPES[type(node)],
    "text": _attribute("text"),
    "kind": _attribute("kind"),
    "status": _attribute("status"),
    "at": _at,
    "recorded_at": _attribute("recorded_at"),
    "valid_from": _attribute("valid_from"),
    "valid_to": _attribute("valid_to"),
    "importance": _attribute("importance"),
    "confidence": _attribute("confidence"),
    "provenance": _attribute("provenance"),
    "told_by": _attribute("told_by"),
    "event": _attribute("event"),
    "heard": _attribute("heard"),
    "hops": lambda _, node: len(node.heard) if isinstance(node, n.Memory) else None,
    "pinned": _attribute("pinned"),
    "slot": _attribute("slot"),
    "tags": _attribute("tags"),
    "role": _attribute("role"),
    "external_id": _attribute("external_id"),
    "session": _session,
    "speaker": _speaker,
    "entities": _linked(n.CONTAINS_ENTITY),
    "topics": _linked(n.IN_TOPIC),
}
_SEVERAL = frozenset({"heard", "tags", "entities", "topics"})
_NUMBERS = frozenset(
    {"at", "recorded_at", "valid_from", "valid_to", "importance", "confidence", "hops"}
)


def _comparable(a: object, b: object) -> bool:
    numbers = (int, float)
    return (isinstance(a, numbers) and isinstance(b, numbers)) or (
        isinstance(a, str) and isinstance(b, str)
    )


def _equal(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, list | tuple):
        return list(a) == list(b)
    return bool(a == b)


def _contains(value: object, wanted: object) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return wanted in value
    return isinstance(value, Sequence) and not isinstance(value, str) and wanted in value


def _icontains(value: object, wanted: object) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return normalise(wanted) in normalise(value)
    if isinstance(value, Sequence) and isinstance(wanted, str):
        return any(isinstance(v, str) and normalise(v) == normalise(wanted) for v in value)
    return False


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda a, b: not _equal(a, b),
    "gt": lambda a, b: _comparable(a, b) and a > b,
    "gte": lambda a, b: _comparable(a, b) and a >= b,
    "lt": lambda a, b: _comparable(a, b) and a < b,
    "lte": lambda a, b: _comparable(a, b) and a <= b,
    "in": lambda a, b: a in b,
    "nin": lambda a, b: a not in b,
    "contains": _contains,
    "icontains": _icontains,
    "exists": lambda a, b: (a is not None) == b,
}


def compile_filter(spec: Mapping[str, Any], memory: UserMemory) -> Predicate:
    """Return a predicate over nodes of `memory`.

    Raises:
        FilterError: an unknown field or operator, a value of a wrong type, over 16 levels or
            256 conditions.
    """
    budget = [MAX_CONDITIONS]
    return _all(spec, memory, 0, budget)


def check_filter(spec: object) -> None:
    """Raise FilterError when `spec` is no valid filter; needs no memory."""
    if not isinstance(spec, Mapping):
        msg = f"a filter must be a mapping, not {type(spec).__name__}"
        raise FilterError(msg)
    compile_filter(spec, UserMemory())


def _all(spec: object, memory: UserMemory, depth: int, budget: list[int]) -> Predicate:
    if not isinstance(spec, Mapping):
        msg = f"a filter must be a mapping, not {type(spec).__name__}"
        raise FilterError(msg)
    if depth > MAX_DEPTH:
        msg = f"a filter may be nested {MAX_DEPTH} levels deep at most"
        raise FilterError(msg)
    tests = [_clause(key, value, memory, depth, budget) for key, value in spec.items()]
    if len(tests) == 1:
        return tests[0]
    return lambda node: all(test(node) for test in tests)


def _clause(
    key: object, value: Any, memory: UserMemory, depth: int, budget: list[int]
) -> Predicate:
    if key in {"AND", "OR", "NOT"}:
        parts = value if isinstance(value, list | tuple) else [value]
        if key != "NOT" and not isinstance(value, list | tuple):
            msg = f"{key} takes a list of filters"
            raise FilterError(msg, field=str(key))
        if not parts:
            msg = f"{key} of nothing is ambiguous; leave it out"
            raise FilterError(msg, field=str(key))
        tests = [_all(part, memory, depth + 1, budget) for part in parts]
        if key == "AND":
            return lambda node: all(test(node) for test in tests)
        if key == "OR":
            return lambda node: any(test(node) for test in tests)
        return lambda node: not any(test(node) for test in tests)
    return _condition(key, value, memory, budget)


def _condition(key: object, value: Any, memory: UserMemory, budget: list[int]) -> Predicate:
    getter = _getter(key)
    field = str(key)
    conditions = value if isinstance(value, Mapping) else {_default(field, value): value}
    if not conditions:
        msg = f"{field}: no condition given"
        raise FilterError(msg, field=field)
    tests: list[tuple[Callable[[Any, Any], bool], Any]] = []
    for operator, wanted in conditions.items():
        budget[0] -= 1
        if budget[0] < 0:
            msg = f"a filter may hold {MAX_CONDITIONS} conditions at most"
            raise FilterError(msg)
        tests.append((_operator(field, operator, wanted), wanted))
    return lambda node: all(test(getter(memory, node), wanted) for test, wanted in tests)


def _default(field: str, value: object) -> str:
    if isinstance(value, list | tuple):
        return "in"
    return "contains" if field in _SEVERAL else "eq"


def _getter(key: object) -> Getter:
    if isinstance(key, str) and key.startswith("metadata."):
        name = key.removeprefix("metadata.")
        return lambda _, node: (getattr(node, "metadata", None) or {}).get(name)
    if isinstance(key, str) and key in FIELDS:
        return FIELDS[key]
    msg = f"unknown field {key!r}; known: {', '.join(sorted(FIELDS))}, metadata.<key>, AND, OR, NOT"
    raise FilterError(msg, field=str(key))


def _operator(field: str, operator: object, wanted: object) -> Callable[[Any, Any], bool]:
    if operator not in OPERATORS:
        msg = f"{field}: unknown operator {operator!r}; known: {', '.join(sorted(OPERATORS))}"
        raise FilterError(msg, field=field, operator=str(operator))
    if operator in {"in", "nin"} and not isinstance(wanted, list | tuple):
        msg = f"{field}: {operator} takes a list"
        raise FilterError(msg, field=field, operator=str(operator))
    if operator == "exists" and not isinstance(wanted, bool):
        msg = f"{field}: exists takes true or false"
        raise FilterError(msg, field=field, operator="exists")
    if operator in {"gt", "gte", "lt", "lte"} and (
        not isinstance(wanted, int | float | str)
        or (isinstance(wanted, float) and math.isnan(wanted))
    ):
        msg = f"{field}: {operator} takes a number or text"
        raise FilterError(msg, field=field, operator=str(operator))
    of_ours = not field.startswith("metadata.")
    if of_ours and operator in {"contains", "icontains"} and not isinstance(wanted, str):
        msg = f"{field}: {operator} takes a text"
        raise FilterError(msg, field=field, operator=str(operator))
    if operator != "exists":
        _check_values(field, operator, wanted)
    return OPERATORS[str(operator)]


def _check_values(field: str, operator: object, wanted: object) -> None:
    """Refuse a value that the field never has: it would match nothing, or everything."""
    known: type | tuple[type, ...]
    if field in _NUMBERS:
        known, name = (int, float), "a number (a time is in seconds)"
    elif field.startswith("metadata."):
        return
    elif field == "pinned":
        known, name = bool, "true or false"
    else:
        known, name = str, "a text"
    for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
        wrong = not isinstance(value, known) or (field in _NUMBERS and isinstance(value, bool))
        if wrong and value is not None:
            msg = f"{field}: {operator} takes {name}, not {value!r}"
            raise FilterError(msg, field=field, operator=str(operator))
