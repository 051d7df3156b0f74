"""Errors, delays and lost replies at every named point of `reverie.memory_graph.faults`.

    python tests/crash/point_errors.py 20  # 0: once, some of them

Several threads write and play scenes in one runtime, while at one point things go wrong now and
then: an error is raised there, time passes, or the work is done and its answer never comes. Whoever
got an error repeats the same request, and must get an answer once the trouble is over. Then the
open runtime is audited, which tells whether its memory and its disk differ; it is closed, opened
again, and audited once more. The count is of such runs for each point and form.
"""

from __future__ import annotations

import errno
import random
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, ops, report, scenes, writer
from crash.points import HERE, OFTEN, OPENING, RARE, TIGHT_BYTES

import reverie
from reverie.actors.residents import Residents
from reverie.memory_graph import errors, faults
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition, Transaction

Bug: TypeAlias = Literal[
    "state-kept",  # what a failed transaction did to the states in memory stays there
    "no-request-ids",
    "swallowed",  # a write that failed is answered as if it had not
    "dead-point",  # one of the points is never reached
]
Form: TypeAlias = Literal["error", "delay", "lost"]
FORMS: tuple[Form, ...] = get_args(Form)

SHORT: tuple[tuple[faults.Point, Form], ...] = (
    ("commit.before", "error"),
    ("commit.after", "error"),
    ("apply.after", "error"),
    ("passivation.before", "error"),
    ("slot.after", "error"),
    ("epoch.after", "error"),
    ("reply.before", "lost"),
    ("outbox.after", "lost"),
    ("commit.before", "delay"),
)
# Where a bug must show: it would elsewhere, too, and later.
PAIRS_OF: dict[Bug, tuple[tuple[faults.Point, Form], ...]] = {
    "state-kept": (("commit.before", "error"),),
    "no-request-ids": (("commit.after", "lost"),),
    "swallowed": (("commit.before", "error"),),
    "dead-point": (("commit.before", "delay"), (cast("faults.Point", "nowhere"), "delay")),
}
BUG_RUNS = 8  # at most: not every error shows every bug
THREADS = 3
SLOTS_SHARE = 0.3  # of the runs have checkpoints
TROUBLES = 4  # of one run
WRITE_S = 0.35  # at least
REACH_TIMEOUT_S = 20.0
SHORT_TIMEOUT_S = 5.0  # of the short form
ANSWER_TIMEOUT_S = 20.0
LONGEST_DELAY_S = 0.03
PAUSE_S = 0.003  # between repeats


class PlantedError(Exception):
    """An error of no kind that the product knows."""


def planted(chance: random.Random) -> Exception:
    """Return an error of one of the kinds that can come up anywhere."""
    return chance.choice(
        (
            errors.StorageFailedError("planted: input/output error"),
            errors.StorageFullError("planted: no space left"),
            errors.OverloadedError("planted: in use"),
            OSError(errno.EIO, "planted"),
            OSError(errno.ENOSPC, "planted"),
            PlantedError("planted"),
        )
    )


