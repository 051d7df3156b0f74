"""The way back: a data folder out of a backup, all of it or nothing."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from reverie.memory_graph.errors import BackupError, DataFolderError
from reverie.memory_graph.events import JOURNAL_FORMAT
from reverie.memory_graph.snapshot import SNAPSHOT_FORMAT
from reverie.memory_graph.store import sync_folder
from reverie.memory_graph.store.catalog import CATALOG_VERSION
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.memory_graph.store.schema import PARTITION_VERSION
from reverie.operations import manifest as m
from reverie.operations.copying import find, require_file

if TYPE_CHECKING:
    from reverie.operations.copying import Progress
    from reverie.operations.places import Place

_FORMATS = {
    "catalog": CATALOG_VERSION,
    "partition": PARTITION_VERSION,
    "journal": JOURNAL_FORMAT,
    "snapshot": SNAPSHOT_FORMAT,
}


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was made of a backup.

    Attributes:
        path: the data folder.
        backup: the backup that it was made of.
        made_at: the moment whose state it has; UTC, ISO 8601.
        files: how many it has.
        size_bytes: of these together.
        users: how many it has.
        problems: what `check` found in it; empty for a sound one.
    """

    path: str
    backup: str
    made_at: str
    files: int
    size_bytes: int
    users: int
    problems: tuple[str, ...] = ()


def restore(
    source: str | Path, folder: str | Path, *, progress: Progress | None = None
) -> Restored:
    """Make a data folder of a backup, and check it.

    All checksums are compared before anything is written. The folder has its name only when it is
    whole and was checked; after any error, or a crash, there is none.

    What was begun at the moment of the backup and not finished is finished now, as after a crash.
    Whoever was forgotten since then is back: forget them again. So are keys of the server that
    were revoked since.

    Args:
        source: a backup, or a place of several: then the newest that is whole.
        folder: must be empty, or not there.
        progress: called with (steps done, steps in all).

    Raises:
        DataFolderError: the folder is not empty, or the backup's files are of a newer version.
        BackupError: there is no backup, or a file of it is missing or damaged.
        StorageError: the folder cannot be written.
        ConfigError: the URL cannot be reached from here.
    """
    folder = Path(folder).expanduser().absolute()
    _require_empty(folder)
    place, manifest = find(source)
    _require_readable(place, manifest)
    steps = _Steps(2 * len(manifest.files) + 1, progress)
    for file in manifest.files:
        require_file(place, file)
        steps.count()
    new = folder.with_name(f".{folder.name}.restoring-{secrets.token_hex(4)}")
    try:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            new.mkdir(mode=0o700)
            (new / m.PARTITIONS).mkdir(mode=0o700)
            for file in manifest.files:
                _copy(place, file, new / file.path)
                steps.count()
        except OSError as exc:
            raise disk_error(exc, new) from exc
        users, problems = _checked(new)
        steps.count()
        try:
            _require_empty(folder)
            new.replace(folder)  # from here on, it is there
            sync_folder(folder.parent)
        except OSError as exc:
            raise disk_error(exc, folder) from exc
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return Restored(
        path=str(folder),
        backup=str(place),
        made_at=manifest.made_at,
        files=len(manifest.files),
        size_bytes=manifest.size_bytes,
        users=users,
        problems=tuple(one.replace(str(new), str(folder)) for one in problems),  # it has moved
    )


class _Steps:
    """Tells of progress."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def count(self) -> None:
        """One more is done."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


def _require_empty(folder: Path) -> None:
    try:
        if folder.is_symlink():
            what = "a link"
        elif not folder.exists():
            return
        elif not folder.is_dir():
            what = "a file"
        elif any(folder.iterdir()):
            what = "not empty"
        else:
            return
    except OSError as exc:
        raise disk_error(exc, folder) from exc
    msg = f"{folder} is {what}; restore into a new folder"
    raise DataFolderError(msg, path=str(folder))


def _require_readable(place: Place, manifest: m.Manifest) -> None:
    for name, supported in _FORMATS.items():
        found = getattr(manifest, name)
        if found > supported:
            msg = (
                f"{place} was written by a newer version of reverie ({manifest.written_by}): its "
                f"{name} has format {found}, this version reads up to {supported}"
            )
            raise BackupError(msg, path=str(place), found=found, supported=supported)


def _copy(place: Place, file: m.BackupFile, target: Path) -> None:
    """Copy one file; it is compared once more, as another may have it changed meanwhile."""
    handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as out:

        def write(piece: bytes) -> None:
            try:
                out.write(piece)
            except OSError as exc:
                raise disk_error(exc, target) from exc

        require_file(place, file, write)
        out.flush()
        os.fsync(out.fileno())
    sync_folder(target.parent)


def _checked(folder: Path) -> tuple[int, list[str]]:
    """Open a folder, finish what was begun in it, and check it; returns the number of users and
    the problems."""
    from reverie.runtime import open as open_folder

    with open_folder(folder, background=False, extractor="off", summaries="off") as rt:
        problems = rt.check()
        return len(rt._all_users(None, partial=True)), problems  # noqa: SLF001


__all__ = ["Restored", "restore"]
