"""Dates in words, resolved against the time of speaking.

Only the forms that people use in talk: "yesterday", "last Friday", "in June", "on 3 May 2021",
"two weeks ago", and their Chinese counterparts. All times are seconds UTC; a week starts on Monday.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

DECEMBER = 12

_MONTHS = "january february march april may june july august september october november december"
MONTHS = {name: i for i, name in enumerate(_MONTHS.split(), 1)}
MONTHS |= {name[:3]: i for name, i in MONTHS.items()} | {"sept": 9}
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
WEEKDAYS = {name: i for i, name in enumerate(_DAYS.split())}
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "couple": 2, "few": 3,
    "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
    "十": 10, "几": 3, "半": 1,
}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = r"(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")"
_WEEKDAY = r"(?:" + _DAYS.replace(" ", "|") + r")"
_SMALL = r"an?|one|two|three|four|five|six|seven|eight|nine|ten"
_COUNT = rf"(?:\d{{1,3}}|(?:a )?(?:couple|few)(?: of)?|{_SMALL})"
_EN = re.compile(
    rf"""\b(?:
      (?P<iso>(?:19|20)\d\d-\d\d?-\d\d?)
    | (?P<rel>the\ day\ before\ yesterday|the\ day\ after\ tomorrow|yesterday|last\ night|today
        |tonight|this\ (?:morning|afternoon|evening)|tomorrow)
    | (?P<m1>{_MONTH})\.?\ (?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\ (?P<y1>(?:19|20)\d\d))?
    | (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:\ of)?\ (?P<m2>{_MONTH})\b(?:,?\ (?P<y2>(?:19|20)\d\d))?
    | (?P<which>last|next|this|past|coming)\ (?P<unit>week(?:end)?|month|year|spring|summer|autumn
        |fall|winter|{_WEEKDAY}|{_MONTH})
    | (?:in|since|until|till|by|during|of|early|late|mid|from|to)\ (?P<m3>{_MONTH})\b
        (?:,?\ (?:of\ )?(?P<y3>(?:19|20)\d\d))?
    | (?:in|since|until|till|by|during|of|around|from|to|back\ in)\ (?P<y4>(?:19|20)\d\d)
    | (?P<n5>{_COUNT})\ (?P<u5>day|week|month|year)s?\ (?P<dir5>ago|from\ now)
    | in\ (?P<n6>{_COUNT})\ (?P<u6>day|week|month|year)s?(?:'\ time)?
    | (?:on|by|until|till|since|for|to|from)\ (?P<w7>{_WEEKDAY})s?
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_EN_GATE = re.compile(
    rf"\d|\b(?:yesterday|today|tonight|tomorrow|last|next|this|past|coming|ago|from now|{_MONTH}"
    rf"|{_WEEKDAY}s?|in (?:an?|one|two|three|four|five|six|seven|eight|nine|ten))\b",
    re.IGNORECASE,
)
_EN_LEAD = re.compile(r"(?:since|on|in|back in|until|by|during)\ (?=\w)", re.IGNORECASE)
_ZN = r"(?:\d{1,3}|[一二两三四五六七八九十几半]{1,3})"
_ZH = re.compile(
    rf"""(?P<y1>(?:19|20)\d\d)年(?:(?P<m1>\d\d?)月(?:(?P<d1>\d\d?)[日号])?)?
    | (?P<yrel>大?前年|去年|今年|明年|后年)(?:的?(?P<my>\d\d?|[一二三四五六七八九十]{{1,2}})月)?
    | (?P<mrel>上上|上|这|本|下下|下)个?月(?:(?P<dm>\d\d?)[日号])?
    | (?P<m2>\d\d?)月(?:(?P<d2>\d\d?)[日号]|份?)
    | (?P<day>大前天|前天|昨天|昨晚|今天|今晚|今早|明天|明晚|大后天|后天)
    | (?P<wrel>上上|上|这|本|下下|下)个?(?:周|星期|礼拜)(?P<wd>[一二三四五六日天末])?
    | (?P<n>{_ZN})个?(?P<u>天|周|星期|礼拜|月|年)(?P<dir>以?之?前|以?之?后)
    | (?:周|星期|礼拜)(?P<wd2>[一二三四五六日天末])""",
    re.VERBOSE,
)
_ZH_DAYS = {"大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "明天": 1, "明晚": 1, "后天": 2,
            "大后天": 3}  # fmt: skip
_ZH_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_ZH_STEP = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_ZH_WEEKDAY = {c: i for i, c in enumerate("一二三四五六日")} | {"天": 6}


class DateSpan(NamedTuple):
    """A date in a text: seconds UTC from `start` up to (not including) `end`, and its words."""

    start: float
    end: float
    words: str


def find_date(
    text: str, said_at: float, *, past: bool = True, chinese: bool = False
) -> DateSpan | None:
    """Return the first date that `text` names, or None.

    Args:
        text: a clause.
        said_at: seconds UTC at which it was said.
        past: for a bare "on Friday" or "in June": whether the one before (True) or after is meant.
        chinese: which forms to look for.
    """
    if not chinese and not _EN_GATE.search(text):
        return None
    match = (_ZH if chinese else _EN).search(text)
    if match is None:
        return None
    try:
        past = past or match.group().lower().startswith(("since", "back"))
        now = datetime.fromtimestamp(said_at, UTC).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        groups = {k: v for k, v in match.groupdict().items() if v}
        span = _chinese(groups, now, past=past) if chinese else _english(groups, now, past=past)
        start, end = span[0].timestamp(), span[1].timestamp()
    except (ValueError, OverflowError, OSError):  # 31 June, or a clock far outside the calendar
        return None
    return DateSpan(start, end, match.group())


def leading_date(text: str) -> str:
    """Return the words of the date that an English clause begins with, "" where it does not:
    "Since last week" of "Since last week I live in Bergen"."""
    if not _EN_GATE.search(text[:40]):
        return ""
    lead = _EN_LEAD.match(text)
    match = _EN.match(text, lead.end() if lead else 0) or _EN.match(text)
    return text[: match.end()] if match else ""


Span: TypeAlias = tuple[datetime, datetime]


def _day(day: datetime) -> Span:
    return day, day + timedelta(days=1)


def _month(year: int, month: int) -> Span:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    following = (year + 1, 1) if month == DECEMBER else (year, month + 1)
    return datetime(year, month, 1, tzinfo=UTC), datetime(*following, 1, tzinfo=UTC)


def _year(year: int) -> Span:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)


def _week(now: datetime, step: int) -> Span:
    monday = now - timedelta(days=now.weekday()) + timedelta(weeks=step)
    return monday, monday + timedelta(weeks=1)


def _weekend(now: datetime, step: int) -> Span:
    saturday = _week(now, step)[0] + timedelta(days=5)
    return saturday, saturday + timedelta(days=2)


def _count(word: str) -> int:
    if word.isdigit():
        return int(word)
    bare = word.lower().removesuffix(" of").removeprefix("a ")
    if bare in _COUNTS:
        return _COUNTS[bare]
    tens, _, ones = bare.partition("十")
    return _COUNTS.get(tens, 1) * 10 + _COUNTS.get(ones, 0)


def _shift(now: datetime, count: int, unit: str) -> Span:
    if unit in {"day", "天"}:
        return _day(now + timedelta(days=count))
    if unit in {"week", "周", "星期", "礼拜"}:
        return _day(now + timedelta(weeks=count))
    if unit in {"month", "月"}:
        return _month(now.year, now.month + count)
    return _year(now.year + count)


def _in_year(month: int, day: int | None, now: datetime, *, past: bool) -> Span:
    """A month or day without its year: the nearest one on the side that is meant."""
    year = now.year
    start = datetime(year, month, day or 1, tzinfo=UTC)
    this_month = day is None and month == now.month
    if past and start > now:
        year -= 1
    elif not past and start < now and not this_month:
        year += 1
    return _day(datetime(year, month, day, tzinfo=UTC)) if day else _month(year, month)


def _english(g: dict[str, str], now: datetime, *, past: bool) -> Span:
    if "iso" in g:
        year, month, day = map(int, g["iso"].split("-"))
        return _day(datetime(year, month, day, tzinfo=UTC))
    if "rel" in g:
        words = g["rel"].lower()
        step = {"yesterday": -1, "last night": -1, "tomorrow": 1}.get(words, 0)
        step = -2 if "before" in words else 2 if "after tom" in words else step
        return _day(now + timedelta(days=step))
    for i in ("1", "2", "3"):
        if f"m{i}" in g:
            month = MONTHS[g[f"m{i}"].lower()]
            days = int(g[f"d{i}"]) if f"d{i}" in g else None
            if f"y{i}" not in g:
                return _in_year(month, days, now, past=past)
            year = int(g[f"y{i}"])
            return _day(datetime(year, month, days, tzinfo=UTC)) if days else _month(year, month)
    if "y4" in g:
        return _year(int(g["y4"]))
    if "n5" in g:
        sign = -1 if g["dir5"].lower() == "ago" else 1
        return _shift(now, sign * _count(g["n5"]), g["u5"].lower())
    if "n6" in g:
        return _shift(now, _count(g["n6"]), g["u6"].lower())
    if "w7" in g:
        return _weekday(WEEKDAYS[g["w7"].lower()], now, past=past)
    return _which(g["which"].lower(), g["unit"].lower(), now)


def _weekday(weekday: int, now: datetime, *, past: bool) -> Span:
    ahead = (weekday - now.weekday()) % 7
    if past:
        return _day(now - timedelta(days=(now.weekday() - weekday) % 7))
    return _day(now + timedelta(days=ahead))


def _which(which: str, unit: str, now: datetime) -> Span:
    step = {"last": -1, "past": -1, "next": 1, "coming": 1, "this": 0}[which]
    if unit == "week":
        return _week(now, step)
    if unit == "weekend":
        return _weekend(now, step)
    if unit == "month":
        return _month(now.year, now.month + step)
    if unit == "year":
        return _year(now.year + step)
    if unit in WEEKDAYS:  # "last Friday" is the one before today, "next Friday" the one after
        gap = (WEEKDAYS[unit] - now.weekday()) % 7
        if step < 0:
            return _day(now - timedelta(days=7 - gap))
        return _day(now + timedelta(days=gap or (7 if step else 0)))
    if unit in _SEASONS:
        first = _SEASONS[unit]
        year = now.year + (max(0, step))
        if step < 0 and datetime(year, first, 1, tzinfo=UTC) + timedelta(days=92) > now:
            year -= 1
        return _month(year, first)[0], _month(year, first + 2)[1]
    month = MONTHS[unit]
    return _in_year(month, None, now, past=step < 0)


def _chinese(g: dict[str, str], now: datetime, *, past: bool) -> Span:
    if "y1" in g:
        year = int(g["y1"])
        if "m1" not in g:
            return _year(year)
        if "d1" not in g:
            return _month(year, int(g["m1"]))
        return _day(datetime(year, int(g["m1"]), int(g["d1"]), tzinfo=UTC))
    if "yrel" in g:
        year = now.year + _ZH_YEARS[g["yrel"]]
        return _month(year, _count(g["my"])) if "my" in g else _year(year)
    if "mrel" in g:
        start, end = _month(now.year, now.month + _ZH_STEP[g["mrel"]])
        return _day(start.replace(day=int(g["dm"]))) if "dm" in g else (start, end)
    if "m2" in g:
        return _in_year(int(g["m2"]), int(g["d2"]) if "d2" in g else None, now, past=past)
    if "day" in g:
        return _day(now + timedelta(days=_ZH_DAYS.get(g["day"], 0)))
    if "n" in g:
        sign = -1 if g["dir"].endswith("前") else 1
        return _shift(now, sign * _count(g["n"]), g["u"])
    if "wd2" in g:
        if g["wd2"] == "末":
            return _weekend(now, 0)
        return _weekday(_ZH_WEEKDAY[g["wd2"]], now, past=past)
    step = _ZH_STEP[g["wrel"]]
    if g.get("wd") == "末":
        return _weekend(now, step)
    start, end = _week(now, step)
    return _day(start + timedelta(days=_ZH_WEEKDAY[g["wd"]])) if "wd" in g else (start, end)
