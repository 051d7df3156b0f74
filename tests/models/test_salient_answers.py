"""Short answers take their meaning from the question before them."""

from __future__ import annotations

import pytest

from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Turn
from reverie.models.salient import SalientExtractor
from reverie.models.salient.answers import answer_of

SAID_AT = 1_718_100_000.0


def ask(question: str, answer: str, speaker: str = "user") -> list[str]:
    before = Turn("q", "assistant", "assistant", question, SAID_AT)
    turn = Turn("a", speaker, "user", answer, SAID_AT)
    (found,) = SalientExtractor().extract([turn], [before])
    return [draft.text for draft in found.memories]


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("Where do you live?", "Ghent.", "User lives in Ghent"),
        ("Nice! Where did you go?", "To Lisbon, for a week.", "User went to Lisbon, for a week"),
        ("What do you do for work?", "Carpenter.", "User works as carpenter"),
        ("What do you do?", "A carpenter.", "User is a carpenter"),
        ("What's your favorite colour?", "Definitely teal.", "User's favorite colour is teal"),
        ("How many kids do you have?", "Three, all boys.", "User has three kids, all boys"),
        ("When did you start running?", "Two years ago.", "User started running two years ago"),
        (
            "How long have you been married?",
            "5 years already!",
            "User has been married for 5 years",
        ),
        ("Do you have a dog?", "Yes.", "User has a dog"),
        ("Do you smoke cigars?", "No.", "User doesn't smoke cigars"),
        ("Did you finish the report?", "Yes!", "User finished the report"),
        ("Any allergies?", "Peanuts and shellfish.", "User is allergic to peanuts and shellfish"),
        ("What instrument is it?", "An oboe.", 'User, asked "What instrument is it": An oboe'),
        ("你住在哪里？", "杭州。", "用户住在杭州"),
        ("你今年多大了？", "28岁", "用户今年28岁"),
        ("你喜欢吃什么？", "火锅", "用户喜欢火锅"),
        ("周末去了哪里？", "西湖", "用户被问“周末去了哪里”，答：西湖"),
    ],
)
def test_an_answer_is_told_with_its_question(question: str, answer: str, told: str) -> None:
    assert ask(question, answer) == [told]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Would you like me to continue?", "Yes please, go on."),
        ("Are you ready?", "Yes."),
        ("What's up?", "Not much."),
        ("How was the trip?", "Amazing!"),
        ("Shall I book it?", "Sure."),
        ("Where do you live? And with whom?", "Ghent."),
        ("I live in Ghent.", "Yes."),
        ("你有过敏吗？", "没有"),
        ("需要我继续吗？", "好的。"),
        ("明白了吗？", "嗯嗯。"),
    ],
)
def test_what_tells_nothing_or_is_unclear_makes_nothing(question: str, answer: str) -> None:
    assert ask(question, answer) == []


def test_the_question_is_a_source() -> None:
    before = Turn("q", "Bo", "user", "Where do you live?", SAID_AT)
    turn = Turn("a", "Nora", "user", "Ghent. I moved there in 2019.", SAID_AT)
    (found,) = SalientExtractor().extract([turn], [before])
    assert [(d.text, d.sources) for d in found.memories] == [
        ("Nora lives in Ghent", ("a", "q")),
        ("Nora moved there in 2019", ("a",)),
    ]


def test_the_rules_read_the_answer_too() -> None:
    before = Turn("q", "assistant", "assistant", "Where do you live?", SAID_AT)
    turn = Turn("a", "user", "user", "Ghent.", SAID_AT)
    (found,) = LayeredExtractor().extract([turn], [before])
    (draft,) = found.memories
    assert (draft.slot, draft.text, draft.sources) == (
        "user|lives_in",
        "User lives in Ghent",
        ("a", "q"),
    )
    assert [r.tail for r in draft.relations] == ["Ghent"]


def test_only_the_turn_just_before_asks() -> None:
    asked = Turn("q", "Bo", "user", "Where do you live?", SAID_AT)
    between = Turn("m", "Cy", "user", "I saw a heron.", SAID_AT)
    answer = Turn("a", "Nora", "user", "Ghent.", SAID_AT)
    assert answer_of(answer, [asked]) is not None
    assert answer_of(answer, [asked, between]) is None
    assert answer_of(answer, [Turn("q", "nora", "user", "Where do I live?", SAID_AT)]) is None
    assert answer_of(answer, []) is None


def test_an_answer_in_the_same_batch_finds_its_question() -> None:
    asked = Turn("q", "Bo", "user", "Where do you work?", SAID_AT)
    answer = Turn("a", "Nora", "user", "The Rijksmuseum.", SAID_AT)
    found = SalientExtractor().extract([asked, answer], [])
    assert [d.text for d in found[1].memories] == ["Nora works at the Rijksmuseum"]
