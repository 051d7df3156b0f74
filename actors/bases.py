"""What the commands of a shard have in common; see commands.py."""

from __future__ import annotations

import msgspec

from reverie.memory_graph.ids import Key


class Command(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="c"):
    """Base of all commands; `world` and `user_id` are the partition key."""

    world: str
    user_id: str

    @property
    def key(self) -> Key:
        """The partition key."""
        return Key(self.world, self.user_id)


class Write(Command, frozen=True, kw_only=True):
    """A change of one user. `at` is its recorded time in seconds. `request_id` None means that
    the caller will not repeat it. `embedder` is the id of the embedder of its vectors."""

    at: float
    request_id: str | None = None
    embedder: str | None = None
    dim: int = 0


class Read(Command, frozen=True, kw_only=True):
    """A look at one user; changes nothing. `now` is the reader's time in seconds."""

    now: float
