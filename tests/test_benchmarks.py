"""The benchmark of recall: its metrics by hand, hits as turns, and a run on a tiny conversation."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DIM, opened

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import ablation
import locomo
from locomo_baselines import BM25, DENSE, FUSION, LINEAR6, bm25, fuse, order, score_turns, terms
from locomo_metrics import difference, interval, metric_names, recall, score
from locomo_support import (
    INGESTED,
    READER,
    Conversation,
    KeptEmbedder,
    TurnsOf,
    ask,
    ingest,
    read_conversations,
)

import reverie
from reverie import SimulatedClock
from reverie.actors import commands as c
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.views import Item
from reverie.models.protocol import Float32, TextRole
from reverie.models.standin import HashEmbedder

KS = (1, 2, 4)

# -- a tiny conversation ------------------------------------------------------------------


def turn(speaker: str, number: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": number, "text": text, **fields}


def question(text: str, category: int, *evidence: str) -> dict[str, Any]:
    return {"question": text, "category": category, "evidence": list(evidence), "answer": "?"}


TALK = {
    "sample_id": "tiny",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            turn("Ana", "D1:1", "The bees survived the winter, all four hives of them."),
            turn("Bo", "D1:2", "How many jars of honey did you sell at the market?"),
            turn("Ana", "D1:3", "Nineteen, and two more to my neighbour."),
            turn("Bo", "D1:4", "I broke my arm skating on the canal.", blip_caption="a red cast"),
        ],
        "session_2_date_time": "12:05 am on 2 June, 2023",
        "session_2": [
            turn("Bo", "D2:1", "The cast is off at last. 石膏终于拆了。"),
            turn("Ana", "D2:2", "Wonderful! Shall we cycle to the lighthouse on Sunday?"),
            turn("Bo", "D2:3", "Yes, and I will bring the plum cake that my aunt baked."),
        ],
    },
    "qa": [
        question("How many jars of honey did Ana sell at the market?", 4, "D1:3", "D1:2"),
        question("Who baked the plum cake?", 1, "D2:3"),
        question("When did Bo have a cast?", 2, "D1:4; D2:1"),
        question("Is Ana fond of animals?", 3, "D1:1"),
        question("What colour is the submarine?", 5, "D1:1"),
        question("Who is the mayor?", 4),
    ],
}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.json"
    other = {**TALK, "sample_id": "again"}
    path.write_text(json.dumps([TALK, other]), encoding="utf-8")
    return path


@pytest.fixture
def talk(tiny: Path) -> Conversation:
    return read_conversations(tiny)[0]


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[reverie.Runtime]:
    with opened(tmp_path / "data", clock=SimulatedClock()) as rt:
        yield rt


def test_what_can_be_scored_is_read(talk: Conversation) -> None:
    assert [t.external_id for t in talk.turns] == [
        *("D1:1", "D1:2", "D1:3", "D1:4"),
        *("D2:1", "D2:2", "D2:3"),
    ]
    assert talk.turns[3].text.endswith("[shared image: a red cast]")
    assert [q.evidence for q in talk.questions] == [
        ("D1:3", "D1:2"),
        ("D2:3",),
        ("D1:4", "D2:1"),
        ("D1:1",),
    ]
    assert (talk.left_out, talk.unscored) == (0, 1)


def test_a_turn_that_cannot_be_used_is_counted_where_it_is(tmp_path: Path) -> None:
    broken = json.loads(json.dumps([TALK, {**TALK, "sample_id": "again"}]))
    broken[1]["conversation"]["session_2"][2]["text"] = "  "
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken), encoding="utf-8")
    first, second = read_conversations(path)
    assert (first.left_out, len(first.turns)) == (0, 7)
    assert (second.left_out, len(second.turns)) == (1, 6)


def test_a_file_that_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    path.write_text(json.dumps([TALK, TALK]), encoding="utf-8")
    with pytest.raises(InvalidValueError, match="twice"):
        read_conversations(path)
    path.write_text(json.dumps({**TALK, "qa": TALK["qa"][4:]}), encoding="utf-8")  # type: ignore[index]
    with pytest.raises(InvalidValueError, match="evidence"):
        read_conversations(path)


# -- metrics --------------------------------------------------------------------------------


def test_metrics_by_hand() -> None:
    assert metric_names(KS) == ("R@1", "R@2", "R@4", "nDCG@10", "all@10")
    # Evidence at ranks 2 and 4, a third is not found.
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert gain / best == pytest.approx(0.49819, abs=1e-5)
    found = score(["a", "b", "c", "d", "e"], ["b", "d", "x"], KS)
    assert found == pytest.approx((0, 1 / 3, 2 / 3, gain / best, 0))
    assert score(["a", "b"], ["b", "a"], KS) == (0.5, 1, 1, 1, 1)
    assert score([], ["a"], KS) == (0, 0, 0, 0, 0)
    assert recall(["a", "b", "b"], ["b", "c"]) == 0.5


def test_only_the_first_ten_count_for_ndcg_and_all() -> None:
    ranked = [f"t{i}" for i in range(20)]
    assert score(ranked, ["t9"], (20,)) == pytest.approx((1, 1 / math.log2(11), 1))
    assert score(ranked, ["t10"], (20,)) == (1, 0, 0)
    # The ideal has ten ranks at most; eleven turns never fit into ten.
    assert score(ranked, ranked[:11], (10,)) == pytest.approx((10 / 11, 1, 0))


def test_a_question_without_evidence_and_a_turn_ranked_twice_are_refused() -> None:
    for ranked, gold in ((["a"], []), (["a", "a"], ["a"])):
        with pytest.raises(ValueError, match="evidence"):
            score(ranked, gold, KS)


def test_an_interval_is_that_of_the_mean() -> None:
    same = interval(np.full(30, 0.25))
    assert (same.mean, same.low, same.high, same.count) == (25, 25, 25, 30)
    # Of 400 coins half are heads: the standard error of the mean is 0.5 / 20, of which 1.96 go.
    coins = np.array([0.0, 1.0] * 200)
    found = interval(coins)
    assert found.mean == 50
    assert found.low == pytest.approx(50 - 4.9, abs=0.5)
    assert found.high == pytest.approx(50 + 4.9, abs=0.5)
    assert interval(coins) == found


def test_a_difference_is_paired() -> None:
    hard = np.array([0.0, 1.0] * 50)
    better = difference(hard * 0.9 + 0.1, hard * 0.9)  # apart, their intervals overlap
    assert (better.low, better.mean, better.high) == pytest.approx((10, 10, 10))
    assert interval(hard * 0.9 + 0.1).low < interval(hard * 0.9).high
    one_of_a_hundred = hard.copy()
    one_of_a_hundred[0] = 1
    lucky = difference(one_of_a_hundred, hard)
    assert lucky.mean == pytest.approx(1)
    assert lucky.low == 0  # does not hold at 95%


# -- baselines ------------------------------------------------------------------------------


def test_words_are_stemmed_and_stop_words_dropped() -> None:
    assert terms("What's the runner running to, in 2023?") == ["runner", "run", "2023"]


def test_bm25_by_hand() -> None:
    scores = bm25(["cat sat", "Cats, cats! Dog?", "bird"], ["the cat", "bird", "fish"])
    rare = math.log(2.5 / 1.5)
    often = 0.25 * (3 * rare - rare) / 4  # cat is in two of three texts: its own would be -rare
    assert scores[0] == pytest.approx([often, often * 2 * 2.5 / (2 + 1.5 * 1.375), 0])
    assert scores[1] == pytest.approx([0, 0, rare * 2.5 / (1 + 1.5 * 0.625)])
    assert not scores[2].any()


def test_rank_fusion_by_hand() -> None:
    fused = fuse([np.array([3.0, 1.0, 2.0]), np.array([0.0, 5.0, 1.0])])
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 63 + 1 / 61, 1 / 62 + 1 / 62])


def test_equal_scores_stay_in_the_order_of_the_turns() -> None:
    assert order(np.array([1.0, 2.0, 1.0, 2.0])) == [1, 3, 0, 2]


def test_every_baseline_scores_every_turn(talk: Conversation) -> None:
    asked = [q.question for q in talk.questions]
    embedded: list[int] = []
    scores = score_turns(talk.turns, asked, HashEmbedder(DIM), embedded.append)
    assert sum(embedded) == 2 * 7 + 4
    assert set(scores) == {BM25, DENSE, FUSION, LINEAR6}
    assert all(matrix.shape == (4, 7) for matrix in scores.values())
    assert order(scores[BM25][1])[0] == order(scores[FUSION][1])[0] == 6
    assert order(scores[LINEAR6][0])[:2] == [1, 2]  # the question that was asked, and its answer


def test_linear6_by_hand() -> None:
    class Dated(HashEmbedder):  # only one text is like the question, and only with its date
        def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
            like = [role == "query" or t == f"({date}) Ana: Plum cake." for t in texts]
            return np.array([[float(x), float(not x)] for x in like], np.float32)

    date = "12:05 am on 2 June, 2023"

    said = [
        ("s1", "Ana", "The bees woke early."),
        ("s1", "Bo", "And the honey?"),
        ("s2", "Ana", "Plum cake."),
        ("s2", "Bo", "With honey, of course, and with bees on the icing."),
        ("s2", "Jo", "Nice."),
    ]
    at = datetime(2023, 6, 2, 0, 5, tzinfo=UTC).timestamp()
    turns = [TurnDraft(text, session, speaker, said_at=at) for session, speaker, text in said]
    asked = ["Was there honey for Bo?"]
    texts = [f"{speaker}: {text}" for _, speaker, text in said]
    previous = [
        texts[0],
        f"{texts[0]} {texts[1]}",
        texts[2],
        f"{texts[2]} {texts[3]}",
        f"{texts[3]} {texts[4]}",
    ]
    sessions = bm25([" ".join(texts[:2]), " ".join(texts[2:])], asked)[0]
    parts = [bm25(texts, asked)[0], bm25(previous, asked)[0], sessions[[0, 0, 1, 1, 1]]]
    lengths = np.log(1 + np.array([5, 4, 3, 11, 2]))
    expected = sum(part / part.max() if part.max() > 0 else part for part in parts)
    expected = expected + 1.5 * np.array([0, 1, 0, 1, 0])
    expected += 0.2 * (lengths - lengths.mean()) / lengths.std()
    expected += (np.array([0, 0, 1, 0, 0]) - 0.2) / 0.4 / 5
    scores = score_turns(turns, asked, Dated(DIM))
    assert scores[LINEAR6][0] == pytest.approx(expected)
    assert not scores[DENSE].any()


# -- hits as turns --------------------------------------------------------------------------


def test_every_kind_of_hit_stands_for_turns(rt: reverie.Runtime) -> None:
    user = rt.user(READER)
    ids = user.add(
        [{"text": f"Bo said this, number {i}.", "id": f"D1:{i}", "speaker": "Bo"} for i in (1, 2)],
        infer=False,
    ).ids
    user.add("Not of the file.", infer=False)
    first = user.remember("Bo keeps bees.", sources=[ids[1]], entities=["Bo"]).memory_id
    second = user.remember(
        "Bo likes honey. 蜂蜜", sources=[ids[0], first], entities=["honey"]
    ).memory_id
    alone = user.remember("Nobody said it.", entities=["Nobody"]).memory_id
    summary = rt.call(
        c.Summarise(
            **user._write(None),
            text="They talked.",
            session=None,
            sources=(second, ids[1]),
            from_at=0.0,
            to_at=1.0,
        )
    )
    turns_of = TurnsOf(user)

    def of(node_id: str) -> tuple[str, ...]:
        return turns_of(user.get(node_id))

    assert of(ids[0]) == ("D1:1",)
    assert of(first) == ("D1:2",)
    assert of(second) == ("D1:1", "D1:2")  # by way of a memory too, each once
    assert of(summary) == ("D1:1", "D1:2")
    assert of(alone) == ()
    assert turns_of.of_entity("honey") == ("D1:1", "D1:2")
    assert turns_of.of_entity("Bo") == ("D1:2",)
    assert turns_of.of_entity("Nobody") == ()
    plain = next(hit for hit in user.search("Not of the file") if hit.text == "Not of the file.")
    assert turns_of(plain) == ()


def test_sources_that_go_round_come_to_an_end() -> None:
    class Round:
        def get(self, node_id: str) -> Item:
            fields: dict[str, Any] = {"type": "summary", "text": "", "at": 0.0, "recorded_at": 0.0}
            return Item(id=node_id, sources=("y2" if node_id == "y1" else "y1",), **fields)

    user: Any = Round()
    assert TurnsOf(user)(user.get("y1")) == ()


# -- asking ---------------------------------------------------------------------------------


def test_turns_are_stored_as_they_were_said(tmp_path: Path, talk: Conversation) -> None:
    clock = SimulatedClock()
    with opened(tmp_path / "data", clock=clock) as rt:
        stored: list[int] = []
        ingest(rt, clock, talk, stored.append)
        assert stored == [4, 3]  # a session at a time
        user = rt.user(READER, "tiny")
        for said in talk.turns:
            kept = user.get(str(said.external_id))
            assert (kept.text, kept.speaker, kept.session) == (
                said.text,
                said.speaker,
                said.session,
            )
            assert kept.at == kept.recorded_at == said.said_at
        assert user.stats().memories == 0


def test_asking_changes_nothing_and_gives_what_search_gives(
    tmp_path: Path, talk: Conversation
) -> None:
    clock = SimulatedClock()
    with opened(tmp_path / "data", clock=clock) as rt:
        user = with_memories(rt, clock, talk, ["The plum cake was baked by the aunt of Bo."])
        before = user.digest()
        ranked = ask(rt, clock, talk, 5)
        assert user.digest() == before
        assert ask(rt, clock, talk, 5) == ranked
        turns_of = TurnsOf(user)
        for question, turns in zip(talk.questions, ranked, strict=True):
            hits = user.search(question.question, limit=5, as_of=rt.now())
            found = dict.fromkeys(turn for hit in hits for turn in turns_of(hit))
            assert turns[: len(found)] == list(found)
            assert len(turns) >= 5
        assert user.digest() == before
        user.search("Who baked the plum cake?")  # leaves a trace, which `ask` takes away
        assert user.digest() != before


def test_hits_of_one_turn_are_asked_beyond(tmp_path: Path, talk: Conversation) -> None:
    """Five memories of one turn outrank all others: a ranking of five turns needs more hits."""
    clock = SimulatedClock()
    texts = [f"Who baked the plum cake? {word}" for word in ("plum", "cake", "aunt", "who", "bo")]
    with opened(tmp_path / "data", clock=clock) as rt:
        user = with_memories(rt, clock, talk, texts)
        hits = user.search("Who baked the plum cake?", limit=5, as_of=rt.now())
        assert [hit.type for hit in hits].count("memory") >= 4
        ranked = ask(rt, clock, talk, 5)[1]
        assert ranked[0] == "D2:3"
        assert len(ranked) >= 5


def with_memories(
    rt: reverie.Runtime, clock: SimulatedClock, talk: Conversation, texts: Sequence[str]
) -> reverie.User:
    """Ingest the talk, with memories that derive from its last turn."""
    ingest(rt, clock, talk, lambda _: None)
    rt.drop_checkpoint(INGESTED, talk.name)
    user = rt.user(READER, talk.name)
    source = user.get(str(talk.turns[-1].external_id)).id
    for text in texts:
        user.remember(text, sources=[source], importance=1.0)
    rt.checkpoint(INGESTED, talk.name)
    return user


# -- the programs ---------------------------------------------------------------------------


def test_the_benchmark_runs_and_its_dump_gives_its_figures(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, dump = tmp_path / "out.json", tmp_path / "hits.jsonl"
    arguments = [str(tiny), "--embedder", "standin", "--k", "3,1", "--budget", "60"]
    assert locomo.main([*arguments, "--json", str(out), "--dump", str(dump)]) == 0
    told = json.loads(out.read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in dump.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 8
    for k in (1, 3):
        by_hand = [len({*row["gold"]} & {*row["ranked"][:k]}) / len(row["gold"]) for row in lines]
        shown = told["systems"]["reverie"]["overall"][f"R@{k}"]
        assert shown["mean"] == pytest.approx(100 * sum(by_hand) / 8)
        assert shown["low"] <= shown["mean"] <= shown["high"]
    multi_hop = [row["ranked"][0] in row["gold"] for row in lines if row["category"] == 1]
    assert told["systems"]["reverie"]["multi-hop"]["R@1"]["mean"] == 100 * sum(multi_hop) / 2
    categories = ("single-hop", "multi-hop", "temporal", "open-domain")
    assert told["questions"] == {**dict.fromkeys(categories, 2), "overall": 8}
    assert (told["turns"], told["questions_without_evidence"]) == (14, 2)
    assert set(told["systems"]) == {"BM25", "dense", "rank fusion", "linear6", "reverie"}
    for system, parts in told["differences"].items():
        ours, theirs = (told["systems"][s]["overall"]["R@1"]["mean"] for s in ("reverie", system))
        assert parts["overall"]["R@1"]["mean"] == pytest.approx(ours - theirs)
    assert 0 < told["context"]["overall"]["tokens"] <= 60
    assert told["context"]["overall"]["evidence in it"] > 0
    printed = capsys.readouterr().out
    for words in ("linear6", "R@3", "nDCG@10", "overall", "evidence in it", "2 single-hop"):
        assert words in printed


def test_a_file_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for program in (locomo, ablation):
        assert program.main([str(tmp_path / "none.json"), "--embedder", "standin"]) == 2
        assert "none.json" in capsys.readouterr().err


def test_vectors_are_kept_between_runs(tmp_path: Path) -> None:
    class Counting(HashEmbedder):
        asked = 0

        def embed(self, texts: Any, role: TextRole) -> Float32:
            Counting.asked += len(texts)
            return super().embed(texts, role)

    first = KeptEmbedder(Counting(DIM), tmp_path / "vectors")
    rows = first.embed(["bees", "蜜蜂", "bees"], "passage")
    assert Counting.asked == 2
    first.close()
    second = KeptEmbedder(Counting(DIM), tmp_path / "vectors")
    assert (second.embed(["bees", "蜜蜂", "bees"], "passage") == rows).all()
    assert (rows == HashEmbedder(DIM).embed(["bees", "蜜蜂", "bees"], "passage")).all()
    assert Counting.asked == 2
    second.embed(["bees"], "query")  # another role may have another prefix
    assert Counting.asked == 3
    KeptEmbedder(HashEmbedder(DIM * 2), tmp_path / "vectors").embed(["bees"], "query")  # own file


def test_the_ablation_switches_every_signal_off(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    arguments = [str(tiny), "--embedder", "standin", "--k", "1,2", "--json", str(out)]
    assert ablation.main(arguments) == 0
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert [row["signal"] for row in rows] == [ablation.FULL, *ablation.weights()]
    assert {row["signal"]: row["weight"] for row in rows[1:]} == ablation.weights()
    assert locomo.main([*arguments]) == 0
    full = json.loads(out.read_text(encoding="utf-8"))["systems"]["reverie"]
    for part, means in rows[0]["means"].items():
        assert means == pytest.approx({m: full[part][m]["mean"] for m in means})
    assert all(d["mean"] == 0 for d in rows[0]["differences"]["overall"].values())
    for row in rows[1:]:
        for metric, change in row["differences"]["overall"].items():
            less = row["means"]["overall"][metric] - rows[0]["means"]["overall"][metric]
            assert change["mean"] == pytest.approx(less)
    assert any(d["mean"] for row in rows[1:] for d in row["differences"]["overall"].values())
    printed = capsys.readouterr().out
    assert all(name in printed for name in ablation.weights())


def test_a_signal_that_stays_in_the_score_stops_the_ablation(
    tmp_path: Path, talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimulatedClock()
    with opened(tmp_path / "data", clock=clock) as rt:
        ingest(rt, clock, talk, lambda _: None)
        with ablation.switched_off("words"):
            ablation.require_off(rt, clock, talk, "words")
        with pytest.raises(RuntimeError, match="words was switched off"):
            ablation.require_off(rt, clock, talk, "words")
    monkeypatch.setattr(ablation, "switched_off", lambda _: nullcontext())
    with pytest.raises(RuntimeError, match="switched off"):
        ablation.run([talk], HashEmbedder(DIM), (1,))
