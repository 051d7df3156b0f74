"""Raw parts of extractions and searches, kept on disk for whoever debugs them.

One JSON line per event in `traces/<hash of the user>.jsonl`; names of files never hold ids, and
erasing a user removes its file.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import structlog

from reverie.memory_graph.ids import Key, key_hash

log = structlog.get_logger(__name__)


class Tracer:
    """Appends events to the trace file of their user. Safe to call from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def __call__(self, key: Key, event: dict[str, object]) -> None:
        """Append one event; `event` holds structs and plain values."""
        line = msgspec.json.encode({"world": key.world, "user_id": key.user_id, **event})
        path = self._folder / f"{key_hash(key).hex()}.jsonl"
        try:
            with self._lock, path.open("ab") as file:
                file.write(line + b"\n")
        except OSError as exc:  # a trace is a help, never a reason to fail
            log.warning("trace not written", path=path.name, error=str(exc))
