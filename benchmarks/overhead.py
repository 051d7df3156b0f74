"""What reverie costs beside the bare work: ratios, each side by side in one run.

(a) one search in process, less the embedding of the question, against a bare
    `hnswlib.knn_query` (k=10, ef=64) on the same 50,000 x 384 vectors;
(b) ingesting 5,000 turns with real embeddings, against embedding the same texts alone;
(c) search with 50,000 memories of one user, against 1,000;
(d) 1,000 questions over 100 users on 2 Ray actors: `search_many` against single calls.

    python benchmarks/overhead.py [--part a,b,c,d] [--models FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import hnswlib
from bench_support import (
    SyntheticEmbedder,
    make_questions,
    make_texts,
    report,
    seconds,
)

import reverie
from reverie.models.cached import CachedEmbedder
from reverie.models.embedders import open_embedder

Row = tuple[str, str, str, bool | None]

LARGE, SMALL = 50_000, 1_000
QUESTIONS = 200
TURNS = 5_000
USERS, MANY, MEMORIES_PER_USER = 100, 1_000, 50
CHUNK = 500
ROUNDS = 5


def main() -> int:
    """Run the parts that are asked for; return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="a,b,c,d")
    parser.add_argument("--models", type=Path, default=None)
    args = parser.parse_args()
    parts = set(args.part.split(","))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        if parts & {"a", "c"}:
            rows += searches(Path(folder) / "search")
        if "b" in parts:
            rows += ingestion(Path(folder), args.models)
        if "d" in parts:
            rows += many(Path(folder) / "many")
    return 0 if report("overhead", sorted(rows)) else 1


def searches(folder: Path) -> list[Row]:
    """Parts (a) and (c)."""
    embedder = CachedEmbedder(SyntheticEmbedder())
    questions = make_questions(QUESTIONS)
    vectors = embedder.embed(questions, "query")
    with reverie.open(folder, embedder=embedder, extractor="off") as rt:
        texts = make_texts(LARGE)
        for name, count in (("small", SMALL), ("large", LARGE)):
            for start in range(0, count, CHUNK):
                rt.remember_many({name: texts[start : start + CHUNK]})
                _progress(f"(a, c) filling {name}", start + CHUNK, count)
        large, small = rt.user("large"), rt.user("small")
        bare = hnswlib.Index("cosine", embedder.info.dim)
        bare.init_index(LARGE, M=16, ef_construction=200, random_seed=0)
        bare.set_num_threads(1)
        bare.add_items(embedder.embed(texts, "passage"))
        bare.set_ef(64)
        for user in (large, small):  # indices are finished and caches are warm
            _ask(user, questions)
        bare_s: list[float] = []
        large_s: list[float] = []
        small_s: list[float] = []
        for vector, question in zip(vectors, questions, strict=True):  # interleaved: equal noise
            bare_s.append(_timed(bare.knn_query, vector, k=10, num_threads=1))
            large_s.append(_timed(large.search, question))
            small_s.append(_timed(small.search, question))
        stats = large.stats()
    one, big, little = (statistics.median(s) * 1e3 for s in (bare_s, large_s, small_s))
    print(
        f"(a, c) medians: knn_query {one:.3f} ms, search at {stats.memories:,} {big:.2f} ms, "
        f"at {SMALL:,} {little:.2f} ms"
    )
    return [
        ("(a) search / bare knn_query, 50,000", f"{big / one:.1f}", "<= 25", big / one <= 25),
        ("(c) search at 50,000 / at 1,000", f"{big / little:.2f}", "<= 4", big / little <= 4),
    ]


def _ask(user: reverie.User, questions: Sequence[str]) -> None:
    for question in questions:
        user.search(question)


def _timed(action: Callable[..., object], *args: object, **kwargs: object) -> float:
    start = time.perf_counter()
    action(*args, **kwargs)
    return time.perf_counter() - start


