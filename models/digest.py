"""SHA-256 of model files, remembered beside them.

Hashing 90 MB takes a fifth of a second, too long for every open. The digest is kept in a small
file with the size and modification time it was computed for; when either has
changed it is computed again. This guards against accidents, not against a forger.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import msgspec
import platformdirs

_PACKAGE = Path(__file__).resolve().parent


class _Known(msgspec.Struct, frozen=True):
    size_bytes: int
    modified_ns: int
    sha256: str


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, in hex, read now."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, in hex, from what is remembered where it is fresh.

    It is remembered in a file beside the model, or where that cannot be written (a folder that is
    read-only) in the user's cache folder. A file of this package, which pip and git watch, is
    hashed at each call: it is small.
    """
    stat = path.stat()
    sides = _sides(path)
    for side in sides:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            known = msgspec.json.decode(side.read_bytes(), type=_Known)
            if (known.size_bytes, known.modified_ns) == (stat.st_size, stat.st_mtime_ns):
                return known.sha256
    digest = sha256_of(path)
    for side in sides:
        with contextlib.suppress(OSError):
            _write(side, _Known(stat.st_size, stat.st_mtime_ns, digest))
            break
    return digest


def _sides(path: Path) -> list[Path]:
    """Return where the digest of a file may be remembered, the best place first."""
    whole = path.resolve()
    if whole.is_relative_to(_PACKAGE):
        return []
    name = hashlib.sha256(os.fsencode(whole)).hexdigest()[:32]
    cache = platformdirs.user_cache_path("reverie") / "digests"
    return [path.with_name(path.name + ".digest.json"), cache / f"{name}.json"]


def _write(side: Path, known: _Known) -> None:
    side.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".digest-", dir=side.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(known))
        Path(name).replace(side)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
