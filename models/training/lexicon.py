"""The words and kinds that generated data is made of, and which split may use them."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

Language: TypeAlias = Literal["en", "zh"]
Split: TypeAlias = Literal["train", "wide", "validation", "test", "heldout", "unseen", "late"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
SPLITS: tuple[Split, ...] = ("train", "wide", "validation", "test", "heldout", "unseen", "late")
TRAINED: tuple[Split, ...] = ("train", "wide")  # those that something is trained on

_TRAIN_SHARE = 0.7  # of the words of a list; the rest is for the other splits
_SMALLEST_DIVIDED = 8  # shorter lists are used whole everywhere
_SEED = 20  # of the division: it may never change between training and evaluation

Value: TypeAlias = tuple[str, ...]  # ways to say one value, the usual one first


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that statements can be about, with templates; `kinds_en.toml` tells the form."""

    name: str
    who: str
    values: str = ""
    keyed: tuple[tuple[str, str], ...] = ()
    one: bool = False
    split: Literal["train", "more", "validation", "heldout", "unseen", "late"] = "train"
    group: str = ""
    state: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()


@cache
def load(name: str) -> dict[str, Any]:
    """Return a file of words or templates of this package."""
    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))


@cache
def kinds(language: Language) -> tuple[Kind, ...]:
    """Return every kind of a language, those that are left out of training too."""
    found = load(f"kinds_{language}.toml")["kind"]
    return tuple(msgspec.convert(kind, Kind) for kind in found)


def kinds_of(language: Language, split: Split) -> tuple[Kind, ...]:
    """Return the kinds that a split may use.

    "wide" has the kinds of "train" and more, written later: the cross-encoders are trained on
    them. "test" has the kinds of "train" with other words; "validation" has kinds of its own, so
    that thresholds are chosen as for what is new; "heldout", "unseen" and "late" have kinds that
    none of them has seen: the first was measured for each adapter, the second was written after
    that by somebody else, the third by a third hand while the cross-encoders were trained.
    """
    allowed = {
        "train": {"train"},
        "wide": {"train", "more"},
        "test": {"train"},
        "validation": {"validation"},
        "heldout": {"heldout"},
        "unseen": {"unseen"},
        "late": {"late"},
    }[split]
    return tuple(kind for kind in kinds(language) if kind.split in allowed)


@cache
def fillers(language: Language) -> tuple[str, ...]:
    """Return statements about `{s}` that stand in no relation to any kind."""
    return tuple(load(f"kinds_{language}.toml")["filler"])


@cache
def values(language: Language, name: str, split: Split) -> tuple[Value, ...]:
    """Return the values of a list that a split may use.

    Args:
        language: of the words.
        name: a list of `words_*.toml`, "@..." for a made one; ".up" and ".low" change the first
            letter.
        split: "train" and "wide" get their own share of the words, all others share the rest.
    """
    listed = load(f"words_{language}.toml")
    name, _, case = name.partition(".")
    if name.startswith("@"):
        found = _made(language, name[1:])
    else:
        found = tuple(tuple(entry.split("|")) for entry in listed["words"][name])
    if case:
        change = str.upper if case == "up" else str.lower
        found = tuple(tuple(change(way[0]) + way[1:] for way in value) for value in found)
    if name in listed["closed"] or len(found) < _SMALLEST_DIVIDED:
        return found
    order = list(range(len(found)))
    random.Random(f"{_SEED} {language} {name}").shuffle(order)  # noqa: S311 - seeded on purpose
    cut = round(len(found) * _TRAIN_SHARE)
    mine = sorted(order[:cut] if split in TRAINED else order[cut:])
    return tuple(found[i] for i in mine)


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_HAN_WEEKDAYS = ("周一", "周二", "周三", "周四", "周五", "周六", "周日")
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_HAN_NUMBERS = ("两", "三", "四", "五", "六", "七", "八", "九", "十")


