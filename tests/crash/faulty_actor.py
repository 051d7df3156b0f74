"""An actor that dies, or raises, where a file beside its data folder tells it to.

A module of its own: Ray sends a class of the main module as a whole, and this one cannot be.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from crash import scenes
from crash.point_errors import PlantedError

from reverie.actors import ray_backend
from reverie.memory_graph import faults
from reverie.memory_graph.store import sqlite

ARMED = "armed"  # the file, of lines "form point count"; the first one counts


class FaultyActor(ray_backend.ShardActor):
    """A shard's actor that does what the file says."""

    def __init__(self, folder: str, numbers: list[int], *args: Any) -> None:
        self._armed = Path(folder).with_name(ARMED)
        self._reached: Counter[str] = Counter()
        scenes.silence()
        sqlite.CHECKPOINT_PAGES = scenes.LOG_PAGES
        faults.install(self._reach)
        super().__init__(folder, numbers, *args)

    def _reach(self, point: faults.Point) -> None:
        lines = self._armed.read_text().splitlines() if self._armed.exists() else []
        if not lines:
            return
        form, name, count = lines[0].split()
        if name != point:
            return
        self._reached[lines[0]] += 1
        if self._reached[lines[0]] < int(count):
            return
        mine = self._armed.with_name(f"{ARMED}-{os.getpid()}")
        with suppress(FileNotFoundError):  # another actor was first
            self._armed.rename(mine)
            if rest := "\n".join(lines[1:]):
                mine.with_suffix(".rest").write_text(rest)
                mine.with_suffix(".rest").rename(self._armed)
            if form == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            msg = "planted"
            raise PlantedError(msg)
