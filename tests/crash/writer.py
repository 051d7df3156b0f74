"""A program to be killed: writes to a data folder without pause, from several threads.

It tells of every request before it is sent, and of every answer once it is there, by one
`os.write` of one line to a file that is only appended to.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import structlog
from crash import ops

import reverie
from reverie.memory_graph.drafts import Decision
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition, Transaction
from reverie.memory_graph.store.sqlite import Database
from reverie.models.standin import HashEmbedder

Bug: TypeAlias = Literal["ack-before-commit", "commit-in-pieces", "no-request-ids"]

WORLDS = ("town", "港口")
USERS = ("ana", "bo", "李娜")
DIM = 32
PARTITIONS = 4
MOST_SECONDS = 60.0  # a writer that nobody kills ends by itself
LONG_WORDS = 400  # of a long text now and then, so that logs and snapshots grow
TAKE_OVER = 20  # memories of earlier runs that a thread changes


class Plan(msgspec.Struct, frozen=True):
    """What a writer does. `log` is the file to append to; `threads` 0 only opens the folder.

    With `slots`, there is one thread per world, which saves and rewinds it now and then.
    """

    folder: str
    log: str
    run: int
    seed: int
    threads: int = 4
    slots: bool = False
    byte_budget: int = 1 << 30
    actors: int | None = None
    bug: Bug | None = None


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The folder is open."""


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """A request is about to be sent."""

    op: ops.AnyOp


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """A request is acknowledged; `answer` is JSON."""

    id: str
    answer: str


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A request was answered by an error, which should never be."""

    id: str
    error: str


Line: TypeAlias = Opened | Asked | Answered | Refused
_lines = msgspec.json.Decoder(Line)


class Log:
    """A file of lines; each is one system call, so that a kill leaves it whole or out."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, line: Line) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read_log(path: Path) -> list[Line]:
    """Return the lines of a log; a missing one is empty."""
    data = path.read_bytes() if path.exists() else b""
    return [_lines.decode(line) for line in data.split(b"\n")[:-1]]


class AddAll:
    """A `Decider` for which every memory is new."""

    def decide(self, draft: object, known: object) -> Decision:
        return Decision("ADD")


def open_runtime(
    folder: str | Path,
    *,
    actors: int | None = None,
    byte_budget: int = 1 << 30,
    background: bool = False,
    **settings: Any,
) -> reverie.Runtime:
    """Open a folder of this suite; `settings` go to `reverie.open` as they are."""
    return reverie.open(
        folder,
        actors=actors,
        extractor=ops.NoteTaker(),
        summaries="off",
        decider=AddAll(),
        partitions=PARTITIONS,
        byte_budget=byte_budget,
        background=background,
        **({"embedder": HashEmbedder(DIM)} | settings),
    )


class Worker:
    """One thread. What it writes depends on nobody else, so each request can be judged alone."""

    def __init__(self, plan: Plan, thread: int, runtime: reverie.Runtime, log: Log) -> None:
        self.plan = plan
        self.thread = thread
        self.runtime = runtime
        self.log = log
        self.random = random.Random(f"{plan.seed}/{plan.run}/{thread}")
        self.count = 0
        self.alive: dict[tuple[str, str], list[tuple[str, str]]] = {}  # user -> (id, text)
        self.deleted: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.homes: dict[tuple[str, str], tuple[str, str]] = {}  # user -> (head, where it lives)
        self.labels: list[str] = []

    def run(self, stop: threading.Event) -> None:
        """Write until `stop`."""
        if self.plan.slots:
            self.labels = [t.tag for t in self.runtime.checkpoints(WORLDS[self.thread])][-2:]
        while not stop.is_set():
            op = self._next()
            self.log.write(Asked(op))
            try:
                answer = op.send(self.runtime)
            except Exception as exc:  # noqa: BLE001 (whatever it is, the audit must hear of it)
                self.log.write(Refused(op.id, repr(exc)))
                return
            self.log.write(Answered(op.id, answer))
            self._note(op, msgspec.json.decode(answer))
            self._read_now_and_then(op)

    def _next(self) -> ops.AnyOp:
        roll = self.random.random()
        self.count += 1
        name = f"{self.plan.run}-{self.thread}-{self.count}"
        world = WORLDS[self.thread] if self.plan.slots else self.random.choice(WORLDS)
        key = (world, self.random.choice(USERS))
        who: dict[str, Any] = {
            "id": f"r{name}",
            "thread": self.thread,
            "world": world,
            "user": key[1],
        }
        if self.plan.slots and roll < 0.06:
            if self.labels and roll < 0.03:
                return ops.Rewind(**who, label=self.random.choice(self.labels))
            return ops.Pin(**who, label=f"T{name}")
        if key not in self.alive:
            self._take_over(key)
        kind = self.random.choices(KINDS, WEIGHTS)[0]
        alive, deleted = self.alive[key], self.deleted[key]
        if kind in {"update", "edit", "delete"} and alive:
            memory_id, old = self.random.choice(alive)
            if kind == "update":
                return ops.Update(**who, memory_id=memory_id, old=old, text=self._text(name))
            if kind == "edit":
                new = round(self.random.random(), 3)
                return ops.Edit(**who, memory_id=memory_id, old=old, importance=new)
            return ops.Delete(**who, memory_id=memory_id, old=old)
        if kind == "restore" and deleted:
            memory_id, old = self.random.choice(deleted)
            return ops.Restore(**who, memory_id=memory_id, old=old)
        if kind in {"add", "infer"}:
            turns = tuple(self._text(f"{name}-{i}") for i in range(self.random.randint(1, 5)))
            session = self.random.choice(("hall", "会议"))
            return ops.Add(**who, texts=turns, session=session, infer=kind == "infer")
        if kind == "observe":
            return ops.Observe(
                **who, text=self._text(name), person=f"Person{name}", place=f"Place{name}"
            )
        if kind == "relate":
            return ops.Relate(**who, head=f"Head{name}", predicate="knows", tail=f"Tail{name}")
        if kind == "move":
            head, old_home = self.homes.get(key, (f"Head{name}", None))
            return ops.Relate(
                **who, head=head, predicate=ops.LIVES_IN, tail=f"Home{name}", old=old_home
            )
        return ops.Remember(**who, text=self._text(name), name=f"Name{name}")

    def _take_over(self, key: tuple[str, str]) -> None:
        """Go on with some memories that this thread made in earlier runs."""
        self.alive[key], self.deleted[key] = [], []
        page = self.runtime.user(key[1], key[0]).list(limit=10_000)
        mine = [i for i in page.items if (i.metadata or {}).get("thread") == self.thread]
        for item in self.random.sample(mine, min(TAKE_OVER, len(mine))):
            self.alive[key].append((item.id, item.text))

    def _text(self, name: str) -> str:
        if self.random.random() < 0.3:
            return f"第{name}句：港口的铁匠把一盏红灯笼卖给了船长。"
        text = f"Line {name}: the smith of Ashford sold a red lantern to the captain."
        if self.random.random() < 0.03:
            text += "".join(f" w{self.random.randrange(10_000)}" for _ in range(LONG_WORDS))
        return text

    def _note(self, op: ops.AnyOp, answer: object) -> None:
        key = (op.world, op.user)
        match op, answer:
            case ops.Remember() | ops.Observe(), {"memory_id": str(memory_id)}:
                self.alive[key].append((memory_id, op.text))
            case ops.Update(), {"id": str(memory_id)}:
                self.alive[key].remove((op.memory_id, op.old))
                self.alive[key].append((memory_id, op.text))
            case ops.Delete(), _:
                self.alive[key].remove((op.memory_id, op.old))
                self.deleted[key].append((op.memory_id, op.old))
            case ops.Restore(), _:
                self.deleted[key].remove((op.memory_id, op.old))
                self.alive[key].append((op.memory_id, op.old))
            case ops.Relate(predicate=ops.LIVES_IN), _:
                self.homes[key] = (op.head, op.tail)
            case ops.Pin(), _:
                self.labels.append(op.label)
            case ops.Rewind(), _:  # some of them may be gone, or older
                self.alive.clear()
                self.deleted.clear()
                self.homes.clear()
            case _:
                pass

    def _read_now_and_then(self, op: ops.AnyOp) -> None:
        """Let readings be journaled, and snapshots be written and history dropped, in between."""
        roll = self.random.random()
        if roll < 0.02:
            self.runtime.user(op.user, op.world).search("Who sold the red lantern?", limit=3)
        elif roll < 0.025:
            self.runtime.flush()


