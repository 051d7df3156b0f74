"""What the doctor looks at of the disk and of a data folder."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from reverie.http.keys import FILE as KEYS, KeyFile
from reverie.memory_graph.errors import (
    ConfigError,
    DataFolderError,
    DataFolderLockedError,
    ReverieError,
    StorageError,
)
from reverie.memory_graph.store.folder import CATALOG, require_ours
from reverie.mind import OBJECT
from reverie.models.catalog import is_path, model_path
from reverie.models.embedders import STANDIN
from reverie.operations.doctor import Line, Patient, fix_of
from reverie.operations.manifest import PARTITIONS
from reverie.runtime import Runtime, open as open_folder

LEAST_BYTES = 64 * 1024**2  # below, writes will soon be refused
FEW_BYTES = 1024**3
NETWORKED = {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb3", "virtiofs"}
IN_MEMORY = {"ramfs", "tmpfs"}
MOUNTS = Path("/proc/mounts")
PRIVATE = (KEYS, "masks.vault")
_REPAIR = "restore a backup, or save what is whole with: reverie check --repair"


def disk(patient: Patient) -> Iterator[Line]:
    """Look at the disk that the data folder lies on, or would."""
    place = nearest(patient.folder)
    free = shutil.disk_usage(place).free
    text = f"{free / 1e9:.1f} GB free at {place}"
    if free < LEAST_BYTES:
        yield Line("disk", "fail", text, "free space, or move the data folder")
    elif free < FEW_BYTES:
        yield Line("disk", "warn", text, "free space, or move the data folder")
    else:
        yield Line("disk", "ok", text)
    kind = file_system_of(place, MOUNTS)
    if kind in NETWORKED:
        text = f"{place} lies on {kind}, where a write-ahead log is not safe"
        yield Line("disk", "warn", text, "use a disk of this machine")
    elif kind in IN_MEMORY:
        text = f"{place} lies in memory ({kind}): it is gone after a restart"
        yield Line("disk", "warn", text, "use a disk")
    if os.access(place, os.W_OK | os.X_OK):
        try:
            _sync(place)
        except OSError as exc:
            yield Line("disk", "fail", f"writing and syncing fail: {exc}", "check the disk")
        else:
            yield Line("disk", "ok", "a file can be written, synced and renamed")


def _sync(place: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".reverie-doctor-", dir=place) as folder:
        path = Path(folder, "a")
        with path.open("wb") as file:
            file.write(b"a" * 4096)
            file.flush()
            os.fsync(file.fileno())
        path.replace(path.with_name("b"))
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    place = folder.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def file_system_of(place: Path, mounts: Path) -> str:
    """Return the kind of file system of a folder, "" where that is not known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        parts = line.split()
        if len(parts) < 3:  # noqa: PLR2004 (device, place, kind)
            continue
        at = parts[1].replace("\\040", " ")
        if place.resolve().is_relative_to(at) and len(at) >= len(best):
            best, kind = at, parts[2]
    return kind


def permissions(patient: Patient) -> Iterator[Line]:
    """Look at who may read and write the data folder."""
    folder = patient.folder
    place = nearest(folder)
    if not os.access(place, os.W_OK | os.X_OK):
        yield Line("permissions", "fail", f"{place} cannot be written", f"chmod u+rwx '{place}'")
        return
    if not folder.is_dir():
        yield Line("permissions", "ok", f"{folder} is not there yet, and can be made")
        return
    unusable = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not os.access(path, os.R_OK | os.W_OK)
    ]
    if unusable:
        text = f"{len(unusable)} files cannot be read or written, such as {unusable[0]}"
        yield Line("permissions", "fail", text, f"chown -R $(id -un) '{folder}'")
    yield from _keys(folder)
    for name in PRIVATE:
        path = folder / name
        if path.is_file() and _is_open(path):
            text = f"{path} can be read by other users of this machine"
            yield Line(
                "permissions", "fail" if name == KEYS else "warn", text, f"chmod 600 '{path}'"
            )
    if _is_open(folder):
        text = f"other users of this machine can read {folder}"
        yield Line("permissions", "warn", text, f"chmod 700 '{folder}'")
    elif not unusable:
        yield Line("permissions", "ok", f"{folder} is for its owner only")


