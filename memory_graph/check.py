"""The checker: every invariant of a user's state, as a list of what is broken.

An empty list means sound. The test suite runs it after every test, and `reverie check` on a data
folder. Each rule is one function that yields a line for each violation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

from reverie.memory_graph import (
    budget,
    decay,
    graph as g,
    groups,
    nodes as n,
    reflection,
    relationships,
)
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.text import name_key

Rule = Callable[[UserMemory], Iterator[str]]

# Kind of edge -> kinds of node that it may leave, and enter.
ENDS: dict[str, tuple[tuple[type[n.Node], ...], tuple[type[n.Node], ...]]] = {
    n.PARTICIPATED_IN: ((n.User, n.Entity), (n.Session,)),
    n.IN_SESSION: ((n.Message,), (n.Session,)),
    n.SENT_BY: ((n.Message,), (n.User, n.Entity)),
    n.PREVIOUS: ((n.Message,), (n.Message,)),
    n.CONTAINS_ENTITY: ((n.Message, n.Memory, n.Summary), (n.Entity,)),
    n.RELATED_TO: ((n.Entity,), (n.Entity,)),
    n.RELATION: ((n.User, n.Entity), (n.User, n.Entity)),
    n.DERIVED_FROM: ((n.Memory, n.Summary), (n.Message, n.Memory, n.Summary)),
    n.SUMMARIZES: ((n.Summary,), (n.Session, n.Topic, n.User, n.Entity)),
    n.SUPERSEDES: ((n.Memory,), (n.Memory,)),
    n.IN_TOPIC: ((n.Memory,), (n.Topic,)),
}


def check_memory(memory: UserMemory) -> list[str]:
    """Return a line for each broken invariant of one user's state; [] when it is sound."""
    return [line for rule in RULES for line in rule(memory)]


def _edges_fit(memory: UserMemory) -> Iterator[str]:
    for tail, head, edge in memory.graph.edges():
        tails, heads = ENDS[edge.kind]
        if not isinstance(memory.graph.node(tail), tails):
            yield f"{edge.kind} leaves {tail}, which is no {tails}"
        if not isinstance(memory.graph.node(head), heads):
            yield f"{edge.kind} enters {head}, which is no {heads}"
        if not (math.isfinite(edge.weight) and 0 < edge.weight <= decay.CEILING):
            yield f"{tail} -[{edge.kind}]-> {head} has weight {edge.weight}"
        if edge.kind == n.RELATED_TO and g.number(tail) >= g.number(head):
            yield f"RELATED_TO {tail} -> {head} is not stored smaller id first"


def _messages_chain(memory: UserMemory) -> Iterator[str]:
    graph = memory.graph
    held: Counter[str] = Counter()
    for node in graph.nodes(n.Message):
        assert isinstance(node, n.Message)  # noqa: S101
        held[node.session] += 1
        if [s for s, _ in graph.out(node.id, n.IN_SESSION)] != [node.session]:
            yield f"message {node.id} is not in its session {node.session}"
        if len(list(graph.out(node.id, n.SENT_BY))) != 1:
            yield f"message {node.id} has not exactly one sender"
        if graph.externals.get(node.external_id or "") not in {None, node.id}:
            yield f"message {node.id}: external id {node.external_id!r} stands for another"
    for session in graph.nodes(n.Session):
        assert isinstance(session, n.Session)  # noqa: S101
        if session.messages != held[session.id]:
            yield f"session {session.id} counts {session.messages}, holds {held[session.id]}"
        steps, here = 0, session.last_message
        while here is not None and steps <= session.messages:
            steps += 1
            here = next((head for head, _ in graph.out(here, n.PREVIOUS)), None)
        if steps != session.messages:
            yield f"session {session.id}: the PREVIOUS chain has {steps} of {session.messages}"


def _memories_hold(memory: UserMemory) -> Iterator[str]:
    graph = memory.graph
    for node in graph.nodes(n.Memory):
        assert isinstance(node, n.Memory)  # noqa: S101
        ended = node.status in {"superseded", "expired"}
        if ended != (node.retired_at is not None):
            yield f"memory {node.id} is {node.status} with retired_at {node.retired_at}"
        if None not in (node.valid_from, node.valid_to) and node.valid_to < node.valid_from:  # type: ignore[operator]
            yield f"memory {node.id} is valid to before it is valid from"
        replaced = [m for m, _ in graph.into(node.id, n.SUPERSEDES)]
        if replaced and node.status == "active" and any(_active(memory, m) for m in replaced):
            yield f"memory {node.id} is active beside {replaced}, which replaced it"
        if not 0 <= node.importance <= 1 or not 0 <= node.confidence <= 1:
            yield f"memory {node.id} has importance or confidence out of 0 to 1"
        in_slot = node.id in graph.slots.get(node.slot or "", ())
        if in_slot != (bool(node.slot) and node.status == "active"):
            yield f"memory {node.id} ({node.status}) is {'' if in_slot else 'not '}in its slot"


