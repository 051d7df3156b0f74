"""Recall of evidence on LoCoMo: which turns `search` finds for each question, without an LLM.

    python benchmarks/locomo.py FILE [--k 5,10,20] [--dump HITS.jsonl] [--json OUT]
                                     [--embedder NAME_OR_PATH]

FILE is in the format of snap-research/locomo (CC BY-NC 4.0, not part of reverie). Questions of
categories 1 to 4 are asked, those without evidence are counted and left out. The metrics are
those of locomo_metrics.py, the baselines, on the same file with the same embedder, those of
locomo_baselines.py. Never compare these figures with recall of sessions, hit@k, or a judge's.

All cuts are of one ranking: a search for as many hits as the largest cut needs. `--dump` writes a
line for each question: its ranked turn ids and its evidence.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from locomo_baselines import BM25, LINEAR6, SYSTEMS, embedded_texts, order, score_turns
from locomo_metrics import CUT, Float64, Interval, difference, metric_names, recall
from locomo_support import (
    OVERALL,
    READER,
    Advance,
    Conversation,
    Mask,
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
from rich.table import Table

import reverie
from reverie import SimulatedClock
from reverie.formats import QuestionRecord
from reverie.memory_graph.errors import ReverieError
from reverie.models.protocol import Embedder

REVERIE = "reverie"
BUDGET_TOKENS = 800  # the default of `User.context`
TOKENS, IN_CONTEXT, WHOLE = "tokens", "evidence in it", "evidence in it uncut"


class Hits(msgspec.Struct, frozen=True):
    """One line of the dump."""

    conversation: str
    number: int
    category: int
    question: str
    gold: tuple[str, ...]
    ranked: list[str]


class Found(msgspec.Struct):
    """What all conversations gave: for each question its rankings by system, and its context as
    (tokens, evidence in it, evidence in it uncut)."""

    questions: list[QuestionRecord]
    rankings: dict[str, list[list[str]]]
    contexts: list[tuple[float, float, float]]
    ingest_s: float = 0.0
    search_s: float = 0.0
    context_s: float = 0.0


class Report(msgspec.Struct):
    """All figures, as `--json` writes them. Intervals are in percent, but of tokens."""

    file: str
    sha256: str
    embedder: str
    conversations: int
    turns: int
    turns_left_out: int
    questions: dict[str, int]
    questions_without_evidence: int
    systems: dict[str, dict[str, dict[str, Interval]]]
    differences: dict[str, dict[str, dict[str, Interval]]]
    context: dict[str, dict[str, float]]
    context_budget_tokens: int
    seconds: dict[str, float]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its tables; 2 when the file or the model cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    parser.add_argument("--dump", type=Path, default=None, help="write ranked turn ids, as JSONL")
    parser.add_argument(
        "--budget", type=int, default=BUDGET_TOKENS, help="tokens of a context at most"
    )
    parser.add_argument(
        "--summaries", action="store_true", help="keep a summary of each session beside its turns"
    )
    args = parser.parse_args(argv)
    try:
        conversations = read_conversations(args.file)
        with shared_embedder(args) as embedder:
            found = run(conversations, embedder, args.k, args.budget, summaries=args.summaries)
            told = report(args, conversations, embedder, found)
    except ReverieError as exc:
        print(f"{parser.prog}: {exc}", file=sys.stderr)
        return 2
    show(told, args.k)
    if args.dump is not None:
        dump(args.dump, found)
    if args.json is not None:
        args.json.write_bytes(msgspec.json.format(msgspec.json.encode(told)))
    return 0


# -- asking -----------------------------------------------------------------------------------


def run(
    conversations: Sequence[Conversation],
    embedder: Embedder,
    ks: Sequence[int],
    budget: int,
    *,
    summaries: bool = False,
) -> Found:
    """Ask every question of reverie and of the baselines."""
    found = Found([], {name: [] for name in (REVERIE, *SYSTEMS)}, [])
    most = hits_needed(ks)
    clock = SimulatedClock()
    total = sum(
        embedded_texts(len(c.turns), len(c.questions)) + len(c.turns) + 2 * len(c.questions)
        for c in conversations
    )
    with (
        progress(total) as step,
        tempfile.TemporaryDirectory() as folder,
        reverie.open(Path(folder) / "data", embedder=embedder, clock=clock) as rt,
    ):
        for conversation in conversations:
            name, asked = conversation.name, len(conversation.questions)
            found.questions += conversation.questions
            texts = [question.question for question in conversation.questions]
            scores = score_turns(conversation.turns, texts, embedder, step(f"{name}: baselines"))
            ids = [str(turn.external_id) for turn in conversation.turns]
            for system, rows in scores.items():
                found.rankings[system] += [[ids[place] for place in order(row)] for row in rows]
            began = time.perf_counter()
            ingest(rt, clock, conversation, step(f"{name}: ingesting"), summaries=summaries)
            ingested = time.perf_counter()
            advance = step(f"{name}: asking")
            found.rankings[REVERIE] += ask(rt, clock, conversation, most)
            searched = time.perf_counter()
            advance(asked)
            found.contexts += contexts(rt, clock, conversation, budget, advance)
            found.ingest_s += ingested - began
            found.search_s += searched - ingested
            found.context_s += time.perf_counter() - searched
    return found


def contexts(
    rt: reverie.Runtime,
    clock: SimulatedClock,
    conversation: Conversation,
    budget: int,
    advance: Advance,
) -> list[tuple[float, float, float]]:
    """Return (tokens, evidence in it, evidence in it uncut) of the context of each question, made
    of its ten best hits.

    They are asked as of the end of the conversation, which leaves no trace: a context reads the
    memory as a search does.
    """
    user = rt.user(READER, conversation.name)
    clock.set(end_of(conversation))
    turns_of = TurnsOf(user)
    rows = []
    for question in conversation.questions:
        made = user.context(
            question.question, budget_tokens=budget, limit=CUT, as_of=end_of(conversation)
        )
        shown = " ".join(made.text.split())
        there = {turn for hit in made.hits for turn in turns_of(hit)}
        whole = {
            turn
            for hit in made.hits
            if " ".join(hit.text.split()) in shown
            for turn in turns_of(hit)
        }
        gold = question.evidence
        rows.append((float(made.tokens), recall(there, gold), recall(whole, gold)))
        advance(1)
    return rows


# -- telling ----------------------------------------------------------------------------------


def report(
    args: argparse.Namespace,
    conversations: Sequence[Conversation],
    embedder: Embedder,
    found: Found,
) -> Report:
    """Return all figures."""
    scored = {name: Scored(found.questions, r, args.k) for name, r in found.rankings.items()}
    parts = masks(found.questions)
    ours = scored[REVERIE]
    return Report(
        file=str(args.file),
        sha256=hashlib.sha256(args.file.read_bytes()).hexdigest(),
        embedder=embedder.info.id,
        conversations=len(conversations),
        turns=sum(len(c.turns) for c in conversations),
        turns_left_out=sum(c.left_out for c in conversations),
        questions={part: int(mask.sum()) for part, mask in parts.items()},
        questions_without_evidence=sum(c.unscored for c in conversations),
        systems={
            name: {part: one.intervals(mask) for part, mask in parts.items()}
            for name, one in scored.items()
        },
        differences={
            name: {
                part: {
                    metric: difference(ours.of(metric, mask), scored[name].of(metric, mask))
                    for metric in ours.names
                }
                for part, mask in parts.items()
            }
            for name in SYSTEMS
        },
        context=_context_figures(np.array(found.contexts), parts),
        context_budget_tokens=args.budget,
        seconds={
            "ingest": round(found.ingest_s, 2),
            "search": round(found.search_s, 2),
            "context": round(found.context_s, 2),
        },
    )


def _context_figures(rows: Float64, parts: dict[str, Mask]) -> dict[str, dict[str, float]]:
    """Return the means of `contexts` by category: tokens, and the others in percent."""
    scale = {TOKENS: 1.0, IN_CONTEXT: 100.0, WHOLE: 100.0}
    return {
        part: {
            name: factor * float(rows[mask, column].mean())
            for column, (name, factor) in enumerate(scale.items())
        }
        for part, mask in parts.items()
    }


def show(told: Report, ks: Sequence[int]) -> None:
    """Print the tables."""
    out, metrics = console(), metric_names(ks)
    counts = ", ".join(f"{count} {part}" for part, count in told.questions.items())
    out.print(f"{told.file}, embedder {told.embedder}")
    out.print(
        f"{told.conversations} conversations, {told.turns:,} turns ({told.turns_left_out} unusable)"
    )
    out.print(f"questions: {counts} ({told.questions_without_evidence} without evidence left out)")
    title = "recall of evidence, percent, with 95% bootstrap intervals"
    table = Table("questions", "system", *metrics, title=title)
    for part in told.questions:
        for system in (*SYSTEMS, REVERIE):
            cells = [with_interval(told.systems[system][part][metric]) for metric in metrics]
            first = part if system == BM25 else ""
            table.add_row(first, system, *cells, style="bold" if system == REVERIE else None)
        table.add_section()
    out.print(table)
    title = "reverie less a baseline, the same questions paired (*: holds at 95%)"
    table = Table("questions", "baseline", *metrics, title=title)
    for system in SYSTEMS:
        for part in told.questions if system == LINEAR6 else (OVERALL,):
            cells = [signed(told.differences[system][part][metric]) for metric in metrics]
            table.add_row(part, system, *cells)
    out.print(table)
    title = f"context() of the ten best hits, at most {told.context_budget_tokens} tokens"
    table = Table("questions", "mean tokens", IN_CONTEXT, WHOLE, title=title)
    for part, row in told.context.items():
        table.add_row(part, f"{row[TOKENS]:.0f}", f"{row[IN_CONTEXT]:.1f}", f"{row[WHOLE]:.1f}")
    out.print(table)
    seconds = told.seconds
    search_ms = 1000 * seconds["search"] / told.questions[OVERALL]
    out.print(
        f"ingesting {seconds['ingest']:.1f} s, searching {seconds['search']:.1f} s "
        f"({search_ms:.1f} ms a question, already embedded), contexts {seconds['context']:.1f} s"
    )


def dump(path: Path, found: Found) -> None:
    """Write each question with its ranked turns and its evidence, one JSON object a line."""
    with path.open("wb") as file:
        for question, ranked in zip(found.questions, found.rankings[REVERIE], strict=True):
            line = Hits(
                question.conversation,
                question.number,
                question.category,
                question.question,
                question.evidence,
                ranked,
            )
            file.write(msgspec.json.encode(line) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
