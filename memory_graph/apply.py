"""What each journal event does to a user's memory: one `match` over the closed union.

Applying is deterministic and reads nothing but the state and the event. It may raise
InvariantError half-way; the caller then throws the in-memory state away and rolls back, so an
event that cannot be applied is never journaled.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, assert_never

import msgspec

from reverie.memory_graph import decay, events, groups, nodes as n, reflection, relationships
from reverie.memory_graph.errors import InvariantError
from reverie.memory_graph.graph import number

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

MAX_PAIRED_ENTITIES = 8  # co-occurrence is quadratic: 8 entities make 28 edges at most


def apply(  # noqa: C901, PLR0912, PLR0915 (one branch a kind)
    memory: UserMemory, event: events.Event
) -> None:
    """Change `memory` by one event.

    Raises:
        InvariantError: the event does not fit the state. The state may be half changed.
    """
    graph = memory.graph
    match event:
        case events.SessionOpened():
            graph.add(n.Session(event.id, event.name, event.at, event.at))
        case events.MessageAdded():
            _message(memory, event)
        case events.TurnSettled():
            turn: n.Message = graph.get(event.id, n.Message)
            turn.status = event.status
            _mention(memory, turn.id, event.entities, turn.said_at, 0.5)
            memory.index(turn.id, None, event.vector)
        case events.MemoryAdded():
            _memory(memory, event)
        case events.MemoryRetired():
            _retire(memory, event.id, event.status, event.at, event.valid_to, event.reason)
            if event.dated:
                graph.get(event.id, n.Memory).away_at = event.at
            if event.faded:
                _fade(memory, event.id)
            elif event.status != "superseded":
                _hide_summaries(memory, event.id, event.at)
        case events.MemoryRestored():
            _restore(memory, event.id)
        case events.MemoryEdited():
            edited: n.Memory = graph.get(event.id, n.Memory)
            _edit(edited, event)
            graph.veil(edited)
            graph.await_gist(edited)
            if edited.ttl_s is not None:
                _hide_summaries(memory, edited.id, event.at)
        case events.EntityAdded():
            graph.add(
                n.Entity(
                    event.id, event.name, event.type, event.seen_at, event.seen_at, event.aliases
                )
            )
        case events.EntityRenamed():
            _rename(memory, event)
        case events.RelationAdded():
            graph.link(
                event.head,
                event.tail,
                n.Relation(
                    event.id,
                    event.predicate,
                    1.0,
                    event.at,
                    event.at,
                    event.valid_from,
                    event.valid_to,
                    None,
                    event.confidence,
                    event.source,
                ),
            )
        case events.RelationRetired():
            relation = graph.relation(event.id)
            relation.retired_at = event.at
            relation.end_learned = relation.valid_to is None
            relation.valid_to = _end(relation.valid_to, event.valid_to, event.at)
            if relation.valid_from is not None and relation.valid_to < relation.valid_from:
                relation.valid_to = relation.valid_from  # as for memories: it never held
        case events.TopicAdded():
            graph.add(n.Topic(event.id, event.name, event.at))
        case events.SummaryAdded():
            _summary(memory, event)
        case events.RelationshipMoved():
            relationships.apply_move(memory, event)
        case events.TiesRemoved():
            relationships.apply_untied(memory, event)
        case events.Reflected():
            reflection.apply_reflected(memory, event)
        case events.ProfileSet():
            owner: n.User = graph.get(n.USER_NODE, n.User)
            owner.profile = event.profile
        case events.ModelBudgetSpent():
            owner = graph.get(n.USER_NODE, n.User)
            if owner.model_spent_at is None:
                owner.model_spent_at = event.at
        case events.Touched():
            for node_id in event.ids:
                _touch(memory, node_id, event.at)
        case events.VectorsSet():
            memory.replace_vectors(event.embedder, event.dim, event.ids, event.vectors)
        case (
            events.GroupFormed()
            | events.MemberJoined()
            | events.MemberLeft()
            | events.GroupJoined()
            | events.GroupLeft()
        ):
            groups.apply(memory, event)
        case _:
            assert_never(event)


def _end(known: float | None, given: float | None, at: float) -> float:
    """When a statement stopped holding: what is known already, else what was said, else now."""
    return known if known is not None else given if given is not None else at


def _message(memory: UserMemory, event: events.MessageAdded) -> None:
    graph = memory.graph
    session: n.Session = graph.get(event.session, n.Session)
    graph.add(
        n.Message(
            event.id,
            event.session,
            event.speaker,
            event.role,
            event.text,
            event.said_at,
            event.at,
            event.external_id,
            event.metadata,
            event.status,
        )
    )
    graph.link(event.id, session.id, n.Edge(n.IN_SESSION, 1.0, event.said_at))
    graph.link(event.id, event.speaker_node, n.Edge(n.SENT_BY, 1.0, event.said_at))
    if session.last_message is not None:
        graph.link(event.id, session.last_message, n.Edge(n.PREVIOUS, 1.0, event.said_at))
    presence = graph.edge(event.speaker_node, session.id, n.PARTICIPATED_IN)
    if presence is None:
        edge = n.Edge(n.PARTICIPATED_IN, 1.0, event.said_at, event.role)
        graph.link(event.speaker_node, session.id, edge)
    else:
        graph.touch(presence, event.said_at, decay.TOUCH_GAIN, 0.5)
    if isinstance(speaker := graph.node(event.speaker_node), n.Entity):
        speaker.last_seen = max(speaker.last_seen, event.said_at)
    if session.messages == 0:
        session.started_at = event.said_at
    session.messages += 1
    session.last_at = max(session.last_at, event.said_at)
    session.last_message = event.id
    memory.index(event.id, event.text, event.vector)


def _memory(memory: UserMemory, event: events.MemoryAdded) -> None:
    graph = memory.graph
    graph.add(
        n.Memory(
            event.id,
            event.text,
            event.kind,
            event.at,
            event.valid_from,
            event.valid_to,
            confidence=event.confidence,
            importance=event.importance,
            slot=event.slot,
            provenance=event.provenance,
            told_by=event.told_by,
            event=event.event,
            heard=event.heard,
            sentiment=event.sentiment,
            ttl_s=event.ttl_s,
            pinned=event.pinned,
            tags=event.tags,
            metadata=event.metadata,
        )
    )
    for source in event.sources:
        graph.link(event.id, source, n.Edge(n.DERIVED_FROM, 1.0, event.at))
    for old in event.supersedes:
        _retire(memory, old, "superseded", event.at, event.valid_from, f"replaced by {event.id}")
        graph.link(event.id, old, n.Edge(n.SUPERSEDES, 1.0, event.at))
    for topic in event.topics:
        graph.get(topic, n.Topic)
        graph.link(event.id, topic, n.Edge(n.IN_TOPIC, 1.0, event.at))
    _mention(memory, event.id, event.entities, event.at, event.importance)
    memory.index(event.id, event.text, event.vector)


def _retire(
    memory: UserMemory,
    memory_id: str,
    status: n.Status,
    at: float,
    valid_to: float | None,
    why: str,
) -> None:
    old: n.Memory = memory.graph.get(memory_id, n.Memory)
    if status == "active":
        msg = f"{memory_id} cannot be retired to status 'active'"
        raise InvariantError(msg)
    memory.graph.deactivate(old)
    old.status, old.retired_why, old.faded, old.gist = status, why, False, None
    old.away_at = None
    memory.graph.await_gist(old)
    if status in {"superseded", "expired"}:  # no longer believed; the other two are only put away
        old.retired_at = at
        old.end_learned = old.valid_to is None
        old.valid_to = _end(old.valid_to, valid_to, at)
        if old.valid_from is not None and old.valid_to < old.valid_from:
            old.valid_to = old.valid_from  # it never held: an empty interval, not a negative one
    if status == "superseded":  # it stays part of what was said, but what holds now is another
        for summary in _citing(memory, memory_id):
            if summary.gist:  # it is not made anew as it is; what is left of it is told anew
                _take_back(memory, summary, at)
            elif not isinstance(memory.graph.node(summary.of), n.Session):
                _make_stale(memory, summary)


def _fade(memory: UserMemory, memory_id: str) -> None:
    """An archived memory was not asked to be hidden: what tells of it goes on telling."""
    old: n.Memory = memory.graph.get(memory_id, n.Memory)
    if old.status != "archived":
        msg = f"{memory_id} has faded, but is {old.status}"
        raise InvariantError(msg)
    old.faded = True
    memory.graph.await_gist(old)


def _citing(memory: UserMemory, node_id: str) -> list[n.Summary]:
    """Return the summaries that derive from a node and answer still."""
    found = (memory.graph.node(tail) for tail, _ in memory.graph.into(node_id, n.DERIVED_FROM))
    return [s for s in found if isinstance(s, n.Summary) and s.retired_at is None]


def _hide_summaries(memory: UserMemory, memory_id: str, at: float) -> None:
    """Retire the summaries that may show what a memory says, or the turns that it came from: what
    was put away, or will be, must not answer in their words. They are made anew without it."""
    graph = memory.graph
    for node_id in (memory_id, *(source for source, _ in graph.out(memory_id, n.DERIVED_FROM))):
        _hide_citing(memory, node_id, at)


def _hide_citing(memory: UserMemory, node_id: str, at: float) -> None:
    """Retire the summaries that derive from a node, and what derives from these: an insight may say
    the same still, though the summary that it was made of has been replaced."""
    graph = memory.graph
    for tail, _ in list(graph.into(node_id, n.DERIVED_FROM)):
        summary = graph.node(tail)
        if not isinstance(summary, n.Summary):
            continue
        if summary.retired_at is None and summary.gist:
            _take_back(memory, summary, at)
        elif summary.retired_at is None:
            summary.retired_at = at
            graph.outdate(summary)
        _hide_citing(memory, tail, at)


def _take_back(memory: UserMemory, summary: n.Summary, at: float) -> None:
    """Retire a gist; the memories in it that may still be told wait for another."""
    summary.retired_at = at
    memory.graph.outdate(summary)
    for source, _ in memory.graph.out(summary.id, n.DERIVED_FROM):
        told = memory.graph.node(source)
        if isinstance(told, n.Memory) and told.gist == summary.id:
            told.gist = None
            memory.graph.await_gist(told)


def _make_stale(memory: UserMemory, summary: n.Summary) -> None:
    summary.stale = True
    memory.graph.outdate(summary)


def _restore(memory: UserMemory, memory_id: str) -> None:
    kept: n.Memory = memory.graph.get(memory_id, n.Memory)
    if kept.end_learned:
        kept.valid_to = None
    kept.status, kept.retired_at, kept.retired_why, kept.end_learned = "active", None, "", False
    kept.away_at, kept.faded, kept.gist = None, False, None
    memory.graph.await_gist(kept)
    memory.graph.activate(kept)
    memory.graph.veil(kept)
    for subject in _subjects(memory, memory_id):
        newest = memory.graph.node(memory.graph.summaries.get(subject, ""))
        if isinstance(newest, n.Summary) and newest.retired_at is None:
            _make_stale(memory, newest)


def _subjects(memory: UserMemory, memory_id: str) -> list[str]:
    """Return what a memory may be in a summary of: the user, its topics, sessions, entities."""
    graph = memory.graph
    turns = (graph.node(source) for source, _ in graph.out(memory_id, n.DERIVED_FROM))
    sessions = dict.fromkeys(turn.session for turn in turns if isinstance(turn, n.Message))
    topics = (topic for topic, _ in graph.out(memory_id, n.IN_TOPIC))
    entities = (entity for entity, _ in graph.out(memory_id, n.CONTAINS_ENTITY))
    return [n.USER_NODE, *topics, *sessions, *entities]


def _edit(memory: n.Memory, event: events.MemoryEdited) -> None:
    for field in ("importance", "confidence", "pinned", "backed", "ttl_s", "tags", "metadata"):
        if (value := getattr(event, field)) is not msgspec.UNSET:
            setattr(memory, field, value)


def _rename(memory: UserMemory, event: events.EntityRenamed) -> None:
    graph = memory.graph
    entity: n.Entity = graph.get(event.id, n.Entity)
    entity.aliases += tuple(a for a in event.aliases if graph.name(a, entity.id))
    if event.type is not None:
        entity.type = event.type


def _mention(
    memory: UserMemory, node_id: str, entities: Iterable[str], at: float, importance: float
) -> None:
    """Link a text to the entities that it names, and those entities to each other."""
    graph = memory.graph
    ids = list(dict.fromkeys(entities))
    gain = decay.contribution(importance)
    for entity_id in ids:
        entity: n.Entity = graph.get(entity_id, n.Entity)
        entity.mentions += 1
        entity.first_seen = min(entity.first_seen, at)
        entity.last_seen = max(entity.last_seen, at)
        graph.strengthen(node_id, entity_id, n.CONTAINS_ENTITY, at, gain)
    for a, b in combinations(sorted(ids, key=number)[:MAX_PAIRED_ENTITIES], 2):
        graph.strengthen(a, b, n.RELATED_TO, at, gain)


def _summary(memory: UserMemory, event: events.SummaryAdded) -> None:
    graph = memory.graph
    if event.of not in graph:
        msg = f"summary {event.id} is of {event.of!r}, which does not exist"
        raise InvariantError(msg)
    for old in event.replaces:
        replaced: n.Summary = graph.get(old, n.Summary)
        replaced.retired_at = event.at
        graph.outdate(replaced)
        for made_of_it in _citing(memory, old):
            _make_stale(memory, made_of_it)
    graph.add(
        n.Summary(
            event.id,
            event.text,
            event.of,
            event.at,
            event.from_at,
            event.to_at,
            covers=event.covers,
            gist=event.gist,
            order=event.order,
            focus=event.focus,
        )
    )
    owner = reflection.owner_of(memory)
    if event.focus in owner.foci:
        owner.foci = tuple(focus for focus in owner.foci if focus != event.focus)
    graph.link(event.id, event.of, n.Edge(n.SUMMARIZES, 1.0, event.at))
    for source in event.sources:
        graph.link(event.id, source, n.Edge(n.DERIVED_FROM, 1.0, event.at))
        if event.gist:
            told: n.Memory = graph.get(source, n.Memory)
            told.gist = event.id
            graph.await_gist(told)
    for entity in event.entities:  # not counted as mentions: its sources are, and it is made anew
        graph.get(entity, n.Entity)
        graph.link(event.id, entity, n.Edge(n.CONTAINS_ENTITY, 1.0, event.at))
    memory.index(event.id, event.text, event.vector)


def _touch(memory: UserMemory, node_id: str, at: float) -> None:
    """A reading: count it and reinforce the associations of what was read."""
    graph = memory.graph
    node = graph.node(node_id)
    importance, sentiment = 0.5, 0.0
    if isinstance(node, n.Memory):
        node.hits += 1
        node.last_access = at
        importance, sentiment = node.importance, node.sentiment
    if mentioned := list(graph.out(node_id, n.CONTAINS_ENTITY)):
        gain = decay.contribution(importance, sentiment)
        for _, edge in mentioned:
            graph.touch(edge, at, gain, importance)
