"""Answers of the engine against answers that networkx gives of the same random graph."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support import Factory

from reverie import User

NAMES = ["Ana", "Bo", "李明", "O'Neil", "a\\b", "x y", "王", "`q`", "π"]
PREDICATES = ["knows", "likes", "推荐"]

triples = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(PREDICATES), st.sampled_from(NAMES)),
    min_size=1,
    max_size=14,
    unique=True,
).map(lambda found: [t for t in found if t[0] != t[2]])


def related(user: User, found: list[tuple[str, str, str]]) -> nx.MultiDiGraph[str]:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for head, predicate, tail in found:
        user.relate(head, predicate, tail)
        graph.add_edge(head, tail, predicate)
    return graph


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(found=triples, start=st.sampled_from(NAMES))
def test_the_engine_agrees(factory: Factory, found: list[tuple[str, str, str]], start: str) -> None:
    number = len(factory._opened)
    user = factory(f"d{number}", background=False).user("ana")
    graph = related(user, found)
    plain = nx.DiGraph(graph)

    degrees = user.query(
        "MATCH (a:Entity) OPTIONAL MATCH (a)-[r:RELATION]->() RETURN a.name, count(r)"
    )
    assert dict(degrees.rows) == dict(graph.out_degree())

    two = user.query(
        "MATCH (a:Entity)-[:RELATION]->(b:Entity)-[:RELATION]->(c:Entity) "
        "RETURN a.name, b.name, c.name, count(*)"
    )
    assert {row[:3]: row[3] for row in two} == {
        (a, b, c): graph.number_of_edges(a, b) * graph.number_of_edges(b, c)
        for a, b in plain.edges
        for c in plain.successors(b)
    }

    reached = user.query(
        "MATCH (:Entity {name: $start})-[:RELATION* SHORTEST 1..9]->(b:Entity) "
        "WHERE b.name <> $start RETURN DISTINCT b.name",
        {"start": start},
    )
    expected = nx.descendants(plain, start) if start in plain else set()
    assert {name for (name,) in reached} == expected

    lengths = user.query(
        "MATCH p = (:Entity {name: $start})-[:RELATION* SHORTEST 1..9]->(b:Entity) "
        "WHERE b.name <> $start RETURN b.name, length(p)",
        {"start": start},
    )
    nearest = nx.single_source_shortest_path_length(plain, start) if start in plain else {}
    assert dict(lengths.rows) == {name: n for name, n in dict(nearest).items() if name != start}

    by_predicate = user.query(
        "MATCH ()-[r:RELATION]->() WHERE r.predicate <> 'likes' "
        "RETURN r.predicate AS p, count(*) AS n ORDER BY n DESC, p LIMIT 1"
    )
    counts: dict[str, int] = {}
    for *_, key in graph.edges(keys=True):
        if key != "likes":
            counts[key] = counts.get(key, 0) + 1
    best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:1]
    assert list(by_predicate.rows) == best

    distinct = user.query(
        "MATCH (a:Entity)-[:RELATION]->(b) RETURN DISTINCT a.name AS name ORDER BY name LIMIT 3"
    )
    with_edges = sorted((a for a in plain if plain.out_degree(a)), key=str.encode)
    assert [name for (name,) in distinct] == with_edges[:3]

    exported = user.query("MATCH (a)-[r:RELATION]->(b) RETURN a.name, r.predicate, b.name")
    assert sorted(exported.rows) == sorted((a, k, b) for a, b, k in graph.edges(keys=True))
