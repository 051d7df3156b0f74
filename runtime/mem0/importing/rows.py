"""What the readers give: memories of mem0, and entries that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

MAX_ENTRY_BYTES = 16 * 1024 * 1024  # of one stored point, with its vectors


class Row(NamedTuple):
    """A memory: its place in the source (from 1), its id, and its flat payload."""

    number: int
    id: str
    payload: dict[str, Any]


class Bad(NamedTuple):
    """An entry that cannot be used: its place in the source, and why."""

    number: int
    why: str


Rows: TypeAlias = Iterator[Row | Bad]


def row(number: int, public_id: Any, payload: Any) -> Row | Bad:
    """Return a memory of an id and a payload as mem0 stores them."""
    if not isinstance(payload, dict) or not all(isinstance(key, str) for key in payload):
        return Bad(number, "its payload is no mapping with text keys")
    if not isinstance(payload.get("data"), str) or not payload["data"].strip():
        return Bad(number, "it holds no text")
    if not isinstance(public_id, str | int) or isinstance(public_id, bool) or public_id == "":
        return Bad(number, "it has no id")
    return Row(number, str(public_id), payload)
