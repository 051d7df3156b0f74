"""`reverie query` and `reverie graph export`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import reverie

Run = Callable[..., Any]


@pytest.fixture
def known(data: Path) -> None:
    with reverie.open(data, embedder="standin", background=False) as rt:
        ana = rt.user("ana")
        ana.relate("李明", "推荐", "三体", head_type="person")
        ana.relate("Bo", "推荐", "Dune", head_type="person")


@pytest.mark.usefixtures("known")
def test_a_query(run: Run, run_json: Run) -> None:
    ask = "MATCH (a)-[r:RELATION]->(b) WHERE a.name = $who RETURN a.name AS who, b, r.valid_to"
    found = run_json("query", ask, "--user", "ana", "--params", '{"who": "李明"}')
    assert found["columns"] == ["who", "b", "r.valid_to"]
    ((who, book, end),) = found["rows"]
    assert (who, book["name"], end) == ("李明", "三体", None)
    shown = run("query", ask, "--user", "ana", "--params", '{"who": "李明"}')
    assert "三体" in shown.stdout
    assert "1 row" in shown.stderr
    cut = run("query", "UNWIND range(1, 5) AS x RETURN x", "--user", "ana", "-n", 2)
    assert "there are more" in cut.stderr


@pytest.mark.usefixtures("known")
def test_what_is_refused(run: Run, run_json: Run) -> None:
    found = run_json("query", "MATCH (n) DETACH DELETE n", "--user", "ana", expect=1)
    assert found["error"] == "QueryError"
    for params in ("[1]", "{", "3"):
        run("query", "RETURN 1", "--params", params, expect=1)


@pytest.mark.usefixtures("known")
def test_an_export(run: Run, run_json: Run, tmp_path: Path) -> None:
    printed = run("graph", "export", "json", "--user", "ana").stdout
    graph = nx.node_link_graph(json.loads(printed), edges="edges")
    assert {d.get("name") for _, d in graph.nodes(data=True)} >= {"李明", "三体", "Bo", "Dune"}
    path = tmp_path / "ana.graphml"
    told = run_json("graph", "export", path, "--user", "ana")
    assert told == {"path": str(path), "bytes": path.stat().st_size}
    assert nx.read_graphml(path).number_of_nodes() == graph.number_of_nodes()
    run("graph", "export", "ana.csv", expect=1)
