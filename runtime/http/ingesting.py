"""Lines that are stored batch by batch, with an event for each.

A batch is stored before its event is sent. Each has a request id that follows from that of the
whole, so the same lines sent again find what was stored, and go on after it. Nothing of an
ingestion is kept but that: a server that was killed needs the lines again, and doubles none.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any

import msgspec

from reverie import door
from reverie.http.bodies import Line
from reverie.http.faults import Refusal
from reverie.http.limits import check_depth
from reverie.http.operation import plain
from reverie.http.streaming import event
from reverie.memory_graph.errors import InputError, InvalidTextError
from reverie.memory_graph.ids import check_key

if TYPE_CHECKING:
    from reverie.http.operation import Call
    from reverie.http.state import State

BATCH_LINES = 64
MAX_BAD = 100  # bad lines that one event names; all are counted
LOOK_EVERY_S = 0.5  # for extraction
MAX_WATCHED = 10_000  # users whose extraction is waited for


class Bad(msgspec.Struct, frozen=True):
    """A line that cannot be stored."""

    line: int
    error: str
    message: str


class Begin(msgspec.Struct, frozen=True):
    """The event `begin`: with `request_id` as Idempotency-Key, the same lines go on from here."""

    request_id: str
    bytes: int


class Progress(msgspec.Struct, frozen=True):
    """The events `progress`, after each batch, and `result`, at the end."""

    lines: int
    stored: int
    skipped: int
    bytes: int
    of_bytes: int
    bad: list[Bad] = []


class Extracting(msgspec.Struct, frozen=True):
    """The event `extracting`: turns that still wait."""

    pending: int


class _Batch(msgspec.Struct):
    """What one reading found."""

    by_user: dict[str, list[dict[str, Any]]] = {}
    bad: list[Bad] = []
    lines: int = 0
    stored: int = 0
    is_last: bool = False


class Ingestion:
    """One ingestion; `events` carries it out."""

    def __init__(self, state: State, call: Call, file: IO[bytes], size_bytes: int) -> None:
        self._state = state
        self._call = call
        self._file = file
        self._of_bytes = size_bytes
        self._id = call.request_id or uuid.uuid4().hex
        self._batch = 0
        self._lines = self._stored = self._skipped = 0
        self._users: dict[str, None] = {}

    async def events(self) -> AsyncGenerator[bytes]:
        """Yield the events, storing a batch before each; raises what ends it early."""
        with self._file:
            self._file.seek(0)
            yield event("begin", Begin(self._id, self._of_bytes))
            is_last = False
            while not is_last:
                self._state.require_open()
                batch = await self._run(self._store_next)
                is_last = batch.is_last
                if batch.lines:
                    yield event("progress", self._progress(batch.bad), self._batch)
            if self._call.query.wait and self._call.query.infer:
                async for pending in self._waited():
                    yield event("extracting", Extracting(pending))
            yield event("result", self._progress([]))

    async def _run(self, work: Any) -> Any:
        return await self._state.slow.run(work, self._state.settings.slow_timeout_s)

    def _progress(self, bad: list[Bad]) -> Progress:
        done = self._file.tell()
        return Progress(
            self._lines, self._stored, self._skipped, done, self._of_bytes, bad[:MAX_BAD]
        )

    async def _waited(self) -> AsyncIterator[int]:
        """Yield how many turns wait, until none does."""
        deadline = time.monotonic() + self._state.settings.slow_timeout_s
        runtime, world = self._call.runtime, self._call.ids["world"]
        waiting = list(self._users)

        def pending() -> int:
            nonlocal waiting
            counts = {user: runtime.user(user, world).stats().pending for user in waiting}
            waiting = [user for user, count in counts.items() if count]
            return sum(counts.values())

        while (left := await self._run(pending)) and time.monotonic() < deadline:
            self._state.require_open()
            yield left
            await asyncio.sleep(LOOK_EVERY_S)

    # -- in a thread ---------------------------------------------------------------------

    def _store_next(self) -> _Batch:
        """Read the next batch and store it, all or nothing of each user."""
        batch = self._read()
        query = self._call.query
        if batch.by_user:
            added = self._call.runtime.add_many(
                batch.by_user,
                world=self._call.ids["world"],
                session=query.session,
                infer=query.infer,
                request_id=self._request_id(),
            )
            batch.stored = sum(len(one.ids) for one in added.values())
            if len(self._users) < MAX_WATCHED:
                self._users |= dict.fromkeys(added)
        self._batch += 1
        self._lines += batch.lines
        self._stored += batch.stored
        self._skipped += len(batch.bad)
        return batch

    def _request_id(self) -> str:
        name = f"ingest {self._batch} {self._id}".encode()
        return blake2b(name, digest_size=16).hexdigest()

    def _read(self) -> _Batch:
        batch = _Batch()
        for number, data in self._next_lines():
            batch.lines += 1
            if not data.strip():
                continue
            try:
                user, turn = self._checked(data)
            except InputError as exc:
                batch.bad.append(Bad(number, type(exc).__name__, exc.message))
            except Refusal as refusal:
                fault = refusal.fault
                batch.bad.append(Bad(number, fault.error, fault.message))
            else:
                batch.by_user.setdefault(user, []).append(turn)
        batch.is_last = batch.lines < BATCH_LINES
        return batch

    def _next_lines(self) -> Iterator[tuple[int, bytes]]:
        most = self._state.settings.max_body_bytes
        for number in range(self._lines + 1, self._lines + 1 + BATCH_LINES):
            line = self._file.readline(most)
            if not line:
                return
            rest = line
            while len(rest) == most and not rest.endswith(b"\n"):  # the rest of one too long
                line, rest = b"", self._file.readline(most)
            yield number, line or b"\0"

    def _checked(self, data: bytes) -> tuple[str, dict[str, Any]]:
        """Return a turn and whose it is; raises InputError or Refusal."""
        if data == b"\0":
            msg = f"a line of over {self._state.settings.max_body_bytes:,} bytes"
            raise InvalidTextError(msg)
        check_depth(data, self._state.settings.max_depth)
        try:
            line = msgspec.json.decode(data, type=Line)
        except msgspec.ValidationError as exc:
            raise InvalidTextError(str(exc)[:500]) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as exc:
            msg = f"no JSON: {exc}"
            raise Refusal("MalformedRequest", msg[:500]) from None
        turn = plain(line)
        user = check_key(self._call.ids["world"], turn.pop("user")).user_id
        door.messages(
            turn,
            session=self._call.query.session,
            at=None,
            max_bytes=self._call.runtime.config.max_text_bytes,
        )
        return user, turn
