"""The table of tools: all that is said of one stands in its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

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


_ROWS: tuple[Tool, ...] = (
    Tool(
        name="search_memory",
        description="Search what is remembered, by meaning, words and names. Returns the best hits "
        "first: memories, messages and summaries, with dates.",
        role="read",
        arguments=a.SearchMemory,
        run=m.search_memory,
        is_repeatable=True,
    ),
    Tool(
        name="add_memory",
        description="Remember a statement for later conversations. It is kept word for word, or "
        "with extract=true memories are extracted from it as from a turn of a conversation. What "
        "is known already is not kept twice.",
        role="write",
        arguments=a.AddMemory,
        run=m.add_memory,
        is_repeatable=True,
    ),
    Tool(
        name="get_conversation_summary",
        description="Summarise what was said lately, in a session, or of a topic.",
        role="read",
        arguments=a.ConversationSummary,
        run=m.get_conversation_summary,
        is_repeatable=True,
    ),
    Tool(
        name="update_memory",
        description="Correct a memory or change its attributes. A new text replaces the old one, "
        "which stays in the history.",
        role="write",
        arguments=a.UpdateMemory,
        run=m.update_memory,
    ),
    Tool(
        name="forget",
        description="Forget one memory: it answers no more, and stays in the history. With "
        "everything=true and confirm, erase all memories of the user for good (role admin).",
        role="write",
        arguments=a.Forget,
        run=m.forget,
        is_destructive=True,
        is_repeatable=True,
    ),
    Tool(
        name="related",
        description="Show what is around a person, place or thing: its relations, what it is seen "
        "with, and the newest texts that mention it.",
        role="read",
        arguments=a.Related,
        run=m.related,
        is_repeatable=True,
    ),
    Tool(
        name="list_memories",
        description="List what is remembered, oldest first, a page at a time, with the total.",
        role="read",
        arguments=a.ListMemories,
        run=m.list_memories,
        is_repeatable=True,
    ),
    Tool(
        name="relationships",
        description="Show how this character stands to others: trust, fear, debt and the like.",
        role="read",
        arguments=a.ListRelationships,
        run=m.list_relationships,
        is_repeatable=True,
        of_characters=True,
    ),
    Tool(
        name="create_entities",
        description="Create entities in the knowledge graph, each with observations. Those whose "
        "name exists are passed over.",
        family="server-memory",
        role="write",
        arguments=a.CreateEntities,
        run=g.create_entities,
        is_repeatable=True,
    ),
    Tool(
        name="create_relations",
        description="Create relations between entities of the knowledge graph, in active voice.",
        family="server-memory",
        role="write",
        arguments=a.CreateRelations,
        run=g.create_relations,
        is_repeatable=True,
    ),
    Tool(
        name="add_observations",
        description="Add observations to entities of the knowledge graph.",
        family="server-memory",
        role="write",
        arguments=a.AddObservations,
        run=g.add_observations,
        is_repeatable=True,
    ),
    Tool(
        name="delete_entities",
        description="Delete entities of the knowledge graph with their observations and relations.",
        family="server-memory",
        role="write",
        arguments=a.DeleteEntities,
        run=g.delete_entities,
        is_destructive=True,
        is_repeatable=True,
    ),
    Tool(
        name="delete_observations",
        description="Delete observations of entities of the knowledge graph.",
        family="server-memory",
        role="write",
        arguments=a.DeleteObservations,
        run=g.delete_observations,
        is_destructive=True,
        is_repeatable=True,
    ),
    Tool(
        name="delete_relations",
        description="Delete relations of the knowledge graph.",
        family="server-memory",
        role="write",
        arguments=a.CreateRelations,
        run=g.delete_relations,
        is_destructive=True,
        is_repeatable=True,
    ),
    Tool(
        name="read_graph",
        description="Read the knowledge graph; what does not fit is counted.",
        family="server-memory",
        role="read",
        arguments=a.ReadGraph,
        run=g.read_graph,
        is_repeatable=True,
    ),
    Tool(
        name="search_nodes",
        description="Find entities of the knowledge graph that hold a text in their name, type or "
        "observations, with the relations around them.",
        family="server-memory",
        role="read",
        arguments=a.SearchNodes,
        run=g.search_nodes,
        is_repeatable=True,
    ),
    Tool(
        name="open_nodes",
        description="Show entities of the knowledge graph by name, with the relations around them.",
        family="server-memory",
        role="read",
        arguments=a.OpenNodes,
        run=g.open_nodes,
        is_repeatable=True,
    ),
    Tool(
        name="add_memories",
        description="Remember what the user said about himself, his preferences or his life.",
        family="openmemory",
        role="write",
        arguments=a.AddMemories,
        run=m.add_memories,
        is_repeatable=True,
    ),
    Tool(
        name="delete_memories",
        description="Forget memories by their ids; they stay in the history.",
        family="openmemory",
        role="write",
        arguments=a.DeleteMemories,
        run=m.delete_memories,
        is_destructive=True,
        is_repeatable=True,
    ),
    Tool(
        name="delete_all_memories",
        description="Erase all memories of the user for good; confirm must be the id of the user.",
        family="openmemory",
        role="admin",
        arguments=a.DeleteAllMemories,
        run=m.forget_everything,
        is_destructive=True,
        is_repeatable=True,
    ),
)
TABLE: dict[str, Tool] = {tool.name: tool for tool in _ROWS}
