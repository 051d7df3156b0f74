"""Homes, names and moves: adverbs in front, company that stays, plans that end nothing yet."""

from __future__ import annotations

import pytest

from reverie.memory_graph.drafts import MemoryDraft
from reverie.models.protocol import Turn
from reverie.models.rules import RulesExtractor

SAID_AT = 1_718_100_000.0


def drafts(text: str) -> dict[str | None, MemoryDraft]:
    (found,) = RulesExtractor().extract([Turn("t1", "user", "user", text, SAID_AT)], [])
    return {draft.slot: draft for draft in found.memories}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Actually I live in Porto.", "User lives in Porto"),
        ("In fact I live in Porto.", "User lives in Porto"),
        ("No wait I live in Porto.", "User lives in Porto"),
        ("I used to rent in Berlin but now I'm based in Porto.", "User is now based in Porto"),
        ("Nowadays we live in Porto.", "User now lives in Porto"),
        ("其实我住在南京。", "用户住在南京"),
        ("我改住上海了。", "用户改住上海了"),
    ],
)
def test_a_home_is_found_behind_adverbs(said: str, told: str) -> None:
    found = drafts(said)["user|lives_in"]
    assert (found.text, found.polarity) == (told, 1)
    assert [(r.predicate, r.ended) for r in found.relations] == [("lives_in", False)]


@pytest.mark.parametrize("said", ["我改名叫王小明了。", "我现在叫王小明。", "我改叫王小明了。"])
def test_a_new_name_is_a_name(said: str) -> None:
    found = drafts(said)["user|name"]
    assert [r.tail for r in found.relations] == ["王小明"]


def test_company_is_a_statement_of_its_own() -> None:
    found = drafts("I live in Berlin with my cat Miso.")
    assert found["user|lives_in"].text == "User lives in Berlin"
    assert "Miso" not in found["user|lives_in"].text
    assert found["user|household"].text == "User lives with their cat Miso"
    assert found["user|has_pet"].text == "User has a cat named Miso"
    moved = drafts("We moved to Vienna last week with our two kids.")
    assert moved["user|lives_in"].text == "User moved to Vienna last week"
    assert "kids" in moved["user|household"].text


@pytest.mark.parametrize(
    "said", ["我下个月搬去上海。", "我明年搬到上海。", "I'm moving to Oslo next month."]
)
def test_a_coming_move_is_a_plan(said: str) -> None:
    found = drafts(said)
    assert "user|lives_in" not in found
    assert found["user|plans"].kind == "event"
    assert found["user|plans"].relations == ()


def test_a_past_move_is_a_home() -> None:
    assert [r.tail for r in drafts("我上个月搬去了上海。")["user|lives_in"].relations] == ["上海"]


def test_first_person_verbs_that_are_past_stay_as_they_are() -> None:
    (found,) = RulesExtractor().extract(
        [Turn("t1", "Nora", "user", "I sat with Olga in Ghent and we all hit the road.", SAID_AT)],
        [],
    )
    said = " ".join(draft.text for draft in found.memories)
    assert "Nora sat with Olga" in said
    assert "sats" not in said
    assert "alls" not in said
