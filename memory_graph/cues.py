"""What a text seems to say, and what a question seems to ask for: a time, a number, names.

Patterns for English and Chinese, and the plain ones of other languages; they raise and lower a
score a little, and never decide. Pure functions of the text.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple

MAX_NAMES = 15  # counted in one text
_CACHE_QUESTIONS = 4_096
_ASKING = "?？؟"

_MONTHS = (
    "january february april june july august september october november december".split()
)  # "may" and "march" are verbs too
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|weekend"
    r"|(?:last|next|this) (?:night|week|month|year|weekend|morning|summer|winter|spring|fall"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|" + "|".join(_MONTHS) + r"|in may|in march|(?:19|20)\d\d|since"
    r"|for (?:\w+ )?(?:years?|months?|weeks?|days?)"
    r"|(?:years?|months?|weeks?) (?:now|back|already)|\d{1,2}(?:st|nd|rd|th))\b"
    r"|[昨今明前]天|[后後]天|[昨今]晚|[上下这這本][个個]?(?:[周週月]|星期|礼拜|禮拜)|[去今明前]年"
    r"|[一二三四五六七八九十\d]+[月号號日]|(?:[周週]|星期|礼拜|禮拜)[一二三四五六日天末]|[年月天周週]前"
    r"|刚才|剛才|以前|[昨今明]日|[先今来]週|[先今来]月|[昨来]年|[月火水木金土日]曜"
    r"|어제|오늘|내일|지난|작년|올해|내년|다음 ?[주달해]|\d+[년월일]|[월화수목금토일]요일"
    r"|\b(?:вчера|сегодня|завтра|позавчера|назад|прошл\w+|понедельник|вторник|сред[уы]|четверг"
    r"|пятниц[ауы]|суббот[ауы]|воскресенье|в ма[ер]|\d ма[яр]"
    r"|(?:январ|феврал|апрел|июн|июл|август|сентябр|октябр|ноябр|декабр)\w+)"
    r"|أمس|اليوم|غدا|الماضي|القادم|(?:قبل|منذ) |يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس"
    r"|سبتمبر|أكتوبر|نوفمبر|ديسمبر|الأحد|الاثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twice|once"
    r"|hundred|thousand|couple|several|few|first|second|third|fourth|fifth|another)\b"
    r"|[一二两兩三四五六七八九十百千万萬几幾][个個只隻条條本次年月天岁歲块塊元斤公分小人つ匹枚冊歳回]"
    r"|(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열) ?(?:개|명|마리|번|살|시간|잔|권|달|주)"
    r"|\b(?:од(?:ин|на|но|ного|ну)|дв[аеу]\w*|тр(?:и|[её]х)|четыр\w+|пят(?:ь|и)|шест(?:ь|и)|сем(?:ь|и)"
    r"|вос[еь]м[ьи]|девят[ьи]|десят[ьи]|сто|тысяч\w*|несколько)\b"
    r"|\b(?:واحد|اثن\w+|ثلاث|أربع|خمس|ست|سبع|ثماني|تسع|عشر|مئة|ألف|عدة)ة?\b",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<=[a-zß-öø-ÿа-яё,;] )[\"“«]?([A-ZÀ-ÖØ-ÞА-ЯЁ][\w']+)")
_QUOTED = re.compile(r"\"[^\"]{2,60}\"|“[^”]{2,60}”|《[^》]{1,60}》|『[^』]{1,60}』|«[^»]{2,60}»")
_I = frozenset({"i", "i'm", "i've", "i'd", "i'll"})

_ASKS_TIME = re.compile(
    r"^(?:(?:since )?when|what (?:year|month|date|day|time)|which (?:year|month|week|day)"
    r"|[io]n (?:which|what) (?:month|year|day|date))|how long ago"
    r"|什[么麼][时時]候|何[时時]|几时|幾時|哪一?[年月天]|[几幾][月号號点點]|多久(?:以|之)?前"
    r"|いつ|何[年月日曜]|언제|며칠|몇 ?[년월일]|\bкогда\b|каком (?:году|месяце)|какого числа|متى",
    re.IGNORECASE,
)
_ASKS_NUMBER = re.compile(
    r"how (?:many|much|often|long|old)|多少|[几幾][个個只隻条條本次岁歲块塊年月天人位名张張家]"
    r"|多[长長久大远遠]|いくつ|いくら|何[人歳個匹枚冊回本]|何時間|몇|얼마|\bсколько\b|\bكم\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(
    r"\bwho(?:m|se)?\b|^where"
    r"|\b(?:which|what) (?:city|cities|country|countries|states?|places?|location|area|town"
    r"|is the name|(?:\w+ )?(?:book|movie|film|game|song|band|show|series|name|brand|company|team"
    r"|author|tournament|console|artist|musician|trilogy|character)s?)\b|\bnamed?\b"
    r"|[谁誰]|哪[里裡裏儿兒]|哪[一]?[个個座家本部位]|叫什[么麼]|什[么麼](?:名|地方|城市|书|書|歌|电影|電影|牌子|公司)"
    r"|どこ|だれ|名前|何という|누구|누가|어디|어느|이름|\b(?:кто|кого|кому|кем|где|куда|откуда|че[йё]|чья"
    r"|чь[её])\b|зовут|называется|как(?:ой|ом|ая|ую) (?:город|стран|книг|фильм|песн)"
    r"|^من (?!ال)|من (?:هو|هي|الذي|التي)|أين|ما اسم",
    re.IGNORECASE,
)


class Says(NamedTuple):
    """What a text says. `names` counts names in it, those in quotes twice, up to `MAX_NAMES`."""

    asks: bool  # it ends in a question
    asks_somewhere: bool
    time: bool
    number: bool
    names: int


class Asks(NamedTuple):
    """What a question asks for."""

    time: bool
    number: bool
    name: bool


def says(text: str, known: Container[str] = frozenset()) -> Says:
    """Return what a text says; names that are `known` (lower case) tell nothing new."""
    bare = text.rstrip().rstrip("\"'”’)）」")
    capitalised = _CAPITALISED.findall(text)
    names = {w for w in capitalised if w.lower() not in _I and w.lower() not in known}
    count = len(names) + 2 * len(_QUOTED.findall(text))
    return Says(
        asks=bare.endswith(tuple(_ASKING)),
        asks_somewhere=any(char in text for char in _ASKING),
        time=_TIME.search(text) is not None,
        number=_NUMBER.search(text) is not None,
        names=min(count, MAX_NAMES),
    )


@lru_cache(maxsize=_CACHE_QUESTIONS)
def asks(question: str) -> Asks:
    """Return what a question asks for."""
    return Asks(
        time=_ASKS_TIME.search(question) is not None,
        number=_ASKS_NUMBER.search(question) is not None,
        name=_ASKS_NAME.search(question) is not None,
    )


def clear_caches() -> None:
    """Forget every question that was met."""
    asks.cache_clear()
