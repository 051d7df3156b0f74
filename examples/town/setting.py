"""The town as its author wrote it down: places, people, routines, and what may happen."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from reverie.memory_graph.errors import ConfigError

PLAYER = "player"  # who acts in the town but is none of its people
TALK_VERBS = ("keeps", "tells", "lies")  # of what is no deed: silence, a confidence, a distortion

Language: TypeAlias = Literal["en", "zh"]
Pair: TypeAlias = tuple[str, str]  # the English and the Chinese form

_PLAYER: Pair = ("The player", "玩家")


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what stands in the TOML file: a misspelt field is an error."""


class Place(Written, frozen=True, kw_only=True):
    """A place on the map; `language` is that in which witnesses keep what they saw there."""

    en: str
    zh: str
    x: float = 0.0
    y: float = 0.0
    language: Language = "en"

    def name(self, language: Language) -> str:
        """Return its name."""
        return self.zh if language == "zh" else self.en


class Person(Written, frozen=True, kw_only=True):
    """Somebody of the town. The key in the setting is the name, and the user id of the memory.

    Attributes:
        home: id of a place, as `work`.
        routine: name of a routine.
        zh: the name in Chinese texts, if it is another.
        stops: hour -> where this person is instead, from then on.
        languages: the first is the one in which things are told to this person.
        profile: kind of memory budget, by its name in profiles.toml.
    """

    zh: str = ""
    job: str
    home: str
    work: str
    routine: str
    goal: str = ""
    profile: str = "villager"
    languages: tuple[Language, ...] = ("en",)
    friends: tuple[str, ...] = ()
    feuds: tuple[str, ...] = ()
    stops: dict[str, tuple[str, ...]] = {}


class Move(Written, frozen=True, kw_only=True):
    """What a deed does to how `who` stands to `toward`: "a", "b", or (only `who`) "witness"."""

    who: Literal["a", "b", "witness"]
    toward: Literal["a", "b"]
    trust: float = 0.0
    affinity: float = 0.0
    fear: float = 0.0
    debt: float = 0.0

    @property
    def deltas(self) -> dict[str, float]:
        """What moves, and by how much."""
        found = {"trust": self.trust, "affinity": self.affinity, "fear": self.fear}
        found["debt"] = self.debt
        return {name: delta for name, delta in found.items() if delta}


class Deed(Written, frozen=True, kw_only=True):
    """Something that may happen; `chance` is relative to the other deeds, 0 if it happens only
    where it is planted or chosen in a scene.

    Attributes:
        by: "player", or anybody who is there.
        between: what the second person is to the first; "none" has no second.
        importance: 0 to 1.
        sentiment: -1 to 1.
        verb: by which a language model may choose it in a scene (see scene.py); each begins with
            another word. Without one it is never chosen.
        when: between whom it may be chosen: "cold" is those who are at odds, "warm" the others.
    """

    en: str
    zh: str
    by: Literal["anybody", "player"] = "anybody"
    between: Literal["feud", "friend", "any", "none"]
    chance: float
    importance: float = 0.5
    sentiment: float = 0.0
    things: tuple[Pair, ...] = ()
    moves: tuple[Move, ...] = ()
    verb: str = ""
    when: Literal["always", "cold", "warm"] = "always"


class Planted(Written, frozen=True, kw_only=True):
    """A deed that happens for certain; `a` and `b` are taken there."""

    id: str
    deed: str
    day: int
    hour: int
    place: str
    thing: int = 0
    a: str | None = None
    b: str | None = None


class Question(Written, frozen=True, kw_only=True):
    """What people ask each other when they meet."""

    en: str
    zh: str


