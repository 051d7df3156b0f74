"""How a shard answers each read: functions of a user's state and a command, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from reverie.actors import commands as c, gatherings, ties
from reverie.actors.graph_pages import graph_page
from reverie.actors.limits import audited, model_limits
from reverie.actors.nearest import nearest
from reverie.actors.whole import whole
from reverie.memory_graph import budget, decay, graph as g, nodes as n, relationships
from reverie.memory_graph.drafts import Known
from reverie.memory_graph.errors import (
    EmbedderMismatchError,
    InternalError,
    InvalidLimitError,
    UnknownMemoryError,
)
from reverie.memory_graph.filters import Predicate, compile_filter
from reverie.memory_graph.material import Material
from reverie.memory_graph.reflection import is_due
from reverie.memory_graph.search import READABLE, Query, search_many
from reverie.memory_graph.snapshot import state_digest
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.summaries import MAX_TRIED, due, material
from reverie.memory_graph.talk import is_named, named, relevant, talk
from reverie.memory_graph.topk import DECIMALS
from reverie.memory_graph.vector_table import Float32
from reverie.memory_graph.vectors import VectorIndex
from reverie.memory_graph.views import (
    EntityView,
    Hit,
    Item,
    RelationView,
    as_item,
    entity_view,
)
from reverie.memory_graph.visible import (
    Moment,
    is_live,
    is_visible,
    relation_holds,
    relation_seen,
    seen,
)

Readable = n.Memory | n.Message | n.Summary


def read(  # noqa: C901, PLR0912 (one branch a kind)
    memory: UserMemory, command: c.Read, generation: int = 0
) -> Any:
    """Return the answer to a read; its type is `commands.ANSWERS[type(command)]`. Searches have
    `run_searches`."""
    match command:
        case c.Why():
            return gatherings.explained(memory, _query(memory, command.search), command)
        case c.Similar():
            return similar(memory, command)
        case c.Nearest():
            check_embedder(memory, command.embedder)
            return nearest(memory, command)
        case c.Get():
            return gatherings.get(memory, command)
        case c.ListItems():
            return list_items(memory, command)
        case c.History():
            return history(memory, command.memory_id)
        case c.Entities():
            return entities(memory, command)
        case c.Neighbors():
            return neighbors(memory, command)
        case c.Graph():
            return graph_page(memory, command, generation)
        case c.Relationships():
            return ties.standings(memory, command)
        case c.Towards():
            return ties.towards(memory, command)
        case c.Moves():
            return relationships.history(memory, command.other)
        case c.Tale():
            return gatherings.tale(memory, command)
        case c.MemberOf():
            return gatherings.member_of(memory)
        case c.Members():
            return gatherings.members(memory)
        case c.Happened():
            return gatherings.happened(memory, command.event)
        case c.Delivered():
            return gatherings.delivered(memory, command)
        case c.Knows():
            return gatherings.knows(memory, command)
        case c.GetProfile():
            return budget.profile_of(memory.graph)
        case c.Audit():
            return audited(memory, command)
        case c.DueSummaries():
            return due_summaries(memory, command, generation)
        case c.Talk():
            return _talk(memory, command)
        case c.Texts():
            texts = [node for node in memory.graph.nodes() if isinstance(node, Readable)]
            return c.TextPage([t.id for t in texts], [t.text for t in texts])
        case c.Whole():
            return whole(memory, command, generation)
        case c.Digest():
            return state_digest(memory)
        case _:
            msg = f"{type(command).__name__} is no read"
            raise InternalError(msg)


def check_embedder(memory: UserMemory, embedder: str | None) -> None:
    """Raise EmbedderMismatchError when vectors of `embedder` do not fit the stored ones."""
    if embedder is not None and memory.embedder is not None and embedder != memory.embedder:
        msg = (
            f"this user's vectors were made by {memory.embedder}, not by {embedder}; "
            "open the world with that embedder, or migrate it with reembed"
        )
        raise EmbedderMismatchError(msg, stored=memory.embedder, given=embedder)


def moment_of(command: c.Moments) -> Moment:
    """Return the moment that a read looks from."""
    return Moment(command.now, command.as_of, command.valid_at, command.archived, command.retired)


def run_searches(memory: UserMemory, commands: Sequence[c.Search]) -> list[list[Hit]]:
    """Search for each of several commands; raises EmbedderMismatchError and FilterError."""
    return search_many(memory, [_query(memory, command) for command in commands])


def _query(memory: UserMemory, command: c.Search) -> Query:
    vector = None
    if command.vector is not None:
        check_embedder(memory, command.embedder)
        vector = np.frombuffer(command.vector, dtype="<f4")
    where = None if command.filters is None else compile_filter(command.filters, memory)
    return Query(
        command.text,
        vector,
        moment_of(command),
        command.limit,
        frozenset(command.types),
        gatherings.within(memory, where, command),
        times=command.times,
    )


def due_summaries(memory: UserMemory, command: c.DueSummaries, generation: int) -> c.Materials:
    """Return what the next summary is made of; a few subjects with nothing to tell are tried."""
    policy = command.policy
    if command.start == 0 and policy.kinds != "summaries" and is_due(memory, policy.reflect_at):
        return c.Materials(generation, reflect=True)
    passed = 0
    for subject in islice(due(memory, command.now, command.policy), command.start, None):
        if passed >= MAX_TRIED:
            return c.Materials(generation, None, passed)
        found = material(memory, subject, command.now, command.policy.max_tokens)
        if found is not None:
            return c.Materials(generation, found, passed)
        passed += 1
    return c.Materials(generation, None, passed, is_last=True)


def _talk(memory: UserMemory, command: c.Talk) -> Material:
    name, about = "", None
    if command.search is not None:
        name = command.search.text
        if is_named(memory, name):
            about = named(memory, name)
        else:
            about = relevant(run_searches(memory, [command.search])[0])
    return talk(memory, command.period, name, about, command.max_tokens)


def similar(memory: UserMemory, command: c.Similar) -> list[list[Known]]:
    """Return for each vector the nearest active memories and those in the draft's slot."""
    graph, now = memory.graph, command.now

    def is_active(node_id: str) -> bool:
        node = graph.node(node_id)
        return isinstance(node, n.Memory) and is_live(node, now)

    # Where turns are the most, looking among the memories alone is quicker than passing over all
    # the turns that are nearer, and does not slow down as a conversation grows.
    active = [i for ids in graph.statements.values() for i in ids]
    few = memory.vectors is not None and 4 * len(active) <= len(memory.vectors)
    found: list[list[Known]] = []
    for data, slot in zip(command.vectors, command.slots, strict=True):
        near: dict[str, float] = {}
        if memory.vectors is not None:
            query = np.frombuffer(data, dtype="<f4")
            if few:
                near = dict(_nearest(memory.vectors, query, active, command.limit, is_active))
            else:
                near = dict(memory.vectors.search(query, command.limit, is_active))
            in_slot = graph.slots.get(slot or "", ())
            same_slot = [m for m in in_slot if m not in near and is_active(m)]
            cosines = memory.vectors.similarities(query, same_slot)
            near |= dict(zip(same_slot, cosines, strict=True))
        rows: list[Known] = []
        for memory_id, cosine in near.items():
            node = graph.node(memory_id)
            if isinstance(node, n.Memory):
                similarity = cosine if cosine == cosine else 0.0  # noqa: PLR0124 (NaN)
                rows.append(
                    Known(node.id, node.text, node.kind, node.slot, similarity, node.recorded_at)
                )
        found.append(rows)
    return found


