"""Tools for language models over reverie: schemas for chat APIs, and a dispatcher.

    from reverie.tools import Tools

    tools = Tools(rt, world="default", user="ana")
    answer = client.chat(messages, tools=tools.schemas())
    for wanted in answer.tool_calls:
        result = tools.call(wanted.function.name, wanted.function.arguments)

`table.py` is the one table of all tools; the MCP server (`reverie mcp`) offers the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from reverie.tools.dispatch import ANSWER_TOKENS, Tools, chosen, described
from reverie.tools.table import FAMILIES, ROLES, TABLE, Family, Role, Tool


def schemas(
    allowed: Collection[str] | None = None, *, role: Role = "write", strict: bool = True
) -> list[dict[str, Any]]:
    """Return tools as chat APIs of the OpenAI kind take them, without a runtime.

    Args:
        allowed: their names; None: all of reverie's own but `relationships`.
        role: only those that it may call.
        strict: as the strict mode wants them (all properties required, null for what is left out).

    Raises:
        ConfigError: an unknown tool or role.
    """
    found = chosen(allowed=allowed, role=role, characters=allowed is not None)
    return [described(tool, strict=strict) for tool in found]


__all__ = [
    "ANSWER_TOKENS",
    "FAMILIES",
    "ROLES",
    "TABLE",
    "Family",
    "Role",
    "Tool",
    "Tools",
    "schemas",
]
