"""A soak: mixed load for a long time, while memory, handles and files have to stay level.

    python tests/crash/soak.py 360 --minutes 30

COUNT is how often it is measured. Two threads write and read, each in a world of its own; users
come, live for some dozens of operations, are held against a twin that says what they were told, and
are forgotten; the world is saved and put back now and then, and the folder is closed and opened
again. What is in memory is bounded by a budget for a part of the users, and some of them are large
enough for an approximate index. The second and the last third of each measure are compared.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import ops, report, writer

import reverie
from reverie.actors.residents import Residents
from reverie.models.standin import HashEmbedder

WORLDS = ("town", "港口")
PAUSE_S = 0.001  # of a thread after each operation, so that others come to their turn
REOPENINGS = 6
SLOPE_POINTS = 60  # of a measure, for its slope
FINDINGS_END = 5  # it goes on until so many
# A closed vocabulary, so that caches of words are full early on.
WORDS = (
    "smith lantern captain harbour bridge winter garden letter silver wolf song market river tower "
    "baker horse sword island candle stone 铁匠 灯笼 船长 港口 桥梁 冬天 花园 信件 白银 狼群"
).split()
QUESTION = "Who sold the silver lantern? 谁卖了灯笼?"
SHORT_MINUTES = 3.0  # a shorter run has less of everything, to be level soon


class Size(NamedTuple):
    """How much there is of everything at a time.

    `users` of one world; `life` in operations of one user; `exact_limit` in vectors, users above
    have an approximate index; `byte_budget` is about half of what all users take.
    """

    users: int
    life: tuple[int, int]
    exact_limit: int
    byte_budget: int


LONG = Size(12, (40, 160), 60, 4_000_000)
SHORT = Size(4, (10, 40), 20, 400_000)


# What a measure may grow by: a part of it, and so much.
TOLERANCES: dict[str, tuple[float, float]] = {
    "MiB in use": (0.05, 8.0),
    "open files": (0.0, 3.0),
    "threads": (0.0, 1.0),
    "MiB of logs": (0.1, 4.0),
    "MiB of indices": (0.5, 2.0),
    "MiB of files": (0.25, 6.0),
}


class Twin:
    """What one user should hold: texts of memories with their ids, those that were deleted, and
    the texts of turns, of which those in `noted` become a memory, too."""

    def __init__(self, life: int) -> None:
        self.left = life
        self.memories: dict[str, str] = {}
        self.deleted: dict[str, str] = {}
        self.turns: set[str] = set()
        self.noted: set[str] = set()


class Worker:
    """One thread and its world."""

    def __init__(self, soak: Soak, world: str) -> None:
        self.soak = soak
        self.world = world
        self.random = random.Random(f"{soak.options.seed}/{world}")
        self.twins: dict[str, Twin] = {}
        self.saved: dict[str, Twin] | None = None
        self.born = 0

    def run(self, runtime: reverie.Runtime, stop: threading.Event) -> None:
        """Work until `stop`."""
        try:
            while not stop.is_set() and len(self.soak.row.findings) < FINDINGS_END:
                self._once(runtime)
                self.soak.did()
                time.sleep(PAUSE_S)
        except Exception as exc:  # noqa: BLE001 (whatever it is, it is a finding)
            self.soak.found("wrong", f"{self.world}: {exc!r}")

    def _once(self, runtime: reverie.Runtime) -> None:
        if len(self.twins) < self.soak.size.users:
            self.born += 1
            self.twins[f"user-{self.born}"] = Twin(self.random.randint(*self.soak.size.life))
        user_id = self.random.choice(list(self.twins))
        user, twin = runtime.user(user_id, self.world), self.twins[user_id]
        twin.left -= 1
        if twin.left < 0:
            self.audit(user, twin)
            self._forget(user)
        elif self.random.random() < 0.005:
            self._save_or_load(runtime)
        elif self.random.random() < 0.55:
            self._write(user, twin)
        else:
            self._read(user, twin)

    def _text(self, twin: Twin) -> str:
        """Return something that this user was not told before."""
        while True:
            text = " ".join(self.random.choices(WORDS, k=8))
            if text not in twin.memories and text not in twin.deleted and text not in twin.turns:
                return text

    def _write(self, user: reverie.User, twin: Twin) -> None:
        kind = self.random.choices(
            ("remember", "keep", "add", "update", "delete", "restore"), (30, 15, 15, 15, 8, 4)
        )[0]
        text = self._text(twin)
        alive = list(twin.memories)
        if kind == "keep":
            texts = [text, *(" ".join(c) for c in combinations(text.split(), 5))][:4]
            texts = [t for t in dict.fromkeys(texts) if t not in twin.turns]
            user.add(texts, infer=False)
            twin.turns.update(texts)
            self.soak.row.acknowledged += 1
        elif kind == "add":
            user.add(text, wait=self.random.random() < 0.5)
            twin.turns.add(text)
            twin.noted.add(ops.NOTED + text)
        elif kind == "update" and alive:
            old = self.random.choice(alive)
            twin.memories[text] = user.update(twin.memories.pop(old), text).id
        elif kind == "delete" and alive:
            old = self.random.choice(alive)
            twin.deleted[old] = twin.memories.pop(old)
            user.delete(twin.deleted[old])
        elif kind == "restore" and twin.deleted:
            old = self.random.choice(list(twin.deleted))
            twin.memories[old] = twin.deleted.pop(old)
            user.restore(twin.memories[old])
        else:
            kept = user.remember(text, entities=[("Ashford", "place")])
            twin.memories[text] = kept.memory_id or ""
        self.soak.row.acknowledged += 1

    def _read(self, user: reverie.User, twin: Twin) -> None:
        roll = self.random.random()
        if roll < 0.6:
            for hit in user.search(QUESTION, limit=8):
                if hit.text not in twin.memories and hit.text not in twin.turns | twin.noted:
                    self.soak.found("wrong", f"{user} was not told {hit.text!r}")
        elif roll < 0.75:
            user.context(QUESTION, budget_tokens=100)
        elif roll < 0.85:
            user.entities()
        elif twin.memories:
            text, memory_id = self.random.choice(list(twin.memories.items()))
            if user.get(memory_id).text != text or user.history(memory_id)[-1].text != text:
                self.soak.found("lost", f"{user}: {text!r} is not {memory_id}")

    def _save_or_load(self, runtime: reverie.Runtime) -> None:
        if self.saved is None:
            runtime.checkpoint("soak", self.world)
            self.saved = deepcopy(self.twins)
            return
        if self.random.random() < 0.5:
            runtime.rewind("soak", self.world)
            self.twins = deepcopy(self.saved)
        runtime.drop_checkpoint("soak", self.world)
        self.saved = None

    def _forget(self, user: reverie.User) -> None:
        user_id = user.key.user_id
        receipt = user.forget()
        if receipt.erased.existed and not receipt.clean:
            self.soak.found("wrong", f"of {user} is left: {receipt.erased.found}")
        del self.twins[user_id]
        if self.saved is not None:
            self.saved.pop(user_id, None)
        self.soak.counts["users forgotten"] += 1

    def audit(self, user: reverie.User, twin: Twin) -> None:
        """Hold everything that a user has against its twin, once all its turns are extracted."""
        last = self._text(twin)
        user.add(last, wait=True)
        twin.turns.add(last)
        twin.noted.add(ops.NOTED + last)
        page = user.list(limit=10_000, types=("memory", "message"), include_retired=True)
        seen: Counter[tuple[str, str]] = Counter()
        for item in page.items:
            if item.type == "message":
                seen["turn", item.text] += 1
            elif item.status != "superseded":
                seen[item.status, item.text] += 1
        expected = {("turn", t) for t in twin.turns} | {("active", t) for t in twin.noted}
        expected |= {("active", t) for t in twin.memories} | {("expired", t) for t in twin.deleted}
        for one in expected - seen.keys():
            self.soak.found("lost", f"{user}: {one}")
        for one, count in seen.items():
            if one not in expected:
                self.soak.found("wrong", f"{user} has {one}")
            elif count > 1:
                self.soak.found("duplicated", f"{user} has {one} {count} times")
        self.soak.counts["users audited"] += 1


class Soak:
    """The whole run; see the module's text."""

    def __init__(self, options: report.Options, row: report.Row) -> None:
        self.options = options
        self.row = row
        self.size = SHORT if options.minutes < SHORT_MINUTES else LONG
        self.counts: Counter[str] = Counter()
        self.measures: dict[str, list[float]] = {name: [] for name in TOLERANCES}
        self.workers = [Worker(self, world) for world in WORLDS]
        self.folder = options.work / "data"
        self._lock = threading.Lock()

    def run(self) -> None:
        """Load, measure, open anew, and judge."""
        samples = max(6, self.options.count)
        pause_s = self.options.minutes * 60 / samples
        left = samples
        for part in range(REOPENINGS + 1):
            share = left // (REOPENINGS + 1 - part)
            left -= share
            self._run_part(share, pause_s)
            if self.row.findings:
                return
        with self._open() as runtime:
            for worker in self.workers:
                for user_id, twin in worker.twins.items():
                    worker.audit(runtime.user(user_id, worker.world), twin)
            for line in runtime.check():
                self.found("wrong", line)
        self._judge_level()

    def _open(self) -> reverie.Runtime:
        return reverie.open(
            self.folder,
            embedder=HashEmbedder(writer.DIM),
            extractor=ops.NoteTaker(),
            summaries="off",
            decider=writer.AddAll(),
            partitions=writer.PARTITIONS,
            byte_budget=self.size.byte_budget,
            exact_limit=self.size.exact_limit,
        )

    def _run_part(self, samples: int, pause_s: float) -> None:
        stop = threading.Event()
        with self._open() as runtime:
            threads = [
                threading.Thread(target=worker.run, args=(runtime, stop), daemon=True)
                for worker in self.workers
            ]
            for thread in threads:
                thread.start()
            for _ in range(samples):
                time.sleep(pause_s)
                self._measure()
                self.options.advance(1)
            stop.set()
            for thread in threads:
                thread.join(120.0)
                if thread.is_alive():
                    self.found("wrong", "a thread hangs")
        self.counts["openings"] += 1

    def _measure(self) -> None:
        gc.collect()
        sizes = _sizes(self.folder)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        now = {
            "MiB in use": pages * 4096 / 2**20,
            "open files": len([*Path("/proc/self/fd").iterdir()]),
            "threads": len([*Path("/proc/self/task").iterdir()]),
            "MiB of logs": sum(n for p, n in sizes.items() if p.name.endswith("-wal")) / 2**20,
            "MiB of indices": sum(n for p, n in sizes.items() if p.parent.name == "indices")
            / 2**20,
            "MiB of files": sum(sizes.values()) / 2**20,
        }
        for name, value in now.items():
            self.measures[name].append(value)

    def _judge_level(self) -> None:
        """A measure has grown when its last third lies above its second one, and it goes on to."""
        for name, values in self.measures.items():
            third = len(values) // 3
            before, after = median(values[third : 2 * third]), median(values[2 * third :])
            drift = slope(values[third:]) * (len(values) - third)
            part, least = TOLERANCES[name]
            allowed = part * before + least
            self.row.figures[f"{name}: second third"] = round(before, 2)
            self.row.figures[f"{name}: last third"] = round(after, 2)
            if after - before > allowed and drift > allowed:
                self.found("wrong", f"{name} grew from {before:.1f} to {after:.1f}")

    def did(self) -> None:
        with self._lock:
            self.row.count += 1

    def found(self, kind: str, line: str) -> None:
        with self._lock:
            setattr(self.row, kind, getattr(self.row, kind) + 1)
            if len(self.row.findings) < report.SHOWN:
                self.row.findings.append(f"{kind}: {line}")


