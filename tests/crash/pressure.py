"""Pressure: ten times the load that it can take, on a slow disk.

    python tests/crash/pressure.py 20000

Many more threads than may wait for a shard write large texts and search without a pause, while each
commit takes long; then thousands of coroutines do so at once. What is too much has to be refused
by `OverloadedError`, at once and whole; nothing else may be raised, nothing may hang, and memory
stays within a stated bound. Afterwards everything that was acknowledged is there, nothing that was
refused is, and the backlog of extraction is worked off.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import ops, report, writer

import reverie
from reverie.actors import lane
from reverie.aio import AsyncRuntime
from reverie.memory_graph import faults
from reverie.models.standin import HashEmbedder

MAX_WAITING = 16  # commands that may wait for the shard
THREADS = 10 * MAX_WAITING
AT_ONCE = 1_000  # coroutines
COMMIT_S = 0.005  # more for each commit
TEXT_BYTES = (1_000, 32_000)
USERS = tuple(f"user-{i:02d}" for i in range(24))
BYTE_BUDGET = 16 * 1024**2
FOLDER_CALLS = 4_000  # in one data folder
HANG_S = 60.0  # without any answer, so that something hangs
# What may come on top: the users in memory, twice what their estimate says, and what waits, with
# its copies on the way to the disk, and the same for the batch under way; then what the allocator
# keeps of all that.
MOST_GROWTH_BYTES = 2 * BYTE_BUDGET + 8 * 2 * MAX_WAITING * TEXT_BYTES[1] + 48 * 1024**2
FILLER = "the smith of Ashford sold a red lantern to the captain. 铁匠把一盏红灯笼卖给了船长。 "


def resident_bytes() -> int:
    """Return the memory of this process that is in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


