"""Operations on worlds as such: save slots, models, quarantine, and on the whole data folder."""

from __future__ import annotations

from typing import Any

from reverie.actors.answers import PendingUser
from reverie.actors.limits import Tended
from reverie.diffing import WorldDiff
from reverie.http import answers as a, bodies as b
from reverie.http.examples import both, queries
from reverie.http.operation import USER, WORLD, Call, Table
from reverie.memory_graph.errors import NotFoundError
from reverie.models.usage import UsageRow
from reverie.results import Checkpoint, RuntimeStats

slots = Table("save slots")
table = Table("administration")
SLOT = f"{WORLD}/checkpoints/{{tag}}"
NEW = ({"world": "another town"}, {"world": "另一个小镇"})


# -- save slots --------------------------------------------------------------------------


@slots.add(
    "GET",
    f"{WORLD}/checkpoints",
    "read",
    ("Runtime.checkpoints", "World.checkpoints"),
    query=b.Paging,
    answer=a.Page[Checkpoint],
    examples=both(),
)
def list_checkpoints(call: Call) -> Any:
    """Return the save slots of the world, in the order of their times."""
    return call.page(call.world.checkpoints())


@slots.add(
    "POST",
    f"{WORLD}/checkpoints",
    "admin",
    ("Runtime.checkpoint", "World.checkpoint"),
    body=b.Tag,
    answer=a.Count,
    is_slow=True,
    examples=both({"tag": "day 2"}, {"tag": "第二天"}),
)
def make_checkpoint(call: Call) -> a.Count:
    """Save the world under a tag; returns the number of users."""
    return a.Count(call.world.checkpoint(**call.once))


@slots.add(
    "POST",
    f"{SLOT}/rewind",
    "admin",
    ("Runtime.rewind", "World.rewind"),
    answer=a.Count,
    errors=(NotFoundError,),
    is_slow=True,
    examples=both(),
)
def rewind_world(call: Call) -> a.Count:
    """Put the world back to a tag; returns the number of users."""
    return a.Count(call.world.rewind(call.ids["tag"], **call.once))


@slots.add(
    "POST",
    f"{SLOT}/fork",
    "admin",
    ("Runtime.fork", "World.fork"),
    body=b.Fork,
    answer=a.MadeWorld,
    errors=(NotFoundError,),
    is_slow=True,
    examples=both({"new_world": "town, twice"}, {"new_world": "第二个小镇"}),
)
def fork_world(call: Call) -> a.MadeWorld:
    """Make a new world of a tag. The key must be for the new world, too."""
    new = call.body.new_world
    call.require(new, "admin")
    ids = call.ids
    return a.MadeWorld(new, call.runtime.fork(ids["tag"], world=ids["world"], **call.once))


@slots.add(
    "DELETE",
    SLOT,
    "admin",
    ("Runtime.drop_checkpoint", "World.drop_checkpoint"),
    answer=a.Done,
    errors=(NotFoundError,),
    is_slow=True,
    examples=both(),
)
def drop_checkpoint(call: Call) -> a.Done:
    """Give up a save slot, and the history that only it keeps."""
    call.world.drop_checkpoint(call.ids["tag"], **call.once)
    return a.Done()


@slots.add(
    "GET",
    f"{WORLD}/diff",
    "read",
    "World.diff",
    query=b.Diff,
    answer=WorldDiff,
    errors=(NotFoundError,),
    is_slow=True,
    examples=queries({"tag_a": "day 1", "limit": 10}, {"tag_a": "第一天", "limit": 10}),
)
def diff_world(call: Call) -> WorldDiff:
    """Return what differs between two save slots, or one and now.

    `limit` is of each kind of difference of one user; all are counted.
    """
    return call.world.diff(**call.given)


# -- worlds ------------------------------------------------------------------------------


@table.add(
    "GET",
    "/v1/worlds",
    "read",
    "Runtime.worlds",
    query=b.Paging,
    answer=a.Page[str],
    examples=both(),
)
def list_worlds(call: Call) -> Any:
    """Return the names of the worlds that the key is for, sorted."""
    found = [world for world in call.runtime.worlds() if call.key.reaches(world)]
    return call.names(found)


@table.add(
    "PUT",
    WORLD,
    "admin",
    ("Runtime.create_world", "Runtime.world"),
    body=b.MakeWorld,
    answer=a.Done,
    is_repeatable=True,
    examples=both({"embedder": "standin"}, path=NEW),
)
def create_world(call: Call) -> a.Done:
    """Fix the embedder of a world before its first use; worlds are otherwise made on it."""
    call.runtime.create_world(call.ids["world"], embedder=call.body.embedder)
    return a.Done()