def slope(values: Sequence[float]) -> float:
    """Return the median of the slopes between all pairs, which a few outliers do not move (Theil
    1950, Sen 1968), per value."""
    step = max(1, len(values) // SLOPE_POINTS)
    points = list(enumerate(values))[::step]
    return median((b - a) / (j - i) for (i, a), (j, b) in combinations(points, 2))


def _sizes(folder: Path) -> dict[Path, int]:
    sizes: dict[Path, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            try:
                sizes[path] = path.stat().st_size
            except FileNotFoundError:  # removed in between
                continue
    return sizes


# -- planted bugs, which the suite must find ---------------------------------------------

_kept: list[Any] = []
_drop, _forget, _search = Residents.drop, reverie.User.forget, reverie.User.search


def _drop_and_keep(residents: Residents, key: Any) -> None:
    """Let nobody leave memory for good."""
    _kept.append(residents.peek(key))
    _drop(residents, key)


def _search_and_log(user: reverie.User, *args: Any, **kwargs: Any) -> Any:
    """Keep what was asked in a list that only grows."""
    _kept.append(bytes(range(256)) * 4_000)
    return _search(user, *args, **kwargs)


def _forget_and_leave_open(user: reverie.User) -> Any:
    """Leave a file open for each user that is forgotten."""
    _kept.append(Path(os.devnull).open("rb"))  # noqa: SIM115 (that is the bug)
    return _forget(user)


BUGS: dict[str, Callable[[], Any]] = {
    "residents-kept": lambda: patch.object(Residents, "drop", _drop_and_keep),
    "growing-list": lambda: patch.object(reverie.User, "search", _search_and_log),
    "files-left-open": lambda: patch.object(reverie.User, "forget", _forget_and_leave_open),
}


@contextmanager
def planted(bug: str | None) -> Iterator[None]:
    """Break the product within the block."""
    try:
        if bug is None:
            yield
        else:
            with BUGS[bug]():
                yield
    finally:
        for one in _kept:
            if hasattr(one, "close"):
                one.close()
        _kept.clear()


def run(options: report.Options) -> report.Row:
    """Run for `options.minutes`, and measure `options.count` times."""
    writer.quiet()
    row = report.Row("soak", "operations")
    soak = Soak(options, row)
    with planted(options.bug):
        try:
            soak.run()
        except reverie.ReverieError as exc:
            soak.found("wrong", f"an operation failed: {exc!r}")
    row.figures |= {
        "minutes": options.minutes,
        **{name: float(n) for name, n in sorted(soak.counts.items())},
    }
    return row


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="soak", bugs=BUGS, count=120))
