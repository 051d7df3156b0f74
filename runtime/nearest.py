"""What is nearest in meaning, with nothing else counted: for those who rank by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reverie import door
from reverie.actors import commands as c
from reverie.actors.lane import MAX_BULK, raise_error
from reverie.memory_graph.errors import InvalidLimitError
from reverie.memory_graph.state import as_bytes

if TYPE_CHECKING:
    from reverie.runtime import Runtime
    from reverie.user import User


def nearest(
    self: User,
    question: str,
    *,
    limit: int = 10,
    offset: int = 0,
    filters: Mapping[str, Any] | None = None,
) -> list[c.Near]:
    """Return the active memories that are nearest to a question in meaning alone, best first, each
    with its cosine. `search` ranks better; this is for comparing and for thresholds on a cosine.

    Args:
        self: whose memories.
        question: in any language.
        limit: 1 to 10,000.
        offset: how many of the best to leave out, for the next page.
        filters: as in `search`.

    Raises:
        FilterError: a malformed filter.
        EmbedderMismatchError: the world's vectors are of another model.
    """
    (found,) = of_several([self], question, limit=limit, offset=offset, filters=filters)
    return found


def of_several(
    users: Sequence[User],
    question: str,
    *,
    limit: int,
    offset: int = 0,
    filters: Mapping[str, Any] | None = None,
) -> list[list[c.Near]]:
    """Return what `nearest` returns for each of some users of one world; one call a shard."""
    if not users:
        return []
    rt, world = users[0]._rt, users[0].key.world  # noqa: SLF001 (of our own package)
    checked, most, passed = door.filters(filters), door.limit(limit), _whole(offset)
    embedder = rt.mind.for_reading(world)
    asked = users[0].masking.question(door.question(question))
    vector = as_bytes(embedder.embed([asked], "query")[0])
    commands = [
        c.Nearest(
            **user._read(),  # noqa: SLF001
            vector=vector,
            embedder=embedder.info.id,
            limit=most,
            offset=passed,
            filters=user.masking.filters(checked),
        )
        for user in users
    ]
    return call_many(rt, commands)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = f"offset must be a whole number from 0, not {value!r}"
        raise InvalidLimitError(msg, what="offset")
    return value


def call_many(rt: Runtime, commands: Sequence[c.UserCommand]) -> list[Any]:
    """Return the answers to commands, in order, at most `MAX_BULK` of them at once; raises the
    first error of those that were sent together."""
    answers: list[Any] = []
    for start in range(0, len(commands), MAX_BULK):
        rt._require_open()  # noqa: SLF001
        part = rt._router.call_many(commands[start : start + MAX_BULK])  # noqa: SLF001
        answers += [raise_error(answer) for answer in part]
    return answers
