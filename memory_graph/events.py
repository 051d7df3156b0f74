"""The journal's events: one closed union of frozen values, encoded and decoded here.

An event is an outcome, never a request: ids are assigned, entities resolved, vectors computed
before it is written. Applying the same events in the same order gives the same graph in every
process. Unknown fields are ignored on decode and new fields need a default, so that a newer
version reads an older journal; an unknown event kind is an error.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from reverie.memory_graph.nodes import (
    Dimension,
    MemoryKind,
    Metadata,
    Provenance,
    Status,
    TurnStatus,
)
from reverie.memory_graph.profile import Profile

JOURNAL_FORMAT = 1


class _Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="e", kw_only=True):
    at: float  # recorded time, seconds on the runtime's clock


class SessionOpened(_Event, frozen=True, kw_only=True, tag="session"):
    """A conversation begins. `id` is the node id, `name` the caller's session id."""

    id: str
    name: str


class MessageAdded(_Event, frozen=True, kw_only=True, tag="message"):
    """A turn was said. `speaker_node` is the user node or an entity; `vector` is float32, little
    endian, or None while it is not embedded yet."""

    id: str
    session: str
    speaker: str
    speaker_node: str
    role: str
    text: str
    said_at: float
    external_id: str | None = None
    metadata: Metadata | None = None
    status: TurnStatus = "pending"
    vector: bytes | None = None


class TurnSettled(_Event, frozen=True, kw_only=True, tag="settled"):
    """Extraction of a turn ended. `entities` are the entity nodes that it mentions."""

    id: str
    status: TurnStatus
    entities: tuple[str, ...] = ()
    vector: bytes | None = None


class MemoryAdded(_Event, frozen=True, kw_only=True, tag="memory"):
    """A memory was kept. `sources` are messages or memories that it derives from; `supersedes`
    are memories that it replaces (each of them ends by this event). `event` names what happened in
    the world, `heard` who told it on, from the first witness to who told the owner."""

    id: str
    text: str
    kind: MemoryKind
    sources: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    valid_from: float | None = None
    valid_to: float | None = None
    confidence: float = 1.0
    importance: float = 0.5
    slot: str | None = None
    provenance: Provenance = "witnessed"
    told_by: str | None = None
    event: str | None = None
    heard: tuple[str, ...] = ()
    sentiment: float = 0.0
    ttl_s: float | None = None
    pinned: bool = False
    tags: tuple[str, ...] = ()
    metadata: Metadata | None = None
    vector: bytes | None = None


class MemoryRetired(_Event, frozen=True, kw_only=True, tag="retired"):
    """A memory stopped being believed (`superseded`, `expired`) or was put away (`archived`,
    `quarantined`). It stays in the graph and in the history. One that is archived as `faded` was
    not asked to be hidden: see nodes.Memory. `dated`: when it was put away is kept, as journals of
    earlier versions, and the snapshots that were made of them, do not."""

    id: str
    status: Status
    valid_to: float | None = None
    reason: str = ""
    faded: bool = False
    dated: bool = False


class MemoryRestored(_Event, frozen=True, kw_only=True, tag="restored"):
    """A retired memory is active again (an undo, or out of the archive)."""

    id: str
    reason: str = ""


class MemoryEdited(_Event, frozen=True, kw_only=True, tag="edited"):
    """Attributes of a memory changed; its text never does (a new text is a new memory). A field
    left at UNSET keeps its value."""

    id: str
    importance: float | msgspec.UnsetType = msgspec.UNSET
    confidence: float | msgspec.UnsetType = msgspec.UNSET
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    backed: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    ttl_s: float | msgspec.UnsetType | None = msgspec.UNSET
    tags: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    metadata: Metadata | msgspec.UnsetType | None = msgspec.UNSET


class EntityAdded(_Event, frozen=True, kw_only=True, tag="entity"):
    """A new person, place or thing. `seen_at` is the time of the text that named it."""

    id: str
    name: str
    type: str
    seen_at: float
    aliases: tuple[str, ...] = ()


class EntityRenamed(_Event, frozen=True, kw_only=True, tag="alias"):
    """An entity got further exact names, or a better type than "thing"."""

    id: str
    aliases: tuple[str, ...] = ()
    type: str | None = None


class RelationAdded(_Event, frozen=True, kw_only=True, tag="relation"):
    """A typed triple between two entities or the user began to hold."""

    id: str
    head: str
    predicate: str
    tail: str
    valid_from: float | None = None
    valid_to: float | None = None
    confidence: float = 1.0
    source: str | None = None


