"""Backups that are asked for over HTTP: into the one folder that the server was started with.

No request names a place. What is told of a backup is its name in that folder and what it holds;
where the folder is, is nobody's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from reverie.http.faults import Refusal
from reverie.http.streaming import event
from reverie.memory_graph.ids import Key
from reverie.operations import copying
from reverie.repeats import NOBODY, mark

if TYPE_CHECKING:
    from pathlib import Path

    from reverie.http.operation import Call
    from reverie.http.state import State

FOLDER = Key(NOBODY, NOBODY)  # where the request ids of the whole data folder count


class Begun(msgspec.Struct, frozen=True):
    """The event `begin`: a backup is asked for."""

    request_id: str | None


class Copied(msgspec.Struct, frozen=True):
    """The events `progress`. Each file counts twice: written, and read back and compared."""

    files: int
    of_files: int


class Backup(msgspec.Struct, frozen=True):
    """A backup that is whole; `made_at` is the moment, in UTC, whose state it holds. `problems`
    are what is wrong in the data folder, and so in the copy."""

    name: str
    made_at: str
    files: int
    size_bytes: int
    users: int
    problems: list[str] = []


def folder_of(state: State) -> Path:
    """Return the folder that backups go to; raises Refusal when there is none."""
    if state.settings.backups is None:
        msg = "this server was started without --backups, so it makes none"
        raise Refusal("BackupsOff", msg)
    return state.settings.backups


def shown(backup: copying.Backup) -> Backup:
    """Return what is told of a backup."""
    fields = {name: getattr(backup, name) for name in Backup.__struct_fields__}
    return Backup(**fields | {"problems": list(backup.problems)})


class BackingUp:
    """One backup, which is carried out to its end also when nobody listens any more."""

    def __init__(self, state: State, call: Call) -> None:
        """Raises Refusal when the server makes none."""
        self._folder = folder_of(state)
        self._state = state
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._begun: asyncio.Future[None] = self._loop.create_future()
        self._told: asyncio.Queue[Copied | None] = asyncio.Queue()

    async def begin(self) -> AsyncGenerator[bytes]:
        """Return the events, once it is being made or was found; raises what kept it from that."""
        settings = self._state.settings
        work = asyncio.ensure_future(self._state.slow.run(self._made, settings.slow_timeout_s))
        work.add_done_callback(self._ended)
        await self._begun
        return self._events(work)

    async def _events(self, work: asyncio.Future[Backup]) -> AsyncGenerator[bytes]:
        yield event("begin", Begun(self._call.request_id))
        while (copied := await self._told.get()) is not None:
            yield event("progress", copied)
        yield event("result", await work)

    def _ended(self, work: asyncio.Future[Backup]) -> None:
        self._told.put_nowait(None)
        if self._begun.done():
            return
        if not work.cancelled() and (error := work.exception()) is not None:
            self._begun.set_exception(error)
        else:
            self._begun.set_result(None)

    def _has_begun(self) -> None:
        if not self._begun.done():
            self._begun.set_result(None)

    # -- in a thread ---------------------------------------------------------------------

    def _made(self) -> Backup:
        """Make the backup, or find that which was made under this request id."""
        runtime = self._call.runtime
        known = mark(FOLDER, self._call.request_id, "backup")
        made: list[copying.Backup] = []

        def name_of_new() -> str:
            if not self._state.backing_up.acquire(blocking=False):
                msg = "a backup is being made already; try again when it is done"
                raise Refusal("BackupUnderWay", msg)
            try:
                self._tell(self._has_begun)
                made.append(runtime.backup(self._folder, progress=self._copied))
            finally:
                self._state.backing_up.release()
            return made[0].name

        name = runtime.repeats.once(FOLDER, known, str, name_of_new)
        return shown(made[0] if made else copying.backup_of(self._folder, name))

    def _copied(self, files: int, of_files: int) -> None:
        self._tell(self._told.put_nowait, Copied(files, of_files))

    def _tell(self, call: Callable[..., object], *given: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(call, *given)
