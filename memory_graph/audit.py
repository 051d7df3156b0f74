"""What became of memories that no longer answer: one line each, derived from the graph.

A memory that was replaced is not in it: it stands in the history of what replaced it. Times to live
that are over are told whether they were carried out already or not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from reverie.memory_graph import graph as g, nodes as n
from reverie.memory_graph.errors import InvalidLimitError
from reverie.memory_graph.visible import is_live

if TYPE_CHECKING:
    from reverie.memory_graph.state import UserMemory

Became: TypeAlias = Literal["archived", "consolidated", "expired", "quarantined", "spent"]


class AuditLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What became of a memory.

    Attributes:
        id: of the memory; "u" for the line of a budget of model calls.
        text: of the memory.
        at: when, in seconds; None where that was not kept (archived before there were budgets).
        became: "archived" (for a budget, its weight, or asked for), "consolidated" (archived for a
            budget or its weight, and told in a summary), "expired" (its time was over, or it was
            deleted), "quarantined"; or "spent": from then on the budget of model calls was spent.
        why: "budget: 500 memories", "weight: 0.02 of at least 0.05", "time to live: 3600 s", or
            the reason that was given.
        summary: id of the summary that tells it, of one that was consolidated.
    """

    id: str
    text: str = ""
    at: float | None
    became: Became
    why: str
    summary: str | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """Part of an audit, oldest first. `total` counts all lines; `cursor` is None on the last."""

    lines: list[AuditLine]
    total: int
    cursor: str | None


def spent_at(graph: g.MemoryGraph) -> float | None:
    """Return when the budget of model calls was first found spent."""
    owner = graph.node(n.USER_NODE)
    return owner.model_spent_at if isinstance(owner, n.User) else None


def lines(memory: UserMemory, now: float) -> list[AuditLine]:
    """Return a line for each memory that was put away or has ended by itself, oldest first."""
    found = [
        line
        for m in memory.graph.nodes(n.Memory)
        if isinstance(m, n.Memory) and (line := _line(m, now)) is not None
    ]
    if (at := spent_at(memory.graph)) is not None:
        why = "budget of the language model: extraction goes on by rules alone"
        found.append(AuditLine(id=n.USER_NODE, at=at, became="spent", why=why))
    return sorted(found, key=_place)


def _line(m: n.Memory, now: float) -> AuditLine | None:
    match m.status:
        case "active":
            if is_live(m, now) or m.ttl_s is None:
                return None
            why = f"time to live: {m.ttl_s:g} s"
            return AuditLine(
                id=m.id, text=m.text, at=m.recorded_at + m.ttl_s, became="expired", why=why
            )
        case "superseded":
            return None
        case "expired":
            ended = m.retired_at  # also of one that outlived its time before that was noted
            if ended is not None and m.ttl_s is not None:
                ended = min(ended, m.recorded_at + m.ttl_s)
            return AuditLine(id=m.id, text=m.text, at=ended, became="expired", why=m.retired_why)
        case _:
            return AuditLine(
                id=m.id,
                text=m.text,
                at=m.away_at,
                became=m.status if m.gist is None else "consolidated",
                why=m.retired_why,
                summary=m.gist,
            )


def _place(line: AuditLine) -> tuple[bool, float, int]:
    number = 0 if line.id == n.USER_NODE else g.number(line.id)
    return line.at is not None, line.at or 0.0, number


def _cursor(place: tuple[bool, float, int]) -> str:
    known, at, number = place
    return f"{int(known)}|{at!r}|{number}"


def page(memory: UserMemory, now: float, limit: int, after: str | None) -> AuditPage:
    """Return one page of the audit.

    Args:
        memory: the user's state.
        now: of the reader, in seconds.
        limit: lines on it.
        after: the cursor of the page before; a line that is gone by now does not disturb it.

    Raises:
        InvalidLimitError: the cursor is none that was given.
    """
    every = lines(memory, now)
    rest = every
    if after is not None:
        try:
            known, at, number = after.split("|")
            place = (known == "1", float(at), int(number))
        except ValueError:
            place = (False, math.nan, 0)
        if not math.isfinite(place[1]) or _cursor(place) != after:
            msg = f"{after!r} is no cursor of an audit"
            raise InvalidLimitError(msg, cursor=after)
        rest = [line for line in every if _place(line) > place]
    shown = rest[:limit]
    cursor = None
    if len(rest) > limit:
        cursor = _cursor(_place(shown[-1]))
    return AuditPage(shown, len(every), cursor)
