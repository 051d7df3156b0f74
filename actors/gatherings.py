"""How a shard answers what concerns several users: who knows of an event, and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from reverie.actors import commands as c
from reverie.memory_graph import events, graph as g, groups, nodes as n
from reverie.memory_graph.drafts import EntityDraft, MemoryDraft
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.views import Hit, as_item
from reverie.memory_graph.visible import is_live
from reverie.memory_graph.why import Explanation, unknown, why

if TYPE_CHECKING:
    from reverie.memory_graph.filters import Predicate
    from reverie.memory_graph.search import Query
    from reverie.memory_graph.state import UserMemory
    from reverie.memory_graph.views import Item
    from reverie.memory_graph.write import Writer

Readable = n.Memory | n.Message | n.Summary
TakesAway = c.Untie | c.Part | c.Tend | c.Requeue  # what is not there has nothing to take
SEPARATOR = "/"  # between a group's user id and a node id, where a member is shown what is not his


# -- writes ----------------------------------------------------------------------------


def form_group(writer: Writer, command: c.Write) -> None:
    """Mark a graph as that of a group, with the first write that can add to it; nothing for a
    user's."""
    name = groups.name_of(command.user_id)
    is_leaving = isinstance(command, c.Membership) and not command.joins
    if name is None or is_leaving or isinstance(command, TakesAway):
        return
    if groups.root(writer.memory).group is None:
        writer.emit(events.GroupFormed(at=writer.at, name=name))


def change_membership(writer: Writer, command: c.Membership) -> bool:
    """Note that somebody joins or leaves; False if it was so already, and nothing is changed. A
    member that joins with the history, and has not all of it, leaves and joins again.

    Raises:
        InvalidValueError: a group joins a group.
    """
    owner, other, at = groups.root(writer.memory), command.other, writer.at
    if owner.group is None:
        is_in = owner.groups.get(other, False)
        knows = other in owner.groups
    else:
        if groups.name_of(other) is not None:
            msg = f"{other!r} is a group, which can be a member of none"
            raise InvalidValueError(msg, what="user_id")
        if command.anew and other in owner.members:
            writer.emit(events.MemberLeft(at=at, member=other, forget=True))
        elif command.joins and command.history and groups.lacks_history(owner, other):
            writer.emit(events.MemberLeft(at=at, member=other))
        is_in = groups.is_member(owner, other)
        knows = other in owner.members
    if command.joins == is_in and not (command.forget and knows):
        return False
    is_group = owner.group is not None
    if command.joins:
        event: events.Event = (
            events.MemberJoined(at=at, member=other, history=command.history)
            if is_group
            else events.GroupJoined(at=at, group=other)
        )
    else:
        event = (
            events.MemberLeft(at=at, member=other, forget=command.forget)
            if is_group
            else events.GroupLeft(at=at, group=other, forget=command.forget)
        )
    writer.emit(event)
    return True


# -- reads -----------------------------------------------------------------------------


def occurrence(event: str, number: int) -> str:
    """Return the id of what happens for the `number`-th time (from 0) exactly so."""
    return event if number == 0 else f"{event}.{number}"


def happened(memory: UserMemory, event: str) -> int:
    """Return how often exactly this is known to have happened."""
    count = 0
    while occurrence(event, count) in memory.graph.happened:
        count += 1
    return count


def delivered(memory: UserMemory, command: c.Delivered) -> list[str]:
    """Return in which words the owner saw an event, or what it saw of a request."""
    happened = memory.graph.happened
    if command.is_request:
        begun = [event for event in happened if event.startswith(command.event)]
        return [event for event in begun if _seen(memory, event)]
    return [node.text for node in _seen(memory, command.event)]


def _seen(memory: UserMemory, event: str) -> list[n.Memory]:
    return [
        node
        for memory_id in memory.graph.happened.get(event, ())
        if isinstance(node := memory.graph.node(memory_id), n.Memory) and not node.heard
    ]


def get(memory: UserMemory, command: c.Get) -> Item | None:
    """Return an item by node id or external id, whatever its status; None when unknown, or when
    the member that asks does not know it."""
    node = memory.graph.node(command.node_id)
    if not isinstance(node, Readable):
        node = memory.graph.node(memory.graph.externals.get(command.node_id, ""))
    if not isinstance(node, Readable):
        return None
    if command.member is not None and not groups.known_to(memory, command.member)(node):
        return None
    return as_item(memory, node)


