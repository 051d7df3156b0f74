"""Many users in one data folder: resident memory, the byte budget, and the first answer.

1. `--users` users with `--memories` memories each, with vectors, are written and stay resident:
   peak memory of the process against the bytes of text and vectors.
2. In a new process with a byte budget, every user is asked a question: the process must stay
   under its bound, and every user must answer.
3. In a new process, a user with 1,000 memories is opened and asked: seconds until the answer.

    python benchmarks/population.py [--users 10000] [--memories 200] [--budget-mib 1024]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
from bench_support import SyntheticEmbedder, make_texts, peak_bytes, report, resident_bytes

import reverie

MIB = 1024 * 1024
GROUP = 20  # users written in one call
LONE_MEMORIES = 1_000


class Measured(msgspec.Struct):
    """What one process found."""

    base_bytes: int
    peak_bytes: int
    payload_bytes: int = 0
    seconds: float = 0.0
    answered: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0


def main() -> int:
    """Run the three parts, each in a process of its own; return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--memories", type=int, default=200)
    parser.add_argument("--budget-mib", type=int, default=1024)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--part", default=None)
    args = parser.parse_args()
    if args.part is not None:
        part = {"write": write, "ask": ask, "open": open_one}[args.part]
        sys.stdout.buffer.write(msgspec.json.encode(part(args)))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        args.folder = args.folder or Path(scratch) / "data"
        full, bounded, lone = (_run(part, args) for part in ("write", "ask", "open"))
    resident = full.peak_bytes - full.base_bytes
    ratio = resident / full.payload_bytes
    bound = 2 * args.budget_mib * MIB
    rows = [
        (
            f"peak memory, all {args.users:,} x {args.memories} resident / text and vectors",
            f"{ratio:.2f} ({resident / MIB:,.0f} / {full.payload_bytes / MIB:,.0f} MiB)",
            "<= 3",
            ratio <= 3,
        ),
        (
            f"peak of the process with a budget of {args.budget_mib} MiB",
            f"{bounded.peak_bytes / MIB:,.0f} MiB",
            f"< {bound / MIB:,.0f} MiB",
            bounded.peak_bytes < bound,
        ),
        (
            "users that answered under the budget",
            f"{bounded.answered:,}",
            f"{args.users:,}",
            bounded.answered == args.users,
        ),
        (
            "a passivated user's search, p50 and p99",
            f"{bounded.p50_ms:.1f} and {bounded.p99_ms:.1f} ms",
            "",
            None,
        ),
        (
            f"reopen and first answer, {LONE_MEMORIES:,} memories",
            f"{lone.seconds:.2f} s",
            "<= 1 s",
            lone.seconds <= 1,
        ),
        ("writing", f"{args.users * args.memories / full.seconds:,.0f} memories/s", "", None),
    ]
    return 0 if report("population", rows) else 1


def _run(part: str, args: argparse.Namespace) -> Measured:
    command = [sys.executable, __file__, "--part", part, "--folder", str(args.folder)]
    command += ["--users", str(args.users), "--memories", str(args.memories)]
    command += ["--budget-mib", str(args.budget_mib)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return msgspec.json.decode(done.stdout, type=Measured)


def write(args: argparse.Namespace) -> Measured:
    """Write all users, and the lone one, and keep them in memory."""
    start = time.perf_counter()
    payload = 0
    with _open(args, budget_bytes=1 << 50) as rt:
        base = resident_bytes()
        for first in range(0, args.users, GROUP):
            texts = make_texts(GROUP * args.memories, seed=first)
            rt.remember_many(
                {
                    f"user{first + i}": texts[i * args.memories : (i + 1) * args.memories]
                    for i in range(min(GROUP, args.users - first))
                }
            )
            payload += sum(len(text.encode()) for text in texts)
            _progress("writing users", first + GROUP, args.users)
        seconds = time.perf_counter() - start
        for first in range(0, args.users, max(1, args.users // 500)):  # some are asked, too
            rt.user(f"user{first}").search("w1 w7 n0x1")
        measured = Measured(base, peak_bytes(), seconds=seconds)
        rt.remember_many({"lone": make_texts(LONE_MEMORIES, seed=99_999_999)})
    vectors = args.users * args.memories * 4 * SyntheticEmbedder().info.dim
    measured.payload_bytes = payload + vectors
    return measured


def ask(args: argparse.Namespace) -> Measured:
    """Ask every user a question under the byte budget."""
    with _open(args, budget_bytes=args.budget_mib * MIB) as rt:
        base, answered = resident_bytes(), 0
        times: list[float] = []
        for i in range(args.users):
            start = time.perf_counter()
            answered += bool(rt.user(f"user{i}").search("what of w3 and w11", limit=5))
            times.append(1e3 * (time.perf_counter() - start))
            _progress("asking users", i + 1, args.users)
        p50, p99 = (float(p) for p in np.percentile(times, (50, 99)))
        return Measured(base, peak_bytes(), answered=answered, p50_ms=p50, p99_ms=p99)


def open_one(args: argparse.Namespace) -> Measured:
    """Open the folder and ask the lone user."""
    embedder = SyntheticEmbedder()
    start = time.perf_counter()
    with reverie.open(args.folder, embedder=embedder, extractor="off") as rt:
        hits = rt.user("lone").search("w5 w6 n9x9")
        seconds = time.perf_counter() - start
        return Measured(0, peak_bytes(), seconds=seconds, answered=len(hits))


def _open(args: argparse.Namespace, *, budget_bytes: int) -> reverie.Runtime:
    return reverie.open(
        args.folder, embedder=SyntheticEmbedder(), extractor="off", byte_budget=budget_bytes
    )


def _progress(what: str, done: int, total: int) -> None:
    if done >= total or done % 200 == 0:
        end = "\n" if done >= total else "\r"
        print(f"{what}: {min(done, total):,} of {total:,}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
