"""The door: every argument of the public API is checked here, once, before anything is stored."""

from __future__ import annotations

import math
import os
import reprlib
import sys
from collections.abc import Iterable, Mapping, MappingView, Sequence, Set as AbstractSet
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from reverie.fields import check_text, parse_time
from reverie.memory_graph.drafts import EntityDraft, MemoryDraft, RelationDraft, TurnDraft
from reverie.memory_graph.errors import (
    FilterError,
    InvalidIdError,
    InvalidLimitError,
    InvalidMetadataError,
    InvalidTextError,
    InvalidTimeError,
    InvalidValueError,
    shown,
)
from reverie.memory_graph.filters import check_filter
from reverie.memory_graph.ids import check_id
from reverie.memory_graph.nodes import MEMORY_KINDS
from reverie.memory_graph.text import name_key
from reverie.models.protocol import ENTITY_TYPES

Message: TypeAlias = str | Mapping[str, Any] | TurnDraft
Messages: TypeAlias = Message | Sequence[Message]

MAX_LIMIT = 10_000
MAX_TURNS = 10_000  # of one call, which is one transaction
MAX_TAGS = 64
MAX_METADATA_BYTES = 16 * 1024
MAX_LEVELS = 16  # of nesting in metadata and filters
TYPES = ("memory", "message", "summary")
# Keys that say who owns a memory. Metadata that tries to set them is an attack or a mistake.
RESERVED = frozenset({"user", "user_id", "world", "world_id", "tenant", "namespace", "owner"})
_MESSAGE_KEYS = frozenset(
    {"text", "content", "role", "speaker", "name", "time", "at", "id", "session", "metadata"}
)


def text(value: object, max_bytes: int) -> str:
    """Return a text to keep; raises InvalidTextError (blank, NUL, surrogates, too long)."""
    if isinstance(value, str) and len(value) > max_bytes:  # before encoding 10 MB for nothing
        _too_long(len(value), max_bytes)
    checked = check_text(value)
    if (size := len(checked.encode())) > max_bytes:
        _too_long(size, max_bytes)
    return checked


def _too_long(size: int, max_bytes: int) -> None:
    msg = (
        f"a text of {size:,} bytes is over the limit of {max_bytes:,}; "
        "split it, or raise max_text_bytes"
    )
    raise InvalidTextError(msg, size_bytes=size, max_bytes=max_bytes)


def question(value: object) -> str:
    """Return a question; raises InvalidTextError. Over-long ones are cut by the search."""
    return text(value, 1024 * 1024)


def time(value: object, what: str = "time") -> float:
    """Return seconds; takes numbers, ISO 8601 and datetimes. Raises InvalidTimeError."""
    try:
        return parse_time(value)
    except InvalidTimeError as exc:
        msg = f"{what}: {exc.message}"
        raise InvalidTimeError(msg) from None


def optional_time(value: object, what: str) -> float | None:
    """Return seconds or None; raises InvalidTimeError."""
    return None if value is None else time(value, what)


def limit(value: object, what: str = "limit", most: int = MAX_LIMIT) -> int:
    """Return a whole number of 1 to `most`; raises InvalidLimitError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        msg = f"{what} must be a whole number from 1 to {most:,}, not {shown(value)}"
        raise InvalidLimitError(msg, what=what)
    return value


def share(value: object, what: str, low: float = 0.0, high: float = 1.0) -> float:
    """Return a number of `low` to `high`; raises InvalidValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        msg = f"{what} must be a number from {low:g} to {high:g}, not {shown(value)}"
        raise InvalidValueError(msg, what=what)
    return float(value)


def flag(value: object, what: str) -> bool:
    """Return a bool; raises InvalidValueError. "no" and 0.0 are none: what they mean is a guess."""
    if not isinstance(value, bool):
        msg = f"{what} must be True or False, not {shown(value)}"
        raise InvalidValueError(msg, what=what)
    return value


def path(value: object, what: str = "path") -> Path:
    """Return the path of a file; raises InvalidValueError for what can be none."""
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    try:
        if not isinstance(name, str) or not name or b"\0" in os.fsencode(name):
            name = None
    except ValueError:  # a lone surrogate
        name = None
    if name is None:
        msg = f"{what} must be the path of a file, a text or a Path, not {shown(value)}"
        raise InvalidValueError(msg, what=what)
    return Path(name)


