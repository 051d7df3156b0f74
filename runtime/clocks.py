"""Which clock tells a world's time: its own, or that of the runtime."""

from __future__ import annotations

from collections.abc import Mapping

from reverie import door
from reverie.clock import Clock, WallClock
from reverie.memory_graph.errors import ConfigError
from reverie.memory_graph.ids import check_id


class Clocks:
    """The clocks of a runtime. Safe to share between threads. Nothing of it is stored: a world
    that has a clock of its own is given it at each opening."""

    def __init__(
        self, default: Clock | None = None, own: Mapping[str, Clock] | None = None
    ) -> None:
        """Begin with the clock of all worlds (the wall clock if None), and those of single ones.

        Raises:
            InvalidIdError: a world's name is none.
            ConfigError: a clock without `now`.
        """
        self._default: Clock = _checked(WallClock() if default is None else default)
        self._own: dict[str, Clock] = {}
        for world, clock in (own or {}).items():
            self.set(world, _checked(clock))

    def set(self, world: str, clock: Clock | None) -> None:
        """Let a world live by `clock` from its next call on; None: by that of the runtime.

        Raises:
            InvalidIdError, ConfigError: as at the beginning.
        """
        name = check_id(world, "world")
        if clock is None:
            self._own.pop(name, None)
        else:
            self._own[name] = _checked(clock)

    def of(self, world: str) -> Clock:
        """Return the clock that a world lives by."""
        return self._own.get(world, self._default)

    def own(self, world: str) -> Clock | None:
        """Return the clock that only this world has, if it has one."""
        return self._own.get(world)

    def share(self, world: str, new_world: str) -> None:
        """Let a new world live by the clock of the one that it is made of, unless it has one."""
        if (clock := self._own.get(world)) is not None:
            self._own.setdefault(new_world, clock)

    def now(self, world: str | None = None) -> float:
        """Return a world's time in seconds; None asks the runtime's clock.

        Raises:
            InvalidTimeError: the clock gives no usable number (NaN, infinite, past the year 9999).
        """
        clock = self._default if world is None else self.of(world)
        return door.time(clock.now(), "clock")


def _checked(clock: Clock) -> Clock:
    if not callable(getattr(clock, "now", None)):
        msg = f"a clock needs a method now() that returns seconds; {type(clock).__name__} has none"
        raise ConfigError(msg, setting="clock")
    return clock
