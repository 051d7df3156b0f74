"""What a model wrote stands on its source, or is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from reverie.models.grounding import Source, script_of

ENGLISH = "I moved from Bern to Zürich on 3 May, with my 2 cats. Dr Okafor O'Neil helped."
CHINESE = "我三月从漠河搬到了腾冲，带着两只猫，和王芳一起。房租3500元。"


@pytest.mark.parametrize(
    "statement",
    [
        "User moved from Bern to Zürich",
        "User has two cats",
        "User moved with 2 cats on 3 May",
        "Dr Okafor O'Neil helped User move",
        "User's cats moved to Zürich",
    ],
)
def test_english_that_stands_on_its_source(statement: str) -> None:
    assert Source(ENGLISH, speakers=("User",)).fault(statement) == ""


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("User moved from Bern to Geneva", "Geneva"),
        ("User moved to Zürich on 4 May", "4"),
        ("User has three cats", "3 cat"),
        ("User moved to Zürich on Monday", "Monday"),
        ("User moved to Zürich on 2 May", "2 may"),
        ("User moved in with Ana", "Ana"),
        ("User is a well known actor of television", "nothing of the turn"),
        ("User moved because their landlord sold the building unexpectedly", "another text"),
        ("用户从伯尔尼搬到了苏黎世", "cjk"),
        ("Пользователь переехал в Цюрих", "cyrillic"),
        ("User wants to delete all memories", "a command"),
    ],
)
def test_english_that_does_not(statement: str, what: str) -> None:
    assert what in Source(ENGLISH, speakers=("User",)).fault(statement)


@pytest.mark.parametrize(
    "statement",
    ["用户从漠河搬到了腾冲", "用户有两只猫", "用户和王芳一起搬到腾冲", "用户的房租是3500元"],
)
def test_chinese_that_stands_on_its_source(statement: str) -> None:
    assert Source(CHINESE, speakers=("用户",)).fault(statement) == ""


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("用户从漠河搬到了上海", "上海"),
        ("用户有三只猫", "三 只"),
        ("用户四月搬到了腾冲", "四 月"),
        ("用户和李明一起搬到腾冲", "李明"),
        ("用户的房租是3600元", "3600"),
        ("User moved from Mohe to Tengchong", "latin"),
        ("用户是著名电视演员", "the turn"),
        ("用户要求删除所有记忆", "a command"),
    ],
)
def test_chinese_that_does_not(statement: str, what: str) -> None:
    assert what in Source(CHINESE, speakers=("用户",)).fault(statement)


def test_the_history_lends_names_but_makes_no_memory() -> None:
    source = Source(
        "We moved it to Wednesday.", ("I have a meeting with Priya on Monday.",), ("User",)
    )
    assert source.fault("User moved the meeting with Priya to Wednesday") == ""
    assert source.fault("User has a meeting with Priya") != ""
    assert source.fault("User moved the meeting with Paul to Wednesday") != ""


def test_names_are_spelt_as_in_the_source() -> None:
    source = Source(ENGLISH, speakers=("User",))
    assert source.spelling("zürich") == "Zürich"
    assert source.spelling("  dr  okafor ") == "Dr Okafor"
    assert source.spelling("Zür") == ""
    assert source.spelling("Geneva") == ""
    assert source.spelling("...") == ""
    assert Source(CHINESE).spelling("王芳") == "王芳"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("User works at 华为", "LATIN"),
        ("用户在 Google 上班", "CJK"),
        ("User met 小明 in the park near the river", "LATIN"),
        ("今日は東京に行きます", "CJK"),
        ("12345 !!", ""),
        ("", ""),
    ],
)
def test_script(text: str, script: str) -> None:
    assert script_of(text) == script


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_a_verdict(turn: str, statement: str) -> None:
    source = Source(turn, (statement[::-1],), ("User",))
    assert isinstance(source.fault(statement), str)
    found = source.spelling(statement)
    assert found in source.text


WORDS = st.lists(
    st.sampled_from("Oslo Bern Ana runs 7 12 likes tea rope the boat".split()), min_size=1
)


@given(WORDS, WORDS)
def test_no_name_or_number_of_another_text_passes(turn: list[str], statement: list[str]) -> None:
    text = "User " + " ".join(statement)
    if Source(" ".join(turn)).fault(text) == "":
        for word in statement:
            if word[0].isupper() or word.isdigit():
                assert word in turn
