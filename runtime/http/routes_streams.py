"""Operations on streams: worlds as files, and lines to ingest with their progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response, StreamingResponse

from reverie.http import answers as a, bodies as b, ingesting, spool, streaming
from reverie.http.admission import JSON
from reverie.http.examples import both
from reverie.http.faults import Fault
from reverie.http.ingesting import Ingestion
from reverie.http.operation import USER, WORLD, Call, Table
from reverie.memory_graph.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from starlette.requests import Request

    from reverie.http.state import State

table = Table("files and streams")
FILE = "application/octet-stream"
NEW = ({"world": "brought town"}, {"world": "带来的小镇"})


@table.add(
    "POST",
    f"{WORLD}/ingest",
    "write",
    (),
    is_raw=True,
    query=b.Ingest,
    takes="lines",
    gives="events",
    events={
        "begin": ingesting.Begin,
        "progress": ingesting.Progress,
        "extracting": ingesting.Extracting,
        "result": ingesting.Progress,
        "error": Fault,
    },
    is_slow=True,
    examples=both(
        '{"user": "ana", "text": "I live in Berlin."}\n{"user": "bo", "text": "I like tea."}\n',
        '{"user": "安娜", "text": "我住在柏林。"}\n{"user": "阿波", "text": "我喜欢茶。"}\n',
        query={"session": "s9"},
    ),
)
async def ingest(state: State, request: Request, call: Call) -> Response:
    """Store many lines, each a turn with its user, and tell of the progress as events.

    Events: `begin` with the request id, `progress` for each batch once it is on disk, `extracting`
    while `wait` waits for extraction, `result` at the end, `error` if it ends early. Lines that
    cannot be stored are told by number and skipped. The same lines sent again under the same
    Idempotency-Key go on where it stopped, and store nothing twice.
    """
    file = spool.unnamed()
    try:
        size = await spool.receive(state, request, file)
    except BaseException:
        file.close()
        raise
    work = Ingestion(state, call, file, size)
    return streaming.answer(streaming.ending("ingest", work.events()))


@table.add(
    "GET",
    f"{USER}/graph",
    "read",
    "User.export_graph",
    is_raw=True,
    query=b.Graph,
    gives="file",
    is_slow=True,
    examples=both(query={"format": "graphml"}),
)
async def user_graph(state: State, _request: Request, call: Call) -> Response:
    """Return this user's graph as GraphML or as node-link JSON, for Gephi, yEd and NetworkX."""
    fields = call.given
    # One of two words, never a path: `export_graph` would write a file.
    wanted: str = fields.pop("format")

    def made() -> bytes:
        return call.user.export_graph(wanted, **fields).encode()

    data = await state.slow.run(made, state.settings.slow_timeout_s)
    return Response(data, media_type=FILE)


@table.add(
    "GET",
    f"{USER}/export",
    "admin",
    "User.export",
    is_raw=True,
    query=b.ExportUser,
    gives="file",
    is_slow=True,
    examples=both(),
)
async def export_user(state: State, _request: Request, call: Call) -> Response:
    """Return everything of this user as a .zip of open formats, with a README."""

    def written() -> IO[bytes]:
        with spool.named_folder() as folder:
            path = folder / "user.zip"
            call.user.export(path, **call.given)
            return path.open("rb")

    return await _file(state, written)


@table.add(
    "GET",
    f"{WORLD}/export",
    "admin",
    "World.export",
    is_raw=True,
    query=b.Export,
    gives="file",
    errors=(NotFoundError,),
    is_slow=True,
    examples=both(),
)
async def export_world(state: State, _request: Request, call: Call) -> Response:
    """Return the world as one file, for another folder or machine.

    It is compressed and checksummed, not encrypted.
    """

    def written() -> IO[bytes]:
        with spool.named_folder() as folder:
            path = folder / "world.reverie"
            call.world.export(path, **call.given)
            return path.open("rb")  # it stays readable when its name is gone

    return await _file(state, written)


async def _file(state: State, written: Callable[[], IO[bytes]]) -> Response:
    """Return a file that is made in a thread."""
    file = await state.slow.run(written, state.settings.slow_timeout_s)
    headers = {"Content-Length": str(spool.size_of(file))}
    return StreamingResponse(spool.parts(state, file), headers=headers, media_type=FILE)


@table.add(
    "POST",
    f"{WORLD}/import",
    "admin",
    "Runtime.import_world",
    is_raw=True,
    answer=a.MadeWorld,
    takes="file",
    is_slow=True,
    examples=both(b"", path=NEW),
)
async def import_world(state: State, request: Request, call: Call) -> Response:
    """Make a new world of a file that an export gave, all or nothing."""
    with spool.named_folder() as folder:
        path = folder / "world.reverie"
        with path.open("wb") as file:
            await spool.receive(state, request, file)

        def made() -> Any:
            world = call.runtime.import_world(path, call.ids["world"], **call.once)
            return a.MadeWorld(world.name, len(call.runtime.users(world.name)))

        answer = await state.slow.run(made, state.settings.slow_timeout_s)
    return Response(msgspec.json.encode(answer), media_type=JSON)
