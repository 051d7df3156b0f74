"""`AsyncMemory`: the calls of `Memory` as coroutines, each in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from reverie.mem0.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")


def _twin(
    method: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    async def twin(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    update_wrapper(twin, method)
    return twin


class AsyncMemory:
    """`Memory` with coroutines; see there for each call. `sync` is the memory itself."""

    def __init__(self, config: Any = None, **own: Any) -> None:
        self.sync = Memory(config, **own)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **own: Any) -> Self:
        """Return a memory by a configuration of mem0; may be awaited, as early 1.x wants it."""
        return cls(config_dict, **own)

    def __await__(self) -> Generator[None, None, Self]:
        yield from ()
        return self

    add = _twin(Memory.add)
    get = _twin(Memory.get)
    get_all = _twin(Memory.get_all)
    search = _twin(Memory.search)
    update = _twin(Memory.update)
    delete = _twin(Memory.delete)
    delete_all = _twin(Memory.delete_all)
    history = _twin(Memory.history)
    reset = _twin(Memory.reset)
    chat = _twin(Memory.chat)

    def close(self) -> None:
        """Give the data folder back, as `Memory.close`."""
        self.sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.sync.close)
