"""The processes that answer graph queries: one for the graph of each user that was asked lately.

A process holds the graph as it was at one version. When that has changed it is ended and a new one
is started, which costs well under a second for some thousand nodes. Those that were used least
recently go first.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from reverie.cypher.worker import receive, send
from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InternalError,
    OverloadedError,
    QueryError,
    QueryLimitError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.projection import EDGES, ENDS, NODES, GraphPage

MAX_ENGINES = 4
MAX_ENGINE_BYTES = 512 << 20  # resident, of all that wait for a question
FRESH_S = 60.0  # how old, on the clock of the world, decayed values may be
LOAD_S = 120.0
LATE_S = 2.0  # after the time limit; the process ends itself before
_WORKER = Path(__file__).with_name("worker.py")


class Look(NamedTuple):
    """Whose graph, and how much of it."""

    key: Key
    archived: bool
    retired: bool


class Question(NamedTuple):
    """A checked query, as the engine gets it."""

    text: str
    parameters: dict[str, Any]
    limit: int
    timeout_s: float


Pages = Callable[[tuple[int, int] | None], Iterator[GraphPage]]  # of what is not known already


class _Process:
    """One process with one version of one graph. `end` may be called twice, from any thread."""

    def __init__(self, pages: Iterator[GraphPage], now: float) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-P", str(_WORKER), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # it may repeat what was asked
                pass_fds=[theirs.fileno()],
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except OSError as exc:
            ours.close()
            msg = f"no process for graph queries can be started: {exc}"
            raise OverloadedError(msg) from exc
        finally:
            theirs.close()
        self._sock = ours
        self.version, self.made_at, self.until = (0, 0), now, now + FRESH_S
        try:
            self._load(pages)
        except BaseException:
            self.end()
            raise

    def _load(self, pages: Iterator[GraphPage]) -> None:
        self._sock.settimeout(LOAD_S)
        try:
            ends = {kind: (tails, heads) for kind, (tails, heads) in ENDS.items()}
            send(self._sock, {"nodes": NODES, "edges": EDGES, "ends": ends})
            for page in pages:
                self.version = (page.seq, page.generation)
                self.until = min(self.until, self.until if page.until is None else page.until)
                send(self._sock, {"nodes": page.nodes, "edges": page.edges})
            send(self._sock, None)
            receive(self._sock)
        except (EOFError, OSError) as exc:
            status = self.end()
            if status == -signal.SIGKILL or isinstance(exc, TimeoutError):
                msg = "this graph is too large for queries"
                raise QueryLimitError(msg) from exc
            msg = f"the engine for graph queries could not load a graph (status {status})"
            raise InternalError(msg) from exc

    def is_of(self, now: float) -> bool:
        """Return whether what it holds still stands at a time, if nothing was written since."""
        return self.made_at <= now < self.until

    def ask(self, question: Question) -> dict[str, Any]:
        """Return the answer of the engine.

        Raises:
            QueryLimitError: it took too long, or the process ended. Do not ask this one again.
        """
        self._sock.settimeout(question.timeout_s + LATE_S)
        try:
            send(self._sock, question._asdict())
            answer: dict[str, Any] = receive(self._sock)
        except (EOFError, OSError) as exc:
            status = self.end()
            if isinstance(exc, TimeoutError) or status == -signal.SIGALRM:
                raise _too_long(question) from exc
            msg = "the query needs more memory than it may have, or is too much for the engine"
            raise QueryLimitError(msg) from exc
        return answer

    @property
    def size_bytes(self) -> int:
        """Resident bytes."""
        with suppress(OSError, IndexError, ValueError):
            pages = Path(f"/proc/{self._process.pid}/statm").read_text("ascii").split()[1]
            return int(pages) * resource.getpagesize()
        return 0

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def end(self) -> int:
        """End the process, and return its status: negative for a signal."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        with suppress(subprocess.TimeoutExpired):  # one that has failed tells how
            self._process.wait(0.1)
        self._process.kill()
        status = self._process.wait()
        self._sock.close()
        return status


