"""Reader of files in the shape of the LoCoMo benchmark: dated sessions, turns and questions.

The format is that of snap-research/locomo (Maharana et al., 2024): a list of samples, each with
`sample_id`, `conversation` (`speaker_a`, `speaker_b`, `session_1`, `session_1_date_time`, ...) and
`qa`. A sample alone is read too. A file is held in memory as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from reverie.fields import check_text, name_at
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import (
    InvalidIdError,
    InvalidTextError,
    InvalidTimeError,
    InvalidValueError,
)
from reverie.memory_graph.ids import check_id

MAX_DOCUMENT_BYTES = 256_000_000  # the published file has 2.8 MB

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d\d)\s*([ap])\.?m\.? on (\d{1,2}) ([a-z]+),? (\d{4})")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)


class QuestionRecord(msgspec.Struct, frozen=True):
    """A question about a conversation.

    `number` is its place in its conversation, from 0. `category` is as in the file: 1 multi-hop,
    2 temporal, 3 open-domain, 4 single-hop, 5 adversarial (no answer). `evidence` holds ids of
    turns of the conversation (their `external_id`), and may be empty.
    """

    conversation: str
    number: int
    question: str
    category: int
    evidence: tuple[str, ...]
    answer: str | None


class Session(msgspec.Struct, frozen=True):
    """A session as it stands in the file; its turns are not checked yet."""

    name: str
    date: object
    turns: list[object]


class Sample(msgspec.Struct, frozen=True):
    """A conversation; sessions are in the order of their numbers, questions are not checked."""

    name: str
    sessions: list[Session]
    questions: list[object]


def read_questions(path: str | Path) -> Iterator[QuestionRecord]:
    """Read the questions of a LoCoMo file, adversarial ones and those without evidence included.

    Evidence is repaired: ids run together in one string ("D8:6; D9:17") are split, "D:11:26" and
    "D30:05" become "D11:26" and "D30:5", repeated ids and ids of no turn are dropped.

    Raises:
        InvalidValueError: the file, its JSON, or a question without text or category.
        InvalidTextError: not UTF-8.
    """
    for sample in load(Path(path)):
        turns = (turn for session in sample.sessions for turn in session.turns)
        known = {str(turn.get("dia_id")) for turn in turns if isinstance(turn, dict)}
        for number, raw in enumerate(sample.questions):
            qa = raw if isinstance(raw, dict) else {}
            question, category, answer = qa.get("question"), qa.get("category"), qa.get("answer")
            if not isinstance(question, str) or not isinstance(category, int):
                msg = f"{path}: question {number} of {sample.name} has no text or no category"
                raise InvalidValueError(msg, file=str(path))
            yield QuestionRecord(
                conversation=sample.name,
                number=number,
                question=question,
                category=category,
                evidence=_evidence(qa.get("evidence"), known),
                answer=None if answer is None else str(answer),
            )


def turn_of(turn: object, session: Session) -> TurnDraft:
    """Return the draft of one raw turn; the caption of its image follows the text.

    Raises:
        InvalidValueError, InvalidTextError, InvalidTimeError, InvalidIdError: the turn, its text,
            the date of its session, its speaker or id.
    """
    if not isinstance(turn, dict):
        msg = f"a turn is a JSON object, not a {type(turn).__name__}"
        raise InvalidValueError(msg)
    text, caption = turn.get("text"), turn.get("blip_caption")
    if isinstance(caption, list):
        caption = "; ".join(str(part) for part in caption)
    if caption and (text is None or isinstance(text, str)):
        text = f"{text or ''} [shared image: {caption}]".lstrip()
    return TurnDraft(
        text=check_text(text),
        session=session.name,
        speaker=check_id(turn.get("speaker"), "speaker"),
        said_at=_date_seconds(session.date),
        external_id=name_at(turn, "dia_id"),
    )


def load(path: Path) -> list[Sample]:
    """Load a whole file. A number with a date but no turns makes no session.

    Raises:
        InvalidValueError, InvalidTextError: as `read_questions`, with `file` and often `line`.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        msg = f"{path} cannot be read: {exc}"
        raise InvalidValueError(msg, file=str(path)).because(exc) from exc
    if len(raw) > MAX_DOCUMENT_BYTES:
        msg = f"{path} is longer than {MAX_DOCUMENT_BYTES:,} bytes"
        raise InvalidValueError(msg, file=str(path))
    value = _decode(path, raw)
    samples = value if isinstance(value, list) else [value]
    return [_sample(path, sample, place) for place, sample in enumerate(samples, 1)]


def _decode(path: Path, raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        msg = f"{path}, line {line}: not UTF-8; save the file as UTF-8"
        raise InvalidTextError(msg, file=str(path), line=line).because(exc) from exc
    except (ValueError, RecursionError) as exc:
        line = exc.lineno if isinstance(exc, json.JSONDecodeError) else 1
        msg = f"{path}, line {line}: no JSON document: {exc}"
        raise InvalidValueError(msg, file=str(path), line=line).because(exc) from exc


def _sample(path: Path, raw: object, place: int) -> Sample:
    conversation = raw.get("conversation") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(conversation, dict):
        msg = f"{path}: sample {place} has no 'conversation' object"
        raise InvalidValueError(msg, file=str(path))
    try:
        name = name_at(raw, "sample_id") or f"{path.stem}-{place}"
    except InvalidIdError as exc:
        msg = f"{path}: sample {place}: {exc.message}"
        raise InvalidValueError(msg, file=str(path)).because(exc) from exc
    found: dict[int, Session] = {}
    for key, turns in conversation.items():
        if (number := _SESSION.fullmatch(key)) and turns is not None:
            if not isinstance(turns, list):
                msg = f"{path}: {key} of {name} is a {type(turns).__name__}, not a list of turns"
                raise InvalidValueError(msg, file=str(path))
            found[int(number[1])] = Session(key, conversation.get(f"{key}_date_time"), turns)
    questions = raw.get("qa") or []
    if not isinstance(questions, list):
        msg = f"{path}: 'qa' of {name} is a {type(questions).__name__}, not a list"
        raise InvalidValueError(msg, file=str(path))
    return Sample(name, [found[number] for number in sorted(found)], questions)


def _evidence(raw: object, known: set[str]) -> tuple[str, ...]:
    """Return the ids named in `raw`, a string or a list of strings, that are in `known`, once."""
    parts = raw if isinstance(raw, list) else [raw]
    pairs = (pair for part in parts for pair in _EVIDENCE.findall(str(part)))
    ids = (f"D{int(session)}:{int(turn)}" for session, turn in pairs)
    return tuple(dict.fromkeys(i for i in ids if i in known))


def _date_seconds(date: object) -> float:
    """Return the UTC seconds of a date like "1:56 pm on 8 May, 2023", whatever the locale."""
    found = _DATE.fullmatch(str(date).strip().lower())
    try:
        if found:
            return _moment(found).timestamp()
    except ValueError:
        pass  # 30 February, 13 pm, a word that is no month
    msg = f"the session's date is {date!r}, no date like '1:56 pm on 8 May, 2023'"
    raise InvalidTimeError(msg)


def _moment(found: re.Match[str]) -> datetime:
    hour, minute, half, day, month, year = found.groups()
    hour_of_day = (12, *range(1, 12)).index(int(hour)) + (12 if half == "p" else 0)
    month_number = _MONTHS.index(month) + 1
    return datetime(int(year), month_number, int(day), hour_of_day, int(minute), tzinfo=UTC)
