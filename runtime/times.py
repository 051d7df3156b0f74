"""The times that a question names: "on 7 May", "last summer", "上周", as ranges of seconds.

`dateparser` finds and reads dates, in the language of the question's script. Before it comes what
it was measured to miss or to misread: "last weekend", seasons, dates of Chinese, Japanese and
Korean, Russian months, times ago in these and in Arabic. What only looks like a date goes out
first ("May I", "5 pm", "7 years old"), and of what `dateparser` finds only what has a word or the
form of a date counts: it reads "we" as Wednesday. Relative times count from the time of asking; a
month without a year is the last one that was, or of the one year that the question names.
"""

from __future__ import annotations

import calendar
import re
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple

Range = tuple[float, float]
Span = tuple[date, date]

DAY_S = 86_400.0
MAX_TIMES = 8  # of one question
MAX_CHARS = 500  # of a question that are looked at
_CACHE = 4_096
_TRUSTED = (2, 9997)  # years around which every relative time is a date

_MONTH_EN = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_MONTH_AR = "يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر"
_MONTHS_RU = "январ феврал март апрел ма июн июл август сентябр октябр ноябр декабр".split()
# A word of which a date is made.
_WORD = (
    rf"\b(?:{_MONTH_EN}|january|february|march|april|june|july|august|sept|september|october"
    r"|november|december)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)(?:day)?\b|\bago\b"
    r"|понедельник|вторник|\bсред[ауеы]\b|четверг|пятниц|суббот|воскресень|назад"
    rf"|{_MONTH_AR}"
    r"|الأحد|الاثنين|الإثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت"
)
_FIGURES = r"\b(?:19|20)\d\d\b|\b\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b|\b\d{1,2}/\d{4}\b"

_EITHER = f"{_WORD}|{_FIGURES}"

# -- what is no date ----------------------------------------------------------------------
_NO_DATES = (
    r"\b\d{1,2}(?::\d\d)? ?(?:[ap]\.?m\b\.?|o'clock)|\b\d{1,2}:\d\d\b"
    r"|\b\d+[- ]years?[- ]old\b|\b\d+[- ]?лет\b(?! назад)"
)
# Months that are words and names too count with a number beside them, or after such a word.
_DOUBTFUL = (
    r"(?P<number>\d(?:st|nd|rd|th)?(?: of)? )?"
    r"(?P<before>\b(?:in|early|late|mid|last|this|next|since|until|till|during|before|after"
    rf"|between|on|(?:end|start|beginning|middle) of|(?:{_MONTH_EN})\w* (?:and|to|or))[ -])?"
    r"\b(?P<word>may|march|mar|april|june|august|sun|sat|fri|wed|mon)\b(?P<after>,? \d)?"
)
_SHORT_DAYS = frozenset({"sun", "sat", "fri", "wed", "mon"})
_PLAINLY = ("in", "early", "late", "mid", "since", "during")  # no verb comes after these
_DAYS_OF_MONTH = rf"\b((?:{_MONTH_EN})\w* \d{{1,2}}) ?[-–] ?\d{{1,2}}\b"
_PLAINER = (
    (_DAYS_OF_MONTH, r"\1"),
    (_NO_DATES, " "),
    (r"\b(?:a )?couple of (?=(?:day|week|month|year)s)", "2 "),
    (r"\ba few (?=(?:day|week|month|year)s ago)", "3 "),
    (r"\bhalf a year ago\b", "6 months ago"),
)

