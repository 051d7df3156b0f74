"""Operations on backups; see backing_up.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from reverie.http import answers as a, bodies as b, streaming
from reverie.http.admission import JSON
from reverie.http.backing_up import BackingUp, Backup, Begun, Copied, folder_of, shown
from reverie.http.examples import both
from reverie.http.faults import Fault
from reverie.http.operation import Call, Table
from reverie.operations import copying

if TYPE_CHECKING:
    from starlette.requests import Request

    from reverie.http.state import State

table = Table("administration")


@table.add(
    "POST",
    "/v1/backups",
    "admin",
    "Runtime.backup",
    is_of_folder=True,
    is_raw=True,
    gives="events",
    events={"begin": Begun, "progress": Copied, "result": Backup, "error": Fault},
    refusals=("BackupsOff", "BackupUnderWay"),
    is_slow=True,
    examples=both(),
)
async def make_backup(state: State, _request: Request, call: Call) -> Response:
    """Make a backup of the data folder, while work goes on, and tell of the progress as events.

    It goes to the folder that the server was started with (`reverie serve --backups FOLDER`), and
    nowhere else; without one, the answer is `BackupsOff`. It is made to its end also when the
    connection breaks. Sent again with the same Idempotency-Key, the request gives the backup that
    was made, and makes none. One is made at a time: meanwhile, another is `BackupUnderWay`.
    """
    events = await BackingUp(state, call).begin()
    return streaming.answer(streaming.ending("make_backup", events))


@table.add(
    "GET",
    "/v1/backups",
    "admin",
    (),
    is_of_folder=True,
    is_raw=True,
    query=b.Paging,
    answer=a.Page[Backup],
    refusals=("BackupsOff",),
    is_slow=True,
    examples=both(),
)
async def list_backups(state: State, _request: Request, call: Call) -> Response:
    """Return the whole backups in the folder of the server, oldest first."""
    folder = folder_of(state)

    def found() -> bytes:
        return msgspec.json.encode(call.page(map(shown, copying.backups(folder))))

    data = await state.slow.run(found, state.settings.slow_timeout_s)
    return Response(data, media_type=JSON)
