"""Learn the weights of the ranking from a file in the format of LoCoMo, and say how good they are.

    python benchmarks/learn_weights.py FILE [--vectors FOLDER] [--json OUT]

The signals are the product's own: every question is asked for all texts of its conversation, and
the parts of the hits, each divided by its weight, are what is fitted. Then every fold is scored by
the product again, searching with the weights that the other conversations taught
(leave-one-conversation-out), next to linear6 and to the committed table. The latter was learned
from the development file, so its own figures on that file say nothing about others.

The fit is listwise softmax regression: the chance that a turn is the one meant is taken as
exp(w . x) / sum of exp(w . x') over the candidates, and the mean cross-entropy with the evidence
(each turn of it in equal parts) is the loss, plus `L2` times the square of w. That is ListNet with
top-one probabilities (Cao et al., 2007), or conditional logit (McFadden, 1974). It is convex, and
damped Newton steps solve it. Candidates are the evidence and the `HARD` best others by the round
before. Signals set by hand keep their weights: the table's scale is that of `meaning`, so their
sum is added to that signal, and both have one coefficient.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import msgspec
import numpy as np
from locomo_baselines import LINEAR6, embedded_texts, order, score_turns
from locomo_metrics import Float64, Interval, difference
from locomo_support import (
    INGESTED,
    OVERALL,
    READER,
    Advance,
    Conversation,
    Scored,
    TurnsOf,
    add_arguments,
    ask,
    console,
    end_of,
    hits_needed,
    ingest,
    masks,
    progress,
    read_conversations,
    shared_embedder,
    signed,
    with_interval,
)
from numpy.typing import NDArray
from rich.table import Table

import reverie
from reverie import SimulatedClock
from reverie.actors import reads
from reverie.formats import QuestionRecord
from reverie.memory_graph.errors import InvalidValueError, ReverieError
from reverie.memory_graph.search import Query
from reverie.memory_graph.signals import WEIGHTS
from reverie.models.protocol import Embedder

# A plain guess. With these weights the signals are collected and the first candidates chosen, so
# that nothing that was learned from a conversation has a say in its own fold.
START: Mapping[str, float] = {
    "words": 1.0,
    "around": 1.0,
    "session": 0.5,
    "meaning": 1.0,
    "speaker": 1.0,
    "time": 1.0,
    "answer": 1.0,
    "names": 0.1,
    "replies": 0.1,
    "asks": -0.1,
    "length": 0.1,
}
LEARNED = tuple(START)
UNIT = "meaning"  # has weight 1
BY_HAND = tuple(name for name in WEIGHTS if name not in START)
L2 = 2e-3
HARD = 60
ROUNDS = 2
STEPS = 50  # of Newton's method at most; about 8 are taken
MIN_STEP = 1e-6  # a step that is damped further than this is none
ENOUGH = 1e-10  # a smaller gain ends the fit
TOGETHER = 20  # questions that are asked at once: all hits of all of them are held
REFITTED, COMMITTED = "refitted, LOCO", "committed"

Flags = NDArray[np.bool_]


class Asked(msgspec.Struct):
    """A question with the signals of all turns, float64 (turns, len(LEARNED)), and which of them
    are evidence."""

    signals: Float64
    gold: Flags


class Report(msgspec.Struct):
    """All figures, as `--json` writes them. Intervals are in percent."""

    file: str
    sha256: str
    embedder: str
    folds: dict[str, dict[str, float]]
    weights: dict[str, float]
    committed: dict[str, float]
    systems: dict[str, dict[str, dict[str, Interval]]]
    differences: dict[str, dict[str, dict[str, Interval]]]


def main(argv: Sequence[str] | None = None) -> int:
    """Learn and print the tables; 2 when the file or the model cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    args = parser.parse_args(argv)
    try:
        conversations = read_conversations(args.file)
        if len(conversations) < 2:
            msg = f"{args.file}: leaving one out takes two conversations with questions"
            raise InvalidValueError(msg, file=str(args.file))
        with shared_embedder(args) as embedder:
            told = run(args, conversations, embedder)
    except ReverieError as exc:
        print(f"{parser.prog}: {exc}", file=sys.stderr)
        return 2
    show(told, args.k)
    if args.json is not None:
        args.json.write_bytes(msgspec.json.format(msgspec.json.encode(told)))
    return 0


