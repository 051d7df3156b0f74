"""What requests hold: bodies and queries. Unknown fields are errors, never ignored.

Ranges that are written here stand in the description too; whatever is not, the door of the runtime
checks (runtime/door.py).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from reverie.door import MAX_LIMIT
from reverie.memory_graph.nodes import MemoryKind

MAX_MANY = 10_000  # items of one call

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=512)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Time: TypeAlias = Annotated[
    float | str,
    Meta(description="Seconds on the world's clock, or ISO 8601.", examples=[1700000000.0]),
]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]
Names: TypeAlias = list[Name]
# Pairs are lists of two: msgspec 0.23 crashes over a union of a bounded text and a tuple of them.
Entities: TypeAlias = Annotated[
    list[Name | Annotated[list[Name], Meta(min_length=2, max_length=2)]],
    Meta(description="Names, or pairs of a name and its type."),
]
Filters: TypeAlias = Annotated[
    dict[str, Any], Meta(description="A filter, as docs/filters.md tells.")
]
ItemType: TypeAlias = Literal["memory", "message", "summary"]
Anything: TypeAlias = dict[str, Any]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]
Mood: TypeAlias = Annotated[float, Meta(ge=-1, le=1)]
Number: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Ids: TypeAlias = Annotated[Names, Meta(max_length=MAX_MANY)]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all bodies and queries."""


# -- writing -----------------------------------------------------------------------------


class Message(Body, frozen=True, kw_only=True):
    """One turn of a conversation. A turn without a speaker is the user's own if its role is
    "user"."""

    text: Text
    role: Name | UnsetType = UNSET
    speaker: Name | UnsetType | None = UNSET
    time: Time | UnsetType | None = UNSET
    id: Name | UnsetType | None = UNSET
    session: Name | UnsetType | None = UNSET
    metadata: Anything | UnsetType | None = UNSET


Messages: TypeAlias = Text | Message | Annotated[list[Text | Message], Meta(max_length=MAX_MANY)]


class Adding(Body, frozen=True, kw_only=True):
    """How to store turns."""

    session: Name | UnsetType = UNSET
    infer: bool | UnsetType = UNSET
    wait: bool | UnsetType = UNSET


class Add(Adding, frozen=True, kw_only=True):
    """Turns of a conversation. `wait` answers after extraction, with what was kept."""

    messages: Messages
    at: Time | UnsetType | None = UNSET


class AddMany(Adding, frozen=True, kw_only=True):
    """Turns of several users, by user id."""

    messages: dict[str, Messages]


class Attributes(Body, frozen=True, kw_only=True):
    """What may be said of any memory."""

    importance: Share | UnsetType = UNSET
    confidence: Share | UnsetType = UNSET
    ttl_s: Seconds | UnsetType | None = UNSET
    tags: Names | UnsetType = UNSET
    metadata: Anything | UnsetType | None = UNSET


class Statement(Attributes, frozen=True, kw_only=True):
    """A statement to keep as it is."""

    text: Text
    kind: MemoryKind | UnsetType = UNSET
    valid_from: Time | UnsetType | None = UNSET
    valid_to: Time | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    topics: Names | UnsetType = UNSET
    entities: Entities | UnsetType = UNSET
    sources: Names | UnsetType = UNSET


class Remember(Statement, frozen=True, kw_only=True):
    """A statement to keep as it is, and the memories that it replaces."""

    replaces: Names | UnsetType = UNSET


class RememberMany(Body, frozen=True, kw_only=True):
    """Statements of several users, by user id."""

    memories: dict[str, Annotated[list[Text | Statement], Meta(max_length=MAX_MANY)]]


class Happening(Attributes, frozen=True, kw_only=True):
    """What may be said of any event."""

    at: Time | UnsetType | None = UNSET
    participants: Names | UnsetType = UNSET
    place: Name | UnsetType | None = UNSET
    sentiment: Mood | UnsetType = UNSET
    entities: Entities | UnsetType = UNSET


