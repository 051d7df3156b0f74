"""Learn the weights of questions in Chinese on half of the Chinese talk; report on the other half.

    python benchmarks/learn_weights_zh.py [FILE] [--models FOLDER] [--json OUT]

As learn_weights.py does, but with so few questions that the weights are held to the English table:
the penalty is `l2` times the square of their distance from it (on the scale that fits best). How
strong it is, is chosen by five-fold cross-validation on split a. Split b has no say in anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from learn_weights import LEARNED, Asked, candidates, collect, fit, weighted
from locomo_metrics import difference
from locomo_support import (
    INGESTED,
    READER,
    Conversation,
    Scored,
    TurnsOf,
    ingest,
    progress,
    read_conversations,
    signed,
)
from rich.console import Console
from rich.table import Table
from zh_recall import CUTS, DEPTH, TALK

import reverie
from reverie import SimulatedClock
from reverie.memory_graph.signals import HAN_WEIGHTS, WEIGHTS
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder
from reverie.models.embedders import open_embedder

UNIT = LEARNED.index("meaning")
PENALTIES = (0.1, 0.03, 0.01, 0.003, 0.001)
FOLDS = 5
ENGLISH, LEARNED_A, COMMITTED = "English table", "learned on a", "committed"


def main() -> int:
    """Learn, and print the weights and both figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=TALK)
    parser.add_argument("--embedder", default="multilingual")
    parser.add_argument("--models", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None, help="write the weights here")
    args = parser.parse_args()
    talk = json.loads(args.file.read_text(encoding="utf-8"))
    split_of = {qa["question"]: qa["split"] for qa in talk["qa"]}
    asked_at = datetime.fromisoformat(talk["asked_at"]).timestamp()
    (whole,) = read_conversations(args.file)
    first, second = (
        Conversation(
            whole.name, whole.turns, [q for q in whole.questions if split_of[q.question] == s], 0, 0
        )
        for s in "ab"
    )
    embedder = CachedEmbedder(open_embedder(args.embedder, args.models or default_folder()))
    clock = SimulatedClock()
    total = len(whole.turns) + len(whole.questions)
    with (
        progress(total) as step,
        tempfile.TemporaryDirectory() as folder,
        reverie.open(folder, embedder=embedder, clock=clock) as rt,
    ):
        ingest(rt, clock, whole, step("ingesting"))
        asked = collect(rt, clock, first, step("collecting split a"), asked_at)
        penalty, tried = choose(asked)
        learned = learn(asked, penalty)
        tables = {ENGLISH: dict(WEIGHTS), LEARNED_A: learned, COMMITTED: dict(HAN_WEIGHTS)}
        found = {
            (part, name): Scored(one.questions, rank(rt, clock, one, asked_at, table), CUTS)
            for part, one in (("a", first), ("b", second))
            for name, table in tables.items()
        }
    embedder.close()
    show(tables, tried, penalty, found)
    if args.json is not None:
        rounded = {name: round(learned[name], 2) for name in LEARNED}
        args.json.write_text(json.dumps({"l2": penalty, "weights": rounded}, indent=1), "utf-8")
    return 0


def learn(questions: Sequence[Asked], penalty: float) -> dict[str, float]:
    """Return a whole table of weights, near to the English one, on the scale of `meaning`."""
    english = np.array([WEIGHTS[name] for name in LEARNED])
    rows = [candidates(one, english) for one in questions]
    signals = [one.signals[at] for one, at in zip(questions, rows, strict=True)]
    gold = [one.gold[at] for one, at in zip(questions, rows, strict=True)]
    (scale,) = fit([(x @ english)[:, None] for x in signals], gold, 0.0)
    weights = fit(signals, gold, penalty, prior=scale * english)
    weights = weights / weights[UNIT]
    return {**WEIGHTS, **dict(zip(LEARNED, weights.tolist(), strict=True))}


def choose(questions: Sequence[Asked]) -> tuple[float, dict[float, float]]:
    """Return the penalty whose weights rank best what they were not learned from, and for each
    penalty the mean reciprocal rank of the best evidence."""
    tried: dict[float, float] = {}
    for penalty in PENALTIES:
        ranks: list[float] = []
        for fold in range(FOLDS):
            table = learn([q for i, q in enumerate(questions) if i % FOLDS != fold], penalty)
            weights = np.array([table[name] for name in LEARNED])
            for one in questions[fold::FOLDS]:
                scores = one.signals @ weights
                ranks.append(1.0 / (1 + np.count_nonzero(scores > scores[one.gold].max())))
        tried[penalty] = float(np.mean(ranks))
    return max(tried, key=lambda penalty: (tried[penalty], penalty)), tried


def rank(
    rt: reverie.Runtime,
    clock: SimulatedClock,
    conversation: Conversation,
    asked_at: float,
    table: Mapping[str, float],
) -> list[list[str]]:
    """Return the turns that the product finds with these weights."""
    clock.set(asked_at)
    pairs = [(READER, question.question) for question in conversation.questions]
    with weighted(table):
        answers = rt.search_many(pairs, world=conversation.name, limit=DEPTH)
    rt.rewind(INGESTED, conversation.name)
    turns_of = TurnsOf(rt.user(READER, conversation.name))
    return [
        list(dict.fromkeys(turn for hit in hits for turn in turns_of(hit)))[:DEPTH]
        for hits in answers
    ]


def show(
    tables: Mapping[str, Mapping[str, float]],
    tried: Mapping[float, float],
    penalty: float,
    found: Mapping[tuple[str, str], Scored],
) -> None:
    """Print the tables."""
    out = Console(width=120)
    table = Table("signal", *tables, title="weights, meaning = 1")
    for name in LEARNED:
        table.add_row(name, *(f"{weights[name]:.2f}" for weights in tables.values()))
    out.print(table)
    table = Table("l2", "MRR, five folds of split a", title="how near to the English table")
    for l2, mrr in tried.items():
        table.add_row(f"{l2:g}{' *' if l2 == penalty else ''}", f"{mrr:.3f}")
    out.print(table)
    names = found["b", ENGLISH].names
    table = Table(
        "split", "weights", *names, title="recall of evidence, percent; b was not looked at"
    )
    for (part, name), scored in found.items():
        means = [f"{100 * float(np.mean(scored.of(metric))):.1f}" for metric in names]
        table.add_row(part, name, *means)
    table.add_section()
    ours, theirs = found["b", LEARNED_A], found["b", ENGLISH]
    cells = [signed(difference(ours.of(m), theirs.of(m))) for m in names]
    table.add_row("b", "learned less English", *cells)
    out.print(table)


if __name__ == "__main__":
    sys.exit(main())
