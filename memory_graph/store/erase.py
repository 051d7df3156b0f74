"""The proof of an erasure: a search of every file for bytes that must be gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reverie.memory_graph.errors import InvalidValueError, StorageFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

CHUNK_BYTES = 4 * 1024 * 1024
MAX_NEEDLE_BYTES = 1024 * 1024
MIN_FILTERED = 16  # from so many needles on, one pass for all of them is the faster way

_WINDOW = 8  # bytes of a needle's beginning that the filter looks at
_FILTER_BITS = 20
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads the bits (Knuth)


def search_files(folder: Path, needles: Sequence[bytes]) -> dict[bytes, list[tuple[Path, int]]]:
    """Search all files below `folder`, logs and lock files too, for byte strings.

    Links are not followed. Memory is bounded by `CHUNK_BYTES` plus the longest needle. Meant for
    text in its stored form, which is UTF-8; a text that a file keeps compressed or in pieces is
    not seen.

    Args:
        folder: where to search; a missing one has no files.
        needles: 1 byte to `MAX_NEEDLE_BYTES` each; a repeated one counts once.

    Returns:
        For each needle the files that hold it and how often, in the order of their names. A
        needle that is nowhere has an empty list.

    Raises:
        InvalidValueError: an empty or overlong needle.
        StorageFailedError: a file cannot be read, so nothing is proven.
    """
    unique = list(dict.fromkeys(needles))
    if any(not 1 <= len(needle) <= MAX_NEEDLE_BYTES for needle in unique):
        msg = f"what to search for must have 1 to {MAX_NEEDLE_BYTES:,} bytes"
        raise InvalidValueError(msg)
    found: dict[bytes, list[tuple[Path, int]]] = {needle: [] for needle in unique}
    search = _Searcher(unique)
    for path in _files(Path(folder)):
        try:
            counts = search.count(path)
        except FileNotFoundError:  # a log that was just removed
            continue
        except OSError as exc:
            msg = f"{path} cannot be searched: {exc}"
            raise StorageFailedError(msg, path=str(path)) from exc
        for needle, count in counts.items():
            found[needle].append((path, count))
    return found


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path


class _Searcher:
    """Counts many needles in one pass, or few of them one by one."""

    def __init__(self, needles: list[bytes]) -> None:
        filtered = [n for n in needles if len(n) >= _WINDOW]
        if len(filtered) < MIN_FILTERED:
            filtered = []
        self._by_start: dict[bytes, list[bytes]] = {}
        for needle in filtered:
            self._by_start.setdefault(needle[:_WINDOW], []).append(needle)
        self._single = [n for n in needles if n[:_WINDOW] not in self._by_start]
        self._overlap = max(map(len, needles), default=1) - 1
        self._is_start = np.zeros(1 << _FILTER_BITS, dtype=np.bool_)
        if self._by_start:
            starts = np.frombuffer(b"".join(self._by_start), dtype="<u8")
            self._is_start[_slots(starts)] = True

    def count(self, path: Path) -> dict[bytes, int]:
        """Return how often each needle that is in the file occurs, overlapping ones too."""
        counts: dict[bytes, int] = {}
        carry = b""
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                data = carry + chunk
                for needle in self._matches(data, len(carry)):
                    counts[needle] = counts.get(needle, 0) + 1
                carry = data[-self._overlap :] if self._overlap else b""
        return counts

    def _matches(self, data: bytes, old: int) -> Iterator[bytes]:
        """Yield a needle for each match that ends after the first `old` bytes of `data`."""
        for needle in self._single:
            at = data.find(needle, max(0, old - len(needle) + 1))
            while at >= 0:
                yield needle
                at = data.find(needle, at + 1)
        if not self._by_start:
            return
        for shift in range(_WINDOW):
            count = max(0, len(data) - shift) // _WINDOW
            windows = np.frombuffer(data, dtype="<u8", count=count, offset=min(shift, len(data)))
            for place in np.flatnonzero(self._is_start[_slots(windows)]).tolist():
                at = place * _WINDOW + shift
                for needle in self._by_start.get(data[at : at + _WINDOW], ()):
                    if at + len(needle) > old and data.startswith(needle, at):
                        yield needle


def _slots(windows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the place of each 8-byte window (uint64) in the filter, shape as given."""
    return (windows * _MULTIPLIER) >> np.uint64(64 - _FILTER_BITS)
