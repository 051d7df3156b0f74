"""Plain things of a sentence, names that common words begin, and triples of what somebody does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from reverie.memory_graph.drafts import OWNER, EntityDraft
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Turn
from reverie.models.rules import RELATION_PREDICATES
from reverie.models.rules.deeds import deeds
from reverie.models.rules.names import english_names
from reverie.models.rules.things import things

SAID_AT = 1_718_100_000.0


def layered(*said: tuple[str, str]) -> tuple[list[str], set[str], set[tuple[str, str, str]]]:
    """Return the memories, names and triples of the last turn of a dialogue."""
    turns = [
        Turn(f"t{i}", speaker, "assistant" if speaker == "assistant" else "user", text, SAID_AT)
        for i, (speaker, text) in enumerate(said)
    ]
    found = LayeredExtractor().extract(turns, [])[-1]
    triples = {(r.head, r.predicate, r.tail) for d in found.memories for r in d.relations}
    return [d.text for d in found.memories], {e.name for e in found.entities}, triples


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("I can't have shellfish or walnuts.", ["shellfish", "walnuts"]),
        ("We keep two gerbils and a tortoise.", ["gerbils", "tortoise"]),
        ("They hid the chalice in the old chapel.", ["chalice", "chapel"]),
        ("My inhaler ran out and my eczema is back.", ["inhaler", "eczema"]),
        ("He gave me a wooden flute.", ["wooden flute"]),
        ("The dog's been limping since Monday.", ["dog"]),
        ("I had a cup of tea at the harbour.", ["tea", "harbour"]),
        ("She sold the spinning jenny to a trader.", ["spinning jenny"]),
    ],
)
def test_a_plain_thing_is_named_where_it_is_the_head_of_its_phrase(
    sentence: str, names: list[str]
) -> None:
    assert [draft.name for draft in things(sentence)] == names


@pytest.mark.parametrize(
    "sentence",
    [
        "The car park was full.",
        "My phone number changed.",
        "It tastes like soap.",
        "We are over the moon.",
        "Let's keep going.",
        "My sister needs more time and energy.",
        'The sign said "beware of the dog".',
        "I ran away from home.",
        "She lives in Winter Palace Road.",
    ],
)
def test_no_thing_is_named_where_a_word_is_none(sentence: str) -> None:
    assert things(sentence) == []


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_things_stand_in_their_sentence(sentence: str) -> None:
    assert all(draft.name in sentence for draft in things(sentence))


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("She goes to nursery at Little Willows.", ["Little Willows"]),
        ("We met before the Autumn Fair.", ["Autumn Fair"]),
        ("We sing at St Luke's on Sundays.", ["St Luke's"]),
        ("Tomo's moving out in March.", ["Tomo"]),
        ("You did WHAT?", []),
        ("Typical Friday.", []),
        ("I'll see you there, Player.", []),
        ("The Queen's men came at dawn.", []),
        ("Plumber's coming on Monday.", []),
    ],
)
def test_a_name_is_whole_and_no_common_word(sentence: str, names: list[str]) -> None:
    assert [draft.name for draft in english_names(sentence)] == names


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        (("user", "I borrowed two kayaks last week."), (OWNER, "borrow", "kayaks")),
        (("user", "My car is a Skoda Fabia."), (OWNER, "has", "Skoda Fabia")),
        (("Ruth", "I volunteer at Hope House on Mondays."), ("Ruth", "volunteer", "Hope House")),
        (("event", "The player betrayed Captain Vey."), ("player", "betray", "Captain Vey")),
        (("event", "The player handed the ledger to Osric."), ("player", "hand", "ledger")),
        (("Old Garth", "Never trust Perrin the miller."), ("Old Garth", "distrust", "Perrin")),
        (("Player", "Here's your locket back, Sunniva."), ("Player", "return", "locket")),
        (("user", "We've called the baby Ottoline."), (OWNER, "child", "Ottoline")),
        (("user", "Zoe and I broke up in May."), (OWNER, "partner", "Zoe")),
    ],
)
def test_what_somebody_does_is_a_triple(
    said: tuple[str, str], triple: tuple[str, str, str]
) -> None:
    _, _, triples = layered(said)
    assert triple in triples


@pytest.mark.parametrize(
    "text",
    [
        "Ana didn't sell the car.",
        "Ana will sell the car.",
        "Ana wants to sell the car.",
        "If Ana sold the car, she would cycle.",
        "Ana no longer drives the car.",
        "Ana broke her wrist near the car.",
        'Ana read "Bo sold the car".',
    ],
)
def test_what_is_denied_wished_or_beside_the_verb_is_no_triple(text: str) -> None:
    assert deeds(text, "Ana", [EntityDraft("car", "thing")]) == ()
    assert deeds("Ana sold the car.", "Ana", [EntityDraft("car", "thing")]) != ()


def test_predicates_of_deeds_are_of_the_closed_list() -> None:
    _, _, triples = layered(
        ("Ana", "I sold my van, bought a kayak, met Olu in Cork, and gave Bo the lantern.")
    )
    assert len(triples) > 1
    assert {predicate for _, predicate, _ in triples} <= RELATION_PREDICATES


def test_the_speaker_is_named_where_a_statement_is_about_them() -> None:
    _, names, _ = layered(("Ingrid", "I keep bees in Delft."))
    assert names == {"Ingrid", "bees", "Delft"}
    _, names, _ = layered(("Ingrid", "The mill at Hexham burned down."))
    assert "Ingrid" not in names
    _, names, _ = layered(("Player", "I keep bees in Delft."))
    assert "Player" not in names
    _, names, _ = layered(("小林", "我昨天去了杭州。"))
    assert "杭州" in names


def test_what_is_only_asked_or_dropped_gives_no_thing() -> None:
    assert layered(("user", "Could you suggest a wine?")) == ([], set(), set())
