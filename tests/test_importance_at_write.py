"""Importance at write: what is new weighs more, and what weighs too little stays a message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import Always, opened

import reverie
from reverie import errors
from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.models.protocol import Extraction, Float32, TextRole, Turn
from reverie.models.rules.importance import FAMILIAR, KEPT_FROM
from reverie.models.standin import HashEmbedder


class Weighs:
    """An extractor of one statement a turn, "0.4: text" of importance 0.4."""

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        return [self._one(turn) for turn in turns]

    @staticmethod
    def _one(turn: Turn) -> Extraction:
        drafts = []
        for line in turn.text.split("\n"):
            weight, _, text = line.partition(": ")
            drafts.append(MemoryDraft(text, importance=float(weight), sources=(turn.id,)))
        return Extraction(turn.id, tuple(drafts))


def texts(user: Any) -> dict[str, float]:
    return {item.text: item.importance for item in user.list().items}


def test_what_resembles_a_memory_weighs_less(tmp_path: Path) -> None:
    adds = Always(Decision("ADD"))
    with opened(tmp_path / "data", extractor=Weighs(), decider=adds, embedder="standin") as rt:
        ana = rt.user("ana")
        ana.add(["0.5: I sing in a choir.", "0.5: i sing in a CHOIR"], wait=True)
        ana.add("0.5: 我养了一只猫。", wait=True)
        assert texts(ana) == {
            "I sing in a choir.": 0.5,
            "i sing in a CHOIR": pytest.approx(0.5 * (1 - FAMILIAR)),
            "我养了一只猫。": 0.5,
        }


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("I live in Oslo.", "I moved to Bergen.", "User lives in Oslo"),
        ("我住在上海。", "我搬到北京了。", "用户住在上海"),
    ],
)
def test_what_is_replaced_does_not_make_its_successor_old_news(
    tmp_path: Path, old: str, new: str, kept: str
) -> None:
    decides = Always(Decision("UPDATE", "m1"))
    with opened(tmp_path / "data", embedder="standin", min_importance=0.6) as rt:
        ana = rt.user("ana")
        ana.add(old, wait=True)
        assert [k.op for k in ana.add(new, wait=True).kept] == ["UPDATE"]
        (home,) = ana.list().items
        first = ana.history(home.id)[0]
        assert first.text == kept
        assert (home.importance or 0.0) >= (first.importance or 1.0)
    # The same statement again, kept as a correction whatever it weighs.
    with opened(
        tmp_path / "low",
        extractor=Weighs(),
        decider=decides,
        embedder="standin",
        min_importance=0.6,
    ) as rt:
        ana = rt.user("ana")
        ana.remember(old)
        assert [k.op for k in ana.add(f"0.1: {old}", wait=True).kept] == ["UPDATE"]
        assert texts(ana) == {old: 0.1}


@pytest.mark.parametrize(
    ("small", "asked", "fact"),
    [
        (
            "We had quite a long talk over at the old harbour wall.",
            "Remember that the kettle is blue.",
            "I'm allergic to peanuts.",
        ),
        ("我们在旧港口的墙边聊了很久的天。", "记住水壶是蓝色的。", "我对花生过敏。"),
    ],
)
def test_small_talk_stays_a_message_and_what_was_asked_for_a_memory(
    tmp_path: Path, small: str, asked: str, fact: str
) -> None:
    with opened(tmp_path / "data", embedder="standin", min_importance=0.5) as rt:
        ana = rt.user("ana")
        assert ana.add(small, wait=True).kept == []
        assert rt.stats().ingest.unimportant == 1
        assert ana.search(small, types=["message"])[0].text == small
        kept = ana.add([asked, fact], wait=True).kept
        assert [k.op for k in kept] == ["ADD", "ADD"]
        assert rt.stats().ingest.unimportant == 1
        assert rt.stats().pending == 0
    with opened(tmp_path / "all", embedder="standin") as rt:
        assert rt.config.min_importance == 0.0
        assert [k.op for k in rt.user("ana").add(small, wait=True).kept] == ["ADD"]


class Replaces:
    """Replaces the nearest where the text says so."""

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        if "instead" in draft.text:
            return Decision("UPDATE", known[0].id)
        return Decision("ADD")


def test_places_of_one_batch_stay_right_when_some_are_left_out(tmp_path: Path) -> None:
    with opened(
        tmp_path / "data", extractor=Weighs(), decider=Replaces(), min_importance=0.3
    ) as rt:
        ana = rt.user("ana")
        kept = ana.add(
            [
                "0.1: Rain.\n0.9: Tea at four.\n0.1: 天气不错。",
                "0.1: Tea at four instead.",
                "0.1: Snow.\n0.2: Tea at four or so instead.",
            ],
            wait=True,
        ).kept
        assert [(k.op, k.memory_id, k.target, k.refused) for k in kept] == [
            ("ADD", "m1", None, None),
            ("UPDATE", "m2", "m1", None),
            ("UPDATE", "m3", "m2", None),
        ]
        assert list(texts(ana)) == ["Tea at four or so instead."]
        assert rt.ingestor.counts.unimportant == 3


def test_names_in_what_is_left_out_are_still_names_of_the_turn(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder="standin", min_importance=0.9) as rt:
        ana = rt.user("ana")
        ana.add("I went to the market with Tom on Friday.", wait=True)
        assert ana.list().items == []
        assert {e.name for e in ana.entities()} == {"Tom", "market"}


class Latin(HashEmbedder):
    """Reads no Chinese: all of it is the same to it."""

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        return super().embed([t if t.isascii() else "?" for t in texts], role)

    def unknown_share(self, text: str) -> float:
        return 0.0 if text.isascii() else 1.0


def test_what_the_embedder_cannot_read_is_not_taken_for_old_news(tmp_path: Path) -> None:
    adds = Always(Decision("ADD"))
    with opened(tmp_path / "data", extractor=Weighs(), decider=adds, embedder=Latin()) as rt:
        ana = rt.user("ana")
        ana.add(["0.5: 我养了一只猫。", "0.5: 渡船九点开。", "0.5: Tea.", "0.5: tea"], wait=True)
        found = texts(ana)
        assert found.pop("tea") < 0.5
        assert set(found.values()) == {0.5}


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan"), "0.3", True])
def test_a_threshold_out_of_range_is_refused(least: Any) -> None:
    with pytest.raises(errors.ConfigError, match="min_importance"):
        reverie.Config(min_importance=least)


def test_the_embedder_says_from_which_cosine_on_texts_are_the_same(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder=HashEmbedder()) as rt:
        assert rt.mind.near_duplicate("default") == 0.9
    assert KEPT_FROM > 0.0
