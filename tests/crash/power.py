"""Power loss: whatever the disk had not yet promised may be gone, torn, or there.

    python tests/crash/power.py 5000

A workload is recorded down to each write and sync (recording_vfs.py). At every sync, just before
and just after it, and at random moments in between, the power fails: states that this may leave
(lost_power.py) are made in a new folder, opened and audited (audit.py). What was acknowledged
before the cut must be there, once; what was not, all or none of it; and erased text must be in no
file. Some of the recorded processes were killed before, some openings after a cut are cut again.

The workload keeps everything small and frequent that is large and rare in use: snapshots, moves of
the log into the file, cuts of the log, users leaving memory, approximate indices. `--bug` breaks
the product on purpose, and then this suite has to fail.
"""

from __future__ import annotations

import functools
import logging
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

import structlog
from crash import audit, lost_power, ops, report, writer
from crash.recording_vfs import FolderSynced, Marked, Record, Recorder, Synced

import reverie
from reverie.actors import erasure, residents
from reverie.memory_graph.ids import Key, key_hash
from reverie.memory_graph.store import Partition, folder as folder_module, sqlite
from reverie.models.standin import HashEmbedder

PARTITIONS = 2
DATA = "data"  # the data folder, in the folder that is recorded
SESSIONS = (1, 3)  # openings in one workload
REQUESTS = (4, 24)  # of each thread in a session
# Every second workload is killed while the folder is made, and then gets a few requests:
FIRST_OPENING = 240  # records, about
FEW_REQUESTS = (1, 3)
STATES_OF_FIRST_OPENING = 12
KILLED_SHARE = 0.3  # of the sessions end by a kill
LONGEST_SESSION = 2000  # records until the kill, at most
CUT_AGAIN_SHARE = 0.06  # of the states are cut again while they are opened
TIGHT_BYTES = (20_000, 200_000, 1 << 30)
EXACT_LIMITS = (3, 10_000)
MOST_HITS = 40  # among which a text must be that is asked for word by word
STATES_OF_WORKLOAD = 80
SHARES = {"at a sync": 0.5, "after an answer": 0.25, "anywhere": 0.25}  # of these
LANDINGS: tuple[lost_power.Landing, ...] = ("nothing", "all", "subset", "torn")

CHECKPOINT_PAGES = (24, 1_000)
SNAPSHOT_BYTES = 3_000
LOG_LIMIT_BYTES = 64 * 1024

BUGS = (
    "ack-before-commit",
    "folders-not-synced",
    "log-cut-not-synced",
    "synchronous-normal",
    "synchronous-off",
)


class Settings(NamedTuple):
    """How a folder is opened."""

    byte_budget: int
    exact_limit: int

    def open(self, folder: Path) -> reverie.Runtime:
        return reverie.open(
            folder,
            embedder=HashEmbedder(writer.DIM),
            extractor=ops.NoteTaker(),
            summaries="off",
            decider=writer.AddAll(),
            partitions=PARTITIONS,
            byte_budget=self.byte_budget,
            exact_limit=self.exact_limit,
            background=False,
        )


# -- what is recorded ----------------------------------------------------------------------


class Worker(writer.Worker):
    """A writer that also forks worlds, erases users, and extracts now and then."""

    def _next(self) -> ops.AnyOp:
        roll = self.random.random()
        if self.plan.slots and roll < 0.2:
            self.count += 1
            name = f"{self.plan.run}-{self.thread}-{self.count}"
            who: dict[str, Any] = {"id": f"r{name}", "thread": self.thread}
            who |= {"world": writer.WORLDS[self.thread], "user": self.random.choice(writer.USERS)}
            if self.labels and roll < 0.05:
                label = self.random.choice(self.labels)
                return ops.Fork(**who, label=label, new_world=f"fork {name}")
            return ops.Forget(**who)
        return super()._next()

    def _note(self, op: ops.AnyOp, answer: object) -> None:
        super()._note(op, answer)
        if isinstance(op, ops.Forget):
            for known in (self.alive, self.deleted, self.homes):
                known.pop((op.world, op.user), None)

    def _read_now_and_then(self, op: ops.AnyOp) -> None:
        super()._read_now_and_then(op)
        if self.random.random() < 0.08:
            self.runtime.drain()


