"""What goes wrong, as it is answered: a status, a stable code, a message, details.

    {"error": "UnknownMemoryError", "message": "nothing of id 'm9' for user 'ana'", "details": {}}

The codes of memory_graph/errors.py keep their names; what only HTTP knows is a `Refusal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from reverie.memory_graph import errors as e

RETRY_AFTER_S = 1

# Codes that only HTTP has, with their statuses.
REFUSALS: dict[str, int] = {
    "MalformedRequest": 400,
    "Unauthenticated": 401,
    "Forbidden": 403,
    "ForeignOrigin": 403,
    "UnknownRoute": 404,
    "MethodNotAllowed": 405,
    "RequestTimeout": 408,
    "BackupsOff": 409,
    "BackupUnderWay": 409,
    "BodyTooLarge": 413,
    "UnsupportedMediaType": 415,
    "MisdirectedHost": 421,
    "TooManyRequests": 429,
    "Draining": 503,
}
# Errors whose group says something else than they do here.
_STATUS_OF: dict[type[e.ReverieError], int] = {
    e.ClosedError: 503,
    e.WorldFileError: 422,
    e.EmbedderMismatchError: 409,
    e.OverloadedError: 429,
    e.InputError: 422,
    e.NotFoundError: 404,
    e.StateError: 409,
    e.StorageError: 503,
    e.ModelError: 503,
    e.UnavailableError: 503,
}
_MEANING: dict[int, str] = {
    400: "No such request can be read: bad JSON, bad percent-encoding, an unknown parameter.",
    401: "No key, or one that is not known or was revoked.",
    403: "The key does not reach this world, or not this far; or the request came from a web page "
    "of another site.",
    404: "Nothing of this name, or no such route.",
    405: "The route has other methods.",
    408: "The body did not arrive in time.",
    409: "The present state refuses it.",
    413: "The body is over the limit.",
    415: "The body is not of the media type that is read here.",
    421: "The Host header names somebody else.",
    422: "A value is out of its range; nothing was stored.",
    429: "Too much at once; `Retry-After` says when to come again. Nothing was stored.",
    500: "A fault of reverie.",
    503: "The disk, a model or the owner of the data cannot answer now, or the server is closing.",
}


class Fault(msgspec.Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: str
    message: str
    details: dict[str, Any] = {}


class Refusal(Exception):  # noqa: N818 (it is an answer, not a fault)
    """A request that HTTP itself refuses, before the runtime hears of it."""

    def __init__(
        self, code: str, message: str, *, headers: Mapping[str, str] | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.status = REFUSALS[code]
        self.fault = Fault(code, message, details)
        self.headers = dict(headers or {})


def status_of(kind: type[e.ReverieError]) -> int:
    """Return the status of an error."""
    for base in kind.__mro__:
        if (found := _STATUS_OF.get(base)) is not None:
            return found
    return 500


def as_refusal(error: e.ReverieError) -> tuple[int, Fault, dict[str, str]]:
    """Return status, body and headers of an error of the runtime.

    What the disk says names folders of the server, so only codes and ids of it are told.
    """
    status = status_of(type(error))
    wire = error.to_wire()
    message, details = wire.message, wire.details
    if isinstance(error, e.StorageError) and status >= 500:  # noqa: PLR2004 (of the server)
        message = (type(error).__doc__ or "").partition("\n\n")[0].replace("\n    ", " ")
        details = {k: v for k, v in details.items() if k in {"world", "user_id", "seq"}}
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in {429, 503} else {}
    return status, Fault(wire.code, message, details), headers


def _leaves(kind: type[e.ReverieError]) -> list[type[e.ReverieError]]:
    below = kind.__subclasses__()
    return [leaf for sub in below for leaf in _leaves(sub)] if below else [kind]


def codes(kinds: Iterable[type[e.ReverieError]], refusals: Iterable[str]) -> dict[int, list[str]]:
    """Return the codes of groups of errors and of refusals by their status, sorted."""
    found: dict[int, set[str]] = {}
    for kind in kinds:
        for leaf in _leaves(kind):
            found.setdefault(status_of(leaf), set()).add(leaf.__name__)
    for name in refusals:
        found.setdefault(REFUSALS[name], set()).add(name)
    return {status: sorted(names) for status, names in sorted(found.items())}


def meaning(status: int) -> str:
    """Return what a status says, for the description."""
    return _MEANING[status]
