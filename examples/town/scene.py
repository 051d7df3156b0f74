"""Scenes: two people meet, and one of them may do one of a few things.

What these are follows from how the town stands: who is there, how the two stand to each other, and
what came to the one's mind. Which of them happens, a language model chooses (see director.py), or
the script; nothing else can happen. All that is drawn here is drawn before that, so that a town
goes on in the same way whoever chooses the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import msgspec

from reverie.town.schedule import day_and_hour
from reverie.town.script import Where, distorted
from reverie.town.setting import TALK_VERBS, Claim, Language, Setting, said
from reverie.town.streams import stream

SCENES = 3  # a day, where a model takes part; at an hour when nobody meets anybody there is none
MAX_SCENES = 200  # a day
HOURS = range(8, 22)  # in which there are scenes
MEETINGS = {"feuds": 0.4, "friends": 0.4, "": 0.2}  # who meets, where there are such; "" is anybody
LOOKED = 60  # places at which such are looked for
COLD = -0.1  # affinity from which on down two are at odds
SILENT, CONFIDE, TWIST = "silent", "confide", "twist"


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One of the things that may happen.

    Attributes:
        key: "silent", "confide", "twist", or the name of a deed.
        verb: the word by which a small model chooses it.
        text: what it is, in the language of the scene.
        claim: what happens, or what is told; None is nothing.
        change: what was changed of what is told.
    """

    key: str
    verb: str
    text: str
    claim: Claim | None = None
    change: str = ""

    @property
    def is_told(self) -> bool:
        """Whether something is told, rather than done."""
        return self.key in {CONFIDE, TWIST}


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Two people at a place, and what one may do to the other.

    Attributes:
        id: one in the town.
        tick: the hour, counted from the town's first.
        place: id of the place.
        language: in which its witnesses keep what they see there.
        who: user id of who does something.
        other: to whom.
        there: all who are there, these two too.
        is_cold: the two are at odds.
        feelings: of `who` towards `other`, by dimension.
        memory: what came to the mind of `who` that the other does not know of; None is nothing.
        options: what may happen, two at least.
        plain: place of the option that the script chooses.
        share: a drawn number, 0 to 1, by which a model's shares are decided.
    """

    id: str
    tick: int
    place: str
    language: Language
    who: str
    other: str
    there: tuple[str, ...]
    is_cold: bool
    feelings: Mapping[str, float]
    memory: Claim | None
    options: tuple[Option, ...]
    plain: int
    share: float

    @property
    def offered(self) -> tuple[str, ...]:
        """The keys of the options."""
        return tuple(option.key for option in self.options)


def count(seed: int, tick: int, scenes: int) -> int:
    """Return how many scenes there are at a tick, of so many a day: spread over the hours in which
    people are about, which ones is drawn."""
    day, hour = day_and_hour(tick)
    if hour not in HOURS:
        return 0
    each, more = divmod(scenes, len(HOURS))
    return each + (hour in stream(seed, "scenes", day).sample(HOURS, more))


def named(tick: int, number: int) -> str:
    """Return the id of a scene, and of what happens in it."""
    day, hour = day_and_hour(tick)
    return f"d{day}h{hour:02d}s{number}"


def meeting(setting: Setting, draw: Random, where: Where) -> tuple[str, str, str] | None:
    """Draw a place and two who meet there, most often enemies or friends; None where nobody meets
    anybody."""
    together = [(place, names) for place, names in where.items() if len(names) > 1]
    if not together:
        return None
    (kind,) = draw.choices(list(MEETINGS), list(MEETINGS.values()))
    looked = draw.sample(together, min(len(together), LOOKED))
    for place, names in looked if kind else []:
        here = set(names)
        tied = [
            (name, other)
            for name in names
            for other in getattr(setting.people[name], kind)
            if other in here
        ]
        if tied:
            return place, *draw.choice(tied)
    place, names = looked[0]
    who, other = draw.sample(names, 2)
    return place, who, other


def at_odds(setting: Setting, who: str, other: str, feelings: Mapping[str, float]) -> bool:
    """Say whether two are at odds: they are after an old feud, until they are good friends."""
    affinity = feelings.get("affinity", 0.0)
    return affinity <= COLD or (other in setting.people[who].feuds and affinity < -COLD)


def options(
    setting: Setting,
    draw: Random,
    *,
    place: str,
    who: str,
    other: str,
    is_cold: bool,
    memory: Claim | None,
) -> tuple[Option, ...]:
    """Return what may happen: silence, a confidence, a distortion, and the deeds that fit."""
    language = setting.places[place].language
    told = (setting, draw, who, other, memory, language)
    return (*_talk(*told), *_deeds(setting, draw, place, who, other, is_cold=is_cold))


def _talk(
    setting: Setting, draw: Random, who: str, other: str, memory: Claim | None, language: Language
) -> Iterator[Option]:
    a, b = setting.called(who, language), setting.called(other, language)
    is_chinese = language == "zh"
    silence, truth, lie = TALK_VERBS
    text = f"{a}什么也没说" if is_chinese else f"{a} keeps silent"
    yield Option(key=SILENT, verb=silence, text=text)
    changed, change = (None, "") if memory is None else distorted(setting, memory, who, draw)
    if memory is None or changed is None:
        return
    text = said(setting, memory, language)
    text = f"{a}告诉{b}：{text}" if is_chinese else f"{a} tells {b}: {text}"
    yield Option(key=CONFIDE, verb=truth, text=text, claim=memory)
    if change:
        text = said(setting, changed, language)
        text = f"{a}走了样地告诉{b}：{text}" if is_chinese else f"{a} tells {b} falsely: {text}"
        yield Option(key=TWIST, verb=lie, text=text, claim=changed, change=change)


def _deeds(
    setting: Setting, draw: Random, place: str, who: str, other: str, *, is_cold: bool
) -> Iterator[Option]:
    mood = "cold" if is_cold else "warm"
    language = setting.places[place].language
    for name, deed in setting.deeds.items():
        if deed.verb and deed.when in {"always", mood}:
            thing = draw.randrange(len(deed.things)) if deed.things else 0
            claim = Claim(name, place, who, other, thing)
            text = said(setting, claim, language).rstrip(".。")
            yield Option(key=name, verb=deed.verb, text=text, claim=claim)
