"""A graph in GraphML and node-link JSON, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import networkx as nx
import pytest
from support import START, Home

from reverie import User, errors

TEXT = 'Ana & "李明" <met>\tat 咖啡馆 \U0001f600'


@pytest.fixture
def ana(home: Home) -> User:
    ana = home.user()
    ana.add([{"text": TEXT, "speaker": "Bo"}, {"text": "bell \x07 \x0b \ufffe ends"}], infer=False)
    ana.remember("Bo likes tea", entities=["Bo", "茶"], tags=["a", "乙"], metadata={"n": 1})
    ana.remember("to be put away")
    ana.archive("m2")
    ana.relate("Bo", "likes", "茶")
    ana.relate("Bo", "sells", "茶")
    ana.relationships.move("Bo", trust=0.5, fear=0.1)
    return ana


def plain(graph: Any) -> tuple[dict[str, Any], list[Any]]:
    nodes = dict(graph.nodes(data=True))
    edges = sorted((a, b, data["kind"], sorted(map(str, data.items())))
                   for a, b, data in graph.edges(data=True))  # fmt: skip
    return nodes, edges


def test_json_is_read_back_by_networkx(ana: User, tmp_path: Path) -> None:
    text = ana.export_graph("json")
    graph = nx.node_link_graph(json.loads(text), edges="edges")
    assert graph.is_multigraph()
    assert graph.is_directed()
    assert graph.nodes["t1"] == {
        "label": "Message",
        "speaker": "Bo",
        "role": "user",
        "text": TEXT,
        "said_at": START,
        "recorded_at": START,
        "status": "skipped",
    }
    assert graph.nodes["m1"]["tags"] == ["a", "乙"]
    assert "m2" not in graph
    assert {d["predicate"] for *_, d in graph.edges(data=True) if d["kind"] == "RELATION"} == {
        "likes",
        "sells",
    }
    assert {
        d["dimension"]: d["value"] for *_, d in graph.edges(data=True) if d["kind"] == "STANDS_TO"
    } == {"trust": 0.5, "fear": 0.1}
    path = tmp_path / "图.JSON"
    assert ana.export_graph(path) == text
    assert path.read_text("utf-8") == text
    assert "m2" in nx.node_link_graph(
        json.loads(ana.export_graph("json", include_archived=True)), edges="edges"
    )


def test_graphml_is_read_back_by_networkx_and_by_an_xml_parser(ana: User, tmp_path: Path) -> None:
    text = ana.export_graph("graphml")
    graph = nx.parse_graphml(text, force_multigraph=True)
    same = nx.node_link_graph(json.loads(ana.export_graph("json")), edges="edges")
    nodes, edges = plain(graph)
    expected, expected_edges = plain(same)
    expected["m1"]["tags"] = '["a", "乙"]'
    expected["t2"]["text"] = "bell \ufffd \ufffd \ufffd ends"
    assert nodes == expected
    assert [e[:3] for e in edges] == [e[:3] for e in expected_edges]
    assert type(nodes["m1"]["pinned"]) is bool
    assert type(nodes["m1"]["hits"]) is int
    assert type(nodes["m1"]["importance"]) is float
    root = ET.fromstring(text)  # noqa: S314 (what we wrote)
    space = "{http://graphml.graphdrawing.org/xmlns}"
    keys = {
        (key.get("for"), key.get("attr.name")): key.get("attr.type")
        for key in root.iter(f"{space}key")
    }
    assert keys["node", "hits"] in {"int", "long"}
    assert keys["node", "text"] == "string"
    assert keys["node", "pinned"] == "boolean"
    assert keys["edge", "weight"] == "double"
    assert len(list(root.iter(f"{space}node"))) == len(expected)
    assert len(list(root.iter(f"{space}edge"))) == same.number_of_edges()
    path = tmp_path / "graph.graphml"
    ana.export_graph(str(path))
    assert plain(nx.read_graphml(path, force_multigraph=True)) == plain(graph)


def test_there_are_no_vectors_and_nothing_of_others(ana: User, home: Home) -> None:
    home.user("bo").remember("the secret of bo")
    assert home.rt.user("ana").stats().vectors > 0
    for kind in ("json", "graphml"):
        text = ana.export_graph(kind)
        assert "secret" not in text
        assert "vector" not in text


def test_an_empty_graph(home: Home) -> None:
    empty = home.user("nobody")
    graph = nx.node_link_graph(json.loads(empty.export_graph("json")), edges="edges")
    assert dict(graph.nodes(data=True)) == {
        "u": {"label": "User", "name": "nobody", "created_at": 0.0}
    }
    assert nx.parse_graphml(empty.export_graph("graphml")).number_of_nodes() == 1


@pytest.mark.parametrize("wanted", ["", "csv", "x.gexf", "graph", 3, None, "\0.json", "x" * 5000])
def test_other_formats_are_refused(ana: User, wanted: Any) -> None:
    with pytest.raises(errors.InputError):
        ana.export_graph(wanted)


def test_a_file_that_cannot_be_written(ana: User, tmp_path: Path) -> None:
    with pytest.raises(errors.StorageFailedError):
        ana.export_graph(tmp_path / "nowhere" / "x.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(errors.StorageFailedError):
        ana.export_graph(tmp_path / "folder.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "folder.json"]
