"""Who is where at which hour."""

from __future__ import annotations

from functools import lru_cache

from reverie.town.setting import Person, Setting
from reverie.town.streams import stream

HOURS = 24
HOUR_S = 3600.0
DAY_S = HOURS * HOUR_S
_BED = 22  # who is at home by then is asleep


def time_of(tick: int) -> float:
    """Return the time of a tick in seconds: the town's first hour is 0."""
    return tick * HOUR_S


def day_and_hour(tick: int) -> tuple[int, int]:
    """Return the day, from 1, and the hour, 0 to 23."""
    return tick // HOURS + 1, tick % HOURS


def clock_text(at: float) -> str:
    """Return a time in seconds as people read it, such as "day 2, 09:00"."""
    day, hour = day_and_hour(int(at // HOUR_S))
    return f"day {day}, {hour:02d}:{int(at % HOUR_S // 60):02d}"


class Schedule:
    """Where everybody is, by their routines; what is left open is drawn."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self._setting = setting
        self._seed = seed
        self._days = {
            name: _day(setting.routines[person.routine], person.stops)
            for name, person in setting.people.items()
        }

    def places(self, tick: int) -> dict[str, list[str]]:
        """Return place -> who is awake there at a tick, in the order of the setting."""
        _, hour = day_and_hour(tick)
        draw = stream(self._seed, "schedule", tick)
        found: dict[str, list[str]] = {}
        for name, person in self._setting.people.items():
            spots = self._days[name][hour]
            spot = spots[0] if len(spots) == 1 else spots[draw.randrange(len(spots))]
            if spot:
                place = _place(person, spot)
                if not (place == person.home and hour >= _BED):
                    found.setdefault(place, []).append(name)
        return dict(sorted(found.items()))


def _place(person: Person, spot: str) -> str:
    return {"home": person.home, "work": person.work}.get(spot, spot)


def _day(
    routine: dict[str, tuple[str, ...]], stops: dict[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """Return the spots of each hour; ("",) before the first, when one sleeps."""
    return _hours(tuple(sorted((int(h), spots) for h, spots in {**routine, **stops}.items())))


@lru_cache(maxsize=4096)
def _hours(changes: tuple[tuple[int, tuple[str, ...]], ...]) -> tuple[tuple[str, ...], ...]:
    now: tuple[str, ...] = ("",)
    hours = []
    upcoming = dict(changes)
    for hour in range(HOURS):
        now = upcoming.get(hour, now)
        hours.append(now)
    return tuple(hours)
