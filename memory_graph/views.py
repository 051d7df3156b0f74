"""What a reader gets: plain values copied out of the graph."""

from __future__ import annotations

from copy import deepcopy
from typing import Literal, TypeAlias

import msgspec

from reverie.memory_graph import nodes as n
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.visible import Moment, as_seen

# Of a memory: what few have.
_SELDOM = (
    "valid_from",
    "valid_to",
    "retired_at",
    "retired_why",
    "told_by",
    "event",
    "heard",
    "backed",
    "pinned",
    "slot",
    "tags",
)

ItemType: TypeAlias = Literal["memory", "message", "summary"]


class Item(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A memory, message or summary.

    Attributes:
        id: node id, unique for its user.
        at: when it holds or was said, seconds: valid_from, said_at, or the end of a summary.
        recorded_at: when the graph learned it, seconds.
        sources: ids of the messages or memories that it derives from.
        entities: names of the entities that it mentions.
        about: of a summary: "user", "session NAME" or "topic NAME"; of an insight "entity NAME";
            of the gist of what has faded "faded memories".
        order: of a summary: 1, or 2 and more for an insight (see reflection.py).
        event: of a memory: id of what happened in the world, the same for all who know of it.
        heard: of a memory: who told it on, from the first witness to the one who told the owner.
        backed: of a memory: who else told the owner the same, from a source of their own.
        group: whose memory it is, when a member of that group is shown it; None for one's own.
    """

    id: str
    type: ItemType
    text: str
    at: float
    recorded_at: float
    kind: n.MemoryKind | None = None
    status: str = "active"
    valid_from: float | None = None
    valid_to: float | None = None
    retired_at: float | None = None
    retired_why: str = ""
    importance: float | None = None
    confidence: float | None = None
    provenance: n.Provenance | None = None
    told_by: str | None = None
    event: str | None = None
    heard: tuple[str, ...] = ()
    pinned: bool = False
    slot: str | None = None
    hits: int = 0
    session: str | None = None
    speaker: str | None = None
    role: str | None = None
    external_id: str | None = None
    sources: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: n.Metadata | None = None
    about: str | None = None
    order: int = 1
    backed: tuple[str, ...] = ()
    group: str | None = None

    @property
    def hops(self) -> int:
        """How often it was told on until the owner heard of it; 0 for what he saw himself."""
        return len(self.heard)


class Hit(Item, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """An item that answers a question, with the reason.

    Attributes:
        score: sum of `parts`.
        parts: contribution of each signal to the score.
        reasons: one line each, for people.
    """

    score: float
    parts: dict[str, float]
    reasons: tuple[str, ...] = ()


class EntityView(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An entity. Times are seconds; `mentions` counts texts."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    first_seen: float
    last_seen: float
    mentions: int


class RelationView(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A triple by names; "user" is the owner. `weight` is decayed to the time of reading."""

    id: str
    head: str
    predicate: str
    tail: str
    weight: float
    confidence: float
    recorded_at: float
    valid_from: float | None = None
    valid_to: float | None = None
    retired_at: float | None = None
    source: str | None = None


def item(memory: UserMemory, node: n.Memory | n.Message | n.Summary) -> dict[str, object]:
    """Return the fields of an `Item` of a node, without most of those that have their defaults."""
    linked = memory.graph.heads_by_kind(node.id)
    display = memory.display
    fields: dict[str, object] = {
        "id": node.id,
        "text": node.text,
        "recorded_at": node.recorded_at,
    }
    match node:
        case n.Message():
            fields |= {
                "type": "message",
                "at": node.said_at,
                "status": node.status,
                "session": display(node.session),
                "speaker": node.speaker,
                "role": node.role,
            }
            if node.external_id is not None:
                fields["external_id"] = node.external_id
        case n.Summary():
            fields |= {
                "type": "summary",
                "about": "faded memories" if node.gist else _about(memory, node.of),
                "order": node.order,
                "at": node.to_at,
                "retired_at": node.retired_at,
                "status": "active" if node.retired_at is None else "superseded",
            }
        case n.Memory():
            fields |= {
                "type": "memory",
                "at": node.recorded_at if node.valid_from is None else node.valid_from,
                "kind": node.kind,
                "status": node.status,
                "importance": node.importance,
                "confidence": node.confidence,
                "provenance": node.provenance,
                "hits": node.hits,
            }
            for name in _SELDOM:
                if (value := getattr(node, name)) is not None:
                    fields[name] = value
            if n.IN_TOPIC in linked:
                fields["topics"] = tuple(map(display, linked[n.IN_TOPIC]))
    if not isinstance(node, n.Summary) and node.metadata is not None:
        fields["metadata"] = deepcopy(node.metadata)  # the graph's own is nobody else's
    if n.CONTAINS_ENTITY in linked:
        fields["entities"] = tuple(map(display, linked[n.CONTAINS_ENTITY]))
    if not isinstance(node, n.Message) and n.DERIVED_FROM in linked:
        sources = fields["sources"] = tuple(linked[n.DERIVED_FROM])
        if isinstance(first := memory.graph.node(sources[0]), n.Message):
            fields["session"] = display(first.session)
            fields["speaker"] = first.speaker
    return fields


def _about(memory: UserMemory, subject: str) -> str:
    match memory.graph.node(subject):
        case n.Session(name=name):
            return f"session {name}"
        case n.Topic(name=name):
            return f"topic {name}"
        case n.Entity(name=name):
            return f"entity {name}"
        case _:
            return "user"


def as_item(
    memory: UserMemory, node: n.Memory | n.Message | n.Summary, moment: Moment | None = None
) -> Item:
    """Return a node as an `Item`, as it was believed at the moment that is read from."""
    if moment is not None and isinstance(node, n.Memory):
        node = as_seen(node, moment)
    return Item(**item(memory, node))  # type: ignore[arg-type]


def entity_view(entity: n.Entity) -> EntityView:
    """Return the view of an entity."""
    return EntityView(
        id=entity.id,
        name=entity.name,
        type=entity.type,
        aliases=entity.aliases,
        first_seen=entity.first_seen,
        last_seen=entity.last_seen,
        mentions=entity.mentions,
    )
