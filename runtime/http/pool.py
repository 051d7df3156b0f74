"""Threads that carry out calls: few, with a bound on what waits for them.

The runtime blocks (a write until it is synced, an embedding while it is computed), so calls run in
threads. Those that may take minutes have threads of their own, or a few of them would keep the
quick ones waiting. The interpreter lets one thread compute at a time, so more threads than wait for
the disk or a model at once bring nothing; `benchmarks/http_load.py --threads` measures it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from reverie.memory_graph.errors import ClosedError, OverloadedError, WaitTimeoutError

R = TypeVar("R")


class Pool:
    """A pool of threads; used in the thread of the event loop."""

    def __init__(self, name: str, threads: int, most: int) -> None:
        """Begin with no thread; at most `most` calls wait or run."""
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"reverie-http-{name}")
        self._most = most
        self.running = 0

    async def run(self, call: Callable[[], R], timeout_s: float) -> R:
        """Carry out a blocking call.

        Raises:
            OverloadedError: too many wait; it was not begun.
            WaitTimeoutError: it was not done in time, and goes on.
            ClosedError: the pool is closed.
        """
        if self.running >= self._most:
            msg = f"{self.running} calls are under way already; try again later"
            raise OverloadedError(msg, waiting=self.running)
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, call)
        except RuntimeError as exc:
            msg = "the server is closing"
            raise ClosedError(msg) from exc
        self.running += 1
        future.add_done_callback(self._count_down)
        done, _ = await asyncio.wait((future,), timeout=timeout_s)
        if not done:
            future.add_done_callback(_look_away)
            msg = f"not done after {timeout_s:g} seconds; the work goes on"
            raise WaitTimeoutError(msg, timeout_s=timeout_s)
        return future.result()

    def _count_down(self, _future: object) -> None:
        self.running -= 1

    def close(self) -> None:
        """Take no more calls; those that wait are dropped, those that run go on."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _look_away(future: asyncio.Future[R]) -> None:
    """Take the error of a call that nobody waits for any more."""
    if not future.cancelled():
        future.exception()