def one_of(value: object, what: str, words: Sequence[str]) -> str:
    """Return one of `words`; raises InvalidValueError."""
    if value not in words:
        msg = f"{what} must be one of {', '.join(words)}, not {shown(value)}"
        raise InvalidValueError(msg, what=what)
    return str(value)


def kind(value: object) -> Any:
    """Return a kind of memory; raises InvalidValueError."""
    return one_of(value, "kind", MEMORY_KINDS)


def duration(value: object, what: str, unit: str = "seconds") -> float:
    """Return a positive, finite number of a unit of time; raises InvalidTimeError."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= sys.float_info.max
    ):
        msg = f"{what} must be a positive number of {unit}, not {shown(value)}"
        raise InvalidTimeError(msg, what=what)
    return float(value)


def metadata(value: object) -> dict[str, Any] | None:
    """Return metadata as a plain mapping, or None.

    Raises:
        InvalidMetadataError: not a mapping with text keys; a value that is not JSON; over 16 KiB;
            a reserved key such as user_id or world.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        msg = "metadata must be a mapping with text keys"
        raise InvalidMetadataError(msg)
    if taken := sorted(k for k in value if k.casefold() in RESERVED):
        msg = f"metadata may not set {', '.join(taken)}: the owner of a memory is never metadata"
        raise InvalidMetadataError(msg, keys=taken)
    try:
        plain: dict[str, Any] = json_value(value)
        size = len(msgspec.json.encode(plain))
    except ValueError as exc:
        msg = f"metadata must hold JSON values only: {exc}"
        raise InvalidMetadataError(msg) from None
    if size > MAX_METADATA_BYTES:
        msg = f"metadata has {size:,} bytes of JSON; at most {MAX_METADATA_BYTES:,}"
        raise InvalidMetadataError(msg)
    return plain or None


def json_value(value: object, levels: int = MAX_LEVELS) -> Any:
    """Return a copy of a JSON value, of plain dictionaries and lists.

    Raises:
        ValueError: something that JSON cannot tell exactly (NaN, bytes, an integer over 64 bits,
            a key that is no text, a lone surrogate), or more than `levels` levels.
    """
    if levels < 0:
        msg = f"nested over {MAX_LEVELS} levels deep"
        raise ValueError(msg)
    match value:
        case None | bool():
            return value
        case str():
            value.encode()  # raises UnicodeEncodeError, a ValueError
            return str(value)
        case int() if -(2**63) <= value < 2**63:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case list() | tuple():
            return [json_value(item, levels - 1) for item in value]
        case Mapping() if all(isinstance(key, str) for key in value):
            items = value.items()
            return {json_value(key): json_value(item, levels - 1) for key, item in items}
        case _:
            msg = f"{type(value).__name__} {reprlib.repr(value)} is none"
            raise ValueError(msg)


def tags(value: object) -> tuple[str, ...]:
    """Return tags without repetition; raises InvalidValueError or InvalidIdError."""
    found = tuple(dict.fromkeys(texts(value, "tags")))
    if len(found) > MAX_TAGS:
        msg = f"{len(found)} tags; at most {MAX_TAGS} are allowed"
        raise InvalidValueError(msg, what="tags")
    return found


def items(value: object, what: str, of: str = "texts") -> Iterable[Any]:
    """Return `value` if it gives its items in an order of their own.

    The order of a set of texts differs from process to process, and that of what is given gets
    into ids and digests.

    Raises:
        InvalidValueError: a text, bytes, a mapping or a view of one, a set, or nothing iterable.
    """
    if isinstance(value, AbstractSet | MappingView):
        msg = f"{what} must be a sequence of {of}: a {type(value).__name__} has no order that lasts"
        raise InvalidValueError(msg, what=what)
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        msg = f"{what} must be a sequence of {of}, not {shown(value)}"
        raise InvalidValueError(msg, what=what)
    return value