class RelationRetired(_Event, frozen=True, kw_only=True, tag="unrelated"):
    """A relation stopped being believed; `valid_to` is when it stopped holding."""

    id: str
    valid_to: float | None = None


class TopicAdded(_Event, frozen=True, kw_only=True, tag="topic"):
    """A named group of memories begins."""

    id: str
    name: str


class SummaryAdded(_Event, frozen=True, kw_only=True, tag="summary"):
    """A summary was made of `of` (a session, topic or the user) from `sources`. Summaries in
    `replaces` are retired by it. `covers` is how far it had read: the session's messages, or the
    highest number of a memory. A `gist` is of memories that have faded; one of an `order` above 1
    an insight, about the entity `focus` or the user."""

    id: str
    text: str
    of: str
    sources: tuple[str, ...]
    from_at: float
    to_at: float
    replaces: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    vector: bytes | None = None
    covers: int = 0
    gist: bool = False
    order: int = 1
    focus: str | None = None


class ProfileSet(_Event, frozen=True, kw_only=True, tag="profile"):
    """The limits of the owner are these from now on; None lifts all."""

    profile: Profile | None = None


class ModelBudgetSpent(_Event, frozen=True, kw_only=True, tag="spent"):
    """A turn was extracted by rules alone, for the owner's budget of model calls was spent."""


class RelationshipMoved(_Event, frozen=True, kw_only=True, tag="moved"):
    """The owner's relationship to an entity moved in one dimension, from the decayed value `was` to
    `value`. What the dimension is comes with it, so that replay needs no configuration. `moved_at`
    is when it happened (None: when it was recorded); `source` the memory or message behind it."""

    other: str
    name: str
    dimension: Dimension
    by: float
    was: float
    value: float
    moved_at: float | None = None
    reason: str = ""
    source: str | None = None


class TiesRemoved(_Event, frozen=True, kw_only=True, tag="untied"):
    """Everything that ties the owner's graph to an entity is gone for good: the relationship, typed
    relations and co-occurrences; and the entity itself if nothing else is linked to it."""

    other: str


class Reflected(_Event, frozen=True, kw_only=True, tag="reflected"):
    """A reflection began, of the memories up to number `covers`: an insight about each of `foci`
    (entities) is to be made."""

    covers: int
    foci: tuple[str, ...] = ()


class Touched(_Event, frozen=True, kw_only=True, tag="touched"):
    """Nodes were read: their hit count and edges are reinforced at time `at`."""

    ids: tuple[str, ...]


class VectorsSet(_Event, frozen=True, kw_only=True, tag="vectors"):
    """Vectors replaced in bulk (`reembed`), all made by the embedder of id `embedder`."""

    embedder: str
    dim: int
    ids: tuple[str, ...]
    vectors: bytes  # float32 little endian, shape (len(ids), dim)


class GroupFormed(_Event, frozen=True, kw_only=True, tag="group"):
    """This is the graph of a group, from now on."""

    name: str


class MemberJoined(_Event, frozen=True, kw_only=True, tag="member"):
    """A user joined the group whose graph this is, with its `history` or only what comes after."""

    member: str
    history: bool = False


class MemberLeft(_Event, frozen=True, kw_only=True, tag="member_left"):
    """A user left the group whose graph this is. With `forget`, it no longer knows either what it
    knew as a member."""

    member: str
    forget: bool = False


class GroupJoined(_Event, frozen=True, kw_only=True, tag="joined"):
    """The owner became a member of a group."""

    group: str


class GroupLeft(_Event, frozen=True, kw_only=True, tag="left"):
    """The owner left a group; see `MemberLeft`."""

    group: str
    forget: bool = False


Event: TypeAlias = (
    SessionOpened
    | MessageAdded
    | TurnSettled
    | MemoryAdded
    | MemoryRetired
    | MemoryRestored
    | MemoryEdited
    | EntityAdded
    | EntityRenamed
    | RelationAdded
    | RelationRetired
    | TopicAdded
    | SummaryAdded
    | RelationshipMoved
    | TiesRemoved
    | Reflected
    | ProfileSet
    | ModelBudgetSpent
    | Touched
    | VectorsSet
    | GroupFormed
    | MemberJoined
    | MemberLeft
    | GroupJoined
    | GroupLeft
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Return the event as MessagePack; the same event always gives the same bytes."""
    return _encoder.encode(event)


def decode_event(data: bytes) -> Event:
    """Return the event that `encode_event` wrote.

    Raises:
        msgspec.DecodeError: not MessagePack, an unknown kind, or a field of a wrong type.
    """
    return _decoder.decode(data)
