"""Recall over a Chinese conversation, of questions that share words with the answer and that don't.

The turns of `tests/data/zh_talk.json` are the units; a question finds what share of its evidence
is among the first k. Five rankings of the same turns in one run:
- words: BM25 over pairs of characters, reverie's `WordIndex`;
- dense: cosines of the embedder alone, each turn by itself;
- fusion: both scores in standard deviations over the turns of the conversation, summed; once with
  equal weights, once with the weight of the dense one that was best on split a;
- search: `User.search`, through the public API, on turns stored as they are (`infer=False`), at
  the time at which the file says that it is asked.

    python benchmarks/zh_recall.py [FILE] [--split a|b] [--models FOLDER] [--json OUT]

Learn weights on split a and report on split b.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from locomo_metrics import metric_names, score
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import reverie
from reverie.clock import SimulatedClock
from reverie.formats import TurnRecord, read_turns
from reverie.memory_graph.words import WordIndex
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder
from reverie.models.embedders import open_embedder

ROOT = Path(__file__).resolve().parent.parent
TALK = ROOT / "tests" / "data" / "zh_talk.json"
DEPTH = 10  # turns of a ranking that are kept
# Of 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16 and 24, by nDCG@10 on split a; the words have 1. It is a
# flat top: from 4 to 24 the figure moves by a point.
DENSE_WEIGHT = 8.0
BATCH = 32  # texts embedded between two reports
EACH = ("kind", "category", "split")  # what the figures are also given by

Ranking: TypeAlias = Callable[[str], list[str]]  # question -> turn ids, best first
Scores: TypeAlias = NDArray[np.float64]
CUTS = (5, 10)  # of the recall
METRICS = metric_names(CUTS)


class Question(NamedTuple):
    """A question of the file, and how the figures group it."""

    text: str
    evidence: tuple[str, ...]
    groups: Mapping[str, str]


def main() -> int:
    """Rank for every question, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=TALK)
    parser.add_argument("--split", choices=("a", "b"), help="ask this half alone")
    parser.add_argument("--embedder", default="multilingual")
    parser.add_argument("--models", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None, help="write figures and rankings here")
    args = parser.parse_args()
    talk = json.loads(args.file.read_text(encoding="utf-8"))
    questions = [q for q in read(talk) if args.split in (None, q.groups["split"])]
    records = list(read_turns(args.file))
    embedder = CachedEmbedder(open_embedder(args.embedder, args.models or default_folder()))
    asked_at = datetime.fromisoformat(talk["asked_at"]).timestamp()
    try:
        systems = baselines(records, embedder)
        with (
            tempfile.TemporaryDirectory() as folder,
            reverie.open(
                folder, embedder=embedder, extractor="off", clock=SimulatedClock(asked_at)
            ) as rt,
        ):
            systems["search"] = stored(rt.user("talk"), records)
            found = ask(systems, questions)
    finally:
        embedder.close()
    figures = {name: grouped(questions, ranked) for name, ranked in found.items()}
    show(figures)
    if args.json:
        result = {
            "file": args.file.name,
            "embedder": args.embedder,
            "figures": figures,
            "rankings": [
                {
                    "question": q.text,
                    "evidence": q.evidence,
                    **q.groups,
                    **{name: ranked[i] for name, ranked in found.items()},
                }
                for i, q in enumerate(questions)
            ],
        }
        args.json.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return 0


def read(talk: Mapping[str, Any]) -> list[Question]:
    """Return the questions of a file."""
    return [
        Question(qa["question"], tuple(qa["evidence"]), {name: str(qa[name]) for name in EACH})
        for qa in talk["qa"]
    ]


# -- rankings ----------------------------------------------------------------------------