class Observe(Happening, frozen=True, kw_only=True):
    """An event that the user saw, or was told of."""

    event: Text
    told_by: Name | UnsetType | None = UNSET


class Relate(Body, frozen=True, kw_only=True):
    """A typed triple; "user" is the owner of the memory."""

    head: Name
    predicate: Name
    tail: Name
    head_type: Name | UnsetType = UNSET
    tail_type: Name | UnsetType = UNSET
    valid_from: Time | UnsetType | None = UNSET
    valid_to: Time | UnsetType | None = UNSET
    confidence: Share | UnsetType = UNSET
    functional: bool | UnsetType = UNSET
    ended: bool | UnsetType = UNSET


class Update(Attributes, frozen=True, kw_only=True):
    """What to change of a memory; at least one of these."""

    text: Text | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET


class Reason(Body, frozen=True, kw_only=True):
    """Why, for the history."""

    reason: Annotated[str, Meta(min_length=1, max_length=1024)] | UnsetType = UNSET


class Words(Body, frozen=True, kw_only=True):
    """A text."""

    text: Text


# -- reading -----------------------------------------------------------------------------


class Options(Body, frozen=True, kw_only=True):
    """How to look."""

    limit: Limit | UnsetType = UNSET
    filters: Filters | UnsetType | None = UNSET
    types: Annotated[list[ItemType], Meta(min_length=1)] | UnsetType | None = UNSET
    as_of: Time | UnsetType | None = UNSET
    valid_at: Time | UnsetType | None = UNSET
    include_archived: bool | UnsetType = UNSET
    include_retired: bool | UnsetType = UNSET


class Search(Options, frozen=True, kw_only=True):
    """A question."""

    question: Text


class Nearest(Body, frozen=True, kw_only=True):
    """A question, and which part of what is nearest to it."""

    question: Text
    limit: Limit | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=MAX_LIMIT)] | UnsetType = UNSET
    filters: Filters | UnsetType | None = UNSET


class SearchMany(Options, frozen=True, kw_only=True):
    """Questions of several users: pairs of a user id and a question."""

    questions: Annotated[
        list[Annotated[list[Text], Meta(min_length=2, max_length=2)]],
        Meta(min_length=1, max_length=1000),
    ]


class Why(Search, frozen=True, kw_only=True):
    """A question, and the item that did or did not come up for it."""

    item_id: Name


class AskContext(Search, frozen=True, kw_only=True):
    """A question, and how many tokens the block may have."""

    budget_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | UnsetType = UNSET


class Cypher(Body, frozen=True, kw_only=True):
    """A query in Cypher, which can only read; values belong into `params`. See docs/queries.md."""

    cypher: Text
    params: Anything | UnsetType | None = UNSET
    limit: Limit | UnsetType = UNSET
    timeout_s: Annotated[float, Meta(gt=0, le=60)] | UnsetType = UNSET
    include_archived: bool | UnsetType = UNSET
    include_retired: bool | UnsetType = UNSET


class Graph(Body, frozen=True, kw_only=True):
    """In which format."""

    format: Literal["graphml", "json"] = "json"
    include_archived: bool | UnsetType = UNSET
    include_retired: bool | UnsetType = UNSET


class ExportUser(Body, frozen=True, kw_only=True):
    """With the vectors; with names and numbers of people as they were said."""

    vectors: bool | UnsetType = UNSET
    unmask: bool | UnsetType = UNSET


class AskSummary(Body, frozen=True, kw_only=True):
    """What to tell of: a topic, a period, a session, or all."""

    topic: Name | UnsetType | None = UNSET
    last_n_days: Annotated[float, Meta(gt=0, le=1e6)] | UnsetType | None = UNSET
    since: Time | UnsetType | None = UNSET
    until: Time | UnsetType | None = UNSET
    session: Name | UnsetType | None = UNSET
    max_tokens: Annotated[int, Meta(ge=1, le=4000)] | UnsetType = UNSET