def ingestion(folder: Path, models: Path | None) -> list[Row]:
    """Part (b), with turns as they are (`infer=False`) and with extraction."""
    from reverie.models.catalog import default_folder

    embedder = open_embedder("minilm", models or default_folder())
    turns = _dialogue(TURNS)
    rows: list[Row] = []
    for infer in (False, True):
        alone_s = ingest_s = 0.0
        recorder = _Recorder(embedder)
        with reverie.open(folder / f"ingest{infer}", embedder=recorder) as rt:
            user = rt.user("ana")
            for start in range(0, TURNS, 256):  # interleaved: both meet the same noise
                part = turns[start : start + 256]
                recorder.texts.clear()
                ingest_s += _timed(user.add, part, infer=infer, wait=True)
                for batch in list(recorder.texts):
                    alone_s += _timed(embedder.embed, batch, "passage")
                _progress(
                    f"(b) ingesting, extraction {'on' if infer else 'off'}", start + 256, TURNS
                )
            stats = user.stats()
        ratio = ingest_s / alone_s
        what = "with extraction" if infer else "as they are"
        print(
            f"(b) {what}: {ingest_s:.1f} s, embedding alone {alone_s:.1f} s, "
            f"{stats.memories:,} memories"
        )
        rows.append(
            (
                f"(b) ingest {TURNS:,} turns {what} / embedding",
                f"{ratio:.3f}",
                "<= 1.25",
                ratio <= 1.25,
            )
        )
    embedder.close()
    return rows


class _Recorder:
    """An embedder that notes what it is asked, so that the same can be embedded alone."""

    def __init__(self, inner: reverie.Embedder) -> None:
        self._inner = inner
        self.texts: list[Sequence[str]] = []
        self.info = inner.info
        self.count_tokens = inner.count_tokens
        self.unknown_share = inner.unknown_share

    def embed(self, texts: Sequence[str], role: str) -> object:
        self.texts.append(texts)
        return self._inner.embed(texts, role)  # type: ignore[arg-type]

    def close(self) -> None:
        """The inner embedder stays open."""


def _dialogue(count: int) -> list[dict[str, str]]:
    """Turns of everyday talk, every one different, in which every fourth states something."""
    places, foods = ("Oslo", "Lima", "Kyoto", "Bergen"), ("ramen", "figs", "coffee", "tofu")
    forms = (
        "I moved to {place} {i} weeks ago and I love the {food} there.",
        "What did you think about the plan for day {i}, was the {food} any good?",
        "Honestly the weather on day {i} was dreadful and nothing much happened at all.",
        "Haha, yes, number {i} again, tell me more about {place} when you have time!",
    )
    return [
        {
            "text": forms[i % 4].format(place=places[i % 3], food=foods[i % 7 % 4], i=i),
            "session": f"s{i // 40}",
        }
        for i in range(count)
    ]


def many(folder: Path) -> list[Row]:
    """Part (d)."""
    embedder = CachedEmbedder(SyntheticEmbedder())
    questions = make_questions(MANY)
    pairs = [(f"user{i % USERS}", question) for i, question in enumerate(questions)]
    embedder.embed(questions, "query")
    with reverie.open(folder, actors=2, embedder=embedder, extractor="off") as rt:
        texts = make_texts(USERS * MEMORIES_PER_USER)
        rt.remember_many(
            {
                f"user{u}": texts[u * MEMORIES_PER_USER : (u + 1) * MEMORIES_PER_USER]
                for u in range(USERS)
            }
        )
        rt.search_many(pairs)
        users = {u: rt.user(u) for u, _ in pairs}
        single = batched = float("inf")
        for _ in range(ROUNDS):  # interleaved; the best of each, which noise lengthens least
            single = min(single, seconds(lambda: [users[u].search(q) for u, q in pairs]))
            batched = min(batched, seconds(lambda: rt.search_many(pairs)))
    print(f"(d) 1,000 single calls {single:.2f} s, search_many {batched:.3f} s")
    speedup = single / batched
    return [("(d) single calls / search_many, 2 actors", f"{speedup:.1f}", ">= 8", speedup >= 8)]


def _progress(what: str, done: int, total: int) -> None:
    end = "\n" if done >= total else "\r"
    print(f"{what}: {min(done, total):,} of {total:,}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
