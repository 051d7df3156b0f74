"""How users stand to each other, as a caller sees it; the meaning is in memory_graph/relationships.

ana = rt.user("ana")
ana.relationships.move("bo", trust=+0.2, debt=-30, reason="paid it back")
ana.relationships.of("bo")["trust"]
ana.relationships.list("trust", at_least=0.3)           # whom does she trust?
rt.world().relationships("debt", at_least=1)            # who owes whom?
rt.world().relationships("fear", towards="wolf")        # who is afraid of the wolf?
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from reverie import door
from reverie.actors import commands as c
from reverie.actors.gatherings import of_group
from reverie.actors.lane import raise_error
from reverie.memory_graph.errors import InvalidLimitError, InvalidValueError, UnknownMemoryError
from reverie.memory_graph.ids import check_id
from reverie.memory_graph.nodes import Dimension
from reverie.memory_graph.relationships import (
    MAX_DIMENSIONS,
    Relationship,
    RelationshipMove,
    Untied,
    check_dimension,
    finite,
)
from reverie.memory_graph.text import name_key
from reverie.repeats import checked, part_of

if TYPE_CHECKING:
    from reverie.masking import Mask
    from reverie.user import User
    from reverie.world import World

MAX_NAME = 64  # characters of the name of a dimension
MAX_REASON_BYTES = 1024
MAX_MANY = 100_000  # moves of one call

_NEEDED = frozenset({"owner", "other", "by"})  # keys of a move of `move_many`
_OPTIONAL = frozenset({"reason", "memory_id", "at", "dimensions"})


class Relationships:
    """How one user stands to others; `User.relationships`. Cheap, holds no state.

    An other is the id of a user, or the name of anybody or anything that is remembered. Times are
    seconds on the world's clock, or anything that `parse_time` takes.
    """

    def __init__(self, user: User) -> None:
        self._user = user

    def __repr__(self) -> str:
        return f"Relationships({self._user!r})"

    def move(
        self,
        /,
        other: str,
        by: Mapping[str, float] | None = None,
        *,
        reason: str = "",
        memory_id: str | None = None,
        at: object = None,
        dimensions: Mapping[str, Dimension] | None = None,
        request_id: str | None = None,
        **deltas: float,
    ) -> dict[str, float]:
        """Add to how this user stands to `other`, and return the new value of each dimension.

        Added is to the value as it has decayed by then, and the sum is kept within the range.

        Args:
            other: towards whom; an entity of this name is made if there is none.
            by: what is added, by dimension, as `deltas`, which go before.
            reason: in words, for the history.
            memory_id: of the memory or message of this user that caused it; what it knows by a
                group is not its own.
            at: when it happened; now by default.
            dimensions: what dimensions of your own are, by name; see `declare`.
            request_id: a call repeated with the same id has one effect and the first result.
            deltas: what is added, by dimension: `trust=+0.2, fear=-0.1, debt=+30`.

        Raises:
            InvalidValueError: nothing to add, no finite number, or an undeclared dimension.
            UnknownMemoryError: no such memory.
        """
        user = self._user
        request_id = user._request(request_id)  # noqa: SLF001
        added = {**_mapping(by), **deltas}
        command = _move(user, other, added, reason, memory_id, at, dimensions, request_id)
        moved: dict[str, float] = user._rt.call(command)  # noqa: SLF001
        return moved

    def of(self, other: str, at: object = None) -> dict[str, float]:
        """Return the value of every dimension towards `other`: of those that never moved, and
        towards strangers, the rest value.

        Args:
            other: towards whom.
            at: at this time instead of now, as far as the history goes back (see `history`).
        """
        user = self._user
        command = c.Towards(
            **user._read(),  # noqa: SLF001
            other=self._looked_up(other),
            dimensions={user.masking.question(name): kind for name, kind in declared(user).items()},
            at=door.optional_time(at, "at"),
        )
        values: dict[str, float] = user._rt.call(command)  # noqa: SLF001
        return values

    def list(
        self,
        dimension: str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        at: object = None,
    ) -> builtins.list[Relationship]:
        """Return how this user stands to everybody, the highest values first.

        Args:
            dimension: only this one.
            at_least: only values of at least this.
            at_most: only values of at most this.
            at: as in `of`.
        """
        return self._asked(**_bounds(self._user.masking, dimension, at_least, at_most, at))

    def history(self, other: str) -> Sequence[RelationshipMove]:
        """Return the last moves (32 at most) of the relationship to `other`, oldest first."""
        user = self._user
        command = c.Moves(**user._read(), other=self._looked_up(other))  # noqa: SLF001
        moves: Sequence[RelationshipMove] = user._rt.call(command)  # noqa: SLF001
        return moves

    def towards(
        self,
        dimension: str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        at: object = None,
    ) -> builtins.list[Relationship]:
        """Return how all users of the world stand to this one; arguments as of `list`."""
        user = self._user
        world = user._rt.world(user.key.world)  # noqa: SLF001
        return of_world(world, dimension, at_least, at_most, at, towards=user.key.user_id)

    def remove(self, other: str, *, request_id: str | None = None) -> Untied:
        """Remove for good what ties this user to `other`: the relationship with its history, typed
        relations in both directions, and co-occurrences. Memories stay, also those that mention it.

        Returns:
            What was removed; all 0 when there was nothing.
        """
        user = self._user
        command = c.Untie(
            **user._write(user._request(request_id)),  # noqa: SLF001
            other=self._looked_up(other),
        )
        untied: Untied = user._rt.call(command)  # noqa: SLF001
        return untied

    def _looked_up(self, other: str) -> str:
        return self._user.masking.asked_name(_other(self._user, other))

    def _asked(self, **asked: Any) -> builtins.list[Relationship]:
        user = self._user
        command = c.Relationships(**user._read(), **asked)  # noqa: SLF001
        found: builtins.list[Relationship] = user._rt.call(command)  # noqa: SLF001
        return found


# -- of a whole world; methods of `World` ------------------------------------------------


def of_world(
    self: World,
    dimension: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    at: object = None,
    *,
    towards: str | None = None,
) -> list[Relationship]:
    """Return how all users of this world stand to others, the highest values first.

    Args:
        self: the world.
        dimension: only this one: `relationships("debt", at_least=1)` tells who owes whom.
        at_least: only values of at least this.
        at_most: only values of at most this.
        at: at this time instead of now, as far as the history goes back.
        towards: only towards this other, a user id or a name: who trusts her?
    """
    users = [self.user(user_id) for user_id in self.users()]
    if not users:
        return []
    asked = _bounds(users[0].masking, dimension, at_least, at_most, at)
    if towards is not None:
        asked["other"] = users[0].masking.asked_name(door.name(towards, "towards"))
    commands = [c.Relationships(**user._read(), **asked) for user in users]  # noqa: SLF001
    answers = self._rt._router.call_many(commands)  # noqa: SLF001
    found = [one for answer in answers for one in raise_error(answer)]
    return sorted(found, key=lambda r: (-r.value, r.owner, r.other, r.dimension))


def move_many(
    self: World, moves: Iterable[Mapping[str, Any]], *, request_id: str | None = None
) -> list[dict[str, float]]:
    """Move many relationships of the users of this world, with one call per shard; return the new
    values of each, in order.

    Args:
        self: the world.
        moves: each a mapping with `owner` (user id), `other` and `by`, and as in
            `Relationships.move` perhaps `reason`, `memory_id`, `at` and `dimensions`. At most
            100,000. Those of one owner are carried out in their order.
        request_id: a call repeated with the same id has one effect and the first result; it counts
            for each move by itself, by its owner and its place in the list.

    Raises:
        InvalidValueError: something malformed; nothing was done.
        UnknownMemoryError, InvalidValueError: of the first that could not be carried out; the
            others were.
    """
    few: list[object] = list(
        islice(door.items(moves, "moves", "mappings"), MAX_MANY + 1)
    )  # of which nothing is known yet
    if len(few) > MAX_MANY:
        msg = f"more than {MAX_MANY:,} moves in one call: use several calls"
        raise InvalidLimitError(msg, what="moves")
    checked(request_id)
    commands: list[c.MoveRelationship] = []
    for place, given in enumerate(few):
        if not isinstance(given, Mapping) or not _NEEDED <= given.keys() <= _NEEDED | _OPTIONAL:
            known = ", ".join(sorted(_NEEDED | _OPTIONAL))
            msg = f"a move is a mapping of {known}, with owner, other and by, not {given!r:.200}"
            raise InvalidValueError(msg, what="moves")
        user = self.user(given["owner"])
        commands.append(
            _move(
                user,
                given["other"],
                _mapping(given["by"]),
                given.get("reason", ""),
                given.get("memory_id"),
                given.get("at"),
                given.get("dimensions"),
                part_of(request_id, "move", place) or self._rt.new_request_id(),
            )
        )
    answers = self._rt._router.call_many(commands)  # noqa: SLF001
    return [raise_error(answer) for answer in answers]


def declare(self: World, /, **dimensions: Dimension) -> None:
    """Say what dimensions of relationships are in this world, until the runtime is closed.

    `trust`, `affinity`, `fear` and `debt` need no word; a declaration of them replaces what they
    are. What a dimension is goes into each move: a change of it shows with the next move, and what
    has moved is known without a declaration.

    Raises:
        InvalidValueError: a name that is no identifier, or a dimension that makes no sense.
    """
    self._rt.dimensions.setdefault(self.name, {}).update(_checked(dimensions))


def declared(user: User, more: object = None) -> dict[str, Dimension]:
    """Return the dimensions that were declared for a user: of its world, then `more`."""
    known = user._rt.dimensions.get(user.key.world, {})  # noqa: SLF001
    return known | _checked(more)


def _checked(dimensions: object) -> dict[str, Dimension]:
    found = _mapping(dimensions)
    return {_dimension_name(name): check_dimension(kind, name) for name, kind in found.items()}


def _mapping(value: object) -> Mapping[str, object]:
    """Return a mapping by names of dimensions; raises InvalidValueError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_DIMENSIONS:
        msg = f"dimensions must be a mapping of at most {MAX_DIMENSIONS} names, not {value!r:.100}"
        raise InvalidValueError(msg, what="dimensions")
    return value