class Paging(Body, frozen=True, kw_only=True):
    """Which page."""

    limit: Limit = 100
    cursor: Name | None = None


class Listing(Paging, frozen=True, kw_only=True):
    """Which page of what is kept. `filters` is a filter as JSON."""

    filters: str | UnsetType = UNSET
    types: Annotated[list[ItemType], Meta(min_length=1)] | UnsetType = UNSET
    as_of: Time | UnsetType = UNSET
    valid_at: Time | UnsetType = UNSET
    include_archived: bool | UnsetType = UNSET
    include_retired: bool | UnsetType = UNSET


class EntityQuery(Paging, frozen=True, kw_only=True):
    """Which entities."""

    name: Name | None = None


class NeighborQuery(Body, frozen=True, kw_only=True):
    """Whose neighbours; "user" is the owner of the memory."""

    name: Name | UnsetType = UNSET
    as_of: Time | UnsetType = UNSET
    valid_at: Time | UnsetType = UNSET
    include_retired: bool | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class Force(Body, frozen=True, kw_only=True):
    """Whatever was gathered is enough."""

    force: bool | UnsetType = UNSET


# -- relationships -----------------------------------------------------------------------


class Bounds(Paging, frozen=True, kw_only=True):
    """Which relationships."""

    dimension: Name | UnsetType = UNSET
    at_least: float | UnsetType = UNSET
    at_most: float | UnsetType = UNSET
    at: Time | UnsetType = UNSET


class WorldBounds(Bounds, frozen=True, kw_only=True):
    """Which relationships of a world."""

    towards: Name | UnsetType = UNSET


class At(Body, frozen=True, kw_only=True):
    """At which time; now by default."""

    at: Time | UnsetType = UNSET


class DimensionBody(Body, frozen=True, kw_only=True):
    """What a dimension is; see docs/relationships.md."""

    low: float | None = -1.0
    high: float | None = 1.0
    rest: float = 0.0
    half_life_s: Seconds | None = None


class Move(Body, frozen=True, kw_only=True):
    """What is added, by dimension."""

    by: dict[str, float]
    reason: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET
    memory_id: Name | UnsetType | None = UNSET
    at: Time | UnsetType | None = UNSET
    dimensions: dict[str, DimensionBody] | UnsetType = UNSET


class OwnedMove(Move, frozen=True, kw_only=True):
    """A move, with who moves towards whom."""

    owner: Name
    other: Name


class MoveMany(Body, frozen=True, kw_only=True):
    """Moves, carried out in order."""

    moves: Annotated[list[OwnedMove], Meta(max_length=MAX_MANY)]


class Declare(Body, frozen=True, kw_only=True):
    """Dimensions, by name."""

    dimensions: dict[str, DimensionBody]


# -- worlds ------------------------------------------------------------------------------


class WorldEvent(Happening, frozen=True, kw_only=True):
    """What happened, and who saw it."""

    text: Text
    witnesses: Names | UnsetType = UNSET
    groups: Names | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    event_id: Name | UnsetType | None = UNSET


class OneOfMany(WorldEvent, frozen=True, kw_only=True):
    """An event of several, each with a request id of its own."""

    request_id: Name | UnsetType | None = UNSET


class ObserveMany(Body, frozen=True, kw_only=True):
    """Events, in order."""

    events: Annotated[list[OneOfMany], Meta(max_length=MAX_MANY)]


class Tell(Body, frozen=True, kw_only=True):
    """Who tells whom of what."""

    speaker: Name
    listener: Name
    memory_id: Name
    text: Text | UnsetType | None = UNSET
    confidence: Share | UnsetType | None = UNSET
    at: Time | UnsetType | None = UNSET


class Telling(Tell, frozen=True, kw_only=True):
    """A telling of several, with a request id of its own."""

    request_id: Name | UnsetType | None = UNSET


