"""A user's whole graph, read page by page: for graph queries, and to take it elsewhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from reverie import door
from reverie.actors import commands as c
from reverie.memory_graph.errors import (
    InvalidValueError,
    OverloadedError,
    QueryLimitError,
    StorageFailedError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.projection import GraphPage

if TYPE_CHECKING:
    from reverie.cypher.engines import Engines
    from reverie.user import User

PAGE_NODES = 2_000
MAX_NODES = 200_000
MAX_EDGES = 1_000_000
TRIES = 4  # to read a graph that is written to at the same time

FORMATS = ("graphml", "json")


class Graphs:
    """What a runtime keeps for graph queries; starts nothing before the first."""

    @cached_property
    def engines(self) -> Engines:
        """The processes that answer them."""
        from reverie.cypher.engines import Engines

        return Engines()

    def forget(self, key: Key) -> None:
        """End what holds the graph of a user."""
        if "engines" in self.__dict__:
            self.engines.drop(key)

    def close(self) -> None:
        """End all processes."""
        if "engines" in self.__dict__:
            self.engines.close()


def pages(
    user: User,
    *,
    archived: bool = False,
    retired: bool = False,
    known: tuple[int, int] | None = None,
    now: float | None = None,
) -> Iterator[GraphPage]:
    """Iterate over the pages of a user's graph, all of one version.

    Args:
        user: whose.
        archived: with archived memories.
        retired: with what is no longer believed.
        known: a version (sequence, generation) that needs no telling.
        now: time of the reader in seconds.

    Raises:
        QueryLimitError: it has more than 200,000 nodes or 1,000,000 edges.
        OverloadedError: it is written to more often than it can be read.
    """
    shared = user._read(now)  # noqa: SLF001 (of our own package)

    def read(start: int, known: tuple[int, int] | None = None) -> GraphPage:
        page: GraphPage = user._rt.call(  # noqa: SLF001
            c.Graph(
                **shared,
                start=start,
                limit=PAGE_NODES,
                archived=archived,
                retired=retired,
                known=known,
            )
        )
        return page

    first = read(0, known)
    if first.next is None:  # nearly all are so small
        yield first
        return
    for _ in range(TRIES):
        found = [first]
        count = len(first.edges)
        while (start := found[-1].next) is not None:
            page = read(start)
            if (page.seq, page.generation) != (first.seq, first.generation):
                break
            found.append(page)
            count += len(page.edges)
            if start > MAX_NODES or count > MAX_EDGES:
                msg = f"a graph of over {MAX_NODES:,} nodes or {MAX_EDGES:,} edges is too large"
                raise QueryLimitError(msg)
        else:
            yield from found
            return
        first = read(0)
    msg = "the graph is written to while it is read; try again later"
    raise OverloadedError(msg)


def export_graph(
    self: User,
    path_or_format: str | Path,
    *,
    include_archived: bool = False,
    include_retired: bool = False,
) -> str:
    """Return this user's graph as GraphML or as node-link JSON, for Gephi, yEd and NetworkX.

    Nodes and edges have the fields of docs/queries.md, without vectors. Lists are JSON texts in
    GraphML, which has none; what is not known is left out there.

    Args:
        self: the user.
        path_or_format: "graphml" or "json"; or the path of a file to write, that ends so. A file
            that is there already is replaced as a whole.
        include_archived: as in `query`.
        include_retired: as in `query`.

    Raises:
        InvalidValueError: no such format.
        QueryLimitError: the graph is too large.
        StorageFailedError: the file cannot be written; one that was there is as it was.
    """
    given: object = path_or_format
    name = os.fspath(given) if isinstance(given, str | Path) else given
    path = None if name in FORMATS else Path(door.text(name, 4096))
    kind = str(name) if path is None else path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        msg = f"a graph is exported as {' or '.join(FORMATS)}, not as {kind!r:.100}"
        raise InvalidValueError(msg, what="path_or_format")
    from reverie.memory_graph import analytics_export as export

    found = pages(
        self,
        archived=door.flag(include_archived, "include_archived"),
        retired=door.flag(include_retired, "include_retired"),
    )
    graph = export.as_networkx(found)
    text = export.graphml(graph) if kind == "graphml" else export.node_link(graph)
    if path is not None:
        _write(path, text)
    return text


def _write(path: Path, text: str) -> None:
    unfinished: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, delete=False
        ) as file:
            unfinished = Path(file.name)
            file.write(text)
        unfinished.replace(path)
    except OSError as exc:
        msg = f"{path} cannot be written: {exc.strerror or exc}"
        raise StorageFailedError(msg) from exc
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
