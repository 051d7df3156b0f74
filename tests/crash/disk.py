"""Disks that fail under an open runtime: errors of each kind, in each kind of file.

    python tests/crash/disk.py 20  # 0: once, some of them

Threads write and play scenes while the file layer (faulty_vfs.py) fails some calls. Whoever got an
error repeats the request, and must get an answer once the disk is well again, without anybody
opening the folder anew. Until then every answer is right, or a typed error. Afterwards the open
runtime is audited; the folder, opened again; and what a power cut would have left of it, where the
pages of a failed sync are lost for good. Then files are removed under an open runtime, and a real,
small file system is filled to the brim, where one may be mounted. The count is of runs for each
kind of fault and file.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, ops, report, scenes, writer
from crash.faulty_vfs import KINDS, TARGETS, Disk, Fault, Kind, Target
from crash.point_errors import Persistent, Repeats

import reverie
from reverie.memory_graph import errors
from reverie.memory_graph.store import sqlite

Bug: TypeAlias = Literal[
    "sync-errors-swallowed",  # a failed sync is taken for a good one
    "goes-on-after-failed-sync",  # the file is used again without being recovered
    "sync-retried",  # a failed sync is tried once more
    "log-trusted",  # a log whose sync had failed is not written anew at recovery
    "names-trusted",  # nobody looks whether the files are still there
]
# Where a bug must show: it would elsewhere, too, and later.
PAIRS_OF: dict[Bug, tuple[tuple[Kind, Target], ...]] = {
    "sync-errors-swallowed": (("sync", "log"),),
    "goes-on-after-failed-sync": (("sync", "log"),),
    "sync-retried": (("sync", "log"),),
    "log-trusted": (("sync", "log"),),
    "names-trusted": (),
}
Hole: TypeAlias = Literal["database", "log", "partitions", "folder"]
HOLES: tuple[Hole, ...] = get_args(Hole)

THREADS = 3
BEFORE_S = 0.15  # of writing before the fault
AFTER_S = 0.15  # and after it
CUT_S = 0.1  # from the end of the fault to the power cut
LONG_SHARE = 0.5  # of the runs on logs, without the log being moved
LASTING_S = (0.1, 0.3)  # of a full disk, and of one that is read-only
LASTING: tuple[Kind, ...] = ("full", "read-only")
MANY = 1 << 30
FIRST = 12  # a fault begins at one of so many calls
TIMES = 3
REACH_TIMEOUT_S = 3.0
SMALL_MB = 6
TRIES = 5  # writes to a file that is gone

SELDOM = 3  # ... where they are rare
RARE: tuple[Kind, ...] = ("sync", "full", "open")
# All but one: the catalog has its size when its log is moved for the first time, at opening.
PAIRS: tuple[tuple[Kind, Target], ...] = tuple(
    pair for pair in itertools.product(KINDS, TARGETS) if pair != ("full", "catalog")
)

SHORT: tuple[tuple[Kind, Target], ...] = (
    ("full", "log"),
    ("write", "log"),
    ("short-write", "main"),
    ("sync", "log"),
    ("sync", "main"),
    ("sync", "catalog-log"),
    ("read-only", "log"),
    ("read", "main"),
    ("open", "main"),
)


class Reader(Persistent):
    """Reads back what was acknowledged: it must be there, or the disk says why not."""

    wrong: list[str]

    def _note(self, op: ops.AnyOp, answer: object) -> None:
        super()._note(op, answer)
        match op, answer:
            case ops.Remember() | ops.Observe(), {"memory_id": str(memory_id)}:
                with suppress(errors.StorageError, errors.UnavailableError):
                    try:
                        item = self.runtime.user(op.user, op.world).get(memory_id)
                    except errors.NotFoundError as exc:
                        self.wrong.append(f"acknowledged, and not there: {op}: {exc!r}")
                        return
                    if item.text != op.text:
                        self.wrong.append(f"{op} reads {item.text!r}")
            case _:
                pass


class Campaign:
    """Runs with faults. Ends with the first finding, and leaves the folders where they are."""

    def __init__(self, work: Path, seed: int) -> None:
        self.work = work
        self.findings = audit.Findings()
        self.wrong: list[str] = []
        self.failed: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[str] = Counter()
        self.runs = self.power_cuts = self.refused = 0
        self._seed = seed
        self._random = random.Random(seed)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found so far."""
        return not self.findings.lines and not self.wrong

    # -- one run ---------------------------------------------------------------------------

    def fail(self, kind: Kind, target: Target) -> None:
        """Let calls of a kind fail on a kind of file."""
        disk = Disk()
        times = MANY if kind in LASTING else self._random.randint(1, TIMES)
        is_rare = kind in RARE or "catalog" in target
        first = self._random.randint(1, SELDOM if is_rare else FIRST)
        fault = Fault(kind, target, 1 if kind == "open" else first, times)
        faults = [fault]
        if kind == "open":  # nothing is opened but what has failed
            faults.append(Fault("write", "catalog-log" if "catalog" in target else "log", first, 1))

        def during() -> None:
            disk.faults = tuple(faults)
            began = time.monotonic()
            while not fault.is_over and time.monotonic() - began < REACH_TIMEOUT_S:
                if fault.failed and kind in LASTING:
                    time.sleep(self._random.uniform(*LASTING_S))
                    break
                time.sleep(0.005)
            for each in faults:
                each.end()
            time.sleep(self._random.uniform(0, CUT_S))
            with disk.lock:  # nothing is synced meanwhile, so nothing is acknowledged
                for told in (log, script):
                    shutil.copy(told, told.with_suffix(".cut"))
                disk.cut_power(folder, cut)

        what = f"{kind} of the {target}"
        number = self.runs + 1
        folder = self.work / f"folder-{number}"
        cut = self.work / f"cut-{number}"
        log, script = self.work / f"log-{number}", self.work / f"script-{number}"
        with disk.mounted():
            is_long = target in {"log", "catalog-log"} and self._random.random() < LONG_SHARE
            self._run(what, folder, during, is_long=is_long)
        self.failed[kind, target] += fault.failed
        if self.is_clean:
            self._audit_cut(what, cut, log.with_suffix(".cut"), script.with_suffix(".cut"))
        if self.is_clean:
            shutil.rmtree(folder)
            shutil.rmtree(cut)
        self.wrong += [
            f"{kind} of the {target}: after its sync had failed, {line}"
            for line in sorted(set(disk.after_failed_sync))
        ]

    def _audit_cut(self, what: str, cut: Path, log: Path, script: Path) -> None:
        """Open what a power cut would have left. The kernel had dropped what it could not write."""
        self.power_cuts += 1
        auditor = audit.Auditor(cut, self.findings, self._seed)
        auditor.read(log)
        told = scenes.Script(script)
        self._audit(auditor, lambda path: scenes.judged(told, self.wrong, path), f"{what}: cut")

    def fill(self, place: Path) -> None:
        """Fill a real, small file system to the brim while there are writes."""
        filler = place / "filler"

        def during() -> None:
            brim(filler)
            time.sleep(self._random.uniform(*LASTING_S))
            filler.unlink()

        folder = place / f"folder-{self.runs}"
        self._run("a full file system", folder, during)
        self.failed["full", "real"] += 1
        brim(filler)
        try:
            scenes.open_runtime(folder).close()
        except errors.StorageFullError as exc:
            self.refused += 1
            if "free some space" not in str(exc):
                self.wrong.append(f"opened on a full file system: {exc!r}")
        except Exception as exc:  # noqa: BLE001 (any other error is a finding)
            self.wrong.append(f"opened on a full file system: {exc!r}")
        finally:
            filler.unlink()
        scenes.open_runtime(folder).close()
        shutil.rmtree(folder)

    def _run(
        self, what: str, folder: Path, during: Callable[[], None], *, is_long: bool = False
    ) -> tuple[Path, scenes.Script]:
        """Write while `during` is called; `is_long`: the log is never moved by itself. Audit."""
        self.runs += 1
        auditor = audit.Auditor(folder, self.findings, self._seed)
        script = scenes.Script(self.work / f"script-{self.runs}")
        log = self.work / f"log-{self.runs}"
        repeats = Repeats()
        before = len(self.wrong)
        with scenes.open_runtime(folder, background=True) as runtime:
            if is_long:
                sqlite.CHECKPOINT_PAGES = MANY
            self._write(runtime, log, script, during, repeats)
            try:
                runtime.checkpoint("over", "settled")  # before it, what is half done is finished
                runtime.drain()
            except Exception as exc:  # noqa: BLE001 (the disk is well again)
                self.wrong.append(f"does not recover: {exc!r}")
            auditor.read(log)
            self._audit(auditor, lambda _: _still_open(runtime, script, self.wrong))
        self._audit(auditor, lambda path: scenes.judged(script, self.wrong, path))
        self.wrong += repeats.strange
        self.wrong[before:] = [f"{what}: {line}" for line in self.wrong[before:]]
        self.errors += repeats.errors
        return log, script

    def _audit(
        self, auditor: audit.Auditor, opened: Callable[[Path], Any], when: str = "audit"
    ) -> None:
        if not self.is_clean:
            return
        try:
            auditor.audit(opened)
        except Exception as exc:  # noqa: BLE001 (a sound folder can be opened and read)
            self.wrong.append(f"{when}: {exc!r}")

    def _write(
        self,
        runtime: reverie.Runtime,
        log_path: Path,
        script: scenes.Script,
        during: Callable[[], None],
        repeats: Repeats,
    ) -> None:
        slots = self._random.random() < 0.3
        plan = writer.Plan(folder="", log="", run=self.runs, seed=self._seed, slots=slots)
        log, stop = writer.Log(log_path), threading.Event()

        def play() -> None:
            with suppress(Exception):  # the script tells of it
                scenes.act(runtime, script, self.runs, stop, cast("scenes.Repeat", repeats))

        threads = [threading.Thread(target=play)]
        for i in range(len(writer.WORLDS) if slots else THREADS):
            worker = Reader(plan, i, runtime, log)
            worker.repeats, worker.wrong = repeats, self.wrong
            threads.append(threading.Thread(target=worker.run, args=(stop,)))
        for thread in threads:
            thread.start()
        time.sleep(BEFORE_S)
        during()
        time.sleep(AFTER_S)
        stop.set()
        for thread in threads:
            thread.join(60)
        if any(thread.is_alive() for thread in threads):
            self.wrong.append("a call never came back")
        log.close()

    # -- files that vanish -----------------------------------------------------------------

    def remove(self, hole: Hole) -> None:
        """Remove files of an open runtime: what is acknowledged afterwards is not in them only."""
        self.runs += 1
        folder = self.work / f"holed-{self.runs}"
        left = self.work / f"left-{self.runs}"
        acknowledged: list[str] = []
        with scenes.open_runtime(folder) as runtime:
            user = runtime.user("ana")
            user.remember("Before.", request_id="before")
            for path in victims(hole, folder):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for i in range(TRIES):
                try:
                    user.remember(f"After {i}.", request_id=f"after-{i}")
                except errors.StorageError:
                    self.refused += 1
                except Exception as exc:  # noqa: BLE001 (an error that is not typed)
                    self.wrong.append(f"{hole} removed: {exc!r}")
                else:
                    acknowledged.append(f"After {i}.")
            # As kill -9 would leave it, by another process: to close a file here ends its locks.
            subprocess.run(["cp", "-r", folder, left], check=False, capture_output=True)  # noqa: S607
            with suppress(errors.StorageError):
                runtime.close()
        if lost := set(acknowledged) - self._found(left):
            self.wrong.append(f"{hole} removed, acknowledged, and lost: {sorted(lost)}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(left, ignore_errors=True)

    @staticmethod
    def _found(folder: Path) -> set[str]:
        try:
            with scenes.open_runtime(folder) as runtime:
                return set(scenes.texts(runtime, "ana", "default"))
        except errors.StorageError:
            return set()


def victims(hole: Hole, folder: Path) -> list[Path]:
    files = {
        "database": list((folder / "partitions").glob("*.db")),
        "log": list((folder / "partitions").glob("*-wal")),
        "partitions": [folder / "partitions"],
        "folder": [folder],
    }
    return files[hole]


@contextmanager
def _still_open(
    runtime: reverie.Runtime, script: scenes.Script, wrong: list[str]
) -> Iterator[reverie.Runtime]:
    yield runtime
    wrong += [f"while open: {line}" for line in scenes.judge(runtime, script.read())]
    wrong += script.troubles


def brim(filler: Path) -> None:
    """Leave no byte of a file system free."""
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


@contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    """Mount a file system of `SMALL_MB`; None where that is not allowed."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_MB}m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S607


def run(options: report.Options) -> report.Row:
    """Make each kind of fault `count` times on each kind of file, or until something is found."""
    bug = cast("Bug | None", options.bug)
    scenes.silence()
    # So that files are read.
    sqlite._PRAGMAS = (*sqlite._PRAGMAS, "cache_size = 1")  # type: ignore[assignment]
    plant(bug)
    campaign = Campaign(options.work, options.seed)
    order = random.Random(options.seed)
    pairs, mounted = list(PAIRS if options.count else SHORT), 0
    if bug is not None:
        pairs = list(PAIRS_OF[bug])
    for _ in range(options.count or 1):
        order.shuffle(pairs)
        for kind, target in pairs:
            campaign.fail(kind, target)
            if not campaign.is_clean:
                break
        for hole in HOLES:
            if campaign.is_clean:
                campaign.remove(hole)
        if campaign.is_clean:
            with small_disk(options.work / f"small-{mounted}") as place:
                if place is not None:
                    campaign.fill(place)
                    mounted += 1
        options.advance(1)
        if not campaign.is_clean:
            break
    found = campaign.findings
    idle = [p for p in pairs if not campaign.failed[p]] if campaign.is_clean else []
    return report.Row(
        suite="failing disks",
        unit="runs",
        count=campaign.runs,
        acknowledged=found.acknowledged,
        lost=len(found.lost),
        duplicated=len(found.duplicated),
        wrong=len(found.partial) + len(found.broken) + len(campaign.wrong) + len(idle),
        figures={
            "calls that failed": campaign.failed.total(),
            "errors that a caller got": campaign.errors.total(),
            "power cuts": campaign.power_cuts,
            "refused": campaign.refused,
            "real full file systems": mounted,
        },
        findings=found.lines + campaign.wrong + [f"never failed: {pair}" for pair in idle],
    )


# -- planted bugs, which the suite must find ---------------------------------------------

_rows = sqlite.Database.rows


def plant(bug: Bug | None) -> None:
    """Break the product in this process."""
    match bug:
        case "sync-errors-swallowed":
            sqlite.Database.rows = _rows_without_errors  # type: ignore[assignment, method-assign]
        case "goes-on-after-failed-sync":
            sqlite.Database._break = lambda *_: None  # type: ignore[method-assign]
        case "sync-retried":
            sqlite.Database._break = _break_but_checkpoint  # type: ignore[assignment, method-assign]
        case "log-trusted":
            sqlite.renew_log = lambda _: None  # type: ignore[assignment]
        case "names-trusted":
            sqlite.Database._require_names = lambda _: None  # type: ignore[assignment, method-assign]
        case None:
            pass


def _rows_without_errors(
    db: sqlite.Database, sql: str, args: Sequence[sqlite.Value] = ()
) -> list[tuple[Any, ...]]:
    """Say nothing of a commit that failed."""
    try:
        return _rows(db, sql, args)
    except errors.StorageFailedError:
        if sql != "COMMIT":
            raise
        db._failure, db._is_spoiled = None, False
        return []


def _break_but_checkpoint(db: sqlite.Database, failure: str) -> None:
    """Let the closing of a file that failed sync it once more."""
    db._failure = failure


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="disks that fail", bugs=get_args(Bug)))
