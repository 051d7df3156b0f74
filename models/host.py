"""A language model in a process of its own, so that a fault of llama.cpp ends only that one.

Each call is sent to the child and answered by it. A call has no effects, so one whose child died is
made again with a new child. How the child died tells whose fault it was: ended by a fault of its
own (SIGSEGV, SIGABRT, ...) twice over the same call, the call is to blame and fails; killed from
outside, the call is made again until `retry_s` is over, and then the model counts as unavailable,
which is nobody's fault. A call that takes longer than `call_timeout_s` ends with its child.

The child is started with `subprocess`, never by a bare fork, so threads of the program do no harm.
A process that is forked from the program cannot use the host of its parent (ClosedError). The child
ends when the program does, however that ends (see `host_child.py`), when the host is closed or
dropped, and when Python exits.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, NoReturn, Self, TypeVar

import structlog

from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    ModelFailedError,
    ModelTimeoutError,
    ModelUnavailableError,
    OverloadedError,
    ReverieError,
)
from reverie.memory_graph.store import forks
from reverie.models.host_calls import HostCalls, answer_in
from reverie.models.host_wire import Open, Request, receive, send
from reverie.models.language import LanguageSettings
from reverie.models.protocol import LanguageModelInfo

log = structlog.get_logger(__name__)

T = TypeVar("T")

FIRST_PAUSE_S = 0.1  # before a child that died is started again; doubles from death to death
LAST_PAUSE_S = 10.0
MAX_FAULTS = 2  # of the child's own, over one call
_OWN_FAULTS = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}
)
_LAST_WORDS_BYTES = 400


class _DiedError(Exception):
    """The child ended. `status` is as of subprocess: negative for a signal."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status)
        self.status = status
        names = {number.value: number.name for number in signal.Signals}
        by = f"by signal {names.get(-status, -status)}" if status < 0 else f"with status {status}"
        self.reason = f"the model's process ended {by}" + (f": {words}" if words else "")

    @property
    def is_own_fault(self) -> bool:
        return -self.status in _OWN_FAULTS or self.status > 0


class _Child:
    """One process and the socket to it. `end` may be called twice, from any thread."""

    def __init__(self) -> None:
        if not sys.executable:
            msg = "this Python does not know its own program file, so no model host can be started"
            raise ConfigError(msg)
        ours, theirs = socket.socketpair()
        # What llama.cpp says last goes here; in an unnamed file it can fill no pipe.
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by end)
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                [
                    sys.executable,
                    "-P",  # a user's own models.py, where the program was started, is not ours
                    "-c",
                    "from reverie.models.host_child import main; main()",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._words,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except OSError:
            ours.close()
            self._words.close()
            raise
        finally:
            theirs.close()
        self._sock = ours

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Request, timeout_s: float) -> bytes:
        """Return the content of the reply.

        Raises:
            _DiedError: the child ended.
            TimeoutError: no reply within the time; the child may still be at work.
            InvalidValueError: the request is too large or no text; nothing was sent.
        """
        until = time.monotonic() + timeout_s
        self._sock.settimeout(timeout_s)
        try:
            send(self._sock, request)
            self._sock.settimeout(max(0.001, until - time.monotonic()))
            return receive(self._sock)
        except TimeoutError:
            raise
        except (EOFError, OSError) as exc:
            raise self._died() from exc

    def _died(self) -> _DiedError:
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:  # it has only closed its socket
            self._process.kill()
            status = self._process.wait()
        words = b""
        with suppress(OSError, ValueError):
            size = self._words.seek(0, os.SEEK_END)
            self._words.seek(max(0, size - _LAST_WORDS_BYTES))
            words = self._words.read()
        return _DiedError(status, " ".join(words.decode("utf-8", "replace").split()))

    def kill(self) -> None:
        """End the process without waiting; who waits for an answer learns of it."""
        self._process.kill()

    def end(self) -> None:
        """End the process, wait for it, and close everything."""
        self._process.kill()
        self._process.wait()
        self._sock.close()
        self._words.close()

    def leave_to_parent(self) -> None:
        """Give up, in a forked process, what belongs to its parent."""
        self._sock.close()
        self._words.close()
        self._process.returncode = 0  # it is no child of this process: never to be waited for


