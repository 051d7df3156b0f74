"""A client of the retries suite: what it asks, and how often it sends it."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import msgspec
from crash import ops

import reverie
from reverie import door
from reverie.actors import commands as c
from reverie.memory_graph.errors import ClosedError, RequestReusedError, UnavailableError

MOST_SENDS = 5
REUSED_SHARE = 0.01  # of the requests have their id used for another one afterwards
PIPELINE_SHARE = 0.1  # of the turns of a client are several requests at once
PIPELINE = (3, 10)
SESSION = "大厅 hall"


class _EndedError(Exception):
    """The runtime went away under a client."""


class Campaign(Protocol):
    """Whom a client tells; from any thread."""

    pool: ThreadPoolExecutor  # sends at the same moment

    def answered(self, client: int, op: ops.AnyOp, answer: str) -> None:
        """Take in the first answer to a request."""

    def compare(self, op: ops.AnyOp, first: str, again: str) -> None:
        """Hold a further answer to a request against the first."""

    def wrong(self, line: str) -> None:
        """Note something that must not be."""

    def count(self, what: str, count: int) -> None:
        """Count something that was done."""


class Client:
    """One thread that writes; what it asked and has no answer to outlives the runtime."""

    def __init__(self, campaign: Campaign, seed: int, number: int) -> None:
        self.campaign = campaign
        self.number = number
        self.name = f"Client {number:02}"
        self.user = f"用户 {number // 2}"
        self.open: list[ops.AnyOp] = []
        self.random = random.Random(f"{seed}/{number}")
        self._count = 0
        self._world = ""
        self._alive: list[tuple[str, str]] = []  # memories: id and text
        self._runtime: reverie.Runtime
        self._stop: threading.Event

    def run(self, runtime: reverie.Runtime, world: str, writes: int, stop: threading.Event) -> None:
        """Write so many times, or until the runtime goes away."""
        self._runtime, self._stop = runtime, stop
        try:
            if self.open:  # in their order, before anything new
                self._tell("sent again after a restart", len(self.open))
                self._pipeline()
            if world != self._world:
                self._world = world
                self._alive.clear()
            last = self._count + writes
            while self._count < last:
                if self.random.random() < PIPELINE_SHARE:
                    length = min(self.random.randint(*PIPELINE), last - self._count)
                    self.open = [self._turns() for _ in range(length)]
                    self._tell("pipelined", length)
                    self._pipeline()
                else:
                    self.open = [self._next()]
                    self._one()
        except _EndedError:
            return
        except Exception as exc:  # noqa: BLE001 (whatever it is, it must be told)
            self.campaign.wrong(f"{self.name}, {self.open}: {exc!r}")

    # -- one request ---------------------------------------------------------------------

    def _one(self) -> None:
        (op,) = self.open
        sends = self.random.randint(1, MOST_SENDS)
        style = self.random.choice(("again", "at the same moment", "first ones"))
        if style == "first ones" and sends > 1:
            answers: list[str] = []
            while not answers:
                answers = self._together(op, sends)
            self._tell("first sent at the same moment", sends)
            sends = 0
        else:
            tries = 0
            answers = []
            while not answers:
                tries += 1
                answers = self._together(op, 1)
            sends = max(0, sends - tries)
        first = answers[0]
        self._done(op, first)
        if sends and style == "at the same moment":
            answers += self._together(op, sends)
            self._tell("sent again at the same moment", sends)
        else:
            for _ in range(sends):
                answers += self._together(op, 1)
            self._tell("sent again", sends)
        for answer in answers[1:]:
            self.campaign.compare(op, first, answer)
        if self.random.random() < REUSED_SHARE:
            self._reuse(op)

    def _together(self, op: ops.AnyOp, sends: int) -> list[str]:
        """Send a request from so many threads; return the answers that came."""
        self._tell("sends", sends)
        if sends == 1:
            found = [self._try(op)]
        else:
            found = list(self.campaign.pool.map(self._try, [op] * sends))
        if _EndedError in found:
            raise _EndedError
        return [answer for answer in found if isinstance(answer, str)]

    def _try(self, op: ops.AnyOp) -> str | type[_EndedError] | None:
        try:
            return op.send(self._runtime)
        except ClosedError:
            return _EndedError
        except UnavailableError:
            return _EndedError if self._stop.is_set() else None

    def _done(self, op: ops.AnyOp, answer: str) -> None:
        self.open.remove(op)
        self.campaign.answered(self.number, op, answer)
        decoded = msgspec.json.decode(answer)
        match op:
            case ops.Remember():
                self._alive.append((decoded["memory_id"], op.text))
            case ops.Update():
                self._alive.remove((op.memory_id, op.old))
                self._alive.append((decoded["id"], op.text))
            case ops.Delete():
                self._alive.remove((op.memory_id, op.old))
            case _:
                pass

    def _reuse(self, op: ops.AnyOp) -> None:
        """Use the id of a request for another one, which must be refused."""
        other = ops.Remember(
            id=op.id, thread=op.thread, world=op.world, user=op.user, text="不同", name="Nobody"
        )
        while True:
            try:
                answer = other.send(self._runtime)
            except RequestReusedError:
                self._tell("ids used twice", 1)
                return
            except ClosedError:
                raise _EndedError from None
            except UnavailableError:
                if self._stop.is_set():
                    raise _EndedError from None
            else:
                self.campaign.wrong(f"the id of {op} was taken for {other}: {answer}")
                return

    # -- several at once -----------------------------------------------------------------

    def _pipeline(self) -> None:
        """Send all open requests without waiting in between, until all are answered."""
        wanted = self.random.randint(1, MOST_SENDS)
        first: dict[str, str] = {}
        sent, todo = 0, list(self.open)
        while self.open or sent < wanted:
            sent += 1
            for op, answer in zip(todo, self._send_all(todo), strict=True):
                if answer is None:
                    continue
                if op.id in first:
                    self.campaign.compare(op, first[op.id], answer)
                else:
                    first[op.id] = answer
                    self._done(op, answer)

    def _send_all(self, todo: Sequence[ops.AnyOp]) -> list[str | None]:
        self._tell("sends", len(todo))
        if not all(isinstance(op, ops.Add) for op in todo):  # what was open when it was closed
            return [next(iter(self._together(op, 1)), None) for op in todo]
        answers: Sequence[Any]
        try:
            commands = [self._command(op) for op in todo]
            self._runtime._require_open()
            answers = self._runtime._router.call_many(commands)
        except ClosedError:
            raise _EndedError from None
        except UnavailableError:
            answers = [None for _ in todo]
        found: list[str | None] = []
        for answer in answers:
            if isinstance(answer, ClosedError) or (
                isinstance(answer, UnavailableError) and self._stop.is_set()
            ):
                raise _EndedError
            if isinstance(answer, Exception) and not isinstance(answer, UnavailableError):
                raise answer
            came = answer is not None and not isinstance(answer, Exception)
            found.append(msgspec.json.encode(answer.ids).decode() if came else None)
        return found

    def _command(self, op: ops.AnyOp) -> c.AddTurns:
        assert isinstance(op, ops.Add)
        drafts = door.messages(op.texts, session=op.session, at=None, max_bytes=10_000)
        user = self._runtime.user(op.user, op.world)
        return user.turns_command(drafts, op.id, infer=False)

    # -- what is asked -------------------------------------------------------------------

    def _shared(self) -> dict[str, Any]:
        self._count += 1
        return {
            "id": f"{self.number % 2}-{self._count}",  # other users have the same ones
            "thread": self.number,
            "world": self._world,
            "user": self.user,
        }

    def _turns(self) -> ops.Add:
        shared = self._shared()
        texts = tuple(
            f"{self.name}, {self._count}.{i}: 铁匠 sold a lantern."
            for i in range(self.random.randint(1, 2))
        )
        return ops.Add(**shared, texts=texts, session=SESSION, infer=False)

    def _next(self) -> ops.AnyOp:
        kind = self.random.choices(KINDS, WEIGHTS)[0]
        if kind == "add":
            return self._turns()
        shared = self._shared()
        name = f"{self.number}-{self._count}"
        text = f"Memory {name} 关于港口 of a red lantern."
        if kind in {"update", "delete"} and self._alive:
            memory_id, old = self.random.choice(self._alive)
            if kind == "update":
                return ops.Update(**shared, memory_id=memory_id, old=old, text=text)
            return ops.Delete(**shared, memory_id=memory_id, old=old)
        if kind == "relate":
            return ops.Relate(**shared, head=f"Head{name}", predicate="knows", tail=f"Tail{name}")
        return ops.Remember(**shared, text=text, name=f"Name{name}")

    def _tell(self, what: str, count: int) -> None:
        self.campaign.count(what, count)


KINDS = ("add", "remember", "update", "delete", "relate")
WEIGHTS = (70, 10, 8, 4, 8)
