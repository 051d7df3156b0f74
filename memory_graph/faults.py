"""Named points where a test may make something go wrong.

Nothing happens at a point unless a handler is installed; the cost is then one comparison. A handler
is called with the name of the point, in the thread that came there, and may kill the process,
raise, wait, or note the call. Product code never installs one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

Point: TypeAlias = Literal[
    # One write, inside its transaction: events are made and applied to the state in memory, ...
    "apply.before",
    "apply.after",
    # ... journaled, ...
    "append.before",
    "append.after",
    # ... the turns that wait for extraction noted, or struck out, ...
    "outbox.before",
    "outbox.after",
    # ... and the answer kept under its request id.
    "result.before",
    "result.after",
    # The COMMIT of any file, with its sync: nothing of the transaction counts before, all after.
    "commit.before",
    "commit.after",
    # A shard has its answers, and has not handed them back; the lane has them.
    "reply.before",
    "reply.after",
    # As `reply.before` in an actor of Ray, with the answers encoded.
    "actor-reply.before",
    # A snapshot, inside its transaction.
    "snapshot.before",
    "snapshot.after",
    # Users leave memory.
    "passivation.before",
    "passivation.after",
    # An index file gets its name, and then its digest beside it.
    "index-name.before",
    "index-name.after",
    "index-sum.before",
    "index-sum.after",
    # OWNER.json gets its name.
    "owner-name.before",
    "owner-name.after",
    # A partition is claimed, inside the transaction.
    "epoch.before",
    "epoch.after",
    # Pages of the log move into the main file; the log is cut to nothing; the file is built anew.
    "log-move.before",
    "log-move.after",
    "log-cut.before",
    "log-cut.after",
    "rewrite.before",
    "rewrite.after",
    # An operation over many partitions is noted in the catalog, and struck out.
    "intent.before",
    "intent.after",
    "intent-end.before",
    "intent-end.after",
    # One partition's part of a checkpoint, rewind or drop; one user of a fork.
    "slot.before",
    "slot.after",
    "import.before",
    "import.after",
    # A user is erased: its rows, then its files, then the copies in the partition file.
    "erase.rows",
    "erase.files",
    "erase.scrubbed",
]
POINTS: tuple[Point, ...] = get_args(Point)
Handler: TypeAlias = Callable[[Point], None]

_handler: Handler | None = None


def reach(point: Point) -> None:
    """Call the handler, if there is one. Whatever it raises comes out here."""
    if _handler is not None:
        _handler(point)


def install(handler: Handler | None) -> None:
    """Call `handler` at each point of this process from now on; None ends it."""
    global _handler  # noqa: PLW0603 (a process has one set of points)
    _handler = handler
