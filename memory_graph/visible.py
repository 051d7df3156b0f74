"""What can be seen, and when: active, believed at a recorded time, true at a world time."""

from __future__ import annotations

import msgspec

from reverie.memory_graph.nodes import Memory, Message, Relation, Summary


class Moment(msgspec.Struct, frozen=True):
    """From where a read looks.

    Attributes:
        now: the reader's time in seconds; nothing recorded later is hidden by it.
        as_of: only what was recorded by then, and as it was believed then.
        valid_at: only statements that hold (held) at this time of the world.
        archived: put-away memories answer too.
        retired: superseded and expired memories answer too, marked as such.
    """

    now: float
    as_of: float | None = None
    valid_at: float | None = None
    archived: bool = False
    retired: bool = False


def is_live(memory: Memory, now: float) -> bool:
    """Return whether a memory is active and its time to live (from recording) is not over."""
    return memory.status == "active" and (
        memory.ttl_s is None or memory.recorded_at + memory.ttl_s > now
    )


def is_visible(node: Memory | Message | Summary, moment: Moment) -> bool:
    """Return whether a read from `moment` may return `node`.

    With `as_of`, a memory counts as it was believed then, whatever has become of it since. With
    `valid_at`, a memory that was replaced later still answers for the time in which it held.
    """
    as_of = moment.as_of
    if as_of is not None and node.recorded_at > as_of:
        return False
    match node:
        case Message():
            return moment.valid_at is None or node.said_at <= moment.valid_at
        case Summary():
            return node.retired_at is None or (as_of is not None and node.retired_at > as_of)
        case Memory():
            return _is_memory_visible(node, moment)


def seen(node: Memory | Message | Summary, moment: Moment) -> Memory | Message | Summary:
    """Return a text as it was at the moment: see `as_seen`; turns and summaries do not change."""
    return as_seen(node, moment) if isinstance(node, Memory) else node


def as_seen(memory: Memory, moment: Moment) -> Memory:
    """Return a memory as it was believed at the moment's `as_of`: an end that was learned later is
    not known yet. The memory itself when nothing differs."""
    as_of = moment.as_of
    if as_of is not None and memory.faded and (memory.away_at or 0.0) > as_of:
        return msgspec.structs.replace(
            memory, status="active", retired_why="", away_at=None, faded=False, gist=None
        )
    if as_of is None or memory.retired_at is None or memory.retired_at <= as_of:
        return memory
    return msgspec.structs.replace(
        memory,
        status="active",
        retired_at=None,
        retired_why="",
        valid_to=None if memory.end_learned else memory.valid_to,
    )


def _is_memory_visible(memory: Memory, moment: Moment) -> bool:
    memory = as_seen(memory, moment)
    if memory.status == "quarantined":
        return False
    if memory.status == "archived" and not moment.archived:
        return False
    at = moment.now if moment.as_of is None else moment.as_of
    if memory.ttl_s is not None and memory.recorded_at + memory.ttl_s <= at:
        return moment.retired
    if memory.status == "expired":  # no longer believed to have held at any time
        return moment.retired
    if moment.valid_at is not None:
        begins = memory.recorded_at if memory.valid_from is None else memory.valid_from
        return begins <= moment.valid_at and (
            memory.valid_to is None or memory.valid_to > moment.valid_at
        )
    return memory.retired_at is None or moment.retired


def relation_seen(relation: Relation, moment: Moment) -> Relation:
    """Return a relation as it was believed at the moment's `as_of`, as `as_seen` does."""
    as_of = moment.as_of
    if as_of is None or relation.retired_at is None or relation.retired_at <= as_of:
        return relation
    valid_to = None if relation.end_learned else relation.valid_to
    return msgspec.structs.replace(relation, retired_at=None, valid_to=valid_to)


def relation_holds(relation: Relation, moment: Moment) -> bool:
    """Return whether a relation is believed, and holds, at the moment that is asked from."""
    as_of = moment.as_of
    if as_of is not None and relation.recorded_at > as_of:
        return False
    ended = relation.retired_at is not None and (as_of is None or relation.retired_at <= as_of)
    if moment.valid_at is None:
        return not ended
    begins = relation.recorded_at if relation.valid_from is None else relation.valid_from
    ends = relation.valid_to if ended or not relation.end_learned else None
    return begins <= moment.valid_at and (ends is None or ends > moment.valid_at)
