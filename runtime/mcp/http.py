"""MCP over streamable HTTP, at /mcp.

A request passes a guard first: the Host header must name this machine (or a name that was allowed),
against DNS rebinding; an Origin header, which browsers send, must be the server's own or one that
was allowed; and when the data folder has keys (`reverie keys`), one of them must be shown, whose
worlds hold the binding's, and whose role bounds what may be called. Requests are independent of
each other: there are no sessions that could outlive a key.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from reverie.http.keys import Door, KeyFile
from reverie.http.settings import LOOPBACK_NAMES, HttpSettings, require_safe
from reverie.mcp import signals
from reverie.mcp.server import ROLE, McpServer
from reverie.tools import Tools

Scope: TypeAlias = MutableMapping[str, Any]  # these four are ASGI's
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
MAX_BODY_BYTES = 4 * 1024**2
MAX_CONNECTIONS = 256


class Guard:
    """Lets a request in, or answers it itself.

    Args:
        app: what serves requests that may pass.
        tools: the binding.
        door: knows keys.
        hosts: names that the Host header may hold, without port; empty: any.
        origins: values that the Origin header may hold beside the server's own.
    """

    def __init__(
        self, app: App, tools: Tools, door: Door, hosts: Sequence[str], origins: Sequence[str]
    ) -> None:
        self._app = app
        self._tools = tools
        self._door = door
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of ASGI."""
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is None:
            await self._app(scope, receive, send)
            return
        status, code, message = refused
        body = json.dumps({"error": code, "message": message, "details": {}}).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        if status == 401:  # noqa: PLR2004 (a status of HTTP)
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return why a request may not pass; None when it may."""
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts = [host.lower() for host in headers.get(b"host", [])]
        if len(hosts) != 1 or (self._hosts and _name(hosts[0]) not in self._hosts):
            return 421, "MisdirectedHost", "this server does not go by that name"
        own = {f"http://{hosts[0]}", f"https://{hosts[0]}"}
        if any(o.lower() not in own | self._origins for o in headers.get(b"origin", [])):
            return 403, "ForeignOrigin", "requests of web pages of other sites are refused"
        given = headers.get(b"authorization", [])
        key = self._door.who(given[0] if len(given) == 1 else None)
        if key is None:
            return 401, "Unauthenticated", "this server needs a key: Authorization: Bearer rv_..."
        if not key.reaches(self._tools.world):
            return 403, "Forbidden", "this key is not for the world that is served here"
        if scope["path"].rstrip("/") != PATH:
            return 404, "UnknownRoute", f"MCP is at {PATH}"
        scope[ROLE] = key.role
        return None


def _name(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


class Server:
    """An HTTP server for one binding.

    Args:
        tools: the binding.
        settings: where it listens, and the names that it goes by.
        origins: of web pages that may call it.

    Raises:
        ConfigError: it would listen where others reach it, and there are no keys; or the file of
            keys is damaged or open to others.
    """

    def __init__(self, tools: Tools, settings: HttpSettings, origins: Sequence[str] = ()) -> None:
        door = Door(KeyFile(tools.runtime.path))
        require_safe(settings, has_keys=door.needs_keys)
        hosts = list(settings.allowed_hosts)
        if settings.is_loopback:
            hosts += [*LOOPBACK_NAMES, settings.host, f"[{settings.host}]"]
        self._mcp = McpServer(tools)
        self._manager = StreamableHTTPSessionManager(
            self._mcp.protocol,
            json_response=True,
            stateless=True,
            max_request_body_size=MAX_BODY_BYTES,
        )
        self._guard = Guard(self._manager.handle_request, tools, door, hosts, origins)
        config = uvicorn.Config(
            self._guard,
            host=settings.host,
            port=settings.port,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=max(1, int(tools.runtime.config.drain_s / 2)),
        )
        self._server = _Announcing(config)

    async def serve(self, *, drain_s: float) -> bool:
        """Serve until SIGTERM or Ctrl-C; calls under way are finished first.

        Args:
            drain_s: after SIGTERM, the process is ended when it is still there then; the caller
                closes the runtime and exits.

        Returns:
            Whether it was SIGTERM.
        """
        with signals.until_sigterm(drain_s, self._stop) as came:
            async with self._manager.run():
                await self._server.serve()
        return came.is_set()

    def _stop(self) -> None:
        self._server.should_exit = True


class _Announcing(uvicorn.Server):
    """Says where it listens, also when the port was for the system to choose."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `Server.serve`."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell so on standard error."""
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                sys.stderr.write(f"MCP is at http://{shown}:{port}{PATH}\n")
                sys.stderr.flush()
