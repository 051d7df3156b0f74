"""The history of memories out of mem0's history.db."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reverie.mem0.importing.sqlite import columns, reading
from reverie.memory_graph.errors import InvalidValueError

NAME = "history.db"
_NEEDED = {"memory_id", "new_memory", "event"}


class Change(NamedTuple):
    """A text that a memory had, and since when (as stored)."""

    text: str
    at: str | None


class Changes(NamedTuple):
    """All texts of each memory, oldest first, and which memories were deleted."""

    texts: dict[str, list[Change]]
    deleted: set[str]


def beside(source: Path) -> Path | None:
    """Return the history.db that lies in a store's folder or next to it."""
    folder = source if source.is_dir() else source.parent
    places = (folder / NAME, folder.parent / NAME)
    return next((place for place in places if place.is_file()), None)


def read_changes(path: Path) -> Changes:
    """Return the changes that a history.db holds.

    Raises:
        InvalidValueError: it is none.
    """
    texts: dict[str, list[Change]] = {}
    deleted: set[str] = set()
    with reading(path) as db:
        known = columns(db, "history")
        if not known >= _NEEDED:
            msg = f"{path} is no history of mem0"
            raise InvalidValueError(msg, path=str(path))
        times = [name for name in ("updated_at", "created_at") if name in known]
        at = f"coalesce({', '.join([*times, 'null'])})"
        order = "created_at, datetime(updated_at), rowid" if len(times) > 1 else "rowid"
        rows = db.execute(
            f"select memory_id, new_memory, event, {at} from history order by {order}"  # noqa: S608 (names of ours)
        )
        for memory_id, text, event, since in rows:
            if event == "DELETE":
                deleted.add(str(memory_id))
            elif isinstance(text, str) and text.strip():
                change = Change(text, since if isinstance(since, str) else None)
                texts.setdefault(str(memory_id), []).append(change)
    return Changes(texts, deleted)
