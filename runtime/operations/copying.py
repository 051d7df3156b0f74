"""Backups of an open data folder: one moment of all its files, copied while work goes on.

1. Between two writes, a read transaction is begun on every file (`Slots.cut`, `Moment`). What was
   acknowledged before is in it; what goes to several users is in it whole or not at all.
2. The files are copied, one after the other, synced, and examined as `reverie check` does.
3. They are read back and compared with their checksums.
4. The manifest is written. Only now there is a backup: what a crash leaves before has no manifest,
   and is not restored.

Operations on save slots and erasures wait until 2 is done, everything else goes on.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from reverie.destinations import outside
from reverie.memory_graph.errors import (
    BackupError,
    StorageFullError,
)
from reverie.memory_graph.events import JOURNAL_FORMAT
from reverie.memory_graph.snapshot import SNAPSHOT_FORMAT
from reverie.memory_graph.store import sync_folder
from reverie.memory_graph.store.catalog import CATALOG_VERSION
from reverie.memory_graph.store.copies import Moment, examine_copy
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.memory_graph.store.schema import PARTITION_VERSION
from reverie.operations import manifest as m
from reverie.operations.places import LocalPlace, Place, digest_of, place_of

if TYPE_CHECKING:
    from reverie.runtime import Runtime

Progress: TypeAlias = Callable[[int, int], None]

STAGING = "staging"  # in the data folder, for backups that go to a URL
SPARE_BYTES = 64 * 1024**2  # that stay free on a disk that copies are written to


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that is whole.

    Attributes:
        place: its folder or URL; `restore` takes it.
        name: of that folder.
        made_at: UTC, ISO 8601: the moment whose state it holds.
        files: how many it has, but the manifest.
        size_bytes: of these together.
        users: how many it holds.
        problems: what was wrong in the data folder, and is so in the copy; empty for a sound one.
    """

    place: str
    name: str
    made_at: str
    files: int
    size_bytes: int
    users: int
    problems: tuple[str, ...] = ()


class _Taken(msgspec.Struct):
    """All files as they were at one moment."""

    made_at: datetime
    moments: dict[str, Moment]
    small: dict[str, bytes]
    embedders: tuple[str, ...]
    unfinished: list[str]


def backup(self: Runtime, dest: str | Path, *, progress: Progress | None = None) -> Backup:
    """Copy the data folder, as it is at one moment, into a new folder at `dest`; work goes on.

    Everything that was acknowledged before the call is in it. Backups that are there are left as
    they are. It holds what was remembered, not encrypted (but for masked values).

    Args:
        self: the runtime.
        dest: a folder of this machine, or a URL that fsspec knows (extra "remote"). It may hold
            many backups, also of other data folders.
        progress: called with (files done, files in all); each counts when it was written and when
            it was verified.

    Raises:
        InvalidValueError: `dest` lies in the data folder.
        StorageFullError: it would not fit; or there is no space.
        StorageError: a file is damaged so that it cannot be opened, or something cannot be
            written. What was written is removed again.
        BackupError: the place cannot be reached, or does not give back what was written there.
        ConfigError: a URL, and the extra or the library for it is missing.
        ClosedError: the runtime was closed meanwhile.
    """
    self._require_open()
    root = place_of(dest)
    if isinstance(root, LocalPlace):
        outside(root.path, self.path, "keep backups on another disk")
    self.mind.language.save_usage()
    with ExitStack() as held:
        taken = held.enter_context(self.slots.cut(lambda: _take(self)))
        held.callback(_give_back, taken)
        start, made_at = m.new_name(taken.made_at)
        name = f"{start}-{secrets.token_hex(2)}"
        place = root.inner(name)
        with _staging(self.path, place) as staging:
            writing = _Writing(self, taken, place, staging, progress)
            try:
                place.make()
                files, users = writing.copy_all()
                held.close()  # from here on, nobody waits for this
                manifest = _manifest(taken, made_at, files, users, writing.problems)
                writing.verify(files)
                writing.end(manifest)
            except BaseException:
                place.remove()
                raise
    return _described(place, name, manifest)


