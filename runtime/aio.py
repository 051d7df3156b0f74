"""The async twins: the same methods as coroutines, run in a small pool of threads.

`async with await reverie.open_async(path) as rt: await rt.user("ana").add(...)`. Each call blocks
one thread of the pool, never the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from reverie.aio_worlds import AsyncWorld
from reverie.clock import Clock
from reverie.config import Config
from reverie.memory_graph.errors import ClosedError, OverloadedError
from reverie.memory_graph.ids import DEFAULT_WORLD
from reverie.relationships import Relationships
from reverie.runtime import Runtime, open as open_sync
from reverie.user import User

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 32


def _of_user(
    method: Callable[Concatenate[User, P], R],
) -> Callable[Concatenate[AsyncUser, P], Coroutine[Any, Any, R]]:
    async def twin(self: AsyncUser, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._rt.run(partial(method, self._user, *args, **kwargs))

    update_wrapper(twin, method)
    return twin


def _of_runtime(
    method: Callable[Concatenate[Runtime, P], R],
) -> Callable[Concatenate[AsyncRuntime, P], Coroutine[Any, Any, R]]:
    async def twin(self: AsyncRuntime, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.run(partial(method, self.sync, *args, **kwargs))

    update_wrapper(twin, method)
    return twin


def _of_relationships(
    method: Callable[Concatenate[Relationships, P], R],
) -> Callable[Concatenate[AsyncRelationships, P], Coroutine[Any, Any, R]]:
    async def twin(self: AsyncRelationships, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._rt.run(partial(method, self._sync, *args, **kwargs))

    update_wrapper(twin, method)
    return twin


class AsyncRelationships:
    """`Relationships` with coroutines; see there for each method."""

    def __init__(self, runtime: AsyncRuntime, relationships: Relationships) -> None:
        self._rt = runtime
        self._sync = relationships

    move = _of_relationships(Relationships.move)
    of = _of_relationships(Relationships.of)
    list = _of_relationships(Relationships.list)
    history = _of_relationships(Relationships.history)
    towards = _of_relationships(Relationships.towards)
    remove = _of_relationships(Relationships.remove)


class AsyncUser:
    """`User` with coroutines; see there for each method."""

    def __init__(self, runtime: AsyncRuntime, user: User) -> None:
        self._rt = runtime
        self._user = user
        self.key = user.key
        self.relationships = AsyncRelationships(runtime, user.relationships)

    add = _of_user(User.add)
    remember = _of_user(User.remember)
    observe = _of_user(User.observe)
    relate = _of_user(User.relate)
    update = _of_user(User.update)
    delete = _of_user(User.delete)
    archive = _of_user(User.archive)
    restore = _of_user(User.restore)
    search = _of_user(User.search)
    why = _of_user(User.why)
    context = _of_user(User.context)
    nearest = _of_user(User.nearest)
    query = _of_user(User.query)
    export_graph = _of_user(User.export_graph)
    get_conversation_summary = _of_user(User.get_conversation_summary)
    summarise = _of_user(User.summarise)
    reflect = _of_user(User.reflect)
    set_profile = _of_user(User.set_profile)
    profile = _of_user(User.profile)
    audit = _of_user(User.audit)
    export = _of_user(User.export)
    get = _of_user(User.get)
    list = _of_user(User.list)
    history = _of_user(User.history)
    entities = _of_user(User.entities)
    neighbors = _of_user(User.neighbors)
    stats = _of_user(User.stats)
    digest = _of_user(User.digest)
    check = _of_user(User.check)
    forget = _of_user(User.forget)
    mask = _of_user(User.mask)
    unmask = _of_user(User.unmask)


class _Job:
    """A call that waits for a thread; None once nobody waits for it any more."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call: Callable[[], Any] | None = call

    def __call__(self) -> Any:
        return None if self.call is None else self.call()