class Pressure:
    """One data folder after the other; see the module's text."""

    def __init__(self, options: report.Options, row: report.Row) -> None:
        self.options = options
        self.row = row
        self.folders = 0
        self.counts: Counter[str] = Counter()
        self.kept: dict[str, list[str]] = {}  # beginnings of texts that were acknowledged
        self.refused: set[str] = set()
        self.growth_bytes = 0
        self.recovery_s = self.drain_s = 0.0
        self._lock = threading.Lock()
        self._number = 0

    def run(self) -> None:
        """Go on until enough was done, or something was found."""
        while self.row.count < self.options.count and self.row.is_clean:
            self.folders += 1
            self._run_folder()
        self.row.figures = {
            "refused": self.counts["refused"],
            "searches": self.counts["searches"],
            "async calls refused": self.counts["async refused"],
            "most MiB of growth": self.growth_bytes >> 20,
            "stated MiB of growth": MOST_GROWTH_BYTES >> 20,
            "seconds until a call is answered again": round(self.recovery_s, 3),
            "seconds until all is extracted": round(self.drain_s, 2),
        }

    def _run_folder(self) -> None:
        folder = self.options.work / f"folder-{self.folders}"
        calls = min(FOLDER_CALLS, self.options.count - self.row.count)
        self.kept = {user_id: [] for user_id in USERS}
        self.refused = set()
        runtime = self._open(folder)
        try:
            self._warm_up(runtime)
            with self._watched(), _slow_commits():
                self._flood(runtime, calls * 3 // 4)
                if self.row.is_clean:
                    asyncio.run(self._flood_async(runtime, calls // 4))
            if self.row.is_clean:
                self._recover(runtime)
        finally:
            runtime.close()
        if self.row.is_clean:
            with self._open(folder) as again:
                self._audit(again)

    def _open(self, folder: Path) -> reverie.Runtime:
        return reverie.open(
            folder,
            embedder=HashEmbedder(writer.DIM),
            extractor=ops.NoteTaker(),
            summaries="off",
            decider=writer.AddAll(),
            partitions=writer.PARTITIONS,
            byte_budget=BYTE_BUDGET,
            max_waiting=MAX_WAITING,
        )

    def _warm_up(self, runtime: reverie.Runtime) -> None:
        """Let everything be imported and cached before memory is measured."""
        user = runtime.user("warm")
        user.add(FILLER, wait=True)
        user.remember(FILLER)
        user.search(FILLER)

    # -- the load ------------------------------------------------------------------------

    def _flood(self, runtime: reverie.Runtime, calls: int) -> None:
        left = iter(range(calls))

        def work(number: int) -> None:
            chance = random.Random(f"{self.options.seed}/{self.folders}/{number}")
            while self.row.is_clean:
                with self._lock:
                    if next(left, None) is None:
                        return
                self._call(runtime, chance)

        threads = [
            threading.Thread(target=work, args=(i,), daemon=True, name=f"load-{i}")
            for i in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        before, since = -1, time.monotonic()
        for thread in threads:
            while thread.is_alive():
                thread.join(1.0)
                if self.row.count != before:
                    before, since = self.row.count, time.monotonic()
                elif time.monotonic() > since + HANG_S:
                    self.found("wrong", f"{sum(t.is_alive() for t in threads)} threads hang")
                    return
        if not self.counts["refused"]:
            self.found("wrong", f"{THREADS} threads, and nothing was refused")

    def _call(self, runtime: reverie.Runtime, chance: random.Random) -> None:
        user = runtime.user(chance.choice(USERS))
        roll = chance.random()
        text = self._text(chance)
        try:
            if roll < 0.3:
                user.search("Who sold the red lantern? 谁卖的?", limit=3)
            elif roll < 0.6:
                user.add(text, infer=roll < 0.4)
            else:
                user.remember(text)
        except reverie.errors.OverloadedError:
            self._was_refused(None if roll < 0.3 else text)
            time.sleep(0.002)  # as a client does
        except Exception as exc:  # noqa: BLE001 (whatever it is, it is a finding)
            self.found("wrong", f"a call failed: {exc!r}")
        else:
            self._was_done(user.key.user_id, None if roll < 0.3 else text)

    async def _flood_async(self, runtime: reverie.Runtime, calls: int) -> None:
        twin = AsyncRuntime(runtime)
        chance = random.Random(f"{self.options.seed}/{self.folders}/async")

        async def call() -> None:
            user, text = twin.user(chance.choice(USERS)), self._text(chance)
            try:
                await user.remember(text)
            except reverie.errors.OverloadedError:
                self._was_refused(text)
                with self._lock:
                    self.counts["async refused"] += 1
            except Exception as exc:  # noqa: BLE001 (whatever it is, it is a finding)
                self.found("wrong", f"a call failed: {exc!r}")
            else:
                self._was_done(user.key.user_id, text)

        for start in range(0, calls, AT_ONCE):
            await asyncio.gather(*(call() for _ in range(min(AT_ONCE, calls - start))))
        twin._pool.shutdown()

    def _text(self, chance: random.Random) -> str:
        with self._lock:
            self._number += 1
            number = self._number
        size = chance.randint(*TEXT_BYTES)
        return f"#{number} " + FILLER * (size // len(FILLER.encode()))

    def _was_done(self, user_id: str, text: str | None) -> None:
        with self._lock:
            self.row.count += 1
            if text is None:
                self.counts["searches"] += 1
            else:
                self.row.acknowledged += 1
                self.kept[user_id].append(text.partition(" ")[0])
        self.options.advance(1)

    def _was_refused(self, text: str | None) -> None:
        with self._lock:
            self.row.count += 1
            self.counts["refused"] += 1
            if text is not None:
                self.refused.add(text.partition(" ")[0])
        self.options.advance(1)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Measure how much memory is used on top within the block."""
        before, done = resident_bytes(), threading.Event()

        def watch() -> None:
            while not done.wait(0.02):
                self.growth_bytes = max(self.growth_bytes, resident_bytes() - before)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        if self.growth_bytes > MOST_GROWTH_BYTES:
            self.found(
                "wrong",
                f"{self.growth_bytes >> 20} MiB more in use, over {MOST_GROWTH_BYTES >> 20} MiB",
            )

    # -- afterwards ----------------------------------------------------------------------

    def _recover(self, runtime: reverie.Runtime) -> None:
        began = time.monotonic()
        kept = runtime.user("late").remember("The load is over. 负荷过去了。")
        hits = runtime.user("late").search("load 负荷")
        self.recovery_s = max(self.recovery_s, time.monotonic() - began)
        if [hit.id for hit in hits] != [kept.memory_id]:
            self.found("lost", "what was written right after the load")
        runtime.drain(HANG_S)
        self.drain_s = max(self.drain_s, time.monotonic() - began)
        stats = runtime.stats()
        if stats.pending or stats.quarantined:
            self.found("wrong", f"{stats.pending} turns wait, {stats.quarantined} failed")

    def _audit(self, runtime: reverie.Runtime) -> None:
        for user_id in USERS:
            seen: Counter[str] = Counter()
            cursor: str | None = None
            while True:
                page = runtime.user(user_id).list(
                    limit=50, cursor=cursor, types=("memory", "message")
                )
                seen.update(i.text.partition(" ")[0] for i in page.items if i.text[0] == "#")
                cursor = page.cursor
                if cursor is None:
                    break
            for name in self.kept[user_id]:
                if not seen[name]:
                    self.found("lost", f"{name} of {user_id}")
                elif seen[name] > 1:
                    self.found("duplicated", f"{name} of {user_id} is there {seen[name]} times")
            for name in seen.keys() - set(self.kept[user_id]):
                why = "it was refused" if name in self.refused else "nobody wrote it"
                self.found("wrong", f"{name} of {user_id} is there, but {why}")
        for line in runtime.check():
            self.found("wrong", line)

    def found(self, kind: str, line: str) -> None:
        with self._lock:
            setattr(self.row, kind, getattr(self.row, kind) + 1)
            if len(self.row.findings) < report.SHOWN:
                self.row.findings.append(f"{kind}: {line}")


@contextmanager
def _slow_commits() -> Iterator[None]:
    def wait(point: faults.Point) -> None:
        if point == "commit.before":
            time.sleep(COMMIT_S)

    faults.install(wait)
    try:
        yield
    finally:
        faults.install(None)


# -- planted bugs, which the suite must find ---------------------------------------------

_admit, _call_lane = lane.Lane._admit, lane.Lane.call
_hoard: list[str] = []


def _admit_all(self: lane.Lane, ticket: Any) -> None:
    self._waiting = -(10**9)
    _admit(self, ticket)


def _do_and_refuse(self: lane.Lane, commands: Any) -> list[Any]:
    """Refuse now and then what was carried out."""
    answers = _call_lane(self, commands)
    is_load = threading.current_thread().name.startswith("load-")
    if is_load and random.random() < 0.05:
        msg = "too much"
        raise reverie.errors.OverloadedError(msg)
    return answers


def _call_and_keep(self: lane.Lane, commands: Any) -> list[Any]:
    """Keep a copy of what was asked, as a log in memory would."""
    _hoard.append(repr(commands) * 100)
    return _call_lane(self, commands)


BUGS: dict[str, Callable[[], Any]] = {
    "unbounded": lambda: patch.object(lane.Lane, "_admit", _admit_all),
    "refused-but-done": lambda: patch.object(lane.Lane, "call", _do_and_refuse),
    "hoard": lambda: patch.object(lane.Lane, "call", _call_and_keep),
}


def run(options: report.Options) -> report.Row:
    """Make `options.count` calls."""
    writer.quiet()
    row = report.Row("pressure", "calls")
    pressure = Pressure(options, row)
    with BUGS[options.bug]() if options.bug else patch.object(lane.Lane, "call", _call_lane):
        try:
            pressure.run()
        except reverie.ReverieError as exc:
            pressure.found("wrong", f"a call failed: {exc!r}")
        finally:
            _hoard.clear()
    return row


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="pressure", bugs=BUGS))
