"""mem0's flat payload of a memory and reverie's metadata, each made from the other.

A payload holds what the caller gave as metadata and, beside it: data (the text), hash, created_at,
updated_at, user_id, agent_id, run_id, actor_id, role, expiration_date. All but the text, the hash,
the times and the user go into the metadata of the memory under the same names, so that filters of
reverie read them too (`metadata.agent_id`). Names that reverie reserves become "mem0:key:NAME".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from reverie.door import RESERVED
from reverie.mem0.exceptions import ValidationError
from reverie.mem0.scope import IDS, PREFIX, user_of_owner
from reverie.memory_graph.views import Item

MARK = f"{PREFIX}v"  # is there in all that the facade has written
USER = f"{PREFIX}user"  # true where a user_id was given; it is that of the owner
ID = f"{PREFIX}id"  # as mem0 knows it, where it is not derived from the memory's own
CREATED = f"{PREFIX}created"
UPDATED = f"{PREFIX}updated"
_KEY = f"{PREFIX}key:"

IDENTITY = frozenset({*IDS, "actor_id"})  # never set by metadata
_PROMOTED_1 = (*IDS, "actor_id", "role")
_PROMOTED_2 = (*_PROMOTED_1, "attributed_to", "expiration_date")
_CORE = frozenset({"id", "data", "hash", "created_at", "updated_at", "text_lemmatized"})

Payload = dict[str, Any]


def encode(payload: Mapping[str, Any], marks: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a payload as metadata of reverie, with `marks` (of the names above) beside it."""
    found: dict[str, Any] = {MARK: 1, **(marks or {})}
    for key, value in payload.items():
        if key == "user_id":
            found[USER] = True
        else:
            found[_KEY + key if _is_reserved(key) else key] = value
    return found


def _is_reserved(key: object) -> bool:
    """Return whether a key cannot be metadata as it is. One that is no text is left as it is, and
    refused by reverie's door."""
    return isinstance(key, str) and (key.casefold() in RESERVED or key.startswith(PREFIX))


def decode(owner: str, metadata: Mapping[str, Any]) -> Payload:
    """Return the payload of a user's metadata, without text, hash and times."""
    found: Payload = {}
    for key, value in metadata.items():
        if key == USER:
            found["user_id"] = user_of_owner(owner)
        elif key.startswith(_KEY):
            found[key.removeprefix(_KEY)] = value
        elif not key.startswith(PREFIX):
            found[key] = value
    return found


def payload_of(owner: str, item: Item, inherited: Mapping[str, Any] | None) -> Payload:
    """Return the whole payload of a memory.

    Args:
        owner: user of reverie.
        item: the memory.
        inherited: metadata of the turn that it came from, for a memory without the mark.
    """
    metadata = item.metadata or {}
    source = metadata if MARK in metadata else {**(inherited or {}), **metadata}
    found = decode(owner, source)
    if MARK not in metadata and inherited is not None:
        for name in ("role", "actor_id"):  # of the turn, not of what was concluded from it
            found.pop(name, None)
    if MARK not in source and (user_id := user_of_owner(owner)) is not None:
        found["user_id"] = user_id
    found["data"] = item.text
    found["hash"] = md5(item.text)
    found["created_at"] = metadata.get(CREATED) or iso(item.recorded_at)
    found["updated_at"] = metadata.get(UPDATED) or iso(item.recorded_at)
    return found


def shown(public_id: str, payload: Payload, *, version: int) -> dict[str, Any]:
    """Return an item as `get` gives it; `get_all` drops the score, `search` sets it."""
    promoted = _PROMOTED_1 if version == 1 else _PROMOTED_2
    item: dict[str, Any] = {
        "id": public_id,
        "memory": payload["data"],
        "hash": payload["hash"],
        "metadata": None,
        "score": None,
        "created_at": payload["created_at"],
        "updated_at": payload["updated_at"],
    }
    item |= {name: payload[name] for name in promoted if name in payload}
    own = {k: v for k, v in payload.items() if k not in _CORE and k not in promoted}
    if own:
        item["metadata"] = own
    return item


def md5(text: str) -> str:
    """Return the hash of a text that items of mem0 carry."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def iso(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC; a number outside of the years 1 to 9999 as it is."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def expiration(value: Any) -> str | None:
    """Return a date of expiry as YYYY-MM-DD, None for None.

    Raises:
        ValidationError: no date.
    """
    match value:
        case None:
            return None
        case datetime():
            return value.date().isoformat()
        case date():
            return value.isoformat()
        case str():
            try:
                return date.fromisoformat(value).isoformat()
            except ValueError:
                pass
        case _:
            pass
    msg = "expiration_date must be a date or YYYY-MM-DD"
    raise ValidationError(msg, "VALIDATION_005", {"expiration_date": repr(value)[:100]})


def is_expired(payload: Mapping[str, Any], now: float) -> bool:
    """Return whether the last day of a memory is over at `now` (seconds, UTC)."""
    value = payload.get("expiration_date")
    try:
        today = datetime.fromtimestamp(now, UTC).date()
        return bool(value) and date.fromisoformat(str(value)) < today
    except (ValueError, OverflowError, OSError):
        return False
