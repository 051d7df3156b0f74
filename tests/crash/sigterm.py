"""SIGTERM under load: the program ends within its stated time, and what was acknowledged is there.

    python tests/crash/sigterm.py 200

Starts a program that writes from several threads within `closing_on_sigterm`, and terminates it at
a random moment. It has to exit with status 143 within its stated time, also while an extraction
takes very long and while its main thread is stuck in a library that no signal interrupts; the
folder has to open at once, and an audit of all that was ever written follows, as after a kill -9.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, ops, report, writer

import reverie
from reverie import stopping
from reverie.stopping import TERMINATED

Mode: TypeAlias = Literal["busy", "slow", "stuck"]
Bug: TypeAlias = Literal["ignored", "no-deadline", "waits", "ack-before-commit"]

MODES: tuple[Mode, ...] = ("busy", "slow", "stuck")
SHARES = (8, 1, 1)
WITHIN_S = 1.0  # the time that is stated
SLACK_S = 2.0  # for a busy machine to start a thread and to reap a process
SLOW_S = 10.0  # of an extraction, or of the main thread in a library
FIRST_MS, LAST_MS = 5, 400  # after the first acknowledgement
FOLDER_RUNS = 20
START_TIMEOUT_S = 60.0


class Quiet(writer.Log):
    """A log of a program that ends: what is refused then has no answer, and is no fault."""

    def write(self, line: writer.Line) -> None:
        if not (isinstance(line, writer.Refused) and line.error.startswith("ClosedError")):
            super().write(line)


def main(plan: writer.Plan, mode: Mode, bug: Bug | None) -> None:
    """Open the folder and write until terminated."""
    writer.quiet()
    plant(bug)
    if mode == "slow":
        note = ops.NoteTaker.extract

        def extract(taker: ops.NoteTaker, *args: Any) -> Any:
            time.sleep(SLOW_S)
            return note(taker, *args)

        ops.NoteTaker.extract = extract  # type: ignore[assignment, method-assign]
    # Threads of the program end with their first call after SIGTERM.
    threading.excepthook = lambda given: (
        None
        if isinstance(given.exc_value, reverie.errors.ClosedError)
        else threading.__excepthook__(given)
    )
    log = Quiet(plan.log)
    with (
        writer.open_runtime(plan.folder, actors=plan.actors, background=True) as runtime,
        reverie.closing_on_sigterm(runtime, WITHIN_S),
    ):
        log.write(writer.Opened())
        stop = threading.Event()
        load = threading.Thread(target=writer.work, args=(plan, runtime, log, stop), daemon=True)
        load.start()
        if mode == "stuck":  # one call without an end, as far as signals are concerned
            hashlib.pbkdf2_hmac("sha256", b"", b"", int(SLOW_S * 1_500_000))
        load.join()


class Campaign:
    """A series of terminations. Ends with the first finding, and then leaves the folder."""

    def __init__(self, options: report.Options) -> None:
        self.options = options
        self.findings = audit.Findings()
        self.wrong: list[str] = []
        self.modes: Counter[Mode] = Counter()
        self.runs = 0
        self.longest_s = 0.0
        self._random = random.Random(options.seed)
        self._auditor = audit.Auditor(options.work / "folder-0", self.findings)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["reverie.runtime", "reverie.models.standin"])

    def run(self, mode: Mode) -> None:
        """Terminate a program, and audit."""
        if not self.runs % FOLDER_RUNS:
            shutil.rmtree(self._auditor.folder, ignore_errors=True)
            folder = self.options.work / f"folder-{self.runs // FOLDER_RUNS}"
            self._auditor = audit.Auditor(folder, self.findings, self.options.seed)
        self.runs += 1
        self.modes[mode] += 1
        log = self.options.work / "log"
        log.unlink(missing_ok=True)
        plan = writer.Plan(
            folder=str(self._auditor.folder), log=str(log), run=self.runs, seed=self.options.seed
        )
        process = self._context.Process(
            target=main, args=(plan, mode, cast("Bug | None", self.options.bug)), daemon=True
        )
        process.start()
        _wait_for_answer(log, process)
        time.sleep(self._random.uniform(FIRST_MS, LAST_MS) / 1000)
        self._terminate(process, mode)
        self._auditor.read(log)
        if not self.wrong:
            self._auditor.audit()

    def _terminate(self, process: BaseProcess, mode: Mode) -> None:
        began = time.monotonic()
        process.terminate()
        if self._random.random() < 0.3:  # once more changes nothing
            time.sleep(0.01)
            process.terminate()
        process.join(WITHIN_S + SLACK_S)
        took_s = time.monotonic() - began
        self.longest_s = max(self.longest_s, took_s)
        if process.exitcode is None:
            self.wrong.append(f"{mode}: still there {took_s:.1f} s after SIGTERM")
            process.kill()
            process.join()
        elif process.exitcode != TERMINATED:
            self.wrong.append(f"{mode}: exit status {process.exitcode}, not {TERMINATED}")

    def row(self) -> report.Row:
        """Return what has come of it."""
        found = self.findings
        return report.Row(
            suite="SIGTERM under load",
            unit="terminations",
            count=self.runs,
            acknowledged=found.acknowledged,
            lost=len(found.lost),
            duplicated=len(found.duplicated),
            wrong=len(found.partial) + len(found.broken) + len(self.wrong),
            figures={
                "stated seconds": WITHIN_S,
                "longest seconds to the end": round(self.longest_s, 2),
                "with a slow extraction": self.modes["slow"],
                "with a stuck main thread": self.modes["stuck"],
            },
            findings=self.wrong + found.lines,
        )


def _wait_for_answer(log: Path, process: BaseProcess) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not log.exists() or b'"answered"' not in log.read_bytes():
        if not process.is_alive() or time.monotonic() > deadline:
            msg = f"the program did not begin (exit status {process.exitcode})"
            raise RuntimeError(msg)
        time.sleep(0.001)


# -- planted bugs, which the suite must find ---------------------------------------------

BUGS: tuple[Bug, ...] = ("ignored", "no-deadline", "waits", "ack-before-commit")
FOUND_BY: dict[str, Mode] = {"waits": "slow", "no-deadline": "stuck"}


def plant(bug: Bug | None) -> None:
    """Break this process on purpose."""
    if bug == "ignored":

        @contextmanager
        def nothing(*_: Any) -> Any:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            yield

        reverie.closing_on_sigterm = nothing  # type: ignore[assignment]
    if bug in {"no-deadline", "waits"}:
        stopping._Deadline._watch = lambda *_: None  # type: ignore[method-assign]
    if bug == "waits":
        close = reverie.Runtime.close
        reverie.Runtime.close = lambda rt, **_: close(rt)  # type: ignore[method-assign]
    if bug == "ack-before-commit":
        writer.plant("ack-before-commit", writer=True)


def run(options: report.Options) -> report.Row:
    """Terminate `options.count` programs, or until something is found."""
    writer.quiet()
    campaign = Campaign(options)
    first = [*MODES] if options.count >= len(MODES) else []
    if options.bug in FOUND_BY:
        first = [FOUND_BY[options.bug]]
    chance = random.Random(options.seed)
    while campaign.runs < options.count and not campaign.row().findings:
        campaign.run(first.pop() if first else chance.choices(MODES, SHARES)[0])
        options.advance(1)
    return campaign.row()


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="SIGTERM under load", bugs=BUGS))
