"""Talk among people: answers, advice and what is shown say more than their words alone."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import pytest

from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Turn
from reverie.models.salient import SalientExtractor

SAID_AT = 1_718_100_000.0  # Tuesday 11 June 2024, 10:00 UTC

TIPS = "Any tips for growing tomatoes?"
TIPS_ZH = "种番茄有什么建议吗？"


def told(said: str, *before: str, speaker: str = "Nora", machine: bool = False) -> list[str]:
    """Return the memories of a turn, after turns of one other speaker."""
    who, role = ("assistant", "assistant") if machine else ("Thomas", "user")
    turns = [Turn(f"t{n}", who, role, text, SAID_AT) for n, text in enumerate(before)]
    (found,) = SalientExtractor().extract([Turn("now", speaker, "user", said, SAID_AT)], turns)
    return [draft.text for draft in found.memories]


@pytest.mark.parametrize(
    ("asked", "said", "kept"),
    [
        (TIPS, "Don't forget to prune the lower leaves.", "Don't forget to prune the lower leaves"),
        (TIPS, "You should feed them with nettle tea every other week.", "You should feed them with nettle tea every other week"),
        (TIPS, "For one, you should get a deep clay pot, and make sure it drains.", "For one, you should get a deep clay pot, and make sure it drains"),
        (TIPS_ZH, "不要浇太多水，叶子很容易烂掉。要放在有太阳的阳台上，早晚开窗通风。", "不要浇太多水，叶子很容易烂掉"),
    ],
)  # fmt: skip
def test_orders_are_advice_where_a_person_asked_for_it(asked: str, said: str, kept: str) -> None:
    assert kept in "".join(told(said, asked))
    assert kept not in "".join(
        told(said, "I planted tomatoes." if asked is TIPS else "我种了番茄。")
    )
    assert kept not in "".join(told(said, f"{asked} And why?", machine=True))


@pytest.mark.parametrize(
    "said", ["Let me know how they grow.", "Tell me more about the balcony.", "Check it out!"]
)
def test_orders_about_the_talk_are_no_advice(said: str) -> None:
    assert told(said, TIPS) == []


def test_chinese_orders_about_the_talk_are_no_advice() -> None:
    assert told("告诉我你种在哪里。", TIPS_ZH, speaker="小林") == []
    assert told("别担心。", TIPS_ZH, speaker="小林") == []


@pytest.mark.parametrize(
    ("said", "question", "remark"),
    [
        ("It felt bumpy.", "How was the ferry?", "I bet it was windy!"),
        ("船舱又闷又挤。", "坐船感觉如何？", "我也想去。"),
    ],
)
def test_an_answer_needs_less_content(said: str, question: str, remark: str) -> None:
    plain = said.rstrip(".。")
    assert plain in "".join(told(said, f"Well. {question} {remark}"))
    assert told(said, remark) == []


@pytest.mark.parametrize("said", ["Thanks for asking!", "Congratulations on the medal!", "Woohoo!"])
def test_thanks_and_praise_are_no_answer(said: str) -> None:
    assert told(said, "I won. Did you see it?") == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Just wanted to let you know that I'm selling the bakery.", "Nora is selling the bakery"),
        ("I have to tell you, my cousin opened a bakery in Ghent.", "Nora's cousin opened a bakery in Ghent"),
        ("想跟你说个好消息，我考上驾照了。", "Nora考上驾照了"),
        ("告诉你一个秘密，我在学吹笛子。", "Nora在学吹笛子"),
    ],
)  # fmt: skip
def test_announcements_are_cut_off(said: str, kept: str) -> None:
    assert told(said, "Hello.") == [kept]


def test_what_is_shown_among_people_is_said() -> None:
    said = "Check out my new pottery studio by the canal!"
    assert told(said, "Hello.") == ["Nora's new pottery studio by the canal"]
    assert told(said, "Hello.", machine=True) == []


def test_what_was_seen_is_no_greeting() -> None:
    seen = "It was great to see the twins learn sign language."
    assert told(seen, "Hello.") == [f"Nora: {seen.rstrip('.')}"]
    assert told("It was great to see you and the twins.", "Hello.") == []


def test_a_title_after_yes_is_no_name_of_somebody() -> None:
    (kept,) = told("Definitely Paddington Two!", "Which film should we watch?")
    assert "Paddington Two" in kept
    assert told("Definitely Thomas!", "Shall we go?") == []
    assert told("Yeah, Greta! We can do it.", "What is on your mind?", machine=True) == []


def test_do_begins_orders_and_questions() -> None:
    assert "your homework" in "".join(told("Do your homework on the soil first!", TIPS))
    assert told("Do your tomatoes grow on the balcony?", TIPS) == []


def test_a_denial_without_its_subject_is_of_the_speaker() -> None:
    said = "Don't feel like dancing at the wedding in Ghent."
    assert told(said) == ["Nora doesn't feel like dancing at the wedding in Ghent"]
    assert told("Don't worry about the boiler in Ghent.") == []


def test_what_somebody_cannot_have_is_kept_in_few_words() -> None:
    assert told("I can't have gluten.", "Hello.") == ["Nora can't have gluten"]


def test_of_two_sentences_that_tell_as_much_the_shorter_is_kept() -> None:
    short = "Her lanterns and kites hang indoors."
    long = "Her lanterns and also those other kites of hers are what is there for you to look at when you are in here."
    assert told(short, "Hello.") == [f"Nora: {short.rstrip('.')}"]
    assert told(long, "Hello.") == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I'm super thrilled about glazing each bowl and seeing the kiln glow.", "Nora is thrilled about glazing each bowl and seeing the kiln glow"),
        ("I'm totally carrying on coaching at the rowing club.", "Nora is carrying on coaching at the rowing club"),
    ],
)  # fmt: skip
def test_a_guess_that_only_stresses_its_sentence_is_not_kept_beside_it(
    said: str, kept: str
) -> None:
    before = Turn("t0", "Bo", "user", "Hello.", SAID_AT)
    (found,) = LayeredExtractor().extract([Turn("t", "Nora", "user", said, SAID_AT)], [before])
    assert [draft.text for draft in found.memories] == [kept]
