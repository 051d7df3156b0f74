"""Operations of a whole world: what happens in it, its groups, and many users at once."""

from __future__ import annotations

from typing import Any

from reverie.actors.answers import Knower
from reverie.groups import Group
from reverie.http import answers as a, bodies as b
from reverie.http.examples import both
from reverie.http.operation import WORLD, Call, Table
from reverie.memory_graph.drafts import Kept, MemoryDraft
from reverie.memory_graph.errors import NotFoundError
from reverie.results import AddResult, Observed

table = Table("worlds")
groups = Table("groups")
many = Table("many at once")
GROUP = f"{WORLD}/groups/{{group}}"


# -- what happens ------------------------------------------------------------------------


@table.add(
    "POST",
    f"{WORLD}/observations",
    "write",
    "World.observe",
    body=b.WorldEvent,
    answer=Observed,
    examples=both(
        {"text": "The player stole the amulet.", "witnesses": ["ana"], "place": "shrine"},
        {"text": "玩家偷走了护身符。", "witnesses": ["安娜"], "place": "神社"},
    ),
)
def observe_in_world(call: Call) -> Observed:
    """Let something happen: each witness, and each group, gets a memory of it.

    All or none of them have it when this answers, also over a crash, and each once.
    """
    return call.world.observe(**call.once)


@table.add(
    "POST",
    f"{WORLD}/observations/many",
    "write",
    "World.observe_many",
    body=b.ObserveMany,
    answer=list[Observed],
    examples=both(
        {"events": [{"text": "The bell rang.", "witnesses": ["ana", "bo"], "request_id": "b1"}]},
        {"events": [{"text": "钟响了。", "witnesses": ["安娜", "阿波"], "request_id": "b1"}]},
    ),
)
def observe_many(call: Call) -> list[Observed]:
    """Let several things happen, in order; all is stored or nothing.

    Each event may have a request id of its own; with an Idempotency-Key the others get one.
    """
    return call.world.observe_many(**call.once)


@table.add(
    "POST",
    f"{WORLD}/tellings",
    "write",
    "World.tell",
    body=b.Tell,
    answer=Kept,
    errors=(NotFoundError,),
    examples=both(
        {"speaker": "ana", "listener": "bo", "memory_id": "m1"},
        {"speaker": "安娜", "listener": "阿波", "memory_id": "m1"},
    ),
)
def tell(call: Call) -> Kept:
    """Let a user tell another what he remembers."""
    return call.world.tell(**call.once)


@table.add(
    "POST",
    f"{WORLD}/tellings/many",
    "write",
    "World.tell_many",
    body=b.TellMany,
    answer=list[Kept],
    errors=(NotFoundError,),
    examples=both(
        {"tellings": [{"speaker": "ana", "listener": "bo", "memory_id": "m1"}]},
        {"tellings": [{"speaker": "安娜", "listener": "阿波", "memory_id": "m1"}]},
    ),
)
def tell_many(call: Call) -> list[Kept]:
    """Let several things be told, all from what is known now."""
    return call.world.tell_many(**call.once)


@table.add(
    "GET",
    f"{WORLD}/events/{{event}}/knowers",
    "read",
    "World.who_knows",
    query=b.Paging,
    answer=a.Page[Knower],
    examples=both(),
)
def who_knows(call: Call) -> Any:
    """Return who knows of an event and from whom, who saw it first."""
    return call.page(call.world.who_knows(call.ids["event"]))


@table.add(
    "POST",
    f"{WORLD}/reflections",
    "write",
    "World.reflect",
    body=b.Force,
    answer=a.InsightsOfWorld,
    is_slow=True,
    examples=both({"force": True}),
)
def reflect_world(call: Call) -> a.InsightsOfWorld:
    """Draw insights for every user who has gathered enough."""
    return a.InsightsOfWorld(call.world.reflect(**call.once))


@table.add(
    "POST",
    f"{WORLD}/summaries",
    "write",
    "Runtime.summarise",
    answer=a.Count,
    is_repeatable=True,
    is_slow=True,
    examples=both(),
)
def summarise_world(call: Call) -> a.Count:
    """Bring the summaries of the users up to date; returns how many were made."""
    return a.Count(call.runtime.summarise(call.world.name))


@table.add("GET", f"{WORLD}/time", "read", "World.now", answer=a.Moment, examples=both())
def world_time(call: Call) -> a.Moment:
    """Return the world's time in seconds."""
    return a.Moment(call.world.now())


# -- groups ------------------------------------------------------------------------------


