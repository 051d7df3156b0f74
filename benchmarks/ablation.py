"""What each signal of the ranking is worth: recall on LoCoMo with one switched off at a time.

    python benchmarks/ablation.py FILE [--json OUT] [--embedder NAME_OR_PATH]

The signals are those of the ranking's table of weights. A weight of 0 takes a signal out of the
sum; candidates that it proposes stay. Each line is held against the full ranking on the same
questions; a negative difference means that the signal helps.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import msgspec
from locomo_metrics import CUT, Interval, difference
from locomo_support import (
    OVERALL,
    READER,
    Conversation,
    Scored,
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
)
from rich.table import Table

import reverie
from reverie import SimulatedClock
from reverie.actors import reads
from reverie.memory_graph.errors import ReverieError
from reverie.memory_graph.search import Query
from reverie.memory_graph.signals import WEIGHTS
from reverie.models.protocol import Embedder

FULL = "all signals"
SORTED_BY = f"R@{CUT}"


class Without(msgspec.Struct, frozen=True):
    """The ranking without one signal: means in percent, and the differences to the full ranking,
    by category."""

    signal: str
    weight: float | None
    means: dict[str, dict[str, float]]
    differences: dict[str, dict[str, Interval]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the ablation and print its table; 2 when the file or the model cannot be used."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    args = parser.parse_args(argv)
    try:
        conversations = read_conversations(args.file)
        with shared_embedder(args) as embedder:
            rows = run(conversations, embedder, args.k)
    except ReverieError as exc:
        print(f"{parser.prog}: {exc}", file=sys.stderr)
        return 2
    show(rows, args.k)
    if args.json is not None:
        args.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    return 0


def run(
    conversations: Sequence[Conversation], embedder: Embedder, ks: Sequence[int]
) -> list[Without]:
    """Ask every question with all signals, then without each; the first row is the full one."""
    signals = weights()
    questions = [question for c in conversations for question in c.questions]
    rankings: dict[str, list[list[str]]] = {name: [] for name in (FULL, *signals)}
    clock, most = SimulatedClock(), hits_needed(ks)
    total = sum(len(c.turns) + len(rankings) * len(c.questions) for c in conversations)
    with (
        progress(total) as step,
        tempfile.TemporaryDirectory() as folder,
        reverie.open(Path(folder) / "data", embedder=embedder, clock=clock) as rt,
    ):
        for conversation in conversations:
            ingest(rt, clock, conversation, step(f"{conversation.name}: ingesting"))
            for name in rankings:
                advance = step(f"{conversation.name}: {name if name == FULL else f'no {name}'}")
                with nullcontext() if name == FULL else switched_off(name):
                    if name != FULL:
                        require_off(rt, clock, conversation, name)
                    rankings[name] += ask(rt, clock, conversation, most)
                advance(len(conversation.questions))
    parts = masks(questions)
    scored = {name: Scored(questions, r, ks) for name, r in rankings.items()}
    full = scored[FULL]
    return [
        Without(
            name,
            signals.get(name),
            {
                part: {m: 100 * float(one.of(m, mask).mean()) for m in one.names}
                for part, mask in parts.items()
            },
            {
                part: {m: difference(one.of(m, mask), full.of(m, mask)) for m in one.names}
                for part, mask in parts.items()
            },
        )
        for name, one in scored.items()
    ]


def show(rows: Sequence[Without], ks: Sequence[int]) -> None:
    """Print the table, what helps most first."""
    shown = [*(f"R@{k}" for k in ks if k <= CUT), f"nDCG@{CUT}"]
    title = "each signal switched off: percent, and the difference to all signals (*: at 95%)"
    table = Table("without", "weight", title=title)
    for name in shown:
        table.add_column(name, justify="right")
        table.add_column("difference")
    for row in sorted(rows, key=lambda r: (r.weight is not None, _effect(r))):
        is_full = row.weight is None
        cells = ["nothing", ""] if is_full else [row.signal, f"{row.weight:g}"]
        for name in shown:
            cells.append(f"{row.means[OVERALL][name]:.1f}")
            cells.append("" if is_full else signed(row.differences[OVERALL][name]))
        table.add_row(*cells)
    console().print(table)


def _effect(row: Without) -> float:
    metrics = row.differences[OVERALL]
    return metrics[SORTED_BY if SORTED_BY in metrics else f"nDCG@{CUT}"].mean


# -- the table of weights ---------------------------------------------------------------------


def weights() -> dict[str, float]:
    """Return the weight of each signal that the ranking has, for questions in English."""
    return dict(WEIGHTS)


@contextmanager
def switched_off(signal: str) -> Iterator[None]:
    """Let every search of this process go without one signal, of weight 0."""
    changed = {**weights(), signal: 0.0}
    with mock.patch.object(reads, "Query", partial(cast("Any", Query), weights=changed)):
        yield


def require_off(
    rt: reverie.Runtime, clock: SimulatedClock, conversation: Conversation, signal: str
) -> None:
    """Raise RuntimeError when a hit still has a part from a signal that was switched off: the
    weights are then read from somewhere else, and the table would be wrong."""
    clock.set(end_of(conversation))
    question = conversation.questions[0].question
    for hit in rt.user(READER, conversation.name).search(question, as_of=end_of(conversation)):
        if hit.parts.get(signal):
            msg = f"{signal} was switched off, yet it is part of the score: {hit.parts}"
            raise RuntimeError(msg)


if __name__ == "__main__":
    sys.exit(main())
