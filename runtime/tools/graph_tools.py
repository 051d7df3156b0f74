"""What the tools with the names of the official server-memory do; see knowledge.py."""

from __future__ import annotations

from typing import Any

from reverie.tools import arguments as a
from reverie.tools.budget import Answer, Part, cut_list
from reverie.tools.call import Call
from reverie.tools.knowledge import Entity, Graph, Knowledge, Relation

_RELATIONS_SHARE = 0.3
_OPEN = "search_nodes and open_nodes show parts of the graph"


def create_entities(call: Call, given: a.CreateEntities) -> Answer:
    """Add entities, and return those that are new."""
    wanted = [
        Entity(e.name, e.entity_type, [("", o) for o in e.observations]) for e in given.entities
    ]
    new = _knowledge(call).create_entities(wanted)
    return Answer({}, (_entities(new),))


def create_relations(call: Call, given: a.CreateRelations) -> Answer:
    """Add relations, and return those that are new."""
    new = _knowledge(call).create_relations([_relation(r) for r in given.relations])
    return Answer({}, (Part("relations", [_shown(relation) for relation in new]),))


def add_observations(call: Call, given: a.AddObservations) -> Answer:
    """Add observations, and return those that are new."""
    wanted = [(o.entity_name, o.contents) for o in given.observations]
    added = _knowledge(call).add_observations(wanted)
    results = [
        {"entityName": name, "addedObservations": fresh}
        for (name, _), fresh in zip(wanted, added, strict=True)
    ]
    return Answer({}, (Part("results", results, shrink=cut_list("addedObservations")),))


def delete_entities(call: Call, given: a.DeleteEntities) -> Answer:
    """End entities with their observations and relations."""
    gone = _knowledge(call).delete_entities(given.entity_names)
    return _deleted("Entities", gone)


def delete_observations(call: Call, given: a.DeleteObservations) -> Answer:
    """End observations."""
    wanted = [(d.entity_name, d.observations) for d in given.deletions]
    return _deleted("Observations", _knowledge(call).delete_observations(wanted))


def delete_relations(call: Call, given: a.CreateRelations) -> Answer:
    """End relations."""
    gone = _knowledge(call).delete_relations([_relation(r) for r in given.relations])
    return _deleted("Relations", gone)


def read_graph(call: Call, _given: a.ReadGraph) -> Answer:
    """Return the whole graph."""
    return _graph(_knowledge(call).read())


def search_nodes(call: Call, given: a.SearchNodes) -> Answer:
    """Return entities that hold a text."""
    return _graph(_knowledge(call).found(given.query))


def open_nodes(call: Call, given: a.OpenNodes) -> Answer:
    """Return entities by their names."""
    return _graph(_knowledge(call).opened(given.names))


def _knowledge(call: Call) -> Knowledge:
    return Knowledge(call.runtime, call.user)


def _relation(given: a.RelationArgument) -> Relation:
    return Relation(given.from_, given.relation_type, given.to)


def _graph(graph: Graph) -> Answer:
    relations = [_shown(relation) for relation in graph.relations]
    parts = (
        _entities(list(graph.entities.values())),
        Part("relations", relations, share=_RELATIONS_SHARE),
    )
    return Answer({}, parts, hint=_OPEN)


def _entities(found: list[Entity]) -> Part:
    items: list[dict[str, Any]] = [
        {
            "name": entity.name,
            "entityType": entity.type,
            "observations": [text for _, text in entity.observations],
        }
        for entity in found
    ]
    return Part("entities", items, share=1.0 - _RELATIONS_SHARE, shrink=cut_list("observations"))


def _shown(relation: Relation) -> dict[str, str]:
    return {"from": relation.from_, "to": relation.to, "relationType": relation.type}


def _deleted(what: str, count: int) -> Answer:
    return Answer({"success": True, "message": f"{what} deleted successfully", "deleted": count})
