"""How the owner of a graph stands to others: trust, fear, debt, or whatever an author names.

A relationship is directed, from the owner to an entity, and has several dimensions. Each holds one
value that moves by events and returns by itself to a rest value, computed when it is read, as in
decay.py:

    value(t) = rest + (value - rest) * 2 ** (-(t - at) / half_life)

A move adds to the value as it has decayed by then, and the sum is kept within the range of the
dimension. The outcome is journaled, with all that the dimension is, so replay computes nothing and
needs no configuration. Pure functions; times are seconds and come in as arguments.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from reverie.memory_graph import decay, events, graph as g, nodes as n
from reverie.memory_graph.drafts import EntityDraft
from reverie.memory_graph.errors import InvalidValueError, UnknownMemoryError, shown
from reverie.memory_graph.naming import entities_named
from reverie.memory_graph.nodes import Dimension

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory
    from reverie.memory_graph.write import Writer

MAX_MOVES = 32  # kept of one relationship; the value itself needs none of them
MAX_DIMENSIONS = 32  # of one relationship
MAX_NAMED = 4  # relationships that one question brings up

DEFAULTS: dict[str, Dimension] = {
    "trust": Dimension(half_life_s=90 * decay.DAY_S),
    "affinity": Dimension(half_life_s=60 * decay.DAY_S),
    "fear": Dimension(low=0.0, half_life_s=14 * decay.DAY_S),
    "debt": Dimension(low=None, high=None),  # what is owed stays owed
}


class Relationship(msgspec.Struct, frozen=True, gc=False):
    """One dimension of how `owner` (a user id) stands to `other` (a name). `value` is as of the
    time that was asked from, `moved_at` when it last moved before that, in seconds."""

    owner: str
    other: str
    dimension: str
    value: float
    rest: float
    moved_at: float


class RelationshipMove(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A move: `by` is what was added to `was`; `value` is the sum within the dimension's range."""

    at: float
    dimension: str
    by: float
    was: float
    value: float
    reason: str = ""
    memory_id: str | None = None


class Untied(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was removed of the ties to one other: dimensions of the relationship, typed relations,
    and co-occurrences with other entities."""

    dimensions: int = 0
    relations: int = 0
    associations: int = 0


def decayed(value: float, at: float, t: float, rest: float, half_life_s: float | None) -> float:
    """Return a value of time `at` as it is at time `t`; nothing decays backwards."""
    if half_life_s is None or t <= at:
        return value
    return rest + (value - rest) * math.exp2(-(t - at) / half_life_s)


def value_of(standing: n.Standing, t: float) -> float:
    """Return how it stands at time `t`, which is no earlier than its last move."""
    kind = standing.dimension
    return decayed(standing.value, standing.at, t, kind.rest, kind.half_life_s)


def clamped(value: float, dimension: Dimension) -> float:
    """Return a value within the range of a dimension."""
    low = -math.inf if dimension.low is None else dimension.low
    high = math.inf if dimension.high is None else dimension.high
    return min(max(value, low), high)


def check_dimension(dimension: object, name: str) -> Dimension:
    """Return a dimension of an author if it makes sense; raises InvalidValueError."""
    if not isinstance(dimension, Dimension):
        msg = f"{name} must be a Dimension, not {type(dimension).__name__}"
        raise InvalidValueError(msg, what=name)
    low, high, half_life_s = (
        None if value is None else finite(value, name)
        for value in (dimension.low, dimension.high, dimension.half_life_s)
    )
    sound = Dimension(low, high, finite(dimension.rest, name), half_life_s)
    if low is not None and high is not None and low >= high:
        msg = f"{name}: the range from {low:g} to {high:g} is empty"
        raise InvalidValueError(msg, what=name)
    if clamped(sound.rest, sound) != sound.rest:
        msg = f"{name}: the rest value {sound.rest:g} is not within the range"
        raise InvalidValueError(msg, what=name)
    if half_life_s is not None and half_life_s <= 0:
        msg = f"{name}: the half-life must be positive, not {half_life_s:g}"
        raise InvalidValueError(msg, what=name)
    return sound


def finite(value: object, what: str) -> float:
    """Return a finite number; raises InvalidValueError."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= sys.float_info.max
    ):
        msg = f"{what} must be a finite number, not {shown(value)}"
        raise InvalidValueError(msg, what=what)
    return float(value)


