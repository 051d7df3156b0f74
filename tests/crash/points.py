"""kill -9 at every named point of `reverie.memory_graph.faults`, again and again.

    python tests/crash/points.py 20  # 0: once at a few of them

Each writer kills itself when it comes to a point for the k-th time; then the folder is opened and
all of it audited, as in kill9.py, and the scenes are judged (scenes.py). The count is of kills at
each point. The point of the actors of Ray is for test_points.py.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, report, scenes, writer

from reverie.actors.shard import Shard
from reverie.memory_graph import faults
from reverie.memory_graph.store import Catalog

Bug: TypeAlias = Literal[
    "ack-before-commit",
    "commit-in-pieces",
    "no-request-ids",
    "no-intents",  # operations over many partitions are not noted before they begin
    "no-scrub-at-opening",  # an erasure that was interrupted is not finished
    "dead-point",  # one of the points is never reached
]

# Where a bug must show: it would elsewhere, too, and later.
AT: dict[str, tuple[faults.Point, ...]] = {
    "ack-before-commit": ("reply.before", "reply.after", "append.after"),
    "commit-in-pieces": ("append.before", "append.after", "outbox.before"),
    "dead-point": ("commit.before", cast("faults.Point", "nowhere")),
    "no-intents": ("slot.after", "import.after"),
    "no-scrub-at-opening": ("erase.rows",),
}
SHORT: tuple[faults.Point, ...] = (
    "append.after",
    "commit.before",
    "commit.after",
    "reply.before",
    "passivation.before",
    "index-name.after",
    "epoch.after",
    "slot.after",
    "import.after",
    "erase.rows",
)
HERE: tuple[faults.Point, ...] = tuple(p for p in faults.POINTS if not p.startswith("actor"))
OPENING = ("owner-name", "epoch")  # reached only then
# A point is taken at its k-th reaching, for a random k up to this; other points: `OFTEN`.
RARE = {
    "owner-name": 1,
    "epoch": writer.PARTITIONS,
    "snapshot": 4,
    "log-cut": 2,
    "rewrite": 2,
    "erase": 2,
    "intent": 6,
    "intent-end": 6,
    "slot": 16,
    "import": 6,
    "log-move": 20,
}
OFTEN = 60
TIGHT_BYTES = 60_000  # no room for all users in memory
SLOTS_SHARE = 0.3  # of the folders have checkpoints
REOPENING_SHARE = 0.2  # of the kills are followed by one of the next opening
FOLDER_KILLS = 15
BUG_ROUNDS = 8  # at most: not every kill shows every bug
REACH_TIMEOUT_S = 20.0
SHORT_TIMEOUT_S = 5.0  # of the short form


class Campaign:
    """Kills at points. Ends with the first finding, and then leaves the folder where it is."""

    def __init__(self, work: Path, seed: int, bug: Bug | None, reach_timeout_s: float) -> None:
        self.work = work
        self.bug = bug
        self.reach_timeout_s = reach_timeout_s
        self.findings = audit.Findings()
        self.killed: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.wrong: list[str] = []  # with the scenes
        self.scenes = 0
        self._seed = seed
        self._random = random.Random(seed)
        self._runs = self._folders = self._left = 0
        self._slots = False
        self._auditor = audit.Auditor(work / "folder-0", self.findings)
        self._script = scenes.Script(work / "script-0")
        # Each writer is forked from a process that has imported everything and opened nothing.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["reverie.runtime", "reverie.models.standin"])

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found so far."""
        return not self.findings.lines and not self.wrong

    def kill_at(self, point: faults.Point) -> None:
        """Let a writer kill itself at a point, perhaps another one at the next opening; audit."""
        if not self._left:
            shutil.rmtree(self._auditor.folder, ignore_errors=True)
            self._folders += 1
            self._left = FOLDER_KILLS
            self._slots = self._random.random() < SLOTS_SHARE
            folder = self.work / f"folder-{self._folders}"
            self._auditor = audit.Auditor(folder, self.findings, self._seed)
        self._left -= 1
        self._script = scenes.Script(self.work / f"script-{self._runs}")
        self._kill(point, threads=len(writer.WORLDS) if self._slots else 3)
        if self._random.random() < REOPENING_SHARE:
            self._kill(self._random.choice([p for p in HERE if _stem(p) in OPENING]), threads=0)
        opened = cast("Callable[[Path], Any]", self._opened)
        self._auditor.audit(opened)

    def _opened(self, folder: Path) -> Any:
        self.scenes += len(self._script.read())
        return scenes.judged(self._script, self.wrong, folder)

    def _kill(self, point: faults.Point, *, threads: int) -> None:
        self._runs += 1
        log = self.work / "log"
        log.unlink(missing_ok=True)
        plan = writer.Plan(
            folder=str(self._auditor.folder),
            log=str(log),
            run=self._runs,
            seed=self._seed,
            threads=threads,
            slots=self._slots,
            byte_budget=TIGHT_BYTES,
        )
        at = self._random.randint(1, RARE.get(_stem(point), OFTEN))
        process = self._context.Process(
            target=perform, args=(plan, self._script, point, at, self.bug), daemon=True
        )
        process.start()
        process.join(self.reach_timeout_s)
        if process.exitcode == -signal.SIGKILL:
            self.killed[point] += 1
        elif process.exitcode is None:  # it never came there for the k-th time
            self.missed[point] += 1
            process.kill()
            process.join()
        else:
            self.wrong.append(f"{point}: the writer ended by itself ({process.exitcode})")
        process.close()
        self._auditor.read(log)


