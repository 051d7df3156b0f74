"""The benchmark beside other systems: its texts, its counting, and small runs of the program.

The run with mem0 needs REVERIE_MEM0_PYTHONS, as tests/mem0_facade/test_differential.py does, and
the one with spaCy REVERIE_MEM0_NLP_PYTHON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DIM

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import peers
import peers_one
from peers_texts import MOST, make_facts
from peers_vectors import ask_server, live_questions, read_table, serve, write_table

from reverie.models.standin import HashEmbedder

MEM0 = os.environ.get("REVERIE_MEM0_PYTHONS", "").split(":")[0]
NLP = os.environ.get("REVERIE_MEM0_NLP_PYTHON", "")
SMALL = ["--embedder", "standin", "--memories", "60", "--questions", "30", "--clients", "4"]
SMALL += ["--adds", "5", "--concurrent", "12", "--mixed", "40", "--kills", "1"]


def test_every_statement_answers_one_question() -> None:
    facts = make_facts(MOST, seed=3)
    assert len({fact.text for fact in facts}) == len({fact.question for fact in facts}) == MOST
    assert Counter(fact.language for fact in facts) == {"en": MOST // 2, "zh": MOST // 2}
    assert all(("一" <= fact.text[0] <= "鿿") == (fact.language == "zh") for fact in facts)
    with pytest.raises(ValueError, match=str(MOST)):
        make_facts(MOST + 1, seed=3)


def test_statements_are_those_of_the_seed() -> None:
    assert make_facts(50, seed=1) == make_facts(50, seed=1)
    assert make_facts(50, seed=1) != make_facts(50, seed=2)
    # Of each person there are others, or a name alone would find the answer.
    names = Counter(f.text.split()[1] for f in make_facts(400, seed=1) if f.language == "en")
    assert min(names.values()) >= 2


def test_what_is_lost_and_doubled_by_hand() -> None:
    there = ["a", "b", "b", "b", "d", "d"]
    assert peers_one.lost_and_doubled(["a", "b", "c"], there) == (1, 2)
    assert peers_one.lost_and_doubled(["a"], there) == (0, 0)
    assert peers_one.lost_and_doubled(["a", "b"], None) == (2, 0)


def test_ratios_by_hand() -> None:
    one, many = "search, one client: searches/s", "search, 4 in one call: searches/s"
    ours = {one: 300.0, many: 1500.0, "adds: adds/s": 1.0}
    theirs = {one: 200.0, many: None, "adds: adds/s": 9.0}
    found = peers.ratios({"systems": {"reverie": ours, "mem0": theirs}})
    assert found == {one: 1.5, "search, the fastest way of each": 7.5}
    alone, threads = "mixed, one client: searches/s", "mixed, 4 threads: searches/s"
    mixed = peers.ratios(
        {"systems": {"reverie": {alone: 90.0, threads: 120.0}, "mem0": {alone: 30.0}}}  # crashed
    )
    assert mixed == {alone: 3.0, "searches beside adds, the faster way of each": 4.0}
    assert peers.ratios({"systems": {"reverie": ours, "other": theirs}}, "other") == found
    assert peers.ratios({"systems": {"reverie": ours}}) == {}


def test_both_ways_give_the_vectors_of_the_model(tmp_path: Path) -> None:
    model: Any = HashEmbedder(DIM)
    texts = ["Ana keeps bees.", "安娜养蜂"]
    assert write_table(tmp_path, model.embed, texts, ["Who keeps bees?"]) == DIM
    looked_up = read_table(tmp_path)
    end_serving = serve(str(tmp_path / "socket"), model.embed)
    asked = ask_server(str(tmp_path / "socket"), DIM)
    for embed in (looked_up, asked):
        assert (embed(texts[::-1], "passage") == model.embed(texts[::-1], "passage")).all()
        assert embed(["Who keeps bees?"], "query").dtype == np.float32
    with pytest.raises(KeyError):
        looked_up(["Who keeps bees?"], "passage")
    both = live_questions(looked_up, asked)
    assert (both(["安娜养蜂"], "passage") == looked_up(["安娜养蜂"], "passage")).all()
    assert (both(["谁养蜂?"], "query") == model.embed(["谁养蜂?"], "query")).all()
    end_serving()


def run(tmp_path: Path, *more: str) -> list[dict[str, Any]]:
    out = tmp_path / "out.json"
    status = peers.main([*SMALL, *more, "--json", str(out)])
    told: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    ratio = told[0]["ratios"].get("mem0", {}).get(peers.FASTEST_MIXED, 9)
    assert status == (1 if ratio < 5 else 0)
    return told


def losses(figures: dict[str, Any]) -> dict[str, list[int]]:
    return {name: counts for name, counts in figures.items() if "lost, doubled" in name}


def test_reverie_loses_nothing_and_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (told,) = run(tmp_path)
    figures = told["systems"]["reverie"]
    assert all(counts == [0, 0] for counts in losses(figures).values()), figures
    assert len(losses(figures)) == 7
    assert figures["mixed, one client: calls"] == figures["mixed, 4 threads: calls"] == 40
    assert "mixed, 4 threads: errors" not in figures
    assert figures["12 adds at once: errors"] == 0
    assert figures["12 adds at once: not found by their own words"] == 0
    assert figures["1 kills: acknowledged before them"] >= 1
    assert figures["recall@10, en, %"] > 50
    assert figures["recall@10, zh, %"] > 50
    assert told["left_out"]["mem0"] == "no --mem0-python"
    assert told["left_out"]["mem0_nlp"] == "no --mem0-nlp-python"
    assert set(told["ratios"]) <= {"langgraph"}
    if find_spec("langgraph") is not None:  # keeps nothing on disk, and that has to be seen
        other = losses(told["systems"]["langgraph"])
        assert other["12 adds at once: lost, doubled"] == [0, 0]
        assert other["12 adds at once: lost, doubled after reopening"] == [12, 0]
    printed = capsys.readouterr().out
    for words in ("recall@10, zh", "load average", "left out: mem0", "lost and doubled"):
        assert words in printed


def test_the_model_can_run_live_and_slow_systems_get_fewer_questions(tmp_path: Path) -> None:
    more = ["--kills", "0", "--langgraph-python", "/nowhere/python", "--seconds", "0"]
    told = run(tmp_path, "--modes", "table", "shared", *more)
    assert [one["mode"] for one in told] == ["table", "shared"]
    for one in told:
        assert one["left_out"]["langgraph"]
        figures = one["systems"]["reverie"]
        assert figures["questions of each way of asking"] == 4  # as many as there are clients
        assert figures["search, one client: searches/s"] > 0
    assert "adds, one at a time: adds/s" in told[0]["systems"]["reverie"]
    assert "adds, one at a time: adds/s" not in told[1]["systems"]["reverie"]


@pytest.mark.skipif(not MEM0, reason="needs REVERIE_MEM0_PYTHONS")
def test_mem0_runs_beside_it(tmp_path: Path) -> None:
    (told,) = run(tmp_path, "--mem0-python", MEM0, "--kills", "0")
    figures = told["systems"]["mem0"]
    assert figures["name"].startswith("mem0 2.")
    assert figures["recall@10, en, %"] > 50
    assert figures["on disk, MiB"] > 0
    assert told["ratios"]["mem0"]["search, one client: searches/s"] > 0


@pytest.mark.skipif(not NLP, reason="needs REVERIE_MEM0_NLP_PYTHON")
def test_mem0_with_spacy_runs_beside_it(tmp_path: Path) -> None:
    (told,) = run(tmp_path, "--mem0-nlp-python", NLP, "--kills", "0")
    figures = told["systems"]["mem0_nlp"]
    assert "with spaCy" in figures["name"]
    assert figures["recall@10, en, %"] > 50
    assert "texts of its own that had no vector" not in figures
