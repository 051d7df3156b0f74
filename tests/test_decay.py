"""The formula of decay, and what it is for: re-ranking, never hiding."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st
from support import DAY, START, fact, writer

from reverie.memory_graph import decay, nodes
from reverie.memory_graph.search import Query, search
from reverie.memory_graph.visible import Moment

weights = st.floats(decay.FLOOR, decay.CEILING)
seconds = st.floats(0, 1e10)
half_lives = st.floats(1, 1e9)


def test_the_weight_halves_above_the_floor() -> None:
    assert decay.weight_at(1.1, 0.0, 100.0, 100.0) == pytest.approx(0.6)
    assert decay.weight_at(1.1, 0.0, 200.0, 100.0) == pytest.approx(0.35)
    assert decay.weight_at(1.1, 0.0, 100.0, math.inf) == 1.1
    assert decay.weight_at(1.1, 50.0, 0.0, 100.0) == 1.1  # nothing decays backwards
    assert decay.weight_at(0.05, 0.0, 100.0, 100.0) == 0.05


@given(weights, seconds, seconds, half_lives)
def test_weights_fall_towards_the_floor(w: float, a: float, b: float, half: float) -> None:
    early, late = sorted((a, b))
    first, second = (decay.weight_at(w, 0.0, t, half) for t in (early, late))
    assert decay.FLOOR <= second <= first <= w


@given(weights, seconds, seconds, half_lives)
def test_decaying_in_two_steps_is_decaying_once(w: float, a: float, b: float, half: float) -> None:
    once = decay.weight_at(w, 0.0, a + b, half)
    twice = decay.weight_at(decay.weight_at(w, 0.0, a, half), a, a + b, half)
    assert twice == pytest.approx(once, rel=1e-6)


@given(weights, seconds, seconds, half_lives, st.floats(0, 5))
def test_a_touch_adds_to_the_decayed_weight(
    w: float, at: float, t: float, half: float, gain: float
) -> None:
    new, when = decay.reinforce(w, at, t, half, gain)
    assert new == min(decay.CEILING, decay.weight_at(w, at, t, half) + gain)
    assert when == max(at, t)


def test_what_matters_lasts_longer_and_gains_more() -> None:
    kind = nodes.CONTAINS_ENTITY
    assert decay.half_life_s(kind, 0.5) == 90 * DAY
    assert decay.half_life_s(kind, 1.0) == 180 * DAY
    assert decay.half_life_s(kind, 0.0) == 45 * DAY
    assert decay.half_life_s(nodes.PREVIOUS, 0.0) == math.inf
    assert decay.contribution(1.0) > decay.contribution(0.5) > decay.contribution(0.0) > 0
    assert decay.contribution(0.5, -1.0) == decay.contribution(0.5, 1.0) > decay.contribution(0.5)


def test_recency() -> None:
    assert decay.recency(10.0, 10.0) == decay.recency(20.0, 10.0) == 1.0
    assert decay.recency(0.0, 30 * DAY) == pytest.approx(0.5)
    assert 0 < decay.recency(0.0, 3650 * DAY) < 1e-9 or decay.recency(0.0, 3650 * DAY) >= 0


def test_every_kind_of_edge_has_a_half_life() -> None:
    kinds = {v for k, v in vars(nodes).items() if k.isupper() and isinstance(v, str) and k == v}
    kinds |= {nodes.RELATION}
    assert kinds == set(decay.HALF_LIFE_S)


@pytest.mark.parametrize(
    "question", ["Where is the spare key of the boathouse?", "备用钥匙在哪里？"]
)
def test_a_strong_match_is_found_after_a_year_of_talk(question: str) -> None:
    memory = writer().memory
    writer(START, memory).remember(fact("The spare key of the boathouse is under the frog."))
    writer(START, memory).remember(fact("备用钥匙在青蛙下面。"))
    for day in range(1, 366):
        writer(START + day * DAY, memory).remember(fact(f"On day {day} we sang song {day % 9}."))
    hit = search(memory, Query(question, None, Moment(START + 366 * DAY), limit=1))[0]
    assert hit.id in {"m1", "m2"}


def test_touching_strengthens_the_way_to_an_entity() -> None:
    memory = writer().memory
    first = writer(START, memory).remember(fact("Ana met Bo."))
    from reverie.memory_graph.drafts import EntityDraft

    second = writer(START, memory).remember(fact("Bo sings.", entities=(EntityDraft("Bo"),)))
    edge = memory.graph.edge(second, "e1", nodes.CONTAINS_ENTITY)
    assert edge is not None
    before = edge.weight
    writer(START, memory).touch([first, second, "m99"], START + DAY)
    assert edge.weight > before * 0.99
    assert edge.at == START + DAY
    node = memory.graph.node(second)
    assert isinstance(node, nodes.Memory)
    assert (node.hits, node.last_access) == (1, START + DAY)