class Trouble:
    """A handler that makes things go wrong at one point, `TROUBLES` times."""

    def __init__(self, point: faults.Point, form: Form, seed: str) -> None:
        self.point = point
        self.form = form
        self.reached = 0
        self.made = 0
        self._left = TROUBLES
        self._random = random.Random(seed)
        self._next = self._random.randint(1, max(1, RARE.get(_stem(point), OFTEN) // 2))
        self._lock = threading.Lock()
        self._losing = threading.local()  # what is answered next in this thread is lost

    def __call__(self, name: faults.Point) -> None:
        if name == "reply.after" and getattr(self._losing, "now", False):
            self._losing.now = False
            msg = "planted: the answer was lost"
            raise errors.ShardUnavailableError(msg)
        if name != self.point or not self._is_due():
            return
        match self.form:
            case "error":
                raise planted(self._random)
            case "delay":
                time.sleep(self._random.uniform(0, LONGEST_DELAY_S))
            case "lost" if name == "reply.after":
                msg = "planted: the answer was lost"
                raise errors.ShardUnavailableError(msg)
            case "lost":
                self._losing.now = True

    def _is_due(self) -> bool:
        with self._lock:
            self.reached += 1
            if self.reached < self._next or not self._left:
                return False
            self._left -= 1
            self.made += 1
            self._next = self.reached + self._random.randint(1, 4)
            return True

    @property
    def is_over(self) -> bool:
        """Whether all of it has happened."""
        return not self._left


class Repeats:
    """Sends until it is answered; keeps what came instead of an answer."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.strange: list[str] = []

    def __call__(self, call: Callable[[], object]) -> object:
        began = time.monotonic()
        tries = 0
        while True:
            tries += 1
            try:
                return call()
            except errors.CheckpointExistsError:
                if tries == 1:
                    raise
                return 0  # an earlier try made it
            except errors.UnknownCheckpointError:
                if tries == 1:
                    raise
                return 0  # an earlier try dropped it
            except Exception as exc:
                self._note(exc)
                if time.monotonic() - began > ANSWER_TIMEOUT_S:
                    raise
                time.sleep(PAUSE_S * tries)

    def _note(self, exc: Exception) -> None:
        name = type(exc).__name__
        self.errors[name] += 1
        is_ours = isinstance(exc, errors.StorageError | errors.UnavailableError | PlantedError)
        if not is_ours and "planted" not in str(exc):
            self.strange.append(f"an error that nobody planted: {exc!r}")


class Persistent(writer.Worker):
    """A worker that repeats what was not answered, as a client does."""

    repeats: Repeats

    def run(self, stop: threading.Event) -> None:
        if self.plan.slots:
            self.labels = [t.tag for t in self.runtime.checkpoints(writer.WORLDS[self.thread])][-2:]
        while not stop.is_set():
            op = cast("ops.AnyOp", self.repeats(self._next))  # it may have to look things up
            self.log.write(writer.Asked(op))
            try:
                answer = cast("str", self.repeats(partial(op.send, self.runtime)) or "null")
            except Exception as exc:  # noqa: BLE001 (whatever it is, the audit must hear of it)
                self.log.write(writer.Refused(op.id, repr(exc)))
                return
            self.log.write(writer.Answered(op.id, answer))
            self._note(op, msgspec.json.decode(answer))
            with suppress(errors.ReverieError, OSError, PlantedError):
                self._read_now_and_then(op)


class Campaign:
    """Runs with trouble at points. Ends with the first finding, and leaves the folder."""

    def __init__(self, work: Path, seed: int, reach_timeout_s: float) -> None:
        self.work = work
        self.reach_timeout_s = reach_timeout_s
        self.findings = audit.Findings()
        self.made: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.runs = self.scenes = 0
        self._random = random.Random(seed)
        self._seed = seed

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found so far."""
        return not self.findings.lines and not self.wrong

    def trouble(self, point: faults.Point, form: Form) -> None:
        """Make trouble at a point in a new folder; audit it open, and opened again."""
        self.runs += 1
        folder = self.work / f"folder-{self.runs}"
        auditor = audit.Auditor(folder, self.findings, self._seed)
        script = scenes.Script(self.work / f"script-{self.runs}")
        log = self.work / f"log-{self.runs}"
        trouble = Trouble(point, form, f"{self._seed}/{self.runs}")
        repeats = Repeats()
        where = f"{form} at {point}"
        runtime: Any = None
        try:
            faults.install(trouble)
            runtime = repeats(
                lambda: scenes.open_runtime(folder, byte_budget=TIGHT_BYTES, background=True)
            )
            self._write(runtime, log, script, trouble, repeats)
            faults.install(None)
            runtime.checkpoint("over", "settled")  # before it, what is half done is finished
            auditor.read(log)
            auditor.audit(
                cast("Callable[[Path], Any]", lambda _: self._still_open(runtime, script))
            )
            if self.is_clean:
                runtime.close()
                auditor.audit(
                    cast("Callable[[Path], Any]", lambda f: scenes.judged(script, self.wrong, f))
                )
        except Exception as exc:  # noqa: BLE001 (the runtime has to get over it)
            self.wrong.append(f"{where}: {exc!r}")
        finally:
            faults.install(None)
            if runtime is not None:
                with suppress(Exception):
                    runtime.close()
        self.wrong += [f"{where}: {line}" for line in repeats.strange]
        self.made[point, form] += trouble.made
        self.errors += repeats.errors
        self.scenes += len(script.read())
        if self.is_clean:
            shutil.rmtree(folder)

    def _write(
        self,
        runtime: reverie.Runtime,
        log_path: Path,
        script: scenes.Script,
        trouble: Trouble,
        repeats: Repeats,
    ) -> None:
        slots = self._random.random() < SLOTS_SHARE
        plan = writer.Plan(
            folder="", log="", run=self.runs, seed=self._seed, slots=slots, threads=THREADS
        )
        log, stop = writer.Log(log_path), threading.Event()
        threads = [threading.Thread(target=self._play, args=(runtime, script, stop, repeats))]
        for i in range(len(writer.WORLDS) if slots else THREADS):
            worker = Persistent(plan, i, runtime, log)
            worker.repeats = repeats
            threads.append(threading.Thread(target=worker.run, args=(stop,)))
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while (passed := time.monotonic() - began) < self.reach_timeout_s:
            if passed > WRITE_S and (trouble.is_over or _stem(trouble.point) in OPENING):
                break
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join(2 * ANSWER_TIMEOUT_S)
        if any(thread.is_alive() for thread in threads):
            self.wrong.append(f"{trouble.form} at {trouble.point}: a call never came back")
        log.close()

    def _play(
        self,
        runtime: reverie.Runtime,
        script: scenes.Script,
        stop: threading.Event,
        repeats: Repeats,
    ) -> None:
        with suppress(Exception):  # the script tells of it
            scenes.act(runtime, script, self.runs, stop, cast("scenes.Repeat", repeats))

    @contextmanager
    def _still_open(
        self, runtime: reverie.Runtime, script: scenes.Script
    ) -> Iterator[reverie.Runtime]:
        yield runtime
        self.wrong += [f"while open: {line}" for line in scenes.judge(runtime, script.read())]
        self.wrong += script.troubles


def _stem(point: str) -> str:
    return point.partition(".")[0]


def run(options: report.Options) -> report.Row:
    """Make trouble `count` times at each point in each form, or until something is found."""
    bug = cast("Bug | None", options.bug)
    scenes.silence()
    plant(bug)
    timeout_s = REACH_TIMEOUT_S if options.count else SHORT_TIMEOUT_S
    campaign = Campaign(options.work, options.seed, timeout_s)
    points = [*HERE, *(["nowhere"] if bug == "dead-point" else [])]
    pairs = [(cast("faults.Point", point), form) for point in points for form in FORMS]
    if not options.count:
        pairs = list(SHORT)
    if bug is not None:
        pairs = list(PAIRS_OF[bug])
    order = random.Random(options.seed)
    for _ in range(options.count or (1 if bug is None else BUG_RUNS)):
        order.shuffle(pairs)
        for point, form in pairs:
            campaign.trouble(point, form)
            if not campaign.is_clean:
                break
        options.advance(1)
        if not campaign.is_clean or bug == "dead-point":
            break
    found = campaign.findings
    dead = [p for p in pairs if not campaign.made[p]] if campaign.is_clean else []
    return report.Row(
        suite="errors, delays and lost replies at each point",
        unit="runs",
        count=campaign.runs,
        acknowledged=found.acknowledged,
        lost=len(found.lost),
        duplicated=len(found.duplicated),
        wrong=len(found.partial) + len(found.broken) + len(campaign.wrong) + len(dead),
        figures={
            "points": len({point for point, _ in campaign.made}),
            **{form: sum(n for (_, f), n in campaign.made.items() if f == form) for form in FORMS},
            "fewest of a form at a point": min(campaign.made[pair] for pair in pairs),
            "errors that a caller got": campaign.errors.total(),
            "scenes": campaign.scenes,
            "repeated": found.repeated,
        },
        findings=found.lines + campaign.wrong + [f"nothing made: {pair}" for pair in dead],
    )


# -- planted bugs, which the suite must find ---------------------------------------------

_drop, _write = Residents.drop, Partition.write


def plant(bug: Bug | None) -> None:
    """Break the product in this process."""
    if bug == "no-request-ids":
        writer.plant("no-request-ids", writer=True)
    if bug == "state-kept":
        Residents.drop = _drop_seldom  # type: ignore[assignment, method-assign]
    if bug == "swallowed":
        Partition.write = _write_anyhow  # type: ignore[assignment, method-assign]


def _drop_seldom(residents: Residents, key: Key) -> None:
    """Keep a state when a batch of writes fails."""
    if sys._getframe(1).f_code.co_name != "_write_all":
        _drop(residents, key)


@contextmanager
def _write_anyhow(partition: Partition) -> Iterator[Transaction]:
    """Say nothing of a full disk."""
    with suppress(errors.StorageFullError), _write(partition) as txn:
        yield txn


if __name__ == "__main__":
    what = "errors, delays and lost replies at each named point"
    sys.exit(report.command_line(run, what=what, bugs=get_args(Bug)))
