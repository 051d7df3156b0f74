"""kill -9 while events go to their witnesses: each has it once, or none of them has it.

    python tests/crash/witnesses.py 100

A writer lets things happen before people in several partitions, lets them join a group and leave
it, saves now and then, and kills itself when it has come to so many named points. The folder is
opened, and every batch is looked for: those that were acknowledged are there, the one that was
under way is there whole or not at all, nothing is there twice, and a group and its members agree.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

import pytest
from crash import report

import reverie
from reverie import Kept, Runtime
from reverie.actors import commands as c, writes
from reverie.memory_graph import faults
from reverie.memory_graph.store import Catalog
from reverie.models.standin import HashEmbedder

Bug: TypeAlias = Literal[
    "no-intents",  # nothing is noted before the first delivery
    "no-memory-of-deliveries",  # what is delivered again is kept again
]

PEOPLE = [f"npc-{i}" for i in range(10)]
PARTITIONS = 5
BATCHES = 12  # of a writer that nobody kills
EVENTS = 3  # of a batch
MOST_POINTS = 1500  # that a writer comes to
JOIN_S = 60.0
FOLDER_KILLS = 6
WORLD = "town"


def batch(run: int, number: int) -> list[dict[str, Any]]:
    """Return the events of a batch; the same in the writer and the auditor."""
    rng = random.Random(1000 * run + number)
    return [
        {
            "text": f"事件 {run}-{number}-{i}: a bell rings.",
            "witnesses": rng.sample(PEOPLE, rng.randint(2, len(PEOPLE))),
            "groups": ["guild"] if i == 0 else [],
            "event_id": f"{run}-{number}-{i}",
            "place": "tower",
        }
        for i in range(EVENTS)
    ]


def opened(folder: Path) -> Runtime:
    """Open a folder as all processes here do."""
    return reverie.open(
        folder,
        embedder=HashEmbedder(16),
        partitions=PARTITIONS,
        background=False,
        clock=reverie.SimulatedClock(0.0),
    )


def write(folder: Path, log: Path, run: int, points: int, bug: Bug | None) -> None:
    """Let things happen until so many points have been reached; note each batch that is done."""
    if bug == "no-intents":
        Catalog.begin_intent = lambda *_: None  # type: ignore[method-assign]
    reached = 0

    def count(_point: faults.Point) -> None:
        nonlocal reached
        reached += 1
        if reached == points:
            os.kill(os.getpid(), signal.SIGKILL)

    rng = random.Random(run)
    with opened(folder) as rt, log.open("a", buffering=1) as acknowledged:
        town = rt.world(WORLD)
        faults.install(count)
        for number in range(BATCHES):
            town.observe_many(batch(run, number))
            acknowledged.write(f"{number}\n")
            person, guild = rng.choice(PEOPLE), town.group("guild")
            (guild.join if rng.random() < 0.6 else guild.leave)(person)
            if number == BATCHES // 2:
                town.checkpoint(f"save {run}")


class Campaign:
    """A series of kills, and what was found after them."""

    def __init__(self, options: report.Options) -> None:
        self.bug = cast("Bug | None", options.bug)
        self.work = options.work
        self.lost: list[str] = []
        self.doubled: list[str] = []
        self.wrong: list[str] = []
        self.acknowledged = self.landed = self.absent = self.finished = 0
        self._random = random.Random(options.seed)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["reverie.runtime", "reverie.models.standin"])

    @property
    def lines(self) -> list[str]:
        """Everything that was found."""
        return [*self.lost, *self.doubled, *self.wrong]

    def kill(self, run: int) -> None:
        """Let a writer kill itself, open the folder, and look for what it did."""
        folder, log = self.work / f"folder-{run // FOLDER_KILLS}", self.work / f"log-{run}"
        points = self._random.randint(1, MOST_POINTS)
        process = self._context.Process(target=write, args=(folder, log, run, points, self.bug))
        process.start()
        process.join(JOIN_S)
        if process.exitcode not in {0, -signal.SIGKILL}:
            process.kill()
            self.wrong.append(f"the writer ended with {process.exitcode}")
            return
        done = len(log.read_text().split()) if log.exists() else 0
        with replaying(self.bug):
            rt = opened(folder)
        with rt:
            self._audit(rt, run, done)
        if run % FOLDER_KILLS == FOLDER_KILLS - 1:
            shutil.rmtree(folder)

    def _audit(self, rt: Runtime, run: int, done: int) -> None:
        self.wrong += rt.check()
        self.acknowledged += done
        self.finished += done == BATCHES
        for number in range(BATCHES):
            found = [
                (event["event_id"], owner, self._count(rt, owner, event["event_id"]))
                for event in batch(run, number)
                for owner in [*event["witnesses"], *(f"group:{g}" for g in event["groups"])]
            ]
            counts = {count for *_, count in found}
            self.doubled += [f"{e} is {n} times with {o}" for e, o, n in found if n > 1]
            if number < done:
                self.lost += [f"{e} is not with {o}" for e, o, n in found if not n]
            elif len({bool(count) for count in counts}) > 1:
                have = [o for _, o, n in found if n]
                self.wrong.append(f"batch {run}-{number} is with {have} alone")
            elif number > done and counts != {0}:
                self.wrong.append(f"batch {run}-{number} was never begun")
            elif number == done:
                self.landed += counts != {0}
                self.absent += counts == {0}
        town = rt.world(WORLD)
        members = set(town.group("guild").members())
        for person in PEOPLE:
            # Who has left stays among those that may recall something; a member must be there.
            names = rt.call(c.MemberOf(world=WORLD, user_id=person, now=0.0))
            if person in members and names != ["guild"]:
                self.wrong.append(f"{person} is a member, and does not know it")

    @staticmethod
    def _count(rt: Runtime, owner: str, event_id: str) -> int:
        user = rt.user(owner, WORLD)
        return user.list(filters={"event": event_id}, include_retired=True).total


@contextmanager
def replaying(bug: Bug | None) -> Iterator[None]:
    """Break what is done at the opening, for the time of the block."""
    with pytest.MonkeyPatch.context() as patch:
        if bug == "no-memory-of-deliveries":
            patch.setattr(writes, "learn", lambda w, draft, **_: Kept("ADD", w.remember(draft)))
        yield


def run(options: report.Options) -> report.Row:
    """Kill `count` writers, until something is found."""
    campaign = Campaign(options)
    done = 0
    for done in range(1, options.count + 1):
        campaign.kill(done - 1)
        options.advance(1)
        if campaign.lines:
            break
    return report.Row(
        suite="kill -9 while events are delivered",
        unit="kills",
        count=done,
        acknowledged=campaign.acknowledged,
        lost=len(campaign.lost),
        duplicated=len(campaign.doubled),
        wrong=len(campaign.wrong),
        figures={
            "unacknowledged and landed": campaign.landed,
            "unacknowledged and absent": campaign.absent,
            "not killed": campaign.finished,
        },
        findings=campaign.lines,
    )


if __name__ == "__main__":
    sys.exit(
        report.command_line(run, what="kill -9 while events are delivered", bugs=get_args(Bug))
    )