def baselines(records: Sequence[TurnRecord], embedder: reverie.Embedder) -> dict[str, Ranking]:
    """Return the rankings that know nothing but the text of each turn."""
    ids = [record.turn.external_id or "" for record in records]
    texts = [record.turn.text for record in records]
    words = WordIndex()
    words.add_many(zip(ids, texts, strict=True))
    parts = []
    for start in range(0, len(texts), BATCH):
        parts.append(embedder.embed(texts[start : start + BATCH], "passage"))
        _progress("embedding the turns", start + BATCH, len(texts))
    vectors = np.concatenate(parts)

    def by_words(question: str) -> Scores:
        return words.score(question, ids).astype(np.float64)

    def by_meaning(question: str) -> Scores:
        return np.asarray(vectors @ embedder.embed([question], "query")[0], np.float64)

    def by_both(question: str, dense_weight: float) -> Scores:
        meaning = _standard(by_meaning(question))
        return _standard(by_words(question)) + dense_weight * meaning

    def ranking(scored: Callable[[str], Scores]) -> Ranking:
        return lambda question: _best(ids, scored(question))

    return {
        "words": ranking(by_words),
        "dense": ranking(by_meaning),
        "fusion 1:1": ranking(partial(by_both, dense_weight=1.0)),
        f"fusion 1:{DENSE_WEIGHT:g}": ranking(partial(by_both, dense_weight=DENSE_WEIGHT)),
    }


def _standard(scores: Scores) -> Scores:
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread else scores * 0.0


def _best(ids: Sequence[str], scores: Scores) -> list[str]:
    """Return the ids of the best scores; equal ones in the order of the talk."""
    return [ids[i] for i in np.argsort(-scores, kind="stable")[:DEPTH]]


def stored(user: reverie.User, records: Sequence[TurnRecord]) -> Ranking:
    """Store the turns as they are, and return how the public search ranks them."""
    turn_of: dict[str, str] = {}
    for start in range(0, len(records), BATCH):
        turns = [record.turn for record in records[start : start + BATCH]]
        added = user.add(
            [
                {
                    "text": turn.text,
                    "id": turn.external_id,
                    "speaker": turn.speaker,
                    "session": turn.session,
                    "time": turn.said_at,
                }
                for turn in turns
            ],
            infer=False,
        )
        pairs = zip(added.ids, turns, strict=True)
        turn_of.update((node, turn.external_id or "") for node, turn in pairs)
        _progress("storing the turns", start + BATCH, len(records))

    def search(question: str) -> list[str]:
        nodes = (node for hit in user.search(question, limit=DEPTH) for node in _turns(hit))
        return list(dict.fromkeys(turn_of[node] for node in nodes if node in turn_of))[:DEPTH]

    return search


def _turns(hit: reverie.Hit) -> Sequence[str]:
    """Return the nodes that a hit stands for: a turn for itself, others for their sources."""
    return [hit.id] if hit.type == "message" else hit.sources


# -- figures -----------------------------------------------------------------------------


def ask(
    systems: Mapping[str, Ranking], questions: Sequence[Question]
) -> dict[str, list[list[str]]]:
    """Return what each system ranks for each question."""
    found: dict[str, list[list[str]]] = {name: [] for name in systems}
    for done, question in enumerate(questions, 1):
        for name, rank in systems.items():
            found[name].append(rank(question.text))
        _progress("asking", done, len(questions))
    return found


def grouped(
    questions: Sequence[Question], ranked: Sequence[Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Return the mean figures, in percent, of all questions and of each group of them.

    A group is named like "kind literal" or "kind literal, split b".
    """
    rows: dict[str, list[tuple[float, ...]]] = {}
    for question, turns in zip(questions, ranked, strict=True):
        groups, row = question.groups, score(turns, question.evidence, CUTS)
        names = [f"{name} {value}" for name, value in groups.items()]
        for name in ("all", *names, f"kind {groups['kind']}, split {groups['split']}"):
            rows.setdefault(name, []).append(row)
    return {
        name: {
            "questions": len(group),
            **{
                metric: round(100 * float(mean), 1)
                for metric, mean in zip(METRICS, np.mean(group, axis=0), strict=True)
            },
        }
        for name, group in sorted(rows.items())
    }


def show(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Print a row for each system and kind of question."""
    table = Table("ranking", "questions", "", *METRICS, title="Chinese recall")
    for name, groups in figures.items():
        for group in (g for g in groups if "," not in g):
            row = groups[group]
            values = (f"{row[metric]:.1f}" for metric in METRICS)
            table.add_row(name, group, f"{row['questions']:.0f}", *values)
        table.add_section()
    Console(width=100).print(table)


def _progress(what: str, done: int, total: int) -> None:
    end = "\n" if done >= total else "\r"
    print(f"{what}: {min(done, total):,} of {total:,}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
