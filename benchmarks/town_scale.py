"""A town of 10,000 people, 200 observations each, on Ray actors, with real embeddings.

It is `reverie town --npcs 10000`, with what it costs: the time of each hour of the town, how the
last day compares with the first, how long a question takes at the end, and the memory of all
processes together, sampled every few seconds (shared pages are counted once).

    python benchmarks/town_scale.py [--npcs 10000] [--observations 200] [--actors 2] [--days 7]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from bench_support import report
from rich.progress import Progress

from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import default_folder
from reverie.models.embedders import open_embedder
from reverie.town import Outcome, Plan, run
from reverie.town.play import Play
from reverie.town.schedule import HOURS
from reverie.town.streams import stream
from reverie.town.truth import compare

MIB = 1024 * 1024
AWAKE = 15  # hours of a day in which the crowd is about
CACHE_BYTES = 512 * MIB
ASKED = 500  # questions at the end
SAMPLE_S = 5.0  # looking at the pages of a large process takes a while
READ = 200  # people whose memories are compared with the script at the end


class Memory:
    """The memory of this process and all that it started, sampled in a thread."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.parts: dict[str, int] = {}
        self.cpu_s: dict[int, tuple[str, float]] = {}  # by process id
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu_total_s(self) -> float:
        """Return what all processes have used of processors so far."""
        return sum(_cpu_s(pid) for pid, _ in _family())

    def end(self) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            parts: dict[str, int] = {}
            for pid, name in _family():
                parts[name] = parts.get(name, 0) + _own_bytes(pid)
                self.cpu_s[pid] = (name, _cpu_s(pid))
            if sum(parts.values()) > self.peak_bytes:
                self.peak_bytes, self.parts = sum(parts.values()), parts
            if self._ended.wait(SAMPLE_S):
                return


