"""Two owners that are actors: orphans of a killed client, and actors of a node that was stopped.

A part of takeover.py. The actor class notes what it learns, can be made to stop at a point, and
goes on writing by itself when it is told that it was replaced.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from crash import audit, cluster, takeover, writer
from crash.writer import PARTITIONS

from reverie.actors import commands as c, ray_backend
from reverie.memory_graph import faults
from reverie.memory_graph.drafts import MemoryDraft
from reverie.memory_graph.errors import DataFolderLockedError, FencedError
from reverie.memory_graph.ids import Key, partition_of

# Files beside the data folder.
NOTES, ARMED, GO_ON = "notes", "armed", "go-on"
ACTORS = 2
# Not `-m`: a class of the main module is sent to actors as a whole, and cannot be.
CLIENT = "import sys; from crash.takeover_ray import drive; drive(*sys.argv[1:])"
ALONE_S = 20.0  # an actor that is told to go on has answered by then
ARMED_SHARE = 0.5  # of the takeovers find one of the old actors stopped in the middle of its work
LATE_HITS = 60  # passings before it stops
HEIR_S = 0.3  # of writing before an orphan goes on, and again afterwards


class Witness(ray_backend.ShardActor):
    """A shard's actor. Notes are "<pid> <what>"."""

    def __init__(self, folder: str, *args: Any) -> None:
        self._place = Path(folder).parent
        self._turn = threading.Lock()
        takeover.plant(None)
        self._tell("starts")
        super().__init__(folder, *args)
        if self._shard is not None:
            self._tell(f"owns {min(self._shard.partitions)}")
        armed = self._place / ARMED
        if self._shard is not None and 0 in self._shard.partitions and armed.exists():
            point, hits = armed.read_text().split()
            armed.unlink()
            faults.install(self._stop_at(point, int(hits)))
        threading.Thread(target=self._go_on, daemon=True).start()

    def execute(self, data: bytes) -> bytes:
        """As ever, and nothing else at the same time."""
        with self._turn:
            return super().execute(data)

    def _end_replaced(self) -> None:  # type: ignore[override] # notes it first
        self._tell("replaced")
        super()._end_replaced()

    def _tell(self, what: str) -> None:
        takeover.note(self._place / NOTES, f"{os.getpid()} {what}", time.monotonic())

    def _stop_at(self, point: str, hits: int) -> faults.Handler:
        passings = itertools.count(-hits)

        def handler(reached: str) -> None:
            if reached == point and next(passings) == 0:
                self._tell("stops")
                os.kill(os.getpid(), signal.SIGSTOP)

        return handler

    def _go_on(self) -> None:
        """Once named in a file, read and write without being asked."""
        names = self._place / GO_ON
        while not (names.exists() and str(os.getpid()) in names.read_text().split()):
            time.sleep(0.02)
        partitions = {0} if self._shard is None else self._shard.partitions.keys()
        names_of_all = (f"rogue {i}" for i in itertools.count())
        name = next(
            n for n in names_of_all if partition_of(Key("town", n), PARTITIONS) in partitions
        )
        user: dict[str, Any] = {"world": "town", "user_id": name}
        now = time.time()
        batch: list[c.AnyCommand] = [
            c.Get(**user, now=now, node_id="m1"),
            c.Search(**user, now=now, text="Who sold the red lantern?"),
            c.Remember(**user, at=now, draft=MemoryDraft(f"rogue {os.getpid()}")),
        ]
        with self._turn:
            answers = [None] if self._shard is None else self._shard.execute(batch)
            owned = {type(answer).__name__ for answer in answers} != {FencedError.__name__}
            self._tell("goes on" if owned else "is refused")
        self.execute(msgspec.msgpack.encode(batch))


def pids(place: Path, what: str) -> list[int]:
    """Return the processes that noted something, in order."""
    found = (n.what.split(" ", 1) for n in takeover.notes_in(place / NOTES))
    return [int(pid) for pid, told in found if told == what]


# -- a client that is killed, and leaves its actors behind --------------------------------


