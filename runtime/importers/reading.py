"""`read` and `sniff`: a file of any of the formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from zoneinfo import ZoneInfo

import msgspec

from reverie.formats import TurnRecord
from reverie.importers import chatgpt, claude, jsonl, markdown, whatsapp
from reverie.importers.elements import elements
from reverie.importers.messages import conversations
from reverie.importers.records import BadEntry, DateOrder, Entry, Options, Progress, bad
from reverie.importers.sources import Member, chunks, members, told
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InputError, InvalidValueError
from reverie.memory_graph.ids import check_id

FormatName: TypeAlias = Literal["chatgpt", "claude", "whatsapp", "jsonl", "markdown"]
FORMATS: tuple[FormatName, ...] = get_args(FormatName)
OWNER = "user"  # in a map of speakers: the owner of the memory


class _Format(NamedTuple):
    read: Callable[[Member, Any, Options], Iterator[Entry]]
    names: re.Pattern[str]  # of the members of a zip
    what: str


_READERS: dict[str, _Format] = {
    "chatgpt": _Format(
        partial(conversations, turns_of=chatgpt.turns_of), chatgpt.NAME, "conversations.json"
    ),
    "claude": _Format(
        partial(conversations, turns_of=claude.turns_of), claude.NAME, "conversations.json"
    ),
    "whatsapp": _Format(whatsapp.read, whatsapp.NAME, ".txt file"),
    "jsonl": _Format(jsonl.read, re.compile(r"(?is).*\.(jsonl|ndjson)"), ".jsonl file"),
    "markdown": _Format(markdown.read, re.compile(r"(?is).*\.(md|markdown)"), ".md file"),
}


def read(
    path: str | Path,
    *,
    format: FormatName | Literal["auto"] = "auto",  # noqa: A002 (reads well at the call)
    speakers: Mapping[str, str] | None = None,
    timezone: str | tzinfo = UTC,
    date_order: DateOrder = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
) -> Iterator[Entry]:
    """Read the turns of an exported file in order; see the package for the formats.

    Turns have the ids of the export, else ids made of their place and content, so that what is
    stored of a file once is known again. Their `session` is the conversation, whose title is in
    the metadata. `TurnRecord.line` is the line, or the number of the conversation in a JSON export.

    Args:
        path: the file, or the .zip that holds it.
        format: "auto" asks `sniff`.
        speakers: other names for some speakers; "user" is the owner of the memory.
        timezone: of times that name none, as "Asia/Shanghai".
        date_order: of the dates of a WhatsApp chat; "auto" finds it out.
        options: takes what is left out, and replaces `timezone` and `date_order`.
        progress: called with (bytes read, bytes in all).

    Yields:
        A `TurnRecord`, or a `BadEntry` for what cannot be used.

    Raises:
        InvalidValueError: the arguments, or the file cannot be read, before the first entry is
            asked for; at the end, when nothing in it could be used.
    """
    path = Path(path)
    if options is None:
        options = Options(zone(timezone), checked_order(date_order))
    names = _checked_speakers(speakers)
    name = sniff(path) if format == "auto" else format
    if name not in _READERS:
        msg = f"format is one of {', '.join(FORMATS)} or auto, not {name!r}"
        raise InvalidValueError(msg)
    kind = _READERS[name]
    found = members(path, lambda one: kind.names.fullmatch(one) is not None, kind.what)
    return _entries(path, name, found, options, names, progress)


def _entries(
    path: Path,
    name: str,
    found: list[Member],
    options: Options,
    speakers: Mapping[str, str],
    progress: Progress | None,
) -> Iterator[Entry]:
    turns, first = 0, None
    tell = told(progress, sum(member.size_bytes for member in found))
    for member in found:
        for entry in _guarded(name, member, options, tell):
            if isinstance(entry, BadEntry):
                first = entry if first is None else first
                yield entry
            else:
                turns += 1
                yield _renamed(entry, speakers)
    left_out = options.left_out.total()
    if not turns and (first is not None or (left_out and name in {"whatsapp", "markdown"})):
        why = "no line begins a turn" if first is None else first.error.message
        msg = f"{path}: nothing in it can be read as {name}: {why}"
        raise InvalidValueError(msg, file=str(path))


def _guarded(
    name: str, member: Member, options: Options, tell: Callable[[int], None] | None
) -> Iterator[Entry]:
    """Yield the entries of a file; a fault of the file itself ends it, and is the last of them."""
    last = 0
    try:
        with member.open(tell) as file:
            for entry in _READERS[name].read(member, file, options):
                last = entry.number if isinstance(entry, BadEntry) else entry.line
                yield entry
    except InputError as exc:
        yield bad(last + 1, f"{member.name}, after entry {last}", exc)


def _renamed(found: TurnRecord, speakers: Mapping[str, str]) -> TurnRecord:
    turn = found.turn
    own = turn.speaker or ("user" if turn.role == "user" else turn.role)
    if (new := speakers.get(own)) is None:
        return found
    changed: TurnDraft = msgspec.structs.replace(
        turn, speaker=None if new == OWNER else new, role="user" if new == OWNER else turn.role
    )
    return msgspec.structs.replace(found, turn=changed)


def sniff(path: str | Path) -> FormatName:
    """Tell the format of a file by its name and how it begins.

    Raises:
        InvalidValueError: it cannot be read, or is like none of them.
        InvalidTextError: it begins with the mark of another encoding than UTF-8.
    """
    path = Path(path)
    every = [n for n in FORMATS if n != "claude"]  # named as those of ChatGPT

    def is_known(name: str) -> bool:
        return any(_READERS[n].names.fullmatch(name) for n in every)

    found = members(path, is_known, "file of a known format")
    if len(found) > 1:  # what stands beside the conversations of an export
        named = [m for m in found if chatgpt.NAME.fullmatch(m.name)]
        found = named or found
    member = found[0]
    suffix = Path(member.name).suffix.lower()
    if suffix in {".jsonl", ".ndjson"}:
        return "jsonl"
    if suffix in {".md", ".markdown"}:
        return "markdown"
    with member.open() as file:
        begin = file.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()
        if begin[:1] in {b"[", b"{"} and suffix != ".txt":
            return _json_format(path, file)
        if whatsapp.looks_so(file):
            return "whatsapp"
    with member.open() as file:
        if markdown.looks_so(file):
            return "markdown"
    msg = f"{path}: begins like none of {', '.join(FORMATS)}; pass format= to insist"
    raise InvalidValueError(msg, file=str(path))


def _json_format(path: Path, file: Any) -> FormatName:
    for element in elements(chunks(file)):
        try:
            keys = msgspec.json.decode(element.data, type=dict[str, msgspec.Raw]).keys()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if "mapping" in keys:
            return "chatgpt"
        if "chat_messages" in keys:
            return "claude"
        if "text" in keys:
            return "jsonl"
    msg = f"{path}: no conversation of a known export is in it; pass format= to insist"
    raise InvalidValueError(msg, file=str(path))


def zone(name: str | tzinfo) -> tzinfo:
    """Return a time zone by its name; raises InvalidValueError."""
    if isinstance(name, tzinfo):
        return name
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError) as exc:
        msg = f"there is no time zone {name!r:.80}; write one as Europe/Berlin or UTC"
        raise InvalidValueError(msg).because(exc) from exc


def checked_order(order: object) -> DateOrder:
    """Return an order of dates; raises InvalidValueError."""
    for known in get_args(DateOrder):
        if order == known:
            return known  # type: ignore[no-any-return]  # one of the names
    msg = f"date_order is one of {', '.join(get_args(DateOrder))}, not {order!r:.80}"
    raise InvalidValueError(msg)


def _checked_speakers(given: object) -> Mapping[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        msg = f"speakers is a mapping of names, not a {type(given).__name__}"
        raise InvalidValueError(msg)
    return {check_id(old, "speaker"): check_id(new, "speaker") for old, new in given.items()}
