"""The description of the operations, in OpenAPI 3.1, made of the same table that serves them.

FastAPI would make one of Pydantic models; here requests and answers are msgspec structs, which are
several times as fast and are what the runtime gives anyway, so it is made of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reverie.http import answers as a
from reverie.http.admission import JSON
from reverie.http.bodies import Body
from reverie.http.faults import Fault, codes, meaning
from reverie.http.operation import MEDIA, Operation

_REF = "#/components/schemas/{name}"
_EVERY = "MalformedRequest Unauthenticated Forbidden ForeignOrigin UnknownRoute MisdirectedHost"
_EVERY += " TooManyRequests Draining"
_OF_BODY = "RequestTimeout BodyTooLarge UnsupportedMediaType"
_TEXT = """\
Long-term memory for agents and game characters. Every operation of the library, over HTTP.

Ids stand percent-encoded in paths, a slash as %2F. Times are seconds on the world's clock, or ISO
8601. A write is acknowledged when it is on disk; sent again with the same `Idempotency-Key`, it has
one effect and the first answer. Every error has a stable code in `error`."""

_ONCE = "The same again with the same key has one effect, and the first answer; another request "
_ONCE += "with it is refused."
_REPEATABLE = "Taken, but not needed: the same again changes nothing more, with any key."

Json = dict[str, Any]


def _event(names: Sequence[str]) -> Json:
    """Return the schema of a server-sent event."""
    return {
        "type": "object",
        "properties": {
            "event": {"enum": list(names)},
            "data": {"type": "string", "contentMediaType": JSON},
            "id": {"type": "string"},
        },
        "required": ["event", "data"],
    }


def describe(operations: Sequence[Operation], *, needs_keys: bool) -> Json:
    """Return the OpenAPI document."""
    return _Description(operations).document(needs_keys=needs_keys)


class _Description:
    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = operations
        bodies = [op.body for op in operations if op.takes == "json"]
        given = [op.answer for op in operations if op.answer is not None]
        probes = [a.Alive, a.Ready, Fault]
        events = [kind for op in operations for kind in op.events.values()]
        types = list(dict.fromkeys([*bodies, *given, *probes, *events]))
        found, self._schemas = msgspec.json.schema_components(types, ref_template=_REF)
        self._schema_of = dict(zip(types, found, strict=True))
        self._responses: Json = {}

    def document(self, *, needs_keys: bool) -> Json:
        from reverie import __version__

        paths: Json = {}
        for op in self._operations:
            paths.setdefault(op.path, {})[op.method.lower()] = self._operation(op)
        paths |= self._probes()
        tags = dict.fromkeys(op.tag for op in self._operations)
        document: Json = {
            "openapi": "3.1.0",
            "info": {"title": "reverie", "version": __version__, "description": _TEXT},
            "tags": [{"name": tag} for tag in [*tags, "probes"]],
            "paths": paths,
            "components": {
                "schemas": self._schemas,
                "responses": self._responses,
                "securitySchemes": {
                    "key": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A key that `reverie keys create` has made.",
                    }
                },
            },
        }
        if needs_keys:
            document["security"] = [{"key": []}]
        return document

    def _operation(self, op: Operation) -> Json:
        whole = (
            f"{op.text}\n\nNeeds the role `{op.role}`" if op.text else f"Needs the role `{op.role}`"
        )
        whole += " and a key for all worlds." if op.is_of_folder else "."
        found: Json = {
            "operationId": op.name,
            "tags": [op.tag],
            "summary": op.summary,
            "description": whole,
            "parameters": self._parameters(op),
            "responses": self._answers(op),
        }
        if op.takes != "nothing":
            content: Json = {}
            if op.takes == "json":
                content["schema"] = self._schema_of[op.body]
            elif op.takes == "lines":
                content["schema"] = {"type": "string"}
            if op.takes != "file":
                content["examples"] = {
                    name: {"value": example.body} for name, example in op.examples.items()
                }
            found["requestBody"] = {"required": True, "content": {MEDIA[op.takes]: content}}
        return found

    def _parameters(self, op: Operation) -> list[Json]:
        found: list[Json] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": "Any text of 1 to 512 bytes, percent-encoded.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 512},
                "examples": {
                    language: {"value": example.path[name]}
                    for language, example in op.examples.items()
                },
            }
            for name in op.ids
        ]
        if op.query is not None:
            found += self._of_query(op, op.query)
        if op.has_request_id:
            found.append(
                {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "required": False,
                    "description": _REPEATABLE if op.is_repeatable else _ONCE,
                    "schema": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 200,
                        "pattern": "^[!-~]+$",
                    },
                    "example": "5f1c9a",
                }
            )
        return found

    def _of_query(self, op: Operation, kind: type[Body]) -> list[Json]:
        (schema,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
        own: Json = parts.pop(schema["$ref"].rpartition("/")[2])
        self._schemas.update(parts)
        found = []
        for name, field in own.get("properties", {}).items():
            shown = {
                language: {"value": example.query[name]}
                for language, example in op.examples.items()
                if name in example.query
            }
            about = {"examples": shown} if shown else {}
            is_needed = name in own.get("required", ())
            found.append(
                {"name": name, "in": "query", "required": is_needed, "schema": field, **about}
            )
        return found

    def _answers(self, op: Operation) -> Json:
        content: Json = {}
        if op.gives == "events":
            content["text/event-stream"] = {"schema": _event(list(op.events))}
            kinds = ", ".join(kind.__name__ for kind in op.events.values())
            told = f"Server-sent events: {', '.join(op.events)}. Their data is "
            told += f"JSON: {kinds} of the schemas."
        elif op.gives == "file":
            content["application/octet-stream"] = {}
            told = "The file."
        else:
            content[JSON] = {"schema": self._schema_of[op.answer]}
            told = "Done."
        found: Json = {"200": {"description": told, "content": content}}
        refusals = [*_EVERY.split(), *op.refusals]
        refusals += [] if op.takes == "nothing" else _OF_BODY.split()
        for status, names in codes(op.kinds_of_error, refusals).items():
            found[str(status)] = {"$ref": self._fault(status, names)}
        return found

    def _fault(self, status: int, names: list[str]) -> str:
        """Return the reference of a response, which is made when it is not there yet."""
        made: Json = {
            "description": meaning(status),
            "content": {
                JSON: {
                    "schema": {
                        "allOf": [
                            {"$ref": _REF.format(name="Fault")},
                            {"properties": {"error": {"enum": names}}},
                        ]
                    },
                    "example": {"error": names[0], "message": meaning(status), "details": {}},
                }
            },
        }
        if status in {429, 503}:
            made["headers"] = {
                "Retry-After": {
                    "description": "Seconds to wait.",
                    "schema": {"type": "integer", "minimum": 1},
                }
            }
        number = 0
        while True:
            name = f"Fault{status}" + (f"_{number}" if number else "")
            if self._responses.setdefault(name, made) == made:
                return f"#/components/responses/{name}"
            number += 1

    def _probes(self) -> Json:
        """Describe what probes.py adds."""

        def probe(name: str, summary: str, content: Json, refusals: str, **more: Any) -> Json:
            answers: Json = {"200": {"description": "So it is.", "content": content}}
            for status, names in codes((), refusals.split()).items():
                answers[str(status)] = {"$ref": self._fault(status, names)}
            found = {"operationId": name, "tags": ["probes"], "summary": summary}
            return {"get": {**found, "responses": answers | more.pop("also", {}), **more}}

        known = "MalformedRequest ForeignOrigin MisdirectedHost"
        keyed = f"{known} Unauthenticated TooManyRequests"
        ready = {JSON: {"schema": self._schema_of[a.Ready]}}
        return {
            "/health": probe(
                "health",
                "Whether the process answers",
                {JSON: {"schema": self._schema_of[a.Alive]}},
                known,
                security=[],
            ),
            "/ready": probe(
                "ready",
                "Whether it serves: the folder is open, its model is there",
                ready,
                known,
                security=[],
                also={"503": {"description": "Not now.", "content": ready}},
            ),
            "/metrics": probe(
                "metrics",
                "Figures for Prometheus; needs a key for all worlds",
                {"text/plain": {"schema": {"type": "string"}}},
                f"{keyed} Forbidden Draining",
            ),
            "/openapi.json": probe(
                "openapi", "This description", {JSON: {"schema": {"type": "object"}}}, keyed
            ),
        }