# -- relative times, by (unit, how many of them back) ---------------------------------------
_RELATIVE = (
    ("day", 3, r"大前天"),
    ("day", 2, r"\bday before yesterday\b|前天|前晚|一昨日|おととい|그저께|позавчера|أول أمس"),
    ("day", 1, r"\byesterday\b|\blast night\b|昨[天日晚夜]|어제|어젯밤|\bвчера|\bأمس"),
    ("day", 0, r"\btoday\b|\btonight\b|今[天日晚]|今朝|오늘|\bсегодня|\bاليوم"),
    (
        "weekend",
        1,
        r"\b(?:last|past) weekend\b|上个?周末|先週末|지난 ?주말|прошлы\w+ выходны\w+",
    ),
    ("weekend", 0, r"\bthis weekend\b|[这這本]个?周末|今週末|이번 ?주말"),
    ("week", 2, r"上上个?(?:周|星期|礼拜)|先々週|지지난 ?주|позапрошл\w+ недел\w+"),
    (
        "week",
        1,
        (
            r"\b(?:last|past|previous) week\b|上[个個]?(?:周|週|星期|礼拜)|先週|지난 ?주"
            r"|прошл\w+ недел\w+|الأسبوع الماضي"
        ),
    ),
    (
        "week",
        0,
        (
            r"\bthis week\b|[这這本][个個]?(?:周|週|星期|礼拜)|今週|이번 ?주|этой неделе"
            r"|هذا الأسبوع"
        ),
    ),
    ("month", 2, r"上上个?月|先々月|지지난 ?달"),
    (
        "month",
        1,
        (
            r"\b(?:last|past|previous) month\b|上[个個]?月|先月|지난 ?달|прошл\w+ месяц\w*"
            r"|الشهر الماضي"
        ),
    ),
    ("month", 0, r"\bthis month\b|[这這][个個]?月|本月|今月|이번 ?달|этом месяце|هذا الشهر"),
    ("year", 2, r"前年|一昨年|재작년|позапрошл\w+ год\w*"),
    (
        "year",
        1,
        (
            r"\b(?:last|past|previous) year\b|去年|昨年|작년|지난 ?해|прошл\w+ год\w*"
            r"|العام الماضي|السنة الماضية"
        ),
    ),
    ("year", 0, r"\bthis year\b|今年|올해|этом году|هذا العام|هذه السنة"),
)

_SEASONS = {  # first month, last month (13 and more are of the next year)
    name: months
    for months, names in (
        ((3, 5), "spring 春 весной 봄 الربيع"),
        ((6, 8), "summer 夏 летом 여름 الصيف"),
        ((9, 11), "autumn fall 秋 осенью 가을 الخريف"),
        ((12, 14), "winter 冬 зимой 겨울 الشتاء"),
    )
    for name in names.split()
}
_THIS = frozenset({"this", "今年", "올해", "этим", "этой"})
_BEFORE_LAST = frozenset({"前年", "一昨年", "재작년"})
_OF_YEAR = frozenset({"去年", "昨年", "작년"})  # of the year before; others: the last one that was
_SEASON = (
    r"\b(?:(?P<which_en>last|this|past) )?"
    r"(?P<name_en>spring|summer|autumn|winter|(?<=last )fall|(?<=this )fall|(?<=the )fall"
    r"|fall(?= (?:of )?\d{4}))(?:(?: of)? (?P<year_en>\d{4}))?\b"
    r"|(?:(?P<which_zh>一昨年|[去今前昨]年)|(?P<year_zh>\d{4})年)[的の]?(?P<name_zh>[春夏秋冬])(?![节節假晚])[天季]?"
    r"|(?P<name_bare>[春夏秋冬])[天季]"
    r"|(?:(?P<which_ko>지난|작년|올해|재작년)|(?P<year_ko>\d{4})년) ?(?P<name_ko>봄|여름|가을|겨울)"
    r"|\b(?P<which_ru>прошл\w+ |эт\w+ )?(?P<name_ru>весной|летом|осенью|зимой)"
    r"(?: (?P<year_ru>\d{4}))?"
    r"|(?P<name_ar>الربيع|الصيف|الخريف|الشتاء) الماضي"
)

