"""What happens in an hour: planted deeds, and those that are drawn for the people of a place."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec

from reverie.town.ledger import Happening
from reverie.town.schedule import day_and_hour
from reverie.town.setting import PLAYER, Claim, Deed, Setting, said
from reverie.town.streams import stream

Where = dict[str, list[str]]  # place -> who is awake there


class Script:
    """Draws what happens; the same for the same seed, tick and people in the places."""

    def __init__(
        self, setting: Setting, seed: int, *, pace: float, unseen: frozenset[str] = frozenset()
    ) -> None:
        """Make the script of a town.

        Args:
            setting: the town.
            seed: of what is drawn.
            pace: how many deeds an hour there are at a place with people, on average.
            unseen: planted deeds that nobody sees after all.
        """
        self._setting = setting
        self._seed = seed
        self._pace = pace
        self._unseen = unseen
        self._drawn = [(name, deed) for name, deed in setting.deeds.items() if deed.chance > 0]

    def happenings(self, tick: int, where: Where) -> list[Happening]:
        """Return what happens at a tick. Planted deeds take their people there, in `where` too."""
        planted = list(self._planted(tick, where))
        draw = stream(self._seed, "script", tick)
        day, hour = day_and_hour(tick)
        occupied = [(place, names) for place, names in where.items() if names]
        player_at = draw.choice(occupied)[0] if occupied else ""
        found = list(planted)
        for place, names in occupied:
            count = int(self._pace) + (draw.random() < self._pace % 1)
            for _ in range(count):
                claim = self._draw(place, names, draw, with_player=place == player_at)
                if claim is not None:
                    number = f"d{day}h{hour:02d}n{len(found)}"
                    found.append(self._happening(number, tick, claim, tuple(names)))
        return found

    def _planted(self, tick: int, where: Where) -> Iterator[Happening]:
        day, hour = day_and_hour(tick)
        for planted in self._setting.planted:
            if (planted.day, planted.hour) != (day, hour):
                continue
            actors = [name for name in (planted.a, planted.b) if name is not None]
            for names in where.values():
                names[:] = [name for name in names if name not in actors]
            there = where.setdefault(planted.place, [])
            there += actors
            claim = Claim(
                planted.deed, planted.place, planted.a or PLAYER, planted.b, planted.thing
            )
            seen = () if planted.id in self._unseen else tuple(there)
            yield self._happening(planted.id, tick, claim, seen, planted.id)

    def _happening(
        self,
        number: str,
        tick: int,
        claim: Claim,
        witnesses: tuple[str, ...],
        planted: str | None = None,
    ) -> Happening:
        language = self._setting.places[claim.place].language
        return Happening(
            id=number,
            tick=tick,
            claim=claim,
            text=said(self._setting, claim, language),
            language=language,
            witnesses=witnesses,
            planted=planted,
        )

    def _draw(
        self, place: str, names: list[str], draw: Random, *, with_player: bool
    ) -> Claim | None:
        """Draw one deed among the people of a place, None if no deed fits them."""
        pairs = {between: self._pairs(between, names) for between in ("feud", "friend")}
        fitting = [
            (name, deed)
            for name, deed in self._drawn
            if (with_player or deed.by != PLAYER)
            and (deed.between not in pairs or pairs[deed.between])
        ]
        if not fitting:
            return None
        name, deed = draw.choices(fitting, [deed.chance for _, deed in fitting])[0]
        a, b = self._actors(deed, names, pairs, draw)
        thing = draw.randrange(len(deed.things)) if deed.things else 0
        return None if a == b else Claim(name, place, a, b, thing)

    @staticmethod
    def _actors(
        deed: Deed, names: list[str], pairs: dict[str, list[tuple[str, str]]], draw: Random
    ) -> tuple[str, str | None]:
        if deed.between in pairs:
            return draw.choice(pairs[deed.between])
        a = PLAYER if deed.by == PLAYER else draw.choice(names)
        return a, draw.choice(names) if deed.between == "any" else None

    def _pairs(self, between: str, names: list[str]) -> list[tuple[str, str]]:
        here = set(names)
        people = self._setting.people
        return [
            (a, b)
            for a in names
            for b in (people[a].feuds if between == "feud" else people[a].friends)
            if b in here
        ]


def distorted(setting: Setting, claim: Claim, speaker: str, draw: Random) -> tuple[Claim, str]:
    """Change one thing of a claim; return it with what was changed, in words ("" for nothing).

    Whoever has a feud likes to believe the worst of the other.
    """
    deed = setting.deeds[claim.deed]
    kinds = ["place"]
    kinds += ["thing"] * 2 if len(deed.things) > 1 else []
    feuds = setting.people[speaker].feuds
    kinds += ["who"] if deed.sentiment < 0 and feuds and claim.a != speaker else []
    match draw.choice(kinds):
        case "thing":
            things = [i for i in range(len(deed.things)) if i != claim.thing]
            new = msgspec.structs.replace(claim, thing=draw.choice(things))
            change = f"{deed.things[claim.thing][0]} became {deed.things[new.thing][0]}"
        case "who":
            new = msgspec.structs.replace(claim, a=draw.choice(feuds))
            change = f"{setting.called(claim.a, 'en')} became {new.a}"
        case _:
            places = [name for name in setting.places if name != claim.place]
            new = msgspec.structs.replace(claim, place=draw.choice(places))
            old_place, new_place = setting.places[claim.place].en, setting.places[new.place].en
            change = f"{old_place} became {new_place}"
    if new == claim or new.a == new.b:
        return claim, ""
    return new, change
