"""The test sets of Chinese and of other scripts are what they say they are.

`data/zh_talk.json` and `data/scripts_talk.json` were written by hand for this project, in the
format of LoCoMo, with fields of their own: `asked_at`, the time at which the questions are asked;
`names`, the people and pets; and of a question its `kind`, `tags` and `split`. The halves "a" and
"b" take turns (a, b, b, a) over the questions sorted by kind, lists first, category and tags.

Of a paraphrased question no two neighbouring characters stand in its evidence, names and function
words apart: a word index is no help there. Of a literal one, several do.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reverie.formats import read_questions, read_turns
from reverie.memory_graph.text import scripts

DATA = Path(__file__).resolve().parent / "data"
ZH = DATA / "zh_talk.json"
OTHERS = DATA / "scripts_talk.json"

# A pair of characters with one of these in it is no word of content ("的时", "是什", "了一").
FUNCTION = frozenset("的了着过是在和跟与也都就而但被把我你您他她它们这那哪吗呢吧啊呀嘛么个谁何")
FUNCTION_WORDS = frozenset({"时候", "多少"})


def sample(path: Path = ZH) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def turns_of(talk: dict[str, Any]) -> dict[str, dict[str, str]]:
    sessions = (v for v in talk["conversation"].values() if isinstance(v, list))
    return {turn["dia_id"]: turn for session in sessions for turn in session}


def pairs(text: str, names: list[str]) -> set[str]:
    """Return the pairs of neighbouring Chinese characters in `text` that may belong to a word."""
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, " ")
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    found = {a + b for run in runs for a, b in pairwise(run)}
    return {p for p in found if not FUNCTION & set(p)} - FUNCTION_WORDS


def wrong_kinds(talk: dict[str, Any]) -> list[tuple[str, str, set[str]]]:
    """Return (question, id of evidence, shared pairs) where the kind of the question is wrong."""
    turns, names = turns_of(talk), talk["names"]
    found = []
    for qa in talk["qa"]:
        asked = pairs(qa["question"], names)
        shared = {i: asked & pairs(turns[i]["text"], names) for i in qa["evidence"]}
        if qa["kind"] == "paraphrased":
            found += [(qa["question"], i, words) for i, words in shared.items() if words]
        elif len(set().union(*shared.values())) < 2:
            found.append((qa["question"], "all", set().union(*shared.values())))
    return found


def test_the_talk_is_long_and_lasts_seven_months() -> None:
    talk = [record.turn for record in read_turns(ZH)]
    assert len(talk) == 360
    assert len({turn.session for turn in talk}) == 16
    assert {turn.speaker for turn in talk} == {"程野", "沈一禾", "孟凡"}
    times = [turn.said_at or 0 for turn in talk]
    assert times == sorted(times)
    assert 210 <= (times[-1] - times[0]) / 86_400 <= 225
    asked = datetime.fromisoformat(sample()["asked_at"]).timestamp()
    assert 0 < asked - times[-1] < 3 * 86_400
    assert len({turn.external_id for turn in talk}) == len({turn.text for turn in talk}) == 360
    assert all(scripts(turn.text)["han"] > 0.6 for turn in talk)


def test_every_question_has_evidence_in_the_talk() -> None:
    talk = sample()
    turns, read = turns_of(talk), list(read_questions(ZH))
    assert len(read) == len({q.question for q in read}) == 100
    for record, qa in zip(read, talk["qa"], strict=True):
        assert list(record.evidence) == qa["evidence"]  # nothing had to be repaired
        assert 1 <= len(record.evidence) <= 4
        assert set(record.evidence) <= turns.keys()
        assert record.category in {1, 2, 3, 4}
        assert record.answer


def test_the_questions_are_of_many_sorts() -> None:
    questions = sample()["qa"]
    assert Counter(qa["kind"] for qa in questions) == {"literal": 50, "paraphrased": 50}
    tags = Counter(tag for qa in questions for tag in qa["tags"])
    assert tags["multi-hop"] >= 15
    assert tags["time"] >= 20
    assert tags["list"] >= 10
    for qa in questions:
        sessions = {i.partition(":")[0] for i in qa["evidence"]}
        assert (len(sessions) > 1) == ("multi-hop" in qa["tags"]) == (qa["category"] == 1)
        assert qa["category"] != 2 or "time" in qa["tags"]


def test_the_halves_are_alike() -> None:
    questions = sample()["qa"]
    for kind in ("literal", "paraphrased"):
        a, b = (
            Counter(
                what
                for qa in questions
                if (qa["kind"], qa["split"]) == (kind, split)
                for what in ("all", str(qa["category"]), *qa["tags"])
            )
            for split in "ab"
        )
        assert a["all"] == b["all"] == 25
        assert all(abs(a[what] - b[what]) <= 3 for what in a.keys() | b.keys()), (kind, a, b)


def test_paraphrases_share_no_word_and_literal_questions_do() -> None:
    assert wrong_kinds(sample()) == []


def test_a_wrong_kind_is_found() -> None:
    talk = sample()
    for qa in talk["qa"]:
        qa["kind"] = "literal" if qa["kind"] == "paraphrased" else "paraphrased"
    assert len({question for question, _, _ in wrong_kinds(talk)}) == 100


def test_names_stand_in_the_talk() -> None:
    talk = sample()
    said = " ".join(turn["speaker"] + turn["text"] for turn in turns_of(talk).values())
    assert [name for name in talk["names"] if name not in said] == []


@pytest.mark.parametrize(
    ("language", "script"), [("ja", "kana"), ("ko", "hangul"), ("ru", "cyrillic"), ("ar", "arabic")]
)
def test_other_scripts(language: str, script: str) -> None:
    talk = next(s for s in json.loads(OTHERS.read_text("utf-8")) if s["sample_id"] == language)
    turns = turns_of(talk)
    assert len(turns) == 15
    assert Counter(qa["kind"] for qa in talk["qa"]) == {"keyword": 3, "entity": 2, "date": 3}
    for qa in talk["qa"]:
        assert qa["evidence"]
        assert set(qa["evidence"]) <= turns.keys()
    whole = " ".join(turn["text"] for turn in turns.values())
    found = scripts(whole)
    assert found.get(script, 0) + (found.get("han", 0) if language == "ja" else 0) > 0.95
    read = [q for q in read_questions(OTHERS) if q.conversation == language]
    assert [list(q.evidence) for q in read] == [qa["evidence"] for qa in talk["qa"]]
    assert sum(1 for record in read_turns(OTHERS) if record.conversation == language) == 15
