"""The salient sentence: what is kept, what is dropped, and how it reads in the third person."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from reverie.memory_graph.drafts import MemoryDraft, checked
from reverie.models.protocol import Turn
from reverie.models.rules.text import numbers
from reverie.models.salient import TAG, SalientExtractor
from reverie.models.salient.voice import in_third

SAID_AT = 1_718_100_000.0  # Tuesday 11 June 2024, 10:00 UTC
DAY = 86_400.0


def turn(text: str, speaker: str = "user", role: str = "user", name: str = "t1") -> Turn:
    return Turn(name, speaker, role, text, SAID_AT)


def kept(text: str, speaker: str = "user", *before: Turn) -> list[MemoryDraft]:
    (found,) = SalientExtractor().extract([turn(text, speaker)], list(before))
    return list(found.memories)


def texts(text: str, speaker: str = "user", *before: Turn) -> list[str]:
    return [draft.text for draft in kept(text, speaker, *before)]


# (speaker, text, the one memory)
TOLD = [
    ("Nora", "I painted that harbour at dawn last year.", "Nora painted that harbour at dawn last year"),
    ("user", "I spent the weekend fixing the roof with my dad.", "User spent the weekend fixing the roof with their dad"),
    ("user", "my aunt's recipe uses cardamom and orange peel", "User's aunt's recipe uses cardamom and orange peel"),
    ("Nora", "Me and my wife run a small hotel in Bergen.", "Nora and their wife run a small hotel in Bergen"),
    ("Nora", "When I was 12, we lived in Cairo.", "When Nora was 12, Nora lived in Cairo"),
    ("Nora", "I'd lend my brother the van.", "Nora would lend their brother the van"),
    ("Nora", "I baked the rye bread myself.", "Nora baked the rye bread themselves"),
    ("Nora", "Been learning the cello for three years now.", "Nora has been learning the cello for three years now"),
    ("Nora", "Lost my keys at the fish market.", "Nora lost their keys at the fish market"),
    ("Nora", "Working on a thesis about fungal networks.", "Nora is working on a thesis about fungal networks"),
    ("Nora", "We both signed up for the pottery class in Bruges.", "Nora: We both signed up for the pottery class in Bruges"),
    ("Nora", "The old mill burned down last winter.", "Nora: The old mill burned down last winter"),
    ("Nora", "Wow! Thanks, Tom! I got the job at the Rijksmuseum.", "Nora got the job at the Rijksmuseum"),
    ("Nora", "I'm thinking of sailing to Crete in May, what do you think?", "Nora is thinking of sailing to Crete in May"),
    ("Kael", "Our village was raided by goblins three nights ago.", "Kael's village was raided by goblins three nights ago"),
    ("event", "The player stole a lantern from Marta's stall.", "The player stole a lantern from Marta's stall"),
    ("user", "US visa got approved in March!", "User: US visa got approved in March"),
    ("user", "Remember that my anniversary is June 3rd.", "User's anniversary is June 3rd"),
    ("user", "我昨天去看了牙医，医生说要拔智齿。", "用户昨天去看了牙医，医生说要拔智齿"),
    ("user", "我和老婆一起开了一家小面馆。", "用户和老婆一起开了一家小面馆"),
    ("小林", "昨天在图书馆遇到了高中同学。", "小林昨天在图书馆遇到了高中同学"),
    ("小林", "我们俩都喜欢登山。", "小林：我们俩都喜欢登山"),
    ("村长", "北边的桥被洪水冲断了。", "村长：北边的桥被洪水冲断了"),
    ("user", "J'habite à Lyon avec mon chat.", "User: J'habite à Lyon avec mon chat"),
    ("user", "Я живу в Москве и работаю врачом.", "User: Я живу в Москве и работаю врачом"),
    ("user", "저는 서울에서 일해요.", "User: 저는 서울에서 일해요"),
]  # fmt: skip
DROPPED = [
    "lol that's hilarious",
    "ok sounds good, go ahead",
    "thanks, that helps a lot!",
    "What's the capital of Australia?",
    "Could you make it shorter and more formal?",
    "Write a function that sorts a list of numbers.",
    "Translate this: I live in Paris with my two dogs.",
    "Please summarize the following text: The firm was founded in Ohio in 1990.",
    "If I lived in Paris, I'd eat croissants every day.",
    "Imagine I'm a pirate and my ship is called Dawn.",
    "You're the best!",
    "I hope you have a nice day!",
    "Good morning! How are you today?",
    "I see, that makes more sense now.",
    "I was just kidding.",
    "Halt! Who goes there?",
    "Farewell, and safe travels.",
    "```\nfor i in range(10): my_total += i\n```",
    "好的，明白了。",
    "哈哈哈哈，太搞笑了。",
    "帮我写一首关于春天的诗。",
    "把这段话翻译成英文：我住在北京。",
    "今天天气怎么样？",
    "如果我是鸟，我就飞到南方去。",
    "不对，再试一次。",
    "你真聪明。",
    "谢谢，这个很有用。",
]


@pytest.mark.parametrize(("speaker", "said", "told"), TOLD)
def test_a_sentence_is_kept_in_the_third_person(speaker: str, said: str, told: str) -> None:
    (draft,) = kept(said, speaker)
    assert draft.text == told
    assert TAG in draft.tags
    assert draft.slot is None
    assert draft.sources == ("t1",)
    assert checked(draft) == draft


@pytest.mark.parametrize("said", DROPPED)
def test_talk_about_the_talk_is_dropped(said: str) -> None:
    assert texts(said) == []


@pytest.mark.parametrize(
    ("speaker", "role"),
    [("assistant", "assistant"), ("Bo", "assistant"), ("tool", "tool"), ("Bo", "system")],
)
def test_machines_have_no_memories(speaker: str, role: str) -> None:
    (found,) = SalientExtractor().extract([turn("I live in Oslo with Bo.", speaker, role)], [])
    assert found.memories == ()


def test_empty_clauses_are_cut_off() -> None:
    assert texts("Honestly, I climbed Ben Nevis on Sunday - it was so amazing!") == [
        "User climbed Ben Nevis on Sunday"
    ]
    assert texts("I'm allergic to cashews, so please don't suggest pesto.") == [
        "User is allergic to cashews"
    ]


def test_a_leaning_sentence_joins_the_one_before_it() -> None:
    (told,) = texts(
        "I adopted a greyhound from the shelter. She hates thunder, fireworks and vacuum cleaners."
    )
    assert (
        told
        == "User adopted a greyhound from the shelter. She hates thunder, fireworks and vacuum cleaners"
    )
    long = "I adopted a greyhound " + "from a place " * 20
    assert len(texts(f"{long}. She hates thunder, fireworks and vacuum cleaners.")) == 2


def test_neighbours_join_in_talk_among_people_only() -> None:
    said = "I keep bees in Delft. The honey won a prize at the county fair."
    told = ["Nora keeps bees in Delft. The honey won a prize at the county fair"]
    assert texts(said, "Nora", turn("And you?", "Thomas", name="t0")) == told
    asked = Turn("t0", "assistant", "assistant", "And you?", SAID_AT)
    assert texts(said, "Nora", asked) == [
        "Nora keeps bees in Delft",
        "Nora: The honey won a prize at the county fair",
    ]


def test_each_sentence_is_a_memory_once() -> None:
    said = texts(
        "I play the oboe in Ghent. We rehearse on Mondays at the church. I play the oboe in Ghent."
    )
    assert said == ["User plays the oboe in Ghent", "User rehearses on Mondays at the church"]


def test_who_is_talked_to_is_cut_off_but_not_who_is_talked_about() -> None:
    before = turn("How was it?", "Thomas", name="t0")
    assert texts("Thom, I met Greta at the harbour.", "Nora", before) == [
        "Nora met Greta at the harbour"
    ]
    assert texts("I met Thomas at the harbour.", "Nora", before) == [
        "Nora met Thomas at the harbour"
    ]


def test_notes_of_pictures_are_kept() -> None:
    said = texts("Look! [shared image: a photo of a wooden boat on a lake]", "Nora")
    assert said == ["Nora's image: wooden boat on lake"]


def test_kinds_and_dates() -> None:
    (flight,) = kept("My flight to Porto leaves at 6:40 on Saturday.")
    assert (flight.kind, flight.valid_from) == ("event", SAID_AT - 10 * 3600 + 4 * DAY)
    (past,) = kept("I visited the salt mines yesterday.")
    assert (past.kind, past.valid_from) == ("event", SAID_AT - 10 * 3600 - DAY)
    (moved,) = kept("The standup was moved to Friday at 10.")
    assert moved.valid_from == SAID_AT - 10 * 3600 + 3 * DAY
    (habit,) = kept("I work from the library on Fridays.")
    assert habit.valid_from is None
    (taste,) = kept("I love salted liquorice and black coffee.")
    assert taste.kind == "preference"
    (chinese,) = kept("我昨天在江边捡到了一只小猫。")
    assert (chinese.kind, chinese.valid_from) == ("event", SAID_AT - 10 * 3600 - DAY)
    (pinned,) = kept("Remember that my locker is number 417.")
    assert (pinned.pinned, pinned.importance) == (True, 1.0)


def test_names_and_numbers_stand_in_the_turn() -> None:
    (found,) = SalientExtractor().extract(
        [turn("I paid Dr. Okafor 240 euros in Antwerp.", "Nora")], []
    )
    (draft,) = found.memories
    assert numbers(draft.text) == {"240"}
    assert {"Nora", "Antwerp"} <= {entity.name for entity in draft.entities}
    assert {entity.name for entity in found.entities} == {"Nora", "Dr. Okafor", "Antwerp"}


def test_nothing_depends_on_other_turns_of_the_batch() -> None:
    turns = [
        turn("I keep bees in Delft.", name="a"),
        turn("Nice!", "Bo", name="b"),
        turn("", name="c"),
    ]
    together = SalientExtractor().extract(turns, [])
    assert [one.turn_id for one in together] == ["a", "b", "c"]
    assert together[0] == SalientExtractor().extract(turns[:1], [])[0]
    assert SalientExtractor().extract([], turns) == []


@settings(max_examples=150, deadline=None)
@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from(list("I my we .,!?-–'\"[]:*的我了，。？(){}\n")),
            st.characters(codec="utf-8"),
        ),
        max_size=400,
    ),
    st.sampled_from(["user", "Nora", "小林", "event"]),
)
def test_any_text_is_survived(text: str, speaker: str) -> None:
    for draft in kept(text, speaker):
        assert draft.text.strip()
        assert checked(draft) == draft


@pytest.mark.parametrize(
    "text",
    ["I " * 2000, "and " * 1000, "that sounds " + "a" * 3000, "a, " * 1300, "，我" * 2000, "- " * 2000,
     "thanks " * 600, "[note: " * 500, "我们一起" * 900, "(" * 4000, "well, " * 700, "you know " * 440],
)  # fmt: skip
def test_hostile_text_is_bounded(text: str) -> None:
    assert len(kept(text, "Nora")) <= 30


@given(st.sampled_from(["Ana", "User", "小林"]), st.text(max_size=120))
def test_the_third_person_is_never_empty(name: str, text: str) -> None:
    told = in_third(text, name)
    assert name in told or text.strip(" ") == "" or told