def _stem(point: str) -> str:
    return point.partition(".")[0]


def perform(
    plan: writer.Plan, script: scenes.Script, point: faults.Point, at: int, bug: Bug | None
) -> None:
    """Write and play scenes until a point is reached for the `at`-th time."""
    writer.quiet()
    plant(bug, writing=True)
    reached = itertools.count(1)

    def handler(name: faults.Point) -> None:
        if name == point and next(reached) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.install(handler)
    scenes.perform(plan, script)


def run(options: report.Options) -> report.Row:
    """Kill `count` times at each point, or until something is found."""
    bug = cast("Bug | None", options.bug)
    writer.quiet()
    plant(bug, writing=False)
    timeout_s = REACH_TIMEOUT_S if options.count else SHORT_TIMEOUT_S
    campaign = Campaign(options.work, options.seed, bug, timeout_s)
    points = list(AT.get(bug or "", HERE if options.count else SHORT))
    order = random.Random(options.seed)
    for _ in range(options.count or (BUG_ROUNDS if bug in AT else 1)):
        order.shuffle(points)
        for point in points:
            campaign.kill_at(point)
            if not campaign.is_clean:
                break
        options.advance(1)
        if not campaign.is_clean or bug == "dead-point":
            break
    found = campaign.findings
    dead = [p for p in points if not campaign.killed[p]] if campaign.is_clean else []
    return report.Row(
        suite="kill -9 at each point",
        unit="kills",
        count=campaign.killed.total(),
        acknowledged=found.acknowledged,
        lost=len(found.lost),
        duplicated=len(found.duplicated),
        wrong=len(found.partial) + len(found.broken) + len(campaign.wrong) + len(dead),
        figures={
            "points": len(campaign.killed),
            "fewest at a point": min(campaign.killed[p] for p in points),
            "not reached in time": campaign.missed.total(),
            "scenes": campaign.scenes,
            "unacknowledged and landed": found.landed,
            "unacknowledged and absent": found.absent,
            "repeated": found.repeated,
        },
        findings=found.lines + campaign.wrong + [f"never reached: {point}" for point in dead],
    )


def plant(bug: Bug | None, *, writing: bool) -> None:
    """Break the product in this process: the writer's, or the auditor's."""
    if bug in get_args(writer.Bug):
        writer.plant(cast("writer.Bug", bug), writer=writing)
    if bug == "no-intents":
        Catalog.begin_intent = lambda *_: None  # type: ignore[method-assign]
    if bug == "no-scrub-at-opening":
        Shard._scrub = lambda *_: True  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="kill -9 at each named point", bugs=get_args(Bug)))
