"""Markdown logs: lines of speakers under headings.

    # 2024-05-01 Lunch
    **Ana:** I have moved to Oslo.
    **Bo** (18:30): Since when?

    ## 2024年5月2日
    **小明：** 我也搬家了。

A heading with a date begins a conversation of its own, and gives its turns their day; any other
heading names what follows. A line of a speaker is `**Ana:** text` or, in a file without such lines,
`Ana: text`; a time may stand before the name or after it. Other lines go on with the turn above.
"User", "Human" and "用户" are the owner of the memory, "Assistant" and the like the assistant.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import date, datetime
from functools import partial

from reverie.fields import check_text
from reverie.importers.lines import OpenTurn, text_lines
from reverie.importers.records import Entry, Options, bad, digest, usable_id
from reverie.importers.sources import Member
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import InvalidTextError, InvalidTimeError

OWNERS = frozenset({"user", "human", "用户", "用戶", "人类"})
ASSISTANTS = frozenset({"assistant", "ai", "bot", "chatgpt", "claude", "助手", "助理"})
_CLOCK = r"[\[(（]?(?P<{0}>\d{{1,2}}:\d{{2}}(?::\d{{2}})?)[\])）]?"
_BEFORE, _AFTER, _HEADED = (_CLOCK.format(name) for name in ("before", "after", "headed"))
_NAME = r"(?P<name>[^\s*:：#>\[\]()（）][^*:：\n]{0,59}?)"
_BOLD = re.compile(
    rf"\s{{0,3}}(?:[-+*]\s+)?(?:{_BEFORE}\s+)?\*\*{_NAME}\s*"
    rf"(?:[:：]\s*\*\*|\*\*\s*(?:{_AFTER}\s*)?[:：])\s*(?P<text>.*)",
    re.DOTALL,
)
_PLAIN = re.compile(
    rf"\s{{0,3}}(?:[-+*]\s+)?(?:{_BEFORE}\s+)?{_NAME}\s*(?:[(（\[]{_AFTER}\s*)?"
    rf"(?::(?:\s|$)|：)\s*(?P<text>.*)",
    re.DOTALL,
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(?P<text>.*?)\s*#*\s*")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = "(?:" + "|".join(_MONTHS) + r")[a-z]*\.?"
_ORDINAL = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_DAYS = (
    re.compile(
        r"(?<!\d)(?P<y>\d{4})\s?[-/.年]\s?(?P<m>\d{1,2})\s?[-/.月]\s?(?P<d>\d{1,2})(?!\d)日?"
    ),
    re.compile(rf"\b(?P<month>{_MONTH})\s+{_ORDINAL},?\s+(?P<y>\d{{4}})\b", re.IGNORECASE),
    re.compile(rf"\b{_ORDINAL}\s+(?P<month>{_MONTH}),?\s+(?P<y>\d{{4}})\b", re.IGNORECASE),
)
_HEADED_TIME = re.compile(rf"\s*(?:,|T|at)?\s*{_HEADED}(?!\d)")
_MAX_HEADING_CHARS = 500


def read(member: Member, file: io.BufferedReader, options: Options) -> Iterator[Entry]:
    """Yield the turns of a log in order."""
    log = _Log(member, options, _BOLD if _is_bold(member) else _PLAIN)
    for number, line in text_lines(file):
        yield from log.take(number, line)
    yield from log.end()


def looks_so(file: io.BufferedReader) -> bool:
    """Whether a text has a line of a speaker in bold."""
    return any(isinstance(line, str) and _BOLD.match(line[:200]) for _, line in text_lines(file))


def _is_bold(member: Member) -> bool:
    with member.open() as file:
        return looks_so(file)


def heading_day(text: str) -> tuple[date | None, str]:
    """Return the day that a heading names and its time of the day, each where there is one.

    Raises:
        InvalidTimeError: it has the form of a date, and is none.
    """
    for pattern in _DAYS:
        found = pattern.search(text[:_MAX_HEADING_CHARS])
        if found is None:
            continue
        parts = found.groupdict()
        month = parts.get("m") or str(_MONTHS.index(str(parts.get("month")).casefold()[:3]) + 1)
        time = _HEADED_TIME.match(text, found.end())
        try:
            day = date(int(parts["y"]), int(month), int(parts["d"]))
        except ValueError:
            msg = f"{found[0]!r} is no date"
            raise InvalidTimeError(msg) from None
        return day, "" if time is None else time["headed"]
    return None, ""


class _Log:
    """A log that is being read line by line."""

    def __init__(self, member: Member, options: Options, speaker: re.Pattern[str]) -> None:
        self._where = member.name
        self._stem = usable_id(member.stem)
        self._session = self._stem
        self._options = options
        self._speaker = speaker
        self._day: date | None = None
        self._clock = ""
        self._title = ""
        self._open: OpenTurn | None = None
        self._fence = ""
        self._front = False

    def take(self, number: int, line: str | InvalidTextError) -> Iterator[Entry]:
        """Take the next line; yields the turn that it ends, or what is wrong with it."""
        if not isinstance(line, str):
            yield bad(number, f"{self._where}, line {number}", line)
            return
        line = line.removeprefix("\ufeff") if number == 1 else line
        if self._is_front(number, line):
            return
        if not self._is_code(line):
            if heading := _HEADING.fullmatch(line[: 2 * _MAX_HEADING_CHARS]):
                yield from self.end()
                yield from self._head(number, heading["text"])
                return
            if _RULE.fullmatch(line[:_MAX_HEADING_CHARS]):
                return
            if said := self._speaker.match(line):
                yield from self.end()
                clock = said["before"] or said["after"] or ""
                made = partial(self._turn, number, said["name"].strip(), clock)
                self._open = OpenTurn(number, self._where, said["text"], made)
                return
        if self._open is None:
            self._options.left_out["lines of no speaker"] += bool(line.strip())
            return
        self._open.add(line)

    def _is_front(self, number: int, line: str) -> bool:
        """Whether a line belongs to what stands between --- and --- at the beginning."""
        if number == 1:
            self._front = line.rstrip() == "---"
            return self._front
        inside = self._front
        if inside and line.rstrip() in {"---", "..."}:
            self._front = False
        return inside

    def _is_code(self, line: str) -> bool:
        """Whether a line is one of a block of code, where nothing has a meaning."""
        fence = _FENCE.match(line)
        if self._fence:
            if fence is not None and line.strip().startswith(self._fence):
                self._fence = ""
            return True
        if fence is not None and self._open is not None:
            self._fence = fence[1]
            return True
        return False

    def _head(self, number: int, text: str) -> Iterator[Entry]:
        try:
            day, clock = heading_day(text)
        except InvalidTimeError as exc:
            yield bad(number, f"{self._where}, line {number}", exc)
            return
        if day is None:
            self._title = text
            return
        if day != self._day:
            self._session = usable_id(f"{self._stem} {day.isoformat()}")
        self._day, self._clock, self._title = day, clock, text

    def end(self) -> Iterator[Entry]:
        """Yield the turn that is open."""
        turn, self._open = self._open, None
        if turn is not None:
            yield from turn.close(self._title, "markdown")

    def _turn(self, line: int, speaker: str, clock: str, raw: str) -> TurnDraft | None:
        text = raw.strip()
        if not text:
            self._options.left_out["messages without text"] += 1
            return None
        return TurnDraft(
            text=check_text(text),
            session=self._session,
            speaker=None if speaker.casefold() in OWNERS else usable_id(speaker),
            role="assistant" if speaker.casefold() in ASSISTANTS else "user",
            said_at=self._moment(clock or self._clock),
            external_id=f"markdown-{line}-{digest(self._session, speaker, clock, text)}",
        )

    def _moment(self, clock: str) -> float | None:
        if self._day is None:
            return None
        day = self._day
        hour, minute, second = (*map(int, clock.split(":")), 0, 0)[:3] if clock else (0, 0, 0)
        zone = self._options.timezone
        try:
            return datetime(
                day.year, day.month, day.day, hour, minute, second, tzinfo=zone
            ).timestamp()
        except ValueError:
            msg = f"{clock} is no time of the day"
            raise InvalidTimeError(msg) from None