class ProcessLanguageModel(HostCalls):
    """A `HostedModel` whose work is done by a child process. Safe to call from several threads."""

    def __init__(self, settings: LanguageSettings) -> None:
        """Start the host and wait until it has the model.

        Raises:
            ModelMissingError, ModelDamagedError, ConfigError: it cannot be opened.
            ModelUnavailableError: the process does not start, or not in time.
            ModelFailedError: it ended while it loaded the model.
        """
        self._settings = settings
        self._lock = threading.Lock()  # held for a whole call
        self._waiting = 0
        self._counting = threading.Lock()
        self._closed = False
        self._refusal = "the language model was closed"
        self._child: _Child | None = None
        self._pause_s = 0.0
        self._start_at = 0.0  # not before
        self.restarts = 0
        self._holder: list[_Child] = []  # what is to be ended; shared with the finalizer
        self._finalizer = weakref.finalize(self, _end_all, self._holder)
        forks.guard(self)
        try:
            self._info = self._start()
        except _DiedError as exc:
            raise ModelFailedError(exc.reason) from None
        except TimeoutError:
            msg = f"the model host was not ready within {settings.start_timeout_s:g} s"
            raise ModelUnavailableError(msg) from None
        except OSError as exc:
            msg = f"the model host cannot be started: {exc}"
            raise ModelUnavailableError(msg) from exc

    # -- what can be asked -------------------------------------------------------------

    @property
    def info(self) -> LanguageModelInfo:
        """Identity and bounds."""
        return self._info

    @property
    def pid(self) -> int | None:
        """The process id of the host; None while there is none."""
        child = self._child
        return None if child is None else child.pid

    def clear(self) -> None:
        """Forget what is kept of earlier prompts. Raises as `complete`."""
        if self._child is not None:  # a new one knows nothing
            super().clear()

    def close(self) -> None:
        """End the host; calls under way raise ClosedError."""
        self._closed = True
        for child in list(self._holder):
            child.kill()
        with self._lock:
            self._child = None
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def leave_to_parent(self) -> None:
        """Refuse to work in a forked process; see `forks.py`."""
        self._finalizer.detach()
        self._closed = True
        self._refusal = "the language model belongs to the process that this one was forked from"
        self._lock = threading.Lock()  # a thread that is not here may hold it
        self._counting = threading.Lock()
        for child in self._holder:
            child.leave_to_parent()
        self._holder.clear()
        self._child = None

    # -- one call ----------------------------------------------------------------------

    def _call(self, request: Request, kind: type[T]) -> T:
        with self._turn():
            return self._insist(request, kind)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for the model, among a bounded number of others."""
        self._require_open()
        with self._counting:
            if self._waiting >= self._settings.max_waiting:
                msg = f"{self._waiting} calls wait for the language model"
                raise OverloadedError(msg)
            self._waiting += 1
        try:
            with self._lock:
                yield
        finally:
            with self._counting:
                self._waiting -= 1

    def _insist(self, request: Request, kind: type[T]) -> T:
        until = time.monotonic() + self._settings.retry_s
        faults = 0
        while True:
            self._require_open()
            child = self._ready_child(until)
            try:
                found = answer_in(child.ask(request, self._settings.call_timeout_s), kind)
            except TimeoutError:
                self._drop(child, "it took too long over a call")
                timeout_s = self._settings.call_timeout_s
                msg = f"the language model took longer than {timeout_s:g} s over one call"
                raise ModelTimeoutError(msg, timeout_s=timeout_s) from None
            except _DiedError as exc:
                self._require_open()  # it was killed by close
                self._drop(child, exc.reason)
                faults += exc.is_own_fault
                if faults >= MAX_FAULTS:
                    msg = f"{exc.reason} ({faults} times over this call)"
                    raise ModelFailedError(msg) from None
            except ReverieError:
                self._pause_s = 0.0
                raise
            except BaseException:
                self._drop(child, "a call was interrupted")  # its answer must not meet the next
                raise
            else:
                self._pause_s = 0.0
                return found

    def _ready_child(self, until: float) -> _Child:
        """Return the child, started if need be, waiting as long as `until`.

        Raises:
            ModelUnavailableError: it does not start until then.
        """
        while self._child is None:
            wait_s = self._start_at - time.monotonic()
            if wait_s > 0:
                if time.monotonic() + wait_s > until:
                    self._unavailable("it was ended or did not start, again and again")
                time.sleep(wait_s)
                self._require_open()
            try:
                self._start()
                self.restarts += 1
            except (_DiedError, TimeoutError, OSError, ReverieError) as exc:
                # Also a model that is missing or damaged now: it was not when it was opened first,
                # and no turn is to blame for it.
                if self._closed:
                    self._require_open()
                self._pause()
                reason = getattr(exc, "reason", None) or str(exc) or "not ready in time"
                log.warning("model host does not start", reason=reason)
                if self._start_at > until:
                    self._unavailable(reason)
        return self._child

    def _unavailable(self, reason: str) -> NoReturn:
        msg = f"no model host within {self._settings.retry_s:g} s: {reason}"
        raise ModelUnavailableError(msg)

    def _start(self) -> LanguageModelInfo:
        """Start a child and have it load the model.

        Raises:
            _DiedError, TimeoutError, OSError: it did not get that far.
            ReverieError: what the opening of the model raised.
        """
        child = _Child()
        self._holder.append(child)
        try:
            self._require_open()
            data = child.ask(Open(self._settings), self._settings.start_timeout_s)
            info = answer_in(data, LanguageModelInfo)
        except BaseException:
            self._end(child)
            raise
        self._child = child
        return info

    def _drop(self, child: _Child, reason: str) -> None:
        """Give a child up; the next one is started by the next call, after a pause."""
        log.warning("model host ended", pid=child.pid, reason=reason)
        self._child = None
        self._end(child)
        self._pause()

    def _end(self, child: _Child) -> None:
        child.end()
        self._holder.remove(child)

    def _pause(self) -> None:
        self._pause_s = min(LAST_PAUSE_S, max(FIRST_PAUSE_S, 2 * self._pause_s))
        self._start_at = time.monotonic() + self._pause_s

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError(self._refusal)


def _end_all(children: list[_Child]) -> None:
    while children:
        children.pop().end()
