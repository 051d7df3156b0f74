"""What a power cut may leave of what was recorded: a disk that promises only what POSIX does.

- What a file held at its last sync is there. Of later writes any may be there or not, in any
  order, and each may be torn between its sectors of 512 bytes. A truncation has happened or not.
  Sectors of a file that grew, whose content has not arrived, hold zeros or garbage; the size may
  be any that the file has had.
- A name that was made, removed or changed is certain once its folder was synced; until then it
  may be the old or the new one, whatever happened to other names. A rename is one step. The sync
  of a file says nothing of its name.
"""

from __future__ import annotations

import random
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from crash.recording_vfs import (
    HERE,
    FolderSynced,
    Made,
    Named,
    Record,
    Removed,
    Renamed,
    Synced,
    Truncated,
    Written,
)

SECTOR_BYTES = 512
SHARES = (0.1, 0.5, 0.9)  # of what was not synced arrives

Landing: TypeAlias = Literal["nothing", "all", "subset", "torn"]
Change: TypeAlias = Written | Truncated
Entry: TypeAlias = Named | Made | Removed | Renamed


class State(NamedTuple):
    """What is found after the cut: folders, parents first, and the files with their content."""

    folders: list[str]
    files: dict[str, bytes]

    def materialise(self, root: Path) -> None:
        """Make all of it below an empty folder."""
        for name in self.folders:
            (root / name).mkdir()
        for name, data in self.files.items():
            (root / name).write_bytes(data)


class Content:
    """One file: what is durable, what came after, and what a reader sees now."""

    def __init__(self) -> None:
        self.durable = b""
        self.pending: list[Change] = []
        self.current = bytearray()

    def change(self, change: Change) -> None:
        _change(self.current, change)
        self.pending.append(change)

    def sync(self) -> None:
        self.durable = bytes(self.current)
        self.pending.clear()

    def after_cut(self, landing: Landing, chance: random.Random) -> bytes:
        """Return what may be there."""
        if landing == "nothing" or not self.pending:
            return self.durable
        if landing == "all":
            return bytes(self.current)
        return self._some(chance, is_torn=landing == "torn")

    def _some(self, chance: random.Random, *, is_torn: bool) -> bytes:
        share = chance.choice(SHARES)
        changes = [  # a truncation is one step: all of it, or as if nobody had asked for it
            change
            for change in self.pending
            if isinstance(change, Written) or chance.random() < share
        ]
        newest: dict[int, int] = {}  # sector -> the change as of which it arrived
        length = len(self.durable)
        for number, change in enumerate(changes):
            arrives = isinstance(change, Truncated) or chance.random() < share
            sectors, length = _sectors(change, length)
            can_tear = is_torn and isinstance(change, Written)
            for sector in sectors:
                if (chance.random() < share) if can_tear else arrives:
                    newest[sector] = number
        now, sizes = bytearray(self.durable), [len(self.durable)]
        arrived: dict[int, bytes] = {}
        length = len(self.durable)
        for number, change in enumerate(changes):
            sectors, length = _sectors(change, length)
            _change(now, change)
            sizes = [len(now)] if isinstance(change, Truncated) else [*sizes, len(now)]
            for sector in sectors:
                if newest.get(sector) == number:
                    start = sector * SECTOR_BYTES
                    data = bytes(now[start : start + SECTOR_BYTES])
                    arrived[sector] = data.ljust(SECTOR_BYTES, b"\0")
        size = sizes[-1] if chance.random() < 0.5 else chance.choice(sizes)
        return self._assemble(arrived, size, chance)

    def _assemble(self, arrived: dict[int, bytes], size: int, chance: random.Random) -> bytes:
        grown = max(0, size - len(self.durable))
        fill = bytes(grown) if chance.random() < 0.5 else chance.randbytes(grown)
        found = bytearray(self.durable + fill)
        for sector, data in arrived.items():
            start = sector * SECTOR_BYTES
            if start < len(found):
                part = data[: len(found) - start]
                found[start : start + len(part)] = part
        return bytes(found[:size])


def _change(data: bytearray, change: Change) -> None:
    match change:
        case Written(_, offset, new):
            if len(data) < offset:
                data.extend(bytes(offset - len(data)))
            data[offset : offset + len(new)] = new
        case Truncated(_, size):
            del data[size:]
            data.extend(bytes(size - len(data)))


def _sectors(change: Change, length: int) -> tuple[range, int]:
    """Return the sectors that a change touches of a file of `length` bytes, and its new length."""
    if isinstance(change, Written):
        last = change.offset + len(change.data)
        first, end = min(change.offset, length), max(length, last)
    else:
        first, last = min(change.size, length), max(change.size, length)
        end = change.size
    return range(first // SECTOR_BYTES, -(-last // SECTOR_BYTES)), end


class Disk:
    """Takes records in their order; at each moment it can be cut."""

    def __init__(self) -> None:
        self._files: dict[int, Content] = {}
        self._durable: dict[str, dict[str, int | None]] = {}  # folder -> name -> file; None: folder
        self._pending: dict[str, list[Entry]] = {}

    def take(self, record: Record) -> None:
        """Go on by one record."""
        match record:
            case Written(number, _, _) | Truncated(number, _):
                self._files[number].change(record)
            case Synced(number):
                self._files[number].sync()
            case Named(path, number):
                self._files[number] = Content()
                self._pending.setdefault(_folder(path), []).append(record)
            case Made(path) | Removed(path):
                self._pending.setdefault(_folder(path), []).append(record)
            case Renamed(old, new, _):
                if _folder(old) != _folder(new):
                    msg = f"a rename between folders is not modelled: {old} to {new}"
                    raise NotImplementedError(msg)
                self._pending.setdefault(_folder(old), []).append(record)
            case FolderSynced(path):
                for entry in self._pending.pop(path, ()):
                    _enter(self._durable.setdefault(path, {}), entry)
            case _:
                pass

    def cut(self, landing: Landing, chance: random.Random) -> State:
        """Return a state that may be found when the power fails now."""
        state = State([], {})
        contents: dict[int, bytes] = {}
        self._cut(HERE, landing, chance, state, contents)
        return state

    def _cut(
        self,
        folder: str,
        landing: Landing,
        chance: random.Random,
        state: State,
        contents: dict[int, bytes],
    ) -> None:
        entries = dict(self._durable.get(folder, {}))
        share = {"nothing": 0.0, "all": 1.0}.get(landing, chance.choice(SHARES))
        for entry in self._pending.get(folder, ()):
            if chance.random() < share:
                _enter(entries, entry)
        for path, number in sorted(entries.items()):
            if number is None:
                state.folders.append(path)
                self._cut(path, landing, chance, state, contents)
            else:
                if number not in contents:
                    contents[number] = self._files[number].after_cut(landing, chance)
                state.files[path] = contents[number]


def _folder(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()


def _enter(entries: dict[str, int | None], entry: Entry) -> None:
    match entry:
        case Named(path, number):
            entries[path] = number
        case Made(path):
            entries[path] = None
        case Removed(path):
            entries.pop(path, None)
        case Renamed(old, new, number):
            entries.pop(old, None)
            entries[new] = number
