"""Commands about the limits of users: profiles, what budgets and time have put away, and tending.

They are part of the union in commands.py; how a shard carries them out stands here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from reverie.actors.answers import ModelLimits
from reverie.actors.bases import Read, Write
from reverie.memory_graph import audit, budget, events, gist, nodes as n, relationships
from reverie.memory_graph.audit import AuditPage
from reverie.memory_graph.errors import StaleGenerationError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.views import Item, as_item
from reverie.memory_graph.write import Writer

if TYPE_CHECKING:
    from reverie.actors.commands import Summarise

MAX_LOOKED_AT = 128  # users that are loaded for one answer


class SetProfile(Write, frozen=True, kw_only=True, tag="set_profile"):
    """Set the limits of a user, None for none; its budgets are kept at once. Answer: bool, False if
    it had these already."""

    profile: Profile | None


class Tend(Write, frozen=True, kw_only=True, tag="tend"):
    """End what has outlived its time, archive what weighs too little, keep the budgets. Answer:
    `Tended`."""


class ModelSpent(Write, frozen=True, kw_only=True, tag="model_spent"):
    """Note that the budget of model calls was found spent. Answer: bool, False if it was noted."""


class Part(Write, frozen=True, kw_only=True, tag="part"):
    """Remove every tie to one who died and is known by the names `others`; with `memories`, archive
    what mentions it. Answer: `Parted`."""

    others: tuple[str, ...]
    memories: bool = False


class GetProfile(Read, frozen=True, kw_only=True, tag="profile"):
    """Answer: `Profile` or None."""


class Audit(Read, frozen=True, kw_only=True, tag="audit"):
    """Answer: `AuditPage`; `after` is the cursor of the page before."""

    limit: int = 100
    after: str | None = None


class DueUsers(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="due_users"):
    """Answer: `DuePage` of the users of a world for whom there is something to tend at time `now`
    (seconds), with `gists` also in summaries. To be asked again until it is the last: at most
    `MAX_LOOKED_AT` users that the shard knows nothing of are looked at for each answer."""

    world: str
    now: float
    gists: bool = True


class DuePage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ids of users, sorted; of all that are due if it `is_last`, of none otherwise."""

    users: list[str]
    is_last: bool = True


class Tended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many memories were ended for their time to live, archived for their weight, and archived
    for a budget; how many have faded and waited then to be told in a summary, and how many such
    summaries were made; and whether a budget is exceeded by pinned memories, which stay."""

    expired: int = 0
    faded: int = 0
    over_budget: int = 0
    waiting: int = 0
    is_over: bool = False
    gists: int = 0


class Parted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was removed or put away of the memory of one who died."""

    dimensions: int = 0
    relations: int = 0
    associations: int = 0
    archived: int = 0


def part(writer: Writer, command: Part) -> Parted:
    """Carry out `Part`; done again, it changes nothing."""
    total = Parted()
    for name in command.others:
        archived = _archive_mentions(writer, name) if command.memories else 0
        gone = relationships.untie(writer, name)
        total = Parted(
            total.dimensions + gone.dimensions,
            total.relations + gone.relations,
            total.associations + gone.associations,
            total.archived + archived,
        )
    return total


def _archive_mentions(writer: Writer, name: str) -> int:
    graph = writer.graph
    if (entity := graph.entity_named(name)) is None:
        return 0
    told = [graph.node(tail) for tail, _ in graph.into(entity.id, n.CONTAINS_ENTITY)]
    away = [m.id for m in told if isinstance(m, n.Memory) and (m.status == "active" or m.faded)]
    return sum(writer.retire(i, "archived", f"{name} was buried") for i in away)


def set_profile(writer: Writer, command: SetProfile) -> bool:
    """Carry out `SetProfile`; the budgets are kept after every write."""
    if budget.profile_of(writer.graph) == command.profile:
        return False
    writer.emit(events.ProfileSet(at=command.at, profile=command.profile))
    return True


def tend(writer: Writer) -> Tended:
    """Carry out `Tend`."""
    expired = budget.expire(writer)
    faded = budget.fade(writer)
    over = budget.keep_budget(writer)
    return Tended(
        expired,
        faded,
        over,
        len(writer.graph.waiting),
        budget.over_budget(writer.memory) is not None,
    )


def note_spent(writer: Writer, command: ModelSpent) -> bool:
    """Carry out `ModelSpent`."""
    if audit.spent_at(writer.graph) is not None:
        return False
    writer.emit(events.ModelBudgetSpent(at=command.at))
    return True


def keep_gist(writer: Writer, command: Summarise) -> str:
    """Carry out `Summarise` of memories that have faded; refused with StaleGenerationError when one
    has become something else meanwhile."""
    for source in command.sources:
        if source not in writer.graph.waiting:
            msg = f"{source} no longer waits for a summary: this one is discarded"
            raise StaleGenerationError(msg, memory_id=source)
    return writer.summarise(
        command.text,
        n.USER_NODE,
        command.sources,
        from_at=command.from_at,
        to_at=command.to_at,
        vector=command.vector,
        covers=command.covers,
        gist=True,
    )


def model_limits(memory: UserMemory) -> ModelLimits:
    """Return what the owner's profile says of model calls."""
    found = budget.profile_of(memory.graph) or Profile()
    is_spent = audit.spent_at(memory.graph) is not None
    return ModelLimits(found.model_calls, found.prompt_tokens, is_spent)


def within_budget(writer: Writer, answer: Any) -> Any:
    """Keep the owner's budgets after a write, in the same transaction; return its answer, which of
    an item tells what it has become: one that was asked for goes after all others."""
    spared = {answer.id} if isinstance(answer, Item) else ()
    if budget.keep_budget(writer, spared) and spared:
        return as_item(writer.memory, writer.graph.get(answer.id, n.Memory))
    return answer


def audited(memory: UserMemory, command: Audit) -> AuditPage:
    """Carry out `Audit`."""
    return audit.page(memory, command.now, command.limit, command.after)


class Due:
    """When there is something to tend, for each user of a shard that was looked at and has not
    changed since. A reading only puts it off, so the time is one before which nothing is due."""

    def __init__(self) -> None:
        self._at: dict[Key, tuple[float, bool]] = {}

    def changed(self, key: Key) -> None:
        """Forget what is known of a user that was written to, came, or went."""
        self._at.pop(key, None)

    def world_changed(self, world: str) -> None:
        """Forget what is known of a whole world."""
        self._at = {key: at for key, at in self._at.items() if key.world != world}

    def page(
        self,
        keys: Iterable[Key],
        command: DueUsers,
        load: Callable[[Key], UserMemory | None],
    ) -> DuePage:
        """Carry out `DueUsers` for the keys of its world; `load` brings a user into memory."""
        looked_at = 0
        found: list[str] = []
        for key in keys:
            if key not in self._at:
                if looked_at == MAX_LOOKED_AT:
                    return DuePage([], is_last=False)
                looked_at += 1
                memory = load(key)
                self._at[key] = (math.inf, False) if memory is None else _due(memory)
            at, has_gist = self._at[key]
            if at <= command.now or (has_gist and command.gists):
                found.append(key.user_id)
        return DuePage(sorted(found))


def _due(memory: UserMemory) -> tuple[float, bool]:
    return budget.next_due(memory), gist.group(memory) is not None