# -- writing ---------------------------------------------------------------------------


def move(
    writer: Writer,
    other: str,
    deltas: Mapping[str, float],
    declared: Mapping[str, Dimension],
    *,
    moved_at: float | None = None,
    reason: str = "",
    source: str | None = None,
) -> dict[str, float]:
    """Move the relationship to `other` (a name) and return the new value of each dimension.

    A move from before the last one adds to the last value, without taking it back in time.

    Args:
        writer: of the owner.
        other: name of an entity, made if there is none.
        deltas: what is added, by dimension; they are finite.
        declared: what the caller says that dimensions are. Others are as they are in the owner's
            relationships (to this other, else to the last that was moved), else as in `DEFAULTS`.
        moved_at: when, in seconds; None is the time of the write.
        reason: in words.
        source: id of the memory or message that caused it.

    Raises:
        UnknownMemoryError: no such source. Nothing was done.
        InvalidValueError: a dimension that nobody has declared, too many of them, or a value that
            is too large for a number. Nothing was done.
    """
    memory, graph = writer.memory, writer.graph
    if source is not None and not isinstance(graph.node(source), n.Memory | n.Message):
        msg = f"no memory or message {source!r} for this user"
        raise UnknownMemoryError(msg, memory_id=source)
    known = graph.entity_named(other)
    bond = None if known is None else memory.bonds.get(known.id)
    standings = {} if bond is None else bond.dimensions
    kinds = {name: _kind(memory, name, declared, standings) for name in deltas}
    if len(standings.keys() | kinds.keys()) > MAX_DIMENSIONS:
        msg = f"a relationship has at most {MAX_DIMENSIONS} dimensions"
        raise InvalidValueError(msg, what="dimensions")
    at = writer.at if moved_at is None else moved_at
    moves: list[tuple[str, float, float]] = []
    for name, by in deltas.items():
        before = standings.get(name)
        was = kinds[name].rest if before is None else value_of(before, at)
        value = float(clamped(was + by, kinds[name]))
        if not math.isfinite(value):
            msg = f"{name}: {was!r} and {by!r} are too much for a number"
            raise InvalidValueError(msg, what=name)
        moves.append((name, was, value))
    other_id = writer.entity(EntityDraft(other, "person"), at)
    for name, was, value in moves:
        writer.emit(
            events.RelationshipMoved(
                at=writer.at,
                other=other_id,
                name=name,
                dimension=kinds[name],
                by=float(deltas[name]),  # a whole number is another one on disk
                was=was,
                value=value,
                moved_at=moved_at,
                reason=reason,
                source=source,
            )
        )
    return {name: value for name, _, value in moves}


def _kind(
    memory: UserMemory,
    name: str,
    declared: Mapping[str, Dimension],
    standings: Mapping[str, n.Standing],
) -> Dimension:
    """Return what a dimension is; raises InvalidValueError when nobody has said it."""
    if (said := declared.get(name)) is not None:
        return said
    here = standings.get(name)
    found = DEFAULTS.get(name) if here is None else here.dimension
    if here is None:
        for bond in reversed(memory.bonds.values()):
            if (there := bond.dimensions.get(name)) is not None:
                found = there.dimension
                break
    if found is not None:
        return _resting(found, _rests(memory).get(name))
    msg = (
        f"nobody has declared the dimension {name!r}; known without are {', '.join(DEFAULTS)}: "
        "say what it is with a Dimension"
    )
    raise InvalidValueError(msg, what=name)


def _rests(memory: UserMemory) -> Mapping[str, float]:
    """Return the rest values that the owner's profile says."""
    profile = memory.graph.get(n.USER_NODE, n.User).profile
    return {} if profile is None else profile.rest


def _resting(dimension: Dimension, rest: float | None) -> Dimension:
    if rest is None:
        return dimension
    return msgspec.structs.replace(dimension, rest=clamped(rest, dimension))