_HAN = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN |= {"한": 1, "두": 2, "세": 3, "네": 4, "일": 1}
_SMALL = r"\d{1,2}|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"
_FULL_YEAR = r"\d{4}|[〇零一二三四五六七八九]{4}"
_CJK_DATE = (
    rf"(?:(?:(?P<year>{_FULL_YEAR})[年년]|(?P<which>一昨年|[去今前昨]年|작년|올해|재작년))"
    r"[的の]? ?)?"
    rf"(?P<month>{_SMALL})[月월](?:份|중)?(?: ?(?P<day>{_SMALL})[日号號일])?"
)
_CJK_YEAR = rf"({_FULL_YEAR})[年년](?!前|以前|之前)"
_CJK_DAY = rf"(?P<day>{_SMALL})[号號](?![线楼门馆店院房机码])"
_CJK_AGO = (
    r"(\d{1,3}|[一二两兩三四五六七八九十半]+)[个個ヶか]?(天|日|周|週|星期|礼拜|月|年)[间間]?(?:以|之)?前"
    r"|(\d{1,3}|[한두세네일]) ?(일|주일?|개월|달|년) ?전"
)
_WEEKDAY = (
    # Not "every Wednesday", nor "five days a week".
    r"(?<![一二两三四五六七八九十几每\d个])(?P<week>上上|上|[这這本])?[个個]?(?:周|週|星期|礼拜)"
    r"(?P<zh>[一二三四五六日天])(?![次天年个岁])"
    r"|(?P<week_ja>先週|今週)?の?(?P<ja>[月火水木金土日])曜"
    r"|(?P<week_ko>지난 ?주|이번 ?주)? ?(?P<ko>[월화수목금토일])요일"
)
_WEEKDAYS = ("一二三四五六日", "月火水木金土日", "월화수목금토일")  # from Monday
_RU_DATE = (
    rf"(?:\b(?:в|с|до|после|начале|конце|середине|прошл\w+) |(?P<day>\d{{1,2}}) )"
    rf"(?P<month>{'|'.join(_MONTHS_RU)})(?:ь|я|е|а|й|у)?\b(?: (?P<year>\d{{4}}))?"
)
_AR_NUMBERS = "ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة".split()  # from three
_AR_UNITS = {"يوم": "天", "أيام": "天", "أسبوع": "周", "أسابيع": "周", "شهر": "月", "أشهر": "月"}
_AR_UNITS |= {"شهور": "月", "سنة": "年", "سنوات": "年", "عام": "年", "أعوام": "年", "سنت": "年"}
_AR_AGO = (
    rf"(?:قبل|منذ) (?:(?P<number>\d{{1,3}}|{'|'.join(_AR_NUMBERS)}) )?"
    rf"(?P<unit>{'|'.join(_AR_UNITS)})(?P<two>ين)?\b"
)
_EN_DAY = rf"\bon the (?P<day>\d{{1,2}})(?:st|nd|rd|th)\b(?! (?:of )?(?:{_MONTH_EN}))"

# One of these an English question must have to be read at all: most have none, and reading takes
# a fifth of a millisecond, with dateparser ten of them, the first time a third of a second.
_EN_WORD = re.compile(r"[a-z]+|\d")
_EN_CUES = frozenset(
    "0 1 2 3 4 5 6 7 8 9 yesterday today tonight ago last past previous this"
    " spring summer autumn fall winter mon tues wednes thurs fri satur sun"
    " monday tuesday wednesday thursday friday saturday sunday sept"
    " january february march april may june july august september october november december".split()
) | frozenset(_MONTH_EN.split("|"))

# And one of these a question in another script.
_OTHER_CHARS = re.compile(
    "[今昨前去上这這本月日号號周週星礼年先曜春夏秋冬お년월일주달전오어그제늘해말봄름을울\u0400-\u04ff\u0600-\u06ff]"
)

_lock = threading.Lock()  # dateparser keeps state of its own


class _Found(NamedTuple):
    """A range of days; `has_year` says that its year was named, or counted from now."""

    span: Span
    has_year: bool


Reader = Callable[[re.Match[str], date], _Found | None]


