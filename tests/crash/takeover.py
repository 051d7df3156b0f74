"""Two owners: one that was stopped in the middle of its work, and the one that replaced it.

    python tests/crash/takeover.py 100

A process that owns a data folder is stopped with SIGSTOP, at a random moment or at a named point,
and another one takes its partitions over and writes. Then the first goes on, as if nothing had
happened. From the takeover on, whatever it tries must be refused: it learns that it lost, none of
its writes lands, and it answers no read from its old memory. What it had been asked before either
landed before the takeover and is acknowledged, or is refused and absent.

Whoever is stopped inside a transaction holds SQLite's lock: the other is told so within a bounded
time, by name, and gets in once the holder is killed, or continued.

A part of the takeovers are from actors of Ray whose client was killed, and whose node is stopped;
see takeover_ray.py.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal, TypeAlias, get_args

import filelock
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, report, writer

import reverie
from reverie.actors.shard import Shard
from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    DataFolderLockedError,
    FencedError,
    NotFoundError,
    OverloadedError,
    StorageFailedError,
)
from reverie.memory_graph.store import Partition, Transaction, folder, sqlite

Bug: TypeAlias = Literal[
    "no-epoch-check", "epoch-checked-too-early", "unchecked-reads", "reopening-takes-back"
]
BEGIN = "begin"  # right before a transaction begins
BEFORE = (BEGIN, "reply.before", "reply.after", "commit.after", "passivation.before")
WITHIN = (  # the holder of SQLite's lock
    "apply.before",
    "append.before",
    "append.after",
    "outbox.after",
    "result.after",
    "commit.before",
    "snapshot.before",
)
KILLED_SHARE = 0.5  # of those that hold a lock are killed, the others continued
BREAK_SHARE = 0.5  # of the old owners meet a disk error, and so open their partitions again
MOST_HITS = 12  # passings of a point before the one that stops
FIRST_MS, LAST_MS = 5, 300  # until a stop at a random moment
BUSY_TIMEOUT_S = 0.5  # in the suite; 5 s in the product
# What says so. The second may meet the new owner, too, while the old one ends a transaction.
NOTHING_STORED = {FencedError.__name__, OverloadedError.__name__}
THREADS = 4
ACTORS_SHARE = 0.1  # of the takeovers, half of them of orphans
HEIR_WRITES = 12  # acknowledged before the old owner goes on
TRIES = 5  # writes of each thread from its first refusal on, each followed by all reads
READ_SHARE = 0.05  # of the writes before are, too
UNTAUGHT_S = 10.0  # after which an old owner that was not refused is told to end
FOLDER_TAKEOVERS = 8  # of one data folder
TIMEOUT_S = 60.0


class Plan(msgspec.Struct, frozen=True):
    """What an owner does. `point` "" is none; `hits` passings of it are let pass. `locks` is
    whether it locks the folder: of two owners only one can."""

    folder: str
    log: str
    run: int
    seed: int
    first_thread: int
    locks: bool
    point: str = ""
    hits: int = 0
    breaks: bool = False
    byte_budget: int = 1 << 30
    bug: Bug | None = None

    @property
    def notes(self) -> Path:
        """Where it notes its attempts."""
        return Path(self.log + ".notes")

    @property
    def stop(self) -> Path:
        """What ends it, once it is there."""
        return Path(self.log + ".stop")


class Note(msgspec.Struct, frozen=True):
    """An attempt, or what became of opening. `began_s` is on the clock of all processes."""

    what: str
    began_s: float
    error: str = ""


_notes = msgspec.json.Decoder(Note)


def note(path: Path, what: str, began_s: float, error: object = "") -> None:
    """Append a note, by one system call."""
    name = type(error).__name__ if isinstance(error, Exception) else str(error)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, msgspec.json.encode(Note(what, began_s, name)) + b"\n")
    os.close(handle)


def notes_in(path: Path) -> list[Note]:
    """Return the notes so far."""
    data = path.read_bytes() if path.exists() else b""
    return [_notes.decode(line) for line in data.split(b"\n")[:-1]]


# -- the owner, a process of its own -----------------------------------------------------


class Owner(writer.Worker):
    """One thread of an owner. Refused, it goes on for a while, as if it had not understood."""

    def __init__(
        self, plan: Plan, thread: int, runtime: reverie.Runtime, log: writer.Log, notes: Path
    ) -> None:
        work = writer.Plan(folder=plan.folder, log=plan.log, run=plan.run, seed=plan.seed)
        super().__init__(work, thread, runtime, log)
        self.notes = notes
        self.fenced = False

    def run(self, stop: Event) -> None:
        left = TRIES
        while left and not stop.is_set():
            self._write()
            if self.fenced or self.random.random() < READ_SHARE:
                for name in READS:
                    self._read(name)
            left -= self.fenced

    def _write(self) -> None:
        try:
            op = self._next()
        except reverie.ReverieError as exc:  # it read what an earlier run left
            self._refused("read", time.monotonic(), exc)
            return
        began_s = time.monotonic()
        self.log.write(writer.Asked(op))
        try:
            answer = op.send(self.runtime)
        except reverie.ReverieError as exc:
            self.log.write(writer.Refused(op.id, type(exc).__name__))
            self._refused("write", began_s, exc)
            return
        self.log.write(writer.Answered(op.id, answer))
        note(self.notes, "write", began_s)
        self._note(op, msgspec.json.decode(answer))

    def _read(self, name: str) -> None:
        user = self.runtime.user(self.random.choice(writer.USERS), writer.WORLDS[0])
        began_s = time.monotonic()
        try:
            READS[name](user)
        except NotFoundError as exc:
            note(self.notes, f"read: {exc}", began_s)  # an answer, too
        except reverie.ReverieError as exc:
            self._refused(f"read: {name}", began_s, exc)
        else:
            note(self.notes, f"read: {name}", began_s)

    def _refused(self, what: str, began_s: float, error: reverie.ReverieError) -> None:
        note(self.notes, what, began_s, error)
        self.fenced |= isinstance(error, FencedError)


READS: dict[str, Callable[[reverie.User], object]] = {
    "search": lambda user: user.search("Who sold the red lantern?", limit=3),
    "list": lambda user: user.list(limit=3),
    "get": lambda user: user.get("m1"),
    "entities": lambda user: user.entities(),
    "digest": lambda user: user.digest(),
    "stats": lambda user: user.stats(),
}


def own(plan: Plan) -> None:
    """Open the folder and write until told to stop, or refused often enough."""
    writer.quiet()
    sqlite.BUSY_TIMEOUT_S = BUSY_TIMEOUT_S
    if not plan.locks:
        folder._lock = lambda path: _private_lock(plan)
    plant(plan.bug)
    began_s = time.monotonic()
    try:
        runtime = writer.open_runtime(plan.folder, background=True, byte_budget=plan.byte_budget)
    except DataFolderLockedError as exc:
        note(plan.notes, f"opening: {exc}", began_s, exc)
        return
    note(plan.notes, "open", time.monotonic())
    log, stop = writer.Log(plan.log), Event()
    owners = [Owner(plan, plan.first_thread + i, runtime, log, plan.notes) for i in range(THREADS)]
    if plan.point:
        faults.install(_stop_at(plan.point, itertools.count(-plan.hits)))
    threads = [Thread(target=owner.run, args=(stop,), daemon=True) for owner in owners]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if plan.stop.exists():
            stop.set()
        if plan.breaks and any(owner.fenced for owner in owners):
            _break(runtime)
            plan = msgspec.structs.replace(plan, breaks=False)
        time.sleep(0.002)
    note(plan.notes, "done", time.monotonic())
    runtime.close()
    note(plan.notes, "closed", time.monotonic())


def _private_lock(plan: Plan) -> filelock.FileLock:
    lock = filelock.FileLock(plan.log + ".lock", thread_local=False)
    lock.acquire()
    return lock


def _stop_at(point: str, passings: Iterator[int]) -> faults.Handler:
    def handler(reached: str) -> None:
        if reached == point and next(passings) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)

    return handler


def _break(runtime: reverie.Runtime) -> None:
    """As an input/output error would: each partition has to be opened again."""
    backend: Any = runtime._router.backend
    for opened in backend.shard.partitions.values():
        opened._db._break("planted")


# -- planted bugs, and one more point ----------------------------------------------------

_write = Partition.write


@contextmanager
def _announced(opened: Partition) -> Iterator[Transaction]:
    if faults._handler is not None:
        faults._handler(BEGIN)  # type: ignore[arg-type] # a point of this suite only
    with _write(opened) as txn:
        yield txn


@contextmanager
def _checked_early(opened: Partition) -> Iterator[Transaction]:
    opened.require_ownership()
    if faults._handler is not None:
        faults._handler(BEGIN)  # type: ignore[arg-type]
    txn = Transaction(opened._db)
    try:
        with opened._db.write():
            yield txn
    finally:
        txn.end()


def plant(bug: Bug | None) -> None:
    """Add the point, and break this process on purpose."""
    Partition.write = _announced  # type: ignore[assignment, method-assign]
    if bug == "no-epoch-check":
        Partition.require_ownership = lambda _: None  # type: ignore[assignment, method-assign]
    if bug == "epoch-checked-too-early":
        Partition.write = _checked_early  # type: ignore[assignment, method-assign]
    if bug == "unchecked-reads":
        Shard._require_ownership = lambda *_: None  # type: ignore[method-assign]
    if bug == "reopening-takes-back":
        Partition.reopen = _reopen  # type: ignore[assignment, method-assign]


def _reopen(opened: Partition, *, index: int) -> Partition:
    opened.close()
    return Partition.open(opened.path, index=index, owner=opened.owner)


# -- the suite ---------------------------------------------------------------------------


class Heir(audit.Auditor):
    """An auditor that knows refusals: what an owner that was replaced was refused is not there."""

    refused = 0

    def take(self, lines: Iterable[writer.Line]) -> None:
        """Take in lines of an owner. If something has landed all the same, nobody wrote it; after
        an error of the disk it may have landed."""
        told = list(lines)
        failed = {line.id: line.error for line in told if isinstance(line, writer.Refused)}
        gone = {i for i, error in failed.items() if error in NOTHING_STORED}
        known = gone | {i for i, error in failed.items() if error == StorageFailedError.__name__}
        self.refused += len(gone)
        super().take(
            line
            for line in told
            if not (isinstance(line, writer.Asked) and line.op.id in gone)
            and not (isinstance(line, writer.Refused) and line.id in known)
        )


def until(condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait for a condition.

    Raises:
        RuntimeError: it did not come true in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            msg = f"waited {timeout_s:g} s: {what}"
            raise RuntimeError(msg)
        time.sleep(0.001)


def state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does: "T" is stopped, "" gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Campaign:
    """A series of takeovers of processes; ends with the first finding."""

    def __init__(self, options: report.Options) -> None:
        self.options = options
        self.bug = None if options.bug is None else _bug(options.bug)
        self.findings = audit.Findings()
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self._random = random.Random(options.seed)
        self._runs = itertools.count(1)
        self._left = 0
        self._auditor = Heir(options.work / "folder-0", self.findings)
        self._refused = 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["reverie.runtime", "crash.takeover"])
        self._children: list[ForkServerProcess] = []

    @property
    def refused(self) -> int:
        """How many writes were refused."""
        return self._refused + self._auditor.refused

    def takeover(self) -> None:
        """Let one owner replace another, and audit what both did."""
        if not self._left:
            self._new_folder()
        self._left -= 1
        kinds = (WITHIN, BEFORE, ("",))  # "": at a random moment
        point = self._random.choice(kinds[self.counts["processes"] % len(kinds)])
        if self.bug == "epoch-checked-too-early":
            point = BEGIN
        tight = point.startswith(("passivation", "snapshot"))
        old = self._plan(0, locks=False, point=point, byte_budget=30_000 if tight else 1 << 30)
        try:
            process = self._start(old)
            self._stop(process, old)
            heir, process_of_heir = self._replace(process)
            until(lambda: _answers(heir) >= HEIR_WRITES, "the heir writes")
            self._continue(process, old)
            heir.stop.touch()
            process_of_heir.join(TIMEOUT_S)
            self._judge(old, heir)
        finally:
            for child in self._children:
                child.kill()
                child.join()
            self._children = []
        self.counts["processes"] += 1
        self._auditor.read(Path(old.log))
        self._auditor.read(Path(heir.log))
        try:
            self._auditor.audit()
        except reverie.ReverieError as exc:
            self.findings.broken.append(f"the folder cannot be audited: {exc!r}")

    def _new_folder(self) -> None:
        shutil.rmtree(self._auditor.folder, ignore_errors=True)
        self._left = FOLDER_TAKEOVERS
        self.counts["folders"] += 1
        path = self.options.work / f"folder-{self.counts['folders']}"
        self._refused += self._auditor.refused
        self._auditor = Heir(path, self.findings, self.options.seed)
        with writer.open_runtime(path) as runtime:  # the catalog has no epoch
            for world in writer.WORLDS:
                runtime.create_world(world)

    def _plan(self, first_thread: int, **fields: Any) -> Plan:
        run = next(self._runs)
        return Plan(
            folder=str(self._auditor.folder),
            log=str(self.options.work / f"log-{run}"),
            run=run,
            seed=self.options.seed,
            first_thread=first_thread,
            hits=self._random.randrange(MOST_HITS),
            breaks=self._random.random() < BREAK_SHARE or self.bug == "reopening-takes-back",
            bug=self.bug,
            **fields,
        )

    def _start(self, plan: Plan) -> ForkServerProcess:
        process = self._context.Process(target=own, args=(plan,), daemon=True)
        process.start()
        self._children.append(process)
        until(lambda: bool(notes_in(plan.notes)) or not process.is_alive(), "an owner opens")
        return process

    def _stop(self, process: ForkServerProcess, plan: Plan) -> None:
        pid = process.pid or 0
        if plan.point:
            with _patience():
                until(lambda: state_of(pid) == "T", "a point is reached", 3.0)
        if state_of(pid) != "T":
            until(lambda: _answers(plan) > 0, "an owner writes")
            time.sleep(self._random.uniform(FIRST_MS, LAST_MS) / 1000)
            os.kill(pid, signal.SIGSTOP)
            until(lambda: state_of(pid) == "T", "an owner stops")
            self.counts["stopped at random"] += 1
        else:
            self.counts["stopped at a point"] += 1

    def _replace(self, old: ForkServerProcess) -> tuple[Plan, ForkServerProcess]:
        """Start another owner; one that is locked out waits for the death of the first, or for
        the end of its transaction."""
        plan = self._plan(THREADS, locks=True)
        process = self._start(plan)
        (first, *_) = notes_in(plan.notes)
        if first.what == "open":
            return plan, process
        if "write of reverie" not in first.what:
            self.wrong.append(f"locked out by nobody: {first}")
        self.counts["held a lock"] += 1
        if self._random.random() < KILLED_SHARE:
            old.kill()
            self.counts["killed"] += 1
        else:
            os.kill(old.pid or 0, signal.SIGCONT)
            self.counts["continued at once"] += 1
        plan = self._plan(THREADS, locks=True)
        return plan, self._start(plan)

    def _continue(self, process: ForkServerProcess, plan: Plan) -> None:
        """Let the old owner go on until it has understood; or it was killed."""
        if state_of(process.pid or 0) not in {"", "Z"}:
            os.kill(process.pid or 0, signal.SIGCONT)
            process.join(UNTAUGHT_S if self.bug is None else UNTAUGHT_S / 4)
            plan.stop.touch()
            process.join(TIMEOUT_S)
        if process.exitcode == 0:
            self.counts["went on"] += 1
        elif process.exitcode != -signal.SIGKILL:
            self.wrong.append(f"an old owner ended with {process.exitcode}: {plan}")

    def _judge(self, old: Plan, heir: Plan) -> None:
        notes = notes_in(heir.notes)
        taken_at = next(n.began_s for n in notes if n.what == "open")
        if [n.what for n in notes[-2:]] != ["done", "closed"]:
            self.wrong.append(f"the new owner did not end well: {notes[-1]}")
        tried = [n for n in notes_in(old.notes) if n.what.startswith(("write", "read"))]
        for attempt in tried:
            if attempt.began_s < taken_at:
                continue
            self.counts["attempts after it"] += 1
            if attempt.error not in NOTHING_STORED | {StorageFailedError.__name__}:
                self.wrong.append(f"not refused after the takeover: {attempt}")
        if self.bug is None and _is_done(old):
            fenced = {n.what.partition(":")[0] for n in tried if n.error == FencedError.__name__}
            if fenced != {"write", "read"}:
                self.wrong.append(f"learnt that it lost only from {fenced}")


@contextmanager
def _patience() -> Iterator[None]:
    """Some points are not reached by every run."""
    try:
        yield
    except RuntimeError:
        return


def _is_done(plan: Plan) -> bool:
    return any(n.what == "done" for n in notes_in(plan.notes))


def _answers(plan: Plan) -> int:
    path = Path(plan.log)
    return path.read_bytes().count(b'"answered"') if path.exists() else 0


def _bug(name: str) -> Bug:
    return next(bug for bug in get_args(Bug) if bug == name)


def run(options: report.Options) -> report.Row:
    """Take over `options.count` times: mostly processes, and with no planted bug also actors."""
    from crash import takeover_ray as of_actors

    writer.quiet()
    sqlite.BUSY_TIMEOUT_S = BUSY_TIMEOUT_S
    each = 0 if options.bug else max(1, round(options.count * ACTORS_SHARE / 2))
    campaign = Campaign(options)
    found, wrong, counts = campaign.findings, campaign.wrong, campaign.counts
    while counts["processes"] < options.count - 2 * each and not (found.lines or wrong):
        campaign.takeover()
        options.advance(1)
    for form in (of_actors.Orphans, of_actors.StoppedNodes):
        if each and not (found.lines or wrong):
            actors = form(options.work, options.seed, found)
            actors.run(each)
            options.advance(each)
            counts += actors.counts
            wrong += actors.wrong
    return report.Row(
        suite="two owners",
        unit="takeovers",
        count=counts["processes"] + counts["clients killed"] + counts["nodes stopped"],
        acknowledged=found.acknowledged,
        lost=len(found.lost),
        duplicated=len(found.duplicated),
        wrong=len(found.partial) + len(found.broken) + len(wrong),
        figures={**counts, "refused writes": campaign.refused, "landed": found.landed},
        findings=wrong + found.lines,
    )


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="two owners", bugs=get_args(Bug)))
