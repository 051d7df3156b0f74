"""Commands about how a user stands to others, and about what it concludes from what it remembers.

They are part of the union in commands.py; how a shard carries them out stands here too.
"""

from __future__ import annotations

import msgspec

from reverie.actors.bases import Read, Write
from reverie.memory_graph import reflection, relationships
from reverie.memory_graph.nodes import Dimension
from reverie.memory_graph.relationships import Relationship
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.write import Writer


class MoveRelationship(Write, frozen=True, kw_only=True, tag="move"):
    """Move the owner's relationship to `other` (a name). Answer: the new value of each dimension.

    `dimensions` are those that the caller has declared; `moved_at` None is the time of the write;
    `memory_id` is the memory or message that caused it."""

    other: str
    deltas: dict[str, float]
    dimensions: dict[str, Dimension] = msgspec.field(default_factory=dict)
    reason: str = ""
    memory_id: str | None = None
    moved_at: float | None = None


class Untie(Write, frozen=True, kw_only=True, tag="untie"):
    """Remove every tie to `other` (a name) for good. Answer: `Untied`."""

    other: str


class Relationships(Read, frozen=True, kw_only=True, tag="relationships"):
    """Answer: list of `Relationship`. With `question`, only those that it names (the bounds then do
    not count); `at` looks from another time."""

    dimension: str | None = None
    other: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    at: float | None = None
    question: str | None = None


class Towards(Read, frozen=True, kw_only=True, tag="towards"):
    """Answer: the value of every dimension towards `other`, also of those that never moved, which
    have their rest value; `dimensions` are those that the caller has declared."""

    other: str
    dimensions: dict[str, Dimension] = msgspec.field(default_factory=dict)
    at: float | None = None


class Moves(Read, frozen=True, kw_only=True, tag="moves"):
    """Answer: list of `RelationshipMove`, those that are kept of the relationship to `other`."""

    other: str


class Reflect(Write, frozen=True, kw_only=True, tag="reflect"):
    """Begin a reflection if one is due, or with `force` if anything was gathered; its insights are
    then due as summaries are. Answer: bool, False if none was begun."""

    reflect_at: float | None = None
    force: bool = False


def move(writer: Writer, command: MoveRelationship) -> dict[str, float]:
    """Carry out `MoveRelationship`."""
    return relationships.move(
        writer,
        command.other,
        command.deltas,
        command.dimensions,
        moved_at=command.moved_at,
        reason=command.reason,
        source=command.memory_id,
    )


def reflect(writer: Writer, command: Reflect) -> bool:
    """Carry out `Reflect`."""
    reflection.begin(writer, command.reflect_at, force=command.force)
    return bool(writer.events)


def standings(memory: UserMemory, command: Relationships) -> list[Relationship]:
    """Carry out `Relationships`."""
    if command.question is not None:
        return relationships.named(
            memory, command.user_id, command.question, command.now, command.at
        )
    return relationships.standings(
        memory,
        command.user_id,
        command.now,
        dimension=command.dimension,
        other=command.other,
        at_least=command.at_least,
        at_most=command.at_most,
        at=command.at,
    )


def towards(memory: UserMemory, command: Towards) -> dict[str, float]:
    """Carry out `Towards`."""
    return relationships.towards(
        memory, command.other, command.dimensions, command.now, at=command.at
    )