def untie(writer: Writer, other: str) -> Untied:
    """Remove everything that ties the owner's graph to `other` (a name): the relationship with its
    history, typed relations in both directions, and co-occurrences; what is remembered of it stays.
    An entity that nothing is linked to then goes as well."""
    found = writer.graph.entity_named(other)
    if found is None:
        return Untied()
    bond = writer.memory.bonds.get(found.id)
    ties = list(_ties(writer.graph, found.id))
    relations = sum(isinstance(edge, n.Relation) for _, _, edge in ties)
    untied = Untied(0 if bond is None else len(bond.dimensions), relations, len(ties) - relations)
    if bond is not None or ties:
        writer.emit(events.TiesRemoved(at=writer.at, other=found.id))
    return untied


def _ties(graph: g.MemoryGraph, entity: str) -> Iterator[tuple[str, str, n.Edge | n.Relation]]:
    for kind in (n.RELATION, n.RELATED_TO):
        yield from ((entity, head, edge) for head, edge in graph.out(entity, kind))
        yield from (
            (tail, entity, edge) for tail, edge in graph.into(entity, kind) if tail != entity
        )


# -- what the events do ----------------------------------------------------------------


def apply_move(memory: UserMemory, event: events.RelationshipMoved) -> None:
    """Change a relationship; raises InvariantError when its other is no entity."""
    memory.graph.get(event.other, n.Entity)
    # Taken out and put back, so that the relationship that moved last is the last of all.
    bond = memory.bonds.pop(event.other, None) or n.Bond()
    memory.bonds[event.other] = bond
    at = event.at if event.moved_at is None else event.moved_at
    before = bond.dimensions.get(event.name)
    at = at if before is None else max(at, before.at)
    bond.dimensions[event.name] = n.Standing(event.value, at, event.dimension)
    kind = event.dimension
    bond.moves.append(
        n.Move(
            at,
            event.name,
            event.by,
            event.was,
            event.value,
            kind.rest,
            kind.half_life_s,
            event.reason,
            event.source,
        )
    )
    bond.moves.sort(key=lambda moved: moved.at)  # stable: of one time in the order of recording
    if (more := len(bond.moves) - MAX_MOVES) > 0:
        bond.dropped += more
        del bond.moves[:more]


def apply_untied(memory: UserMemory, event: events.TiesRemoved) -> None:
    """Remove the ties to an entity; raises InvariantError when there is none."""
    graph = memory.graph
    graph.get(event.other, n.Entity)
    memory.bonds.pop(event.other, None)
    for tail, head, edge in list(_ties(graph, event.other)):
        graph.unlink(tail, head, edge)
    if not graph.degree(event.other):
        graph.remove_entity(event.other)


# -- reading ---------------------------------------------------------------------------


def standings(
    memory: UserMemory,
    owner: str,
    now: float,
    *,
    dimension: str | None = None,
    other: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    at: float | None = None,
) -> list[Relationship]:
    """Return how the owner stands to others, one for each dimension, the highest values first.

    Args:
        memory: the owner's state.
        owner: the owner's user id.
        now: of the reader, in seconds.
        dimension: only this one.
        other: only towards the entity of this name.
        at_least: only values of at least this.
        at_most: only values of at most this.
        at: as it stood at this time, by the moves that are kept: before the oldest of them it reads
            as what that move began from. What had not begun by then is left out. None is now.
    """
    if other is not None:
        known = memory.graph.entity_named(other)
        pairs = [] if known is None else [known.id]
    else:
        pairs = list(memory.bonds)
    found: list[Relationship] = []
    for pair in pairs:
        bond = memory.bonds.get(pair)
        for name, standing in () if bond is None else bond.dimensions.items():
            if dimension is not None and name != dimension:
                continue
            assert bond is not None  # noqa: S101 (or there was no dimension of it)
            value, rest, moved_at = _at(bond, name, standing, now, at)
            if (
                moved_at is None
                or (at_least is not None and value < at_least)
                or (at_most is not None and value > at_most)
            ):
                continue
            shown = memory.display(pair)
            found.append(Relationship(owner, shown, name, value, rest, moved_at))
    return sorted(found, key=lambda r: (-r.value, r.other, r.dimension))


