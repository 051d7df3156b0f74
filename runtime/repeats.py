"""Calls that are more than one write, carried out once for each request id; see actors/kept.py.

What is a write of one user has its request id in its command, and the shard keeps the answer with
the events. A call that is several such writes gives each of them an id that follows from its own.
What is neither (a save slot, an erasure) is kept here: looked up before it begins, and kept when it
is done, by steps that are done again without harm when a crash comes between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from reverie.actors import commands as c
from reverie.memory_graph.errors import RequestReusedError
from reverie.memory_graph.ids import Key, check_id

if TYPE_CHECKING:
    from reverie.runtime import Runtime

T = TypeVar("T")

NOBODY = ""  # the user of what concerns a whole world; no user can have this id


def part_of(request_id: str | None, *part: object) -> str | None:
    """Return the request id of a part of a call, None for a call without one."""
    return None if request_id is None else _hash("part", request_id, *part)


def checked(request_id: str | None) -> str | None:
    """Return a request id, or None; raises InvalidIdError."""
    return None if request_id is None else check_id(request_id, "request_id")


def mark(key: Key, request_id: str | None, call: str, *said: object) -> c.Mark | None:
    """Return what a call is known by, None for one without a request id.

    Args:
        key: where the id counts: a user, or a whole world with `NOBODY`.
        request_id: as the caller gave it.
        call: its name.
        said: what else it says.

    Raises:
        InvalidIdError: the request id is none.
    """
    if request_id is None:
        return None
    return c.Mark(_hash("request", key, check_id(request_id, "request_id")), _print(call, said))


def _print(call: str, said: tuple[object, ...]) -> bytes:
    return blake2b(_packed(call, said), digest_size=16).digest()


def _hash(*parts: object) -> str:
    return blake2b(_packed(*parts), digest_size=16).hexdigest()


def _packed(*parts: object) -> bytes:
    return msgspec.msgpack.encode(parts, order="deterministic")


class Repeats:
    """Carries calls out once. Safe to share between threads."""

    def __init__(self, runtime: Runtime) -> None:
        self._rt = runtime
        self._guard = threading.Lock()
        self._under_way: dict[str, tuple[threading.RLock, list[None]]] = {}

    def once(self, key: Key, mark: c.Mark | None, kind: type[T] | Any, call: Callable[[], T]) -> T:
        """Return what a call answers, or answered when it was made before.

        Of two at once under the same request id, the second waits for the first. When the process
        ends after the call and before its answer is kept, a repeated one is made again, so each
        must be such that this does no harm.

        Args:
            key: in whose partition the answer is kept.
            mark: of the request; None just calls.
            kind: type of the answer, which names nobody, since it outlives every erasure.
            call: to be made.

        Raises:
            RequestReusedError: the id was of another request.
        """
        if mark is None:
            return call()
        where = {"world": key.world, "user_id": key.user_id}
        with self._alone(mark.request):
            try:
                seen = self._rt.call(c.Answered(**where, mark=mark))
            except RequestReusedError as exc:
                msg = "this request id was used before, for a different request"
                raise RequestReusedError(msg) from exc
            if seen is not None:
                found: T = msgspec.msgpack.decode(seen, type=kind)
                return found
            answer = call()
            kept = msgspec.msgpack.encode(answer)
            self._rt.call(c.KeepAnswer(**where, mark=mark, answer=kept))
            return answer

    @contextmanager
    def _alone(self, request: str) -> Iterator[None]:
        """Keep others out that make the same request."""
        with self._guard:
            lock, users = self._under_way.setdefault(request, (threading.RLock(), []))
            users.append(None)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                users.pop()
                if not users:
                    self._under_way.pop(request, None)
