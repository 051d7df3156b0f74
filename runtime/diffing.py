"""What differs between two save slots of a world, or one and now. These functions are methods of
`World`; they stand here to keep that file short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from reverie import door
from reverie.actors import commands as c
from reverie.actors.lane import raise_error
from reverie.memory_graph.diff import MAX_SHOWN, UserDiff
from reverie.memory_graph.ids import check_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reverie.saves import Progress
    from reverie.world import World

CHUNK = 32  # users whose states are compared in one call of each shard
COUNTED = (
    *("added", "ended", "changed", "missing"),
    *("relations_added", "relations_ended", "relations_changed", "relations_missing"),
    "relationships",
)


class WorldDiff(msgspec.Struct, frozen=True):
    """What differs between two states of a world, the first and the second.

    Attributes:
        world: its name.
        tag_a: of the first.
        tag_b: of the second; None is now.
        users: how many there are in either.
        came: users that only the second has.
        gone: users that only the first has.
        changed: what differs, for each user of which anything does, those among them.
        counts: how many differences of each kind there are over all users, by the names of the
            lists of `UserDiff`; of turns, too.
    """

    world: str
    tag_a: str
    tag_b: str | None
    users: int
    came: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[UserDiff, ...]
    counts: dict[str, int]

    def of(self, user_id: str) -> UserDiff:
        """Return what differs of one user; of one that is the same in both, nothing."""
        found = (user for user in self.changed if user.user_id == user_id)
        return next(found, UserDiff(user_id=user_id))


def diff(
    self: World,
    tag_a: str,
    tag_b: str | None = None,
    *,
    limit: int = MAX_SHOWN,
    progress: Progress | None = None,
) -> WorldDiff:
    """Return what differs between two checkpoints, or one and now; changes nothing.

    Users whose history was not written to in between cost next to nothing. Of large worlds,
    `diff_each` gives the users one by one.

    Args:
        self: the world.
        tag_a: of the first state.
        tag_b: of the second, which may also be the older one; None is now.
        limit: how many differences of each kind are told of one user; all are counted.
        progress: called with (users done, users in all).

    Raises:
        UnknownCheckpointError: no such tag.
        JournalDamagedError: a user cannot be read.
    """
    users = 0

    def count(done: int, of: int) -> None:
        nonlocal users
        users = of
        if progress is not None:
            progress(done, of)

    changed = tuple(diff_each(self, tag_a, tag_b, limit=limit, progress=count))
    counts = {name: sum(user.count(name) for user in changed) for name in COUNTED}
    counts |= {
        "turns_added": sum(user.turns_added for user in changed),
        "turns_missing": sum(user.turns_missing for user in changed),
    }
    return WorldDiff(
        world=self.name,
        tag_a=tag_a,
        tag_b=tag_b,
        users=users,
        came=tuple(user.user_id for user in changed if user.presence == "came"),
        gone=tuple(user.user_id for user in changed if user.presence == "gone"),
        changed=changed,
        counts=counts,
    )


def diff_each(
    self: World,
    tag_a: str,
    tag_b: str | None = None,
    *,
    limit: int = MAX_SHOWN,
    progress: Progress | None = None,
) -> Iterator[UserDiff]:
    """Yield what differs of each user, of those of which anything does, by their ids; see `diff`.
    Only a few of them are in memory at a time. The tags are checked when the first is asked for."""
    slots, name = self._rt.slots, self.name
    slots.require(name, check_id(tag_a, "tag"))
    if tag_b is not None:
        slots.require(name, check_id(tag_b, "tag"))
    limit = door.limit(limit)
    before, after = slots.positions(name, tag_a), slots.positions(name, tag_b)
    everybody = sorted(before.keys() | after.keys())
    # Readings may wait for the journal: they are no changes that are told.
    differing = [u for u in everybody if before.get(u) != after.get(u)]
    done = len(everybody) - len(differing)
    if progress is not None:
        progress(done, len(everybody))
    for start in range(0, len(differing), CHUNK):
        part = differing[start : start + CHUNK]
        now = self._rt.now(name)
        commands = [
            c.Compare(world=name, user_id=user_id, now=now, before=tag_a, after=tag_b, limit=limit)
            for user_id in part
        ]
        for answer in self._rt.slots.ask(commands):
            found: UserDiff = raise_error(answer)
            done += 1
            if not found.is_empty:
                yield found
            if progress is not None:
                progress(done, len(everybody))
