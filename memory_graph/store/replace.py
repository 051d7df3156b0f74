"""How a repaired file takes the place of a damaged one: by one rename, or not at all.

    <folder>/damaged/3/new/p0001.db     is built and synced here, then renamed to
    <folder>/partitions/p0001.db.repaired-3     THE MOMENT from which the new one counts;
    <folder>/damaged/3/p0001.db ...     the old one, its log and its witness go here,
    <folder>/partitions/p0001.db        and the new one gets its name.

What a crash leaves undone after the first rename is done at the next opening. The old log must not
be found beside the new file: SQLite would put its pages over the new ones.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from reverie.memory_graph.store.sqlite import sync_folder

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = "damaged"
MARK = ".repaired-"

_BUILT_IN = "new"


def new_place(folder: Path) -> int:
    """Make `damaged/<number>/` with the next number, and return it."""
    taken = [int(p.name) for p in (folder / DAMAGED).glob("*") if p.name.isdecimal()]
    number = max(taken, default=0) + 1
    (folder / DAMAGED).mkdir(mode=0o700, exist_ok=True)
    (folder / DAMAGED / str(number) / _BUILT_IN).mkdir(parents=True)
    sync_folder(folder)
    return number


def kept_in(folder: Path, number: int) -> Path:
    """Return where the files that were replaced lie."""
    return folder / DAMAGED / str(number)


def built_in(folder: Path, number: int) -> Path:
    """Return where new files are built."""
    return kept_in(folder, number) / _BUILT_IN


def put_in_place(folder: Path, target: Path, number: int) -> None:
    """Let the file of the name of `target` that was built take its place."""
    new = built_in(folder, number) / target.name
    handle = os.open(new, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    marked = target.with_name(f"{target.name}{MARK}{number}")
    new.replace(marked)
    sync_folder(target.parent)
    _finish(folder, marked)


def finish(folder: Path) -> None:
    """Do what a crash left undone, and remove what was never finished."""
    for marked in [*folder.glob(f"*{MARK}*"), *(folder / "partitions").glob(f"*{MARK}*")]:
        _finish(folder, marked)
    for unfinished in (folder / DAMAGED).glob(f"*/{_BUILT_IN}"):
        shutil.rmtree(unfinished)


def _finish(folder: Path, marked: Path) -> None:
    name, _, number = marked.name.partition(MARK)
    place = kept_in(folder, int(number))
    target = marked.with_name(name)
    for old in (
        target,
        target.with_name(f"{name}-wal"),
        target.with_name(f"{name}-shm"),
        target.with_suffix(".commits"),
    ):
        if old.exists():
            old.replace(place / old.name)
    sync_folder(place)
    sync_folder(marked.parent)  # the old log is away before the new file has its name
    marked.replace(target)
    sync_folder(marked.parent)
