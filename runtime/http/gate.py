"""What every request passes before its route: which host was meant, who asks, how often.

It is pure ASGI: the body is not touched here, and an answer is passed on as it comes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from reverie.http.admission import headers_of, refused
from reverie.http.faults import RETRY_AFTER_S, Refusal
from reverie.http.metrics import Note
from reverie.http.paths import routable
from reverie.http.state import KEY, NOTE, State

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PROBES = ("/health", "/ready")  # say nothing that needs a key
_ADDED = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


class Gate:
    """The first of all; see the module's text."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        note = scope[NOTE] = Note()
        state, began = self._state, time.perf_counter()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                note.status = message["status"]
                message["headers"] = [*message["headers"], *_ADDED]
            else:
                note.sent += len(message.get("body", b""))
            await send(message)

        state.in_flight += 1
        state.metrics.in_flight.inc()
        try:
            try:
                self._admit(scope, note)
            except Refusal as refusal:
                note.code = refusal.fault.error
                response = refused(refusal.status, refusal.fault, refusal.headers)
                await response(scope, receive, answer)
            else:
                await self._app(scope, receive, answer)
        finally:
            state.in_flight -= 1
            state.metrics.in_flight.dec()
            state.metrics.note(note, _known(scope["method"]), time.perf_counter() - began)

    def _admit(self, scope: Scope, note: Note) -> None:
        """Let a request in, or refuse it; its path is made fit for the router.

        Raises:
            Refusal: who it is from may not.
        """
        admission, headers = self._state.admission, headers_of(scope)
        admission.check_page(headers)
        raw: bytes | None = scope.get("raw_path")
        if raw is None:  # a server that gives none cannot tell a slash of an id from others
            raw = quote(scope["path"], safe="/").encode()
        path = scope["path"] = routable(raw.partition(b"?")[0])
        if path in PROBES:
            return
        state = self._state
        key = scope[KEY] = admission.key_of(headers)
        note.key = key.id
        admission.count(key)
        if state.in_flight > state.settings.max_calls:
            msg = f"over {state.settings.max_calls:,} requests are under way; try again later"
            raise Refusal("TooManyRequests", msg, headers={"Retry-After": str(RETRY_AFTER_S)})


def _known(method: str) -> str:
    """Return a method, or "other": logs are no place for what a stranger made up."""
    return method if method in {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"} else "other"
