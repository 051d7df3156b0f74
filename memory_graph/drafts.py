"""What models and callers propose; `write.py` turns a draft into events with ids.

These are plain values that travel between client and shard. They hold no ids of new things: ids
are given by the shard that owns the graph, in journal order.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.nodes import MemoryKind, Metadata, Provenance

Operation: TypeAlias = Literal["ADD", "UPDATE", "DELETE", "NOOP"]

OWNER = "$user"  # as a head or tail of a relation draft: the owner of the graph


class EntityDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A name as it stands in the text. `type` is one of models.protocol.ENTITY_TYPES."""

    name: str
    type: str = "thing"
    aliases: tuple[str, ...] = ()


class RelationDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A typed triple. `head` and `tail` are entity names or `OWNER`. `functional` says that the
    head has one tail at a time (lives_in), so that a new one ends the old one. `ended` says that
    the triple no longer holds: matching relations are retired and none is added."""

    head: str
    predicate: str
    tail: str
    valid_from: float | None = None
    valid_to: float | None = None
    confidence: float = 1.0
    functional: bool = False
    ended: bool = False


class MemoryDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A statement to keep, in the language of its source, with what it is about.

    `slot` names what it is about, `"<subject>|<predicate>"` casefolded, for conflict rules.
    `polarity` is 1, or -1 for a negation or retraction of that slot ("no longer has a dog").
    `held_at` is a later moment than `valid_from` at which it still held ("moved here last week" did
    when it was said).
    `event` is the id of what happened in the world, the same for all who know of it; `heard` are
    the users who told it on, from the first witness to the one who told this user (empty: seen).
    `vector` is float32 little endian bytes, set by the service before it reaches the shard.
    """

    text: str
    kind: MemoryKind = "fact"
    confidence: float = 1.0
    importance: float = 0.5
    slot: str | None = None
    polarity: int = 1
    valid_from: float | None = None
    valid_to: float | None = None
    held_at: float | None = None
    provenance: Provenance = "witnessed"
    told_by: str | None = None
    event: str | None = None
    heard: tuple[str, ...] = ()
    sentiment: float = 0.0
    ttl_s: float | None = None
    pinned: bool = False
    tags: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    metadata: Metadata | None = None
    sources: tuple[str, ...] = ()
    entities: tuple[EntityDraft, ...] = ()
    relations: tuple[RelationDraft, ...] = ()
    vector: bytes | None = None


def checked(draft: MemoryDraft) -> MemoryDraft:
    """Return a draft that a model made, if the journal can hold it.

    Structs check nothing when they are built, and a model is somebody else's code; what is wrong
    would come out only when the journal is read again.

    Raises:
        InvalidValueError: a field of a wrong type, a number out of its range or not finite.
    """
    try:
        sound = msgspec.convert(msgspec.to_builtins(draft), MemoryDraft)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError) as exc:
        msg = f"a model made a memory that cannot be kept: {exc}"
        raise InvalidValueError(msg) from None
    times = [sound.valid_from, sound.valid_to, sound.held_at, sound.ttl_s]
    for relation in sound.relations:
        times += [relation.valid_from, relation.valid_to]
    shares = [sound.confidence, sound.importance, *(r.confidence for r in sound.relations)]
    if (
        not sound.text.strip()
        or not all(t is None or math.isfinite(t) for t in times)
        or not all(0.0 <= share <= 1.0 for share in shares)
        or not -1.0 <= sound.sentiment <= 1.0
    ):
        msg = "a model made a memory without a text, or with a number out of its range"
        raise InvalidValueError(msg)
    return sound


class TurnDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn to store. `speaker` None or "user" is the owner. `said_at` None means now."""

    text: str
    session: str = "default"
    speaker: str | None = None
    role: str = "user"
    said_at: float | None = None
    external_id: str | None = None
    metadata: Metadata | None = None
    vector: bytes | None = None


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a new memory does to the old ones. `target` is a memory id for UPDATE, DELETE and
    NOOP, or the index (as "#3") of an earlier draft of the same outcome."""

    op: Operation
    target: str | None = None
    reason: str = ""


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """An existing memory as a decider sees it. `similarity` is a cosine, -1 to 1."""

    id: str
    text: str
    kind: MemoryKind = "fact"
    slot: str | None = None
    similarity: float = 0.0
    recorded_at: float = 0.0


class TurnOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What extraction made of one turn. `memories[i]` was decided as `decisions[i]`.

    `status` "quarantined" keeps the turn but none of its memories.
    """

    turn_id: str
    status: Literal["extracted", "skipped", "quarantined"] = "extracted"
    vector: bytes | None = None
    entities: tuple[EntityDraft, ...] = ()
    memories: tuple[MemoryDraft, ...] = ()
    decisions: tuple[Decision, ...] = ()


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a draft: the operation that was carried out and the memory it concerns.

    `memory_id` is the new memory for ADD and UPDATE, the old one for DELETE and NOOP; `target`
    is the memory that was replaced or ended. `refused` says why a decision was not followed.
    """

    op: Operation
    memory_id: str
    target: str | None = None
    refused: str | None = None
