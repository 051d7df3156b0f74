"""What the exports of chat programs have in common: parts of JSON that may be anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from reverie.fields import check_text, parse_time
from reverie.importers.elements import Element, elements
from reverie.importers.records import BadEntry, Entry, Options, bad, record, unusable
from reverie.importers.sources import Member, chunks
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InputError, InvalidTimeError, InvalidValueError

# What a format makes of a conversation: of its number, its place for people, and its fields.
TurnsOf: TypeAlias = Callable[[int, str, dict[str, Any], Options], Iterator[Entry]]

_SHOWN = 60  # characters of an id in a message


class Conversation:
    """One conversation of an export, whose messages become turns.

    Attributes:
        number: in its file, from 1.
        where: for people.
        session: its id.
        title: as its owner sees it; may be empty.
        source: the name of the format.
        options: how files are read; what is left out is counted there.
    """

    def __init__(
        self,
        number: int,
        where: str,
        *,
        session: str,
        title: str,
        source: str,
        options: Options,
    ) -> None:
        self.number = number
        self.where = where
        self.session = session
        self.title = title
        self.source = source
        self.options = options
        self._last_at: float | None = None

    def leave_out(self, what: str) -> None:
        """Count something that is no turn."""
        self.options.left_out[what] += 1

    def at(self, value: object) -> float | None:
        """Return a time of a message; where there is none, or none that can be read, that of the
        one before, and of the first that of the conversation."""
        if value is not None:
            try:
                self._last_at = parse_time(value)
            except InvalidTimeError:
                self.leave_out("times that cannot be read")
        return self._last_at

    def turn(self, text: str, role: str, said_at: float | None, message_id: str) -> Entry:
        """Return the turn of a message, known by the id of its conversation and its own."""
        try:
            draft = TurnDraft(
                text=check_text(text),
                session=self.session,
                speaker=None if role == "user" else role,
                role=role,
                said_at=said_at,
                external_id=message_id,
            )
        except InputError as exc:
            return bad(self.number, self.place(message_id), exc)
        return record(draft, self.title, self.source, self.number)

    def unusable(self, message_id: str, why: str) -> BadEntry:
        """Return the entry of a message that has not the form that it must have."""
        return unusable(self.number, self.place(message_id), why)

    def place(self, message_id: str) -> str:
        """Return where a message stands, for people."""
        return f"{self.where}, message {message_id[:_SHOWN]}"


def conversations(
    member: Member, file: Any, options: Options, *, turns_of: TurnsOf
) -> Iterator[Entry]:
    """Yield the turns of an export in order, conversation by conversation."""
    for element in elements(chunks(file)):
        where = f"{member.name}, conversation {element.number}"
        try:
            fields = _object(element)
        except InvalidValueError as exc:
            yield bad(element.number, where, exc)
        else:
            yield from turns_of(element.number, where, fields, options)


def _object(element: Element) -> dict[str, Any]:
    if element.fault:
        raise InvalidValueError(element.fault)
    found = decoded(element.data)
    if not isinstance(found, dict):
        msg = f"it is no JSON object, but a {type(found).__name__}"
        raise InvalidValueError(msg)
    return found


def decoded(data: bytes) -> Any:
    """Return a JSON value. Bytes that are no UTF-8, and escapes of half a character, become lone
    surrogates: so they cost the text alone in which they stand, for that is checked later.

    Raises:
        InvalidValueError: it is broken, or nested too deeply.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        try:
            return json.loads(data.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError) as exc:
            msg = f"no JSON value: {exc}"
            raise InvalidValueError(msg).because(exc) from exc
    except RecursionError as exc:
        msg = "it is nested too deeply"
        raise InvalidValueError(msg).because(exc) from exc


def text_or(value: object, default: str = "") -> str:
    """Return a text, `default` where it is something else or has no UTF-8."""
    if not isinstance(value, str):
        return default
    try:
        value.encode()
    except UnicodeEncodeError:
        return default
    return value
