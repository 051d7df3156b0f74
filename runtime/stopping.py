"""SIGTERM: the orderly end of a program, within a stated time.

A library installs no signal handlers unasked; a program asks for it:

    with reverie.open("memory") as rt, reverie.closing_on_sigterm(rt):
        ...

SIGTERM then leaves the block as Ctrl-C would, the runtime is closed, and the program exits with
status 143 (128 + SIGTERM, what shells report). A second SIGTERM changes nothing. If all of that is
not done in time, the process ends where it stands: what was acknowledged is on disk anyway.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import structlog

from reverie.memory_graph.errors import InvalidValueError

if TYPE_CHECKING:
    from reverie.runtime import Runtime

TERMINATED = 128 + signal.SIGTERM  # exit status

log = structlog.get_logger(__name__)


class _Terminated(BaseException):
    """SIGTERM came. Not a SystemExit: a model that calls `sys.exit` is a failed extraction."""


@contextmanager
def closing_on_sigterm(runtime: Runtime, within_s: float | None = None) -> Iterator[None]:
    """Within the block, SIGTERM ends the program: the runtime is closed, then it exits with 143.

    To be entered in the main thread; the handler that was there before is put back afterwards. What
    other threads have under way is finished, further calls get `ClosedError`, and an extraction
    that takes too long is given up: its turns wait on disk for the next opening.

    Args:
        runtime: what to close.
        within_s: from the signal to the end of the process; half of it is for the extraction under
            way. `Config.drain_s` by default.

    Raises:
        InvalidValueError: not the main thread, where alone Python can handle signals.
        SystemExit: SIGTERM came.
    """
    if threading.current_thread() is not threading.main_thread():
        msg = "closing_on_sigterm must be entered in the main thread; signals are handled there"
        raise InvalidValueError(msg)
    limit_s = runtime.config.drain_s if within_s is None else within_s
    try:
        with _Deadline(limit_s), _raising_on_sigterm():
            try:
                yield
            except _Terminated:
                log.warning("SIGTERM: closing", within_s=limit_s)
                runtime.close(within_s=limit_s / 2)
                raise
    except _Terminated:
        raise SystemExit(TERMINATED) from None


@contextmanager
def _raising_on_sigterm() -> Iterator[None]:
    came = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if not came:  # a second one must not interrupt the closing
            came = True
            raise _Terminated

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        # None: it was not installed from Python, and cannot be put back from there.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


class _Deadline:
    """Ends the process when the block is not left in time after SIGTERM.

    Python runs a handler between two bytecodes of the main thread, so a long call into a library
    delays it; the byte that the interpreter writes to a pipe at the signal itself is not delayed,
    and a thread of our own waits for it.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._left = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        if self._before != -1:  # an event loop's, which must hear of signals: no deadline then
            signal.set_wakeup_fd(self._before)
            return
        self._thread = threading.Thread(target=self._watch, name="reverie-sigterm", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._thread is not None:
            signal.set_wakeup_fd(self._before)
            with suppress(BlockingIOError):  # full of signals, so the thread is awake
                os.write(self._write, b"\0")
            self._thread.join()
        os.close(self._read)
        os.close(self._write)

    def _watch(self) -> None:
        while not self._left.is_set():
            if signal.SIGTERM in os.read(self._read, 64) and not self._left.wait(self._limit_s):
                log.error("not closed in time, ending the process", within_s=self._limit_s)
                os._exit(TERMINATED)
