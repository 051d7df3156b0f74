"""A graph in the forms that other programs read: GraphML, and the node-link JSON of NetworkX."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx

from reverie.memory_graph.projection import EDGES, NODES, TEXTS, EdgeRow, GraphPage

if TYPE_CHECKING:
    Plain: TypeAlias = "nx.MultiDiGraph[str]"

# XML 1.0 has no way to write these.
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_networkx(pages: Iterable[GraphPage]) -> Plain:
    """Return a graph of networkx whose attributes are plain values, `label` (of a node) and `kind`
    (of an edge) among them. What is not known is left out."""
    graph: Plain = nx.MultiDiGraph()
    later: list[EdgeRow] = []
    for page in pages:
        for label, values in page.nodes:
            known = _known(NODES[label], values)
            graph.add_node(values[0], label=label, **{k: v for k, v in known.items() if k != "id"})
        later += page.edges
    for kind, tail, head, values in later:
        known = _known(EDGES[kind], values)
        key = known.get("id") or ":".join([kind, *filter(None, [known.get("dimension")])])
        graph.add_edge(tail, head, key, kind=kind, **{k: v for k, v in known.items() if k != "id"})
    return graph


def _known(fields: dict[str, str], values: list[Any]) -> dict[str, Any]:
    """Return the fields of a row that have a value, each of the type that the schema says."""
    found = {}
    for (name, kind), value in zip(fields.items(), values, strict=True):
        if value is None or (kind == TEXTS and not value):
            continue
        found[name] = float(value) if kind == "DOUBLE" else value
    return found


def node_link(graph: Plain) -> str:
    """Return node-link JSON, as `networkx.node_link_graph(data, edges="edges")` reads it."""
    return json.dumps(nx.node_link_data(graph, edges="edges"), ensure_ascii=False) + "\n"


def graphml(graph: Plain) -> str:
    """Return GraphML, as `networkx.parse_graphml` reads it: with typed attributes, lists as JSON
    texts, and U+FFFD for characters that XML cannot hold."""
    plain: Plain = nx.MultiDiGraph()
    plain.add_nodes_from((node, _xml(data)) for node, data in graph.nodes(data=True))
    for tail, head, key, data in graph.edges(keys=True, data=True):
        plain.add_edge(tail, head, _NOT_XML.sub("\ufffd", key), **_xml(data))
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + "\n".join(nx.generate_graphml(plain, named_key_ids=True)) + "\n"


def _xml(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in data.items():
        said = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
        found[name] = _NOT_XML.sub("\ufffd", said) if isinstance(said, str) else said
    return found
