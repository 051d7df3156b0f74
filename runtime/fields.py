"""Fields of records that others wrote, checked one by one: times, texts and names.

Everything here is a pure function that returns the usable value or raises a typed error, which
the caller completes with the place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from reverie.memory_graph.errors import InvalidTextError, InvalidTimeError, shown
from reverie.memory_graph.ids import check_id

# The years 1 to 9999: beyond them no time can be shown as a date. Milliseconds of this century
# taken for seconds fall outside, which is how they are caught.
_MIN_TIME_S = -62_135_596_800.0
_MAX_TIME_S = 253_402_300_799.0
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
_MARKS = (  # of other encodings than UTF-8; that of UTF-16 begins one of UTF-32
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"\x841\x953", "GB18030"),
)
_COMPACT_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")


def parse_time(value: object) -> float:
    """Return `value` as seconds (UTC, since 1970, or of whatever clock a plain number is from).

    Args:
        value: a number of seconds; a `datetime`; or a string that holds a plain number or an ISO
            8601 date or date and time. Without a zone it is UTC, without a time midnight.

    Raises:
        InvalidTimeError: none of these; NaN, infinite, or outside the years 1 to 9999; eight
            digits that could be seconds as well as a date.
    """
    match value:
        case bool():
            seconds = math.nan
        case int() | float():
            seconds = _seconds(value)
        case str():
            seconds = _seconds_of_text(value.strip())
        case datetime():
            seconds = _seconds_of_datetime(value)
        case _:
            seconds = math.nan
    if _MIN_TIME_S <= seconds <= _MAX_TIME_S:  # false for NaN
        return seconds
    hint = "; milliseconds are to be divided by 1000" if math.isfinite(seconds) else ""
    what = shown(value, 60)
    msg = f"{what} is no time between the years 1 and 9999: pass ISO 8601 or seconds{hint}"
    raise InvalidTimeError(msg)


def require_utf8(begin: bytes, where: str) -> None:
    """Refuse a file whose first bytes say that its text is in another encoding.

    Args:
        begin: at least its first four bytes, if it has so many.
        where: the file, for the message.

    Raises:
        InvalidTextError: they are the mark of UTF-16, UTF-32 or GB18030.
    """
    found = next((name for mark, name in _MARKS if begin.startswith(mark)), None)
    if found is not None:
        msg = (
            f"{where}: its text is {found}, as its first bytes say, and UTF-8 is expected; save it "
            f"as UTF-8, as with: iconv -f {found} -t UTF-8"
        )
        raise InvalidTextError(msg, file=where)


def name_at(record: Mapping[str, object], key: str) -> str | None:
    """Return the id at `key`, a whole number as its digits; None where it is absent or null.

    Raises:
        InvalidIdError: as `check_id` does.
    """
    item = record.get(key)
    if isinstance(item, int) and not isinstance(item, bool):
        item = str(item)
    return None if item is None else check_id(item, key)


def check_text(item: object) -> str:
    """Return `item` if it is a text to keep.

    Raises:
        InvalidTextError: missing, not a string, blank, with a NUL or a lone surrogate.
    """
    if not isinstance(item, str):
        what = "missing" if item is None else f"a {type(item).__name__}, not a string"
        msg = f"'text' is {what}"
        raise InvalidTextError(msg)
    if not item.strip():
        msg = "'text' is blank"
        raise InvalidTextError(msg)
    if "\0" in item:
        msg = "'text' holds a NUL"
        raise InvalidTextError(msg)
    try:
        item.encode()
    except UnicodeEncodeError as exc:
        msg = "'text' holds a lone surrogate: half a character, or a byte that is no UTF-8"
        raise InvalidTextError(msg).because(exc) from exc
    return item


def _seconds(number: float | str) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _seconds_of_datetime(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _seconds_of_text(text: str) -> float:
    if _COMPACT_DATE.fullmatch(text):
        date = f"{text[:4]}-{text[4:6]}-{text[6:]}"
        msg = f"{text} may be a date or seconds: write {date} or {text}.0"
        raise InvalidTimeError(msg)
    if _NUMBER.fullmatch(text):
        return _seconds(text)
    try:
        return _seconds_of_datetime(datetime.fromisoformat(text))
    except ValueError:
        return math.nan
