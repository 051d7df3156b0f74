"""Filters: each operator against each kind of value, and nothing that is silently ignored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from support import START, fact, writer

from reverie.memory_graph.drafts import EntityDraft, TurnDraft
from reverie.memory_graph.errors import FilterError
from reverie.memory_graph.filters import FIELDS, MAX_DEPTH, OPERATORS, check_filter, compile_filter
from reverie.memory_graph.nodes import Memory, Message
from reverie.memory_graph.state import UserMemory


def memory() -> UserMemory:
    made = writer()
    made.turns([TurnDraft("Hallo 你好", speaker="Bo", session="s", external_id="x")], pending=False)
    made.remember(
        fact(
            "Ana likes 绿茶.",
            kind="preference",
            importance=0.5,
            tags=("drink", "茶"),
            metadata={"n": 3, "s": "a", "b": True, "list": [1, 2]},
            entities=(EntityDraft("Ana"),),
            topics=("taste",),
            sources=("t1",),
            valid_from=START - 5,
        )
    )
    return made.memory


NUMBERS = {"at", "recorded_at", "valid_from", "valid_to", "importance", "confidence", "hops"}


def holds(spec: dict[str, Any], node_id: str = "m1") -> bool:
    state = memory()
    node = state.graph.node(node_id)
    assert isinstance(node, Memory | Message)
    return compile_filter(spec, state)(node)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"id": "m1"}, True),
        ({"importance": 0.5}, True),
        ({"importance": {"eq": 0.5, "gt": 0.4}}, True),
        ({"importance": {"eq": 0.5, "gt": 0.5}}, False),
        ({"kind": {"gt": "event"}}, True),
        ({"kind": ["fact", "preference"]}, True),
        ({"kind": []}, False),
        ({"tags": "drink"}, True),
        ({"tags": "dri"}, False),
        ({"tags": ["drink"]}, False),
        ({"tags": {"eq": ["drink", "茶"]}}, True),
        ({"tags": {"ne": ["drink", "茶"]}}, False),
        ({"tags": {"icontains": "DRINK"}}, True),
        ({"text": {"contains": "绿茶"}}, True),
        ({"text": {"icontains": "ana LIKES"}}, True),
        ({"told_by": None}, True),
        ({"told_by": {"exists": False}}, True),
        ({"told_by": {"ne": "Bo"}}, True),
        ({"at": {"lt": START}}, True),
        ({"recorded_at": {"lt": START}}, False),
        ({"metadata.n": 3}, True),
        ({"metadata.n": {"gte": 2.5}}, True),
        ({"metadata.s": {"in": ["a", "b"]}}, True),
        ({"metadata.b": True}, True),
        ({"metadata.list": {"contains": 2}}, True),
        ({"metadata.nothing": {"exists": True}}, False),
        ({"session": "s", "speaker": "Bo"}, True),
        ({"entities": "Ana"}, True),
        ({"topics": {"contains": "taste"}}, True),
        ({"role": {"exists": True}}, False),
        ({"type": "memory"}, True),
        ({"OR": [{"kind": "fact"}, {"tags": "茶"}]}, True),
        ({"AND": [{"kind": "preference"}, {"OR": [{"pinned": True}]}]}, False),
        ({"NOT": {"pinned": True}}, True),
        ({"NOT": [{"pinned": True}, {"kind": "preference"}]}, False),
        ({"NOT": {"NOT": {"kind": "preference"}}}, True),
    ],
)
def test_conditions(spec: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    check_filter(spec)
    assert holds(spec) is expected


def test_messages_have_their_own_fields() -> None:
    assert holds({"type": "message", "external_id": "x", "role": "user", "session": "s"}, "t1")
    assert not holds({"kind": {"exists": True}}, "t1")
    assert not holds({"metadata.n": 3}, "t1")


def test_every_field_and_operator_is_usable() -> None:
    for field in [*FIELDS, "metadata.n"]:
        for operator in OPERATORS:
            one: Any = 1.5 if field in NUMBERS else True if field == "pinned" else "a"
            several = operator in {"in", "nin"}
            value = True if operator == "exists" else [one] if several else one
            if operator in {"gt", "gte", "lt", "lte"} and field == "pinned":
                continue
            if operator in {"contains", "icontains"} and one != "a":
                continue
            assert holds({field: {operator: value}}) in {True, False}


@pytest.mark.parametrize(
    "spec",
    [
        {"at": {"gte": "2020-01-01"}},
        {"NOT": {"at": {"lt": "2024-01-01"}}},
        {"importance": "0.9"},
        {"importance": {"in": [0.5, "0.9"]}},
        {"confidence": True},
        {"text": {"contains": 5}},
        {"told_by": {"gt": 0}},
        {"pinned": "yes"},
        {"tags": 5},
    ],
)
def test_a_value_that_the_field_never_has_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        check_filter(spec)


def nested(levels: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"kind": "fact"}
    for _ in range(levels):
        spec = {"NOT": spec}
    return spec


def test_depth_and_size_are_bounded() -> None:
    check_filter(nested(MAX_DEPTH))
    with pytest.raises(FilterError, match="levels"):
        check_filter(nested(MAX_DEPTH + 1))
    check_filter({"OR": [{"kind": "fact"}] * 256})
    with pytest.raises(FilterError, match="256 conditions"):
        check_filter({"OR": [{"kind": "fact"}] * 257})
    with pytest.raises(FilterError):
        check_filter({"kind": dict.fromkeys(("eq", "like"), "a")})


def test_errors_name_the_field_and_what_is_known() -> None:
    with pytest.raises(FilterError, match=r"unknown field 'colour'; known: .*metadata") as caught:
        check_filter({"AND": [{"colour": 1}]})
    assert caught.value.details["field"] == "colour"
    with pytest.raises(FilterError, match=r"unknown operator 'like'; known: contains"):
        check_filter({"kind": {"like": 1}})


conditions = st.sampled_from(
    [{"kind": "fact"}, {"kind": "preference"}, {"pinned": False}, {"tags": "nope"}, {"tags": "茶"}]
)
TRUE = [{"kind": "preference"}, {"pinned": False}, {"tags": "茶"}]
specs = st.recursive(
    conditions,
    lambda inner: (
        st.builds(lambda x: {"NOT": x}, inner)
        | st.builds(lambda xs: {"AND": xs}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda xs: {"OR": xs}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=12,
)


def truth(spec: dict[str, Any]) -> bool:
    if "NOT" in spec:
        return not truth(spec["NOT"])
    if "AND" in spec:
        return all(map(truth, spec["AND"]))
    if "OR" in spec:
        return any(map(truth, spec["OR"]))
    return spec in TRUE


@given(specs)
def test_nesting_is_plain_logic(spec: dict[str, Any]) -> None:
    assert holds(spec) is truth(spec)
