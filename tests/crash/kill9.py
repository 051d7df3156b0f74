"""kill -9, over and over: what was acknowledged must be there, once, and whole.

    python tests/crash/kill9.py 1000

Starts a writer on a growing data folder, kills it at a random moment, opens the folder and audits
all of it; see audit.py. The moments are 5 to 400 ms after the first acknowledgement, or while the
folder is being opened; now and then the next opening is killed too, before anybody has repaired
anything. Some folders are worked on with checkpoints and rewinds.

kill -9 stops a process, not the machine: what the process had handed to the kernel is kept. Power
loss is another suite. `--bug` breaks the writer on purpose, and then this one has to fail.
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import cast, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, report, writer

FIRST_MS, LAST_MS = 5, 400  # after the first acknowledgement
OPENING_SHARE = 0.12  # of the kills hit the opening
OPENING_MS = 120
REOPENING_SHARE = 0.15  # of the kills are followed by one of the next opening
SLOTS_SHARE = 0.3  # of the folders have checkpoints
TIGHT_SHARE = 0.4  # of the runs have no room for all users in memory
TIGHT_BYTES = 300_000
FOLDER_RUNS = (10, 40)  # runs in one folder
START_TIMEOUT_S = 60.0


class Campaign:
    """A series of kills. Ends with the first finding, and then leaves the folder where it is."""

    def __init__(self, work: Path, seed: int, bug: writer.Bug | None) -> None:
        self.work = work
        self.seed = seed
        self.bug = bug
        self.findings = audit.Findings()
        self.runs = self.folders = 0
        self._random = random.Random(seed)
        self._left = 0
        self._slots = False
        self._auditor = audit.Auditor(work / "folder-0", self.findings)
        # Each writer is forked from a process that has imported everything and opened nothing.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(
            ["reverie.runtime", "reverie.models.standin", "rich.progress"]
        )

    def run(self) -> None:
        """Kill a writer, or two in a row, and audit."""
        if not self._left:
            shutil.rmtree(self._auditor.folder, ignore_errors=True)
            self.folders += 1
            self._left = self._random.randint(*FOLDER_RUNS)
            self._slots = self._random.random() < SLOTS_SHARE
            folder = self.work / f"folder-{self.folders}"
            self._auditor = audit.Auditor(folder, self.findings, self.seed)
        self._left -= 1
        self._kill_one(opening=self._random.random() < OPENING_SHARE)
        while self._random.random() < REOPENING_SHARE:
            self._kill_one(opening=True, threads=0)
        self._auditor.audit()

    def _kill_one(self, *, opening: bool, threads: int | None = None) -> None:
        self.runs += 1
        log = self.work / "log"
        log.unlink(missing_ok=True)
        if threads is None:
            threads = len(writer.WORLDS) if self._slots else 4
        plan = writer.Plan(
            folder=str(self._auditor.folder),
            log=str(log),
            run=self.runs,
            seed=self.seed,
            threads=threads,
            slots=self._slots,
            byte_budget=TIGHT_BYTES if self._random.random() < TIGHT_SHARE else 1 << 30,
            bug=self.bug,
        )
        process = self._context.Process(target=writer.main, args=(plan,), daemon=True)
        process.start()
        if opening:
            time.sleep(self._random.uniform(0, OPENING_MS) / 1000)
        else:
            _wait_for_answer(log, process)
            time.sleep(self._random.uniform(FIRST_MS, LAST_MS) / 1000)
        process.kill()
        process.join()
        process.close()
        self._auditor.read(log)

    def row(self) -> report.Row:
        """Return what has come of it so far."""
        found = self.findings
        return report.Row(
            suite="kill -9 at random moments",
            unit="kills",
            count=self.runs,
            acknowledged=found.acknowledged,
            lost=len(found.lost),
            duplicated=len(found.duplicated),
            wrong=len(found.partial) + len(found.broken),
            figures={
                "folders": self.folders,
                "unacknowledged that landed": found.landed,
                "unacknowledged that did not": found.absent,
                "repeated requests": found.repeated,
            },
            findings=found.lines,
        )


def _wait_for_answer(log: Path, process: ForkServerProcess) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not log.exists() or b'"answered"' not in log.read_bytes():
        if not process.is_alive() or time.monotonic() > deadline:
            msg = f"the writer did not begin (exit status {process.exitcode})"
            raise RuntimeError(msg)
        time.sleep(0.001)


def run(options: report.Options) -> report.Row:
    """Kill writers until `count` are dead or something is found."""
    writer.quiet()
    bug = cast("writer.Bug | None", options.bug)
    writer.plant(bug, writer=False)
    campaign = Campaign(options.work, options.seed, bug)
    while campaign.runs < options.count and not campaign.findings.lines:
        before = campaign.runs
        campaign.run()
        options.advance(campaign.runs - before)
    return campaign.row()


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="kill -9", bugs=get_args(writer.Bug)))