def times_named(question: str, now: float) -> tuple[Range, ...]:
    """Return the times that a question names, as (from, to) in seconds, the finest kind only.

    Args:
        question: in any language; only its first 500 characters count.
        now: the time of asking, in seconds (UTC); one that is no date gives nothing.
    """
    text = question[:MAX_CHARS]
    is_plain = text.isascii()
    if not is_plain:  # digits of every script
        text = "".join(str(int(c)) if c.isdecimal() else c for c in text)
    if _EN_CUES.isdisjoint(_EN_WORD.findall(text.lower())) and (
        is_plain or _OTHER_CHARS.search(text) is None or _compiled(_cue()).search(text) is None
    ):
        return ()
    return _named(text, now // DAY_S)


@lru_cache(maxsize=_CACHE)
def _named(text: str, day: float) -> tuple[Range, ...]:
    try:
        today = datetime.fromtimestamp(day * DAY_S, UTC).date()
    except (OverflowError, OSError, ValueError):
        return ()
    if not _TRUSTED[0] <= today.year <= _TRUSTED[1]:
        return ()
    found: list[_Found] = []
    for pattern, read in _READERS:

        def take(match: re.Match[str], read: Reader = read) -> str:
            try:
                one = read(match, today)
            except (OverflowError, ValueError):  # no such day, or none that a date can hold
                one = None
            if one is None:
                return match[0]
            found.append(one)
            return " ; "

        text = _compiled(pattern).sub(take, text)
    if _compiled(_EITHER).search(text) is not None:
        found += _parsed(text, today)
    spans = list(dict.fromkeys(_in_the_year(found)))
    if not spans:
        return ()
    finest = min(map(_kind, spans))
    kept = [span for span in spans if _kind(span) == finest]
    return tuple((_seconds(a), _seconds(b) + DAY_S) for a, b in kept[:MAX_TIMES])


def clear_cache() -> None:
    """Forget every question that was met."""
    _named.cache_clear()


def _in_the_year(found: list[_Found]) -> list[Span]:
    """Return the ranges; those without a year move to the one year that is named beside them."""
    named = {span[0].year for span, _ in found if _kind(span) == _kind(_year(span[0].year))}
    if len(named) != 1:
        return [span for span, _ in found]
    (year,) = named
    spans = []
    for span, has_year in found:
        if has_year:
            spans.append(span)
        elif _is_month(span):
            spans.append(_months(year, span[0].month, span[0].month))
        else:
            last = calendar.monthrange(year, span[0].month)[1]
            day = span[0].replace(year=year, day=min(span[0].day, last))
            spans.append((day, day))
    return spans


# -- dateparser -----------------------------------------------------------------------------


def _parsed(text: str, today: date) -> list[_Found]:
    from dateparser.date import DateDataParser
    from dateparser.search import search_dates

    words = [match.end() for match in _compiled(_EITHER).finditer(text)]
    if len(words) > MAX_TIMES:  # of hundreds of dates, dateparser would make hundreds of ms
        text = text[: words[MAX_TIMES]]
    for pattern, plain in _PLAINER:
        text = _compiled(pattern).sub(plain, text)
    text = _compiled(_DOUBTFUL).sub(_undoubted, text)
    settings: dict[str, Any] = {
        "RELATIVE_BASE": datetime(today.year, today.month, today.day, 12),  # noqa: DTZ001 (all UTC)
        "PREFER_DATES_FROM": "past",
        "RETURN_AS_TIMEZONE_AWARE": False,
    }
    languages = [_language(text)]
    found: list[_Found] = []
    with _lock:
        try:
            parser = DateDataParser(languages=languages, settings=settings)
            for part, _ in search_dates(text, languages=languages, settings=settings) or []:
                if _compiled(_EITHER).search(part) is None:
                    continue
                read = parser.get_date_data(part)
                if read.date_obj is not None:
                    span = _period(read.date_obj.date(), read.period or "day")
                    found.append(_Found(span, not _lacks_year(part)))
        except Exception:  # noqa: BLE001 (a question that trips the parser is still a question)
            return found
    return found


def _undoubted(match: re.Match[str]) -> str:
    """Return a word as it stands when it is a month or a day, else nothing in its place."""
    word, before = match["word"], (match["before"] or "").lower()
    is_date = bool(before) and (word[0].isupper() or before.startswith(_PLAINLY))
    if word.lower() in _SHORT_DAYS:
        is_date = is_date and word[0].isupper()
    elif match["number"] or match["after"]:
        is_date = True
    return match[0] if is_date else f"{match['number'] or ''} ; {match['after'] or ''}"


def _lacks_year(part: str) -> bool:
    """Return whether a date names a month and no year."""
    month = re.search(rf"\b(?:{_MONTH_EN})|{_MONTH_AR}", part, re.IGNORECASE)
    return month is not None and re.search(r"\d{4}", part) is None


# -- readers --------------------------------------------------------------------------------


def _season(match: re.Match[str], today: date) -> _Found | None:
    groups = {key.partition("_")[0]: value for key, value in match.groupdict().items() if value}
    first, last = _SEASONS[groups["name"].lower()]
    if year := groups.get("year"):
        return _Found(_months(int(year), first, last), has_year=True)
    which = groups.get("which", "").lower().strip()
    if which in _OF_YEAR or which in _BEFORE_LAST:
        back = 2 if which in _BEFORE_LAST else 1
        return _Found(_months(today.year - back, first, last), has_year=True)
    if which in _THIS:
        return _Found(_months(today.year, first, last), has_year=True)
    for back in range(3):  # the last one that was
        span = _months(today.year - back, first, last)
        if span[1] < today or (span[0] <= today and not which):
            return _Found(span, has_year=True)
    return None


def _relative(unit: str, back: int) -> Callable[[re.Match[str], date], _Found]:
    def read(_match: re.Match[str], today: date) -> _Found:
        match unit:
            case "day":
                day = today - timedelta(back)
                span = (day, day)
            case "week" | "weekend":
                monday = today - timedelta(today.weekday() + 7 * back)
                first = 5 if unit == "weekend" else 0
                span = (monday + timedelta(first), monday + timedelta(6))
            case "month":
                year, month = divmod(12 * today.year + today.month - 1 - back, 12)
                span = _months(year, month + 1, month + 1)
            case _:
                span = _year(today.year - back)
        return _Found(span, has_year=True)

    return read


def _ago(match: re.Match[str], today: date) -> _Found:
    unit = match[2] or match[4]
    unit = {"일": "天", "日": "天", "개월": "月", "달": "月", "년": "年"}.get(unit, unit)
    return _back(_number(match[1] or match[3]), unit, today)


def _ar_ago(match: re.Match[str], today: date) -> _Found:
    word = match["number"]
    count = 2.0 if match["two"] else 1.0
    if word:
        count = float(word) if word.isdecimal() else _AR_NUMBERS.index(word) + 3.0
    return _back(count, _AR_UNITS[match["unit"]], today)


def _back(count: float, unit: str, today: date) -> _Found:
    days = {"天": 1, "月": 30.44, "年": 365.25}.get(unit, 7)
    day = today - timedelta(round(count * days))
    if unit == "年" and count < 1:
        unit = "月"
    period = {"天": "day", "月": "month", "年": "year"}.get(unit, "week")
    return _Found(_period(day, period), has_year=True)


def _cjk_date(match: re.Match[str], today: date) -> _Found:
    month = int(_number(match["month"]))
    day = int(_number(match["day"])) if match["day"] else None
    if match["year"]:
        year: int | None = _full_year(match["year"])
    elif which := match["which"]:
        back = 2 if which in _BEFORE_LAST else 0 if which in _THIS else 1
        year = today.year - back
    else:
        year = None
    return _dated(year, month, day, today)


def _ru_date(match: re.Match[str], today: date) -> _Found:
    month = _MONTHS_RU.index(match["month"].lower()) + 1
    day = int(match["day"]) if match["day"] else None
    return _dated(int(match["year"]) if match["year"] else None, month, day, today)


def _dated(year: int | None, month: int, day: int | None, today: date) -> _Found:
    """Return a day or a month; without a year the last one that was."""
    first = date(year or today.year, month, day or 1)
    if year is None and first > today:
        first = date(today.year - 1, month, day or 1)
    span = (first, first) if day else _months(first.year, month, month)
    return _Found(span, has_year=year is not None)


def _day_of_month(match: re.Match[str], today: date) -> _Found:
    wanted = int(_number(match["day"]))
    if not 1 <= wanted <= 31:  # noqa: PLR2004 (days of a month)
        raise ValueError(wanted)
    day = today
    while day.day != wanted:
        day -= timedelta(1)
    return _Found((day, day), has_year=True)


def _cjk_year(match: re.Match[str], _today: date) -> _Found:
    return _Found(_year(_full_year(match[1])), has_year=True)


def _weekday(match: re.Match[str], today: date) -> _Found:
    name = (match["zh"] or match["ja"] or match["ko"]).replace("天", "日")
    week = match["week"] or match["week_ja"] or match["week_ko"] or ""
    wanted = next(days.index(name) for days in _WEEKDAYS if name in days)
    monday = today - timedelta(today.weekday())
    if week:
        day = monday + timedelta(wanted - 7 * _weeks_back(week))
    else:  # the last one that was
        day = today - timedelta((today.weekday() - wanted - 1) % 7 + 1)
    return _Found((day, day), has_year=True)


def _weeks_back(week: str) -> int:
    return {"上上": 2}.get(week, 1 if week[0] in "上先지" else 0)


_READERS: tuple[tuple[str, Reader], ...] = (
    (_SEASON, _season),
    (_CJK_DATE, _cjk_date),
    (_WEEKDAY, _weekday),
    (_CJK_AGO, _ago),
    (_AR_AGO, _ar_ago),
    (_RU_DATE, _ru_date),
    (_CJK_YEAR, _cjk_year),
    *((pattern, _relative(unit, back)) for unit, back, pattern in _RELATIVE),
    (_CJK_DAY, _day_of_month),
    (_EN_DAY, _day_of_month),
)


@lru_cache(maxsize=1)
def _cue() -> str:
    """Return what a text of other scripts must have to be read at all."""
    every = (_EITHER, *(pattern for pattern, _ in _READERS))
    return "|".join("(?:" + re.sub(r"\(\?P<\w+>", "(?:", pattern) + ")" for pattern in every)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of this module; compiling all of them on import would take 40 ms."""
    return re.compile(pattern, re.IGNORECASE)


# -- small parts ----------------------------------------------------------------------------


def _period(day: date, period: str) -> Span:
    match period:
        case "week":
            monday = day - timedelta(day.weekday())
            return monday, monday + timedelta(6)
        case "month":
            return _months(day.year, day.month, day.month)
        case "year":
            return _year(day.year)
        case _:
            return day, day


def _months(year: int, first: int, last: int) -> Span:
    """Return a range of months; those over 12 are of the next year."""
    end_year, end = year + (last - 1) // 12, (last - 1) % 12 + 1
    return date(year, first, 1), date(end_year, end, calendar.monthrange(end_year, end)[1])


def _year(year: int) -> Span:
    return date(year, 1, 1), date(year, 12, 31)


def _number(text: str) -> float:
    if text.isdecimal():
        return int(text)
    if text == "半":
        return 0.5
    tens, found, units = text.rpartition("十")
    value = 10 * _HAN.get(tens, 1) if found else 0
    return value + _HAN.get(units, 0)


def _full_year(text: str) -> int:
    return int("".join(c if c.isdecimal() else str(_HAN[c]) for c in text))


def _language(text: str) -> str:
    for pattern, language in (
        ("[\u3040-\u30ff]", "ja"),
        ("[\uac00-\ud7a3]", "ko"),
        ("[\u4e00-\u9fff]", "zh"),
        ("[\u0400-\u04ff]", "ru"),
        ("[\u0600-\u06ff]", "ar"),
    ):
        if re.search(pattern, text):
            return language
    return "en"


def _is_month(span: Span) -> bool:
    return span[0].day == 1 and span[0] != span[1]


def _kind(span: Span) -> int:
    """Rank ranges by how fine they are: a day, a week, a month, a season, a year."""
    days = (span[1] - span[0]).days + 1
    return sum(days > most for most in (1, 7, 31, 93))


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
