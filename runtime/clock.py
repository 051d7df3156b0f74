"""Time as reverie sees it: a number of seconds on a clock that the caller may own.

Only the runtime reads a clock; shards, graph and ranking are handed times. A simulation passes a
`SimulatedClock` and moves it itself, so runs are reproducible and no wall time leaks in.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
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
    """A clock that stands still until it is moved, or that runs at a rate until it is paused.
    Safe to share between threads.

    A run is reproducible if the clock only stands and is moved: at a rate, it depends on how fast
    the machine is, though never on the date.
    """

    def __init__(self, start: float = 0.0) -> None:
        """Begin at `start` seconds, standing; raises InvalidTimeError when it is not finite."""
        self._now = _finite(start)
        self._rate = 0.0
        self._since = 0.0  # on the machine's monotonic clock, when `_now` was so
        self._lock = threading.Lock()

    @property
    def rate(self) -> float:
        """Seconds of this clock in one second of the machine; 0 while it stands."""
        return self._rate

    def now(self) -> float:
        """Return the time in seconds."""
        with self._lock:
            return self._read()

    def advance(self, seconds: float) -> float:
        """Move forward and return the new time; raises InvalidTimeError for a step back."""
        if not _finite(seconds) >= 0:
            msg = f"cannot advance by {seconds} s; use set() to go back (after a rewind)"
            raise InvalidTimeError(msg)
        with self._lock:
            return self._move(_finite(self._read() + seconds))

    def set(self, at: float) -> None:
        """Jump to a time, forward or back."""
        with self._lock:
            self._move(_finite(at))

    def run(self, rate: float = 1.0) -> None:
        """Let it run from where it stands, `rate` of its seconds in one of the machine's.

        Raises:
            InvalidTimeError: a rate that is negative or not finite. 0 is a pause.
        """
        if not _finite(rate) >= 0:
            msg = f"a clock cannot run at a rate of {rate}; 0 pauses it"
            raise InvalidTimeError(msg)
        with self._lock:
            self._move(self._read())
            self._rate = float(rate)

    def pause(self) -> float:
        """Let it stand where it is and return that time; a second call does nothing."""
        with self._lock:
            self._move(self._read())
            self._rate = 0.0
            return self._now

    def _read(self) -> float:
        if not self._rate:
            return self._now
        return self._now + self._rate * (time.monotonic() - self._since)

    def _move(self, to: float) -> float:
        self._now, self._since = to, time.monotonic()
        return to


def _finite(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):  # of an int that is too large for a float
            if math.isfinite(seconds := float(value)):
                return seconds
    shown = repr(value) if isinstance(value, float) else f"a {type(value).__name__}"
    msg = f"a time must be a finite number of seconds, not {shown}"
    raise InvalidTimeError(msg)
