"""Server-sent events: how one is written, and an answer that is a stream of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
import structlog
from starlette.responses import StreamingResponse

from reverie.http import faults
from reverie.http.faults import Fault, Refusal
from reverie.memory_graph.errors import ReverieError

if TYPE_CHECKING:
    from starlette.responses import Response

EVENTS = "text/event-stream"

log = structlog.get_logger(__name__)


def event(name: str, data: object, number: int | None = None) -> bytes:
    """Return a server-sent event; JSON has no line breaks of its own."""
    numbered = b"" if number is None else f"id: {number}\n".encode()
    told = msgspec.json.encode(data)
    return b"event: " + name.encode() + b"\n" + numbered + b"data: " + told + b"\n\n"


def answer(events: AsyncIterator[bytes]) -> Response:
    """Return the answer that passes events on as they come."""
    return StreamingResponse(events, media_type=EVENTS)


async def ending(operation: str, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Yield events; whatever ends them early is told as the event `error`. Never raises."""
    try:
        async with aclosing(events):
            async for one in events:
                yield one
    except Refusal as refusal:
        yield event("error", refusal.fault)
    except ReverieError as exc:
        yield event("error", faults.as_refusal(exc)[1])
    except Exception as exc:  # noqa: BLE001 (the stream has an end that says so)
        log.error("a fault", operation=operation, kind=type(exc).__name__)
        yield event("error", Fault("InternalError", "a fault of reverie"))
