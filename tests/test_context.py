"""The block for a prompt keeps its budget, says things once, and says when and from where."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.context import EQUAL_RELEVANCE, assemble, utc_day
from reverie.memory_graph.same import says_same
from reverie.memory_graph.views import Hit
from reverie.models.standin import HashEmbedder

DAY = 86_400.0


def hit(number: int, text: str, **fields: Any) -> Hit:
    defaults: dict[str, Any] = {
        "id": f"m{number}",
        "type": "memory",
        "kind": "fact",
        "at": number * DAY,
        "recorded_at": 0.0,
        "score": 10.0 - number,
        "parts": {},
    }
    return Hit(text=text, **{**defaults, **fields})


def turn(number: int, text: str, speaker: str = "user", **fields: Any) -> Hit:
    return hit(
        number,
        text,
        **{"id": f"t{number}", "type": "message", "kind": None, "speaker": speaker} | fields,
    )


def words(text: str) -> int:
    return len(text.split())


def shown(*hits: Hit) -> list[str]:
    """Return the ids that a block shows when there is room for all."""
    block = assemble(hits, 10_000, words, utc_day)
    assert block.left_out == 0
    return [h.id for h in block.hits]


# -- order, dates, sources ---------------------------------------------------------------


def test_facts_first_each_with_its_date_and_source() -> None:
    hits = [
        turn(1, "Bo said hi.", "Bo"),
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


def test_of_equally_relevant_ones_the_newest_that_holds_comes_first() -> None:
    old, new = hit(1, "Ana lived in Berlin.", score=2.0), hit(9, "安娜住在奥斯陆。", score=1.96)
    over = hit(20, "Ana is in Rome.", score=2.04, parts={"outdated": -1.0})
    ended = hit(30, "安娜在上海。", score=2.0, status="superseded")
    better, worse = hit(2, "Ana likes tea.", score=2.2), hit(40, "茶馆关门了。", score=1.5)
    every = [better, over, old, ended, new, worse]
    assert shown(*every) == ["m2", "m9", "m1", "m30", "m20", "m40"]
    lines = assemble(every, 1000, words, utc_day).text.splitlines()
    assert [line.rpartition("; ")[2].rstrip(")") for line in lines[1:]] == [
        "m2",
        "m9",
        "m1",
        "m30",
        "replaced later",
        "m40",
    ]


# -- what says the same ------------------------------------------------------------------


def test_equal_texts_are_shown_once() -> None:
    same = [hit(1, "Ana keeps bees."), hit(2, "ana  keeps\nBEES"), hit(3, "Other.")]
    assert shown(*same) == ["m1", "m3"]
    assert shown(hit(1, "喜欢ｔｅａ。"), hit(2, "喜欢tea"), hit(3, "喜欢tea？")) == ["m1", "m3"]
    assert shown(turn(1, "Yes."), turn(2, "Yes"), turn(3, "yes.")) == ["t1"]
    block = assemble([turn(1, "好的。"), turn(2, "好的")], 100, words, utc_day)
    assert block.text == "Said:\n- user: 好的。 (1970-01-02; t1, t2)"


def test_what_two_say_is_two_statements() -> None:
    assert shown(turn(1, "I love hiking.", "Ana"), turn(2, "I love hiking.", "Bo")) == ["t1", "t2"]
    assert shown(turn(1, "我爱爬山。", "小红"), turn(2, "我爱爬山。", "小明")) == ["t1", "t2"]


PAIRS = [
    ("I live in Oslo now.", "User lives in Oslo now", True),
    ("I don't like tea.", "User doesn't like tea", True),
    ("我住在柏林。", "用户住在柏林", True),
    ("我不喜欢喝茶。", "用户不喜欢喝茶", True),
    ("I live in Oslo, and my cat is ill.", "User lives in Oslo", False),
    ("I don't live in Oslo.", "User lives in Oslo", False),
    ("我住在柏林,养了一只猫。", "用户住在柏林", False),
    ("我不住在柏林。", "用户住在柏林", False),
    ("Yes!", "User lives in Oslo", False),
]


@pytest.mark.parametrize(("said", "kept", "same"), PAIRS)
def test_a_memory_stands_for_the_turn_that_says_the_same(said: str, kept: str, same: bool) -> None:  # noqa: FBT001
    memory = hit(1, kept, sources=("t2", "t9"), speaker="user")
    first, second = turn(2, said), hit(3, "Something else. 别的")
    assert shown(memory, first, second) == (["m1", "m3"] if same else ["m1", "t2", "m3"])
    # The memory takes the place of the turn, also when that is the better hit.
    late = msgspec.structs.replace(memory, score=1.0)
    assert shown(first, second, late) == (["m1", "m3"] if same else ["t2", "m3", "m1"])
    stranger = msgspec.structs.replace(memory, sources=("t7",))
    assert "t2" in shown(stranger, first)  # the words alone do not make it the source


def test_a_merged_line_names_all_sources() -> None:
    memory = hit(1, "Ana keeps bees.", sources=("t2",))
    block = assemble([turn(4, "Ana keeps bees"), memory], 100, words, utc_day)
    assert block.text == "Facts:\n- Ana keeps bees. (1970-01-02; from t2, t4)"
    assert block.hits == (memory,)
    both = [turn(5, "ana keeps bees"), turn(2, "Ana keeps bees", "Ana"), memory]
    assert shown(*both) == ["m1"]


# -- the budget --------------------------------------------------------------------------


def test_what_does_not_fit_is_passed_over_for_smaller_ones() -> None:
    long = " ".join(f"词{i}" for i in range(50))
    hits = [hit(1, "Ana keeps bees."), hit(2, long), hit(3, "Bo likes tea."), hit(4, long[::-1])]
    block = assemble([*hits, hit(5, "绿茶。")], 17, words, utc_day)
    assert [h.id for h in block.hits] == ["m1", "m3", "m5"]
    assert block.left_out == 2


def test_what_is_left_of_the_budget_takes_the_beginning_of_the_best_that_did_not_fit() -> None:
    long = " ".join(f"word{i}" for i in range(200))
    hits = [hit(1, long), hit(2, "Short one."), hit(3, long.replace("word", "term"))]
    block = assemble(hits, 40, words, utc_day)
    assert block.text.startswith("Facts:\n- word0 word1")
    assert "... (1970-01-02; m1)\n- Short one. (1970-01-03; m2)" in block.text
    assert block.tokens == 40
    assert block.left_out == 1
    block = assemble(hits[:2], 9, words, utc_day)
    assert block.text == "Facts:\n- Short one. (1970-01-03; m2)"
    assert block.left_out == 1
    assert assemble(hits[:1], 1, words, utc_day).text == ""


def test_a_chinese_line_is_cut_between_characters() -> None:
    long = "安娜在山上养了许多蜜蜂，" * 40
    block = assemble([hit(1, long)], 60, HashEmbedder(32).count_tokens, utc_day)
    assert 50 < block.tokens <= 60
    assert block.text.startswith("Facts:\n- 安娜在山上养了许多蜜蜂，安娜")
    assert block.text.endswith("... (1970-01-02; m1)")


def test_a_counter_that_counts_more_together_is_obeyed() -> None:
    def odd(text: str) -> int:
        return len(text.split("\n")) ** 3

    block = assemble([hit(i, f"Line {i}.") for i in range(20)], 100, odd, utc_day)
    assert 0 < block.tokens == odd(block.text) <= 100
    assert len(block.hits) + block.left_out == 20


def test_many_hits_are_counted_about_once_each() -> None:
    counted = [0]

    def count(text: str) -> int:
        counted[0] += len(text)
        return words(text)

    hits = [hit(i, f"Number {i} is here. 第{i}个", score=1.0) for i in range(3000)]
    block = assemble(hits, 300, count, utc_day)
    assert block.tokens <= 300
    assert counted[0] < 3 * sum(len(h.text) + 60 for h in hits)


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
def test_no_budget_is_exceeded_and_none_is_wasted(
    given_: list[tuple[str, tuple[str, Any]]], budget: int
) -> None:
    hits = [hit(i, text, type=t, kind=k) for i, (text, (t, k)) in enumerate(given_)]
    hits = list(assemble(hits, 100_000, words, utc_day).hits)  # each said once
    every = {h.id: h for h in hits}
    for count in (len, words, HashEmbedder(32).count_tokens):
        block = assemble(hits, budget, count, utc_day)
        assert block.tokens == count(block.text) <= budget
        assert len(block.hits) + block.left_out == len(every)
        whole = [h for h in block.hits if f"{h.text[:-1].strip()}..." not in block.text]
        for left in every.keys() - {h.id for h in block.hits}:
            more = assemble([*whole, every[left]], 100_000, count, utc_day)
            assert more.tokens > budget  # nothing that was left out would have fitted


@given(st.lists(texts, max_size=12))
def test_with_room_everything_is_shown_once(given_: list[str]) -> None:
    hits = [hit(i, text) for i, text in enumerate(given_)]
    block = assemble(hits, 100_000, words, utc_day)
    assert len({h.text for h in block.hits}) == len(block.hits)
    scores = [round(h.score / EQUAL_RELEVANCE) for h in block.hits]
    assert scores == sorted(scores, reverse=True)
    for each in hits:
        assert any(says_same(each, other) for other in block.hits)
