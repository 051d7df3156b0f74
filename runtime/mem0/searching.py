"""`search`: memories ranked by their cosine, as mem0 does, or by all that reverie knows."""

from __future__ import annotations

from typing import Any, NamedTuple

from reverie.mem0.config import Version
from reverie.mem0.filters import Predicate
from reverie.mem0.payload import shown
from reverie.mem0.scope import Scope
from reverie.mem0.store import FEW, MOST, Record, Store

NONE_BELOW = -2.0  # less than any cosine


class Asked(NamedTuple):
    """A checked search. `threshold` is a cosine; None lets all through."""

    query: str
    scope: Scope
    fits: Predicate
    limit: int
    threshold: float | None
    explain: bool
    version: Version


class _Ranked(NamedTuple):
    record: Record
    similarity: float
    score: float
    parts: dict[str, float]


def found(store: Store, asked: Asked, ranking: str) -> tuple[list[Record], list[dict[str, Any]]]:
    """Return the memories that answer, best first, and as mem0 shows them."""
    ranked = _by_reverie(store, asked) if ranking == "reverie" else _by_similarity(store, asked)
    items = []
    for one in ranked:
        item = shown(one.record.id, one.record.payload, version=asked.version)
        item["score"] = one.score
        if asked.explain:
            item["score_details"] = _details(one, asked)
        items.append(item)
    return [one.record for one in ranked], items


def _by_similarity(store: Store, asked: Asked) -> list[_Ranked]:
    near = store.nearest(asked.scope, asked.fits, asked.query, asked.limit)
    least = NONE_BELOW if asked.threshold is None else asked.threshold
    return [_Ranked(record, cosine, cosine, {}) for record, cosine in near if cosine >= least]


def _by_reverie(store: Store, asked: Asked) -> list[_Ranked]:
    """Rank by words, meaning, people, time and the graph; the threshold is on the cosine."""
    pool = min(MOST, max(4 * asked.limit, FEW))
    near = store.nearest(asked.scope, asked.fits, asked.query, pool)
    by_id = {(record.owner, record.item.id): (record, cosine) for record, cosine in near}
    least = NONE_BELOW if asked.threshold is None else asked.threshold
    ranked: list[_Ranked] = []
    for owner in dict.fromkeys(record.owner for record, _ in near):
        wanted = [record.item.id for record, _ in near if record.owner == owner]
        for hit in store.user(owner).search(
            asked.query, limit=pool, types="memory", filters={"id": {"in": wanted}}
        ):
            record, cosine = by_id[owner, hit.id]
            if cosine >= least:
                ranked.append(_Ranked(record, cosine, hit.score, hit.parts))
    ranked.sort(key=lambda one: -one.score)
    return ranked[: asked.limit]


def _details(one: _Ranked, asked: Asked) -> dict[str, Any]:
    parts = one.parts
    return {
        "semantic_score": one.similarity,
        "bm25_score": parts.get("words", 0.0),
        "entity_boost": parts.get("entity", 0.0),
        "raw_score": one.score,
        "max_possible_score": 1.0,
        "final_score": one.score,
        "threshold": asked.threshold,
    } | ({"parts": parts} if parts else {})
