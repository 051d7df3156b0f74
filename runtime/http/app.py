"""The application: from a request to a call of the runtime, and back."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

import msgspec
import structlog
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from reverie.http import faults, openapi
from reverie.http.admission import JSON, refused
from reverie.http.bodies import Body
from reverie.http.faults import Fault, Refusal
from reverie.http.gate import Gate
from reverie.http.keys import Key
from reverie.http.limits import check_depth, whole
from reverie.http.operation import MEDIA, Call, Operation, require
from reverie.http.paths import segment
from reverie.http.probes import add_probes
from reverie.http.routes_memories import waits
from reverie.http.settings import require_backups
from reverie.http.state import KEY, NOTE, State
from reverie.http.tables import OPERATIONS
from reverie.memory_graph.errors import InvalidValueError, ReverieError
from reverie.memory_graph.ids import check_id

if TYPE_CHECKING:
    from reverie.http.settings import HttpSettings
    from reverie.runtime import Runtime

MAX_PARAMETERS = 64  # of a query
MAX_HEADER_ID = 512
IDEMPOTENCY = "idempotency-key"

log = structlog.get_logger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


def build(runtime: Runtime, settings: HttpSettings) -> FastAPI:
    """Return the application; see `reverie.http.create_app`."""
    require_backups(settings, runtime.path)
    state = State(runtime, settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        state.close()

    # The pages that show the description load scripts from elsewhere; /openapi.json does not.
    app = FastAPI(
        title="reverie", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan
    )
    app.router.redirect_slashes = False  # an empty id is no reason to look elsewhere
    app.state.reverie = state
    app.add_middleware(Gate, state=state)
    app.add_exception_handler(HTTPException, _unrouted)
    add_probes(app, state)
    for operation in OPERATIONS:
        app.add_api_route(
            operation.path,
            _endpoint(state, operation),
            methods=[operation.method],
            name=operation.name,
            response_model=None,
        )
    description = openapi.describe(OPERATIONS, needs_keys=state.admission.door.needs_keys)
    app.openapi = lambda: description  # type: ignore[method-assign]  # FastAPI's way to say it
    return app


async def _unrouted(request: Request, error: Exception) -> Response:
    """Answer what no route takes."""
    is_method = getattr(error, "status_code", 404) == faults.REFUSALS["MethodNotAllowed"]
    code = "MethodNotAllowed" if is_method else "UnknownRoute"
    message = "the route has other methods" if is_method else "there is no such route"
    request.scope[NOTE].code = code
    headers = dict(getattr(error, "headers", None) or {})
    return refused(faults.REFUSALS[code], Fault(code, message), headers)


def _endpoint(state: State, op: Operation) -> Endpoint:
    """Return the function that serves an operation; nothing that it raises gets past it."""
    served = _Served(state, op)

    async def endpoint(request: Request) -> Response:
        note = request.scope[NOTE]
        note.operation = op.name
        try:
            return await served.answer(request)
        except Refusal as refusal:
            note.code = refusal.fault.error
            return refused(refusal.status, refusal.fault, refusal.headers)
        except ReverieError as exc:
            status, fault, headers = faults.as_refusal(exc)
            note.code = fault.error
            if status >= 500:  # noqa: PLR2004 (not the caller's fault)
                log.error("a call failed", operation=op.name, error=fault.error)
            return refused(status, fault, headers)
        except ClientDisconnect:
            note.code = "Disconnected"
            return Response(status_code=499)  # nobody reads it
        except Exception as exc:  # noqa: BLE001 (each request has an answer)
            # Where it happened, but not what it said: that may be somebody's text.
            where = traceback.format_list(traceback.extract_tb(exc.__traceback__)[-8:])
            log.error("a fault", operation=op.name, kind=type(exc).__name__, where="".join(where))
            note.code = "InternalError"
            fault = Fault("InternalError", "a fault of reverie; its log says where")
            return refused(500, fault)

    return endpoint


class _Served:
    """An operation that is served."""

    def __init__(self, state: State, op: Operation) -> None:
        self._state = state
        self._op = op
        self._decoder = msgspec.json.Decoder(op.body) if op.takes == "json" else None
        self._query = Body if op.query is None else op.query
        self._lists = _lists(self._query)

    async def answer(self, request: Request) -> Response:
        """Answer a request; raises Refusal, ReverieError, or anything that is a fault."""
        op, state = self._op, self._state
        state.require_open()
        key: Key = request.scope[KEY]
        ids = {name: segment(request.path_params[name]) for name in op.ids}
        if op.is_of_folder or "world" in ids:
            require(key, None if op.is_of_folder else ids["world"], op.role)
        elif not key.may(op.role):
            msg = f"this needs the role {op.role!r}"
            raise Refusal("Forbidden", msg, needs=op.role)
        query = _query(request.scope["query_string"], self._query, self._lists)
        call = Call(state.runtime, key, ids, query=query, request_id=_request_id(request, op))
        _check_media(request, op)
        if op.raw is not None:
            return await op.raw(state, request, call)
        held = 0
        try:
            if self._decoder is not None:
                length = request.headers.get("content-length")
                data = await whole(request.stream(), length, state.settings, state.held)
                held = request.scope[NOTE].received = len(data)
                body = _decoded(self._decoder, data, state.settings.max_depth)
                call = call._replace(body=body)
            answer = await self._run(call)
        finally:
            state.held.drop(held)
        return Response(answer, media_type=JSON)

    async def _run(self, call: Call) -> bytes:
        settings = self._state.settings
        run = cast("Callable[[Call], Any]", self._op.run)
        is_slow = self._op.is_slow or waits(call)
        pool = self._state.slow if is_slow else self._state.quick
        timeout_s = settings.slow_timeout_s if is_slow else settings.call_timeout_s
        # Encoded in the thread, too: a page may be large.
        return await pool.run(lambda: msgspec.json.encode(run(call)), timeout_s)


def _lists(query_type: type) -> frozenset[str]:
    """Return the names of the parameters that may be given several times."""
    schema: dict[str, Any] = msgspec.json.schema(query_type)
    ((_, found),) = ((k, v) for k, v in schema["$defs"].items() if k == query_type.__name__)
    return frozenset(
        name
        for name, field in found.get("properties", {}).items()
        if field.get("type") == "array"
        or any(o.get("type") == "array" for o in field.get("anyOf", ()))
    )


def _query(raw: bytes, kind: type[Any], lists: frozenset[str]) -> Any:
    """Return the query; raises Refusal or InvalidValueError."""
    try:
        pairs = parse_qsl(
            raw.decode("latin-1"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError:
        msg = f"the query is no UTF-8, or has over {MAX_PARAMETERS} parameters"
        raise Refusal("MalformedRequest", msg) from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            found.setdefault(name, []).append(value)
        elif name in found:
            msg = "a parameter of the query is given twice"
            raise InvalidValueError(msg, what=name[:100])
        else:
            found[name] = value
    try:
        return msgspec.convert(found, kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as exc:
        msg = f"the query: {exc}"
        raise InvalidValueError(msg[:500]) from None


def _request_id(request: Request, op: Operation) -> str | None:
    """Return the request id of the header; raises InvalidValueError or InvalidIdError."""
    given = request.headers.getlist(IDEMPOTENCY)
    if not given:
        return None
    if not op.has_request_id or len(given) > 1:
        msg = (
            "Idempotency-Key is given twice"
            if op.has_request_id
            else ("this operation takes no Idempotency-Key")
        )
        raise InvalidValueError(msg, what="Idempotency-Key")
    try:
        text = given[0].encode("latin-1").decode()
    except UnicodeDecodeError:
        msg = "Idempotency-Key is no UTF-8"
        raise InvalidValueError(msg, what="Idempotency-Key") from None
    return check_id(text, "Idempotency-Key")


def _check_media(request: Request, op: Operation) -> None:
    """Refuse a body that is not of the type that is read; raises Refusal."""
    headers = request.headers
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if op.takes == "nothing":
        if has_body:
            msg = "this operation takes no body"
            raise Refusal("MalformedRequest", msg, headers={"Connection": "close"})
        return
    if "content-encoding" in headers:
        msg = "encoded bodies are not read"
        raise Refusal("UnsupportedMediaType", msg, headers={"Connection": "close"})
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    # A web page may send a form or plain text anywhere without asking; JSON it may not.
    if media != MEDIA[op.takes] and (has_body or media or op.takes != "json"):
        msg = f"send it as Content-Type: {MEDIA[op.takes]}"
        raise Refusal("UnsupportedMediaType", msg, headers={"Connection": "close"})


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes, most: int) -> Any:
    """Return a body; raises Refusal (it is no JSON) or InvalidValueError (not what is asked)."""
    check_depth(data, most)
    try:
        return decoder.decode(data or b"{}")
    except msgspec.ValidationError as exc:
        raise InvalidValueError(f"the body: {exc}"[:500]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as exc:
        msg = f"the body is no JSON: {exc}"
        raise Refusal("MalformedRequest", msg[:500]) from None
