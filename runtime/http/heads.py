"""Connections must send the head of a request in time: else a few hundred that send nothing would
keep everybody else out. `reverie serve` and `reverie mcp --http` listen with it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reverie.http.settings import HttpSettings


class TimedHeads(HttpToolsProtocol):
    """Ends connections that do not send a whole head in time: they would be held for nothing."""

    head_timeout_s = HttpSettings().head_timeout_s
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of another head."""
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is there."""
        self._done()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._done()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._done()
        self._timer = asyncio.get_running_loop().call_later(self.head_timeout_s, self._give_up)

    def _done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


def timed(settings: HttpSettings) -> type[TimedHeads]:
    """Return the protocol for uvicorn that waits for heads as long as the settings say."""
    return type("TimedHeads", (TimedHeads,), {"head_timeout_s": settings.head_timeout_s})
