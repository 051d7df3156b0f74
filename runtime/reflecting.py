"""Reflection as a caller sees it; what it is, is in memory_graph/reflection.py.

These functions are methods of `User` and `World`; they stand here to keep those files short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from reverie.actors import commands as c
from reverie.actors.lane import raise_error
from reverie.actors.summaries import SummaryKeeper
from reverie.memory_graph.drafts import Kept
from reverie.memory_graph.ids import Key
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.reflection import REFLECT_AT
from reverie.repeats import checked

if TYPE_CHECKING:
    from reverie.runtime import Runtime
    from reverie.user import User
    from reverie.world import World

MAX_USERS = 100_000  # whose gathered importance is estimated at once


def reflect(self: User, *, force: bool = False, request_id: str | None = None) -> list[str]:
    """Draw insights from what this user gathered since the last reflection, if that is enough.

    Pending turns are extracted first. Enough is what the user's profile or `Config.reflect_at` says
    (15 if neither does): the sum of the importance of new memories, 0 to 1 each. In the background
    the same is done when it is due.

    Args:
        self: whose memory.
        force: whatever was gathered is enough, if it is anything.
        request_id: a call repeated with the same id begins no second reflection; it makes what is
            left to be made of the first.

    Returns:
        The ids of the insights that were made; `get` gives each, with the memories it derives from.
    """
    rt = self._rt
    if rt.config.extractor != "off":
        rt.ingestor.drain(self.key, with_after=False)
    rt.call(_command(rt, self.key, checked(request_id), force=force))
    return _insights(self)


def reflect_all(
    self: World, *, force: bool = False, request_id: str | None = None
) -> dict[str, list[str]]:
    """Let all users of this world reflect for whom it is due, as `User.reflect` does; return the
    ids of the insights that were made, by user id, of those who made any.

    Turns that still wait for extraction are not waited for; `Runtime.drain` does that. The request
    id counts for each user by itself.
    """
    checked(request_id)
    rt, users = self._rt, [self.user(user_id) for user_id in self.users()]
    commands = [_command(rt, user.key, request_id, force=force) for user in users]
    begun = rt._router.call_many(commands)  # noqa: SLF001
    for answer in begun:
        raise_error(answer)
    made = {user.key.user_id: _insights(user) for user in users}
    return {user_id: ids for user_id, ids in made.items() if ids}


def _command(rt: Runtime, key: Key, request_id: str | None, *, force: bool) -> c.Reflect:
    wanted = rt.summaries.policy.reflect_at
    least = REFLECT_AT if wanted is None else wanted
    return rt.summaries.reflection(key, least, force=force, request_id=request_id)


def _insights(user: User) -> list[str]:
    """Make the insights of a user that are due; return the ids of those that hold."""
    keeper: SummaryKeeper = user._rt.summaries  # noqa: SLF001
    policy = msgspec.structs.replace(keeper.policy, kinds="insights", reflect_at=None)
    kept: list[str] = []
    while (found := keeper.step(user.key, policy)) is not None:
        kept.append(found)
    return [item.id for item in map(user.get, kept) if item.retired_at is None]


class Gathering:
    """Notes what users gather, and has the background look after those who may have to reflect.

    Only an estimate of when to look: whether a reflection is due, the shard says. It begins anew
    with each runtime; with its next extraction a user is looked after anyway.
    """

    def __init__(self, reflect_at: float | None, wake: Callable[[Key], None]) -> None:
        """Begin.

        Args:
            reflect_at: importance after which a user is looked after; None is never, until a
                profile with one is set.
            wake: lets the background look after a user.
        """
        self._least = reflect_at
        self._wake = wake
        self._gathered: dict[Key, float] = {}
        self._lock = threading.Lock()

    def note(self, commands: Sequence[c.UserCommand], answers: Sequence[Any]) -> None:
        """Take notice of what was carried out."""
        for command, answer in zip(commands, answers, strict=True):
            match command:
                case c.Remember() | c.Witness():
                    if self._least is not None and isinstance(answer, Kept) and answer.op == "ADD":
                        self._add(command.key, command.draft.importance, self._least)
                case c.SetProfile(profile=Profile(reflect_at=float(wanted))):
                    self._least = wanted if self._least is None else min(self._least, wanted)
                case _:  # it adds no memory
                    pass

    def _add(self, key: Key, importance: float, least: float) -> None:
        with self._lock:
            found = self._gathered.pop(key, 0.0) + importance
            if found < least:
                if len(self._gathered) >= MAX_USERS:
                    del self._gathered[next(iter(self._gathered))]
                self._gathered[key] = found
                return
        self._wake(key)