def _at(
    bond: n.Bond, name: str, standing: n.Standing, now: float, at: float | None
) -> tuple[float, float, float | None]:
    """Return (value, rest value, time of the last move, None if there was none yet)."""
    if at is None or at >= standing.at:
        t = now if at is None else at
        return value_of(standing, t), standing.dimension.rest, standing.at
    last: n.Move | None = None
    first: n.Move | None = None
    for moved in bond.moves:
        if moved.dimension == name:
            first = first or moved
            if moved.at <= at:
                last = moved
    if last is not None:
        value = decayed(last.value, last.at, at, last.rest, last.half_life_s)
        return value, last.rest, last.at
    began = at if bond.dropped else None  # an older move may be one that is not kept any more
    if first is None:
        return standing.value, standing.dimension.rest, began
    return first.was, first.rest, began


def towards(
    memory: UserMemory,
    other: str,
    declared: Mapping[str, Dimension],
    now: float,
    *,
    at: float | None = None,
) -> dict[str, float]:
    """Return the value of every dimension towards `other` (a name): of one that never moved, the
    rest value. `declared` and `at` are as of `move` and `standings`."""
    names = [*DEFAULTS, *declared, *(name for b in memory.bonds.values() for name in b.dimensions)]
    found = {name: _kind(memory, name, declared, {}).rest for name in dict.fromkeys(names)}
    return found | {r.dimension: r.value for r in standings(memory, "", now, other=other, at=at)}


def named(
    memory: UserMemory, owner: str, question: str, now: float, at: float | None = None
) -> list[Relationship]:
    """Return how the owner stands to those whom a question names, at most `MAX_NAMED` of them, in
    the order in which they are named; of each the dimensions that are not at rest."""
    found: list[Relationship] = []
    others = [e for e in entities_named(memory, question) if e in memory.bonds][:MAX_NAMED]
    for other in others:
        every = standings(memory, owner, now, other=memory.display(other), at=at)
        found += [r for r in every if round(r.value - r.rest, 2)]
    return found


def history(memory: UserMemory, other: str) -> list[RelationshipMove]:
    """Return the moves that are kept of the relationship to `other` (a name), oldest first."""
    known = memory.graph.entity_named(other)
    bond = None if known is None else memory.bonds.get(known.id)
    return [
        RelationshipMove(m.at, m.dimension, m.by, m.was, m.value, m.reason, m.source)
        for m in (() if bond is None else bond.moves)
    ]


def texts(memory: UserMemory) -> list[str]:
    """Return every reason that is kept, for the search after an erasure."""
    return [m.reason for bond in memory.bonds.values() for m in bond.moves if m.reason]


def broken(memory: UserMemory) -> Iterator[str]:
    """Yield a line for each relationship that breaks a promise of this module; see check.py."""
    for other, bond in memory.bonds.items():
        if not isinstance(memory.graph.node(other), n.Entity):
            yield f"a relationship leads to {other}, which is no entity"
        if not bond.dimensions or not 0 < len(bond.moves) <= MAX_MOVES:
            yield f"the relationship to {other} has no dimension, or {len(bond.moves)} moves"
        if any(a.at > b.at for a, b in zip(bond.moves, bond.moves[1:], strict=False)):
            yield f"the moves of the relationship to {other} are not in order"
        for name, standing in bond.dimensions.items():
            value = standing.value
            if not math.isfinite(value) or clamped(value, standing.dimension) != value:
                yield f"{name} towards {other} is {value}, out of its range"
            last = [m for m in bond.moves if m.dimension == name][-1:]
            if last and (last[0].value, last[0].at) != (value, standing.at):
                yield f"{name} towards {other} is not what its last move left"
        for moved in bond.moves:
            if moved.dimension not in bond.dimensions:
                yield f"a move towards {other} is of {moved.dimension}, which it has not"
            if moved.source is not None and moved.source not in memory.graph:
                yield f"a move towards {other} cites {moved.source}, which does not exist"
