"""What model calls have cost, kept with the data folder from one run to the next.

The counters live in memory (models/usage.py) and are written as one small file when the runtime
closes and when a user is forgotten. A process that is killed loses what it counted since it began;
the calls themselves leave nothing else that could be lost.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec
import structlog

from reverie.models.usage import Meter, UsageRow

log = structlog.get_logger(__name__)

FILE = "usage.json"


class KeptUsage:
    """The counters of a data folder. Whoever makes one holds the folder's lock."""

    def __init__(self, meter: Meter, folder: Path) -> None:
        """Add to `meter` what earlier runs have counted; a damaged file counts as nothing."""
        self._meter = meter
        self._path = folder / FILE
        with contextlib.suppress(FileNotFoundError):
            try:
                meter.restore(msgspec.json.decode(self._path.read_bytes(), type=list[UsageRow]))
            except (OSError, msgspec.MsgspecError) as exc:
                if isinstance(exc, FileNotFoundError):
                    raise
                log.warning("the usage of earlier runs cannot be read", error=str(exc))
        self._saved = meter.rows()

    def save(self) -> None:
        """Write what has changed. What cannot be written is logged: it is no data of anybody's."""
        rows = self._meter.rows()
        if rows == self._saved:
            return
        try:
            self._write(rows)
        except OSError as exc:
            log.warning("the usage of the language model cannot be kept", error=str(exc))
        else:
            self._saved = rows

    def _write(self, rows: list[UsageRow]) -> None:
        handle, name = tempfile.mkstemp(prefix=".usage-", dir=self._path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(rows))
                file.flush()
                os.fsync(file.fileno())
            self._blank()
            Path(name).replace(self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise

    def _blank(self) -> None:
        """Overwrite the file that is replaced: its blocks would keep the names of who is gone."""
        with contextlib.suppress(FileNotFoundError), self._path.open("r+b") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(0)
            file.write(b" " * size_bytes)
            file.flush()
            os.fsync(file.fileno())


__all__ = ["FILE", "KeptUsage"]
