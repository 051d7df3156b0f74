"""Readers of conversation files: what is in a file becomes `TurnDraft`s, one at a time.

Two formats:

- `jsonl`: one JSON object per line, in UTF-8. `text` is required; `speaker`, `role`, `session`,
  `time`, `id` and `metadata` are optional, and null counts as absent. Any other key is kept as
  metadata under its own name. Of a file of any size, no more than one line is held in memory.
- `locomo`: one JSON document; see `locomo.py`.

Nothing here stores anything or reads a clock. Errors name the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import msgspec

from reverie import locomo
from reverie.fields import check_text, name_at, parse_time, require_utf8
from reverie.locomo import QuestionRecord, read_questions
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import (
    InputError,
    InvalidMetadataError,
    InvalidTextError,
    InvalidValueError,
)

__all__ = [
    "MAX_LINE_BYTES",
    "QuestionRecord",
    "TurnRecord",
    "count_turns",
    "parse_time",
    "read_questions",
    "read_turns",
    "sniff",
    "split_lines",
    "turn_of_line",
    "with_id",
]

Format: TypeAlias = Literal["jsonl", "locomo"]
FormatOrAuto: TypeAlias = Literal["auto", "jsonl", "locomo"]
OnError: TypeAlias = Literal["raise", "skip"]
Report: TypeAlias = Callable[[int, InputError], None]

MAX_LINE_BYTES = 10_000_000  # of a JSONL line, without its line break
_DRAIN_BYTES = 1 << 16
_BOM = b"\xef\xbb\xbf"
_TURN_KEYS = frozenset({"text", "speaker", "role", "session", "time", "id", "metadata"})

# A turn yet to be built, which may fail: its line, its conversation, and how to make it.
_Pending: TypeAlias = tuple[int, str, Callable[[], TurnDraft]]


class TurnRecord(msgspec.Struct, frozen=True):
    """A turn and where it was found.

    `conversation` is a name for the whole talk, meant as a world or user id: the `sample_id` of
    LoCoMo, the file's name without suffix of JSONL. `line` is the line in a JSONL file, and the
    running number of the turn in a LoCoMo file; both count from 1.
    """

    conversation: str
    turn: TurnDraft
    line: int


def read_turns(
    path: str | Path,
    *,
    format: FormatOrAuto = "auto",  # noqa: A002 (reads well at the call)
    on_error: OnError = "raise",
    on_skip: Report | None = None,
) -> Iterator[TurnRecord]:
    """Read the turns of a conversation file in order.

    JSONL: a turn without a speaker is the owner's, unless its role says otherwise. LoCoMo: both
    speakers keep their names, so neither is the owner; the turns of a session share its date.

    Args:
        path: the file.
        format: "auto" asks `sniff`.
        on_error: "raise" stops at the first turn that cannot be used, "skip" leaves it out. A
            file that cannot be read, or a LoCoMo file that is no such document, always raises.
        on_skip: called with the line (as in `TurnRecord`) and the error of each turn left out.

    Raises:
        InvalidValueError: the arguments, the file, or its JSON. Arguments are checked, and the
            format is found, before the first turn is asked for.
        InvalidTextError: not UTF-8, or a text that is missing, blank or no proper text. A file that
            begins with the mark of another encoding always raises.
        InvalidTimeError, InvalidIdError, InvalidMetadataError: that part of a turn.
            Errors about the content have the attributes `file` and `line`.
    """
    if on_error not in ("raise", "skip"):
        msg = f"on_error is 'raise' or 'skip', not {on_error!r}"
        raise InvalidValueError(msg)
    path = Path(path)
    find = _jsonl_turns if _format_of(path, format) == "jsonl" else _locomo_turns
    return _built(path, find(path), on_error, on_skip)


def count_turns(
    path: str | Path,
    *,
    format: FormatOrAuto = "auto",  # noqa: A002 (as `read_turns`)
) -> int:
    """Return how many turns `read_turns` will meet, those that it would skip included.

    JSONL lines are counted without being parsed. Raises as `read_turns` does for the file.
    """
    path = Path(path)
    if _format_of(path, format) == "jsonl":
        return sum(1 for _ in _lines(path))
    return sum(len(session.turns) for s in locomo.load(path) for session in s.sessions)


def sniff(path: str | Path) -> Format:
    """Tell the format of a file by its suffix (`.jsonl`, `.ndjson`), else by how it begins.

    An empty file is JSONL without turns.

    Raises:
        InvalidValueError: the file cannot be read, or begins like neither format.
        InvalidTextError: it begins with the mark of another encoding than UTF-8.
    """
    path = Path(path)
    number, first = next(_lines(path), (1, b""))
    if path.suffix.lower() in {".jsonl", ".ndjson"} or first == b"":
        return "jsonl"
    if first is None:  # over the limit of a JSONL line, but LoCoMo may be all on one line
        return "locomo"
    if first.lstrip().startswith(b"["):
        return "locomo"
    if not first.lstrip().startswith(b"{"):
        msg = f"{path}, line {number}: begins like neither JSONL nor LoCoMo; pass format= to insist"
        raise InvalidValueError(msg, file=str(path), line=number)
    try:
        value = msgspec.json.decode(first)
    except (msgspec.MsgspecError, RecursionError):
        return "locomo"  # an object that goes on after its first line
    return "locomo" if isinstance(value.get("conversation"), dict) else "jsonl"


def _built(
    path: Path, pending: Iterator[_Pending], on_error: OnError, on_skip: Report | None
) -> Iterator[TurnRecord]:
    """Build each turn; give its error the place, then raise it or report it."""
    for line, conversation, build in pending:
        try:
            turn = build()
        except InputError as exc:
            where = {**exc.details, "file": str(path), "line": line}
            error = type(exc)(f"{path}, line {line}: {exc.message}", **where).because(exc)
            if on_error == "raise":
                raise error from exc
            if on_skip is not None:
                on_skip(line, error)
        else:
            yield TurnRecord(conversation, turn, line)


def _format_of(path: Path, name: FormatOrAuto) -> Format:
    if name == "auto":
        return sniff(path)
    if name not in ("jsonl", "locomo"):
        msg = f"format is 'auto', 'jsonl' or 'locomo', not {name!r}"
        raise InvalidValueError(msg)
    return name


def _locomo_turns(path: Path) -> Iterator[_Pending]:
    line = 0
    for sample in locomo.load(path):
        for session in sample.sessions:
            for turn in session.turns:
                line += 1
                yield line, sample.name, partial(locomo.turn_of, turn, session)


def _jsonl_turns(path: Path) -> Iterator[_Pending]:
    for line, raw in _lines(path):
        yield line, path.stem, partial(turn_of_line, raw)


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield (line number, bytes) of each line that is not blank; None for one over the limit."""
    try:
        with path.open("rb") as file:
            require_utf8(file.peek(4), str(path))
            yield from split_lines(file)
    except InputError:
        raise
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        msg = f"{path} cannot be read: {exc}"
        raise InvalidValueError(msg, file=str(path)).because(exc) from exc