def tale(memory: UserMemory, command: c.Tale) -> MemoryDraft | None:
    """Return what somebody can tell of a memory; None when it is not his, or has ended."""
    node = memory.graph.node(command.node_id)
    if not isinstance(node, n.Memory) or not is_live(node, command.now):
        return None
    if command.member is not None and not groups.known_to(memory, command.member)(node):
        return None
    linked = [memory.graph.node(e) for e, _ in memory.graph.out(node.id, n.CONTAINS_ENTITY)]
    topics = [memory.display(topic) for topic, _ in memory.graph.out(node.id, n.IN_TOPIC)]
    return MemoryDraft(
        node.text,
        kind=node.kind,
        confidence=node.confidence,
        importance=node.importance,
        valid_from=node.recorded_at if node.valid_from is None else node.valid_from,
        valid_to=node.valid_to,
        event=node.event,
        heard=node.heard,
        sentiment=node.sentiment,
        ttl_s=node.ttl_s,
        tags=node.tags,
        topics=tuple(topics),
        metadata=node.metadata,
        entities=tuple(
            EntityDraft(e.name, e.type, e.aliases) for e in linked if isinstance(e, n.Entity)
        ),
    )


def member_of(memory: UserMemory) -> list[str]:
    """Return the groups that a user recalls from, sorted."""
    return sorted(groups.root(memory).groups)


def members(memory: UserMemory) -> list[str]:
    """Return who is a member of the group now, sorted."""
    owner = groups.root(memory)
    return sorted(user for user in owner.members if groups.is_member(owner, user))


def knows(memory: UserMemory, command: c.Knows) -> list[c.Knower]:
    """Return who knows of an event by this graph: its owner, or the members of the group."""
    live = [
        node
        for memory_id in memory.graph.happened.get(command.event, ())
        if isinstance(node := memory.graph.node(memory_id), n.Memory) and is_live(node, command.now)
    ]
    owner = groups.root(memory)
    if owner.group is None:
        return [c.Knower(command.user_id, m.id, m.heard, m.confidence) for m in live]
    return [
        c.Knower(user, shown_id(owner.group, m.id), m.heard, m.confidence, owner.group)
        for user in sorted(owner.members)
        for m in live
        if groups.known_to(memory, user)(m)
    ]


def shown_id(group: str, node_id: str) -> str:
    """Return the id by which a member is shown a memory of its group."""
    return f"{groups.owner_of(group)}{SEPARATOR}{node_id}"


def of_group(shown: str) -> tuple[str, str] | None:
    """Return (name of the group, node id) of a shown id; None when it is none."""
    owner, separator, node_id = shown.rpartition(SEPARATOR)
    name = groups.name_of(owner)
    if name is None or not separator or not node_id[1:].isdecimal() or node_id[:1] != g.MEMORY:
        return None
    return name, node_id


def explained(memory: UserMemory, query: Query, command: c.Why) -> Explanation:
    """Return why an item does or does not come up; asked by a member, as it is shown it: nothing
    is told of what that member does not know."""
    asked = command.search
    if asked.member is None:
        return why(memory, query, command.item_id, asked.filters)
    group, node = groups.root(memory).group, memory.graph.node(command.item_id)
    knows = groups.known_to(memory, asked.member)
    if group is None or not isinstance(node, n.Memory) or not knows(node):
        return unknown(command.item_id, query.limit)
    told = why(memory, query, node.id, asked.filters, told_as=lambda one: shown_id(group, one))
    return msgspec.structs.replace(
        told,
        item_id=shown_id(group, node.id),
        item=None if told.item is None else as_shown(told.item, group),
        ahead=tuple(hit_shown(hit, group) for hit in told.ahead),
    )


def hit_shown(hit: Hit, group: str) -> Hit:
    """Return a hit of a group as a member is shown it."""
    shown = as_shown(hit, group)
    assert isinstance(shown, Hit)  # noqa: S101 (a changed copy)
    return shown


def as_shown(item: Item, group: str) -> Item:
    """Return an item of a group as a member is shown it."""
    return msgspec.structs.replace(
        item,
        id=shown_id(group, item.id),
        sources=tuple(shown_id(group, source) for source in item.sources),
        group=group,
    )


def within(memory: UserMemory, where: Predicate | None, command: c.Search) -> Predicate | None:
    """Return a condition on what answers a search, narrowed to what the asking member knows."""
    if command.member is None or groups.knows_all(memory, command.member, command.as_of):
        return where
    known = groups.known_to(memory, command.member, command.as_of)
    if where is None:
        return known
    return lambda node: known(node) and where(node)
