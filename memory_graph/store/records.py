"""The values that the store takes and gives: plain frozen structs, ready to cross processes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from reverie.memory_graph.ids import Key


class Loaded(msgspec.Struct, frozen=True):
    """What is needed to build one user's graph: a snapshot, then the events after it.

    `tail` holds (seq, event bytes) for every seq from `snapshot_seq` + 1 to `seq`, without a gap.
    Without a snapshot, `snapshot_seq` is 0 and the tail begins at 1. `warnings` name damaged
    snapshots that were passed over.
    """

    generation: int
    seq: int
    embedder: str | None
    snapshot: bytes | None
    snapshot_seq: int
    snapshot_format: int | None
    tail: list[tuple[int, bytes]]
    warnings: list[str]


class Built(NamedTuple):
    """What a repair has to know of a state: the turns that wait in it, and whose its vectors are
    (None and 0 without any)."""

    turns: list[OutboxTurn]
    embedder: str | None
    dim: int


class OutboxTurn(msgspec.Struct, frozen=True, array_like=True):
    """One turn that waits for extraction, or failed it."""

    turn_id: str
    is_quarantined: bool = False
    attempts: int = 0
    error: str = ""


class UserImage(msgspec.Struct, frozen=True):
    """One user at one moment, whole: enough to make the same user in another world."""

    key: Key
    seq: int
    embedder: str | None
    snapshot: bytes | None
    snapshot_seq: int
    snapshot_format: int | None
    tail: list[tuple[int, bytes]]
    pending: list[OutboxTurn]


class PendingTurns(NamedTuple):
    """The oldest turns of one user that wait for extraction, in the order they were said."""

    key: Key
    generation: int
    turn_ids: list[str]


class QuarantinedTurn(NamedTuple):
    """A turn whose extraction was given up."""

    key: Key
    turn_id: str
    attempts: int
    error: str


class ErasureCounts(msgspec.Struct, frozen=True):
    """How many rows of each table an erasure removed."""

    events: int = 0
    snapshots: int = 0
    results: int = 0
    turns: int = 0
    pins: int = 0
    generations: int = 0