class Setting(Written, frozen=True, kw_only=True):
    """The whole town."""

    name: str
    places: dict[str, Place]
    routines: dict[str, dict[str, tuple[str, ...]]]
    people: dict[str, Person]
    deeds: dict[str, Deed]
    planted: tuple[Planted, ...] = ()
    questions: tuple[Question, ...] = ()

    def called(self, name: str, language: Language) -> str:
        """Return a name as it stands in a text; also that of the player."""
        if name == PLAYER:
            return _PLAYER[language == "zh"]
        return (self.people[name].zh if language == "zh" else "") or name


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody says has happened. It is distorted by changing a field, and said in any
    language. `thing` is an index into the deed's things."""

    deed: str
    place: str
    a: str
    b: str | None = None
    thing: int = 0


def said(setting: Setting, claim: Claim, language: Language) -> str:
    """Return a claim as a sentence."""
    deed = setting.deeds[claim.deed]
    sentence = deed.zh if language == "zh" else deed.en
    return sentence.format(
        a=setting.called(claim.a, language),
        b="" if claim.b is None else setting.called(claim.b, language),
        place=setting.places[claim.place].name(language),
        thing=deed.things[claim.thing][language == "zh"] if deed.things else "",
    )


def load_setting(path: Path | None = None) -> Setting:
    """Return the town of a TOML file, by default Saltmere, in which everything named is there.

    Raises:
        ConfigError: a field is missing, unknown or of a wrong type, or names what is not there.
    """
    source = files("reverie.town").joinpath("town.toml") if path is None else path
    try:
        setting = msgspec.toml.decode(source.read_bytes(), type=Setting)
    except (msgspec.DecodeError, OSError) as exc:
        msg = f"the town at {source} cannot be read: {exc}"
        raise ConfigError(msg, path=str(source)) from exc
    if lines := list(_missing(setting)):
        msg = f"the town at {source} names what is not there: {'; '.join(lines)}"
        raise ConfigError(msg, path=str(source))
    if lines := list(_bad_verbs(setting)):
        msg = f"the town at {source} has deeds that cannot be chosen: {'; '.join(lines)}"
        raise ConfigError(msg, path=str(source))
    return setting


def _missing(setting: Setting) -> list[str]:
    lines: list[str] = []
    spots = {"home", "work", *setting.places}
    for name, person in setting.people.items():
        lines += [
            f"{name}: no place {place!r}"
            for place in (person.home, person.work)
            if place not in setting.places
        ]
        if person.routine not in setting.routines:
            lines.append(f"{name}: no routine {person.routine!r}")
        others = (*person.friends, *person.feuds)
        lines += [f"{name}: no person {o!r}" for o in others if o not in setting.people]
        lines += _bad_hours(name, person.stops, spots)
    for name, hours in setting.routines.items():
        lines += _bad_hours(name, hours, spots)
    for planted in setting.planted:
        if planted.deed not in setting.deeds or planted.place not in setting.places:
            lines.append(f"{planted.id}: no deed {planted.deed!r} or place {planted.place!r}")
        actors = [name for name in (planted.a, planted.b) if name is not None]
        lines += [f"{planted.id}: no person {n!r}" for n in actors if n not in setting.people]
    return lines


def _bad_verbs(setting: Setting) -> Iterator[str]:
    known: dict[str, str] = dict.fromkeys(TALK_VERBS, "talk")
    for name, deed in setting.deeds.items():
        if not deed.verb:
            continue
        if deed.by != "anybody" or deed.between == "none":
            yield f"{name}: it has a verb, and is not between two people of the town"
        if deed.verb in known:
            yield f"{name}: {known[deed.verb]} has the verb {deed.verb!r} already"
        known[deed.verb] = name


def _bad_hours(name: str, hours: dict[str, tuple[str, ...]], spots: set[str]) -> list[str]:
    lines = [f"{name}: no hour {hour!r}" for hour in hours if hour not in _HOURS]
    return lines + [
        f"{name}: no place {spot!r}"
        for drawn in hours.values()
        for spot in drawn
        if spot not in spots
    ]


_HOURS = {str(hour) for hour in range(24)}