def _take(rt: Runtime) -> _Taken:
    """Hold the moment of all files; nothing is written meanwhile."""
    path, moments = rt.path, dict[str, Moment]()
    try:
        for number in range(rt._folder.partitions):  # noqa: SLF001
            name = m.partition_file(number)
            moments[name] = Moment(path / name, "partition")
        moments[m.CATALOG] = Moment(path / m.CATALOG, "catalog")
        small = {n: (path / n).read_bytes() for n in m.SMALL_FILES if (path / n).is_file()}
    except BaseException as exc:
        _close(moments)
        if isinstance(exc, OSError):
            raise disk_error(exc, path) from exc
        raise
    worlds = rt._folder.catalog.worlds()  # noqa: SLF001
    return _Taken(
        datetime.now(UTC),
        moments,
        small,
        tuple(sorted({world.embedder for world in worlds if world.embedder})),
        rt.slots.unfinished(),
    )


def _give_back(taken: _Taken) -> None:
    _close(taken.moments)


def _close(moments: Mapping[str, Moment]) -> None:
    for moment in moments.values():
        moment.close()


class _Writing:
    """One backup while it is written."""

    def __init__(
        self, rt: Runtime, taken: _Taken, place: Place, staging: Path, progress: Progress | None
    ) -> None:
        self._rt = rt
        self._taken = taken
        self._place = place
        self._staging = staging
        self._progress = progress
        self._done = 0
        self._total = 2 * (len(taken.moments) + len(taken.small))
        self.problems = list(taken.unfinished)

    def copy_all(self) -> tuple[list[m.BackupFile], int]:
        """Write all files; returns them, and the number of users."""
        self._require_room()
        (self._folder / m.PARTITIONS).mkdir(mode=0o700)
        files: list[m.BackupFile] = []
        users = 0
        for name, moment in self._taken.moments.items():
            target = self._folder / name
            moment.copy_to(target, self._rt._require_open)  # noqa: SLF001
            moment.close()
            kind = m.kind_of(name)
            if kind is not None:
                self.problems += (f"{name}: {line}" for line in examine_copy(target, kind))
            if kind == "partition":
                users += moment.users
            files.append(self._put(name, target))
        for name, data in self._taken.small.items():
            target = self._folder / name
            _write_small(target, data)
            files.append(self._put(name, target))
        return files, users

    @property
    def _folder(self) -> Path:
        return self._place.write_to(self._staging)

    def _require_room(self) -> None:
        sizes = [moment.size_bytes for moment in self._taken.moments.values()]
        wanted = SPARE_BYTES
        wanted += sum(sizes) if isinstance(self._place, LocalPlace) else max(sizes)
        free = shutil.disk_usage(self._folder).free
        if free < wanted:
            msg = f"{self._folder} has {free:,} bytes free, and {wanted:,} are needed"
            raise StorageFullError(msg, path=str(self._folder), free=free, wanted=wanted)

    def _put(self, name: str, written: Path) -> m.BackupFile:
        with written.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        entry = m.BackupFile(name, written.stat().st_size, digest)
        self._place.put(name, written)
        self._count()
        return entry

    def verify(self, files: list[m.BackupFile]) -> None:
        """Read back what was written."""
        for file in files:
            require_file(self._place, file)
            self._count()

    def end(self, manifest: m.Manifest) -> None:
        """Write the manifest, which makes it a backup."""
        data = m.encode(manifest)
        target = self._folder / m.MANIFEST
        new = target.with_name(f"{m.MANIFEST}.new")
        _write_small(new, data)
        new.replace(target)
        self._place.put(m.MANIFEST, target)
        read_manifest(self._place)

    def _count(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


def _manifest(
    taken: _Taken, made_at: str, files: list[m.BackupFile], users: int, problems: list[str]
) -> m.Manifest:
    from reverie import __version__

    return m.Manifest(
        written_by=__version__,
        made_at=made_at,
        catalog=CATALOG_VERSION,
        partition=PARTITION_VERSION,
        journal=JOURNAL_FORMAT,
        snapshot=SNAPSHOT_FORMAT,
        partitions=len(taken.moments) - 1,
        users=users,
        embedders=taken.embedders,
        masked="masks.vault" in taken.small,
        problems=tuple(problems[: m.MAX_PROBLEMS]),
        files=tuple(files),
    )


@contextmanager
def _staging(data: Path, place: Place) -> Iterator[Path]:
    """Give a folder for files that are to be sent elsewhere. What a crash left there is removed by
    the next backup, and by the next erasure found."""
    staging = data / STAGING
    if isinstance(place, LocalPlace):
        yield staging
        return
    shutil.rmtree(staging, ignore_errors=True)
    try:
        staging.mkdir(mode=0o700)
    except OSError as exc:
        raise disk_error(exc, staging) from exc
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write_small(path: Path, data: bytes) -> None:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except OSError as exc:
        raise disk_error(exc, path) from exc


# -- looking at backups ------------------------------------------------------------------


def read_manifest(place: Place) -> m.Manifest:
    """Return the manifest of a backup.

    Raises:
        BackupError: there is none, so this is no backup or not a whole one; or it is damaged, or
            of a newer version.
    """
    where = f"{place}/{m.MANIFEST}"
    size = place.size_bytes(m.MANIFEST)
    if size is None:
        msg = f"{place} is no backup, or one that was not completed: it has no {m.MANIFEST}"
        raise BackupError(msg, path=str(place))
    if size > m.MAX_MANIFEST_BYTES:
        msg = f"{where} is damaged: it has {size:,} bytes"
        raise BackupError(msg, path=where)
    with place.reading(m.MANIFEST) as file:
        data = file.read(m.MAX_MANIFEST_BYTES)
    return m.decode(data, where)


def require_file(
    place: Place, file: m.BackupFile, also: Callable[[bytes], object] | None = None
) -> None:
    """Read a file of a backup to its end; `also` is given each piece of it.

    Raises:
        BackupError: it is missing, or not what was written; the message names it.
    """
    where = f"{place}/{file.path}"
    size = place.size_bytes(file.path)
    if size is None:
        msg = f"{where} is missing: the backup is not whole"
        raise BackupError(msg, path=where)
    if size != file.size_bytes:
        how = "cut short" if size < file.size_bytes else "damaged"
        msg = f"{where} is {how}: it has {size:,} bytes and should have {file.size_bytes:,}"
        raise BackupError(msg, path=where)
    if digest_of(place, file.path, also) != file.sha256:
        msg = f"{where} is damaged: it does not have its checksum"
        raise BackupError(msg, path=where)


def find(source: str | Path) -> tuple[Place, m.Manifest]:
    """Return the backup at a path or URL, or the newest of those in it that are whole.

    Raises:
        BackupError: there is none; or it is damaged, or of a newer version.
        ConfigError: the URL cannot be reached from here.
    """
    place = place_of(source)
    if place.size_bytes(m.MANIFEST) is not None:
        return place, read_manifest(place)
    names = [name for name in place.folders() if m.NAME.fullmatch(name)]
    for name in reversed(names):
        inner = place.inner(name)
        if inner.size_bytes(m.MANIFEST) is not None:
            return inner, read_manifest(inner)
    if names:
        msg = f"{place} holds no backup that was completed: {names[-1]} has no {m.MANIFEST}"
    else:
        msg = f"{place} is no backup and holds none: there is no {m.MANIFEST}"
    raise BackupError(msg, path=str(place))


def backups(dest: str | Path) -> list[Backup]:
    """Return the whole backups in a place, oldest first; those that were not completed, or whose
    manifest is damaged, are left out. Their files are not read."""
    place = place_of(dest)
    found = []
    for name in place.folders():
        inner = place.inner(name)
        if m.NAME.fullmatch(name) and inner.size_bytes(m.MANIFEST) is not None:
            try:
                found.append(_described(inner, name, read_manifest(inner)))
            except BackupError:
                continue
    return found


def backup_of(dest: str | Path, name: str) -> Backup:
    """Return the backup of this name in a place; its files are not read.

    Raises:
        BackupError: it is not there, or not whole.
    """
    place = place_of(dest).inner(name)
    return _described(place, name, read_manifest(place))


def verify_backup(source: str | Path, *, progress: Progress | None = None) -> Backup:
    """Read a backup (of several in a place, the newest) and compare all checksums.

    Raises:
        BackupError: there is none, or a file of it is missing or damaged; the message names it.
        ConfigError: the URL cannot be reached from here.
    """
    place, manifest = find(source)
    for done, file in enumerate(manifest.files, 1):
        require_file(place, file)
        if progress is not None:
            progress(done, len(manifest.files))
    return _described(place, str(place).rstrip("/").rpartition("/")[2], manifest)


def _described(place: Place, name: str, manifest: m.Manifest) -> Backup:
    return Backup(
        place=str(place),
        name=name,
        made_at=manifest.made_at,
        files=len(manifest.files),
        size_bytes=manifest.size_bytes,
        users=manifest.users,
        problems=manifest.problems,
    )


__all__ = ["Backup", "backup", "backup_of", "backups", "verify_backup"]