class _Marks:
    """A log of a writer that goes into the record."""

    def __init__(self, recorder: Recorder) -> None:
        self.write = recorder.mark


class _Countdown:
    """Is set once it was looked at `left` times."""

    def __init__(self, left: int) -> None:
        self.left = left

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


class Workload:
    """Some sessions on a new folder, recorded. Its parts follow from the seed; with more than one
    thread, not the order of what they do. `number` says which kind it is."""

    def __init__(self, work: Path, chance: random.Random, number: int) -> None:
        self.chance = chance
        self.root = work / "recorded"
        self.root.mkdir()
        self.recorder = Recorder(self.root)
        self.settings = Settings(chance.choice(TIGHT_BYTES), chance.choice(EXACT_LIMITS))
        self.counts: Counter[str] = Counter()
        self.is_first_opening = number % 2 == 1
        self._requests = FEW_REQUESTS if self.is_first_opening else REQUESTS
        self._slots = number % 4 in {0, 1}  # checkpoints, forks and erasures
        self._threads = len(writer.WORLDS) if self._slots else chance.randint(1, 3)
        self._open: dict[str, ops.AnyOp] = {}
        self._seen = 0

    def record(self) -> list[Record]:
        """Do all of it, and return what was recorded."""
        pages = self.chance.choice(CHECKPOINT_PAGES)
        with mock.patch.object(sqlite, "CHECKPOINT_PAGES", pages), self.recorder.recording():
            if self.is_first_opening:
                self._session(0, self.chance.randint(1, FIRST_OPENING))
                self._session(1)
                sessions = 0
            else:
                sessions = self.chance.randint(*SESSIONS)
            for run in range(sessions):
                if any(isinstance(op, ops.SAVE_SLOTS) for op in self._open.values()):
                    break  # nobody could tell whether it was carried out
                is_killed = run > 0 and self.chance.random() < KILLED_SHARE
                self._session(run, self.chance.randint(1, LONGEST_SESSION) if is_killed else None)
        self._require_all_seen()
        shutil.rmtree(self.root)
        return self.recorder.records

    def _require_all_seen(self) -> None:
        """Make sure that nothing was written past the recorder: with all of the records, the disk
        would hold what it does hold."""
        disk = lost_power.Disk()
        for record in self.recorder.records:
            disk.take(record)
        recorded = disk.cut("all", self.chance).files
        files = [p for p in self.root.rglob("*") if p.is_file() and not p.name.endswith("-shm")]
        found = {path.relative_to(self.root).as_posix(): path.read_bytes() for path in files}
        differ = {p for p in recorded.keys() | found.keys() if recorded.get(p) != found.get(p)}
        if differ:
            msg = f"not all that was done to the disk was recorded: {sorted(differ)}"
            raise RuntimeError(msg)

    def _session(self, run: int, kill_after: int | None = None) -> None:
        recorder = self.recorder
        if kill_after is not None:
            recorder.kill_after(kill_after)
        try:
            runtime = self.settings.open(self.root / DATA)
        except reverie.ReverieError:
            if not recorder.is_killed:
                raise
        else:
            recorder.mark(writer.Opened())
            with suppress(reverie.ReverieError):
                self._write(runtime, run)
            with suppress(reverie.ReverieError):
                runtime.close()
        if recorder.is_killed:
            self.counts["kills"] += 1
        recorder.revive()

    def _write(self, runtime: reverie.Runtime, run: int) -> None:
        marks = _Marks(self.recorder)
        for op in self._still_open():  # as a client does that got no answer
            marks.write(writer.Asked(op))
            marks.write(writer.Answered(op.id, op.send(runtime)))
        plan = writer.Plan("", "", run, self.chance.randrange(1 << 30), slots=self._slots)
        threads = [
            threading.Thread(
                target=self._work,
                args=(Worker(plan, i, runtime, marks), self.chance.randint(*self._requests)),  # type: ignore[arg-type]
            )
            for i in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._still_open()

    def _work(self, worker: Worker, requests: int) -> None:
        try:
            worker.run(_Countdown(requests))  # type: ignore[arg-type]
        except reverie.ReverieError:  # in between two requests
            if not self.recorder.is_killed:
                raise

    def _still_open(self) -> list[ops.AnyOp]:
        """Return the requests without an answer so far."""
        records = self.recorder.records
        for record in records[self._seen :]:
            match record:
                case Marked(writer.Asked(op)):
                    self._open[op.id] = op
                case Marked(writer.Answered(request_id, _)):
                    self._open.pop(request_id)
                case _:
                    pass
        self._seen = len(records)
        return list(self._open.values())


@contextmanager
def tight() -> Iterator[None]:
    """Let everything be small and frequent that is large and rare in use."""
    pragmas = (*sqlite._PRAGMAS, f"journal_size_limit = {LOG_LIMIT_BYTES}")
    settings = functools.partial(residents.ShardSettings, snapshot_min_bytes=SNAPSHOT_BYTES)
    with (
        mock.patch.object(sqlite, "_PRAGMAS", pragmas),
        mock.patch.object(residents, "PASSIVATION_TAIL_BYTES", SNAPSHOT_BYTES),
        mock.patch("reverie.runtime.ShardSettings", settings),
    ):
        yield


# -- the cuts ------------------------------------------------------------------------------


class Cut(NamedTuple):
    """The power fails once `position` records were made."""

    position: int
    where: str
    landing: lost_power.Landing


class Auditor(audit.Auditor):
    """Knows also what was erased."""

    def __init__(self, folder: Path, findings: audit.Findings, seed: int) -> None:
        super().__init__(folder, findings, seed)
        self.erased: set[str] = set()  # texts
        self._gone: set[Key] = set()  # users

    def _done(self, op: ops.AnyOp, answer: str) -> None:
        if isinstance(op, ops.Forget):
            kinds = (ops.MESSAGE, ops.MEMORY)
            self.erased |= {p[3] for p in op.changes(self.model) if p[2] in kinds}
            self._gone.add(Key(op.world, op.user))
        else:
            self._gone.discard(Key(op.world, op.user))
        self._look_at(op)
        super()._done(op, answer)

    def take(self, lines: Any) -> None:
        super().take(lines)
        for op in self._open:
            self._look_at(op)

    def _look_at(self, op: ops.AnyOp) -> None:
        if isinstance(op, ops.Fork) and op.new_world not in self.worlds:
            self.worlds = (*self.worlds, op.new_world)

    def remains(self) -> list[str]:
        """Return where erased texts are still found, but for those that others have, too."""
        kept = {p[3] for p in self.model.values}
        kept |= {p[3] for values, _ in self.model.saved.values() for p in values}
        gone = [text.encode() for text in sorted(self.erased - kept)]
        found = []
        for path in sorted(self.folder.rglob("*")):
            data = path.read_bytes() if path.is_file() else b""
            found += [f"{text.decode()!r} is in {path.name}" for text in gone if text in data]
        for key in self._gone - {Key(op.world, op.user) for op in self._open}:
            found += [f"{path.name} of {key}" for path in index_files(self.folder, key)]
        return found


def index_files(folder: Path, key: Key) -> list[Path]:
    """Return the files of a user's vector index."""
    return sorted((folder / "indices").glob(f"{key_hash(key).hex()}*"))


class Campaign:
    """Cuts the power again and again. Ends with the first finding, and keeps its state."""

    def __init__(self, options: report.Options) -> None:
        self.options = options
        self.findings = audit.Findings()
        self.counts: Counter[str] = Counter()
        self.states = 0
        self.acknowledged = 0
        self._chance = random.Random(options.seed)
        shared = Path("/dev/shm")  # noqa: S108 (a file system in memory, where there is one)
        parent = shared if shared.is_dir() else options.work
        self._scratch = Path(tempfile.mkdtemp(prefix="reverie-power-", dir=parent))

    def run(self) -> None:
        """Record workloads and cut them until there were as many states as were asked for."""
        try:
            while self.states < self.options.count and not self.findings.lines:
                self._one_workload()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _one_workload(self) -> None:
        workload = Workload(self._scratch, self._chance, self.counts["workloads"])
        records = workload.record()
        self.counts += workload.counts
        self.counts["workloads"] += 1
        self.counts["records"] += len(records)
        disk = lost_power.Disk()
        taken = 0
        lines: list[writer.Line] = []
        for cut in self._cuts(records, workload):
            for record in records[taken : cut.position]:
                disk.take(record)
                if isinstance(record, Marked):
                    lines.append(record.line)
            taken = cut.position
            state = disk.cut(cut.landing, self._chance)
            self._one_state(state, lines, workload.settings, f"{cut} of {len(records)}")
            self.counts[cut.landing] += 1
            self.counts[cut.where] += 1
            if self.findings.lines:
                return
            if self.states == self.options.count:
                break
        self.acknowledged += sum(isinstance(line, writer.Answered) for line in lines)

    def _cuts(self, records: list[Record], workload: Workload) -> list[Cut]:
        """Choose where to cut, in order: around syncs, right after answers, and anywhere."""
        places: dict[str, list[tuple[int, str]]] = {
            "at a sync": [],
            "after an answer": [],
            "anywhere": [(i, "anywhere") for i in range(len(records) + 1)],
        }
        cuts: list[Cut] = []
        erasures: set[str] = set()
        for i, record in enumerate(records):
            match record:
                case Synced() | FolderSynced():
                    places["at a sync"] += [(i, "before a sync"), (i + 1, "after a sync")]
                case Marked(writer.Asked(op)):
                    if isinstance(op, ops.Forget):
                        erasures.add(op.id)
                case Marked(writer.Answered(request_id, _)):
                    places["after an answer"].append((i + 1, "after an answer"))
                    if request_id in erasures:  # each: what is erased must not come back
                        cuts += [Cut(i + 1, "after an answer", landing) for landing in LANDINGS]
                case _:
                    pass
        self.counts["syncs"] += len(places["at a sync"]) // 2
        states = STATES_OF_FIRST_OPENING if workload.is_first_opening else STATES_OF_WORKLOAD
        for kind, share in SHARES.items():
            known = [Cut(i, where, landing) for i, where in places[kind] for landing in LANDINGS]
            cuts += self._chance.sample(known, min(len(known), int(states * share)))
        return sorted(cuts)

    def _one_state(
        self, state: lost_power.State, lines: list[writer.Line], settings: Settings, what: str
    ) -> None:
        root = self._scratch / "state"
        root.mkdir()
        state.materialise(root)
        if self._chance.random() < CUT_AGAIN_SHARE:
            again = self._cut_again(root, settings)
            shutil.rmtree(root)
            root.mkdir()
            state = again
            state.materialise(root)
            self.counts["cut twice"] += 1
        before = len(self.findings.lines)
        self._audit(root / DATA, lines, settings)
        self.states += 1
        self.options.advance(1)
        if len(self.findings.lines) > before:
            kept = self.options.work / "state"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            state.materialise(kept)
            self.findings.broken.append(f"cut at {what}; the state is kept")
        shutil.rmtree(root)

    def _cut_again(self, root: Path, settings: Settings) -> lost_power.State:
        """Return what is left when the power fails once more, while the folder is opened."""
        recorder = Recorder(root)
        recorder.adopt()
        first = len(recorder.records)
        with recorder.recording(), suppress(reverie.ReverieError):
            settings.open(root / DATA).close()
        disk = lost_power.Disk()
        for record in recorder.records[: self._chance.randint(first, len(recorder.records))]:
            disk.take(record)
        return disk.cut(self._chance.choice(LANDINGS), self._chance)

    def _audit(self, folder: Path, lines: list[writer.Line], settings: Settings) -> None:
        auditor = Auditor(folder, self.findings, self._chance.randrange(1 << 30))
        auditor.take(lines)
        if not any(isinstance(line, writer.Asked) for line in lines):
            self.counts["nothing asked yet"] += 1
        self.counts["with erased users"] += bool(auditor.erased)
        if remains := auditor.remains():
            self.findings.broken.append(f"erased text: {remains[0]}")
            return
        try:
            auditor.audit(settings.open)
            self._use(folder, auditor.model, settings)
        except reverie.ReverieError as exc:
            kind = self.findings.lost if auditor.model.values else self.findings.broken
            kind.append(f"the folder cannot be used: {exc!r}")

    def _use(self, folder: Path, model: ops.Model, settings: Settings) -> None:
        """Open the folder once more: it takes a write, and finds what is there."""
        active = [p for p, v in model.values.items() if p[2] == ops.MEMORY and v.startswith("act")]
        with settings.open(folder) as runtime:
            kept = runtime.user("somebody new", "elsewhere").remember("The lamp is lit. 灯亮了。")
            if kept.op != "ADD":
                self.findings.broken.append(f"a new memory was answered by {kept}")
            if active:
                world, user, _, text = self._chance.choice(active)
                hits = runtime.user(user, world).search(text, types=["memory"], limit=MOST_HITS)
                if text not in (texts := [hit.text for hit in hits]):
                    self.findings.broken.append(f"{text!r} of {user} is not in {texts}")

    def row(self) -> report.Row:
        """Return what has come of it so far."""
        found = self.findings
        shown = ("workloads", "kills", "records", "syncs", *LANDINGS)
        shown += ("before a sync", "after a sync", "after an answer", "anywhere")
        shown += ("nothing asked yet", "with erased users", "cut twice")
        figures: dict[str, float] = {name: self.counts[name] for name in shown}
        figures |= {
            "acknowledgements checked": found.acknowledged,
            "unacknowledged and there": found.landed,
            "unacknowledged and absent": found.absent,
            "repeated": found.repeated,
        }
        return report.Row(
            "power loss",
            "power-cut states",
            count=self.states,
            acknowledged=self.acknowledged,
            lost=len(found.lost),
            duplicated=len(found.duplicated),
            wrong=len(found.partial) + len(found.broken),
            figures=figures,
            findings=found.lines,
        )


# -- planted bugs --------------------------------------------------------------------------


@contextmanager
def planted(bug: str | None) -> Iterator[None]:
    """Break the product on purpose within the block."""
    with mock.patch.object(sqlite, "_configure", sqlite._configure):
        match bug:
            case "ack-before-commit":
                with mock.patch.object(Partition, "write", writer._write_late):
                    yield
            case "folders-not-synced":
                with (
                    mock.patch.object(sqlite, "sync_folder", return_value=None),
                    mock.patch.object(folder_module, "sync_folder", return_value=None),
                    mock.patch.object(erasure, "sync_folder", return_value=None),
                ):
                    yield
            case "log-cut-not-synced":
                with mock.patch.object(sqlite, "sync_file", return_value=None):
                    yield
            case "synchronous-normal" | "synchronous-off":
                sqlite._configure = _then_set(sqlite._configure, bug.replace("-", " = "))
                yield
            case _:
                yield


def _then_set(configure: Callable[..., None], pragma: str) -> Callable[..., None]:
    def configure_and_weaken(connection: Any, path: Path) -> None:
        configure(connection, path)
        connection.execute(f"PRAGMA {pragma}").fetchall()

    return configure_and_weaken


def run(options: report.Options) -> report.Row:
    """Cut the power `options.count` times."""
    # A killed process complains of its disk; what the audit meets is a finding anyway.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    campaign = Campaign(options)
    with tight(), planted(options.bug):
        campaign.run()
    return campaign.row()


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="cut the power of a writer", bugs=BUGS))
