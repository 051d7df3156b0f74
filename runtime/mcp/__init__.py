"""MCP: the tools of reverie.tools for clients of the Model Context Protocol.

`reverie mcp` starts it, over stdio or HTTP. Needs the extra "mcp". Nothing here is imported by
`import reverie`.

server.py answers the protocol, through the official SDK; stdio.py and http.py carry it. What a tool
does, who may call it, and how long its answer may be, is decided in reverie.tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reverie.memory_graph.errors import ConfigError

EXTRA = "MCP needs the extra 'mcp': pip install 'reverie[mcp]'"


@contextmanager
def needs_extra() -> Iterator[None]:
    """Turn a missing library into an error that names the extra.

    Raises:
        ConfigError: the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as exc:
        if str(exc.name).startswith("reverie"):
            raise
        raise ConfigError(EXTRA, missing=str(exc.name)).because(exc) from exc


__all__ = ["EXTRA", "needs_extra"]
