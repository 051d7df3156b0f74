"""The way from many threads to one shard: batches without a thread in between.

A caller puts its commands into the lane. If nobody is talking to the shard, it becomes the leader
and carries everything that waits, its own commands among it, in batches; the others sleep until
theirs are answered (flat combining, Hendler et al., SPAA 2010). While one batch is being synced
the next one gathers, so concurrent writers share a commit without any of them waiting on a timer,
and a single caller pays for no thread switch. One batch is under way at a time, so each client's
order is kept, also over retries.

Each caller sleeps on a condition of its own: a batch wakes those that it answers and, at the end,
the one that leads next. All of 64 callers would otherwise wake at each batch, most of them for
nothing, and each needs the interpreter to find that out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, RLock
from typing import Any

from reverie.actors.commands import AnyCommand
from reverie.memory_graph import faults
from reverie.memory_graph.errors import ClosedError, InternalError, OverloadedError, ReverieError
from reverie.memory_graph.store import forks

Transport = Callable[[Sequence[AnyCommand]], list[Any]]

MAX_BATCH = 64  # commands in one batch of single calls: one commit
MAX_BULK = 512  # commands in one batch of a bulk call
MAX_WAITING = 4096  # commands that may wait in a lane


def raise_error(answer: Any) -> Any:
    """Raise an answer that is an error; return any other."""
    if isinstance(answer, Exception):
        raise answer
    return answer


class _Ticket:
    """One caller's commands on their way. `answers` is None until they are all there; `called`
    tells a caller that sleeps to look again, and is None for one that never had to."""

    __slots__ = ("answers", "called", "commands")

    def __init__(self, commands: Sequence[AnyCommand]) -> None:
        self.commands = commands
        self.answers: list[Any] | None = None
        self.called: Condition | None = None

    def is_answered(self) -> bool:
        """Whether `answers` is there; another thread may have set it."""
        return self.answers is not None

    def taken(self) -> list[Any]:
        """Return the answers, which are there."""
        return self.answers or []

    def call(self) -> None:
        """Let the caller look again; the lane's lock is held."""
        if self.called is not None:
            self.called.notify()


class Lane:
    """Calls one shard through `transport`, which answers a batch or raises for all of it."""

    def __init__(self, transport: Transport, *, max_waiting: int = MAX_WAITING) -> None:
        self._transport = transport
        self._max_waiting = max_waiting
        self._lock = RLock()
        self._changed = Condition(self._lock)  # for who wants the lane alone, or to close it
        self._queue: deque[_Ticket] = deque()
        self._batch: list[_Ticket] = []  # under way
        self._waiting = 0
        self._leader: object | None = None  # whose thread talks to the shard
        self._closed = False
        self._why_closed = "the runtime is closed"
        forks.guard(self)

    def call(self, commands: Sequence[AnyCommand]) -> list[Any]:
        """Return an answer or a ReverieError for each command, in order. Blocks until then.

        Raises:
            OverloadedError: too many commands wait already. None of these was carried out.
            ClosedError: the lane was closed before they were carried out.
        """
        if len(commands) > MAX_BULK:  # once begun, what is refused is so one by one
            answers = self.call(commands[:MAX_BULK])
            for start in range(MAX_BULK, len(commands), MAX_BULK):
                part = commands[start : start + MAX_BULK]
                try:
                    answers += self.call(part)
                except ReverieError as exc:
                    answers += [exc] * len(part)
            return answers
        ticket = _Ticket(commands)
        try:
            with self._lock:
                self._admit(ticket)
                while self._leader is not None and not ticket.is_answered():
                    if ticket.called is None:
                        ticket.called = Condition(self._lock)
                    ticket.called.wait()
                if ticket.is_answered():
                    return ticket.taken()
                self._leader = ticket
            while not ticket.is_answered():
                self._carry(self._gather())
        finally:  # also after an interrupt, which may come between any two lines
            if self._leader is ticket or not ticket.is_answered():
                with self._lock:
                    if ticket in self._queue:  # nobody would wait for the answers
                        self._queue.remove(ticket)
                        self._waiting -= len(ticket.commands)
                    self._resign(ticket)
        return ticket.taken()

    def _admit(self, ticket: _Ticket) -> None:
        if self._closed:
            raise ClosedError(self._why_closed)
        if self._waiting + len(ticket.commands) > max(self._max_waiting, len(ticket.commands)):
            msg = f"{self._waiting} commands wait for this shard already; try again later"
            raise OverloadedError(msg, waiting=self._waiting)
        self._queue.append(ticket)
        self._waiting += len(ticket.commands)

    def _resign(self, leader: object) -> None:
        """Let the next one lead, if `leader` does or nobody; the lock is held. What was taken and
        not answered, since an interrupt came between, is answered."""
        if self._leader is leader:
            left = [taken for taken in self._batch if not taken.is_answered()]
            self._deliver(left, [ClosedError("interrupted")] * sum(len(t.commands) for t in left))
            self._leader = None
        if self._leader is None:
            if self._queue:
                self._queue[0].call()
            self._changed.notify_all()

    def _gather(self) -> list[_Ticket]:
        with self._lock:
            batch = self._batch
            size = 0
            while self._queue and (not batch or size + len(self._queue[0].commands) <= MAX_BATCH):
                batch.append(self._queue[0])
                size += len(self._queue.popleft().commands)
            self._waiting -= size
            return batch

    def _carry(self, batch: list[_Ticket]) -> None:
        commands = [command for ticket in batch for command in ticket.commands]
        try:
            answers = self._transport(commands)
            faults.reach("reply.after")
        except BaseException as exc:
            error = exc if isinstance(exc, Exception) else ClosedError(f"interrupted: {exc!r}")
            self._deliver(batch, [error] * len(commands))
            if not isinstance(exc, Exception):
                raise
            return
        if len(answers) != len(commands):
            error = InternalError(f"{len(answers)} answers to {len(commands)} commands")
            answers = [error] * len(commands)
        self._deliver(batch, answers)

    def _deliver(self, batch: list[_Ticket], answers: list[Any]) -> None:
        with self._lock:
            start = 0
            for ticket in batch:
                ticket.answers = answers[start : start + len(ticket.commands)]
                start += len(ticket.commands)
                ticket.call()
            self._batch = []

    @contextmanager
    def alone(self) -> Iterator[Transport]:
        """Hold the lane: nobody else talks to the shard within the block; use the transport."""
        me = object()
        try:
            with self._lock:
                while self._leader is not None:
                    self._changed.wait()
                if self._closed:
                    raise ClosedError(self._why_closed)
                self._leader = me
            yield self._transport
        finally:
            with self._lock:
                self._resign(me)

    def leave_to_parent(self) -> None:
        """Refuse every call in a forked process, whatever the parent's threads were doing."""
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._queue.clear()
        self._batch = []
        self._waiting, self._leader = 0, None
        self._closed = True
        self._why_closed = forks.REFUSAL

    def close(self) -> None:
        """Refuse further calls, and wait until those under way are answered."""
        with self._lock:
            self._closed = True
            while self._leader is not None or self._queue:
                self._changed.wait(0.05)