# -- the door ----------------------------------------------------------------------------


def _move(
    user: User,
    other: object,
    by: Mapping[str, object],
    reason: object,
    memory_id: object,
    at: object,
    dimensions: object,
    request_id: str | None,
) -> c.MoveRelationship:
    """Return the checked command of a move, masked."""
    masking = user.masking
    if not by:
        msg = "nothing to add: pass a dimension, such as trust=+0.2"
        raise InvalidValueError(msg, what="deltas")
    cause = None if memory_id is None else check_id(memory_id, "memory_id")
    if cause is not None and of_group(cause) is not None:
        msg = (
            f"{cause!r} is a memory of a group, not of the user itself: say in `reason` what "
            "caused it, or keep it as a memory of the user"
        )
        raise UnknownMemoryError(msg, memory_id=cause)
    names = {name: masking.text(_dimension_name(name)) for name in by}
    known = declared(user, dimensions)
    return c.MoveRelationship(
        **user._write(request_id),  # noqa: SLF001
        other=masking.name(_other(user, other), is_person=True),
        deltas={names[name]: finite(value, name) for name, value in by.items()},
        dimensions={names[name]: known[name] for name in by if name in known},
        reason=masking.text(door.text(reason, MAX_REASON_BYTES)) if reason != "" else "",
        memory_id=cause,
        moved_at=door.optional_time(at, "at"),
    )


