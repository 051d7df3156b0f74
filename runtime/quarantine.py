"""Turns whose extraction failed twice: listed, tried again, or given up and kept as messages.

The public functions are methods of `Runtime`; they stand here to keep that file short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from reverie import door
from reverie.actors import commands as c
from reverie.memory_graph.drafts import TurnOutcome
from reverie.memory_graph.errors import ModelError, UnavailableError, UnknownMemoryError
from reverie.memory_graph.ids import DEFAULT_WORLD, check_id
from reverie.repeats import mark, part_of

if TYPE_CHECKING:
    from reverie.runtime import Runtime
    from reverie.user import User

log = structlog.get_logger(__name__)


def quarantined(self: Runtime, world: str | None = None) -> list[c.PendingUser]:
    """Return the turns whose extraction failed twice, by user, with the errors."""
    wanted = None if world is None else check_id(world, "world")
    found = self._router.everywhere(c.ListPending(world=wanted, quarantined=True))
    return sorted((u for users in found for u in users), key=lambda u: (u.world, u.user_id))


def retry_quarantined(  # noqa: D417 (self: it is a method)
    self: Runtime,
    user_id: str,
    world: str = DEFAULT_WORLD,
    *,
    turn_ids: Sequence[str] = (),
    request_id: str | None = None,
) -> int:
    """Give quarantined turns another chance; returns how many there are.

    Args:
        user_id: whose turns.
        world: where.
        turn_ids: which of them; all of the user's by default.
        request_id: a call repeated with the same id has one effect and the first result.

    Raises:
        UnknownMemoryError: one of `turn_ids` is no turn of this user. Nothing was changed.
    """
    user = self.user(user_id, world)
    ids = door.texts(turn_ids, "turn_ids")
    shared = user._write(user._request(request_id))  # noqa: SLF001
    added: c.Added = self.call(c.Requeue(**shared, turn_ids=ids))
    self.ingestor.wake(user.key)
    return len(added.ids)


def drop_quarantined(  # noqa: D417 (as above)
    self: Runtime,
    user_id: str,
    world: str = DEFAULT_WORLD,
    *,
    turn_ids: Sequence[str] = (),
    request_id: str | None = None,
) -> int:
    """Give quarantined turns up; returns how many there are.

    A turn that is given up stays a message, as if it had been added with `infer=False`: it
    answers searches, and no memories are made of it. The text is gone only with its user
    (`User.forget`). It is embedded now, if its embedding was not what failed.

    Args:
        user_id: whose turns.
        world: where.
        turn_ids: which of them; all of the user's by default.
        request_id: a call repeated with the same id gives up the same turns, and no others.

    Raises:
        UnknownMemoryError: one of `turn_ids` is no turn of this user in quarantine. Nothing
            was changed.
        RequestReusedError: the request id was used before for other turns.
    """
    user = self.user(user_id, world)
    ids = door.texts(turn_ids, "turn_ids")

    def chosen() -> list[str]:
        away = [t for u in self.quarantined(world) if u.user_id == user_id for t in u.turn_ids]
        if unknown := sorted(set(ids) - set(away)):
            msg = f"no turn {', '.join(unknown)} of user {user_id!r} is in quarantine"
            raise UnknownMemoryError(msg, user_id=user_id)
        return [turn_id for turn_id in away if turn_id in ids or not ids]

    # Which they are is kept first: once they are given up, nobody could tell.
    known = mark(user.key, request_id, "drop_quarantined", ids)
    wanted = self.repeats.once(user.key, known, list[str], chosen)
    if wanted:
        own = part_of(request_id, "drop_quarantined") or self.new_request_id()
        self.call(_giving_up(user, wanted, own))
    return len(wanted)


def _giving_up(user: User, turn_ids: Sequence[str], request_id: str | None) -> c.Settle:
    """Return the command that settles quarantined turns as skipped, with their vectors if they can
    be made: whatever failed may be the embedding."""
    texts = [user.get(turn_id).text for turn_id in turn_ids]
    vectors: list[bytes | None]
    try:
        vectors = [user._embed(text) for text in texts]  # noqa: SLF001
    except (ModelError, UnavailableError) as exc:
        log.warning("given up without vectors", user_id=user.key.user_id, error=str(exc))
        vectors = [None] * len(turn_ids)
    return c.Settle(
        **user._write(request_id, with_vectors=any(vectors)),  # noqa: SLF001
        generation=user.stats().generation,
        outcomes=tuple(
            TurnOutcome(turn_id, "skipped", vector)
            for turn_id, vector in zip(turn_ids, vectors, strict=True)
        ),
    )
