"""Layers together: each statement once, tagged by who made it, a model's drafts among them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reverie.memory_graph.drafts import EntityDraft, MemoryDraft
from reverie.memory_graph.errors import ModelFailedError
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Extraction, Turn
from reverie.models.rules import RulesExtractor
from reverie.models.salient import SalientExtractor

SAID_AT = 1_718_100_000.0


def turn(text: str, speaker: str = "user", name: str = "t1") -> Turn:
    return Turn(name, speaker, "user", text, SAID_AT)


def layered(text: str, speaker: str = "user") -> list[tuple[str, str | None, str]]:
    (found,) = LayeredExtractor().extract([turn(text, speaker)], [])
    return [(d.tags[-1], d.slot, d.text) for d in found.memories]


class FakeModel:
    """An extractor that says what it is told to, and remembers what it was asked."""

    def __init__(self, *drafts: MemoryDraft, entities: tuple[EntityDraft, ...] = ()) -> None:
        self.drafts, self.entities = drafts, entities
        self.asked: list[tuple[list[str], list[str]]] = []

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        self.asked.append(([t.id for t in turns], [t.id for t in history]))
        return [Extraction(t.id, self.drafts, self.entities) for t in turns]


class BrokenModel:
    """An extractor whose model fails."""

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        msg = f"{len(turns)} turns, {len(history)} before"
        raise ModelFailedError(msg)


def test_a_sentence_that_the_rules_keep_in_full_is_not_kept_twice() -> None:
    assert layered("I'm allergic to cashews.") == [
        ("rules", "user|allergic_to", "User is allergic to cashews")
    ]
    assert layered("我对海鲜过敏。") == [("rules", "user|allergic_to", "用户对海鲜过敏")]
    assert [tag for tag, _, _ in layered("I can't stand olives, but I love figs.")] == ["rules"] * 2


def test_what_the_rules_do_not_know_is_kept_as_a_sentence() -> None:
    assert layered("Cyclists from Texel filled the ferry.", "Nora") == [
        ("salient", None, "Nora: Cyclists from Texel filled the ferry")
    ]
    assert layered("我把钥匙落在出租车上了。", "小林") == [
        ("salient", None, "小林把钥匙落在出租车上了")
    ]


def test_a_sentence_that_says_more_than_the_facts_is_kept_whole() -> None:
    said = layered("I'm allergic to cashews, but I found a bakery in Delft without them.")
    assert said == [
        ("rules", "user|allergic_to", "User is allergic to cashews"),
        (
            "salient",
            "user|found",
            "User is allergic to cashews, but found a bakery in Delft without them",
        ),
    ]


def test_what_happened_stays_whole_and_carries_what_the_rules_know() -> None:
    (found,) = LayeredExtractor().extract([turn("I met Olga at the library last Friday.")], [])
    (draft,) = found.memories
    assert draft.tags[-1] == "salient"
    assert (draft.slot, draft.kind) == ("user|met", "event")
    assert draft.valid_from is not None
    assert "Olga" in {r.tail for r in draft.relations}
    assert len({e.name for e in draft.entities}) == len(draft.entities)


def test_what_can_be_replaced_stays_a_fact_of_its_own() -> None:
    said = layered("I moved to Vienna last week and my sister drove the van over the Alps.")
    assert ("rules", "user|lives_in", "User moved to Vienna last week") in said
    assert any(tag == "salient" and "van over the Alps" in text for tag, _, text in said)


def test_explicit_requests_are_kept_once_and_pinned() -> None:
    (found,) = LayeredExtractor().extract([turn("Remember that my locker is number 417.")], [])
    (draft,) = found.memories
    assert draft.pinned


def test_layers_alone() -> None:
    said = turn("I live in Ghent. The ferry to Texel was packed with cyclists.")
    (rules,) = LayeredExtractor(salient=False).extract([said], [])
    (sentences,) = LayeredExtractor(rules=False).extract([said], [])
    assert [d.text for d in rules.memories] == [
        d.text for d in RulesExtractor().extract([said], [])[0].memories
    ]
    assert sentences.memories == SalientExtractor().extract([said], [])[0].memories
    assert {d.tags[-1] for d in rules.memories} == {"rules"}
    assert LayeredExtractor(rules=False, salient=False).extract([said], []) == [Extraction("t1")]


def test_a_model_is_asked_once_for_all_turns_as_they_are() -> None:
    model = FakeModel()
    turns = [turn("Where do you live?", "Bo", "q"), turn("Ghent.", "Nora", "a")]
    LayeredExtractor(model).extract(turns, [turn("Hi!", "Bo", "h")])
    assert model.asked == [(["q", "a"], ["h"])]
    LayeredExtractor(model).extract([], [])
    assert len(model.asked) == 1


def test_what_a_model_adds_is_kept_and_what_it_repeats_is_not() -> None:
    repeated = MemoryDraft("User is allergic to cashews", sources=("t1",))
    added = MemoryDraft("User sings in a choir", slot="user|does", sources=("t1",))
    model = FakeModel(repeated, added, entities=(EntityDraft("choir", "organization"),))
    said = turn("I'm allergic to cashews, and the choir is where I found my voice.")
    (found,) = LayeredExtractor(model).extract([said], [])
    by_tag = {d.text: d.tags[-1] for d in found.memories}
    assert by_tag["User is allergic to cashews"] == "rules"
    assert by_tag["User sings in a choir"] == "model"
    assert "choir" in {e.name for e in found.entities}


def test_a_denial_of_a_model_is_not_a_repetition() -> None:
    denied = MemoryDraft("User is allergic to cashews", polarity=-1, sources=("t1",))
    (found,) = LayeredExtractor(FakeModel(denied)).extract([turn("I'm allergic to cashews.")], [])
    assert sorted(d.polarity for d in found.memories) == [-1, 1]


def test_a_name_that_no_turn_holds_is_left_out() -> None:
    model = FakeModel(entities=(EntityDraft("Zanzibar", "place"),))
    (found,) = LayeredExtractor(model).extract([turn("I keep bees.")], [])
    assert "Zanzibar" not in {e.name for e in found.entities}


def test_errors_of_the_model_reach_the_caller() -> None:
    with pytest.raises(ModelFailedError):
        LayeredExtractor(BrokenModel()).extract([turn("I keep bees.")], [])


@pytest.mark.parametrize(
    "said",
    [
        "lol yeah, thanks!",
        "Could you explain recursion?",
        "嗯嗯，继续说吧。",
        "If I were rich, I'd fly.",
    ],
)
def test_nothing_is_kept_of_talk(said: str) -> None:
    assert layered(said) == []