def _made(language: Language, name: str) -> tuple[Value, ...]:
    """Numbers, times, dates, addresses: seeded, the same in every run."""
    rng = random.Random(f"{_SEED} made {language} {name}")  # noqa: S311 - seeded on purpose
    zh = language == "zh"
    if name.startswith("count"):
        if zh:
            unit = name.removeprefix("count")
            return tuple((f"{h}{unit}", f"{i}{unit}") for i, h in enumerate(_HAN_NUMBERS, 2))
        return tuple((word, str(i)) for i, word in enumerate(_NUMBERS, 2))
    if name == "weekday":
        days = _HAN_WEEKDAYS if zh else _WEEKDAYS
        return tuple((day, day.replace("周", "星期")) if zh else (day,) for day in days)
    if name == "date":
        if zh:
            return tuple(
                (f"{m}月{d}日",) for m in range(1, 13) for d in rng.sample(range(1, 29), 5)
            )
        return tuple(
            (f"{month} {day}", f"{day} {month}")
            for month in _MONTHS
            for day in rng.sample(range(1, 29), 5)
        )
    if name == "phone":
        numbers = [f"{rng.randint(200, 999)}-{rng.randint(0, 9999):04d}" for _ in range(60)]
        return tuple(
            (f"1{n.replace('-', '')}{rng.randint(100, 999)}" if zh else n,) for n in numbers
        )
    if name == "email":
        return tuple(
            (f"{who}{rng.choice(['', '.', '_'])}{rng.randint(1, 99)}@{host}",)
            for who in ("kim", "maya", "leo", "dana", "omar", "tara", "sam", "ana")
            for host in ("example.com", "mail.example", "example.org", "post.example")
        )
    if name == "time":
        return tuple(_time(language, hour, half) for hour in range(5, 24) for half in (False, True))
    if name in {"when", "gamewhen"}:
        return _whens(language, rng, game=name == "gamewhen")
    return _amounts(language, name)


def _time(language: Language, hour: int, half: bool) -> Value:  # noqa: FBT001 - local
    if language == "zh":
        part = "早上" if hour < 12 else "下午" if hour < 18 else "晚上"  # noqa: PLR2004 - noon, evening
        clock = hour if hour <= 12 else hour - 12  # noqa: PLR2004 - noon
        return (f"{part}{clock}点{'半' if half else ''}", f"{hour}:{'30' if half else '00'}")
    minutes = ":30" if half else ""
    clock = hour if hour <= 12 else hour - 12  # noqa: PLR2004 - noon
    letter = "am" if hour < 12 else "pm"  # noqa: PLR2004 - noon
    return (f"{clock}{minutes}{letter}", f"{clock}{minutes or ':00'} {letter}")


def _whens(language: Language, rng: random.Random, *, game: bool) -> tuple[Value, ...]:
    if game:
        if language == "zh":
            return tuple((w,) for w in ("黎明", "明晚", "月圆之夜", "三天后", "集市日", "初雪那天", "中秋", "日落", "七天后", "立冬"))  # fmt: skip  # noqa: E501
        return tuple((w,) for w in ("at dawn", "tomorrow night", "at the next full moon", "in three days", "on market day", "after the first snow", "at midsummer", "at dusk", "in a week", "at the new moon"))  # fmt: skip  # noqa: E501
    if language == "zh":
        return tuple((f"{day}{rng.choice(['上午', '下午'])}{rng.randint(1, 11)}点",) for day in (*_HAN_WEEKDAYS, "5月3日", "6月18日", "9月9日") for _ in range(4))  # fmt: skip  # noqa: E501
    days = [f"{day} at {rng.randint(1, 11)}{rng.choice(['am', 'pm'])}" for day in _WEEKDAYS for _ in range(4)]  # fmt: skip  # noqa: E501
    return tuple(
        (day,) for day in dict.fromkeys([*days, *_WEEKDAYS, "3 May", "18 June", "9 March"])
    )


def _amounts(language: Language, name: str) -> tuple[Value, ...]:
    zh = language == "zh"
    match name:
        case "age":
            return tuple((str(n),) for n in range(18, 80))
        case "size":
            return tuple((str(n),) for n in range(21, 70))
        case "height":
            return tuple((f"{n}厘米" if zh else str(n),) for n in range(150, 200))
        case "money":
            return tuple((f"{n}元" if zh else f"{n} euros",) for n in range(200, 3000, 75))
        case "gold":
            return tuple((str(n),) for n in (2, 3, 5, 8, 10, 12, 15, 20, 30, 40, 50, 75, 100, 200))
        case "km":
            return tuple((f"{n} km",) for n in range(5, 90, 5))
        case "minutes":
            return tuple((f"{n} minutes",) for n in range(35, 75))
        case "rating":
            return tuple((str(n),) for n in range(900, 2300, 37))
        case "hours":
            return tuple((f"{n} hours",) for n in range(2, 14))
        case _:
            msg = f"no list of words is named @{name}"
            raise KeyError(msg)
