"""The process that serves: uvicorn around the application, and its orderly end.

SIGTERM and Ctrl-C drain: new requests get 503, also from /ready, what is under way is finished,
then the runtime is closed. All of it within `Config.drain_s`; what is not done by then is given up,
and the process ends. What was acknowledged is on disk anyway.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import structlog
import uvicorn

from reverie.http.app import build
from reverie.http.heads import timed
from reverie.http.keys import KeyFile
from reverie.http.settings import HttpSettings, require_safe
from reverie.memory_graph.errors import ConfigError

if TYPE_CHECKING:
    from reverie.runtime import Runtime

KEEP_ALIVE_S = 30
BACKLOG = 1024
MAX_CONNECTIONS = 4096  # beyond, uvicorn answers 503 by itself
DRAINING_SHARE = 0.6  # of the time to the end, for requests; the rest closes the runtime

log = structlog.get_logger(__name__)


class _Server(uvicorn.Server):
    """uvicorn, which drains before it stops to listen, and can say where it listens."""

    def __init__(
        self, config: uvicorn.Config, app: Any, drain_s: float, listening: Callable[[int], None]
    ) -> None:
        super().__init__(config)
        self._state = app.state.reverie
        self._drain_s = drain_s
        self._listening = listening
        self._draining: asyncio.Task[None] | None = None
        self.signal: int | None = None
        self.ends_at = 0.0

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen, and tell the port."""
        await super().startup(sockets)
        if self.started:
            self._listening(self.servers[0].sockets[0].getsockname()[1])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 (uvicorn's)
        """Begin to drain; another signal changes nothing, but a second Ctrl-C ends it at once."""
        if self.signal is not None:
            if sig == signal.SIGINT:
                os._exit(128 + sig)
            return
        self.signal = sig
        self.ends_at = time.monotonic() + self._drain_s
        self._state.drain()
        # Whatever hangs, the process ends in time; a timer of the loop could hang with it.
        deadline = threading.Timer(self._drain_s, os._exit, (128 + sig,))
        deadline.daemon = True
        deadline.start()

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; returns whether to stop to listen."""
        if self.signal is not None and self._draining is None:
            log.warning("closing: what is under way is finished first", within_s=self._drain_s)
            self._draining = asyncio.create_task(self._drain())
        return await super().on_tick(counter)

    async def _drain(self) -> None:
        within_s = DRAINING_SHARE * self._drain_s
        if not await self._state.drained(within_s):
            log.error("given up: not finished in time", requests=self._state.in_flight)
        self.should_exit = True


def _sockets(settings: HttpSettings) -> list[socket.socket]:
    """Return bound sockets for all that the host stands for; raises ConfigError."""
    made: list[socket.socket] = []
    port = settings.port
    try:
        found = socket.getaddrinfo(
            settings.host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, proto, _, address in dict.fromkeys(found):
            sock = socket.socket(family, kind, proto)
            made.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((address[0], port, *address[2:]))
            port = sock.getsockname()[1]  # of the first, where any would do
    except OSError as exc:
        for sock in made:
            sock.close()
        msg = f"cannot listen on {settings.host} port {port}: {exc.strerror or exc}"
        raise ConfigError(msg, setting="port").because(exc) from exc
    return made


def serve(
    runtime: Runtime,
    settings: HttpSettings,
    *,
    listening: Callable[[int], None] = lambda _: None,
) -> int:
    """Serve until SIGTERM or Ctrl-C, close the runtime, and return the exit status.

    Args:
        runtime: open; it is closed here.
        settings: where to listen, and the limits.
        listening: called with the port once requests are taken.

    Raises:
        ConfigError: others could reach it and it has no keys; the file of keys is unusable; or the
            address is taken, or not of this machine; or backups cannot go where the settings say.
            The runtime is closed.
    """
    try:
        require_safe(settings, has_keys=KeyFile(runtime.path).exists)
        app = build(runtime, settings)
        sockets = _sockets(settings)
    except BaseException:
        runtime.close()
        raise
    config = uvicorn.Config(
        app,
        http=timed(settings),
        ws="none",
        loop="uvloop",
        access_log=False,
        log_config=None,
        proxy_headers=False,  # nobody is believed about whom he speaks for
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config, app, runtime.config.drain_s, listening)
    try:
        server.run(sockets=sockets)
    finally:
        left_s = max(0.1, server.ends_at - time.monotonic()) if server.signal else None
        runtime.close(within_s=None if left_s is None else left_s / 2)
    return 0 if server.signal is None else 128 + server.signal
