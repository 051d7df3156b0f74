"""Actors of Ray that die, or raise, at named points of `reverie.memory_graph.faults`.

    python tests/crash/point_actors.py 20

The clients write without pause and play scenes. A file beside the data folder tells the actors
(faulty_actor.py) where the next of them has to die; Ray starts it anew, and the clients notice
nothing but the time. An actor that raises has lost an answer: the client repeats its request, and
gets the first answer. The count is of faults at each point; 0 makes a few of them.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, report, scenes, writer
from crash.faulty_actor import ARMED, FaultyActor
from crash.point_errors import Persistent, Repeats

import reverie
from reverie.actors import ray_backend
from reverie.memory_graph import faults

Bug: TypeAlias = Literal["no-request-ids"]
Form: TypeAlias = Literal["kill", "raise"]
ACTORS = 2
THREADS = 3
TIGHT_BYTES = 60_000
OFTEN = 10
POINTS: tuple[faults.Point, ...] = (
    "actor-reply.before",
    "reply.before",
    "commit.before",
    "commit.after",
    "append.after",
    "result.after",
    "outbox.after",
    "epoch.before",
    "epoch.after",
    "slot.after",
    "import.after",
    "passivation.after",
    "snapshot.after",
    "log-move.before",
    "erase.rows",
)
# Reached by few scenes: the first time has to do, or a fault would take minutes.
RARE: frozenset[faults.Point] = frozenset(
    {"erase.rows", "slot.after", "import.after", "log-move.before"}
)
SHORT: tuple[tuple[Form, faults.Point], ...] = (
    ("raise", "actor-reply.before"),
    ("kill", "actor-reply.before"),
)
REACH_TIMEOUT_S = 120.0
REST_S = 0.5  # of writing between two faults, and after the last


class Campaign:
    """One runtime with actors that fail."""

    def __init__(self, work: Path, seed: int) -> None:
        self.folder = work / "folder"
        self.made: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []
        self.findings = audit.Findings()
        self.errors: Counter[str] = Counter()
        self._work = work
        self._seed = seed
        self._random = random.Random(seed)

    def run(self, faults_to_make: list[tuple[Form, faults.Point]], done: Any) -> None:
        """Make all faults under load; audit without Ray."""
        auditor = audit.Auditor(self.folder, self.findings, self._seed)
        script = scenes.Script(self._work / "script")
        log = self._work / "log"
        repeats = Repeats()
        os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])  # of the actors
        actor_class = ray_backend.ShardActor
        ray_backend.ShardActor = FaultyActor  # type: ignore[assignment, misc]
        try:
            with scenes.open_runtime(
                self.folder, actors=ACTORS, byte_budget=TIGHT_BYTES, background=True
            ) as runtime:
                self._load(runtime, log, script, repeats, faults_to_make, done)
        finally:
            ray_backend.ShardActor = actor_class  # type: ignore[misc]
        self.errors = repeats.errors
        self.wrong += repeats.strange
        auditor.read(log)
        auditor.audit(cast("Any", lambda folder: scenes.judged(script, self.wrong, folder)))

    def _load(
        self,
        runtime: reverie.Runtime,
        log_path: Path,
        script: scenes.Script,
        repeats: Repeats,
        faults_to_make: list[tuple[Form, faults.Point]],
        done: Any,
    ) -> None:
        plan = writer.Plan(folder="", log="", run=1, seed=self._seed, threads=THREADS)
        log, stop = writer.Log(log_path), threading.Event()

        def play() -> None:
            with suppress(Exception):  # the script tells of it
                scenes.act(runtime, script, 1, stop, cast("scenes.Repeat", repeats))

        threads = [threading.Thread(target=play)]
        for i in range(THREADS):
            worker = Persistent(plan, i, runtime, log)
            worker.repeats = repeats
            threads.append(threading.Thread(target=worker.run, args=(stop,)))
        for thread in threads:
            thread.start()
        for form, point in faults_to_make:
            time.sleep(REST_S)
            if not self._make(form, point):
                self.wrong.append(f"never reached: {point}")
                break
            done(1)
        time.sleep(REST_S)
        stop.set()
        for thread in threads:
            thread.join(REACH_TIMEOUT_S)
        if any(thread.is_alive() for thread in threads):
            self.wrong.append("a call never came back")
        log.close()

    def _make(self, form: Form, point: faults.Point) -> bool:
        lines = [f"{form} {point} {1 if point in RARE else self._random.randint(1, OFTEN)}"]
        if point.startswith("epoch"):  # reached by an actor that starts
            lines = [f"kill commit.before {self._random.randint(1, OFTEN)}", f"{form} {point} 1"]
        armed = self.folder.with_name(ARMED)
        new = armed.with_suffix(".new")
        new.write_text("\n".join(lines))
        new.rename(armed)
        deadline = time.monotonic() + REACH_TIMEOUT_S
        while armed.exists():
            if time.monotonic() > deadline:
                armed.unlink(missing_ok=True)
                return False
            time.sleep(0.02)
        self.made[form, point] += 1
        return True


def run(options: report.Options) -> report.Row:
    """Make each fault `count` times; with 0, a few of them once."""
    bug = cast("Bug | None", options.bug)
    scenes.silence()
    pairs: list[tuple[Form, faults.Point]] = list(SHORT)
    if options.count:
        kills: list[tuple[Form, faults.Point]] = [("kill", point) for point in POINTS]
        pairs = [*kills, ("raise", "actor-reply.before"), ("raise", "reply.before")] * options.count
        random.Random(options.seed).shuffle(pairs)
    campaign = Campaign(options.work, options.seed)
    if bug == "no-request-ids":  # of the audit, as if the actors had kept none
        writer.plant("no-request-ids", writer=False)
    campaign.run(pairs, lambda n: options.advance(n if not options.count else 0))
    found = campaign.findings
    return report.Row(
        suite="kill -9 of actors at points",
        unit="faults",
        count=campaign.made.total(),
        acknowledged=found.acknowledged,
        lost=len(found.lost),
        duplicated=len(found.duplicated),
        wrong=len(found.partial) + len(found.broken) + len(campaign.wrong),
        figures={
            "points": len({point for _, point in campaign.made}),
            "errors that a caller got": campaign.errors.total(),
            "repeated": found.repeated,
        },
        findings=found.lines + campaign.wrong,
    )


if __name__ == "__main__":
    what = "actors that die at named points"
    sys.exit(report.command_line(run, what=what, bugs=get_args(Bug)))
