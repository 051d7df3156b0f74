"""A world: what happens between its users, and its save slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.memory_graph.ids import check_key

if TYPE_CHECKING:
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
        """Return the ids of its users, sorted."""
        return self._rt.users(self.name)
