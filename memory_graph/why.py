"""Why a memory, message or summary did or did not come up for a question.

The question is asked again, and every candidate is ranked, not only those that are shown. What is
not among them was filtered out, or nothing brought it near: each is told, with what it lacked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from reverie.memory_graph import nodes as n
from reverie.memory_graph.filters import Readable, compile_filter
from reverie.memory_graph.naming import entities_named, speakers_named, terms_without
from reverie.memory_graph.search import MAX_QUERY_CHARS, NEAR, READABLE, Query, search
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.views import Hit, Item, as_item
from reverie.memory_graph.visible import Moment, as_seen, seen

MAX_AHEAD = 10  # hits that are told to stand before it
_MIN_LOSS = 0.0005  # a smaller difference would be shown as nothing

Verdict: TypeAlias = Literal["shown", "outranked", "not_a_candidate", "filtered", "unknown"]
FilteredBy: TypeAlias = Literal[
    "type", "as_of", "valid_at", "archived", "retired", "ttl", "quarantined", "filter"
]


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became of one item when a question was asked.

    Attributes:
        verdict: "shown" among the hits; "outranked" by them; "not_a_candidate", so never scored;
            "filtered" out; "unknown", no memory, message or summary of this user.
        item_id: its node id (as it was given, when it is unknown).
        item: itself, as it was believed at the moment that is asked from; None when unknown.
        limit: how many hits were asked for.
        candidates: how many items were scored.
        rank: its place among them, from 1; None when it was not scored.
        score: sum of `parts`; None when it was not scored.
        parts: contribution of each signal to its score.
        filtered_by: all that keeps it out, when it was filtered.
        ahead: when it was outranked, the last of the hits that were shown, at most `MAX_AHEAD`;
            the last of these is the one that it would have had to beat.
        lost: by signal, how far that hit is ahead of it, the most first.
        shares: words of the question that it has.
        cosine: of its own vector with the question's; None without one of the vectors.
        cosine_taken: of the last of the nearest that became candidates by meaning.
        reasons: all of this in lines for people.
    """

    verdict: Verdict
    item_id: str
    item: Item | None = None
    limit: int
    candidates: int = 0
    rank: int | None = None
    score: float | None = None
    parts: dict[str, float] = {}
    filtered_by: tuple[FilteredBy, ...] = ()
    ahead: tuple[Hit, ...] = ()
    lost: dict[str, float] = {}
    shares: tuple[str, ...] = ()
    cosine: float | None = None
    cosine_taken: float | None = None
    reasons: tuple[str, ...]


def why(
    memory: UserMemory,
    query: Query,
    item_id: str,
    filters: Mapping[str, Any] | None = None,
    *,
    told_as: Callable[[str], str] = str,
) -> Explanation:
    """Return why an item is or is not among the hits of a question.

    Args:
        memory: of the user.
        query: the question; with `filters`, its `where` is what they compile to.
        item_id: a node id, or the external id of a message.
        filters: the filter as it was given, to tell which part of it kept the item out.
        told_as: how ids are told in the reasons.
    """
    node = memory.graph.node(item_id)
    if not isinstance(node, Readable):
        node = memory.graph.node(memory.graph.externals.get(item_id, ""))
    if not isinstance(node, Readable):
        return unknown(item_id, query.limit)
    text = query.text[:MAX_QUERY_CHARS]
    names = entities_named(memory, text)
    ranked = search(memory, msgspec.structs.replace(query, whole=True))
    said_by = speakers_named(memory, text, names)
    hits = {hit.id: (rank, hit) for rank, hit in enumerate(ranked, 1)}
    known: dict[str, Any] = {
        "item_id": node.id,
        "item": as_item(memory, node, query.moment),
        "limit": query.limit,
        "candidates": len(ranked),
        "shares": tuple(memory.words.matched(terms_without(memory, text, said_by), node.id)),
    }
    if node.id in hits:
        return _scored(known, *hits[node.id], ranked[: query.limit], told_as)
    if against := list(_against(memory, query, node, filters, told_as)):
        return Explanation(
            verdict="filtered",
            **known,
            filtered_by=tuple(dict.fromkeys(by for by, _ in against)),
            reasons=tuple(line for _, line in against),
        )
    return _not_a_candidate(memory, query, node, known, [*names, *(said_by - names.keys())])


