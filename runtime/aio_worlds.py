"""The async twins of worlds and groups; see aio.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from reverie.groups import Group
from reverie.memory_graph.diff import MAX_SHOWN
from reverie.world import World

if TYPE_CHECKING:
    from reverie.aio import AsyncRuntime, AsyncUser
    from reverie.clock import Clock
    from reverie.memory_graph.diff import UserDiff
    from reverie.saves import Progress

P = ParamSpec("P")
R = TypeVar("R")


def _of_world(
    method: Callable[Concatenate[World, P], R],
) -> Callable[Concatenate[AsyncWorld, P], Coroutine[Any, Any, R]]:
    async def twin(self: AsyncWorld, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._rt.run(partial(method, self.sync, *args, **kwargs))

    update_wrapper(twin, method)
    return twin


def _of_group(
    method: Callable[Concatenate[Group, P], R],
) -> Callable[Concatenate[AsyncGroup, P], Coroutine[Any, Any, R]]:
    async def twin(self: AsyncGroup, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._rt.run(partial(method, self.sync, *args, **kwargs))

    update_wrapper(twin, method)
    return twin


class AsyncWorld:
    """`World` with coroutines; see there for each method. `sync` is the world itself."""

    def __init__(self, runtime: AsyncRuntime, world: World) -> None:
        self._rt = runtime
        self.sync = world
        self.name = world.name

    def user(self, user_id: str) -> AsyncUser:
        """Return the memory of one of its users; raises InvalidIdError."""
        return self._rt.user(user_id, self.name)

    def group(self, name: str) -> AsyncGroup:
        """Return a group; raises InvalidIdError."""
        return AsyncGroup(self._rt, self.sync.group(name))

    def now(self) -> float:
        """Return its time in seconds."""
        return self.sync.now()

    def set_clock(self, clock: Clock | None) -> None:
        """Let it live by `clock`; see `World.set_clock`."""
        self.sync.set_clock(clock)

    async def fork(self, tag: str, new_world: str, *, request_id: str | None = None) -> AsyncWorld:
        """Make a new world of a tag, and return it; see `World.fork`."""
        call = partial(self.sync.fork, tag, new_world, request_id=request_id)
        made = await self._rt.run(call)
        return AsyncWorld(self._rt, made)

    async def diff_each(
        self,
        tag_a: str,
        tag_b: str | None = None,
        *,
        limit: int = MAX_SHOWN,
        progress: Progress | None = None,
    ) -> AsyncIterator[UserDiff]:
        """Yield what differs of each user; see `World.diff_each`. `progress` is called in another
        thread."""
        found = self.sync.diff_each(tag_a, tag_b, limit=limit, progress=progress)
        while (one := await self._rt.run(partial(next, found, None))) is not None:
            yield one

    users = _of_world(World.users)
    groups = _of_world(World.groups)
    observe = _of_world(World.observe)
    observe_many = _of_world(World.observe_many)
    tell = _of_world(World.tell)
    tell_many = _of_world(World.tell_many)
    who_knows = _of_world(World.who_knows)
    relationships = _of_world(World.relationships)
    declare = _of_world(World.declare)
    move_many = _of_world(World.move_many)
    reflect = _of_world(World.reflect)
    checkpoint = _of_world(World.checkpoint)
    rewind = _of_world(World.rewind)
    checkpoints = _of_world(World.checkpoints)
    drop_checkpoint = _of_world(World.drop_checkpoint)
    diff = _of_world(World.diff)
    export = _of_world(World.export)
    set_profiles = _of_world(World.set_profiles)
    tend = _of_world(World.tend)
    bury = _of_world(World.bury)


class AsyncGroup:
    """`Group` with coroutines; see there for each method."""

    def __init__(self, runtime: AsyncRuntime, group: Group) -> None:
        self._rt = runtime
        self.sync = group
        self.name = group.name

    @property
    def user(self) -> AsyncUser:
        """The memory of the group itself."""
        return self._rt.user(self.sync.user.key.user_id, self.sync.world)

    join = _of_group(Group.join)
    leave = _of_group(Group.leave)
    members = _of_group(Group.members)
    observe = _of_group(Group.observe)
