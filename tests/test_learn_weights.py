"""The script that learns the weights: its fit, its candidates, and a run on two small talks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from support import DIM, opened

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import learn_weights
from learn_weights import BY_HAND, HARD, L2, LEARNED, START, UNIT, Asked, candidates, fit, learn
from locomo_support import READER, end_of, ingest, read_conversations

from reverie import SimulatedClock
from reverie.memory_graph.signals import WEIGHTS
from reverie.models.standin import HashEmbedder

RNG = np.random.default_rng(7)


def made_up(weights: np.ndarray, questions: int, turns: int = 40) -> list[Asked]:
    """Return questions whose evidence is drawn with the chances that `weights` give."""
    found = []
    for _ in range(questions):
        signals = RNG.random((turns, len(weights)))
        raised = np.exp(signals @ weights)
        gold = np.zeros(turns, np.bool_)
        gold[RNG.choice(turns, p=raised / raised.sum())] = True
        found.append(Asked(signals, gold))
    return found


def test_the_fit_finds_the_weights_that_made_the_data() -> None:
    true = np.array([3.0, 1.0, 0.0, -2.0])
    some = made_up(true, 4000)
    found = fit([q.signals for q in some], [q.gold for q in some], l2=0.0)
    assert found == pytest.approx(true, abs=0.25)


def test_the_fit_is_where_the_loss_is_least() -> None:
    some = made_up(np.array([2.0, -1.0, 0.5]), 60)
    some += [Asked(q.signals, q.gold | np.roll(q.gold, 3)) for q in some[:20]]  # of two turns
    found = fit([q.signals for q in some], [q.gold for q in some])

    def loss(weights: np.ndarray) -> float:
        total = 0.0
        for q in some:
            scores = q.signals @ weights
            total += float(np.log(np.exp(scores).sum()) - scores[q.gold].mean())
        return total / len(some) + L2 * float(weights @ weights)

    for place in range(3):
        for step in (-0.01, 0.01):
            assert loss(found) < loss(found + step * np.eye(3)[place])


def test_candidates_are_the_evidence_and_the_best_others() -> None:
    signals = np.linspace(1.0, 0.0, 200)[:, None]
    gold = np.zeros(200, np.bool_)
    gold[[3, 150]] = True
    rows = candidates(Asked(signals, gold), np.array([1.0]))
    assert rows.tolist() == [*range(HARD + 1), 150]  # 3 is among them


def test_the_table_is_whole_and_on_the_scale_of_meaning() -> None:
    true = np.array([3.0 * START[name] for name in LEARNED])
    table = learn(made_up(true, 300))
    assert set(table) == set(WEIGHTS)
    assert table[UNIT] == 1.0
    assert {name: table[name] for name in BY_HAND} == {name: WEIGHTS[name] for name in BY_HAND}
    assert table["around"] > table["names"]


def talk(name: str, fruits: list[str]) -> dict[str, object]:
    lines = [
        line
        for fruit in fruits
        for line in (f"What did you buy, and how many of the {fruit}?", f"Two {fruit}, yesterday.")
    ]
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": ("Ana", "Bo")[at % 2], "dia_id": f"D1:{at}", "text": text}
                for at, text in enumerate(lines)
            ],
        },
        "qa": [
            {
                "question": f"How many of the {fruit} did Bo buy?",
                "category": 4,
                "evidence": [f"D1:{2 * at + 1}"],
                "answer": "two",
            }
            for at, fruit in enumerate(fruits)
        ],
    }


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    path = tmp_path / "talks.json"
    two = [
        talk("one", "pears plums figs 苹果".split()),
        talk("two", "nuts leeks beans 桃子".split()),
    ]
    path.write_text(json.dumps(two), encoding="utf-8")
    return path


def test_signals_are_the_parts_of_the_score(talks: Path, tmp_path: Path) -> None:
    conversation = read_conversations(talks)[0]
    clock = SimulatedClock()
    with opened(tmp_path / "data", embedder=HashEmbedder(DIM), clock=clock) as rt:
        ingest(rt, clock, conversation, lambda _: None)
        user = rt.user(READER, conversation.name)
        before = user.digest()
        collected = learn_weights.collect(rt, clock, conversation, lambda _: None)
        assert user.digest() == before
        table = np.array([WEIGHTS[name] for name in LEARNED])
        for question, asked in zip(conversation.questions, collected, strict=True):
            assert asked.signals.shape == (len(conversation.turns), len(LEARNED))
            hits = user.search(question.question, limit=50, as_of=end_of(conversation))
            scores = dict(
                zip((t.external_id for t in conversation.turns), asked.signals @ table, strict=True)
            )
            for hit in hits:
                graph = hit.parts.get("graph", 0.0)  # from other seeds, by other weights
                wanted = scores[hit.external_id] - WEIGHTS["graph"] - 1e-6
                assert wanted <= hit.score - graph <= scores[hit.external_id] + 1e-6


def test_the_script_learns_from_a_file(
    talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    args = [str(talks), "--embedder", "standin", "--json", str(out)]
    assert learn_weights.main(args) == 0
    told = json.loads(out.read_text())
    assert set(told["folds"]) == {"one", "two"}
    assert set(told["weights"]) == set(LEARNED)
    assert told["systems"]["refitted, LOCO"]["overall"]["R@10"]["mean"] == 100.0
    assert "linear6" in capsys.readouterr().out


def test_one_conversation_is_not_enough(talks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talks.write_text(json.dumps(json.loads(talks.read_text())[:1]))
    assert learn_weights.main([str(talks), "--embedder", "standin"]) == 2
    assert "two conversations" in capsys.readouterr().err
