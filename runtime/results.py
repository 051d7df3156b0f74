"""What calls of the public API take and give beside the items themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from reverie.actors.answers import Erased, ShardStats
from reverie.actors.ingest import IngestCounts
from reverie.memory_graph.drafts import Kept
from reverie.memory_graph.ids import Key


class SearchOptions(TypedDict, total=False):
    """The options of `User.search`, for the calls that pass them on."""

    limit: int
    filters: Mapping[str, Any] | None
    types: Sequence[str] | str | None
    as_of: object
    valid_at: object
    include_archived: bool
    include_retired: bool


class AddResult(msgspec.Struct, frozen=True):
    """What `add` did. `ids` are the turns' ids, in order; `kept` says, when it waited, what
    became of each memory that was found in them."""

    ids: list[str]
    kept: list[Kept] = []


class Observed(msgspec.Struct, frozen=True):
    """What an observation did.

    Attributes:
        event_id: of what happened; all who know of it have it at their memories.
        kept: user id of each witness (of a group: "group:NAME") -> what became of it there.
    """

    event_id: str
    kept: dict[str, Kept]


class ConversationSummary(msgspec.Struct, frozen=True):
    """What was said in a period, or of a topic; made when it was asked for, and not kept.

    Attributes:
        text: empty when there is nothing to tell.
        from_at: begin of the period in seconds: as asked for, else of the first turn.
        to_at: its end.
        sources: ids of the turns and memories that the text was made of.
        messages: how many turns lie in the period and topic.
    """

    text: str
    from_at: float
    to_at: float
    sources: tuple[str, ...]
    messages: int


class ForgetReceipt(msgspec.Struct, frozen=True):
    """Proof of an erasure; see `commands.Erased`.

    `clean` means that there was such a user and that nothing of it was found afterwards. It is
    False when there was none: without its texts there is nothing to search for, so nothing is
    proven. That is also so when a shard died right after the erasure and the call was repeated.
    """

    world: str
    user_id: str
    at: float
    clean: bool
    erased: Erased


ERASED_AT = tuple[float, Erased]  # when, and what


def receipt(key: Key, at: float, erased: Erased) -> ForgetReceipt:
    """Return the receipt of an erasure at a time in seconds."""
    return ForgetReceipt(*key, at, erased.existed and not erased.found, erased)


class RuntimeStats(msgspec.Struct, frozen=True):
    """What a runtime holds: users on disk, users in memory, and what ingestion did."""

    users: int
    worlds: list[str]
    shards: list[ShardStats]
    ingest: IngestCounts
    pending: int
    quarantined: int


class Checkpoint(msgspec.Struct, frozen=True):
    """A save slot. `made_at` is in seconds on the runtime's clock."""

    world: str
    tag: str
    made_at: float