@table.add(
    "POST",
    f"{WORLD}/tend",
    "admin",
    "World.tend",
    body=b.Tend,
    answer=dict[str, Tended],
    is_slow=True,
    examples=both({"users": ["ana"]}, {"users": ["安娜"]}),
)
def tend(call: Call) -> dict[str, Tended]:
    """Carry out what time has brought: times to live, weights, budgets, summaries of what faded."""
    return call.world.tend(**call.once)


@table.add(
    "POST",
    f"{WORLD}/embedder",
    "admin",
    "Runtime.reembed",
    body=b.Embedding,
    answer=a.Count,
    is_slow=True,
    examples=both({"embedder": "standin"}),
)
def reembed(call: Call) -> a.Count:
    """Replace all vectors of the world by those of another embedder.

    Run it while nothing is written to the world.
    """
    return a.Count(call.runtime.reembed(call.world.name, **call.once))


@table.add(
    "GET",
    f"{WORLD}/quarantine",
    "read",
    "Runtime.quarantined",
    query=b.Paging,
    answer=a.Page[PendingUser],
    examples=both(),
)
def quarantined(call: Call) -> Any:
    """Return the turns whose extraction failed twice, by user, with the errors."""
    return call.page(call.runtime.quarantined(call.world.name))


@table.add(
    "POST",
    f"{USER}/quarantine/retry",
    "write",
    "Runtime.retry_quarantined",
    body=b.Turns,
    answer=a.Count,
    errors=(NotFoundError,),
    examples=both({}),
)
def retry_quarantined(call: Call) -> a.Count:
    """Give quarantined turns another chance; returns how many there are."""
    ids = call.ids
    return a.Count(call.runtime.retry_quarantined(ids["user"], ids["world"], **call.once))


@table.add(
    "POST",
    f"{USER}/quarantine/drop",
    "write",
    "Runtime.drop_quarantined",
    body=b.Turns,
    answer=a.Count,
    errors=(NotFoundError,),
    examples=both({}),
)
def drop_quarantined(call: Call) -> a.Count:
    """Give quarantined turns up: they stay messages, and no memories are made of them."""
    ids = call.ids
    return a.Count(call.runtime.drop_quarantined(ids["user"], ids["world"], **call.once))


# -- the whole data folder ---------------------------------------------------------------


@table.add(
    "GET",
    "/v1/stats",
    "admin",
    "Runtime.stats",
    is_of_folder=True,
    answer=RuntimeStats,
    is_slow=True,
    examples=both(),
)
def stats(call: Call) -> RuntimeStats:
    """Return what is on disk, in memory, and under way."""
    return call.runtime.stats()


@table.add(
    "GET",
    "/v1/check",
    "admin",
    "Runtime.check",
    is_of_folder=True,
    answer=a.Lines,
    is_slow=True,
    examples=both(),
)
def check(call: Call) -> a.Lines:
    """Return every broken invariant of all files and users; none when all is sound."""
    return a.Lines(call.runtime.check())


@table.add(
    "POST",
    "/v1/flush",
    "admin",
    "Runtime.flush",
    is_of_folder=True,
    answer=a.Done,
    is_repeatable=True,
    is_slow=True,
    examples=both(),
)
def flush(call: Call) -> a.Done:
    """Write snapshots of the users in memory, which makes the next opening faster."""
    call.runtime.flush()
    return a.Done()


@table.add(
    "POST",
    "/v1/drain",
    "admin",
    "Runtime.drain",
    is_of_folder=True,
    body=b.Drain,
    answer=a.Done,
    is_repeatable=True,
    is_slow=True,
    examples=both({"timeout_s": 30.0}),
)
def drain(call: Call) -> a.Done:
    """Wait until all turns are extracted or quarantined."""
    call.runtime.drain(call.body.timeout_s)
    return a.Done()


@table.add(
    "GET",
    "/v1/usage",
    "admin",
    "Runtime.usage",
    is_of_folder=True,
    query=b.Paging,
    answer=a.Page[UsageRow],
    examples=both(),
)
def usage(call: Call) -> Any:
    """Return what calls of the language model have cost in all worlds, by user and purpose."""
    return call.page(call.runtime.usage())
