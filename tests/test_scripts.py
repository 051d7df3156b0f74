"""Japanese, Korean, Russian and Arabic talk is found by words, names and times, without a model."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import SimulatedClock
from reverie.formats import read_turns
from reverie.models.standin import HashEmbedder

FILE = Path(__file__).resolve().parent / "data" / "scripts_talk.json"
TALKS: dict[str, dict[str, Any]] = {
    talk["sample_id"]: talk for talk in json.loads(FILE.read_text(encoding="utf-8"))
}
# Who speaks and is named: in Russian in another case than in the list of turns, in Korean with a
# particle. (Japanese names of one character are not looked for.)
NAMED = {
    "ja": ("美咲さんは何の犬を飼い始めましたか？", "美咲"),
    "ko": ("민수는 박 선생님한테 무엇을 배워요?", "민수"),
    "ru": ("Чем закончился экзамен Веры по вождению в апреле?", "Вера"),
    "ar": ("كم جنيها دفعت ليلى لإصلاح الهاتف؟", "ليلى"),
}


@pytest.fixture(params=sorted(TALKS))
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """(the talk, its user) after all of it was said, at the time at which it is asked."""
    talk, clock = TALKS[request.param], SimulatedClock()
    turns = [r.turn for r in read_turns(FILE) if r.conversation == request.param]
    with reverie.open(tmp_path, embedder=HashEmbedder(), extractor="off", clock=clock) as rt:
        user = rt.user("listener")
        for said_at, session in groupby(turns, key=lambda turn: turn.said_at):
            clock.set(said_at or 0.0)
            user.add(list(session), infer=False)
        clock.set(datetime.fromisoformat(talk["asked_at"]).timestamp())
        yield talk, user


def test_the_evidence_is_among_the_first(asked: tuple[dict[str, Any], reverie.User]) -> None:
    talk, user = asked
    firsts = 0
    for qa in talk["qa"]:
        hits = user.search(qa["question"], limit=3)
        ranks = [i for i, hit in enumerate(hits) if hit.external_id in qa["evidence"]]
        assert ranks, qa["question"]
        firsts += ranks[0] == 0
        hit = hits[ranks[0]]
        assert hit.parts["words"] > 0, qa["question"]
        assert any(reason.startswith("shares the words") for reason in hit.reasons)
    assert firsts >= len(talk["qa"]) - 2


def test_a_time_brings_up_what_was_said_then(asked: tuple[dict[str, Any], reverie.User]) -> None:
    talk, user = asked
    dated = [qa for qa in talk["qa"] if qa["kind"] == "date"]
    assert len(dated) == 3
    for qa in dated:
        hits = user.search(qa["question"], limit=20)
        near = {hit.external_id: hit.parts.get("time", 0.0) for hit in hits}
        session = qa["evidence"][0].split(":")[0]
        own = [x for turn, x in near.items() if turn is not None and turn.startswith(session)]
        other = [x for turn, x in near.items() if turn is not None and not turn.startswith(session)]
        assert min(own) > 5 * max(other), qa["question"]


def test_who_is_named_is_who_spoke(asked: tuple[dict[str, Any], reverie.User]) -> None:
    talk, user = asked
    question, name = NAMED[talk["sample_id"]]
    hits = user.search(question, limit=20)
    by_speaker = {hit.speaker: hit.parts.get("speaker", 0.0) > 0 for hit in hits}
    assert by_speaker == {speaker: speaker == name for speaker in by_speaker}
    assert len(by_speaker) == 2
