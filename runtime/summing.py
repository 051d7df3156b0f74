"""Summaries as a caller sees them: those that are kept, and one that is made when it is asked for.

These functions are methods of `User` and `Runtime`; they stand here to keep those files short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from reverie import asking, door
from reverie.actors import commands as c
from reverie.actors.backend import Router
from reverie.actors.summaries import SummaryKeeper
from reverie.config import Config
from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.ids import DEFAULT_WORLD, check_id
from reverie.memory_graph.material import Material
from reverie.memory_graph.summaries import SummaryPolicy
from reverie.memory_graph.talk import MAX_HITS, Period
from reverie.memory_graph.views import Item
from reverie.mind import WorldMind
from reverie.results import ConversationSummary, SearchOptions

if TYPE_CHECKING:
    from reverie.runtime import Runtime
    from reverie.user import User

DAY_S = 86_400.0
MAX_SUMMARY_TOKENS = 4_000


def keeper(
    router: Router, mind: WorldMind, now: Callable[[str], float], config: Config
) -> SummaryKeeper:
    """Return what makes the summaries of a runtime."""
    policy = SummaryPolicy(
        messages=config.summary_every,
        idle_s=float(config.summary_idle_s),
        reflect_at=None if config.reflect_at is None else float(config.reflect_at),
    )
    return SummaryKeeper(router, mind, now, policy)


def summarise(self: User) -> list[Item]:
    """Bring this user's summaries up to date: of every session, topic and the user itself that
    something has changed of since, whatever `Config.summary_every` says.

    Pending turns are extracted first. Without `Config.summaries` being off, the background does
    the same as far as it is due.

    Returns:
        The summaries that were made; `list(types="summary")` lists all that hold.
    """
    rt = self._rt
    if rt.config.extractor != "off":
        rt.ingestor.drain(self.key, with_after=False)
    policy = msgspec.structs.replace(
        rt.summaries.policy, everything=True, kinds="summaries", reflect_at=None
    )
    kept: list[str] = []
    while (found := rt.summaries.step(self.key, policy)) is not None:
        kept.append(found)
    return [item for item in map(self.get, kept) if item.retired_at is None]


def summarise_all(self: Runtime, world: str = DEFAULT_WORLD) -> int:
    """Bring the summaries of a world's users up to date (see `User.summarise`); returns how many
    were made."""
    return sum(len(self.user(user_id, world).summarise()) for user_id in self.users(world))


def get_conversation_summary(
    self: User,
    topic: str | None = None,
    last_n_days: float | None = None,
    *,
    since: object = None,
    until: object = None,
    session: str | None = None,
    max_tokens: int = 200,
) -> ConversationSummary:
    """Return what was said lately, or of a topic: a summary that is made now, and not kept.

    Args:
        self: whose memory.
        topic: the name of a topic or an entity; any other is searched for. None tells of all.
        last_n_days: how far back, from now on the runtime's clock.
        since: or the begin of the period, as a time.
        until: the end of the period, as a time; open by default.
        session: of one session only.
        max_tokens: about how long the text may be, at most 4,000.

    Raises:
        InvalidValueError: both `last_n_days` and `since`, or a number of days that is not positive.
        UnknownMemoryError: no such session.
    """
    now = self._rt.now(self.key.world)
    begin = door.optional_time(since, "since")
    if last_n_days is not None:
        if begin is not None:
            msg = "last_n_days and since mean the same; leave one out"
            raise InvalidValueError(msg, what="last_n_days")
        begin = now - DAY_S * door.share(last_n_days, "last_n_days", 1e-6, 1e6)
    period = Period(
        begin,
        door.optional_time(until, "until"),
        None if session is None else check_id(session, "session"),
    )
    if period.until is None and last_n_days is not None:
        period = msgspec.structs.replace(period, until=now)
    search = None
    if topic is not None:
        options = SearchOptions(limit=MAX_HITS, types=("memory", "message"))
        asked = self.search_command(door.name(topic, "topic"), options, now)
        search = msgspec.structs.replace(asking.with_vector(self._rt, asked), touch=False)
    command = c.Talk(
        **self._read(now),
        period=period,
        search=search,
        max_tokens=door.limit(max_tokens, "max_tokens", MAX_SUMMARY_TOKENS),
    )
    material: Material = self._rt.call(command)
    made = self._rt.summaries.made(self.key, material)
    sources = () if made is None else tuple(material.sources[i].id for i in made.sources)
    return ConversationSummary(
        "" if made is None else made.text,
        material.from_at,
        material.to_at,
        sources,
        material.messages,
    )
