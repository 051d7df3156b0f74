"""Another embedder for a world that has vectors: a method of `Runtime`, here to keep that file
short."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reverie.actors import commands as c
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.ids import DEFAULT_WORLD, Key, check_id
from reverie.memory_graph.state import as_bytes
from reverie.repeats import NOBODY, mark

if TYPE_CHECKING:
    from reverie.models.protocol import Embedder
    from reverie.runtime import Runtime


def reembed(  # noqa: D417 (self: it is a method)
    self: Runtime,
    world: str = DEFAULT_WORLD,
    *,
    embedder: str | Embedder,
    progress: Callable[[int, int], None] | None = None,
    request_id: str | None = None,
) -> int:
    """Replace all vectors of a world by those of another embedder; returns the users done.

    Run it while nothing is written to the world. A crash in between leaves users of both
    kinds; running it again finishes the work.

    Args:
        world: which world.
        embedder: as in `Config.embedder`.
        progress: called with (users done, users in all).
        request_id: a call repeated with the same id that was carried out is not again.

    Raises:
        InvalidValueError: there is no such world.
        RequestReusedError: the request id was used before in this world, for another call.
    """
    self._require_open()
    world = check_id(world, "world")
    if self.mind.stored(world) is None:
        msg = f"there is no world {world!r}"
        raise InvalidValueError(msg, world=world)
    new = self.mind.other(embedder)

    def done() -> int:
        users = self.users(world)
        for count, user_id in enumerate(users, 1):
            _one(self, Key(world, user_id), new)
            if progress is not None:
                progress(count, len(users))
        self.mind.replaced(world, embedder, new)
        return len(users)

    key = Key(world, NOBODY)
    return self.repeats.once(key, mark(key, request_id, "reembed", new.info.id), int, done)


def _one(rt: Runtime, key: Key, new: Embedder) -> None:
    """Replace the vectors of one user, unless they are of the new embedder already."""
    user = rt.user(key.user_id, key.world)
    if user.stats().embedder == new.info.id:
        return
    page: c.TextPage = rt.call(c.Texts(**user._read()))  # noqa: SLF001
    matrix = new.embed(page.texts, "passage")
    shared = user._write(rt.new_request_id()) | {"embedder": new.info.id, "dim": new.info.dim}  # noqa: SLF001
    rt.call(c.SetVectors(**shared, ids=tuple(page.ids), vectors=as_bytes(matrix)))