def run(
    args: argparse.Namespace, conversations: Sequence[Conversation], embedder: Embedder
) -> Report:
    """Collect the signals, fit, and let the product rank with what each fold learned."""
    clock, most = SimulatedClock(), hits_needed(args.k)
    rankings: dict[str, list[list[str]]] = {LINEAR6: [], COMMITTED: [], REFITTED: []}
    collected: list[list[Asked]] = []
    total = sum(
        len(c.turns) + 3 * len(c.questions) + embedded_texts(len(c.turns), len(c.questions))
        for c in conversations
    )
    with (
        progress(total) as step,
        tempfile.TemporaryDirectory() as folder,
        reverie.open(Path(folder) / "data", embedder=embedder, clock=clock) as rt,
    ):
        for one in conversations:
            texts = [question.question for question in one.questions]
            scores = score_turns(one.turns, texts, embedder, step(f"{one.name}: linear6"))
            ids = [str(turn.external_id) for turn in one.turns]
            rankings[LINEAR6] += [[ids[at] for at in order(row)] for row in scores[LINEAR6]]
            ingest(rt, clock, one, step(f"{one.name}: ingesting"))
            collected.append(collect(rt, clock, one, step(f"{one.name}: collecting")))
        folds: dict[str, dict[str, float]] = {}
        for place, one in enumerate(conversations):
            advance = step(f"{one.name}: ranking")
            others = [q for at, asked in enumerate(collected) if at != place for q in asked]
            folds[one.name] = learn(others)
            for system, table in ((COMMITTED, dict(WEIGHTS)), (REFITTED, folds[one.name])):
                with weighted(table):
                    rankings[system] += ask(rt, clock, one, most)
                advance(len(one.questions))
    every = learn([q for asked in collected for q in asked])
    questions = [question for one in conversations for question in one.questions]
    return _report(args, embedder, questions, rankings, folds, every)


def _report(
    args: argparse.Namespace,
    embedder: Embedder,
    questions: Sequence[QuestionRecord],
    rankings: Mapping[str, list[list[str]]],
    folds: dict[str, dict[str, float]],
    every: dict[str, float],
) -> Report:
    scored = {name: Scored(questions, r, args.k) for name, r in rankings.items()}
    parts, ours = masks(questions), scored[REFITTED]
    return Report(
        file=str(args.file),
        sha256=hashlib.sha256(args.file.read_bytes()).hexdigest(),
        embedder=embedder.info.id,
        folds={name: _of_learned(table) for name, table in folds.items()},
        weights=_of_learned(every),
        committed=_of_learned(WEIGHTS),
        systems={
            name: {part: one.intervals(mask) for part, mask in parts.items()}
            for name, one in scored.items()
        },
        differences={
            name: {
                part: {
                    m: difference(ours.of(m, mask), scored[name].of(m, mask)) for m in ours.names
                }
                for part, mask in parts.items()
            }
            for name in (LINEAR6, COMMITTED)
        },
    )


def _of_learned(table: Mapping[str, float]) -> dict[str, float]:
    return {name: table[name] for name in LEARNED}


# -- signals ------------------------------------------------------------------------------------


@contextmanager
def weighted(table: Mapping[str, float]) -> Iterator[None]:
    """Let every search of this process rank with these weights."""
    with mock.patch.object(reads, "Query", partial(cast("Any", Query), weights=table)):
        yield


def collect(
    rt: reverie.Runtime,
    clock: SimulatedClock,
    conversation: Conversation,
    advance: Advance,
    asked_at: float | None = None,
) -> list[Asked]:
    """Return the signals of all turns for every question of an ingested conversation, asked at
    `asked_at` or at its end; the world is then as it was before.

    Raises:
        RuntimeError: a search left a turn out, or a part is of no signal that is known here.
    """
    user = rt.user(READER, conversation.name)
    clock.set(end_of(conversation) if asked_at is None else asked_at)
    turns_of = TurnsOf(user)
    rows = {str(turn.external_id): row for row, turn in enumerate(conversation.turns)}
    table = {**WEIGHTS, **START}
    by_hand = frozenset(BY_HAND)
    found: list[Asked] = []
    for first in range(0, len(conversation.questions), TOGETHER):
        some = conversation.questions[first : first + TOGETHER]
        pairs = [(READER, question.question) for question in some]
        with weighted(table):
            answers = rt.search_many(pairs, world=conversation.name, limit=len(rows))
        for question, hits in zip(some, answers, strict=True):
            signals = np.zeros((len(rows), len(LEARNED)))
            reached = [rows[turn] for hit in hits for turn in turns_of(hit)]
            if sorted(reached) != list(range(len(rows))):
                msg = f"{len(reached)} of {len(rows)} turns were found for {question.question!r}"
                raise RuntimeError(msg)
            for row, hit in zip(reached, hits, strict=True):
                for name, part in hit.parts.items():
                    if name in by_hand:
                        signals[row, LEARNED.index(UNIT)] += part / START[UNIT]
                    else:
                        signals[row, LEARNED.index(name)] += part / START[name]
            gold = np.zeros(len(rows), np.bool_)
            gold[[rows[turn] for turn in question.evidence if turn in rows]] = True
            if gold.any():
                found.append(Asked(signals, gold))
        rt.rewind(INGESTED, conversation.name)
        advance(len(some))
    return found


