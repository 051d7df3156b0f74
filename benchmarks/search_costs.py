"""What each signal costs of a search at 10,000 texts, and how much slower that is than at 1,000.

    python benchmarks/search_costs.py [--count 10000]

Two users each, one of memories and one of turns of a conversation, with vectors and without a
model. The functions that compute a signal are timed from outside; the time of one that calls
another is its own alone. The clock is read twice a call, which is in the figures, and small.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest import mock

from bench_support import SyntheticEmbedder, make_questions, make_texts, report

import reverie
from reverie import asking
from reverie.memory_graph import search as ranking, signals
from reverie.memory_graph.vectors import VectorIndex
from reverie.memory_graph.words import WordIndex
from reverie.models.cached import CachedEmbedder

SMALL, LARGE = 1_000, 10_000
QUESTIONS = 200
CHUNK = 500
SESSION = 40  # turns
BOUND = 0.20
# Signal: the functions that compute it.
TIMED: dict[str, tuple[tuple[Any, str], ...]] = {
    "words": ((WordIndex, "ask"),),
    "around": ((signals, "around"),),
    "session": ((signals, "session"),),
    "meaning": ((VectorIndex, "search"), (VectorIndex, "search_many"), (ranking, "_meaning")),
    "speaker": ((ranking, "speakers_named"), (signals, "speaker")),
    "entity": ((ranking, "entities_named"), (ranking, "_mentions")),
    "time": ((asking, "times_named"), (signals, "time")),
    "answer": ((signals, "answer"),),
    "names, replies, asks, length": ((ranking._Look, "fixed"),),  # noqa: SLF001 (its inside is what is measured)
    "graph": ((ranking, "spread"),),
    "recency, importance, outdated": ((ranking._Look, "judge"),),  # noqa: SLF001
    "(reasons and items)": ((ranking, "_hit"),),
}
REST = "(the rest: sums, candidates, the call)"


def main() -> int:
    """Print both tables; return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=LARGE, help="texts of the large users")
    args = parser.parse_args()
    embedder = CachedEmbedder(SyntheticEmbedder())
    questions = [f"What did {text}?" for text in make_questions(QUESTIONS)]
    embedder.embed(questions, "query")
    rows: list[tuple[str, str, str, bool | None]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        reverie.open(folder, embedder=embedder, extractor="off") as rt,
    ):
        for kind in ("memories", "turns"):
            users = []
            for count in (SMALL, args.count):
                users.append(rt.user(f"{count} {kind}"))
                fill(rt, users[-1], kind, count)
            small, large = medians(users, questions)
            ratio = large / small
            what = f"search at {args.count:,} {kind} / at {SMALL:,} ({large * 1e3:.2f} ms)"
            rows.append((what, f"{ratio:.2f}", "<= 2", ratio <= 2))
            shares = costs(users[-1], questions)
            for signal, share in shares.items():
                is_signal = not signal.startswith("(")
                bound = f"<= {BOUND:.0%}" if is_signal else ""
                kept = share <= BOUND if is_signal else None
                rows.append((f"  {kind}: {signal}", f"{share:.1%}", bound, kept))
    return 0 if report("search costs", rows) else 1


def fill(rt: reverie.Runtime, user: reverie.User, kind: str, count: int) -> None:
    """Store texts, as memories or as turns of two people."""
    texts = make_texts(count)
    for start in range(0, count, CHUNK):
        part = texts[start : start + CHUNK]
        if kind == "memories":
            rt.remember_many({user.key.user_id: part})
        else:
            turns = [
                {"text": text, "session": f"s{i // SESSION}", "speaker": ("Ana", "Bo")[i % 2]}
                for i, text in enumerate(part, start)
            ]
            user.add(turns, infer=False)
        end = "\n" if start + CHUNK >= count else "\r"
        done = min(start + CHUNK, count)
        print(f"filling {done:,} of {count:,} {kind}", end=end, file=sys.stderr, flush=True)


def medians(users: list[reverie.User], questions: list[str]) -> list[float]:
    """Return the median seconds of a search of each user, asked in turn: equal noise."""
    for user in users:  # indices are finished and caches are warm
        for question in questions:
            user.search(question)
    taken: list[list[float]] = [[] for _ in users]
    for question in questions:
        for user, seconds in zip(users, taken, strict=True):
            start = time.perf_counter()
            user.search(question)
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in taken]


def costs(user: reverie.User, questions: list[str]) -> dict[str, float]:
    """Return the share of the time of all searches by signal."""
    spent: dict[str, float] = defaultdict(float)
    inner = [0.0]  # seconds in timed functions that were called by the one that runs, as a stack
    with timing(spent, inner):
        start = time.perf_counter()
        for question in questions:
            user.search(question)
        total = time.perf_counter() - start
    spent[REST] = total - sum(spent.values())
    return {signal: spent[signal] / total for signal in (*TIMED, REST)}


@contextmanager
def timing(spent: dict[str, float], inner: list[float]) -> Iterator[None]:
    """Add the seconds in the functions of `TIMED`, less those in others of them, to `spent`."""

    def timed(signal: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.perf_counter() - start
                spent[signal] += taken - inner.pop()
                inner[-1] += taken

        return call

    with ExitStack() as stack:
        for signal, functions in TIMED.items():
            for owner, name in functions:
                replacement = timed(signal, getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, replacement))
        yield


if __name__ == "__main__":
    sys.exit(main())
