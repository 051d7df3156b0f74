"""What a backup is: files, and last of all a manifest, without which it is none.

    reverie-20261130T124200.123456Z-3fa1/    one backup; a place holds many
        catalog.db                      worlds, checkpoints, operations under way
        partitions/p0000.db ...         the users' histories
        masks.vault                     of a folder that masks; encrypted, its key is not in it
        usage.json, http-keys.json      if there are any; keys are kept as hashes
        reverie.toml                    settings that lie in the folder
        manifest.json                   sizes and SHA-256 of all others, and of itself

Left out is what is made anew (vector indices), what belongs to a process (lock, owner), and what
is for looking at (traces, damaged files that a repair has replaced).
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

import msgspec

from reverie.memory_graph.errors import BackupError

MANIFEST = "manifest.json"
FORMAT = 1
MAX_MANIFEST_BYTES = 16 * 1024**2
MAX_PROBLEMS = 1000  # that a manifest tells of

CATALOG = "catalog.db"
PARTITIONS = "partitions"
SMALL_FILES = ("masks.vault", "usage.json", "http-keys.json", "reverie.toml")
_PARTITION = re.compile(rf"{PARTITIONS}/p(\d{{4}})\.db")
NAME = re.compile(r"reverie-\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{4}")


class BackupFile(msgspec.Struct, frozen=True):
    """One file of a backup; `path` is relative, with forward slashes."""

    path: str
    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds, without the name of any user or world.

    Attributes:
        format: of the backup itself.
        written_by: version of reverie.
        made_at: UTC, ISO 8601: the moment whose state it holds.
        catalog, partition, journal, snapshot: numbers of the formats of the files.
        partitions: how many the data folder has.
        users: how many it holds.
        embedders: ids of the models that made the vectors; searching needs them.
        masked: whether the folder masks; reading names and numbers back needs its key.
        problems: what was found wrong with the copies, which are then as damaged as the folder was.
        files: all of them, but the manifest.
    """

    format: int = FORMAT
    written_by: str
    made_at: str
    catalog: int
    partition: int
    journal: int
    snapshot: int
    partitions: int
    users: int
    embedders: tuple[str, ...] = ()
    masked: bool = False
    problems: tuple[str, ...] = ()
    files: tuple[BackupFile, ...]

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(file.size_bytes for file in self.files)


class _Signed(msgspec.Struct, frozen=True):
    sha256: str
    manifest: msgspec.Raw


class _Version(msgspec.Struct, frozen=True):
    format: int
    written_by: str = "?"


def new_name(now: datetime) -> tuple[str, str]:
    """Return the beginning of a name for a backup that is made now, which sorts by time, and the
    time in ISO 8601; `now` has a time zone."""
    at = now.astimezone(UTC)
    return at.strftime("reverie-%Y%m%dT%H%M%S.%fZ"), at.isoformat().replace("+00:00", "Z")


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of the file."""
    data = msgspec.json.encode(manifest)
    digest = hashlib.sha256(data).hexdigest()
    return msgspec.json.encode(_Signed(digest, msgspec.Raw(data))) + b"\n"


def decode(data: bytes, where: str) -> Manifest:
    """Return the manifest in the bytes of a file.

    Args:
        data: of the file.
        where: its place, for messages.

    Raises:
        BackupError: damaged, cut short, of a newer version, or naming files that no backup has.
    """
    try:
        signed = msgspec.json.decode(data, type=_Signed)
        if hashlib.sha256(signed.manifest).hexdigest() != signed.sha256:
            msg = f"{where} is damaged: it does not have its checksum"
            raise BackupError(msg, path=where)
        version = msgspec.json.decode(signed.manifest, type=_Version)
        if version.format > FORMAT:
            msg = (
                f"{where} was written by a newer version of reverie ({version.written_by}): it has "
                f"format {version.format}, this version reads up to {FORMAT}"
            )
            raise BackupError(msg, path=where, found=version.format, supported=FORMAT)
        manifest = msgspec.json.decode(signed.manifest, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        msg = f"{where} is damaged or cut short: {exc}"
        raise BackupError(msg, path=where) from exc
    _require_whole(manifest, where)
    return manifest


def _require_whole(manifest: Manifest, where: str) -> None:
    """Refuse files that are not to be there, which also keeps paths within the folder, and the
    lack of one."""
    if not 0 < manifest.partitions < len(manifest.files):  # first: a number costs nobody anything
        msg = f"{where} has {len(manifest.files)} files for {manifest.partitions} partitions: "
        msg += "it is no manifest of a whole backup"
        raise BackupError(msg, path=where)
    expected = {CATALOG, *(partition_file(number) for number in range(manifest.partitions))}
    paths = [file.path for file in manifest.files]
    strange = sorted({path for path in paths if path not in expected | {*SMALL_FILES}})
    missing = sorted(expected - set(paths))
    if strange or missing or len(set(paths)) < len(paths):
        what = f"names {strange[0]!r}" if strange else f"lacks {missing[0] if missing else 'one'!r}"
        msg = f"{where} {what}: it is no manifest of a whole backup"
        raise BackupError(msg, path=where)


def partition_file(number: int) -> str:
    """Return the path of a partition in a backup, and in a data folder."""
    return f"{PARTITIONS}/p{number:04d}.db"


def kind_of(path: str) -> str | None:
    """Return "catalog" or "partition" for a database of a backup, None for another file."""
    if path == CATALOG:
        return "catalog"
    return "partition" if _PARTITION.fullmatch(path) else None
