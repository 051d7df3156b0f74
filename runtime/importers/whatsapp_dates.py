"""Dates as telephones write them: which number is the day is found out over a whole chat.

A chat goes forwards. Of the orders that its dates can be read in, the one with the fewest that are
no dates is taken, then the one with the fewest steps back in time; if several are equal, month
before day for "9:15 PM" and strokes, else day before month.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, time, tzinfo
from functools import lru_cache
from typing import NamedTuple

from reverie.importers.records import DateOrder
from reverie.memory_graph.errors import InvalidTimeError

ORDERS: tuple[DateOrder, ...] = ("dmy", "mdy", "ymd")
_CENTURY = 2000  # of years of two digits
_NOON = 12
_MORNING = frozenset({"am", "凌晨", "清晨", "早上", "上午", "午夜", "午前"})
_EVENING = frozenset({"pm", "下午", "傍晚", "午後"})
_NIGHT = "晚上"
_MIDDAY = "中午"
_EARLY = 6  # "中午11:50" is before noon, "晚上12:10" after midnight


class Stamp(NamedTuple):
    """When a message was sent, as it is written: three numbers of a date, and a time."""

    parts: tuple[str, str, str]
    hour: int
    minute: int
    second: int
    period: str  # "am", "下午", or empty for 24 hours
    slash: bool = False


@lru_cache(maxsize=4096)
def day_of(parts: tuple[str, str, str], order: str) -> date | None:
    """Return the day that three numbers name in an order; None where they name none."""
    if len(parts[0]) > 2:  # noqa: PLR2004 (digits of a year)
        order = "ymd"
    places = dict(zip(order, parts, strict=True))
    year = places["y"]
    if len(year) not in {2, 4} or len(places["m"]) > 2 or len(places["d"]) > 2:  # noqa: PLR2004
        return None
    try:
        number = int(year) + (_CENTURY if len(year) == 2 else 0)  # noqa: PLR2004 (digits)
        return date(number, int(places["m"]), int(places["d"]))
    except ValueError:
        return None


def found_order(stamps: Iterable[Stamp]) -> DateOrder:
    """Return the order of day, month and year in a chat; "dmy" without a date."""
    bad = dict.fromkeys(ORDERS, 0)
    back = dict.fromkeys(ORDERS, 0)
    last: dict[DateOrder, date] = {}
    before: tuple[str, str, str] | None = None
    american = total = 0
    for stamp in stamps:
        total += 1
        american += stamp.slash and stamp.period in {"am", "pm"}
        if stamp.parts == before:
            continue
        before = stamp.parts
        for order in ORDERS:
            day = day_of(stamp.parts, order)
            if day is None:
                bad[order] += 1
                continue
            back[order] += order in last and day < last[order]
            last[order] = day
    usual: tuple[DateOrder, ...] = ORDERS if 2 * american <= total else ("mdy", "dmy", "ymd")
    return min(usual, key=lambda order: (bad[order], back[order], usual.index(order)))


class Dates:
    """Reads the stamps of one chat."""

    def __init__(self, order: DateOrder, timezone: tzinfo) -> None:
        self._order = order
        self._timezone = timezone

    def moment(self, stamp: Stamp) -> datetime:
        """Return when that was.

        Raises:
            InvalidTimeError: no such day or time.
        """
        day = day_of(stamp.parts, self._order)
        hour = _hour(stamp.hour, stamp.period)
        if day is not None and hour is not None:
            with suppress(ValueError):
                time_of_day = time(hour, stamp.minute, stamp.second, tzinfo=self._timezone)
                return datetime.combine(day, time_of_day)
        shown = "/".join(stamp.parts)
        msg = f"{shown} {stamp.hour}:{stamp.minute:02} {stamp.period} is no time in {self._order}"
        raise InvalidTimeError(msg)


def _hour(hour: int, period: str) -> int | None:
    if not period:
        return hour
    if hour > _NOON:  # "下午13:05" is written by some
        return hour
    if period in _MORNING:
        return hour % _NOON
    if period in _EVENING:
        return hour % _NOON + _NOON
    if period == _NIGHT:
        return 0 if hour == _NOON else hour + _NOON
    if period == _MIDDAY:
        return hour + _NOON if hour < _EARLY else hour
    return None