def _nearest(
    vectors: VectorIndex,
    query: Float32,
    ids: Sequence[str],
    limit: int,
    allowed: Callable[[str], bool],
) -> list[tuple[str, float]]:
    """Return the nearest of some ids, best first; equal ones in the order of their numbers."""
    cosines = vectors.similarities(query, ids)
    ranked = sorted(
        (-round(cosine, DECIMALS), g.number(i), i)
        for i, cosine in zip(ids, cosines, strict=True)
        if not math.isnan(cosine)  # it has no vector
    )
    return list(islice(((i, -cosine) for cosine, _, i in ranked if allowed(i)), limit))


def _matching(memory: UserMemory, command: c.ListItems) -> Iterator[Readable]:
    moment, types = moment_of(command), frozenset(command.types)
    where: Predicate | None = None
    if command.filters is not None:
        where = compile_filter(command.filters, memory)
    for node in memory.graph.nodes():
        if (
            isinstance(node, Readable)
            and READABLE[type(node)] in types
            and is_visible(node, moment)
            and (where is None or where(seen(node, moment)))
        ):
            yield node


def list_items(memory: UserMemory, command: c.ListItems) -> c.Page:
    """Return one page of a listing, in the order in which things were recorded.

    Raises:
        InvalidLimitError: the cursor names nothing of this user.
    """
    started = command.after is None
    if command.after is not None and command.after not in memory.graph:
        msg = f"cursor {command.after!r} is not of this listing"
        raise InvalidLimitError(msg, cursor=command.after)
    order = {node_id: i for i, node_id in enumerate(memory.graph.nx)}
    start = -1 if started else order[command.after or ""]
    total, more = 0, False
    items: list[Item] = []
    for node in _matching(memory, command):
        total += 1
        if order[node.id] <= start:
            continue
        if len(items) < command.limit:
            items.append(as_item(memory, node, moment_of(command)))
        else:
            more = True
    return c.Page(items, total, items[-1].id if more else None)