def drive(folder: str, log: str, run: str, address: str) -> None:
    """Be the client: write through actors until killed."""
    writer.quiet()
    ray_backend._stay_here = lambda address: {cluster.SHARDS: 0.001}
    ray_backend.ShardActor = Witness  # type: ignore[assignment, misc]
    plan = writer.Plan(folder=folder, log=log, run=int(run), seed=int(run), actors=ACTORS)
    runtime = writer.open_runtime(folder, actors=ACTORS, address=address, background=True)
    writer.work(plan, runtime, writer.Log(log), threading.Event())


class Orphans:
    """Takeovers from actors whose client was killed while one of them was stopped."""

    def __init__(self, work: Path, seed: int, findings: audit.Findings) -> None:
        self.work = work
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._findings = findings
        self._random = random.Random(seed)
        self._runs = itertools.count(1)

    def run(self, count: int) -> None:
        """Take over `count` times."""
        with cluster.nodes(**cluster.QUICK) as nodes:
            while self.counts["clients killed"] < count:
                node = nodes.add()
                try:
                    self._takeover(nodes.address, nodes.raylet(node))
                finally:
                    nodes.remove(node)

    def _takeover(self, address: str, raylet: int) -> None:
        """Kill a client, open its folder, and let its actors go on, one of which was stopped in
        the middle of its work. The node is stopped, too: it would end them."""
        run = next(self._runs)
        place = self.work / f"orphans-{run}"
        place.mkdir(parents=True)
        within = run % 2 == 0
        point = self._random.choice(takeover.WITHIN[:-1] if within else (takeover.BEGIN,))
        (place / ARMED).write_text(f"{point} {self._random.randrange(takeover.MOST_HITS)}")
        folder, log = place / "data", place / "log"
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(folder), str(log), str(run), address],
            cwd=Path(__file__).parents[1],
            start_new_session=True,
            stderr=(place / "errors").open("wb"),
        )
        try:
            takeover.until(lambda: bool(pids(place, "stops")), "an actor stops")
            (stopped,) = pids(place, "stops")
            os.kill(raylet, signal.SIGSTOP)
            client.kill()
            client.wait()
            self._replace(place, folder, stopped, run)
        finally:
            os.kill(raylet, signal.SIGCONT)
            with suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
            client.wait()
        auditor = takeover.Heir(folder, self._findings, run)
        auditor.read(log)
        auditor.read(place / "heir")
        auditor.audit()
        self.counts["clients killed"] += 1

    def _replace(self, place: Path, folder: Path, stopped: int, run: int) -> None:
        try:
            runtime = writer.open_runtime(folder, background=True)
        except DataFolderLockedError as exc:
            if f"actor {stopped}" not in str(exc):
                self.wrong.append(f"locked out by somebody unnamed: {exc}")
            cluster.end(stopped)
            self.counts["held a lock"] += 1
            takeover.until(lambda: takeover.state_of(stopped) in {"", "Z"}, "a killed actor ends")
            runtime = writer.open_runtime(folder, background=True)
        plan = writer.Plan(folder=str(folder), log=str(place / "heir"), run=run, seed=run + 1000)
        log, stop = writer.Log(plan.log), threading.Event()
        workers = [
            threading.Thread(
                target=writer.Worker(plan, takeover.THREADS + i, runtime, log).run, args=(stop,)
            )
            for i in range(takeover.THREADS)
        ]
        with runtime:
            for worker in workers:
                worker.start()
            time.sleep(HEIR_S)
            orphans = {pid for shard in range(ACTORS) for pid in pids(place, f"owns {shard}")}
            (place / GO_ON).write_text(" ".join(map(str, orphans)))
            with suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGCONT)
            takeover.until(
                lambda: all(takeover.state_of(pid) in {"", "Z"} for pid in orphans),
                "orphans end",
                ALONE_S,
            )
            time.sleep(HEIR_S)
            stop.set()
            for worker in workers:
                worker.join()
        if gone_on := orphans & set(pids(place, "goes on")):
            self.wrong.append(f"orphans {gone_on} went on after the takeover")
        self.counts["orphans that learnt it"] += len(orphans & set(pids(place, "replaced")))


