"""Save slots under fire: checkpoints, rewinds and forks while writes and extractions are under way.

    python tests/crash/fire.py 2000

Two worlds are written to by several threads each, and extracted in the background by slow models
that sometimes fail. An operator per world saves it, puts it back, forks it and drops saves. All of
it is stamped by one counter, so that afterwards each write can be judged alone: it is there, it is
gone, or it was under way during a rewind and may be either. Further:

- nothing that was begun between the save and the rewind is there after the rewind, also not the
  outcome of an extraction that was under way;
- a fork holds what the save held; no side gets what the other writes or changes afterwards;
- every turn that is there was extracted once, and nothing else was.
"""

from __future__ import annotations

import itertools
import logging
import random
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias
from unittest.mock import patch

import msgspec
import structlog

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import report, writer

import reverie
from reverie.actors import writes
from reverie.actors.residents import Residents
from reverie.actors.shard import Shard
from reverie.memory_graph.drafts import Decision, MemoryDraft
from reverie.memory_graph.store import UserImage, slots, users
from reverie.models.protocol import Extraction, Turn
from reverie.models.standin import HashEmbedder

WORLDS = ("town", "港口")
USERS = ("ana", "bo", "李娜")
WRITERS = 3  # threads of one world
FOLDER_OPERATIONS = 40  # on save slots, in one data folder
FORKS = 4  # of one world in one data folder
SAVES = 4  # that one world has at a time
PAUSE_S = (0.0, 0.006)  # of a writer
OPERATOR_PAUSE_S = (0.005, 0.05)
EXTRACTION_S = (0.002, 0.03)
LONG = 1_000  # operations of a run in which some folders are on Ray
RAY_EVERY = 10  # folders
RAY_ACTORS = 2
JOIN_S = 120.0

Value: TypeAlias = Literal["there", "gone", "either"]
THERE: Value = "there"
GONE: Value = "gone"
EITHER: Value = "either"
TEXT = re.compile(r"^(?:noted x(\d+): )?(\S+) w(\d+)")
EDITED = re.compile(r"^(\S+) edited (\d+)$")