def history(memory: UserMemory, memory_id: str) -> list[Item]:
    """Return everything on the chain of replacements through a memory, oldest first.

    Raises:
        UnknownMemoryError: no such memory.
    """
    graph = memory.graph
    if not isinstance(graph.node(memory_id), n.Memory):
        msg = f"no memory {memory_id!r} for this user"
        raise UnknownMemoryError(msg, memory_id=memory_id)
    chain, work = {memory_id}, [memory_id]
    while work:
        here = work.pop()
        for other in [
            *(m for m, _ in graph.out(here, n.SUPERSEDES)),
            *(m for m, _ in graph.into(here, n.SUPERSEDES)),
        ]:
            if other not in chain:
                chain.add(other)
                work.append(other)
    found = [graph.get(m, n.Memory) for m in chain]
    found.sort(key=lambda m: (m.recorded_at, g.number(m.id)))
    return [as_item(memory, m) for m in found]


def entities(memory: UserMemory, command: c.Entities) -> list[EntityView]:
    """Return entities, most mentioned first."""
    if command.name is not None:
        found = memory.graph.entity_named(command.name)
        return [] if found is None else [entity_view(found)]
    every = [e for e in memory.graph.nodes(n.Entity) if isinstance(e, n.Entity)]
    every.sort(key=lambda e: (-e.mentions, g.number(e.id)))
    return [entity_view(e) for e in every[: command.limit]]


def neighbors(memory: UserMemory, command: c.Neighbors) -> c.Neighborhood | None:
    """Return what surrounds an entity; None when there is none of that name."""
    graph = memory.graph
    entity = None if command.name == "user" else graph.entity_named(command.name)
    if entity is None and command.name != "user":
        return None
    node_id = n.USER_NODE if entity is None else entity.id
    moment = Moment(command.now, command.as_of, command.valid_at, retired=command.retired)
    relations: list[RelationView] = []
    for head, tail, edge in [
        *((node_id, t, e) for t, e in graph.out(node_id, n.RELATION)),
        *((h, node_id, e) for h, e in graph.into(node_id, n.RELATION) if h != node_id),
    ]:
        if isinstance(edge, n.Relation) and (command.retired or relation_holds(edge, moment)):
            known = relation_seen(edge, moment)
            relations.append(_relation_view(memory, head, tail, known, command.now))
    related = [
        (memory.display(other), _decayed(edge, command.now))
        for other, edge in [*graph.out(node_id, n.RELATED_TO), *graph.into(node_id, n.RELATED_TO)]
    ]
    related.sort(key=lambda pair: (-pair[1], pair[0]))
    mentioned = [
        node
        for other, edge in graph.around(node_id, command.limit)
        if edge.kind == n.CONTAINS_ENTITY
        and isinstance(node := graph.node(other), Readable)
        and is_visible(node, moment)
    ]
    return c.Neighborhood(
        None if entity is None else entity_view(entity),
        relations[: command.limit],
        related[: command.limit],
        [as_item(memory, node, moment) for node in mentioned[: command.limit]],
        relationships.standings(
            memory,
            command.user_id,
            command.now,
            other=None if entity is None else entity.name,
            at=command.as_of,
        )[: command.limit],
    )


