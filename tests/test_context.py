"""The block for a prompt keeps its budget, and says when and from where."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reverie.memory_graph.context import assemble, utc_day
from reverie.memory_graph.views import Hit

DAY = 86_400.0


def hit(number: int, text: str, **fields: Any) -> Hit:
    defaults: dict[str, Any] = {
        "id": f"m{number}",
        "type": "memory",
        "kind": "fact",
        "at": number * DAY,
        "recorded_at": 0.0,
        "score": 1.0,
        "parts": {},
    }
    return Hit(text=text, **{**defaults, **fields})


def words(text: str) -> int:
    return len(text.split())


def test_facts_first_each_with_its_date_and_source() -> None:
    hits = [
        hit(1, "Bo said hi.", type="message", kind=None, id="t1", speaker="Bo"),
        hit(2, "The mill burned.", kind="event", told_by="小红", sources=("t1", "t2", "t3", "t4")),
        hit(3, "喜欢绿茶。", kind="preference", valid_to=5 * DAY),
        hit(4, "They talked.", type="summary", kind=None, id="y1"),
        hit(5, "Ana  keeps\nbees."),
    ]
    block = assemble(hits, 1000, words, utc_day)
    assert block.text.splitlines() == [
        "Facts:",
        "- 喜欢绿茶。 (1970-01-04 to 1970-01-06; m3)",
        "- Ana keeps bees. (1970-01-06; m5)",
        "Events:",
        "- The mill burned. (1970-01-03; told by 小红; from t1, t2, t3)",
        "Summaries:",
        "- They talked. (1970-01-05; y1)",
        "Said:",
        "- Bo: Bo said hi. (1970-01-02; t1)",
    ]
    assert block.tokens == words(block.text)
    assert block.hits == tuple(hits)
    assert block.left_out == 0


def test_a_long_line_is_cut_and_a_short_rest_left_out() -> None:
    long = " ".join(f"word{i}" for i in range(200))
    block = assemble([hit(1, long), hit(2, "Short one.")], 40, words, utc_day)
    assert block.text.startswith("Facts:\n- word0 word1")
    assert "... (1970-01-02; m1)" in block.text
    assert block.tokens <= 40
    block = assemble([hit(1, long), hit(2, "Short one.")], 9, words, utc_day)
    assert block.text == "Facts:\n- Short one. (1970-01-03; m2)"
    assert block.left_out == 1
    assert assemble([hit(1, long)], 1, words, utc_day).text == ""


def test_equal_texts_are_shown_once() -> None:
    block = assemble([hit(1, "Same."), hit(2, "Same."), hit(3, "Other.")], 100, words, utc_day)
    assert [h.id for h in block.hits] == ["m1", "m3"]
    assert block.left_out == 0


def test_times_beyond_the_calendar() -> None:
    assert utc_day(0.0) == "1970-01-01"
    assert utc_day(-86_400.0) == "1969-12-31"
    assert utc_day(1e15) == "t=1e+15"
    assert utc_day(float("inf")) == "t=inf"


texts = st.text(st.sampled_from("ab 柏林，。\n"), min_size=1, max_size=120).filter(str.strip)
kinds = st.sampled_from(
    [("memory", "fact"), ("memory", "event"), ("message", None), ("summary", None)]
)


@given(st.lists(st.tuples(texts, kinds), max_size=12), st.integers(1, 120))
def test_no_budget_is_ever_exceeded(given_: list[tuple[str, tuple[str, Any]]], budget: int) -> None:
    hits = [hit(i, text, type=t, kind=k) for i, (text, (t, k)) in enumerate(given_)]
    for count in (len, words):
        block = assemble(hits, budget, count, utc_day)
        assert block.tokens == count(block.text) <= budget
        distinct = len({h.text for h in hits})
        assert len(block.hits) + block.left_out >= distinct
        assert len(block.hits) <= distinct
