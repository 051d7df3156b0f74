"""What the readers of this package share: their options, what they yield, and ids that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from hashlib import blake2b
from typing import Literal, TypeAlias

import msgspec

from reverie.formats import TurnRecord
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InputError, InvalidValueError
from reverie.memory_graph.ids import check_id

MAX_TEXT_BYTES = 1024 * 1024  # of one message; as `Config.max_text_bytes` by default
MAX_TITLE_CHARS = 300  # of a title that is kept with each turn
_ID_BYTES = 10

DateOrder: TypeAlias = Literal["auto", "dmy", "mdy", "ymd"]


@dataclass(frozen=True)
class BadEntry:
    """What could not be used.

    Attributes:
        number: of the conversation in its file, or of the line; from 1.
        where: the same for people, with the message: "conversations.json, conversation 3, message
            4f2a".
        error: why; its message begins with `where`.
    """

    number: int
    where: str
    error: InputError


Entry: TypeAlias = TurnRecord | BadEntry
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """How files are read.

    Attributes:
        timezone: of times that name none.
        date_order: of the dates of WhatsApp.
        left_out: counts what belongs to the format but is no turn, as calls of tools.
        chosen: what was found out about the file, as "date order" -> "dmy".
    """

    timezone: tzinfo = UTC
    date_order: DateOrder = "auto"
    left_out: Counter[str] = field(default_factory=Counter)
    chosen: dict[str, str] = field(default_factory=dict)


def bad(number: int, where: str, error: InputError) -> BadEntry:
    """Return a `BadEntry`, its error completed by the place."""
    details = {**error.details, "where": where}
    told = type(error)(f"{where}: {error.message}", **details).because(error)
    return BadEntry(number, where, told)


def unusable(number: int, where: str, why: str) -> BadEntry:
    """Return a `BadEntry` for what has not the form that it must have."""
    return bad(number, where, InvalidValueError(why))


def usable_id(name: str) -> str:
    """Return an id of another program's if it can be one here, else one made of it, always the
    same."""
    try:
        return check_id(name, "id")
    except InputError:
        return f"id-{digest(name)}"


def digest(*parts: object) -> str:
    """Return a short hash of texts and numbers, the same in every process."""
    data = msgspec.msgpack.encode(parts, enc_hook=str) if _plain(parts) else repr(parts).encode()
    return blake2b(data, digest_size=_ID_BYTES).hexdigest()


def _plain(parts: tuple[object, ...]) -> bool:
    """A lone surrogate cannot be encoded; it has a `repr`."""
    try:
        "".join(part for part in parts if isinstance(part, str)).encode()
    except UnicodeEncodeError:
        return False
    return True


def record(turn: TurnDraft, title: str, source: str, number: int) -> TurnRecord:
    """Return a turn with where it is from as its metadata."""
    metadata = {"source": source}
    if title:
        metadata["title"] = title[:MAX_TITLE_CHARS]
    known = msgspec.structs.replace(turn, metadata=metadata)
    return TurnRecord(turn.session, known, number)
