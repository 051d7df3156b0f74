"""From a question to ranked, explained hits: candidates, a walk, signals, one weighted sum.

    candidates   nearest vectors, BM25, entities named in the question
    walk         personalised PageRank from the best of them (spread.py)
    signals      each normalised to about 0..1, times its weight in WEIGHTS
    score        the sum of the parts, so every hit explains itself

Signals are fused as normalised scores, not as ranks: fusing ranks with a weak embedder measured
worse than BM25 alone. Vectors, times and the question arrive as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import decay
from reverie.memory_graph import nodes as n
from reverie.memory_graph.filters import Predicate, Readable
from reverie.memory_graph.spread import Reached, spread
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.text import name_key, normalise, query_terms
from reverie.memory_graph.views import Hit, ItemType, item
from reverie.memory_graph.visible import Moment, is_visible

# The weight of each signal. First values, by hand; z-scores are divided by 5 as the spread of
# cosines over one conversation is about that wide.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "meaning": 1.0,
        "words": 1.0,
        "entity": 0.2,
        "graph": 0.6,
        "recency": 0.1,
        "importance": 0.15,
        "outdated": -0.4,
    }
)
Z_SPREAD = 5.0
POOL = 40  # candidates per signal, at least
SEEDS = 8  # best candidates of each signal that the walk starts from
MAX_NAME_WORDS = 4
MAX_HAN_NAME = 8
MAX_QUERY_CHARS = 2000

READABLE: dict[type[n.Node], ItemType] = {
    n.Memory: "memory",
    n.Message: "message",
    n.Summary: "summary",
}


class Query(msgspec.Struct, frozen=True):
    """A question, ready for the graph.

    Attributes:
        text: the question; only its first 2,000 characters count for words and names.
        vector: its unit vector, float32 of shape (dim,), or None to go without meaning.
        moment: from where it is asked.
        limit: how many hits at most.
        types: which types of item may answer.
        where: further condition on nodes, or None.
        weights: weight of each signal.
    """

    text: str
    vector: NDArray[np.float32] | None
    moment: Moment
    limit: int = 10
    types: frozenset[str] = frozenset({"memory", "message", "summary"})
    where: Predicate | None = None
    weights: Mapping[str, float] = WEIGHTS


class _Found(msgspec.Struct):
    """A candidate under scoring."""

    node: Readable
    cosine: float = float("nan")
    bm25: float = float("nan")
    parts: dict[str, float] = {}
    score: float = 0.0


def search(memory: UserMemory, query: Query) -> list[Hit]:
    """Return at most `query.limit` hits, best first; the same state and query give the same."""
    text = query.text[:MAX_QUERY_CHARS]
    allowed = _allowed(memory, query)
    terms = query_terms(text)
    pool = max(POOL, 2 * query.limit)
    names = entities_named(memory, text)

    near: list[tuple[str, float]] = []
    mean, std = 0.0, 1.0  # of the question's cosines over all of this user's texts
    if query.vector is not None and memory.vectors is not None:
        near = hits = memory.vectors.search(query.vector, pool, allowed)
        mean, std = hits.mean, hits.std
    lexical = memory.words.search([term for term, _ in terms], pool, allowed)

    reached = spread(memory.graph, _seeds(near, lexical, names, mean, std), query.moment)
    found = _candidates(memory, near, lexical, reached, allowed)
    _fill(memory, query, found, [term for term, _ in terms])
    _score(memory, query, found, reached, frozenset(names), (mean, std))
    best = sorted(found.values(), key=lambda f: (-f.score, -_time(f.node), f.node.id))
    return [
        _hit(memory, query, f, reached, names, terms) for f in best[: query.limit] if f.score > 0
    ]


def entities_named(memory: UserMemory, text: str) -> dict[str, str]:
    """Return {entity id: name as it stands in the text}, by exact name or alias.

    Spaced scripts are read in runs of up to four words, Han and kana in runs of characters.
    """
    names = memory.graph.names
    found: dict[str, str] = {}
    words = text.split()
    for size in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for i in range(len(words) - size + 1):
            phrase = " ".join(words[i : i + size])
            entity = names.get(name_key(phrase)) or names.get(name_key(_unpossessed(phrase)))
            if entity is not None:
                found.setdefault(entity, phrase)
    if any(_is_unspaced(char) for char in text):
        folded = normalise(text)
        for size in range(MAX_HAN_NAME, 1, -1):
            for i in range(len(folded) - size + 1):
                if (entity := names.get(folded[i : i + size])) is not None:
                    found.setdefault(entity, folded[i : i + size])
    return found


def _is_unspaced(char: str) -> bool:
    """Han, kana or Hangul: names stand in the text without spaces around them."""
    return "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3"


def _unpossessed(phrase: str) -> str:
    phrase = phrase.rstrip("?!.,;:")
    for ending in ("'s", "\u2019s", "'", "\u2019"):
        if phrase.endswith(ending):
            return phrase[: -len(ending)]
    return phrase


def _allowed(memory: UserMemory, query: Query) -> Callable[[str], bool]:
    graph, types, moment, where = memory.graph, query.types, query.moment, query.where

    def allowed(node_id: str) -> bool:
        node = graph.node(node_id)
        return (
            isinstance(node, n.Memory | n.Message | n.Summary)
            and READABLE[type(node)] in types
            and is_visible(node, moment)
            and (where is None or where(node))
        )

    return allowed


def _seeds(
    near: list[tuple[str, float]],
    lexical: list[tuple[str, float]],
    names: Mapping[str, str],
    mean: float,
    std: float,
) -> dict[str, float]:
    seeds: dict[str, float] = {}
    for node_id, cosine in near[:SEEDS]:
        seeds[node_id] = max(0.0, (cosine - mean) / std / Z_SPREAD)
    top = lexical[0][1] if lexical else 1.0
    for node_id, score in lexical[:SEEDS]:
        seeds[node_id] = seeds.get(node_id, 0.0) + score / top
    for entity in names:
        seeds[entity] = seeds.get(entity, 0.0) + 1.0
    return seeds


def _candidates(
    memory: UserMemory,
    near: list[tuple[str, float]],
    lexical: list[tuple[str, float]],
    reached: Mapping[str, Reached],
    allowed: Callable[[str], bool],
) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for node_id, cosine in near:
        found[node_id] = _Found(_readable(memory, node_id), cosine=cosine)
    for node_id, score in lexical:
        if node_id in found:
            found[node_id].bm25 = score
        else:
            found[node_id] = _Found(_readable(memory, node_id), bm25=score)
    for node_id in reached:
        if node_id not in found and allowed(node_id):
            found[node_id] = _Found(_readable(memory, node_id))
    return found


def _readable(memory: UserMemory, node_id: str) -> Readable:
    node = memory.graph.node(node_id)
    assert isinstance(node, n.Memory | n.Message | n.Summary)  # noqa: S101 (by `allowed`)
    return node


def _fill(memory: UserMemory, query: Query, found: dict[str, _Found], terms: list[str]) -> None:
    """Give every candidate both similarities, whichever signal brought it in."""
    if query.vector is not None and memory.vectors is not None:
        missing = [i for i, f in found.items() if f.cosine != f.cosine]  # noqa: PLR0124 (NaN)
        if missing:
            for i, cosine in zip(
                missing, memory.vectors.similarities(query.vector, missing).tolist(), strict=True
            ):
                found[i].cosine = cosine
    missing = [i for i, f in found.items() if f.bm25 != f.bm25]  # noqa: PLR0124
    if missing and terms:
        for i, score in zip(missing, memory.words.score(terms, missing).tolist(), strict=True):
            found[i].bm25 = score


def _score(  # noqa: PLR0913, PLR0917
    memory: UserMemory,
    query: Query,
    found: dict[str, _Found],
    reached: Mapping[str, Reached],
    names: frozenset[str],
    background: tuple[float, float],
) -> None:
    mean, std = background
    weights = query.weights
    top_bm25 = max((f.bm25 for f in found.values() if f.bm25 > 0), default=1.0)
    masses = [reached[i].mass for i in found if i in reached]
    top_mass = max(masses, default=1.0) or 1.0
    now = query.moment.now if query.moment.as_of is None else query.moment.as_of
    present = query.moment.as_of is None and query.moment.valid_at is None
    mentioning = _mentioning(memory, names)
    for node_id, f in found.items():
        parts = {}
        if f.cosine > mean:
            parts["meaning"] = weights["meaning"] * min(1.5, (f.cosine - mean) / std / Z_SPREAD)
        if f.bm25 > 0:
            parts["words"] = weights["words"] * f.bm25 / top_bm25
        if (there := reached.get(node_id)) is not None:
            parts["graph"] = weights["graph"] * there.mass / top_mass
        if node_id in mentioning:
            parts["entity"] = weights["entity"]
        parts["recency"] = weights["recency"] * decay.recency(_time(f.node), now)
        if isinstance(f.node, n.Memory):
            parts["importance"] = weights["importance"] * f.node.importance
        elif present and isinstance(f.node, n.Message) and is_outdated(memory, f.node):
            parts["outdated"] = weights["outdated"]
        f.parts = parts
        f.score = sum(parts.values())


def _mentioning(memory: UserMemory, names: frozenset[str]) -> frozenset[str]:
    """Ids of the newest texts that mention an entity named in the question."""
    return frozenset(
        other
        for name in names
        for other, edge, outgoing in memory.graph.around(name, 256)
        if not outgoing and edge.kind == n.CONTAINS_ENTITY
    )


def is_outdated(memory: UserMemory, message: n.Message) -> bool:
    """Return whether memories came from a message and none of them is believed any more."""
    kept = [memory.graph.node(m) for m, _ in memory.graph.into(message.id, n.DERIVED_FROM)]
    memories = [m for m in kept if isinstance(m, n.Memory)]
    return bool(memories) and all(m.retired_at is not None for m in memories)


def _time(node: Readable) -> float:
    match node:
        case n.Message():
            return node.said_at
        case n.Summary():
            return node.to_at
        case n.Memory():
            at = node.recorded_at if node.valid_from is None else node.valid_from
            return at if node.last_access is None else max(at, node.last_access)


# -- reasons ---------------------------------------------------------------------------


def _hit(  # noqa: PLR0913, PLR0917
    memory: UserMemory,
    query: Query,
    found: _Found,
    reached: Mapping[str, Reached],
    names: Mapping[str, str],
    terms: list[tuple[str, str]],
) -> Hit:
    fields = item(memory, found.node)
    reasons = list(_reasons(memory, query, found, reached, names, terms))
    return Hit(
        **fields,  # type: ignore[arg-type]
        score=round(found.score, 6),
        parts={k: round(v, 6) for k, v in found.parts.items()},
        reasons=tuple(reasons),
    )


def _reasons(  # noqa: PLR0913, PLR0917
    memory: UserMemory,
    query: Query,
    found: _Found,
    reached: Mapping[str, Reached],
    names: Mapping[str, str],
    terms: list[tuple[str, str]],
) -> list[str]:
    parts, node_id = found.parts, found.node.id
    reasons: list[str] = []
    if parts.get("meaning", 0.0) > 0.1 * query.weights["meaning"]:
        reasons.append(f"similar in meaning ({found.cosine:.2f})")
    if "words" in parts and (shared := memory.words.matched(terms, node_id)):
        reasons.append(f"shares the words: {', '.join(shared)}")
    reasons += [
        f"mentions {memory.display(entity)}"
        for entity in names
        if memory.graph.edge(node_id, entity, n.CONTAINS_ENTITY) is not None
    ]
    there = reached.get(node_id)
    if there is not None and there.came_from is not None:
        reasons.append(_path(memory, node_id, reached))
    if "outdated" in parts:
        reasons.append("what it says was replaced later")
    if isinstance(found.node, n.Memory) and found.node.retired_at is not None:
        reasons.append(f"no longer holds ({found.node.retired_why or found.node.status})")
    if not reasons:
        reasons.append("recent" if "recency" in parts else "important")
    return reasons


_STEP = {
    n.PREVIOUS: "next to",
    n.DERIVED_FROM: "said in",
    n.CONTAINS_ENTITY: "mentions",
    n.SUPERSEDES: "replaced",
    n.RELATED_TO: "seen with",
    n.SUMMARIZES: "summary of",
    n.IN_TOPIC: "topic",
}


def _path(memory: UserMemory, node_id: str, reached: Mapping[str, Reached]) -> str:
    """Return the way from a seed to a node: "2 steps: Oslo - works at - Ana - mentions - ..."."""
    words: list[str] = []
    here: str = node_id
    steps = 0
    while (there := reached[here]).came_from is not None:
        words += [memory.display(here) if steps else "this", _STEP.get(there.via, there.via.replace("_", " "))]
        here = there.came_from
        steps += 1
    words.append(memory.display(here))
    return f"{steps} {'step' if steps == 1 else 'steps'}: {' - '.join(reversed(words))}"
