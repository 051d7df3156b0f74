"""Everyday and game talk: short facts that are kept, small talk that is not, and what "it" is."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import pytest

from reverie.memory_graph.drafts import MemoryDraft
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Turn
from reverie.models.salient import SalientExtractor
from reverie.models.salient.refer import with_thing

SAID_AT = 1_718_100_000.0


def turns(*said: tuple[str, str]) -> list[Turn]:
    return [
        Turn(f"t{i}", speaker, "assistant" if speaker == "assistant" else "user", text, SAID_AT)
        for i, (speaker, text) in enumerate(said)
    ]


def last(*said: tuple[str, str]) -> tuple[MemoryDraft, ...]:
    return LayeredExtractor().extract(turns(*said), [])[-1].memories


def texts(*said: tuple[str, str]) -> list[str]:
    return [draft.text for draft in last(*said)]


@pytest.mark.parametrize(
    "said",
    [
        "omg it's boiling out there today, roll on autumn",
        "Ugh, it's pouring again. Typical Tuesday.",
        "omg stop, that's hilarious",
        "brb, someone's at the door",
        "hang on, let me think about it",
        "sec, phone's ringing",
        "urgh mondays",
        "Sorry I'm late!",
        "give me a minute",
        "So hot today, I'm melting",
        "no idea tbh",
    ],
)
def test_small_talk_is_not_kept(said: str) -> None:
    assert texts(("user", said)) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Did that help?", "hmm not sure yet, give me a sec"),
        ("Would that work?", "maybe, dunno"),
        ("Any questions so far?", "not really, makes sense"),
        ("Shall I start with the first one?", "let me check"),
    ],
)
def test_an_answer_that_says_nothing_is_not_kept(question: str, answer: str) -> None:
    assert texts(("assistant", question), ("user", answer)) == []


def test_a_greeting_of_a_character_is_not_kept() -> None:
    assert texts(("Player", "Well met, stranger."), ("Miller", "Aye, fine evening for it.")) == []


@pytest.mark.parametrize(
    ("speaker", "said", "told"),
    [
        ("user", "My husband's deaf!", "User's husband's deaf"),
        ("Idris", "I can't swim, never could.", "Idris can't swim, never could"),
        ("user", "Garlic and I don't get along", "Garlic and User don't get along"),
        ("Orla", "My harp's gone!", "Orla's harp's gone"),
        ("user", "just so you know my cat is deaf", "User's cat is deaf"),
        ("user", "please stop calling me Benjamin, everyone says Benji", "Please stop calling User Benjamin, everyone says Benji"),
    ],
)  # fmt: skip
def test_a_short_fact_is_kept(speaker: str, said: str, told: str) -> None:
    (found,) = SalientExtractor().extract(turns((speaker, said)), [])
    assert [draft.text for draft in found.memories] == [told]


def test_a_debt_of_the_other_is_kept() -> None:
    assert texts(("Hild", "But you owe me thirty crowns.")) == ["You owe Hild thirty crowns"]


def test_what_is_said_of_the_thing_of_the_sentence_before_is_kept_with_it() -> None:
    assert texts(("Hild", "The miller hid the seal. I saw it under his bed.")) == [
        "Hild: The miller hid the seal. Hild saw it under his bed"
    ]


def test_what_is_true_instead_of_what_is_taken_back_is_kept_with_its_name() -> None:
    said = texts(
        (
            "user",
            "Forget what I said about the Fairphone 4, I sent it back and got a Pixel 7 instead.",
        )
    )
    assert any("sent the Fairphone 4 back" in text and "Pixel 7" in text for text in said)


@pytest.mark.parametrize(
    ("asked", "said", "told"),
    [
        (("Rook", "Where's my shovel?"), ("Player", "I left it in the Sunken Crypt."), "Player left Rook's shovel in the Sunken Crypt"),
        (("assistant", "Do you still have your kayak?"), ("user", "I sold it to Bo in June."), "User sold their kayak to Bo in June"),
    ],
)  # fmt: skip
def test_it_is_the_one_thing_of_the_turn_before(
    asked: tuple[str, str], said: tuple[str, str], told: str
) -> None:
    (draft,) = last(asked, said)
    assert draft.text == told
    assert draft.sources == ("t1", "t0")
    assert {entity.name for entity in draft.entities} & {"shovel", "kayak"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Where are my shovel and my lantern?", "I left it in the crypt."),  # which of them
        ("Where's his shovel?", "I left it in the crypt."),  # whose
        ("Where's my shovel?", "I took the rope and left it in the crypt."),  # the rope
        ("Where's my shovel?", "It rained all night."),
        ("我的铲子呢？", "我弄丢了它。"),
    ],
)
def test_it_stays_where_it_is_not_clear(asked: str, said: str) -> None:
    before, turn = turns(("Rook", asked), ("Player", said))
    assert with_thing(turn.text, [], [before], "Rook") is None


def test_an_answer_to_a_question_about_what_one_said_is_told_with_it() -> None:
    (draft,) = last(
        ("user", "I've got a job interview next Thursday!"),
        ("assistant", "Exciting! Who is it with?"),
        ("user", "Siemens."),
    )
    assert "interview next Thursday" in draft.text
    assert draft.text.endswith('asked "Who is it with": Siemens')
    assert set(draft.sources) == {"t0", "t1", "t2"}
    assert "Siemens" in {entity.name for entity in draft.entities}


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("Are you still vegan?", "Not any more, I eat fish now.", "not vegan any more"),
        ("Do you have any pets?", "Just the one, a grumpy parrot called Mango.", "has a grumpy parrot called Mango"),
        ("What are you reading at the moment?", "Persuasion, for the second time.", "reading Persuasion"),
        ("Which airport do you fly from?", "Bristol, it's twenty minutes away", 'asked "Which airport do you fly from": Bristol'),
    ],
)  # fmt: skip
def test_an_answer_takes_its_meaning_from_the_question(
    question: str, answer: str, told: str
) -> None:
    assert told in " | ".join(texts(("assistant", question), ("user", answer)))


def test_a_subject_that_begins_like_an_interjection_is_none() -> None:
    said = texts(
        ("Dess", "I sort letters at night."),
        ("Hal", "since when?"),
        ("Dess", "since they closed the Hull depot"),
    )
    assert said == ["Dess: since they closed the Hull depot"]