def _group(call: Call) -> Group:
    return call.world.group(call.ids["group"])


@groups.add(
    "GET",
    f"{WORLD}/groups",
    "read",
    ("World.groups", "World.group"),
    query=b.Paging,
    answer=a.Page[str],
    examples=both(),
)
def list_groups(call: Call) -> Any:
    """Return the names of the groups that somebody joined or that know something, sorted.

    The memory of a group is that of the user "group:NAME".
    """
    return call.names(call.world.groups())


@groups.add(
    "GET",
    f"{GROUP}/members",
    "read",
    "Group.members",
    query=b.Paging,
    answer=a.Page[str],
    examples=both(),
)
def group_members(call: Call) -> Any:
    """Return the user ids of the members of now, sorted."""
    return call.names(_group(call).members())


@groups.add(
    "POST",
    f"{GROUP}/join",
    "write",
    "Group.join",
    body=b.Join,
    answer=a.Names,
    examples=both({"user_ids": ["bo"]}, {"user_ids": ["阿波"]}),
)
def join_group(call: Call) -> a.Names:
    """Make users members, and return those that were none before."""
    fields = call.once
    return a.Names(_group(call).join(*fields.pop("user_ids"), **fields))


@groups.add(
    "POST",
    f"{GROUP}/leave",
    "write",
    "Group.leave",
    body=b.Leave,
    answer=a.Names,
    examples=both({"user_ids": ["ana"]}, {"user_ids": ["安娜"]}),
)
def leave_group(call: Call) -> a.Names:
    """Let members leave, and return those that were members."""
    fields = call.once
    return a.Names(_group(call).leave(*fields.pop("user_ids"), **fields))


@groups.add(
    "POST",
    f"{GROUP}/observations",
    "write",
    "Group.observe",
    body=b.WorldEvent,
    answer=Observed,
    examples=both({"text": "The password is heron."}, {"text": "口令是苍鹭。"}),
)
def group_observe(call: Call) -> Observed:
    """Keep an event that the group knows of."""
    fields = call.once
    return _group(call).observe(fields.pop("text"), **fields)


# -- many at once ------------------------------------------------------------------------


@many.add(
    "POST",
    f"{WORLD}/messages",
    "write",
    "Runtime.add_many",
    body=b.AddMany,
    answer=dict[str, AddResult],
    examples=both(
        {"messages": {"ana": "Hello.", "bo": [{"text": "Hi!", "session": "s2"}]}},
        {"messages": {"安娜": "你好。", "阿波": [{"text": "嗨！", "session": "s2"}]}},
    ),
)
def add_many(call: Call) -> dict[str, AddResult]:
    """Store turns of many users, one call per shard; all is checked before anything is stored."""
    return call.runtime.add_many(world=call.ids["world"], **call.once)


@many.add(
    "POST",
    f"{WORLD}/memories",
    "write",
    "Runtime.remember_many",
    body=b.RememberMany,
    answer=dict[str, list[Kept]],
    errors=(NotFoundError,),
    examples=both(
        {"memories": {"ana": ["Bo owes her a drink."], "bo": [{"text": "He owes Ana a drink."}]}},
        {"memories": {"安娜": ["阿波欠她一杯酒。"], "阿波": [{"text": "他欠安娜一杯酒。"}]}},
    ),
)
def remember_many(call: Call) -> dict[str, list[Kept]]:
    """Keep statements of many users verbatim, one call per shard."""
    fields = call.once
    given = fields.pop("memories")
    drafts = {user_id: list(map(_draft, items)) for user_id, items in given.items()}
    return call.runtime.remember_many(drafts, world=call.ids["world"], **fields)


def _draft(item: str | dict[str, Any]) -> str | MemoryDraft:
    return item if isinstance(item, str) else MemoryDraft(**({"importance": 0.7} | item))


@many.add(
    "POST",
    f"{WORLD}/search",
    "read",
    "Runtime.search_many",
    body=b.SearchMany,
    answer=a.HitsOfMany,
    examples=both(
        {"questions": [["ana", "Where does her sister live?"], ["bo", "Mangoes?"]], "limit": 3},
        {"questions": [["安娜", "她姐姐住在哪里？"], ["阿波", "芒果？"]], "limit": 3},
    ),
)
def search_many(call: Call) -> a.HitsOfMany:
    """Return the hits of many questions, given as pairs of user id and question."""
    fields = call.given
    asked = [(user_id, question) for user_id, question in fields.pop("questions")]
    return a.HitsOfMany(call.runtime.search_many(asked, world=call.ids["world"], **fields))
