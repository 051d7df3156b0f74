"""Groups: a graph of its own that several users recall from, each what came while it was a member.

What a group knows is stored once, in the graph of the group. That graph says who was a member and
when (`n.User.members`), so it alone decides what a member is shown; the member's own graph only
says which groups to ask (`n.User.groups`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias, assert_never

import msgspec

from reverie.memory_graph import events, graph as g, nodes as n
from reverie.memory_graph.errors import InvariantError

if TYPE_CHECKING:
    from reverie.memory_graph.filters import Predicate, Readable
    from reverie.memory_graph.state import UserMemory

PREFIX = "group:"  # of the user ids that own the graphs of groups

Changed: TypeAlias = (
    events.GroupFormed
    | events.MemberJoined
    | events.MemberLeft
    | events.GroupJoined
    | events.GroupLeft
)


def owner_of(group: str) -> str:
    """Return the user id that owns the graph of a group."""
    return f"{PREFIX}{group}"


def name_of(user_id: str) -> str | None:
    """Return the name of the group that owns a graph, None for a user's: also for one that is named
    like the prefix alone, since no group has an empty name."""
    name = user_id.removeprefix(PREFIX) if user_id.startswith(PREFIX) else ""
    return None if not name or name.isspace() else name


def root(memory: UserMemory) -> n.User:
    """Return the node that says of which groups the owner is a member, and who is one of it."""
    found: n.User = memory.graph.get(n.USER_NODE, n.User)
    return found


def apply(memory: UserMemory, event: Changed) -> None:
    """Change a graph by an event of groups.

    Raises:
        InvariantError: somebody joins who is a member, or leaves who is none.
    """
    owner = root(memory)
    match event:
        case events.GroupFormed():
            owner.group = event.name
        case events.MemberJoined():
            stays = owner.members.get(event.member, ())
            _require(not is_member(owner, event.member), event.member)
            newest = memory.graph.counters.get(g.MEMORY, 0)
            stay = n.Stay(event.at, newest, history=event.history)
            owner.members[event.member] = (*stays, stay)
        case events.MemberLeft():
            if event.forget:
                _require(event.member in owner.members, event.member)
                del owner.members[event.member]
            else:
                _require(is_member(owner, event.member), event.member)
                *before, last = owner.members[event.member]
                newest = memory.graph.counters.get(g.MEMORY, 0)
                ended = msgspec.structs.replace(last, until=event.at, upto=newest)
                owner.members[event.member] = (*before, ended)
        case events.GroupJoined():
            owner.groups[event.group] = True
        case events.GroupLeft():
            if event.forget:
                owner.groups.pop(event.group, None)
            else:
                owner.groups[event.group] = False
        case _:
            assert_never(event)


def _require(fits: bool, member: str) -> None:  # noqa: FBT001 (an assertion)
    if not fits:
        msg = f"{member!r} cannot join twice, nor leave before it has joined"
        raise InvariantError(msg)


def is_member(owner: n.User, user_id: str) -> bool:
    """Return whether a user is a member of the group now."""
    stays = owner.members.get(user_id, ())
    return bool(stays) and stays[-1].until is None


def lacks_history(owner: n.User, user_id: str) -> bool:
    """Return whether a member of now does not know all that came before it joined."""
    stays = owner.members.get(user_id, ())
    is_here = bool(stays) and stays[-1].until is None
    return is_here and stays[-1].after > 0 and not stays[-1].history


def known_to(memory: UserMemory, member: str, as_of: float | None = None) -> Predicate:
    """Return whether a member knows a memory of the group: what came during one of its stays, and
    what came before it if it joined with the history. Nothing for who never was a member.

    Args:
        memory: of the group.
        member: user id.
        as_of: seconds; only stays that had begun by then count.
    """
    stays = [
        stay
        for stay in root(memory).members.get(member, ())
        if as_of is None or stay.since <= as_of
    ]

    def is_known(node: Readable) -> bool:
        number = g.number(node.id)
        return isinstance(node, n.Memory) and any(
            (stay.history or number > stay.after) and (stay.upto is None or number <= stay.upto)
            for stay in stays
        )

    return is_known


def knows_all(memory: UserMemory, member: str, as_of: float | None = None) -> bool:
    """Return whether a member knows everything that the group's graph holds, so that a read need
    not look at each text by itself. Arguments as in `known_to`."""
    held = memory.graph.counters
    if held.get(g.MESSAGE) or held.get(g.SUMMARY):
        return False
    return any(
        (stay.history or not stay.after)
        and stay.upto is None
        and (as_of is None or stay.since <= as_of)
        for stay in root(memory).members.get(member, ())
    )


def broken(memory: UserMemory) -> Iterator[str]:
    """Yield a line for each broken invariant: stays of one member follow each other, only a group
    has members, and a group is no member of groups."""
    owner = root(memory)
    if owner.members and owner.group is None:
        yield "a graph that is no group's has members"
    if owner.group is not None and owner.groups:
        yield f"the group {owner.group} is a member of groups"
    for member, stays in sorted(owner.members.items()):
        ends = [stay.upto for stay in stays]
        begins = [stay.after for stay in stays[1:]]
        if None in ends[:-1] or any(
            upto is not None and upto > after for upto, after in zip(ends, begins, strict=False)
        ):
            yield f"the stays of member {member} overlap"
        if any(stay.upto is not None and stay.upto < stay.after for stay in stays):
            yield f"a stay of member {member} ends before it begins"