class Stamps:
    """One counter for everything, safe for threads."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def next(self) -> int:
        return next(self._count)


class SlowNotes:
    """An `Extractor` that makes one memory of each turn, stamped with when it began; slow, and it
    fails now and then, once for a text."""

    def __init__(self, stamps: Stamps) -> None:
        self.stamps = stamps
        self.failed: set[str] = set()

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        begun = self.stamps.next()
        time.sleep(random.uniform(*EXTRACTION_S))
        for turn in turns:
            if turn.text.endswith("!") and turn.text not in self.failed:
                self.failed.add(turn.text)
                msg = "a model may fail"
                raise RuntimeError(msg)
        return [
            Extraction(t.id, (MemoryDraft(f"noted x{begun}: {t.text}", sources=(t.id,)),))
            for t in turns
        ]


class SlowAddAll:
    """A `Decider` for which every memory is new, after a while."""

    def decide(self, draft: object, known: object) -> Decision:
        time.sleep(0.001)
        return Decision("ADD")


class Write(msgspec.Struct):
    """One acknowledged write: its text, a turn or a memory, and its stamps."""

    text: str
    is_turn: bool
    begun: int
    ended: int


class Operation(msgspec.Struct):
    """One operation on a save slot: "checkpoint" or "rewind", which other ones do not matter."""

    kind: str
    tag: str
    begun: int
    ended: int


class Fork(msgspec.Struct):
    """A world that was made of a save, and what was written to it afterwards."""

    world: str
    tag: str
    begun: int
    writes: list[Write]


def values(write: Write, operations: Sequence[Operation]) -> tuple[Value, dict[str, Value]]:
    """Return whether a write is in its world after some operations, and in each of its saves."""
    saved: dict[str, Value] = {}
    value: Value = THERE
    for op in operations:
        if op.ended < write.begun:
            if op.kind == "checkpoint":
                saved[op.tag] = GONE
        elif op.begun > write.ended:
            if op.kind == "checkpoint":
                saved[op.tag] = value
            else:
                value = saved[op.tag]
        elif op.kind == "checkpoint":
            saved[op.tag] = EITHER
        else:
            value = EITHER
    return value, saved


class Seen(msgspec.Struct):
    """What a world holds: texts of turns and of direct memories with how often they are there,
    (begin of the extraction, text of the turn) of the others, and marks of edits."""

    texts: Counter[str]
    noted: list[tuple[int, str]]
    edits: list[tuple[str, int]]
    ended: list[str]


def look(runtime: reverie.Runtime, world: str) -> Seen:
    """Read everything of a world."""
    seen = Seen(Counter(), [], [], [])
    for user_id in runtime.users(world):
        page = runtime.user(user_id, world).list(
            limit=10_000, types=("memory", "message"), include_retired=True
        )
        for item in page.items:
            found = TEXT.match(item.text)
            if item.type == "memory" and found is not None and found[1]:
                seen.noted.append((int(found[1]), item.text.partition(": ")[2]))
            else:
                seen.texts[item.text] += 1
            seen.edits += [(m[1], int(m[2])) for tag in item.tags if (m := EDITED.match(tag))]
            if item.type == "memory" and item.status != "active":
                seen.ended.append(item.text)
    return seen


class Line:
    """One world with its writers and its operator."""

    def __init__(self, fire: Fire, world: str, operations: int) -> None:
        self.fire = fire
        self.world = world
        self.left = operations
        self.random = random.Random(f"{fire.options.seed}/{fire.folders}/{world}")
        self.writes: list[Write] = []
        self.operations: list[Operation] = []
        self.saves: list[str] = []
        self.forks: list[Fork] = []
        self.stop = threading.Event()

    # -- writing -------------------------------------------------------------------------

    def write(self, number: int) -> None:
        """Write from one thread until `stop`."""
        chance = random.Random(f"{self.fire.options.seed}/{self.world}/{number}")
        while not self.stop.is_set():
            try:
                self._write_one(self.world, self.world, chance, self.writes)
            except Exception as exc:  # noqa: BLE001 (whatever it is, it is a finding)
                self.fire.wrong(f"a write failed: {exc!r}")
                return
            time.sleep(chance.uniform(*PAUSE_S))

    def _write_one(self, world: str, canary: str, chance: random.Random, into: list[Write]) -> None:
        runtime, stamps = self.fire.runtime, self.fire.stamps
        user = runtime.user(chance.choice(USERS), world)
        is_turn = chance.random() < 0.6
        begun = stamps.next()
        text = f"{canary} w{begun} 铁匠 sold a red lantern{chance.choice('......!')}"

        def send() -> Any:
            request = f"r{begun}"
            if is_turn:
                return user.add(text, session="大厅", request_id=request).ids
            return user.remember(text, request_id=request)

        first = send()
        ended = stamps.next()
        into.append(Write(text, is_turn, begun, ended))  # appending is safe between threads
        self.fire.acknowledged()
        if chance.random() < 0.1:
            try:
                if (again := send()) != first:
                    self.fire.duplicated(f"{text!r} was answered {first}, then {again}")
            except reverie.errors.StaleGenerationError:
                if world != self.world or all(op.kind != "rewind" for op in self._begun()):
                    self.fire.wrong(f"{text!r} is stale, but there was no rewind")

    def _begun(self) -> list[Operation]:
        """Return the operations that have begun; the last one may be under way."""
        return [*self.operations, *([self._under_way] if self._under_way else [])]

    _under_way: Operation | None = None

    # -- saving and loading --------------------------------------------------------------

    def operate(self) -> None:
        """Save, load, fork and drop until enough was done."""
        try:
            while self.left > 0 and self.fire.row.is_clean:
                time.sleep(self.random.uniform(*OPERATOR_PAUSE_S))
                self._operate_once()
                self.left -= 1
                self.fire.done()
        except Exception as exc:  # noqa: BLE001 (whatever it is, it is a finding)
            self.fire.wrong(f"an operation failed: {exc!r}")
        finally:
            self.stop.set()

    def _operate_once(self) -> None:
        roll = self.random.random()
        if not self.saves or (roll < 0.25 and len(self.saves) < SAVES):
            tag = f"save-{len(self.operations)}"
            with self._noted("checkpoint", tag):
                self.fire.runtime.checkpoint(tag, self.world)
            self.saves.append(tag)
        elif roll < 0.7:
            tag = self.random.choice(self.saves)
            with self._noted("rewind", tag) as operation:
                self.fire.runtime.rewind(tag, self.world)
            self._look_after(operation)
        elif roll < 0.85 and len(self.forks) < FORKS:
            self._fork(self.random.choice(self.saves))
        elif roll < 0.92:
            self._edit(self.world, self.world)
        elif len(self.saves) > 1:
            tag = self.saves.pop(self.random.randrange(len(self.saves)))
            self.fire.runtime.drop_checkpoint(tag, self.world)
            self.fire.count("drops")

    @contextmanager
    def _noted(self, kind: str, tag: str) -> Iterator[Operation]:
        operation = Operation(kind, tag, self.fire.stamps.next(), sys.maxsize)
        self._under_way = operation
        yield operation
        operation.ended = self.fire.stamps.next()
        self.operations.append(operation)
        self._under_way = None
        self.fire.count(f"{kind}s")

    def _fork(self, tag: str) -> None:
        world = f"{self.world}-fork-{len(self.forks)}"
        fork = Fork(world, tag, self.fire.stamps.next(), [])
        self.fire.runtime.fork(tag, world, self.world)
        self.fire.count("forks")
        self.forks.append(fork)
        for _ in range(3):
            self._write_one(world, world, self.random, fork.writes)
        self._edit(world, world)
        self._end_one(world)

    def _edit(self, world: str, mark: str) -> None:
        """Mark a memory in place; what shares its rows would have the mark, too."""
        user = self.fire.runtime.user(self.random.choice(USERS), world)
        items = user.list(limit=1_000).items
        if items:
            stamp = self.fire.stamps.next()
            user.update(self.random.choice(items).id, tags=(f"{mark} edited {stamp}",))
            self.fire.count("edits")

    def _end_one(self, world: str) -> None:
        user = self.fire.runtime.user(self.random.choice(USERS), world)
        items = [item for item in user.list(limit=1_000).items if world not in item.text]
        if items:
            user.delete(self.random.choice(items).id)
            self.fire.count("deletions in a fork")

    # -- judging -------------------------------------------------------------------------

    def _save(self, tag: str) -> Operation:
        return next(o for o in self.operations if o.kind == "checkpoint" and o.tag == tag)

    def _look_after(self, rewind: Operation) -> None:
        """Right after a rewind: nothing of between the save and the rewind may be there."""
        save = self._save(rewind.tag)
        known, operations = list(self.writes), list(self.operations)
        seen = look(self.fire.runtime, self.world)
        for begun, text in seen.noted:
            if save.ended < begun < rewind.begun:
                self.fire.wrong(
                    f"{self.world}: the extraction of {text!r} began at {begun}, after the save "
                    f"({save.ended}) and before the rewind ({rewind.begun}), and is there"
                )
        for write in known:
            if write.ended < rewind.begun:
                value, _ = values(write, operations)
                self._judge(f"after the rewind, {self.world}", write, value, seen)
        self.fire.count("looks after a rewind")

    def _judge(self, where: str, write: Write, value: Value, seen: Seen) -> None:
        found = seen.texts[write.text]
        if found > 1:
            self.fire.duplicated(f"{where}: {write.text!r} is there {found} times")
        elif value == THERE and not found:
            self.fire.lost(f"{where}: {write.text!r} is gone")
        elif value == GONE and found:
            self.fire.wrong(f"{where}: {write.text!r} is there again")

    def judge(self) -> None:
        """At the end, with nothing under way: hold the world and its forks against what they
        should hold."""
        seen = look(self.fire.runtime, self.world)
        in_saves: dict[str, dict[str, Value]] = {}
        for write in self.writes:
            value, saved = values(write, self.operations)
            in_saves[write.text] = saved
            self._judge(self.world, write, value, seen)
        self._judge_whole(self.world, seen, {w.text for w in self.writes}, self.writes)
        if seen.ended:
            self.fire.crossed(f"{self.world}: {seen.ended} ended, which only forks did")
        for fork in self.forks:
            self._judge_fork(fork, in_saves)

    def _judge_fork(self, fork: Fork, in_saves: dict[str, dict[str, Value]]) -> None:
        save, seen = self._save(fork.tag), look(self.fire.runtime, fork.world)
        for write in self.writes:
            self._judge(fork.world, write, in_saves[write.text].get(fork.tag, GONE), seen)
        for write in fork.writes:
            self._judge(fork.world, write, THERE, seen)
        texts = {w.text for w in self.writes if w.begun < save.ended}
        texts |= {w.text for w in fork.writes}
        self._judge_whole(fork.world, seen, texts, [*self.writes, *fork.writes])
        for begun, text in seen.noted:
            if save.ended < begun < fork.begun:
                self.fire.crossed(f"{fork.world}: {text!r} was extracted in {self.world}")
        for mark, stamp in seen.edits:
            if mark == self.world and stamp > save.ended:
                self.fire.crossed(f"{fork.world} has an edit of {self.world}")

    def _judge_whole(
        self, world: str, seen: Seen, texts: set[str], writes: Sequence[Write]
    ) -> None:
        """Nothing is there that nobody wrote; each turn was extracted once."""
        turns = {write.text for write in writes if write.is_turn}
        for text in seen.texts.keys() - texts:
            self.fire.crossed(f"{world} holds {text!r}")
        extracted = Counter(text for _, text in seen.noted)
        for text in turns & seen.texts.keys():
            if extracted[text] != 1:
                self.fire.wrong(f"{world}: {text!r} was extracted {extracted[text]} times")
        for text in extracted.keys() - seen.texts.keys():
            self.fire.wrong(f"{world}: {text!r} was extracted, but it is not there")
        for mark, _ in seen.edits:
            if mark not in {world, self.world} or (mark != world and world == self.world):
                self.fire.crossed(f"{world} has an edit of {mark}")


class Fire:
    """One data folder after the other, each with two lines; see the module's text."""

    runtime: reverie.Runtime

    def __init__(self, options: report.Options, row: report.Row) -> None:
        self.options = options
        self.row = row
        self.stamps = Stamps()
        self.folders = 0
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def run(self, actors: int | None) -> None:
        """Go on until enough was done, or something was found."""
        while self.row.count < self.options.count and self.row.is_clean:
            self.folders += 1
            is_on_ray = self.options.count >= LONG and not self.folders % RAY_EVERY
            self._run_folder(RAY_ACTORS if is_on_ray else actors)
        stale = {"stale outcomes": float(self._counts.pop("stale outcomes", 0))}
        self.row.figures = stale | {kind: float(n) for kind, n in sorted(self._counts.items())}

    def _run_folder(self, actors: int | None) -> None:
        folder = self.options.work / f"folder-{self.folders}"
        share = min(FOLDER_OPERATIONS, self.options.count - self.row.count)
        lines = [Line(self, world, -(-share // len(WORLDS))) for world in WORLDS]
        with self._open(folder, actors) as self.runtime:
            threads = [threading.Thread(target=line.operate, daemon=True) for line in lines]
            threads += [
                threading.Thread(target=line.write, args=(i,), daemon=True)
                for line in lines
                for i in range(WRITERS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(JOIN_S)
                if thread.is_alive():
                    self.wrong(f"a thread hangs after {JOIN_S:g} s")
                    return
            self._settle(lines)
            self._counts["stale outcomes"] += self.runtime.ingestor.counts.stale
            digests = self._digests()
        with self._open(folder, None) as self.runtime:
            if self._digests() != digests:
                self.wrong("digests differ after the reopening")
            for line in self.runtime.check():
                self.wrong(line)
        if self.row.is_clean:
            shutil.rmtree(folder)

    def _settle(self, lines: Sequence[Line]) -> None:
        """Let all extractions end, and judge."""
        self.runtime.drain(JOIN_S)
        stats = self.runtime.stats()
        if stats.pending or stats.quarantined:
            self.wrong(f"{stats.pending} turns wait, {stats.quarantined} are in quarantine")
        for line in lines:
            line.judge()

    def _open(self, folder: Path, actors: int | None) -> reverie.Runtime:
        return reverie.open(
            folder,
            actors=actors,
            embedder=HashEmbedder(writer.DIM),
            extractor=SlowNotes(self.stamps),
            summaries="off",
            decider=SlowAddAll(),
            partitions=writer.PARTITIONS,
            byte_budget=200_000 if self.folders % 2 else 1 << 30,
        )

    def _digests(self) -> dict[tuple[str, str], str]:
        return {
            (world, user_id): self.runtime.user(user_id, world).digest()
            for world in self.runtime.worlds()
            for user_id in self.runtime.users(world)
        }

    # -- counting, from any thread -------------------------------------------------------

    def acknowledged(self) -> None:
        with self._lock:
            self.row.acknowledged += 1

    def done(self) -> None:
        with self._lock:
            self.row.count += 1
        self.options.advance(1)

    def count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    def lost(self, line: str) -> None:
        self._found("lost", line)

    def duplicated(self, line: str) -> None:
        self._found("duplicated", line)

    def wrong(self, line: str) -> None:
        self._found("wrong", line)

    def crossed(self, line: str) -> None:
        self._found("crossed", line)

    def _found(self, kind: str, line: str) -> None:
        with self._lock:
            setattr(self.row, kind, getattr(self.row, kind) + 1)
            if len(self.row.findings) < report.SHOWN:
                self.row.findings.append(f"{kind}: {line}")


# -- planted bugs, which the suite must find ---------------------------------------------


def _export_heads(db: Any, world: str, tag: str, _after: str = "") -> Iterator[UserImage]:
    """Yield the pinned users as they are now."""
    for (uid,) in db.rows("SELECT uid FROM pins WHERE world = ? AND tag = ?", (world, tag)):
        user = users.user_of(db, uid)
        if user is not None and (image := slots.export_user(db, user.key)) is not None:
            yield image


_import = Shard._import


def _import_shared(shard: Shard, command: Any) -> bool:
    """Let the new user share the state in memory of the one that it was made of."""
    done = _import(shard, command)
    image = msgspec.msgpack.decode(command.image, type=UserImage)
    source = shard.residents.peek(image.key)
    if source is not None:
        shard.residents._users[command.key] = source
    return done


BUGS: dict[str, Callable[[], Any]] = {
    "no-generation": lambda: patch.object(writes, "_check_generation", lambda *_: None),
    "fork-of-head": lambda: patch.object(slots, "export_pin", _export_heads),
    "fork-shares-state": lambda: patch.object(Shard, "_import", _import_shared),
    "rewind-keeps-memory": lambda: patch.object(Residents, "drop", lambda *_: None),
}


def run(options: report.Options, actors: int | None = None) -> report.Row:
    """Do `options.count` operations on save slots."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    row = report.Row("save slots under fire", "operations")
    fire = Fire(options, row)
    broken = BUGS[options.bug]() if options.bug else patch.object(Shard, "_import", _import)
    with broken:
        try:
            fire.run(actors)
        except (reverie.ReverieError, msgspec.MsgspecError) as exc:
            fire.wrong(f"an operation failed: {exc!r}")
    return row


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="save slots under fire", bugs=BUGS))
