"""What watches the server: is it alive, does it serve, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from reverie.http import answers as a, faults
from reverie.http.admission import JSON, refused
from reverie.http.faults import Refusal
from reverie.http.metrics import CONTENT_TYPE
from reverie.http.operation import require
from reverie.http.state import KEY, NOTE, State
from reverie.memory_graph.errors import ReverieError

if TYPE_CHECKING:
    from fastapi import FastAPI

PROBE_TIMEOUT_S = 10.0


def add_probes(app: FastAPI, state: State) -> None:
    """Add /health, /ready, /metrics and /openapi.json. Only the first two need no key."""

    def is_ready() -> None:
        runtime = state.runtime
        runtime.worlds()  # raises when it is closed
        runtime.mind.for_reading("default")  # raises when its model is not there

    async def health(request: Request) -> Response:
        request.scope[NOTE].operation = "health"
        return Response(msgspec.json.encode(a.Alive()), media_type=JSON)

    async def ready(request: Request) -> Response:
        request.scope[NOTE].operation = "ready"
        found = a.Ready(ready=True)
        if state.is_draining:
            found = a.Ready(ready=False, why="Draining")
        else:
            try:
                await state.quick.run(is_ready, PROBE_TIMEOUT_S)
            except ReverieError as exc:  # its message may name folders
                found = a.Ready(ready=False, why=type(exc).__name__)
        status = 200 if found.ready else 503
        return Response(msgspec.json.encode(found), status, media_type=JSON)

    async def metrics(request: Request) -> Response:
        request.scope[NOTE].operation = "metrics"
        try:
            require(request.scope[KEY], None, "read")
            text = await state.slow.run(state.metrics.text, state.settings.call_timeout_s)
        except Refusal as refusal:
            return refused(refusal.status, refusal.fault, refusal.headers)
        except ReverieError as exc:
            return refused(*faults.as_refusal(exc))
        return Response(text, media_type=CONTENT_TYPE)

    async def description(request: Request) -> Response:
        request.scope[NOTE].operation = "openapi"
        return Response(msgspec.json.encode(app.openapi()), media_type=JSON)

    for path, serve in (
        ("/health", health),
        ("/ready", ready),
        ("/metrics", metrics),
        ("/openapi.json", description),
    ):
        app.add_api_route(path, serve, methods=["GET"], response_model=None)