def _family() -> list[tuple[int, str]]:
    """Return this process and its descendants, as (id, name)."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            status = (path / "stat").read_text(encoding="utf-8", errors="replace")
            command = (path / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue  # ended meanwhile
        parents[int(path.name)] = int(status.rpartition(")")[2].split()[1])
        names[int(path.name)] = Path(command.split(" ")[0]).name or "?"
    me = int(Path("/proc/self").resolve().name)
    found = []
    for pid, name in names.items():
        above = pid
        while above not in {me, 0, 1}:
            above = parents.get(above, 0)
        if above == me:
            found.append((pid, "the town itself" if pid == me else name))
    return found


def _own_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0.0
    user, system = fields.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run the town, print the figures, and return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npcs", type=int, default=10_000)
    parser.add_argument("--observations", type=int, default=200)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--actors", type=int, default=2, help="0 runs all in this process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder", default="minilm", help="'standin' for none")
    parser.add_argument(
        "--linked", action="store_true", help="link memories with people and places"
    )
    parser.add_argument("--threads", type=int, default=1, help="of the embedder")
    parser.add_argument("--models", type=Path, default=None)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        figures = measure(args, args.folder or Path(scratch) / "town")
    text = json.dumps(figures, indent=1)
    print(text)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    return 0 if show(figures) else 1


def measure(args: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Run the town and return the figures."""
    models = args.models or default_folder()
    embedder = CachedEmbedder(
        open_embedder(args.embedder, models, threads=args.threads), max_bytes=CACHE_BYTES
    )
    figures: dict[str, float] = {}
    memory = Memory()
    began = time.perf_counter()

    def finish(outcome: Outcome) -> None:
        figures["seconds_to_end"] = time.perf_counter() - began
        figures["distinct_texts_embedded"] = embedder.stats.misses
        figures["asked_of_cache"] = embedder.stats.hits + embedder.stats.misses
        figures.update(_recall(outcome, args.seed))
        figures["peak_mib_of_the_run"] = memory.peak_bytes / MIB  # before all is held against truth
        truth = compare(outcome.play, people=READ, ask=20)
        figures["wrong"] = len([*truth.unknown, *truth.leaked, *truth.unchained, *truth.unkept])
        figures["read"] = truth.memories

    def after_day(_: Play, day: int) -> None:
        spent.append(memory.cpu_total_s())
        figures[f"cpu_s, day {day}"] = spent[-1] - spent[-2]
        print(
            f"day {day}: {time.perf_counter() - began:,.0f} s, {spent[-1]:,.0f} s of processors, "
            f"{memory.peak_bytes / MIB:,.0f} MiB",
            file=sys.stderr,
            flush=True,
        )

    spent = [0.0]
    plan = Plan(
        folder=folder,
        days=args.days,
        npcs=args.npcs,
        seed=args.seed,
        pace=args.observations / (AWAKE * args.days),
        actors=args.actors or None,
        what_if=False,
        digests=False,
        linked=args.linked,
        embedder=embedder,
        settings={"byte_budget": 16 << 30},
    )
    with Progress(transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("hours", total=args.days * HOURS)
        outcome = run(
            plan,
            progress=lambda _, done, total: bar.update(task, completed=done, total=total),
            after_day=after_day,
            at_end=finish,
        )
    figures["seconds"] = time.perf_counter() - began
    memory.end()
    figures |= {
        "npcs": args.npcs,
        "days": args.days,
        "actors": args.actors,
        "peak_mib": memory.peak_bytes / MIB,
        **{f"peak_mib, {name}": used / MIB for name, used in sorted(memory.parts.items())},
    }
    for name, used_s in memory.cpu_s.values():
        figures[f"cpu_s, {name}"] = figures.get(f"cpu_s, {name}", 0.0) + used_s
    figures |= _ticks(outcome)
    return {name: round(value, 4) for name, value in figures.items()}


def _ticks(outcome: Outcome) -> dict[str, float]:
    """Return what was written, and what an hour with people about took on each day."""
    ticks = outcome.play.record.ticks
    seen = dict.fromkeys(outcome.setting.people, 0)
    for happening in outcome.play.book.ledger.happenings.values():
        for name in happening.witnesses:
            seen[name] += 1
    counts = sorted(seen.values())
    found: dict[str, float] = {
        "observations": sum(counts),
        "observations_least": counts[0],
        "observations_median": counts[len(counts) // 2],
        "tellings": sum(figures.told for figures in ticks),
        "deeds": sum(figures.deeds for figures in ticks),
    }
    for day in range(outcome.plan.days):
        busy = [t for t in ticks if t.tick // HOURS == day and t.observed > len(seen) / 4]
        found[f"tick_s, day {day + 1}"] = sum(t.seconds for t in busy) / max(1, len(busy))
        found[f"observed_a_tick, day {day + 1}"] = sum(t.observed for t in busy) / max(1, len(busy))
    return found


def _recall(outcome: Outcome, seed: int) -> dict[str, float]:
    """Ask people, one after the other, for something that happened; each question is new."""
    draw = stream(seed, "recall")
    happenings = list(outcome.play.book.ledger.happenings.values())
    times, answered = [], 0
    for i in range(ASKED):
        happening = draw.choice([h for h in draw.sample(happenings, 20) if h.witnesses])
        name = draw.choice(happening.witnesses)
        question = f"What do you remember of this, number {i}: {happening.text}"
        start = time.perf_counter()
        hits = outcome.play.world.user(name).search(question, limit=5)
        times.append(1e3 * (time.perf_counter() - start))
        answered += any(hit.event == happening.id for hit in hits)
    p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
    return {"recall_p50_ms": p50, "recall_p95_ms": p95, "recall_p99_ms": p99} | {
        "recall_found": answered / ASKED
    }


def show(figures: dict[str, float]) -> bool:
    """Print a table; return whether every bound is kept."""
    first, last = figures["tick_s, day 1"], figures[f"tick_s, day {figures['days']:.0f}"]
    people = f"{figures['npcs']:,.0f}"
    rows = [
        ("all of it", f"{figures['seconds'] / 60:.1f} min", "<= 30", figures["seconds"] <= 1800),
        (
            "memory of all processes, peak of the run and its questions",
            f"{figures['peak_mib_of_the_run'] * MIB / 1e9:.2f} GB",
            "<= 8 GB",
            figures["peak_mib_of_the_run"] * MIB <= 8e9,
        ),
        (
            "the same, while what was read is held against the script's own log",
            f"{figures['peak_mib'] * MIB / 1e9:.2f} GB",
            "",
            None,
        ),
        (
            "an hour with people about, last day / first day",
            f"{last / first:.2f} ({last:.2f} / {first:.2f} s)",
            "<= 1.5",
            last <= 1.5 * first,
        ),
        (
            f"observations of {people} people: all, median, least",
            ", ".join(
                f"{figures[name]:,.0f}"
                for name in ("observations", "observations_median", "observations_least")
            ),
            "",
            None,
        ),
        ("distinct texts embedded", f"{figures['distinct_texts_embedded']:,.0f}", "", None),
        (
            "a question at the end, p50 and p95",
            f"{figures['recall_p50_ms']:.1f} and {figures['recall_p95_ms']:.1f} ms",
            "",
            None,
        ),
        ("of them answered by the event itself", f"{figures['recall_found']:.0%}", "", None),
        (
            f"memories that cannot be, of {figures['read']:,.0f} read",
            f"{figures['wrong']:.0f}",
            "0",
            not figures["wrong"],
        ),
    ]
    return report("town", rows)


if __name__ == "__main__":
    sys.exit(main())