def _keys(folder: Path) -> Iterator[Line]:
    """Say why the file of keys lets nobody in, where it does not; open to others is told apart."""
    file = KeyFile(folder)
    if not file.exists or (file.path.is_file() and _is_open(file.path)):
        return
    try:
        file.read()
    except ConfigError as exc:
        fix = f"put one of a backup in its place, or: rm '{file.path}'; reverie keys create"
        yield Line("permissions", "fail", exc.message, fix)


def _is_open(path: Path) -> bool:
    """Whether others may read a path; Windows does not say it in this way."""
    return os.name != "nt" and bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def health(patient: Patient) -> Iterator[Line]:
    """Open the data folder, as any command does, and look at what is in it."""
    folder = patient.folder
    try:
        require_ours(folder)
    except DataFolderError as exc:
        is_lost = (folder / PARTITIONS).is_dir()
        fix = _REPAIR if is_lost else "name another folder: --data or REVERIE_DATA"
        yield Line("data folder", "fail", exc.message, fix)
        return
    if not (folder / CATALOG).exists():  # at most settings, or what a power loss left
        text = f"there is none at {folder} yet"
        yield Line("data folder", "ok", text, "make one with: reverie ingest FILE")
        return
    try:
        rt = open_folder(
            folder,
            background=False,
            extractor="off",
            summaries="off",
            models_folder=patient.models_folder,
        )
    except DataFolderLockedError as exc:
        text = f"{exc.message}: its owner can say more, with rt.check()"
        yield Line("data folder", "ok", text)
        return
    except StorageError as exc:
        yield Line("data folder", "fail", exc.message, _REPAIR)
        return
    with rt:
        yield from _inside(rt)
        yield from _worlds(rt, patient)
        if rt.masks.is_on and patient.mask_key is None:
            text = "the folder masks, and no key is set: it can be read, and no text stored"
            yield Line("data folder", "warn", text, "set REVERIE_MASK_KEY")


def _inside(rt: Runtime) -> Iterator[Line]:
    damaged: list[str] = []
    for number in range(rt._folder.partitions):  # noqa: SLF001
        path = rt._folder.partition_path(number)  # noqa: SLF001
        if (why := _why_closed(rt, path)) is not None:
            damaged.append(path.name)
            yield Line("data folder", "fail", why, _REPAIR)
    if not damaged:
        found = rt.stats()
        text = f"{found.users} users in {len(found.worlds)} worlds, {rt._folder.partitions}"  # noqa: SLF001
        yield Line("data folder", "ok", f"{text} partitions, all open; reverie check reads it all")
        if found.pending:
            text = f"{found.pending} turns wait for extraction"
            yield Line("data folder", "ok", text, "a program that has it open extracts them")
        if found.quarantined:
            text = f"{found.quarantined} turns are in quarantine: extracting them failed twice"
            yield Line("data folder", "warn", text, "reverie quarantine list, then retry or drop")
    for line in rt.slots.unfinished():
        yield Line("data folder", "warn", line, "mend what it names; the next opening tries again")
    staging = rt.path / "staging"
    if staging.exists():
        text = f"{staging} is left of a backup that was interrupted"
        yield Line("data folder", "warn", text, f"rm -r '{staging}', or make a backup")


def _why_closed(rt: Runtime, path: Path) -> str | None:
    """Return why a partition is not open; None for one that is."""
    from reverie.actors.backend import InlineBackend

    backend = rt._router.backend  # noqa: SLF001
    if not isinstance(backend, InlineBackend):
        return None
    residents = backend.shard.residents
    number = int(path.stem[1:])
    if number not in residents.unopened:
        return None
    try:
        residents.partition(number)
    except ReverieError as exc:
        return exc.message
    return None


def _worlds(rt: Runtime, patient: Patient) -> Iterator[Line]:
    """Look for the models that searching in each world needs."""
    missing: dict[str, tuple[str, list[str]]] = {}
    for world in rt._folder.catalog.worlds():  # noqa: SLF001
        if world.spec in {"", OBJECT, STANDIN}:
            continue
        try:
            model_path(world.spec, patient.models_folder)
        except ReverieError as exc:
            missing.setdefault(world.spec, (fix_of(exc), []))[1].append(world.name)
    for spec, (fix, names) in missing.items():
        what = "file" if is_path(spec) else "model"
        text = f"{what} {spec} is not here; {len(names)} worlds cannot be searched without it"
        yield Line("data folder", "fail", text, fix)
