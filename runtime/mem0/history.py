"""`history`: the versions of a memory as rows of mem0's history table."""

from __future__ import annotations

from typing import Any

from reverie.mem0.ids import row_id
from reverie.mem0.payload import iso
from reverie.mem0.store import Store
from reverie.memory_graph.views import Item

Row = dict[str, Any]


def rows(store: Store, memory_id: object) -> list[Row]:
    """Return one row for each change of a memory, oldest first; none for an unknown id."""
    found = store.versions(memory_id)
    if found is None:
        return []
    owner, items = found
    made: list[Row] = []
    before: Item | None = None
    for item in items:
        record = store.record(owner, item)
        payload = record.payload
        made.append(
            {
                "id": row_id(str(memory_id), len(made)),
                "memory_id": str(memory_id),
                "old_memory": None if before is None else before.text,
                "new_memory": item.text,
                "event": "ADD" if before is None else "UPDATE",
                "created_at": payload["created_at"],
                "updated_at": payload["updated_at"],
                "is_deleted": False,
                "actor_id": payload.get("actor_id"),
                "role": payload.get("role"),
            }
        )
        before = item
    last = items[-1]
    if last.status in {"expired", "archived"} or (last.retired_at is not None):
        ended = last.recorded_at if last.retired_at is None else last.retired_at
        made.append(
            made[-1]
            | {
                "id": row_id(str(memory_id), len(made)),
                "old_memory": last.text,
                "new_memory": None,
                "event": "DELETE",
                "updated_at": iso(ended),
                "is_deleted": True,
            }
        )
    return made