def split_lines(file: BinaryIO, *, keep_blank: bool = False) -> Iterator[tuple[int, bytes | None]]:
    """Yield (line number, bytes) of each line of an open file that is not blank (or of all, with
    `keep_blank`), with its line break; None for one over `MAX_LINE_BYTES`."""
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while (rest := file.readline(_DRAIN_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, None
            continue
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if keep_blank or line.strip():
            yield number, line


def turn_of_line(raw: bytes | None) -> TurnDraft:
    """Return the turn of a JSONL line; None stands for one that is too long.

    Raises:
        InvalidValueError, InvalidTextError, InvalidTimeError, InvalidIdError, InvalidMetadataError:
            the line, or that part of it.
    """
    if raw is None:
        msg = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
        raise InvalidValueError(msg)
    try:
        raw.decode()  # apart from the JSON, which would not say that it is the encoding
        value = msgspec.json.decode(raw)
    except UnicodeDecodeError as exc:
        msg = f"not UTF-8 (byte {exc.start + 1} of the line); save the file as UTF-8"
        raise InvalidTextError(msg).because(exc) from exc
    except (msgspec.MsgspecError, RecursionError) as exc:
        msg = f"not a JSON value: {exc}"
        raise InvalidValueError(msg).because(exc) from exc
    if not isinstance(value, dict):
        msg = f"a line holds one JSON object, this one a {type(value).__name__}"
        raise InvalidValueError(msg)
    return _turn_of_object({key: item for key, item in value.items() if item is not None})


def _turn_of_object(value: dict[str, Any]) -> TurnDraft:
    speaker = name_at(value, "speaker")
    role = name_at(value, "role") or ("assistant" if speaker == "assistant" else "user")
    if speaker is None and role != "user":
        speaker = role  # without a name it would count as the owner's
    return TurnDraft(
        text=check_text(value.get("text")),
        session=name_at(value, "session") or "default",
        speaker=speaker,
        role=role,
        said_at=parse_time(value["time"]) if "time" in value else None,
        external_id=name_at(value, "id"),
        metadata=_metadata(value) or None,
    )


def _metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Return the given metadata and the keys that have no meaning here, as one mapping."""
    given = value.get("metadata", {})
    if not isinstance(given, dict):
        msg = f"'metadata' is a {type(given).__name__}, not an object"
        raise InvalidMetadataError(msg)
    others = {key: item for key, item in value.items() if key not in _TURN_KEYS}
    if twice := sorted(given.keys() & others.keys()):
        msg = f"'metadata' and the line itself both hold {', '.join(twice)}"
        raise InvalidMetadataError(msg)
    return {**given, **others}


def with_id(record: TurnRecord) -> TurnRecord:
    """Give a turn without an id one that it has again when the file is read again."""
    turn = record.turn
    if turn.external_id is not None:
        return record
    content = blake2b(msgspec.msgpack.encode(turn), digest_size=8).hexdigest()
    made = msgspec.structs.replace(turn, external_id=f"line-{record.line}-{content}")
    return msgspec.structs.replace(record, turn=made)
