"""Ranking: what is found, in which order, and the reason that is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support import DAY, DIM, START, fact, vector, writer

from reverie.memory_graph.drafts import EntityDraft, RelationDraft, TurnDraft
from reverie.memory_graph.filters import compile_filter
from reverie.memory_graph.naming import entities_named
from reverie.memory_graph.search import Query, search, search_many
from reverie.memory_graph.signals import WEIGHTS
from reverie.memory_graph.spread import FAN_OUT, MAX_HOPS, spread
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.views import Hit
from reverie.memory_graph.visible import Moment
from reverie.memory_graph.write import Writer
from reverie.models.standin import HashEmbedder

NOW = Moment(START)
WORDS = "tea bees mill Oslo Berlin Bo Ana code gate 绿茶 上海 小明 蜜蜂".split()


def asked(memory: UserMemory, text: str, **fields: Any) -> list[Hit]:
    query = HashEmbedder(DIM).embed([text], "query")[0]
    return search(memory, Query(text, query, **{"moment": NOW, **fields}))


def named(*names: str) -> tuple[EntityDraft, ...]:
    return tuple(EntityDraft(name) for name in names)


@pytest.fixture
def story() -> Writer:
    made = writer()
    made.turns(
        [
            TurnDraft("Shall we go out?", speaker="Bo", vector=vector("Shall we go out?")),
            TurnDraft("Only if the ferry runs.", vector=vector("Only if the ferry runs.")),
            TurnDraft("It runs until ten.", speaker="Bo", vector=vector("It runs until ten.")),
        ],
        pending=False,
    )
    made.remember(fact("Ana keeps bees.", entities=named("Ana")))
    made.remember(fact("Ana lives near the mill.", entities=named("Ana")))
    made.remember(fact("小明在上海学钢琴。", entities=named("小明", "上海")))
    made.remember(fact("Elena works at the harbour.", entities=named("Elena")))
    made.relate(RelationDraft("Ana", "sister_of", "Elena"), "m1")
    return made


def test_an_empty_memory_answers_nothing() -> None:
    assert asked(UserMemory(), "anything") == []


def test_the_best_hit_comes_first_with_its_reasons(story: Writer) -> None:
    best = asked(story.memory, "Who keeps bees?")[0]
    assert best.id == "m1"
    assert best.reasons[0].startswith("similar in meaning (0.")
    assert "shares the words: keeps, bees" in best.reasons
    best = asked(story.memory, "小明在哪里学钢琴？")[0]
    assert best.id == "m3"
    assert "mentions 小明" in best.reasons
    assert set(best.parts) <= set(WEIGHTS)


def test_words_alone_and_meaning_alone_find_it_too(story: Writer) -> None:
    assert search(story.memory, Query("bees", None, NOW))[0].id == "m1"
    query = HashEmbedder(DIM).embed(["bees"], "query")[0]
    assert search(story.memory, Query("?", query, NOW))[0].id == "m1"
    assert "words" not in search(story.memory, Query("?", query, NOW))[0].parts


def test_the_walk_reaches_the_turns_around_and_the_related(story: Writer) -> None:
    hits = {h.id: h for h in asked(story.memory, "ferry", limit=20)}
    assert "1 step: Only if the ferry runs. - next to - this" in hits["t1"].reasons
    assert "1 step: Only if the ferry runs. - next to - this" in hits["t3"].reasons
    by_name = Query("What about Ana?", None, NOW, limit=20)
    hits = {h.id: h for h in search(story.memory, by_name)}
    (way,) = [r for r in hits["m4"].reasons if "step" in r]
    assert way == "2 steps: Ana - sister of - Elena - mentions - this"


def test_relations_that_ended_are_not_walked(story: Writer) -> None:
    story.relate(RelationDraft("Ana", "sister_of", "Elena", ended=True), None)
    assert "m4" not in {h.id for h in search(story.memory, Query("What about Ana?", None, NOW))}


def test_names_in_questions(story: Writer) -> None:
    memory = story.memory
    story.entity(EntityDraft("New York City", aliases=("纽约", "O'Neil")), START)

    def found(text: str) -> set[str]:
        return {memory.display(e) for e in entities_named(memory, text)}

    assert found("Where does ana live?") == {"Ana"}
    assert found("Is this Ana's?") == {"Ana"}
    assert found("Is this Ana\u2019s?") == {"Ana"}
    assert found("(Ana, Elena!)") == {"Ana", "Elena"}
    assert found("trips to New York City, please") == {"New York City"}
    assert found("你在纽约还是上海？") == {"New York City", "上海"}
    assert found("What does O'Neil say?") == {"New York City"}
    assert found("Banana and Anatolia") == set()
    assert found("") == set()


def test_what_was_replaced_counts_less(story: Writer) -> None:
    made = writer()
    (turn,) = made.turns([TurnDraft("I love tea.", vector=vector("I love tea."))], pending=False)
    old = made.remember(fact("The user loves tea.", sources=(turn,)))
    later = writer(START + DAY, made.memory)
    later.remember(fact("The user hates tea.", sources=()), (old,))
    hits = {h.id: h for h in asked(made.memory, "tea", moment=Moment(START + DAY))}
    assert hits[turn].parts["outdated"] == WEIGHTS["outdated"]
    assert "what it says was replaced later" in hits[turn].reasons
    assert old not in hits
    past = {h.id: h for h in asked(made.memory, "tea", moment=Moment(START + DAY, as_of=START))}
    assert "outdated" not in past[turn].parts
    assert old in past
    retired = asked(made.memory, "tea", moment=Moment(START + DAY, retired=True))
    (hit,) = [h for h in retired if h.id == old]
    assert "no longer holds (replaced by m2)" in hit.reasons


def test_a_summary_comes_after_what_it_was_made_of() -> None:
    made = writer()
    texts = ["Ana loves green tea.", "Ana drinks tea from Assam.", "我也喜欢绿茶。"]
    kept = [made.remember(fact(text)) for text in texts]
    whole = " ".join(texts)
    summary = made.summarise(whole, "u", kept, from_at=START, to_at=START, vector=vector(whole))
    hits = asked(made.memory, "Which tea does Ana love, and from where?")
    assert [h.id for h in hits][-1] == summary
    assert hits[-1].parts["summary"] == WEIGHTS["summary"]
    (alone,) = asked(made.memory, "Which tea does Ana love?", types=frozenset({"summary"}))
    assert alone.id == summary


def test_limits_types_and_conditions(story: Writer) -> None:
    text = "Ana ferry 小明 Elena bees mill"
    assert len(asked(story.memory, text, limit=2)) == 2
    messages = asked(story.memory, text, types=frozenset({"message"}), limit=50)
    assert {h.type for h in messages} == {"message"}
    where = compile_filter({"entities": "上海"}, story.memory)
    assert [h.id for h in asked(story.memory, text, where=where)] == ["m3"]


def test_the_most_important_wins_among_equals() -> None:
    made = writer()
    for importance in (0.1, 0.9, 0.5):
        made.remember(fact("The gate is blue.", importance=importance))
    assert [h.id for h in asked(made.memory, "blue gate")] == ["m2", "m3", "m1"]


def test_the_newest_wins_among_equals() -> None:
    made = writer()
    for day in (2, 0, 1):
        writer(START + day * DAY, made.memory).remember(fact("The gate is blue."))
    found = asked(made.memory, "blue gate", moment=Moment(START + 3 * DAY))
    assert [h.at for h in found] == [START + d * DAY for d in (2, 1, 0)]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=40),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    st.integers(1, 50),
)
def test_hits_are_ordered_distinct_and_complete(
    texts: list[list[str]], question: list[str], limit: int
) -> None:
    made = writer()
    for i, words in enumerate(texts):
        text = " ".join(words)
        made.at = START + i
        made.remember(fact(text, entities=named(*(w for w in words if w.istitle()))))
    moment = Moment(START + 99)
    hits = asked(made.memory, " ".join(question), limit=limit, moment=moment)
    ids = [h.id for h in hits]
    assert len(set(ids)) == len(ids) <= limit
    scores = [round(h.score, 6) for h in hits]
    assert scores == sorted(scores, reverse=True)
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-5)
        assert hit.reasons
    # Every text with a word of the question has its place, whatever the limit cut off.
    longer = asked(made.memory, " ".join(question), limit=200, moment=moment)
    holding = {f"m{i}" for i, words in enumerate(texts, 1) if set(words) & set(question)}
    assert holding <= {h.id for h in longer}
    assert [h.id for h in longer[:limit]] == ids
    again = asked(made.memory, " ".join(question), limit=limit, moment=moment)
    assert again == hits


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=30),
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
            st.sampled_from([1, 3, 40]),  # limits
            st.sampled_from([None, START + 5.0]),  # as of
            st.booleans(),  # with a vector
            st.booleans(),  # with a filter
        ),
        max_size=6,
    ),
    st.sets(st.integers(1, 30), max_size=4),
)
def test_questions_asked_together_are_answered_as_if_alone(
    texts: list[list[str]],
    questions: list[tuple[str, int, float | None, bool, bool]],
    gone: set[int],
) -> None:
    made = writer()
    for i, words in enumerate(texts):
        made.at = START + i
        names = named(*(w for w in words if w.istitle()))
        made.remember(fact(" ".join(words), entities=names, metadata={"n": [i]}))
    for i in gone:
        if i <= len(texts):
            made.retire(f"m{i}", "superseded", "")
    embed = HashEmbedder(DIM).embed
    where = compile_filter({"text": {"contains": "e"}}, made.memory)
    queries = [
        Query(
            text,
            embed([text], "query")[0] if has_vector else None,
            Moment(START + 99.0, as_of),
            limit,
            where=where if is_filtered else None,
        )
        for text, limit, as_of, has_vector, is_filtered in questions
    ]
    together = search_many(made.memory, queries)
    assert together == [search(made.memory, query) for query in queries]
    metadata = [id(hit.metadata) for hits in together for hit in hits]
    assert len(set(metadata)) == len(metadata)  # nobody's change is seen by another


def test_a_walk_is_bounded_on_hubs() -> None:
    made = writer()
    for i in range(400):
        made.remember(fact(f"Ana did thing number {i}.", entities=named("Ana", f"Thing{i}")))
    reached = spread(made.graph, {"e1": 1.0}, NOW)
    assert "e1" in reached
    assert len(reached) < 24 * 2 * FAN_OUT
    assert max(r.hops for r in reached.values()) <= MAX_HOPS
    assert sum(r.mass for r in reached.values()) <= 1.0 + 1e-6
    assert spread(made.graph, {}, NOW) == {}
    assert spread(made.graph, {"e1": 0.0}, NOW) == {}


def test_strong_edges_carry_more() -> None:
    made = writer()
    weak = made.remember(fact("Bo was here.", entities=named("Bo")))
    strong = made.remember(fact("Bo sings.", entities=named("Bo")))
    for _ in range(5):
        made.touch([strong], START)
    reached = spread(made.graph, {"e1": 1.0}, NOW)
    assert reached[strong].mass > reached[weak].mass
    much_later = spread(made.graph, {"e1": 1.0}, Moment(START + 3650 * DAY))
    assert much_later[strong].mass == pytest.approx(much_later[weak].mass, rel=0.01)


def test_a_query_of_another_dimension_is_refused(story: Writer) -> None:
    with pytest.raises(ValueError, match="shape"):
        search(story.memory, Query("x", np.ones(DIM * 2, np.float32), NOW))
