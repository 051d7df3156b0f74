"""The table of tools: all that is said of one stands in its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_type_hints

import msgspec

from reverie.tools import arguments as a, graph_tools as g, memory_tools as m
from reverie.tools.budget import Answer
from reverie.tools.call import Call

Role: TypeAlias = Literal["read", "write", "admin"]
Family: TypeAlias = Literal["reverie", "server-memory", "openmemory"]

ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may what those before it may
FAMILIES: tuple[Family, ...] = ("reverie", "server-memory", "openmemory")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool.

    Attributes:
        name: as a model calls it.
        description: for the model.
        family: "reverie", or whose names it has.
        role: what a binding needs to call it.
        arguments: what it takes; see arguments.py.
        run: what it does.
        is_destructive: it takes something away.
        is_repeatable: called again with the same arguments, it changes nothing more.
        of_characters: it is for worlds of characters only.
    """

    name: str
    description: str
    family: Family = "reverie"
    role: Role
    arguments: type[a.Arguments]
    run: Callable[[Call, Any], Answer]
    is_destructive: bool = False
    is_repeatable: bool = False
    of_characters: bool = False


def _tool(
    run: Callable[[Call, Any], Answer], role: Role, description: str, **more: Any
) -> Callable[[Family], Tool]:
    """Return a row for a family: a tool has the name of what it does, which says what it takes."""

    def row(family: Family) -> Tool:
        _call, arguments, _answer = get_type_hints(run).values()
        fields: dict[str, Any] = {"is_repeatable": True} | more
        return Tool(
            name=run.__name__,
            description=description,
            family=family,
            role=role,
            arguments=arguments,
            run=run,
            **fields,
        )

    return row


_ROWS: dict[Family, tuple[Callable[[Family], Tool], ...]] = {
    "reverie": (
        _tool(
            m.search_memory,
            "read",
            "Search what is remembered, by meaning, words and names. Returns the best hits "
            "first: memories, messages and summaries, with dates.",
        ),
        _tool(
            m.add_memory,
            "write",
            "Remember a statement for later conversations. It is kept word for word, or with "
            "extract=true memories are extracted from it as from a turn of a conversation. What is "
            "known already is not kept twice.",
        ),
        _tool(
            m.get_conversation_summary,
            "read",
            "Summarise what was said lately, in a session, or of a topic.",
        ),
        _tool(
            m.update_memory,
            "write",
            "Correct a memory or change its attributes. A new text replaces the old one, "
            "which stays in the history.",
            is_repeatable=False,
        ),
        _tool(
            m.forget,
            "write",
            "Forget one memory: it answers no more, and stays in the history. With "
            "everything=true and confirm, erase all memories of the user for good (role admin).",
            is_destructive=True,
        ),
        _tool(
            m.related,
            "read",
            "Show what is around a person, place or thing: its relations, what it is seen "
            "with, and the newest texts that mention it.",
        ),
        _tool(
            m.list_memories,
            "read",
            "List what is remembered, oldest first, a page at a time, with the total.",
        ),
        _tool(
            m.relationships,
            "read",
            "Show how this character stands to others: trust, fear, debt and the like.",
            of_characters=True,
        ),
    ),
    "server-memory": (
        _tool(
            g.create_entities,
            "write",
            "Create entities in the knowledge graph, each with observations. Those whose "
            "name exists are passed over.",
        ),
        _tool(
            g.create_relations,
            "write",
            "Create relations between entities of the knowledge graph, in active voice.",
        ),
        _tool(
            g.add_observations,
            "write",
            "Add observations to entities of the knowledge graph.",
        ),
        _tool(
            g.delete_entities,
            "write",
            "Delete entities of the knowledge graph with their observations and relations.",
            is_destructive=True,
        ),
        _tool(
            g.delete_observations,
            "write",
            "Delete observations of entities of the knowledge graph.",
            is_destructive=True,
        ),
        _tool(
            g.delete_relations,
            "write",
            "Delete relations of the knowledge graph.",
            is_destructive=True,
        ),
        _tool(
            g.read_graph,
            "read",
            "Read the knowledge graph; what does not fit is counted.",
        ),
        _tool(
            g.search_nodes,
            "read",
            "Find entities of the knowledge graph that hold a text in their name, type or "
            "observations, with the relations around them.",
        ),
        _tool(
            g.open_nodes,
            "read",
            "Show entities of the knowledge graph by name, with the relations around them.",
        ),
    ),
    "openmemory": (
        _tool(
            m.add_memories,
            "write",
            "Remember what the user said about himself, his preferences or his life.",
        ),
        _tool(
            m.delete_memories,
            "write",
            "Forget memories by their ids; they stay in the history.",
            is_destructive=True,
        ),
        _tool(
            m.delete_all_memories,
            "admin",
            "Erase all memories of the user for good; confirm must be the id of the user.",
            is_destructive=True,
        ),
    ),
}
TABLE: dict[str, Tool] = {
    tool.name: tool for family, rows in _ROWS.items() for tool in (row(family) for row in rows)
}