def _active(memory: UserMemory, memory_id: str) -> bool:
    node = memory.graph.node(memory_id)
    return isinstance(node, n.Memory) and node.status == "active"


def _summaries_stand(memory: UserMemory) -> Iterator[str]:
    """One summary of a subject answers at most, the newest, and it shows nothing put away."""
    graph = memory.graph
    newest: dict[str, n.Summary] = {}
    for node in graph.nodes(n.Summary):
        assert isinstance(node, n.Summary)  # noqa: S101
        if [of for of, _ in graph.out(node.id, n.SUMMARIZES)] != [node.of]:
            yield f"summary {node.id} is not of {node.of} alone"
        if not node.gist:
            if (before := newest.get(node.subject)) is not None and before.retired_at is None:
                yield f"summary {before.id} answers beside {node.id}, which replaced it"
            newest[node.subject] = node
        if (node.id in graph.veiled) != (node.retired_at is not None):
            yield f"summary {node.id} is {'' if node.id in graph.veiled else 'not '}veiled"
        if node.retired_at is None:
            shown = (graph.node(source) for source, _ in graph.out(node.id, n.DERIVED_FROM))
            away = [m.id for m in shown if isinstance(m, n.Memory) and _is_put_away(m)]
            if away:
                yield f"summary {node.id} shows {away}, which were put away"
    if graph.summaries != {of: node.id for of, node in newest.items()}:
        yield "the newest summaries are not those that the graph names"
    outdated = {of for of, s in newest.items() if s.stale or s.retired_at is not None}
    if graph.outdated != outdated:
        yield f"outdated are {sorted(graph.outdated)}, should be {sorted(outdated)}"


def _is_put_away(memory: n.Memory) -> bool:
    if memory.faded:
        return memory.ttl_s is not None
    return memory.status in {"expired", "archived", "quarantined"} or memory.ttl_s is not None


def _names_stand(memory: UserMemory) -> Iterator[str]:
    for entity in memory.graph.nodes(n.Entity):
        assert isinstance(entity, n.Entity)  # noqa: S101
        for name in (entity.name, *entity.aliases):
            if memory.graph.names.get(name_key(name)) != entity.id:
                yield f"entity {entity.id}: the name {name!r} does not lead to it"
    for name, entity_id in memory.graph.names.items():
        if not isinstance(memory.graph.node(entity_id), n.Entity):
            yield f"name {name!r} leads to {entity_id}, which is no entity"


def _relations_stand(memory: UserMemory) -> Iterator[str]:
    graph = memory.graph
    for relation_id, (head, tail) in graph.relations.items():
        edge = graph.edge(head, tail, relation_id)
        if not isinstance(edge, n.Relation) or edge.id != relation_id:
            yield f"relation {relation_id} is not between {head} and {tail}"
        elif edge.source is not None and edge.source not in graph:
            yield f"relation {relation_id} cites {edge.source}, which does not exist"


def _indexed(memory: UserMemory) -> Iterator[str]:
    """Nothing unindexed, and nothing in an index that is not in the graph."""
    texts = [i.id for i in memory.graph.nodes() if isinstance(i, n.Memory | n.Message | n.Summary)]
    yield from (f"{i} is not in the word index" for i in texts if i not in memory.words)
    if len(memory.words) != len(texts):
        yield f"the word index holds {len(memory.words)} texts, the graph {len(texts)}"
    if memory.vectors is not None:
        known = set(texts)
        yield from (
            f"vector of {i}, which is no text" for i in memory.vectors.ids() if i not in known
        )


def _counted(memory: UserMemory) -> Iterator[str]:
    highest: dict[str, int] = {}
    ids = [node.id for node in memory.graph.nodes() if node.id != n.USER_NODE]
    for node_id in [*ids, *memory.graph.relations]:
        highest[node_id[0]] = max(highest.get(node_id[0], 0), g.number(node_id))
    for kind in sorted(highest.keys() | memory.graph.counters.keys()):
        counted, held = memory.graph.counters.get(kind, 0), highest.get(kind, 0)
        # Of these two kinds some may have been removed for good: see relationships.untie.
        if counted < held or (counted > held and kind not in {g.RELATION, g.ENTITY}):
            yield f"counters are {memory.graph.counters}, ids say {highest}"
            return


RULES: tuple[Rule, ...] = (
    _edges_fit,
    _messages_chain,
    _memories_hold,
    _summaries_stand,
    _names_stand,
    _relations_stand,
    relationships.broken,
    reflection.broken,
    groups.broken,
    budget.broken,
    _indexed,
    _counted,
)