KINDS = (
    "add infer remember observe update edit delete restore relate move".split()
)  # one thread's requests, with their shares:
WEIGHTS = (20, 10, 20, 5, 14, 6, 8, 3, 7, 7)


def work(plan: Plan, runtime: reverie.Runtime, log: Log, stop: threading.Event) -> None:
    """Write from all threads of a plan until `stop`."""
    threads = [
        threading.Thread(target=Worker(plan, i, runtime, log).run, args=(stop,), daemon=True)
        for i in range(plan.threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def quiet() -> None:
    """Keep what is only worth a warning out of the output: here, interrupted work is the rule."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def main(plan: Plan) -> None:
    """Open the folder and write until killed."""
    quiet()
    plant(plan.bug, writer=True)
    log = Log(plan.log)
    runtime = open_runtime(
        plan.folder, actors=plan.actors, byte_budget=plan.byte_budget, background=True
    )
    log.write(Opened())
    stop = threading.Event()
    timer = threading.Timer(MOST_SECONDS, stop.set)
    timer.daemon = True
    timer.start()
    work(plan, runtime, log, stop)
    if not plan.threads:
        time.sleep(MOST_SECONDS)


# -- planted bugs, which the suite must find ---------------------------------------------


def plant(bug: Bug | None, *, writer: bool) -> None:
    """Break this process on purpose: the writer's, or the auditor's."""
    if bug == "ack-before-commit" and writer:
        Partition.write = _write_late  # type: ignore[assignment, method-assign]
    if bug == "commit-in-pieces" and writer:
        Transaction.append = _append_in_pieces  # type: ignore[assignment, method-assign]
    if bug == "no-request-ids":
        Transaction.result_of = lambda *_: None  # type: ignore[method-assign]
        Transaction.keep_result = lambda *_: None  # type: ignore[method-assign]


@contextmanager
def _write_late(partition: Partition) -> Iterator[Transaction]:
    """Leave the transaction open when the answers are given; the next batch commits it."""
    db = partition._db
    if db.in_transaction:
        _commit(db)
    db.rows("BEGIN IMMEDIATE")
    txn = Transaction(db)
    try:
        partition.require_ownership()
        yield txn
    except BaseException:
        db.rows("ROLLBACK")
        raise
    finally:
        txn.end()


def _commit(db: Database) -> None:
    assert db._seal is not None
    db._seal.before_commit()
    db.rows("COMMIT")
    db._seal.committed()


_append = Transaction.append


def _append_in_pieces(txn: Transaction, key: Key, events: Sequence[bytes]) -> int:
    """Commit after each event, in the middle of a request."""
    head = 0
    for event in events:
        head = _append(txn, key, [event])
        _commit(txn._db)
        txn._db.rows("BEGIN IMMEDIATE")
    return head


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Plan))
