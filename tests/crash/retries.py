"""Requests that are sent again: one effect, one answer, and each client's order kept.

    python tests/crash/retries.py 100000

Clients write from many threads through a network that loses calls and answers, and send each
request 1 to 5 times: until an answer came, once more at once, from several threads at the same
moment, or long after. Some send several requests without waiting for the answers in between. The
runtime is closed or dropped under them again and again, and with little room in memory users come
and go. In the end each request has had one effect and one answer, and what each client said stands
in the order in which it was said.

A partition remembers the last `MAX_RESULTS` requests. Nothing is repeated here that is older; what
happens then is told in docs/reliability.md. `--bug` breaks the product on purpose, and then this
suite has to fail.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import audit, ops, report, writer
from crash.client import SESSION, Client

import reverie
from reverie.actors import requests
from reverie.actors.lane import Transport
from reverie.actors.shard import Shard
from reverie.memory_graph.errors import RequestReusedError, ShardUnavailableError
from reverie.memory_graph.ids import Key, partition_of
from reverie.memory_graph.store import Transaction, results
from reverie.models.standin import HashEmbedder

CLIENTS = 12  # each a thread; two share a user and a session
WRITES_OF_ROUND = (60, 2_000)  # of all clients, between two openings, at least and at most
ROUNDS = 6  # at least
ROUNDS_OF_WORLD = 4  # then users are new, so that none grows without end
LOST_CALLS = 0.02  # of the batches never arrive
LOST_ANSWERS = 0.04  # of the batches are carried out, and nobody learns of it
LONG_AFTER = 100  # requests of earlier rounds that are sent again in each round
MARGIN = 1_000  # requests that a partition may take while one is being repeated
TIGHT_SHARE = 0.2  # of the rounds have no room for all users in memory
TIGHT_BYTES = 200_000
HISTORY = 50_000  # answered requests that are kept to be repeated
THREADS = 16  # that send at the same moment
CALLS, ANSWERS = "calls lost", "answers lost"
CHECK_SHARE = 0.3  # of the looks are followed by the product's own check of all there is

BUGS = ("answers-not-kept", "answers-in-memory", "batch-reversed", "any-content")


class Network:
    """Between the clients and the shards. Loses calls and answers while it is `lossy`."""

    def __init__(self, chance: random.Random) -> None:
        self.is_lossy = False
        self.is_down = False
        self.lost: Counter[str] = Counter()
        self._chance = chance

    def wrap(self, transport: Transport) -> Transport:
        """Return the same way to a shard, through this network."""

        def call(batch: Sequence[Any]) -> list[Any]:
            roll = self._chance.random()
            if self.is_lossy and (self.is_down or roll < LOST_CALLS):
                raise self._lost(CALLS)
            answers = transport(batch)
            if self.is_lossy and (self.is_down or roll < LOST_CALLS + LOST_ANSWERS):
                raise self._lost(ANSWERS)
            return answers

        return call

    def _lost(self, what: str) -> ShardUnavailableError:
        self.lost[what] += 1
        msg = f"{what} on the way"
        return ShardUnavailableError(msg)


class Answered(NamedTuple):
    """A request with its answer, the number of its partition and which one it was there."""

    op: ops.AnyOp
    answer: str
    partition: int
    number: int


class Campaign:
    """Rounds of writing on one folder."""

    def __init__(self, options: report.Options, actors: int | None = None) -> None:
        self.options = options
        self.actors = actors
        self.findings = audit.Findings()
        self.counts: Counter[str] = Counter()
        self.chance = random.Random(options.seed)
        self.network = Network(random.Random(options.seed))
        self.writes = 0
        self.history: list[Answered] = []
        self.pool = ThreadPoolExecutor(THREADS)
        self.in_round: Callable[[reverie.Runtime], None] | None = None
        self._lock = threading.Lock()
        self._models: dict[str, ops.Model] = defaultdict(ops.Model)
        self._said: dict[tuple[str, str], list[str]] = defaultdict(list)  # by (world, client)
        self._numbers: Counter[int] = Counter()  # of requests, by partition
        self._clients = [Client(self, options.seed, number) for number in range(CLIENTS)]
        shared = Path("/dev/shm")  # noqa: S108 (a file system in memory, where there is one)
        parent = shared if shared.is_dir() else options.work
        self._scratch = Path(tempfile.mkdtemp(prefix="reverie-retries-", dir=parent))

    def run(self) -> None:
        """Go on until enough was written, or something was found."""
        least, most = WRITES_OF_ROUND
        in_round = max(least, min(most, self.options.count // ROUNDS))
        if self.actors is not None:  # Ray takes seconds to start
            in_round = self.options.count
        number = 0
        try:
            while self.writes < self.options.count and not self.findings.lines:
                left = self.options.count - self.writes
                self._round(number, -(-min(left, in_round) // CLIENTS))
                number += 1
            if not self.findings.lines:
                self.actors = self.in_round = None
                self._round(number, 0)  # what is still open, and a last look
        finally:
            self.pool.shutdown()
            if self.findings.lines:
                shutil.copytree(self._scratch, self.options.work / "data", dirs_exist_ok=True)
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _open(self) -> reverie.Runtime:
        is_tight = self.chance.random() < TIGHT_SHARE
        self.counts["rounds with little room"] += is_tight
        runtime = reverie.open(
            self._scratch / "data",
            actors=self.actors,
            embedder=HashEmbedder(writer.DIM),
            decider=writer.AddAll(),
            extractor="off",
            partitions=writer.PARTITIONS,
            byte_budget=TIGHT_BYTES if is_tight else 1 << 30,
            background=False,
        )
        for lane in runtime._router.lanes:
            lane._transport = self.network.wrap(lane._transport)
        return runtime

    def _round(self, number: int, writes: int) -> None:
        """Open, let all clients write, and end in one of several ways."""
        runtime = self._open()
        self.counts["openings"] += 1
        stop = threading.Event()
        world = f"world {number // ROUNDS_OF_WORLD}"
        threads = [
            threading.Thread(target=client.run, args=(runtime, world, writes, stop))
            for client in self._clients
        ]
        self.network.is_lossy = True
        for thread in threads:
            thread.start()
        if self.in_round is not None:
            self.in_round(runtime)
        end = self.chance.choice(("finished", "closed", "dropped")) if writes else "finished"
        if self.actors is not None:
            end = "finished"
        if end != "finished":
            until = self.writes + self.chance.randint(1, max(1, writes * CLIENTS * 3 // 4))
            while self.writes < until and any(thread.is_alive() for thread in threads):
                stop.wait(0.005)
        if end == "closed":
            runtime.close()  # finishes what is under way; the clients learn that it is closed
        elif end == "dropped":
            self.network.is_down = True
            stop.set()
        for thread in threads:
            thread.join()
        self.network.is_lossy = self.network.is_down = False
        if end == "finished":
            if not any(client.open for client in self._clients):
                self._look(runtime)
            self._repeat_some(runtime)
            runtime.close()
        elif end == "dropped":
            _drop(runtime)
        self.counts[end] += 1

    # -- what the clients tell ---------------------------------------------------------

    def answered(self, client: int, op: ops.AnyOp, answer: str) -> None:
        """Take in the first answer to a request."""
        partition = partition_of(Key(op.world, op.user), writer.PARTITIONS)
        with self._lock:
            self.writes += 1
            self._numbers[partition] += 1
            self._models[op.world].apply(op, answer)
            if isinstance(op, ops.Add):
                self._said[op.world, str(client)] += op.texts
            self.history.append(Answered(op, answer, partition, self._numbers[partition]))
            del self.history[: -HISTORY or None]
        self.options.advance(1)

    def compare(self, op: ops.AnyOp, first: str, again: str) -> None:
        """Hold a further answer to a request against the first."""
        with self._lock:
            self.findings.repeated += 1
            if first != again:
                self.findings.duplicated.append(f"{op} was answered {first}, then {again}")

    def wrong(self, line: str) -> None:
        """Note something that must not be."""
        with self._lock:
            self.findings.broken.append(line)

    def count(self, what: str, count: int) -> None:
        """Count something that was done."""
        with self._lock:
            self.counts[what] += count

    # -- long after, and in the end ----------------------------------------------------

    def _repeat_some(self, runtime: reverie.Runtime) -> None:
        """Send requests of any earlier time again, as long as they must be remembered."""
        known = [
            done
            for done in self.history
            if self._numbers[done.partition] - done.number < results.MAX_RESULTS - MARGIN
        ]
        for done in self.chance.sample(known, min(LONG_AFTER, len(known))):
            self.counts["sent long after"] += 1
            try:
                again = done.op.send(runtime)
            except reverie.ReverieError as exc:
                self.findings.duplicated.append(f"{done.op} was answered, then {exc!r}")
            else:
                self.compare(done.op, done.answer, again)

    def _look(self, runtime: reverie.Runtime) -> None:
        """Hold what is there against the model, for each world that was written to of late."""
        stats = runtime.stats()
        resident = sum(part.resident_users for part in stats.shards)
        self.counts["users out of memory"] += stats.users - resident
        current = sorted(self._models)[-2:] if len(self._models) > 1 else list(self._models)
        for world in current:
            auditor = audit.Auditor(self._scratch, self.findings)
            auditor.model = self._models[world]
            auditor._compare(ops.observed(runtime, (world,)))
            for user_id in runtime.users(world):
                self._check_order(runtime.user(user_id, world))
            self.counts["looks"] += 1
        if self.writes >= self.options.count or self.chance.random() < CHECK_SHARE:
            self.findings.broken += runtime.check()

    def _check_order(self, user: reverie.User) -> None:
        texts = [item.text for item in ops._items(user) if item.session == SESSION]
        for client in self._clients:
            if client.user != user.key.user_id:
                continue
            expected = self._said[user.key.world, str(client.number)]
            mine = [text for text in texts if text.startswith(f"{client.name}, ")]
            if mine != expected:
                wrong = next((p for p in zip(mine, expected, strict=False) if p[0] != p[1]), None)
                self.findings.broken.append(
                    f"out of order: {client.name} said {len(expected)} things, "
                    f"{len(mine)} are there; the first that differ: {wrong}"
                )
            self.counts["in order"] += len(mine)

    def row(self) -> report.Row:
        """Return what has come of it so far."""
        found = self.findings
        figures: dict[str, float] = dict(sorted(self.counts.items()))
        figures |= {"answers compared": found.repeated, **self.network.lost}
        return report.Row(
            "retries and order" if self.actors is None else "retries and order on Ray",
            "writes",
            count=self.writes,
            acknowledged=self.writes,
            lost=len(found.lost),
            duplicated=len(found.duplicated),
            wrong=len(found.partial) + len(found.broken),
            figures=figures,
            findings=found.lines,
        )


def _drop(runtime: reverie.Runtime) -> None:
    """Leave a runtime as its process would when it is killed: nothing is finished or flushed."""
    runtime._closed.set()
    runtime.ingestor.close()
    backend: Any = runtime._router.backend
    for partition in backend.shard.partitions.values():
        partition.close()
    runtime._folder.close()


# -- planted bugs --------------------------------------------------------------------------


@contextmanager
def planted(bug: str | None) -> Iterator[None]:
    """Break the product on purpose within the block."""
    match bug:
        case "answers-not-kept":
            with mock.patch.object(Transaction, "keep_result", return_value=None):
                yield
        case "answers-in-memory":
            with _answers_in_memory():
                yield
        case "batch-reversed":
            with mock.patch.object(Shard, "execute", _execute_reversed):
                yield
        case "any-content":
            with mock.patch.object(requests, "fingerprint", return_value=b"the same"):
                yield
        case _:
            yield


@contextmanager
def _answers_in_memory() -> Iterator[None]:
    """Keep answers for as long as the file is open, not in it."""
    kept: weakref.WeakKeyDictionary[Any, dict[str, tuple[bytes, bytes]]]
    kept = weakref.WeakKeyDictionary()

    def keep(txn: Transaction, request_id: str, _key: object, mark: bytes, data: bytes) -> None:
        kept.setdefault(txn._db, {})[request_id] = mark, data

    def result_of(txn: Transaction, request_id: str, mark: bytes) -> bytes | None:
        known, data = kept.get(txn._db, {}).get(request_id, (mark, None))
        if known != mark:
            msg = "used before"
            raise RequestReusedError(msg)
        return data

    with (
        mock.patch.object(Transaction, "keep_result", keep),
        mock.patch.object(Transaction, "result_of", result_of),
    ):
        yield


_execute = Shard.execute


def _execute_reversed(shard: Shard, batch: Sequence[Any]) -> list[Any]:
    return _execute(shard, batch[::-1])[::-1]


def run(options: report.Options) -> report.Row:
    """Write `options.count` times, each sent 1 to 5 times."""
    writer.quiet()
    campaign = Campaign(options)
    with planted(options.bug):
        campaign.run()
    return campaign.row()


def run_on_ray(options: report.Options, disturb: Callable[[reverie.Runtime], None]) -> report.Row:
    """Write in one round with two actors; `disturb` is called meanwhile."""
    writer.quiet()
    campaign = Campaign(options, actors=2)
    campaign.in_round = disturb
    campaign.run()
    return campaign.row()


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="send requests again and again", bugs=BUGS))
