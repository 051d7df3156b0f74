"""HTTP: every public operation of the runtime as REST, with keys, limits and metrics.

`reverie serve` starts it; `create_app(runtime, settings)` gives the ASGI application to others.
Needs the extra "http". Nothing here is imported by `import reverie`.

A request goes through gate.py (which host was meant, who asks, how often), then app.py (may this
key do that, the body within its limits), then one function of a table in `routes_*.py`, which calls
the public API in a thread. openapi.py describes that same table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reverie.memory_graph.errors import ConfigError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from reverie.http.settings import HttpSettings
    from reverie.runtime import Runtime

EXTRA = "HTTP needs the extra 'http': pip install 'reverie[http]'"


def create_app(runtime: Runtime, settings: HttpSettings | None = None) -> FastAPI:
    """Return the ASGI application over an open runtime; who opened the runtime closes it.

    Args:
        runtime: open.
        settings: limits and addresses; see settings.py.

    Raises:
        ConfigError: the extra is not installed; the file of keys is damaged or open to others; or
            backups cannot go where the settings say.
    """
    try:
        from reverie.http.app import build
        from reverie.http.settings import HttpSettings as Settings
    except ModuleNotFoundError as exc:
        raise ConfigError(EXTRA, missing=str(exc.name)).because(exc) from exc
    return build(runtime, Settings() if settings is None else settings)


__all__ = ["create_app"]
