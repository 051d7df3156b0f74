"""The whole graph of a user, page by page: for graph queries and for exports.

The command is part of the union in commands.py; how a shard carries it out stands here too.
"""

from __future__ import annotations

from reverie.actors.bases import Read
from reverie.memory_graph.projection import GraphPage, page
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.visible import Moment


class Graph(Read, frozen=True, kw_only=True, tag="graph"):
    """Answer: `GraphPage` of up to `limit` nodes after the first `start`. When the graph is still
    of the version `known` (sequence, generation), only that is told."""

    start: int = 0
    limit: int = 2000
    archived: bool = False
    retired: bool = False
    known: tuple[int, int] | None = None


def graph_page(memory: UserMemory, command: Graph, generation: int) -> GraphPage:
    """Carry out `Graph`."""
    if command.known == (memory.seq, generation):
        return GraphPage(memory.seq, generation, is_known=True)
    moment = Moment(command.now, archived=command.archived, retired=command.retired)
    return page(memory, generation, command.user_id, moment, command.start, command.limit)
