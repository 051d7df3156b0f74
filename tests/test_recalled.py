"""What came out of memory is not extracted again, in blocks, lines and parts of lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from support import DAY, Factory

from reverie import Runtime, User
from reverie.models.protocol import Extraction, Turn
from reverie.models.recalled import extract_said, without_recalled

TALK = [
    "I live in Porto.",
    "My sister Ines plays the cello. She loves figs.",
    "I work at Siemens as a tester.",
    "我对花生过敏。",
    "我妹妹小红喜欢喝茶。",
]


@pytest.fixture
def rt(factory: Factory) -> Runtime:
    return factory(background=False)


@pytest.fixture
def ana(rt: Runtime, factory: Factory) -> User:
    """Ana has told five things, and a day has passed."""
    user = rt.user("ana")
    user.add(TALK, wait=True)
    user.observe("The bridge fell", told_by="Tom")
    user.update(user.remember("User owns a boat").memory_id, "User owns a red boat")
    factory.clock.advance(DAY)
    return user


def memories(user: User) -> dict[str, str]:
    items = user.list(include_retired=True, include_archived=True).items
    return {item.id: f"{item.text} {item.status} {item.importance}" for item in items}


def block(user: User, **options: object) -> str:
    return user.context("Tell me all. 告诉我一切。", include_retired=True, **options).text  # type: ignore[arg-type]


def test_a_whole_block_makes_nothing(ana: User) -> None:
    shown = block(ana)
    assert "Facts:" in shown
    assert shown.count("\n- ") > 8
    before = memories(ana)
    ana.add(f"You are a helpful assistant. What you know:\n{shown}\n\nAnswer shortly.", wait=True)
    ana.add(shown, wait=True)
    ana.add(block(ana, show_time=lambda at: f"day {at / DAY:.0f} (of spring)"), wait=True)
    ana.add("\n".join(f"> {line}" for line in shown.splitlines()), wait=True)
    assert memories(ana) == before


def test_any_line_alone_makes_nothing(ana: User) -> None:
    before = memories(ana)
    lines = [line for line in block(ana).splitlines() if line.startswith("- ")]
    for line in lines:
        for said in (line, line[2:], f'"{line[2:]}"', f"You told me: {line}", f"* {line[2:]}."):
            ana.add(said, wait=True)
    assert memories(ana) == before
    assert ana.stats().quarantined == 0


def test_part_of_a_line_makes_nothing(ana: User) -> None:
    before = memories(ana)
    for said in (
        "User lives in Porto",
        "- User works at Siemens as a tester",
        "You said: User lives in Porto and works at Siemens.",
        "用户对花生过敏。",
        "你说过：用户对花生过敏",
        "User's sister is named Ines",
        "User owns a blue boat",
    ):
        ana.add(said, wait=True)
    assert memories(ana) == before


@pytest.mark.parametrize(
    ("own", "word"),
    [
        ("I moved to Lyon.", "Lyon"),
        ("我搬到了杭州。", "杭州"),
    ],
)
def test_what_is_said_around_a_quote_is_kept(ana: User, own: str, word: str) -> None:
    shown = block(ana)
    for i, said in enumerate((f"{shown}\n{own}", f"{own}\n\n{shown}")):
        ana.add({"text": said, "session": str(i)}, wait=True)
        assert any(word in item.text for item in ana.list().items)
        ana.add(TALK[0], wait=True)


def test_a_correction_of_a_quoted_line_is_kept(ana: User) -> None:
    (line,) = [x for x in block(ana).splitlines() if "Porto" in x and x.startswith("- User lives")]
    ana.add(f"Your notes say {line[2:]} I moved to Lyon.", wait=True)
    texts = [item.text for item in ana.list().items]
    assert any("Lyon" in text for text in texts)
    assert not any("notes" in text for text in texts)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Oslo (since 2019; it is cold).",
        "User feedback was great this week.",
        "The user interface of our app is blue; I like it.",
        "用户反馈很好，我很高兴。",
        "Facts:\n- I live in Oslo\n- I like tea",
        "I was born in May (see page 3; chapter b).",
        "Ana: I moved; from Rome.",
        "",
    ],
)
def test_what_people_say_themselves_is_left_alone(text: str) -> None:
    assert without_recalled(text) == text


@given(st.text(max_size=300))
def test_any_text_is_shortened_at_most(text: str) -> None:
    said = without_recalled(text)
    assert len(said) <= len(text) + text.count(")")
    assert without_recalled(said) == said or "; " in said or "User" in said or "用户" in said


def test_turns_that_are_recalled_whole_reach_no_model() -> None:
    class Seen:
        def __init__(self) -> None:
            self.texts: list[str] = []

        def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
            self.texts += [t.text for t in turns]
            return [Extraction(t.id) for t in turns]

    seen = Seen()
    said = ["User lives in Oslo", "I like tea.", "- x (2024-05-01; t4)", "User lives in Oslo"]
    speakers = ["user", "user", "Tom", "Tom"]
    turns = [
        Turn(f"t{i}", who, "user", text, 0.0)
        for i, (who, text) in enumerate(zip(speakers, said, strict=True))
    ]
    found = extract_said(seen, turns, [])
    assert [e.turn_id for e in found] == ["t0", "t1", "t2", "t3"]
    assert seen.texts == ["I like tea.", "User lives in Oslo"]