def unknown(item_id: str, limit: int) -> Explanation:
    """Return what is told of an item that is none of this user's."""
    told = f"{item_id} is no memory, message or summary of this user"
    return Explanation(verdict="unknown", item_id=item_id, limit=limit, reasons=(told,))


def passed_over(told: Explanation, shown: Sequence[Hit], instead: str | None = None) -> Explanation:
    """Return what is told of an item that comes up in its own graph, and not among what is shown
    of several.

    Args:
        told: of its own graph; it is "shown" there.
        shown: the hits of all, best first.
        instead: id of the hit that says the same of the same event, if there is one.
    """
    place, *speaks = told.reasons
    lost, line = _lost_to(shown[-1], told.score or 0.0, told.parts, shown[-1].id)
    if instead is not None:
        lost, line = {}, f"the same is shown as {instead}"
    lines = (f"{place}; {len(shown)} of all were shown", line)
    return msgspec.structs.replace(
        told,
        verdict="outranked",
        ahead=tuple(shown[-MAX_AHEAD:]),
        lost=lost,
        reasons=(*lines, f"what speaks for this: {'; '.join(speaks)}"),
    )


def _lost_to(
    last: Hit, score: float, parts: Mapping[str, float], name: str
) -> tuple[dict[str, float], str]:
    """Return by what a hit is ahead of an item of this score, and a line about it."""
    names = {*last.parts, *parts}
    by_signal = {s: last.parts.get(s, 0.0) - parts.get(s, 0.0) for s in names}
    losses = [(s, x) for s, x in by_signal.items() if x >= _MIN_LOSS]
    lost = dict(sorted(losses, key=lambda pair: (-pair[1], pair[0])))
    behind = ", ".join(f"{signal} {value:.2f}" for signal, value in lost.items())
    line = f"the last of them, {name}, is {last.score - score:.2f} ahead"
    return lost, line + (f"; it has more by {behind}" if behind else "")


def _scored(
    known: Mapping[str, Any],
    rank: int,
    hit: Hit,
    shown: Sequence[Hit],
    told_as: Callable[[str], str],
) -> Explanation:
    scored = {**known, "rank": rank, "score": hit.score, "parts": hit.parts}
    place = f"rank {rank} of {known['candidates']} that were scored"
    if rank <= len(shown):
        return Explanation(verdict="shown", **scored, reasons=(place, *hit.reasons))
    lost, line = _lost_to(shown[-1], hit.score, hit.parts, told_as(shown[-1].id))
    lines = [
        f"{place}, {len(shown)} were shown",
        line,
        f"what speaks for this: {'; '.join(hit.reasons)}",
    ]
    return Explanation(
        verdict="outranked",
        **scored,
        ahead=tuple(shown[-MAX_AHEAD:]),
        lost=lost,
        reasons=tuple(lines),
    )


# -- what keeps an item out --------------------------------------------------------------


def _against(
    memory: UserMemory,
    query: Query,
    node: Readable,
    filters: Mapping[str, Any] | None,
    told_as: Callable[[str], str],
) -> Iterator[tuple[FilteredBy, str]]:
    """Yield all that keeps an item out, with a line about it; nothing for one that may answer."""
    kind = READABLE[type(node)]
    if kind not in query.types:
        yield "type", f"it is a {kind}; asked for were only: {', '.join(sorted(query.types))}"
    hidden = hidden_by(node, query.moment)
    if hidden is not None:
        by, told = hidden
        after = sorted(told_as(new) for new, _ in memory.graph.into(node.id, n.SUPERSEDES))
        if by == "retired" and after:
            told = f"{told}; replaced by {', '.join(after)}"
        yield by, told
    looked_at = seen(node, query.moment)
    if query.where is not None and not query.where(looked_at):
        parts = [] if filters is None else list(_failing(memory, filters, looked_at))
        yield "filter", "the filter does not let it through" + "".join(f": {p}" for p in parts[:1])


