"""One operation of HTTP: its route, what it takes and gives, who may, and the call behind it.

The tables of `routes_*.py` are lists of these. app.py serves them, openapi.py describes them, and
the tests walk through them; nothing about an operation is said twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from reverie.http.admission import JSON
from reverie.http.faults import Refusal
from reverie.http.keys import Key, Role
from reverie.memory_graph import errors as e
from reverie.memory_graph.errors import InvalidLimitError, ReverieError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from reverie.http.state import State
    from reverie.runtime import Runtime
    from reverie.user import User
    from reverie.world import World

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Takes: TypeAlias = Literal["json", "lines", "file", "nothing"]
Gives: TypeAlias = Literal["json", "events", "file"]
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

MEDIA = {"json": JSON, "lines": "application/x-ndjson", "file": "application/octet-stream"}
WORLD = "/v1/worlds/{world}"
USER = "/v1/worlds/{world}/users/{user}"


class Example(NamedTuple):
    """A request that works on the memory that tests/http/prepared.py makes."""

    body: Any = None
    path: Mapping[str, str] = {}
    query: Mapping[str, Any] = {}


class Call(NamedTuple):
    """A request, as an operation sees it: checked, but for what the door of the runtime checks."""

    runtime: Runtime
    key: Key
    ids: Mapping[str, str]  # of the path, decoded
    body: Any = None
    query: Any = None
    request_id: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The fields of the body, or else of the query, that were given."""
        return plain(self.query if self.body is None else self.body)

    @property
    def once(self) -> dict[str, Any]:
        """`given`, and the request id: what a write takes."""
        return self.given | {"request_id": self.request_id}

    @property
    def asked(self) -> dict[str, Any]:
        """`given`, but for which page."""
        return {k: v for k, v in self.given.items() if k not in {"limit", "cursor"}}

    def page(self, items: Iterable[object]) -> dict[str, Any]:
        """Return the page of a list that is asked for; raises InvalidLimitError."""
        return page(list(items), self.query.limit, self.query.cursor)

    def names(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the page of a sorted list of names that is asked for."""
        return names_after(names, self.query.limit, self.query.cursor)

    @property
    def world(self) -> World:
        """The world of the path; raises InvalidIdError."""
        return self.runtime.world(self.ids["world"])

    @property
    def user(self) -> User:
        """The user of the path; raises InvalidIdError."""
        return self.runtime.user(self.ids["user"], self.ids["world"])

    def require(self, world: str, role: Role) -> None:
        """Refuse what the key may not do in a world that the body names; raises Refusal."""
        require(self.key, world, role)


def require(key: Key, world: str | None, role: Role) -> None:
    """Refuse what a key may not do in a world, or, with None, in the whole data folder.

    The answer is the same whether there is such a world or not.

    Raises:
        Refusal: it may not.
    """
    reaches = key.is_everywhere if world is None else key.reaches(world)
    if not reaches:
        msg = "this key is not for that" if world is None else "this key is not for this world"
        raise Refusal("Forbidden", msg)
    if not key.may(role):
        msg = f"this needs the role {role!r}; the key has {key.role!r}"
        raise Refusal("Forbidden", msg, needs=role)


Run: TypeAlias = Callable[[Call], Any]
RunRaw: TypeAlias = "Callable[[State, Request, Call], Awaitable[Response]]"


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation.

    Attributes:
        name: of the operation, the same for good.
        method: of HTTP.
        path: with names of ids in braces.
        tag: the group that it is shown in.
        run: the call itself, in a thread; None with `raw`.
        raw: serves the request itself, in the event loop: a stream of events, a file.
        role: that a key needs.
        is_of_folder: the key has to be for all worlds.
        serves: which methods of the public API it serves, as "User.search".
        body: type of the JSON that it takes.
        query: type of the query.
        answer: type of the JSON that it gives.
        takes: what the body is.
        gives: what the answer is.
        has_request_id: it takes the header Idempotency-Key; so does every operation that writes.
        is_repeatable: the header is taken and nothing kept, for the same again has no effect.
        errors: groups of errors that it may answer beside those that every one may.
        refusals: codes of HTTP that it may answer beside those that every one may.
        events: with `gives` "events", what their data is, by their name.
        is_slow: it may take minutes.
        examples: requests by the name of their language.
        summary: one line of what it does.
        text: all that is to be known of it.
    """

    name: str
    method: Method
    path: str
    tag: str
    run: Run | None = None
    raw: RunRaw | None = None
    role: Role
    is_of_folder: bool = False
    serves: tuple[str, ...] = ()
    body: Any = None
    query: Any = None
    answer: Any = None
    takes: Takes = "nothing"
    gives: Gives = "json"
    has_request_id: bool = False
    is_repeatable: bool = False
    errors: tuple[type[ReverieError], ...] = ()
    refusals: tuple[str, ...] = ()
    events: Mapping[str, Any] = {}
    is_slow: bool = False
    examples: Mapping[str, Example] = {}
    summary: str = ""
    text: str = ""

    @property
    def ids(self) -> list[str]:
        """The names of the ids in its path, in order."""
        return [s[1:-1] for s in self.path.split("/") if s.startswith("{")]

    @property
    def kinds_of_error(self) -> tuple[type[ReverieError], ...]:
        """The groups of errors that it may answer."""
        always = (e.InputError, e.StorageError, e.ModelError, e.UnavailableError, e.ClosedError)
        # A race with a rewind or an erasure, or a model that does not fit, is a 409 anywhere.
        return (*always, e.StateError, e.InternalError, e.InvariantError, *self.errors)


class Table:
    """A list of operations of one group."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.operations: list[Operation] = []

    def add(
        self, method: Method, path: str, role: Role, serves: str | Sequence[str], **more: Any
    ) -> Callable[[F], F]:
        """Add the function below as an operation; its name and its docstring are the operation's.

        Args:
            method: as in `Operation`.
            path: as in `Operation`.
            role: as in `Operation`.
            serves: as in `Operation`; one or several.
            more: fields of `Operation`.
        """

        def note(run: F) -> F:
            summary, _, text = (run.__doc__ or "").strip().partition("\n")
            names = (serves,) if isinstance(serves, str) else tuple(serves)
            if more.get("body") is not None:
                more.setdefault("takes", "json")
            more.setdefault("has_request_id", role != "read" and method != "GET")
            more["raw" if more.pop("is_raw", False) else "run"] = run
            self.operations.append(
                Operation(
                    name=run.__name__,
                    method=method,
                    path=path,
                    tag=self.tag,
                    role=role,
                    serves=names,
                    summary=summary.rstrip("."),
                    text=" ".join(text.split()),
                    **more,
                )
            )
            return run

        return note


# -- what operations share ---------------------------------------------------------------


def plain(body: object) -> dict[str, Any]:
    """Return the fields of a body that were given, as plain values."""
    found: dict[str, Any] = msgspec.to_builtins(body)
    return found


def page(items: Sequence[T], limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a part of a list that is at hand: `cursor` is the place where it begins.

    Raises:
        InvalidLimitError: the cursor is none that was given out.
    """
    start = 0
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:  # noqa: PLR2004 (digits)
            msg = "cursor is not one that a page before has given"
            raise InvalidLimitError(msg, what="cursor")
        start = int(cursor)
    end = start + limit
    return {
        "items": items[start:end],
        "total": len(items),
        "cursor": str(end) if end < len(items) else None,
    }


def names_after(names: Sequence[str], limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a part of a sorted list of names: those after `cursor`, which is a name."""
    found = list(names) if cursor is None else [name for name in names if name > cursor]
    part = found[:limit]
    return {
        "items": part,
        "total": len(names),
        "cursor": part[-1] if len(found) > limit else None,
    }