class _Place:
    """Where the process of one look is, or will be; `lock` is held while it is used."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: _Process | None = None
        self.is_gone = False

    def clear(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None


class Engines:
    """The processes of one runtime. Safe to share between threads; `close` ends them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[Look, _Place] = OrderedDict()
        self._is_closed = False

    def ask(self, look: Look, question: Question, pages: Pages, now: float) -> dict[str, Any]:
        """Return the columns, rows and "truncated" that answer a question.

        Args:
            look: whose graph.
            question: the checked query.
            pages: gives the pages of the graph; one that says it is known when its version is the
                one that it is given.
            now: time of the reader in seconds.

        Raises:
            QueryError: the engine refuses the query.
            QueryLimitError: it took more time or memory than it may.
            OverloadedError: too many queries are under way, or another one of this user's.
        """
        with self._use(look, question.timeout_s) as place:
            held = place.process
            if held is not None and (held.has_ended or not held.is_of(now)):
                place.clear()
                held = None
            found = pages(None if held is None else held.version)
            first = next(found)
            if held is None or not first.is_known:
                place.clear()
                held = place.process = _Process(_again(first, found), now)
            try:
                answer = held.ask(question)
            except QueryLimitError:
                place.clear()
                raise
        self._make_room(look)
        match answer.get("error"):
            case None:
                return answer
            case "time":
                raise _too_long(question)
            case "memory":
                msg = "the query needs more memory than it may have"
                raise QueryLimitError(msg)
            case _:
                raise QueryError(str(answer["message"]))

    @contextmanager
    def _use(self, look: Look, timeout_s: float) -> Iterator[_Place]:
        until = time.monotonic() + timeout_s
        while True:
            place = self._place(look)
            if not place.lock.acquire(timeout=max(0.0, until - time.monotonic())):
                msg = "other queries of this user are under way; try again later"
                raise OverloadedError(msg)
            try:
                if not place.is_gone:
                    yield place
                    return
            finally:
                place.lock.release()

    def _place(self, look: Look) -> _Place:
        with self._lock:
            if self._is_closed:
                msg = "the runtime is closed"
                raise ClosedError(msg)
            place = self._places.get(look)
            if place is None:
                if len(self._places) >= MAX_ENGINES and not self._remove_one():
                    msg = f"{MAX_ENGINES} graph queries are under way already; try again later"
                    raise OverloadedError(msg)
                place = self._places[look] = _Place()
            self._places.move_to_end(look)
            return place

    def _remove_one(self, but: Look | None = None) -> bool:
        """Remove the process that was used least recently and is not in use; False if none is."""
        for look, place in self._places.items():
            if look != but and place.lock.acquire(blocking=False):
                try:
                    place.is_gone = True
                    place.clear()
                finally:
                    place.lock.release()
                del self._places[look]
                return True
        return False

    def _make_room(self, but: Look) -> None:
        with self._lock:
            while self._resident() > MAX_ENGINE_BYTES:
                if not self._remove_one(but):
                    return

    def _resident(self) -> int:
        held = [place.process for place in self._places.values()]
        return sum(process.size_bytes for process in held if process is not None)

    def drop(self, key: Key) -> None:
        """End what holds the graph of a user, also in the middle of a query; nothing is left."""
        with self._lock:
            gone = [(look, p) for look, p in self._places.items() if look.key == key]
            for look, _ in gone:
                del self._places[look]
        self._end([place for _, place in gone])

    def close(self) -> None:
        """End all processes; queries under way fail."""
        with self._lock:
            self._is_closed = True
            gone = list(self._places.values())
            self._places.clear()
        self._end(gone)

    @staticmethod
    def _end(places: list[_Place]) -> None:
        for place in places:
            place.is_gone = True
            process = place.process
            if process is not None:
                process.end()  # or one would wait for its query
            with place.lock:
                place.clear()


def _again(first: GraphPage, rest: Iterator[GraphPage]) -> Iterator[GraphPage]:
    yield first
    yield from rest


def _too_long(question: Question) -> QueryLimitError:
    msg = f"the query took longer than {question.timeout_s:g} s and was ended"
    return QueryLimitError(msg, timeout_s=question.timeout_s)


def require_engine() -> None:
    """Raise ConfigError when the extra is not installed."""
    from importlib.util import find_spec

    if find_spec("ladybug") is None:
        msg = "graph queries need the extra 'cypher': pip install 'reverie[cypher]'"
        raise ConfigError(msg, extra="cypher")