def texts(value: object, what: str, *, any_order: bool = False) -> tuple[str, ...]:
    """Return a sequence of ids or names; with `any_order`, where order means nothing, also of a
    set, sorted. Raises InvalidValueError as `items`, or InvalidIdError."""
    if any_order and isinstance(value, AbstractSet):
        return tuple(sorted(check_id(item, what) for item in value))
    return tuple(check_id(item, what) for item in items(value, what))


def name(value: object, what: str = "name") -> str:
    """Return the name of an entity or a predicate; raises InvalidIdError."""
    found = " ".join(check_id(value, what).split())
    if not name_key(found):
        msg = f"{what} holds no character that can be seen"
        raise InvalidIdError(msg, what=what)
    return found


def entity_type(value: object) -> str:
    """Return a type of entity; raises InvalidValueError."""
    return one_of(value, "entity type", ENTITY_TYPES)


def types(value: object) -> tuple[str, ...]:
    """Return types of item; raises InvalidValueError."""
    if value is None:
        return TYPES
    wanted = (value,) if isinstance(value, str) else value
    if not isinstance(wanted, Iterable):
        msg = f"types must be some of {', '.join(TYPES)}, not {value!r}"
        raise InvalidValueError(msg, what="types")
    found = tuple(dict.fromkeys(one_of(t, "types", TYPES) for t in wanted))
    if not found:
        msg = f"types is empty; leave it out or name some of {', '.join(TYPES)}"
        raise InvalidValueError(msg, what="types")
    return found


def filters(value: object) -> dict[str, Any] | None:
    """Return a filter that is well-formed; raises FilterError."""
    if value is None:
        return None
    check_filter(value)
    try:
        plain: dict[str, Any] = json_value(value, 4 * MAX_LEVELS)
    except ValueError as exc:
        msg = f"a filter must hold JSON values only: {exc}"
        raise FilterError(msg) from None
    return plain


def messages(value: object, *, session: str, at: object, max_bytes: int) -> list[TurnDraft]:
    """Return the turns that `add` was given, in order.

    Raises:
        InputError: one of them is malformed; the message says which.
    """
    one = isinstance(value, str | Mapping | TurnDraft)
    given = [value] if one else items(value, "messages", "texts and mappings")
    said_at = optional_time(at, "at")
    default = check_id(session, "session")
    few = list(islice(given, MAX_TURNS + 1))
    if len(few) > MAX_TURNS:
        msg = f"more than {MAX_TURNS:,} turns in one call: use several calls"
        raise InvalidLimitError(msg, what="messages")
    return [_message(item, default, said_at, max_bytes) for item in few]


def pairs(value: object, what: str) -> list[tuple[Any, Any]]:
    """Return a list of pairs; raises InvalidValueError."""
    found = list(items(value, what, "pairs"))
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in found):  # noqa: PLR2004
        msg = f"{what} must be pairs of two"
        raise InvalidValueError(msg, what=what)
    return [(first, second) for first, second in found]


def by_user(value: object, what: str) -> Mapping[str, Any]:
    """Return a mapping of user ids to what is theirs; raises InvalidValueError."""
    if not isinstance(value, Mapping):
        msg = f"{what} must be a mapping of user ids, not {type(value).__name__}"
        raise InvalidValueError(msg, what=what)
    return value


def _message(item: Any, session: str, said_at: float | None, max_bytes: int) -> TurnDraft:
    if isinstance(item, TurnDraft):
        fields: Mapping[str, Any] = {
            "text": item.text,
            "role": item.role,
            "speaker": item.speaker,
            "time": item.said_at,
            "id": item.external_id,
            "session": session if item.session == "default" else item.session,
            "metadata": item.metadata,
        }
    elif isinstance(item, str):
        fields = {"text": item}
    elif isinstance(item, Mapping):
        fields = item
        if unknown := sorted(str(k) for k in item if k not in _MESSAGE_KEYS):
            known = ", ".join(sorted(_MESSAGE_KEYS))
            msg = f"unknown keys in a message: {', '.join(unknown)}; known: {known}"
            raise InvalidValueError(msg, what="messages")
    else:
        msg = f"a message must be a text or a mapping, not {type(item).__name__}"
        raise InvalidValueError(msg, what="messages")
    for one, other in (("text", "content"), ("speaker", "name"), ("time", "at")):
        if fields.get(one) is not None and fields.get(other) is not None:
            msg = f"a message has both {one!r} and {other!r}, which mean the same; leave one out"
            raise InvalidValueError(msg, what="messages")
    speaker = fields.get("speaker", fields.get("name"))
    own_time = fields.get("time", fields.get("at"))
    external_id = fields.get("id")
    role = fields.get("role", "user")
    return TurnDraft(
        text=text(fields.get("text", fields.get("content")), max_bytes),
        session=session
        if fields.get("session") is None
        else check_id(fields["session"], "session"),
        speaker=None if speaker is None else name(speaker, "speaker"),
        role=check_id(role, "role"),
        said_at=said_at if own_time is None else time(own_time),
        external_id=None if external_id is None else check_id(external_id, "message id"),
        metadata=metadata(fields.get("metadata")),
    )


