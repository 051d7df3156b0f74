"""A world: what happens between its users, and its save slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie import (
    diffing,
    groups as gathered,
    lifecycle,
    profiles,
    reflecting,
    relationships as ties,
    saves,
    tellings,
    witnesses,
)
from reverie.memory_graph.groups import name_of
from reverie.memory_graph.ids import check_key

if TYPE_CHECKING:
    from reverie.clock import Clock
    from reverie.results import Checkpoint
    from reverie.runtime import Runtime
    from reverie.user import User


class World:
    """A save game or a tenant; made by `Runtime.world`. Cheap, holds no state.

    Times are seconds on the runtime's clock, or anything that `parse_time` takes. Every method may
    raise InputError (a bad argument), StorageError, and UnavailableError.
    """

    def __init__(self, runtime: Runtime, name: str) -> None:
        self._rt = runtime
        self.name = name

    def __repr__(self) -> str:
        return f"World({self.name!r})"

    def user(self, user_id: str) -> User:
        """Return the memory of one of its users; see `Runtime.user`."""
        check_key(self.name, user_id)
        return self._rt.user(user_id, self.name)

    def users(self) -> list[str]:
        """Return the ids of its users, sorted, without those of groups (see `groups`)."""
        return [user for user in self._rt.users(self.name) if name_of(user) is None]

    # -- what happens, and who knows of it ----------------------------------------------

    observe = witnesses.observe
    observe_many = witnesses.observe_many
    tell = tellings.tell
    tell_many = tellings.tell_many
    who_knows = witnesses.who_knows
    group = gathered.in_world
    groups = gathered.of_world

    # -- how its users stand to each other ----------------------------------------------

    relationships = ties.of_world
    move_many = ties.move_many
    declare = ties.declare
    reflect = reflecting.reflect_all

    # -- its time ------------------------------------------------------------------------

    def now(self) -> float:
        """Return its time in seconds, on its own clock or that of the runtime."""
        return self._rt.now(self.name)

    def set_clock(self, clock: Clock | None) -> None:
        """Let it live by `clock` from the next call on; None: by the clock of the runtime. Nothing
        of a clock is stored: name it again at the next opening, with `open(clocks=...)`.

        Raises:
            ConfigError: it has no method `now`.
        """
        self._rt.clocks.set(self.name, clock)

    # -- save games ----------------------------------------------------------------------

    def checkpoint(self, tag: str, *, request_id: str | None = None) -> int:
        """Save it under a tag; returns the number of users. See `Runtime.checkpoint`."""
        return self._rt.checkpoint(tag, self.name, request_id=request_id)

    def rewind(self, tag: str, *, request_id: str | None = None) -> int:
        """Put it back to a tag; returns the number of users. See `Runtime.rewind`."""
        return self._rt.rewind(tag, self.name, request_id=request_id)

    def fork(self, tag: str, new_world: str, *, request_id: str | None = None) -> World:
        """Make a new world of a tag, and return it. See `Runtime.fork`."""
        self._rt.fork(tag, new_world, self.name, request_id=request_id)
        return self._rt.world(new_world)

    def checkpoints(self) -> list[Checkpoint]:
        """Return its save slots, in the order of their times."""
        return self._rt.checkpoints(self.name)

    def drop_checkpoint(self, tag: str, *, request_id: str | None = None) -> None:
        """Give up a save slot; raises UnknownCheckpointError when there is none."""
        self._rt.drop_checkpoint(tag, self.name, request_id=request_id)

    diff = diffing.diff
    diff_each = diffing.diff_each
    export = saves.export

    # -- limits, and the course of life -------------------------------------------------

    set_profiles = profiles.set_profiles
    tend = lifecycle.tend
    bury = lifecycle.bury