def hidden_by(node: Readable, moment: Moment) -> tuple[FilteredBy, str] | None:
    """Say why a read from `moment` does not see a text; None when it does: see `is_visible`."""
    as_of, valid_at = moment.as_of, moment.valid_at
    if as_of is not None and node.recorded_at > as_of:
        return "as_of", "it was recorded after the time of as_of"
    match node:
        case n.Message():
            if valid_at is not None and node.said_at > valid_at:
                return "valid_at", "it was said after the time of valid_at"
            return None
        case n.Summary():
            if node.retired_at is None or (as_of is not None and node.retired_at > as_of):
                return None
            return "retired", "this summary was replaced by a later one"
        case n.Memory():
            return _memory_hidden_by(as_seen(node, moment), moment)


def _memory_hidden_by(memory: n.Memory, moment: Moment) -> tuple[FilteredBy, str] | None:
    if memory.status == "quarantined":
        return "quarantined", "it is in quarantine"
    if memory.status == "archived" and not moment.archived:
        return "archived", "it is archived; include_archived finds it"
    at = moment.now if moment.as_of is None else moment.as_of
    if memory.ttl_s is not None and memory.recorded_at + memory.ttl_s <= at:
        told = "its time to live is over; include_retired finds it"
        return None if moment.retired else ("ttl", told)
    if memory.status == "expired":
        told = f"it was ended ({memory.retired_why or 'deleted'}); include_retired finds it"
        return None if moment.retired else ("retired", told)
    if moment.valid_at is not None:
        begins = memory.recorded_at if memory.valid_from is None else memory.valid_from
        if begins > moment.valid_at:
            return "valid_at", "it did not hold yet at the time of valid_at"
        if memory.valid_to is not None and memory.valid_to <= moment.valid_at:
            return "valid_at", "it held no more at the time of valid_at"
        return None
    if memory.retired_at is None or moment.retired:
        return None
    return "retired", f"it no longer holds ({memory.status}); include_retired finds it"


def _failing(memory: UserMemory, spec: Mapping[str, Any], node: Readable) -> Iterator[str]:
    """Yield, as JSON, the smallest parts of a filter, joined by AND, that a node does not pass."""
    for key, value in spec.items():
        if key == "AND":
            for part in value:
                yield from _failing(memory, part, node)
        elif not compile_filter({key: value}, memory)(node):
            yield msgspec.json.encode({key: value}, enc_hook=str).decode()


# -- what did not bring it near ----------------------------------------------------------


def _not_a_candidate(
    memory: UserMemory,
    query: Query,
    node: Readable,
    known: Mapping[str, Any],
    names: Sequence[str],
) -> Explanation:
    cosine, taken = _cosines(memory, query, node)
    words = known["shares"]
    lines = [
        f"it shares the words {', '.join(words)}, but others match better"
        if words
        else "it shares no words with the question",
        _about_names(memory, node, names),
    ]
    if query.vector is None:
        lines.append("the question was asked without a vector")
    elif cosine is None:
        lines.append("it has no vector")
    elif taken is not None:
        lines.append(f"by meaning it is at {cosine:.2f}, the last that was taken at {taken:.2f}")
    lines.append("no walk from the best leads to it")
    return Explanation(
        verdict="not_a_candidate",
        **known,
        cosine=cosine,
        cosine_taken=taken,
        reasons=tuple(lines),
    )


def _about_names(memory: UserMemory, node: Readable, names: Sequence[str]) -> str:
    if not names:
        return "the question names nobody and nothing that is known"
    shown = ", ".join(memory.display(name) for name in names)
    graph = memory.graph
    kinds = (n.CONTAINS_ENTITY, n.SENT_BY)
    if any(graph.edge(node.id, name, kind) is not None for name in names for kind in kinds):
        return f"it has to do with what the question names ({shown}), but so have better ones"
    return f"it has nothing to do with what the question names: {shown}"


def _cosines(memory: UserMemory, query: Query, node: Readable) -> tuple[float | None, float | None]:
    """Return (cosine of an item, cosine of the last that became a candidate by meaning)."""
    if query.vector is None or memory.vectors is None:
        return None, None

    def may_answer(node_id: str) -> bool:
        other = memory.graph.node(node_id)
        return isinstance(other, Readable) and not any(_against(memory, query, other, None, str))

    near = memory.vectors.search(query.vector, max(NEAR, query.limit), may_answer)
    (own,) = memory.vectors.similarities(query.vector, [node.id])
    return (None if math.isnan(own) else own), (near[-1][1] if near else None)