def entities(value: object) -> tuple[EntityDraft, ...]:
    """Return entity drafts of names or `(name, type)` pairs; raises InputError."""
    found = []
    for item in items(value, "entities", "names or (name, type) pairs"):
        if isinstance(item, EntityDraft):
            aliases = tuple(name(a, "alias") for a in texts(item.aliases, "aliases"))
            found.append(EntityDraft(name(item.name), entity_type(item.type), aliases))
        elif isinstance(item, tuple | list) and len(item) == 2:  # noqa: PLR2004 (a pair)
            found.append(EntityDraft(name(item[0]), entity_type(item[1])))
        else:
            found.append(EntityDraft(name(item)))
    return tuple(found)


def relation(draft: RelationDraft) -> RelationDraft:
    """Return a relation draft with checked names and times; raises InputError."""
    given: object = draft
    if not isinstance(given, RelationDraft):
        msg = f"a relation must be a RelationDraft, not {type(given).__name__}"
        raise InvalidValueError(msg, what="relations")
    begins = optional_time(draft.valid_from, "valid_from")
    ends = optional_time(draft.valid_to, "valid_to")
    _in_order(begins, ends)
    return msgspec.structs.replace(
        draft,
        head=name(draft.head, "head"),
        predicate=name(draft.predicate, "predicate"),
        tail=name(draft.tail, "tail"),
        valid_from=begins,
        valid_to=ends,
        confidence=share(draft.confidence, "confidence"),
        functional=flag(draft.functional, "functional"),
        ended=flag(draft.ended, "ended"),
    )


def _in_order(begins: float | None, ends: float | None) -> None:
    if begins is not None and ends is not None and ends < begins:
        msg = f"valid_to ({ends:g}) is before valid_from ({begins:g})"
        raise InvalidTimeError(msg)


def memory(given: object, max_bytes: int) -> MemoryDraft:
    """Return a memory draft (a text is one too) with every field checked; raises InputError."""
    draft = MemoryDraft(given, importance=0.7) if isinstance(given, str) else given
    if not isinstance(draft, MemoryDraft):
        msg = f"a memory must be a text or a MemoryDraft, not {type(given).__name__}"
        raise InvalidValueError(msg, what="memories")
    begins = optional_time(draft.valid_from, "valid_from")
    ends = optional_time(draft.valid_to, "valid_to")
    _in_order(begins, ends)
    return msgspec.structs.replace(
        draft,
        text=text(draft.text, max_bytes),
        kind=kind(draft.kind),
        confidence=share(draft.confidence, "confidence"),
        importance=share(draft.importance, "importance"),
        sentiment=share(draft.sentiment, "sentiment", -1.0),
        valid_from=begins,
        valid_to=ends,
        provenance=one_of(draft.provenance, "provenance", ("witnessed", "told", "inferred")),
        told_by=None if draft.told_by is None else name(draft.told_by, "told_by"),
        ttl_s=None if draft.ttl_s is None else duration(draft.ttl_s, "ttl_s"),
        tags=tags(draft.tags),
        slot=None if draft.slot is None else check_id(draft.slot, "slot"),
        pinned=flag(draft.pinned, "pinned"),
        sources=texts(draft.sources, "sources"),
        topics=tuple(name(t, "topic") for t in texts(draft.topics, "topics")),
        metadata=metadata(draft.metadata),
        entities=entities(draft.entities),
        relations=tuple(relation(r) for r in items(draft.relations, "relations", "drafts")),
    )