def _bounds(
    masking: Mask,
    dimension: str | None,
    at_least: float | None,
    at_most: float | None,
    at: object,
) -> dict[str, Any]:
    return {
        "dimension": None if dimension is None else masking.question(_dimension_name(dimension)),
        "at_least": None if at_least is None else finite(at_least, "at_least"),
        "at_most": None if at_most is None else finite(at_most, "at_most"),
        "at": door.optional_time(at, "at"),
    }


def _dimension_name(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier() or len(name) > MAX_NAME:
        msg = f"a dimension is named like a keyword argument, such as 'trust', not {name!r}"
        raise InvalidValueError(msg, what="dimension")
    return name


def _other(user: User, other: object) -> str:
    named, owner = door.name(other, "other"), user.key.user_id
    if name_key(named) in {name_key(owner), "user"}:
        msg = f"a relationship is to somebody else, not to {named!r}"
        if named not in {owner, "user"} and name_key(named) == name_key(owner):
            msg += f": as a name it is the same as {owner!r}, for case and width do not count"
        raise InvalidValueError(msg, what="other")
    return named


def context_lines(found: Sequence[Relationship]) -> list[str]:
    """Return relationships as lines of a prompt, one for each other: "Bo: trust 0.4, debt 30"."""
    by_other: dict[str, list[str]] = {}
    for one in found:
        by_other.setdefault(one.other, []).append(f"{one.dimension} {round(one.value, 2):g}")
    return [f"{other}: {', '.join(values)}" for other, values in by_other.items()]


def named_in(user: User, question: str, as_of: object = None) -> builtins.list[Relationship]:
    """Return how a user stands to those whom a question names."""
    command = c.Relationships(
        **user._read(),  # noqa: SLF001
        question=user.masking.question(door.question(question)),
        at=door.optional_time(as_of, "as_of"),
    )
    found: list[Relationship] = user._rt.call(command)  # noqa: SLF001
    return found