# -- a node that is stopped, and whose actors go on ---------------------------------------


class StoppedNodes:
    """Takeovers, by actors that Ray starts anew, from those of a node that was stopped."""

    def __init__(self, work: Path, seed: int, findings: audit.Findings) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._place = work / "nodes"
        self._place.mkdir(parents=True)
        self._findings = findings
        self._seed = seed
        self._random = random.Random(seed)
        self._is_armed = False

    def run(self, count: int) -> None:
        """Take over `count` times under load, then audit."""
        actor_class = ray_backend.ShardActor
        ray_backend.ShardActor = Witness  # type: ignore[assignment, misc]
        folder, log = self._place / "data", self._place / "log"
        plan = writer.Plan(folder=str(folder), log=str(log), run=1, seed=self._seed)
        stop = threading.Event()
        try:
            with cluster.nodes(**cluster.QUICK) as nodes:
                node = nodes.add()
                with writer.open_runtime(
                    folder, actors=ACTORS, address=nodes.address, background=True
                ) as runtime:
                    takeover.until(lambda: len(self._owners()) == ACTORS, "actors start")
                    arguments = (plan, runtime, writer.Log(log), stop)
                    load = threading.Thread(target=writer.work, args=arguments)
                    load.start()
                    try:
                        for _ in range(count):
                            node = self._takeover(nodes, node, log)
                    finally:
                        stop.set()
                        load.join()
        finally:
            ray_backend.ShardActor = actor_class  # type: ignore[misc]
        lines = writer.read_log(log)
        asked = sum(isinstance(line, writer.Asked) for line in lines)
        if asked != sum(isinstance(line, writer.Answered) for line in lines):
            self.wrong.append("a client was not answered")
        auditor = audit.Auditor(folder, self._findings)
        auditor.read(log)
        auditor.audit()

    def _takeover(self, nodes: cluster.Nodes, node: Any, log: Path) -> Any:
        """Stop a node, with one of its actors or without, until others have replaced its actors;
        then let all of them go on. Returns the node of the new ones."""
        old = self._owners()
        if self._is_armed:
            takeover.until(lambda: bool(self._told("stops", old)), "an actor stops")
            self.counts["actors stopped, too"] += 1
        self._is_armed = self._random.random() < ARMED_SHARE
        if self._is_armed:  # one of the new ones will stop, later
            (self._place / ARMED).write_text(f"{takeover.BEGIN} {LATE_HITS}")
        raylet = nodes.raylet(node)
        os.kill(raylet, signal.SIGSTOP)
        try:
            fresh = nodes.add()
            takeover.until(lambda: not old & self._owners(), "actors start anew")
            before = answers(log)
            takeover.until(lambda: answers(log) > before + takeover.HEIR_WRITES, "clients go on")
            (self._place / GO_ON).write_text(" ".join(map(str, old)))
            for pid in self._told("stops", old):
                os.kill(pid, signal.SIGCONT)
            takeover.until(lambda: all(map(self._has_ended, old)), "old actors go on", ALONE_S)
        finally:
            os.kill(raylet, signal.SIGCONT)
        if gone_on := self._told("goes on", old):
            self.wrong.append(f"actors {gone_on} went on after the takeover")
        self.counts["actors that learnt it"] += len(self._told("replaced", old))
        self.counts["nodes stopped"] += 1
        nodes.remove(node)
        return fresh

    def _owners(self) -> set[int]:
        """Return the newest owner of each shard."""
        owners = [pids(self._place, f"owns {shard}")[-1:] for shard in range(ACTORS)]
        return {pid for found in owners for pid in found}

    def _told(self, what: str, of: set[int]) -> set[int]:
        return of & set(pids(self._place, what))

    def _has_ended(self, pid: int) -> bool:
        return takeover.state_of(pid) in {"", "Z"} or bool(self._told("goes on", {pid}))


def answers(log: Path) -> int:
    """Return how many requests were acknowledged."""
    return log.read_bytes().count(b'"answered"') if log.exists() else 0
