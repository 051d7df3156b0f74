"""What a tool is handed beside its arguments, and how items are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from reverie.memory_graph.views import Hit, Item
from reverie.runtime import Runtime
from reverie.tools.budget import Count, short
from reverie.user import User

_TAGS_SHOWN = 5
_NAME_CHARS = 30
_WHO_CHARS = 60
_REASON_CHARS = 120


class Call(msgspec.Struct, frozen=True):
    """One call: of which user, and how long the answer may be, in tokens by `count`."""

    runtime: Runtime
    user: User
    budget: int
    count: Count


def shown(item: Item) -> dict[str, Any]:
    """Return an item as a model sees it: what it says, when, and what is unusual about it."""
    made: dict[str, Any] = {"id": item.id, "text": item.text}
    if item.type != "memory":
        made["type"] = item.type
    if item.kind is not None:
        made["kind"] = item.kind
    made["at"] = moment(item.at)
    if item.valid_to is not None:
        made["until"] = moment(item.valid_to)
    if item.type == "memory" and item.status != "active":
        made["status"] = item.status
    for key in ("speaker", "told_by", "about", "group"):
        if value := getattr(item, key):
            made[key] = short(value, _WHO_CHARS)
    if item.tags:
        made["tags"] = [short(tag, _NAME_CHARS) for tag in item.tags[:_TAGS_SHOWN]]
    if item.pinned:
        made["pinned"] = True
    if isinstance(item, Hit):
        made["score"] = round(item.score, 2) + 0.0  # not -0.0
        if item.reasons:
            made["because"] = short(item.reasons[0], _REASON_CHARS)
    return made


def moment(at: float) -> str:
    """Return a time in seconds as UTC to the minute; beyond the years 1 to 9999 as a number."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%MZ")
    except (ValueError, OverflowError, OSError):
        return f"t={at:g}"
