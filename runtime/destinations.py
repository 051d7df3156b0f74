"""Where a caller may have a file written: never into a data folder, whose files it would replace.

Everything that writes at a path of the caller's asks here first: the exports, backups, and the page
of the town.
"""

from __future__ import annotations

from pathlib import Path

from reverie import door
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.store.driver_errors import disk_error


def outside(path: str | Path, folder: Path, advice: str = "choose a place outside of it") -> Path:
    """Return a path that something is to be written to.

    Args:
        path: as the caller gave it.
        folder: the data folder.
        advice: what to do instead, for the message.

    Raises:
        InvalidValueError: it is no path; or it lies in the data folder, or leads there by `..` or
            a link.
        StorageError: where it leads cannot be found out.
    """
    named = door.path(path)
    try:
        there, data = named.resolve(), folder.resolve()
        # The place of its name, too: what is renamed onto a link replaces the link.
        lies_in = there.is_relative_to(data) or (
            named.parent.resolve().is_relative_to(data) and named.name not in {"", ".."}
        )
    except (OSError, RuntimeError) as exc:  # links in a circle
        cause = exc if isinstance(exc, OSError) else OSError(str(exc))
        raise disk_error(cause, named) from exc
    if lies_in:
        msg = f"{path} lies in the data folder; {advice}"
        raise InvalidValueError(msg, path=str(path))
    return named


def require_replaceable(path: Path, magic: bytes, what: str) -> None:
    """Refuse to replace a file that is not of the kind that is to be written.

    Args:
        path: that is to be written; nothing there, an empty file and a folder pass (a folder fails
            where it is written).
        magic: how files of the kind begin.
        what: the kind, for the message.

    Raises:
        InvalidValueError: there is something else.
        StorageError: it cannot be read.
    """
    try:
        if path.is_dir() or not path.exists():
            return
        if path.is_file():
            with path.open("rb") as file:
                start = file.read(len(magic))
            if start in {magic, b""}:
                return
    except OSError as exc:
        raise disk_error(exc, path) from exc
    msg = f"{path} is there already, and is no {what}; choose another name, or remove it first"
    raise InvalidValueError(msg, path=str(path))