class AsyncRuntime:
    """`Runtime` with coroutines; see there for each method. `sync` is the runtime itself."""

    def __init__(self, runtime: Runtime) -> None:
        self.sync = runtime
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="reverie-async")
        self._running = 0  # calls that wait for a thread, or have one; used in the loop's thread

    async def run(self, call: Callable[[], R]) -> R:
        """Run a blocking call in the pool. One that is cancelled before it has begun is not made.

        Raises:
            OverloadedError: `Config.max_waiting` calls are under way already; it was not begun.
        """
        if self._running >= self.sync.config.max_waiting:
            msg = f"{self._running} calls are under way already; try again later"
            raise OverloadedError(msg, waiting=self._running)
        job = _Job(call)
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, job)
        except RuntimeError as exc:  # the pool takes no more
            msg = "the runtime is closed"
            raise ClosedError(msg) from exc
        self._running += 1
        future.add_done_callback(self._count_down)
        try:
            # Shielded: what is cancelled stays in the pool's queue, and counts until it leaves it.
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            job.call = None
            raise

    def _count_down(self, _future: object) -> None:
        self._running -= 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def user(self, user_id: str, world: str = DEFAULT_WORLD) -> AsyncUser:
        """Return a user's memory; raises InvalidIdError."""
        return AsyncUser(self, self.sync.user(user_id, world))

    def world(self, name: str = DEFAULT_WORLD, *, clock: Clock | None = None) -> AsyncWorld:
        """Return a world; raises InvalidIdError."""
        return AsyncWorld(self, self.sync.world(name, clock=clock))

    async def import_world(
        self,
        path: str | Path,
        name: str | None = None,
        *,
        clock: Clock | None = None,
        request_id: str | None = None,
    ) -> AsyncWorld:
        """Make a world of a file, and return it; see `Runtime.import_world`."""
        call = partial(self.sync.import_world, path, name, clock=clock, request_id=request_id)
        made = await self.run(call)
        return AsyncWorld(self, made)

    create_world = _of_runtime(Runtime.create_world)
    worlds = _of_runtime(Runtime.worlds)
    users = _of_runtime(Runtime.users)
    add_many = _of_runtime(Runtime.add_many)
    remember_many = _of_runtime(Runtime.remember_many)
    search_many = _of_runtime(Runtime.search_many)
    drain = _of_runtime(Runtime.drain)
    summarise = _of_runtime(Runtime.summarise)
    quarantined = _of_runtime(Runtime.quarantined)
    retry_quarantined = _of_runtime(Runtime.retry_quarantined)
    drop_quarantined = _of_runtime(Runtime.drop_quarantined)
    checkpoint = _of_runtime(Runtime.checkpoint)
    rewind = _of_runtime(Runtime.rewind)
    fork = _of_runtime(Runtime.fork)
    checkpoints = _of_runtime(Runtime.checkpoints)
    drop_checkpoint = _of_runtime(Runtime.drop_checkpoint)
    reembed = _of_runtime(Runtime.reembed)
    stats = _of_runtime(Runtime.stats)
    check = _of_runtime(Runtime.check)
    flush = _of_runtime(Runtime.flush)
    backup = _of_runtime(Runtime.backup)

    async def close(self) -> None:
        """Close the runtime; a second call does nothing."""
        await asyncio.get_running_loop().run_in_executor(None, self.sync.close)
        self._pool.shutdown(wait=False)


async def open_async(
    path: str | Path,
    *,
    actors: int | None = None,
    address: str | None = None,
    clock: Clock | None = None,
    clocks: Mapping[str, Clock] | None = None,
    mask_key: str | bytes | None = None,
    config: Config | None = None,
    **settings: Any,
) -> AsyncRuntime:
    """Open a data folder for async code; arguments and errors as in `reverie.open`."""
    opened = await asyncio.to_thread(
        partial(
            open_sync,
            path,
            actors=actors,
            address=address,
            clock=clock,
            clocks=clocks,
            mask_key=mask_key,
            config=config,
            **settings,
        )
    )
    return AsyncRuntime(opened)
