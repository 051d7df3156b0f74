"""What keeps a text out is told of those that are kept out; the rest is ranked as by a search."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from support import DIM, START, fact, vector, writer

from reverie.memory_graph import nodes as n
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.filters import compile_filter
from reverie.memory_graph.search import Query, search
from reverie.memory_graph.signals import WEIGHTS
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.visible import Moment, is_visible
from reverie.memory_graph.why import hidden_by, why
from reverie.models.standin import HashEmbedder

WORDS = "tea bees mill Oslo Bo Ana code gate 绿茶 上海 小明 蜜蜂".split()
NOW = Moment(START)


def a_turn() -> n.Message:
    made = writer()
    made.turns([TurnDraft("茶", vector=vector("茶"))], pending=False)
    found = made.memory.graph.node("t1")
    assert isinstance(found, n.Message)
    return found


A_TURN = a_turn()
times = st.one_of(st.none(), st.integers(0, 6).map(float))
statuses = st.sampled_from(["active", "superseded", "expired", "archived", "quarantined"])
memories = st.builds(
    n.Memory,
    id=st.just("m1"),
    text=st.just("茶"),
    kind=st.just("fact"),
    recorded_at=st.integers(0, 6).map(float),
    status=statuses,
    valid_from=times,
    valid_to=times,
    retired_at=times,
    ttl_s=times,
    end_learned=st.booleans(),
)
messages = st.builds(
    lambda said, recorded: msgspec.structs.replace(A_TURN, said_at=said, recorded_at=recorded),
    st.integers(0, 6).map(float),
    st.integers(0, 6).map(float),
)
summaries = st.builds(
    n.Summary,
    id=st.just("y1"),
    text=st.just("t"),
    from_at=st.just(0.0),
    to_at=st.just(1.0),
    recorded_at=st.integers(0, 6).map(float),
    retired_at=times,
)
moments = st.builds(
    Moment,
    st.integers(0, 6).map(float),
    as_of=times,
    valid_at=times,
    archived=st.booleans(),
    retired=st.booleans(),
)


@given(st.one_of(memories, messages, summaries), moments)
def test_what_is_hidden_and_only_that_has_a_reason(
    node: n.Memory | n.Message | n.Summary, moment: Moment
) -> None:
    assert (hidden_by(node, moment) is None) == is_visible(node, moment)


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)


@given(st.lists(texts, min_size=1, max_size=30, unique=True), texts, st.integers(1, 8))
def test_the_rank_is_that_of_the_search(kept: list[str], question: str, limit: int) -> None:
    made = writer()
    for text in kept:
        made.remember(fact(text))
    query = asked(question, limit=limit)
    hits = search(made.memory, query)
    whole = search(made.memory, msgspec.structs.replace(query, whole=True))
    assert [hit.id for hit in whole[:limit]] == [hit.id for hit in hits]
    for hit in whole:
        assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-9)
        assert set(hit.parts) <= set(WEIGHTS)
    for rank, hit in enumerate(whole, 1):
        told = why(made.memory, query, hit.id)
        assert (told.rank, told.score) == (rank, hit.score)
        assert (told.verdict == "shown") == (rank <= limit)


def asked(question: str, **fields: Any) -> Query:
    return Query(question, HashEmbedder(DIM).embed([question], "query")[0], NOW, **fields)


def test_the_part_of_a_filter_that_fails_is_named() -> None:
    made = writer()
    made.remember(fact("Ana likes tea.", tags=("喝",)))
    memory = made.memory
    for spec, failing in (
        ({"kind": "event"}, '{"kind":"event"}'),
        ({"kind": "fact", "tags": "茶"}, '{"tags":"茶"}'),
        ({"AND": [{"kind": "fact"}, {"AND": [{"tags": "茶"}]}]}, '{"tags":"茶"}'),
        ({"NOT": {"tags": "喝"}}, '{"NOT":{"tags":"喝"}}'),
        (
            {"OR": [{"pinned": True}, {"kind": "event"}]},
            '{"OR":[{"pinned":true},{"kind":"event"}]}',
        ),
    ):
        told = why(memory, asked("tea", where=compile_filter(spec, memory)), "m1", spec)
        assert told.filtered_by == ("filter",)
        assert told.reasons == (f"the filter does not let it through: {failing}",)
    told = why(memory, asked("tea", where=lambda _: False), "m1")
    assert told.reasons == ("the filter does not let it through",)


def test_without_vectors_the_words_are_told() -> None:
    made = writer()
    for i in range(120):
        made.remember(fact(f"Bees {i}. 蜜蜂"))
    made.remember(fact("采石场"))
    told = why(made.memory, Query("bees", None, NOW, limit=1), "m121")
    assert told.verdict == "not_a_candidate"
    assert told.cosine is None
    assert "the question was asked without a vector" in told.reasons
    assert why(UserMemory(), asked("bees"), "m1").verdict == "unknown"


def test_the_end_of_a_question_that_is_too_long_is_not_read() -> None:
    made = writer()
    made.remember(fact("Ana likes tea."))
    assert why(made.memory, asked("x " * 1500 + "tea"), "m1").candidates == 1
