"""Time as reverie sees it: a number of seconds on a clock that the caller may own.

Only the runtime reads a clock; shards, graph and ranking are handed times. A simulation passes a
`SimulatedClock` and moves it itself, so runs are reproducible and no wall time leaks in.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Protocol

from reverie.memory_graph.errors import InvalidTimeError


class Clock(Protocol):
    """Anything with `now()`: finite seconds, in whatever epoch the world uses."""

    def now(self) -> float:
        """Return the time in seconds."""
        ...


class WallClock:
    """Seconds since 1970, UTC."""

    def now(self) -> float:
        """Return the time in seconds."""
        return time.time()


class SimulatedClock:
    """A clock that stands still until it is moved. Safe to share between threads."""

    def __init__(self, start: float = 0.0) -> None:
        """Begin at `start` seconds; raises InvalidTimeError when it is not finite."""
        self._now = _finite(start)
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the time in seconds."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Move forward and return the new time; raises InvalidTimeError for a step back."""
        if not _finite(seconds) >= 0:
            msg = f"cannot advance by {seconds} s; use set() to go back (after a rewind)"
            raise InvalidTimeError(msg)
        with self._lock:
            self._now += seconds
            return self._now

    def set(self, at: float) -> None:
        """Jump to a time, forward or back."""
        with self._lock:
            self._now = _finite(at)


def _finite(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        msg = f"a time must be a finite number of seconds, not {value!r}"
        raise InvalidTimeError(msg)
    return float(value)
