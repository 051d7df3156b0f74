"""SHA-256 of model files, remembered beside them.

Hashing 90 MB takes a fifth of a second, too long for every open. The digest is kept in a small
file next to the model with the size and modification time it was computed for; when either has
changed it is computed again. This guards against accidents, not against a forger.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import msgspec


class _Known(msgspec.Struct, frozen=True):
    size_bytes: int
    modified_ns: int
    sha256: str


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, in hex, read now."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, in hex, from its side file where that is fresh.

    The side file is written when it can be; a folder that is read-only costs the hashing again.
    """
    stat = path.stat()
    side = path.with_name(path.name + ".digest.json")
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        known = msgspec.json.decode(side.read_bytes(), type=_Known)
        if (known.size_bytes, known.modified_ns) == (stat.st_size, stat.st_mtime_ns):
            return known.sha256
    digest = sha256_of(path)
    with contextlib.suppress(OSError):
        _write(side, _Known(stat.st_size, stat.st_mtime_ns, digest))
    return digest


def _write(side: Path, known: _Known) -> None:
    handle, name = tempfile.mkstemp(prefix=".digest-", dir=side.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(known))
        Path(name).replace(side)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
