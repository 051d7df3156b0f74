"""All operations. Those of most use come first: routes are tried in order."""

from __future__ import annotations

from reverie.http import (
    routes_admin,
    routes_backups,
    routes_memories,
    routes_reading,
    routes_streams,
    routes_ties,
    routes_worlds,
)
from reverie.http.operation import Operation

TABLES = (
    routes_reading.table,
    routes_memories.table,
    routes_ties.table,
    routes_ties.users,
    routes_worlds.table,
    routes_worlds.groups,
    routes_worlds.many,
    routes_streams.table,
    routes_admin.slots,
    routes_admin.table,
    routes_backups.table,
)
OPERATIONS: list[Operation] = [operation for table in TABLES for operation in table.operations]

# Public methods that no operation serves, with the reason.
NOT_SERVED: dict[str, str] = {
    "Runtime.call": "takes commands of shards, for the package itself",
    "Runtime.close": "who started the server ends it: SIGTERM",
    "Runtime.erase": "User.forget is the way to call it",
    "Runtime.leave_to_parent": "for forked processes",
    "Runtime.new_request_id": "Idempotency-Key is the caller's",
    "Runtime.now": "World.now tells the time of a world",
    "Runtime.user": "the user is in each path",
    "User.search_command": "for the package itself",
    "User.turns_command": "for the package itself",
    "World.diff_each": "World.diff gives the same at once",
    "World.set_clock": "a clock is an object of the program",
    "World.user": "the user is in each path",
}