# -- fitting ------------------------------------------------------------------------------------


def learn(questions: Sequence[Asked]) -> dict[str, float]:
    """Return the whole table of weights: those learned, on the scale of `UNIT`, and the others."""
    weights = np.array([START[name] for name in LEARNED])
    for _ in range(ROUNDS):
        rows = [candidates(one, weights) for one in questions]
        weights = fit(
            [one.signals[at] for one, at in zip(questions, rows, strict=True)],
            [one.gold[at] for one, at in zip(questions, rows, strict=True)],
        )
    weights = weights / weights[LEARNED.index(UNIT)]
    return {**WEIGHTS, **dict(zip(LEARNED, weights.tolist(), strict=True))}


def candidates(asked: Asked, weights: Float64) -> NDArray[np.intp]:
    """Return the rows of the evidence and of the `HARD` best others, ascending."""
    scores = np.where(asked.gold, np.inf, asked.signals @ weights)
    return np.sort(np.argsort(-scores, kind="stable")[: HARD + int(asked.gold.sum())])


def fit(
    signals: Sequence[Float64],
    gold: Sequence[Flags],
    l2: float = L2,
    prior: Float64 | None = None,
) -> Float64:
    """Return the weights with the least loss, float64 (signals,).

    Args:
        signals: of the candidates of each question, float64 (candidates, signals).
        gold: which of them are evidence; at least one of each question.
        l2: how much the square of the weights counts.
        prior: weights, float64 (signals,); the square of the distance from them counts instead.
    """
    x = np.vstack(signals)
    sizes = np.array([len(rows) for rows in signals])
    starts = np.cumsum(sizes) - sizes
    wanted = np.concatenate([flags / flags.sum() for flags in gold])
    target = wanted @ x
    count, width = len(sizes), x.shape[1]
    origin = np.zeros(width) if prior is None else prior

    def loss(weights: Float64) -> tuple[float, Float64]:
        """Return the loss and the chances of all candidates."""
        scores = x @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, starts), sizes)
        raised = np.exp(scores)
        sums = np.add.reduceat(raised, starts)
        value = (np.log(sums).sum() - wanted @ scores) / count
        value += l2 * ((weights - origin) @ (weights - origin))
        return float(value), raised / np.repeat(sums, sizes)

    weights = origin
    value, chances = loss(weights)
    for _ in range(STEPS):
        weighed = x * chances[:, None]
        means = np.add.reduceat(weighed, starts, axis=0)
        gradient = (means.sum(axis=0) - target) / count + 2 * l2 * (weights - origin)
        hessian = (weighed.T @ x - means.T @ means) / count + 2 * l2 * np.eye(width)
        direction = np.linalg.solve(hessian, gradient)
        damping = 1.0
        lower, there = loss(weights - direction)
        while lower > value and damping > MIN_STEP:
            damping /= 2
            lower, there = loss(weights - damping * direction)
        if lower > value:
            break
        gain = value - lower
        weights, value, chances = weights - damping * direction, lower, there
        if gain < ENOUGH:
            break
    return weights


# -- telling ------------------------------------------------------------------------------------


def show(told: Report, ks: Sequence[int]) -> None:
    """Print the tables."""
    out = console()
    out.print(f"{told.file}, embedder {told.embedder}")
    title = f"weights, {UNIT} = 1; by the conversation that was left out"
    table = Table("signal", *told.folds, "all", COMMITTED, title=title)
    for name in LEARNED:
        cells = [f"{fold[name]:.3f}" for fold in told.folds.values()]
        table.add_row(name, *cells, f"{told.weights[name]:.3f}", f"{told.committed[name]:g}")
    out.print(table)
    metrics = [*(f"R@{k}" for k in ks), "nDCG@10"]
    title = "recall of evidence, percent, with 95% bootstrap intervals"
    table = Table("questions", "system", *metrics, title=title)
    for part in told.systems[REFITTED]:
        for system, by_part in told.systems.items():
            cells = [with_interval(by_part[part][metric]) for metric in metrics]
            table.add_row(part if system == LINEAR6 else "", system, *cells)
        table.add_section()
    out.print(table)
    title = f"{REFITTED} less another, the same questions paired (*: holds at 95%)"
    table = Table("questions", "less", *metrics, title=title)
    for system, by_part in told.differences.items():
        for part in by_part if system == LINEAR6 else (OVERALL,):
            table.add_row(part, system, *(signed(by_part[part][metric]) for metric in metrics))
    out.print(table)


if __name__ == "__main__":
    sys.exit(main())
