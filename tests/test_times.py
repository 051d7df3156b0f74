"""Times named in questions: a table in six languages, what is no time, and clocks of any era."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dateparser.search
import pytest
from hypothesis import given, strategies as st

from reverie import times
from reverie.times import DAY_S, MAX_CHARS, MAX_TIMES, times_named

NOW = datetime(2023, 10, 25, 12, tzinfo=UTC).timestamp()  # a Wednesday


def named(question: str, now: float = NOW) -> list[str]:
    """Return the ranges as "2023-05-07" for a day and "2023-05-01 2023-05-31" for more."""
    shown = []
    for start, end in times_named(question, now):
        assert start % DAY_S == end % DAY_S == 0.0
        days = [date(1970, 1, 1) + timedelta(seconds=s) for s in (start, end - DAY_S)]
        shown.append(" ".join(dict.fromkeys(day.isoformat() for day in days)))
    return shown


def month(year: int, number: int, count: int = 1) -> str:
    first = date(year, number, 1)
    year, number = divmod(12 * year + number - 1 + count, 12)
    return f"{first} {date(year, number + 1, 1) - timedelta(1)}"


def year(number: int) -> str:
    return month(number, 1, 12)


LAST_WEEK, THIS_WEEK = "2023-10-16 2023-10-22", "2023-10-23 2023-10-29"
TWO_WEEKS_AGO, THREE_WEEKS_AGO = "2023-10-09 2023-10-15", "2023-10-02 2023-10-08"

TABLE: list[tuple[str, str]] = [
    # English
    ("What did we eat today?", "2023-10-25"),
    ("What did Ana do yesterday?", "2023-10-24"),
    ("Where was I the day before yesterday?", "2023-10-23"),
    ("What did we do last night?", "2023-10-24"),
    ("What happened last week?", LAST_WEEK),
    ("Where did we go last weekend?", "2023-10-21 2023-10-22"),
    ("What did we plan this year?", year(2023)),
    ("What did I buy last month?", month(2023, 9)),
    ("What was said on Monday?", "2023-10-23"),
    ("What did Bo say last Friday?", "2023-10-20"),
    ("What happened on Friday last week?", "2023-10-20"),
    ("Who came on 7 May 2023?", "2023-05-07"),
    ("Who came on May 7th, 2022 at 3:30 pm?", "2022-05-07"),
    ("Who came on 2023-05-07?", "2023-05-07"),
    ("What did Ana paint in July 2022?", month(2022, 7)),
    ("What did Ana paint in December?", month(2022, 12)),
    ("What did Ana paint in May?", month(2023, 5)),
    ("What did Ana paint in December last year?", month(2022, 12)),
    ("What did Ana paint in May of last year?", month(2022, 5)),
    ("What did we do on the 3rd?", "2023-10-03"),
    ("What did we do on the 3rd of May?", "2023-05-03"),
    ("What happened in 2021?", year(2021)),
    ("What happened three weeks ago?", THREE_WEEKS_AGO),
    ("What happened a couple of weeks ago?", TWO_WEEKS_AGO),
    ("What did Bo do last summer?", month(2023, 6, 3)),
    ("What did Bo do in the winter of 2021?", month(2021, 12, 3)),
    ("What fell in the fall?", month(2023, 9, 3)),
    # Chinese
    ("昨天我吃了什么？", "2023-10-24"),
    ("大前天呢？", "2023-10-22"),
    ("上周我做了什么？", LAST_WEEK),
    ("上个星期我做了什么？", LAST_WEEK),
    ("上上周呢？", TWO_WEEKS_AGO),
    ("这周我做了什么？", THIS_WEEK),
    ("上周五我们去哪里了？", "2023-10-20"),
    ("上周末我们去哪里了？", "2023-10-21 2023-10-22"),
    ("周三我见了谁？", "2023-10-18"),
    ("上个月我去了哪里？", month(2023, 9)),
    ("去年我们去哪儿旅行了？", year(2022)),
    ("去年的三月我们在哪里？", month(2022, 3)),
    ("去年十二月三十一日我们在哪里？", "2022-12-31"),
    ("十二月我去了哪里？", month(2022, 12)),
    ("二十三号我见了谁？", "2023-10-23"),
    ("２０２２年５月７日发生了什么？", "2022-05-07"),
    ("二〇二二年发生了什么？", year(2022)),
    ("三天前我说了什么？", "2023-10-22"),
    ("两个月前我买了什么？", month(2023, 8)),
    ("半年前我住在哪里？", month(2023, 4)),
    ("去年夏天我们在哪里？", month(2022, 6, 3)),
    ("冬天我们去滑雪了吗？", month(2022, 12, 3)),
    # Japanese
    ("昨日は何を食べましたか", "2023-10-24"),
    ("一昨日はどこに行きましたか", "2023-10-23"),
    ("先週どこに行きましたか", LAST_WEEK),
    ("先週の金曜日に何をした？", "2023-10-20"),
    ("去年の夏に何をした？", month(2022, 6, 3)),
    ("2022年5月3日に何をした？", "2022-05-03"),
    ("3ヶ月前に何をした？", month(2023, 7)),
    # Korean
    ("어제 뭐 했어?", "2023-10-24"),
    ("지난주에 뭐 했어?", LAST_WEEK),
    ("지난주 금요일에 뭐 했어?", "2023-10-20"),
    ("지난달에 어디 갔어?", month(2023, 9)),
    ("작년 5월에 어디 갔어?", month(2022, 5)),
    ("5월 3일에 뭐 했어?", "2023-05-03"),
    ("3일 전에 뭐 했어?", "2023-10-22"),
    ("지난 여름에 뭐 했어?", month(2023, 6, 3)),
    # Russian
    ("Что я делал вчера?", "2023-10-24"),
    ("Что было позавчера?", "2023-10-23"),
    ("Что было на прошлой неделе?", LAST_WEEK),
    ("Что было в прошлом году?", year(2022)),
    ("Что было 3 июня?", "2023-06-03"),
    ("Что было в мае 2022?", month(2022, 5)),
    ("Что было в июле прошлого года?", month(2022, 7)),
    ("Что было три дня назад?", "2023-10-22"),
    ("Где мы были прошлым летом?", month(2023, 6, 3)),
    ("Что было в понедельник?", "2023-10-23"),
    # Arabic
    ("ماذا فعلت أمس؟", "2023-10-24"),
    ("ماذا حدث الأسبوع الماضي؟", LAST_WEEK),
    ("ماذا حدث العام الماضي؟", year(2022)),
    ("ماذا حدث في مايو 2023؟", month(2023, 5)),
    ("ماذا حدث في ٣ مايو ٢٠٢٣؟", "2023-05-03"),
    ("ماذا حدث قبل ثلاثة أيام؟", "2023-10-22"),
    ("ماذا حدث قبل أسبوعين؟", TWO_WEEKS_AGO),
    ("أين كنا في الصيف الماضي؟", month(2023, 6, 3)),
]


@pytest.mark.parametrize(("question", "wanted"), TABLE)
def test_a_time_that_is_named(question: str, wanted: str) -> None:
    assert named(question) == [wanted]


def test_several_times_of_the_finest_kind() -> None:
    assert named("What was between 3 May and 7 May 2023?") == ["2023-05-03", "2023-05-07"]
    assert named("Between May and July 2022?") == [month(2022, 5), month(2022, 7)]
    assert named("Was it last week, or on 3 May?") == ["2023-05-03"]


NO_TIMES = """
Where does Ana live?
Who may march?
May Ana come?
May we come in?
What does May like about April?
What did the March hare say?
This may be the one.
Is the sun up?
When did we say that we would go?
What did I do in the morning, at 5 pm?
How old was Bo when he was 7 years old?
How many of the 12 eggs were left?
Which of 300 and 1000 is more?
Did the jug break, as Mary decided?
Are there marches in marketing?
Is it the one of the 1990s?
月亮上有什么？
日本好玩吗？
你一周三次去哪里？
每周三我做什么？
地铁3号线在哪里？
小明最喜欢吃什么水果？
2月30日呢？
好きな食べ物は何ですか
무엇을 좋아해요?
Где живёт Марта?
Кому 7 лет?
أين يسكن كمال؟
""".strip().splitlines()


@pytest.mark.parametrize("question", NO_TIMES)
def test_what_is_no_time(question: str) -> None:
    assert named(question) == []


def test_only_a_date_in_words_or_figures_is_given_to_the_parser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[str] = []

    def search_dates(text: str, **settings: Any) -> list[tuple[str, datetime]]:
        given.append(text)
        return []

    monkeypatch.setattr(dateparser.search, "search_dates", search_dates)
    times.clear_cache()
    for question in (*NO_TIMES[:1], "What did we eat yesterday?", "上周五呢？", "Что было в мае?"):
        times_named(question, NOW)
    assert given == []
    times_named("What did we eat in May?", NOW)
    assert given == ["What did we eat in May?"]
    times.clear_cache()


def test_a_parser_that_fails_does_not_stop_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search_dates(text: str, **settings: Any) -> list[tuple[str, datetime]]:
        raise RuntimeError

    monkeypatch.setattr(dateparser.search, "search_dates", search_dates)
    times.clear_cache()
    assert named("What did we eat in May?") == []
    assert named("What did we eat in May, last summer?") == [month(2023, 6, 3)]
    times.clear_cache()


RELATIVE = "What happened yesterday?"


@pytest.mark.parametrize(
    "now",
    [
        0.0,
        -2_000_000_000.0,  # 1906
        datetime(5, 1, 1, tzinfo=UTC).timestamp(),
        datetime(9990, 12, 31, tzinfo=UTC).timestamp(),
    ],
)
def test_relative_times_count_from_clocks_of_other_eras(now: float) -> None:
    today = now // DAY_S * DAY_S
    assert times_named(RELATIVE, now) == ((today - DAY_S, today),)
    ((start, end),) = times_named("上个月呢？", now)
    assert start < end <= today
    assert times_named("What happened in 2021?", now) == times_named("What happened in 2021?", NOW)


@pytest.mark.parametrize(
    "now",
    [-1e18, 1e18, 1e300, math.inf, -math.inf, math.nan, -62_135_596_800.0, 253_402_300_799.0],
)
def test_a_clock_that_is_no_date_gives_nothing(now: float) -> None:
    for question, _ in TABLE[::10]:
        assert times_named(question, now) == ()


def test_an_old_era_survives_what_counts_back_further() -> None:
    now = datetime(5, 6, 1, tzinfo=UTC).timestamp()
    for question in ("300年前呢？", "What was 80 years ago?", "999달 전", "Who came in May?"):
        times_named(question, now)  # raises nothing


@given(
    st.lists(
        st.sampled_from(
            [word for question, _ in TABLE for word in question.split()]
            + "may 31 30 12 99999 0 - / . : 年 月 日 前 十 2/30/2023 1e9 ٣ ² ½".split()
        ),
        max_size=12,
    ).map(" ".join)
    | st.text(max_size=40),
    st.floats(-1e11, 1e12, allow_nan=False),
)
def test_any_text_gives_sound_ranges(text: str, now: float) -> None:
    found = times_named(text, now)
    assert len(found) <= MAX_TIMES
    assert len(set(found)) == len(found)
    for start, end in found:
        assert end - start >= DAY_S
    assert found == times_named(text, now // DAY_S * DAY_S)  # the same all day


def test_a_flood_of_dates_is_cut() -> None:
    flood = "12.12.2012 " * 1000
    assert len(times_named(flood, NOW)) <= MAX_TIMES
    many = " ".join(f"on {day} May 2023," for day in range(1, 29))
    assert 4 <= len(times_named(many, NOW)) <= MAX_TIMES
    assert named("x" * MAX_CHARS + " yesterday") == []


def test_the_cache_forgets() -> None:
    times.clear_cache()
    times_named(RELATIVE, NOW)
    times_named(RELATIVE, NOW + 1)  # the same day
    assert times._named.cache_info()[:2] == (1, 1)  # hits, misses
    assert times._named.cache_info().currsize == 1
    times.clear_cache()
    assert times._named.cache_info().currsize == 0
