"""What the parts of one server share."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from reverie.http.admission import Admission
from reverie.http.faults import Refusal
from reverie.http.keys import Door, KeyFile
from reverie.http.limits import Held
from reverie.http.metrics import Metrics
from reverie.http.pool import Pool
from reverie.http.settings import HttpSettings

if TYPE_CHECKING:
    from reverie.runtime import Runtime

MAX_SLOW = 64  # calls that may take minutes, waiting or under way
NOTE = "reverie.note"  # in the scope of a request
KEY = "reverie.key"


class State:
    """One server. Used in the thread of the event loop, but for `is_draining`."""

    def __init__(self, runtime: Runtime, settings: HttpSettings) -> None:
        """Raises ConfigError when the file of keys is damaged or open to others."""
        self.runtime = runtime
        self.settings = settings
        self.admission = Admission(Door(KeyFile(runtime.path)), settings)
        self.held = Held(settings.max_held_bytes)
        self.metrics = Metrics(runtime, access_log=settings.access_log)
        self.quick = Pool("quick", settings.threads, settings.max_calls)
        self.slow = Pool("slow", settings.slow_threads, MAX_SLOW)
        self.backing_up = threading.Lock()  # one at a time: each holds up erasures and save slots
        self.in_flight = 0
        self.is_draining = False

    def drain(self) -> None:
        """Take no more work; what is under way is finished. May be called by a signal handler."""
        self.is_draining = True

    async def drained(self, within_s: float) -> bool:
        """Wait until nothing is under way; returns whether that is so after `within_s` seconds."""
        deadline = time.monotonic() + within_s
        while self.in_flight or self.quick.running or self.slow.running:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    def require_open(self) -> None:
        """Refuse work while the server drains; raises Refusal."""
        if self.is_draining:
            msg = "the server is closing; repeat the request when it is back"
            raise Refusal("Draining", msg, headers={"Retry-After": "1", "Connection": "close"})

    def close(self) -> None:
        """Give the threads up."""
        self.quick.close()
        self.slow.close()