class TellMany(Body, frozen=True, kw_only=True):
    """Tellings, all from what is known now."""

    tellings: Annotated[list[Telling], Meta(max_length=MAX_MANY)]


class Join(Body, frozen=True, kw_only=True):
    """Who joins; `history` lets them recall what the group knows already."""

    user_ids: Ids
    history: bool | UnsetType = UNSET


class Leave(Body, frozen=True, kw_only=True):
    """Who leaves; `forget` takes what they knew by the group."""

    user_ids: Ids
    forget: bool | UnsetType = UNSET


class Users(Paging, frozen=True, kw_only=True):
    """Which page of the users; with the memories of groups, or without."""

    groups: bool = False


class Tag(Body, frozen=True, kw_only=True):
    """The name of a save slot."""

    tag: Name


class Fork(Body, frozen=True, kw_only=True):
    """The name of the world to make; the key must be for it too."""

    new_world: Name


class Diff(Body, frozen=True, kw_only=True):
    """Two save slots; without the second, one and now."""

    tag_a: Name
    tag_b: Name | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class Export(Body, frozen=True, kw_only=True):
    """Of a save slot; of now by default."""

    tag: Name | UnsetType = UNSET


class ProfileBody(Body, frozen=True, kw_only=True):
    """Limits of a user; see docs/worlds.md."""

    name: Annotated[str, Meta(max_length=200)] | UnsetType = UNSET
    memories: Number | UnsetType | None = UNSET
    bytes: Number | UnsetType | None = UNSET
    model_calls: Number | UnsetType | None = UNSET
    prompt_tokens: Number | UnsetType | None = UNSET
    ttl_s: dict[MemoryKind, Seconds] | UnsetType = UNSET
    archive_below: Annotated[float, Meta(ge=0)] | UnsetType | None = UNSET
    reflect_at: Seconds | UnsetType | None = UNSET
    rest: Annotated[dict[str, float], Meta(max_length=64)] | UnsetType = UNSET


class SetProfile(Body, frozen=True, kw_only=True):
    """Limits, or null for none."""

    profile: ProfileBody | None


class SetProfiles(Body, frozen=True, kw_only=True):
    """Limits by user id; null lifts them."""

    profiles: Annotated[dict[str, ProfileBody | None], Meta(max_length=MAX_MANY)]


class Tend(Body, frozen=True, kw_only=True):
    """As of when, and for whom; now, and for all for whom something is due."""

    at: Time | UnsetType | None = UNSET
    users: Ids | UnsetType | None = UNSET


class Bury(Body, frozen=True, kw_only=True):
    """By which names others know the dead, and whether what they remember of it is put away."""

    names: Annotated[Names, Meta(max_length=64)] | UnsetType = UNSET
    memories: bool | UnsetType = UNSET


# -- the whole ---------------------------------------------------------------------------


class Embedding(Body, frozen=True, kw_only=True):
    """One of the models that have a name; files are named on the command line only."""

    embedder: Literal["auto", "minilm", "multilingual", "standin"]


class MakeWorld(Body, frozen=True, kw_only=True):
    """The embedder of a new world; the server's by default."""

    embedder: Literal["auto", "minilm", "multilingual", "standin"] | None = None


class Turns(Body, frozen=True, kw_only=True):
    """Ids of turns; all of the user's in quarantine by default."""

    turn_ids: Ids | UnsetType = UNSET


class Drain(Body, frozen=True, kw_only=True):
    """How long to wait for all turns to be extracted."""

    timeout_s: Annotated[float, Meta(gt=0, le=3600)] = 60.0


class Ingest(Body, frozen=True, kw_only=True):
    """How to store the lines."""

    session: Name = "default"
    infer: bool = True
    wait: bool = False


class Line(Message, frozen=True, kw_only=True):
    """A line to ingest: a turn, and whose it is."""

    user: Name
