"""MCP over streamable HTTP, at /mcp.

A request passes a guard first: the Host header must name this machine (or a name that was allowed),
against DNS rebinding; an Origin header, which browsers send, must be the server's own or one that
was allowed; and when the data folder has keys (`reverie keys`), one of them must be shown, whose
worlds hold the binding's, and whose role bounds what may be called. Requests of one key are
counted, and bodies are read, within the bounds of `HttpSettings`, which `reverie serve` keeps too.
Requests are independent of each other: there are no sessions that could outlive a key.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    MutableMapping,
    Sequence,
)
from contextlib import contextmanager
from typing import Any, TypeAlias

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect

from reverie.http.admission import Admission, headers_of, refused
from reverie.http.faults import Refusal
from reverie.http.heads import timed
from reverie.http.keys import Door, KeyFile
from reverie.http.limits import CLOSE, Held, check_depth, whole
from reverie.http.settings import HttpSettings, require_safe
from reverie.mcp import signals
from reverie.mcp.server import ROLE, McpServer
from reverie.tools import Tools

Scope: TypeAlias = MutableMapping[str, Any]  # these four are ASGI's
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH = "/mcp"
MAX_CONNECTIONS = 256


class Guard:
    """Lets a request in, within the bounds that HTTP keeps too, or answers it itself.

    Args:
        app: what serves requests that may pass.
        tools: the binding.
        admission: knows hosts, pages and keys, and how many requests each may make.
        settings: how large a body may be, and how long it may take.
    """

    def __init__(
        self, app: App, tools: Tools, admission: Admission, settings: HttpSettings
    ) -> None:
        self._app = app
        self._tools = tools
        self._admission = admission
        self._settings = settings
        self._held = Held(settings.max_held_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of ASGI."""
        if scope["type"] != "http":
            return
        try:
            body = await self._read(scope, receive)
        except Refusal as refusal:
            headers = {**refusal.headers, **CLOSE}
            response = refused(refusal.status, refusal.fault, headers)
            await response(scope, receive, send)
            return
        except ClientDisconnect:
            return  # nobody would read the answer
        is_given = False

        async def again() -> MutableMapping[str, Any]:
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            await self._app(scope, again, send)
        finally:
            self._held.drop(len(body))

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request that may pass, counted in `_held`.

        Raises:
            Refusal: it may not; or its body is too large, too deep, or not there in time.
            ClientDisconnect: it will never be there.
        """
        length = self._admit(scope)
        body = await whole(_parts(receive), length, self._settings, self._held)
        try:
            check_depth(body, self._settings.max_depth)
        except Refusal:
            self._held.drop(len(body))
            raise
        return body

    def _admit(self, scope: Scope) -> str | None:
        """Return the Content-Length of a request that may pass; raises Refusal for others."""
        headers = headers_of(scope)
        self._admission.check_page(headers)
        key = self._admission.key_of(headers)
        self._admission.count(key)
        if not key.reaches(self._tools.world):
            msg = "this key is not for the world that is served here"
            raise Refusal("Forbidden", msg)  # noqa: EM101 (a code)
        if scope["path"].rstrip("/") != PATH:
            msg = f"MCP is at {PATH}"
            raise Refusal("UnknownRoute", msg)  # noqa: EM101 (a code)
        scope[ROLE] = key.role
        length = headers.get(b"content-length")
        return None if length is None else length[0].decode("latin-1")


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the parts of a body; raises ClientDisconnect."""
    is_more = True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        is_more = message.get("more_body", False)


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
        self._mcp = McpServer(tools)
        self._manager = StreamableHTTPSessionManager(
            self._mcp.protocol,
            json_response=True,
            stateless=True,
            max_request_body_size=settings.max_body_bytes,
        )
        admission = Admission(door, settings, origins)
        self._guard = Guard(self._manager.handle_request, tools, admission, settings)
        config = uvicorn.Config(
            self._guard,
            host=settings.host,
            port=settings.port,
            http=timed(settings),
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