def _decayed(edge: n.Edge | n.Relation, now: float) -> float:
    return decay.weight_at(edge.weight, edge.at, now, decay.half_life_s(edge.kind))


def _relation_view(
    memory: UserMemory, head: str, tail: str, edge: n.Relation, now: float
) -> RelationView:
    return RelationView(
        id=edge.id,
        head=memory.display(head),
        predicate=edge.predicate,
        tail=memory.display(tail),
        weight=_decayed(edge, now),
        confidence=edge.confidence,
        recorded_at=edge.recorded_at,
        valid_from=edge.valid_from,
        valid_to=edge.valid_to,
        retired_at=edge.retired_at,
        source=edge.source,
    )


def stats_of(memory: UserMemory, generation: int) -> c.UserStats:
    """Return the counts of a user."""
    nodes = list(memory.graph.nodes())
    turns = [m.status for m in nodes if isinstance(m, n.Message)]
    memories = [m.status for m in nodes if isinstance(m, n.Memory)]
    pinned, active_bytes, is_over = budget.stats(memory)
    return c.UserStats(
        generation=generation,
        seq=memory.seq,
        messages=len(turns),
        memories=len(memories),
        active=memories.count("active"),
        entities=sum(isinstance(m, n.Entity) for m in nodes),
        relations=len(memory.graph.relations),
        summaries=sum(isinstance(m, n.Summary) for m in nodes),
        sessions=len(memory.graph.sessions),
        pending=turns.count("pending"),
        quarantined=turns.count("quarantined"),
        vectors=0 if memory.vectors is None else len(memory.vectors),
        embedder=memory.embedder,
        bytes=memory.size_bytes,
        pinned=pinned,
        active_bytes=active_bytes,
        is_over_budget=is_over,
    )


def texts_of(memory: UserMemory) -> list[str]:
    """Return every text of a user."""
    return [
        *(
            node.text
            for node in memory.graph.nodes()
            if isinstance(node, n.Memory | n.Message | n.Summary)
        ),
        *relationships.texts(memory),
    ]


def turn_batch(
    memory: UserMemory, generation: int, ids: Sequence[str], most_history: int
) -> c.TurnBatch:
    """Return those of some turns that are pending, and what goes before the first: the summary of
    the user, if there is one, and the `most_history` turns that were said before."""
    graph = memory.graph
    turns = [m for i in ids if isinstance(m := graph.node(i), n.Message) and m.status == "pending"]
    history: list[n.Message] = []
    here = turns[0].id if turns else None
    while here is not None and len(history) < most_history:
        here = next((head for head, _ in graph.out(here, n.PREVIOUS)), None)
        if here is not None:
            history.append(graph.get(here, n.Message))
    before = [_turn_view(memory, m) for m in reversed(history)]
    summary = graph.node(graph.summaries.get(n.USER_NODE, ""))
    if isinstance(summary, n.Summary) and summary.retired_at is None:
        # As models/recalled.py knows it; a message has another kind of id.
        told = c.TurnView(summary.id, "", "summary", "system", summary.text, summary.to_at)
        before.insert(0, told)
    views = [_turn_view(memory, m) for m in turns]
    return c.TurnBatch(generation, views, before, model_limits(memory))


def _turn_view(memory: UserMemory, turn: n.Message) -> c.TurnView:
    return c.TurnView(
        turn.id, memory.display(turn.session), turn.speaker, turn.role, turn.text, turn.said_at
    )
