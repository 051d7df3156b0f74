"""Operations on relationships, profiles and the end of users."""

from __future__ import annotations

from typing import Any

from reverie.http import answers as a, bodies as b
from reverie.http.examples import both
from reverie.http.operation import USER, WORLD, Call, Table
from reverie.lifecycle import Burial
from reverie.memory_graph.errors import NotFoundError
from reverie.memory_graph.nodes import Dimension
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.relationships import Relationship, RelationshipMove, Untied
from reverie.models.usage import UsageRow
from reverie.results import ForgetReceipt

table = Table("relationships")
users = Table("users")
TIE = f"{USER}/relationships/{{other}}"


def _dimensions(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a move with its dimensions as the runtime takes them."""
    given = fields.get("dimensions")
    if given is not None:
        fields["dimensions"] = {name: Dimension(**kind) for name, kind in given.items()}
    return fields


# -- one user's --------------------------------------------------------------------------


@table.add(
    "GET",
    f"{USER}/relationships",
    "read",
    "Relationships.list",
    query=b.Bounds,
    answer=a.Page[Relationship],
    examples=both(query={"dimension": "trust", "at_least": 0.1}),
)
def relationships(call: Call) -> Any:
    """Return how this user stands to everybody, the highest values first."""
    return call.page(call.user.relationships.list(**call.asked))


@table.add(
    "GET",
    f"{USER}/relationships-towards",
    "read",
    "Relationships.towards",
    query=b.Bounds,
    answer=a.Page[Relationship],
    examples=both(query={"dimension": "trust"}),
)
def relationships_towards(call: Call) -> Any:
    """Return how all users of the world stand to this one, the highest values first."""
    return call.page(call.user.relationships.towards(**call.asked))


@table.add(
    "GET",
    TIE,
    "read",
    "Relationships.of",
    query=b.At,
    answer=a.Values,
    examples=both(),
)
def relationship(call: Call) -> a.Values:
    """Return the value of every dimension towards another, strangers among them."""
    return a.Values(call.user.relationships.of(call.ids["other"], **call.given))


@table.add(
    "POST",
    f"{TIE}/moves",
    "write",
    "Relationships.move",
    body=b.Move,
    answer=a.Values,
    errors=(NotFoundError,),
    examples=both(
        {"by": {"trust": 0.2, "fear": -0.1}, "reason": "he mended the roof"},
        {"by": {"trust": 0.2, "fear": -0.1}, "reason": "他修好了屋顶"},
    ),
)
def move_relationship(call: Call) -> a.Values:
    """Add to how this user stands to another, and return the new values."""
    fields = _dimensions(call.once)
    return a.Values(call.user.relationships.move(call.ids["other"], **fields))


@table.add(
    "GET",
    f"{TIE}/moves",
    "read",
    "Relationships.history",
    query=b.Paging,
    answer=a.Page[RelationshipMove],
    examples=both(),
)
def relationship_history(call: Call) -> Any:
    """Return the last moves of a relationship, oldest first; 32 are kept."""
    return call.page(call.user.relationships.history(call.ids["other"]))


@table.add(
    "DELETE",
    TIE,
    "write",
    "Relationships.remove",
    answer=Untied,
    examples=both(),
)
def remove_relationship(call: Call) -> Untied:
    """Remove for good what ties this user to another; memories stay."""
    return call.user.relationships.remove(call.ids["other"], **call.once)


# -- of a whole world --------------------------------------------------------------------


@table.add(
    "GET",
    f"{WORLD}/relationships",
    "read",
    "World.relationships",
    query=b.WorldBounds,
    answer=a.Page[Relationship],
    examples=both(query={"dimension": "trust"}),
)
def world_relationships(call: Call) -> Any:
    """Return how all users of the world stand to others, the highest values first."""
    return call.page(call.world.relationships(**call.asked))


@table.add(
    "POST",
    f"{WORLD}/relationship-moves",
    "write",
    "World.move_many",
    body=b.MoveMany,
    answer=a.ManyValues,
    errors=(NotFoundError,),
    examples=both(
        {"moves": [{"owner": "ana", "other": "bo", "by": {"debt": 30}}]},
        {"moves": [{"owner": "安娜", "other": "阿波", "by": {"debt": 30}}]},
    ),
)
def move_many(call: Call) -> a.ManyValues:
    """Move many relationships of the users of this world, in order."""
    fields = call.once
    moves = [_dimensions(move) for move in fields.pop("moves")]
    return a.ManyValues(call.world.move_many(moves, **fields))


@table.add(
    "PUT",
    f"{WORLD}/dimensions",
    "admin",
    "World.declare",
    body=b.Declare,
    answer=a.Done,
    is_repeatable=True,
    examples=both({"dimensions": {"honour": {"low": 0.0, "high": 10.0, "rest": 5.0}}}),
)
def declare(call: Call) -> a.Done:
    """Say what dimensions of relationships are in this world, until the server ends."""
    call.world.declare(**_dimensions(call.given)["dimensions"])
    return a.Done()


# -- limits, and the end -----------------------------------------------------------------


@users.add(
    "GET",
    f"{USER}/profile",
    "read",
    "User.profile",
    answer=Profile | None,
    examples=both(),
)
def get_profile(call: Call) -> Profile | None:
    """Return the limits of this user, null without any."""
    return call.user.profile()


@users.add(
    "PUT",
    f"{USER}/profile",
    "admin",
    "User.set_profile",
    body=b.SetProfile,
    answer=a.Changed,
    examples=both(
        {"profile": {"name": "guard", "memories": 500}},
        {"profile": {"name": "守卫", "memories": 500}},
    ),
)
def set_profile(call: Call) -> a.Changed:
    """Limit what this user may keep and cost, from now on; null lifts all limits."""
    fields = call.once
    return a.Changed(call.user.set_profile(_profile(fields.pop("profile")), **fields))


@users.add(
    "PUT",
    f"{WORLD}/profiles",
    "admin",
    "World.set_profiles",
    body=b.SetProfiles,
    answer=a.Count,
    examples=both(
        {"profiles": {"ana": {"memories": 500}, "bo": None}},
        {"profiles": {"安娜": {"memories": 500}, "阿波": None}},
    ),
)
def set_profiles(call: Call) -> a.Count:
    """Set the limits of many users; everything is checked before anything is set."""
    fields = call.once
    wanted = {user: _profile(given) for user, given in fields.pop("profiles").items()}
    return a.Count(call.world.set_profiles(wanted, **fields))


def _profile(given: dict[str, Any] | None) -> Profile | None:
    return None if given is None else Profile(**given)


@users.add(
    "GET",
    f"{WORLD}/users",
    "read",
    ("World.users", "Runtime.users"),
    query=b.Users,
    answer=a.Page[str],
    examples=both(query={"limit": 10}),
)
def list_users(call: Call) -> Any:
    """Return the ids of the users, sorted; with `groups`, those of the memories of groups too."""
    world = call.world
    return call.names(call.runtime.users(world.name) if call.query.groups else world.users())


@users.add(
    "DELETE",
    USER,
    "admin",
    "User.forget",
    answer=ForgetReceipt,
    is_slow=True,
    examples=both(),
)
def forget_user(call: Call) -> ForgetReceipt:
    """Erase a user: rows, snapshots, checkpoints, index and traces, then look for remains.

    The receipt says what was removed and what a search of the files found. Of a user that is not
    there it says that. Repeated with its Idempotency-Key, it gives the first receipt, and leaves
    alone who has the id since.
    """
    return call.user.forget(**call.once)


@users.add(
    "POST",
    f"{USER}/burial",
    "admin",
    "World.bury",
    body=b.Bury,
    answer=Burial,
    is_slow=True,
    examples=both({"names": ["Ana"], "memories": False}, {"names": ["安娜"], "memories": False}),
)
def bury(call: Call) -> Burial:
    """Erase a user for good, and every tie of the others to it.

    Repeated with its Idempotency-Key, it gives the first receipt, and `others` is empty: what is
    kept of a burial names nobody.
    """
    return call.world.bury(call.ids["user"], **call.once)


@users.add(
    "GET",
    f"{WORLD}/usage",
    "read",
    "Runtime.usage",
    query=b.Paging,
    answer=a.Page[UsageRow],
    examples=both(),
)
def world_usage(call: Call) -> Any:
    """Return what calls of the language model have cost, by user and purpose, over all runs."""
    return call.page(call.runtime.usage(call.world.name))


@users.add(
    "DELETE",
    f"{USER}/usage",
    "admin",
    "Runtime.reset_usage",
    answer=a.Done,
    examples=both(),
)
def reset_usage(call: Call) -> a.Done:
    """Set a user's counters to nothing, and with them what is left of the budget."""
    call.runtime.reset_usage(call.ids["user"], call.ids["world"], **call.once)
    return a.Done()
