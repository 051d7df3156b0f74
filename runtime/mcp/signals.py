"""SIGTERM in a program that runs an event loop; see reverie.stopping for others.

There, an exception from a handler could hit any callback of the loop, which swallows it. The loop
is told instead, ends what it serves, and the caller closes the runtime.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import structlog

from reverie.stopping import TERMINATED

log = structlog.get_logger(__name__)


@contextmanager
def until_sigterm(drain_s: float, stop: Callable[[], object]) -> Iterator[asyncio.Event]:
    """Within the block, call `stop` in the loop when SIGTERM comes, once; yields what is set then.

    To be entered in the loop of the main thread. If the process is still there `drain_s` seconds
    after the signal, it ends where it stands: what was acknowledged is on disk.
    """
    loop, came = asyncio.get_running_loop(), asyncio.Event()

    def handle() -> None:
        if came.is_set():
            return
        came.set()
        log.warning("SIGTERM: closing", within_s=drain_s)
        timer = threading.Timer(drain_s, partial(os._exit, TERMINATED))
        timer.daemon = True
        timer.start()
        stop()

    loop.add_signal_handler(signal.SIGTERM, handle)
    try:
        yield came
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        if came.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one changes nothing
