"""Any filter and any id: an answer of the own scope, or a typed error."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from reverie.mem0 import Memory, ValidationError
from reverie.mem0.filters import OPERATORS, compile_filters
from reverie.mem0.ids import derive, derived, owner_hash
from reverie.memory_graph.errors import InputError
from reverie.memory_graph.views import Item

KEYS = st.sampled_from(
    ["topic", "n", "tags", "a.b", "data", "主题", "user_id", "__class__", "", "*"]
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["*", "food", "2026-01-01", "2026-13-77", "ana", "eve", "'; drop table x"])
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*OPERATORS, "like", "$ne", "AND"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FILTERS = st.recursive(
    st.dictionaries(KEYS, VALUES, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["AND", "OR", "NOT", "$or", "topic"]),
        st.lists(inner, max_size=3) | inner,
        max_size=2,
    ),
    max_leaves=8,
)
PAYLOAD = {
    "topic": "food",
    "n": 3,
    "tags": ["a", 1],
    "a": {"b": [1, 2]},
    "data": "茶",
    "user_id": "ana",
}


@given(FILTERS)
def test_any_filter_holds_or_not_or_is_refused(filters: dict[str, Any]) -> None:
    try:
        fits = compile_filters(filters)
    except ValidationError:
        return
    assert fits(PAYLOAD) in {True, False}
    assert fits({}) in {True, False}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with Memory(data=folder / "data", embedder="standin", partitions=2) as made:
        for user in ("ana", "eve", "u1", "u10"):
            made.add(
                "食物 food", user_id=user, agent_id="a", metadata={"topic": "food"}, infer=False
            )
        yield made


@given(FILTERS)
def test_no_filter_reads_what_is_another_users(memory: Memory, filters: dict[str, Any]) -> None:
    before = memory.store.rt.user("eve", "mem0").digest()
    for call in (memory.get_all, lambda filters: memory.search("food", filters=filters)):
        try:
            found = call(filters={**filters, "user_id": "u1"})["results"]
        except (ValidationError, InputError):
            continue
        assert {item["user_id"] for item in found} <= {"u1"}
    assert memory.store.rt.user("eve", "mem0").digest() == before


@given(st.text(max_size=8) | st.sampled_from(["mem0:user:ana", "mem0:agent:a", "group:g", "mem0:"]))
def test_any_user_id_has_its_own_memories(memory: Memory, user: str) -> None:
    text = f"of {user!r}"
    try:
        memory.add(text, user_id=user, infer=False)
    except (ValidationError, InputError):
        return
    found = memory.get_all(filters={"user_id": user}) if user.strip() != "*" else None
    if found is not None and user.strip() not in {"ana", "eve", "u1", "u10"}:
        assert {item["user_id"] for item in found["results"]} == {user.strip()}


@given(st.integers(1, 2**36 - 1), st.text(min_size=1, max_size=9), st.text(), st.floats())
def test_derived_ids(number: int, owner: str, text: str, at: float) -> None:
    owner = owner.encode("utf-8", "replace").decode()
    text = text.encode("utf-8", "replace").decode()
    item = Item(id=f"m{number}", type="memory", text=text, at=0.0, recorded_at=at)
    made = derive("w", owner, item)
    assert uuid.UUID(made).version == 8
    parts = derived(made)
    assert parts is not None
    assert (parts.number, parts.owner) == (number, owner_hash("w", owner))
    assert derived(str(uuid.uuid4())) is None
