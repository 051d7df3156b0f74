"""From a question to ranked, explained hits: candidates, a walk, signals, one weighted sum.

    candidates   nearest vectors, BM25, entities named in the question
    walk         personalised PageRank from the best of them (spread.py)
    signals      each normalised to about 0..1, times its weight in WEIGHTS
    score        the sum of the parts, so every hit explains itself

Signals are fused as normalised scores, not as ranks: fusing ranks with a weak embedder measured
worse than BM25 alone. Vectors, times and the question arrive as arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from heapq import heappush, heappushpop
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import decay
from reverie.memory_graph import nodes as n
from reverie.memory_graph.filters import Predicate, Readable
from reverie.memory_graph.graph import MEMORY, MESSAGE, SUMMARY
from reverie.memory_graph.spread import Reached, spread
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.text import normalise, query_terms
from reverie.memory_graph.topk import rounded
from reverie.memory_graph.vectors import Hits
from reverie.memory_graph.views import Hit, ItemType, item
from reverie.memory_graph.visible import Moment, as_seen, is_visible, seen
from reverie.memory_graph.words import Asked

# The weight of each signal. First values, by hand; z-scores are divided by 5 as the spread of
# cosines over one conversation is about that wide.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "meaning": 1.0,
        "words": 1.0,
        "entity": 0.8,
        "graph": 0.6,
        "recency": 0.1,
        "importance": 0.15,
        "outdated": -1.0,
    }
)
Z_SPREAD = 5.0
MOST_MEANING = 1.5
OWN_WORDS = frozenset({"i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "i'll"})
OWN_HAN = "\u6211"  # I, in Chinese; also in "we", which includes the owner
POOL = 24  # candidates per signal, at least
SEEDS = 6  # best candidates of each signal that the walk starts from
MAX_NAME_WORDS = 4
MAX_HAN_NAME = 8
MAX_QUERY_CHARS = 2000
# Han, kana and Hangul: names stand in such a text without spaces around them.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_OUTER = ".,;:!?\"'()[]{}<>-…“”「」《》。、"  # may stand around a name

TEXTS = f"{MEMORY}{MESSAGE}{SUMMARY}"  # first letters of the ids of what can answer
READABLE: dict[type[n.Node | None], ItemType] = {
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


class _Found(NamedTuple):
    """A candidate with its score."""

    node: Readable
    cosine: float
    parts: dict[str, float]
    score: float


def search(memory: UserMemory, query: Query) -> list[Hit]:
    """Return at most `query.limit` hits, best first.

    The same state and query give the same, as long as the vector search is exact; an approximate
    index (of a large user) may propose other candidates by how it came to be built.
    """
    return search_many(memory, [query])[0]


def search_many(memory: UserMemory, queries: Sequence[Query]) -> list[list[Hit]]:
    """Return what `search` does for each of several queries; what they share is done once."""
    texts = [query.text[:MAX_QUERY_CHARS] for query in queries]
    asked = [memory.words.ask(query_terms(text)) for text in texts]
    allowed = [_allowed(memory, query) for query in queries]
    near = _nearest(memory, queries, allowed)
    looks: dict[tuple[Moment, int], _Look] = {}
    found: list[list[Hit]] = []
    for place, query in enumerate(queries):
        seen_from = (query.moment, id(query.weights))
        look = looks.get(seen_from)
        if look is None:
            look = looks[seen_from] = _Look(memory, query.moment, query.weights)
        names = entities_named(memory, texts[place])
        found.append(_answer(look, query, asked[place], near[place], names, allowed[place]))
    return found


Allowed: TypeAlias = Callable[[str], bool] | None


def _pool(query: Query) -> int:
    return max(POOL, 2 * query.limit)


def _nearest(
    memory: UserMemory, queries: Sequence[Query], allowed: Sequence[Allowed]
) -> list[Hits]:
    """Return the nearest vectors of each query; those without a filter are looked up together."""
    near = [Hits([], (0.0, 1.0))] * len(queries)
    if memory.vectors is None:
        return near
    together: dict[int, list[int]] = {}
    for place, query in enumerate(queries):
        if query.vector is None:
            continue
        if allowed[place] is None:
            together.setdefault(_pool(query), []).append(place)
        else:
            near[place] = memory.vectors.search(query.vector, _pool(query), allowed[place])
    for pool, places in together.items():
        vectors = [v for place in places if (v := queries[place].vector) is not None]
        for place, hits in zip(places, memory.vectors.search_many(vectors, pool), strict=True):
            near[place] = hits
    return near


def _answer(
    look: _Look,
    query: Query,
    asked: Asked,
    near: Hits,
    names: Mapping[str, str],
    allowed: Allowed,
) -> list[Hit]:
    memory = look.memory
    lexical = asked.top(_pool(query), allowed)
    reached = spread(memory.graph, _seeds(near, lexical, names), query.moment)
    matching = dict.fromkeys([*(i for i, _ in near), *(i for i, _ in lexical)])
    walked = (i for i in reached if i[0] in TEXTS and i not in matching)
    ids = [*matching, *(i for i in walked if allowed is None or allowed(i))]
    best = _best(look, query, ids, asked, reached, names, near)
    matched = asked.matched([f.node.id for f in best])
    return [
        _hit(look, query, f, reached, names, words) for f, words in zip(best, matched, strict=True)
    ]


def entities_named(memory: UserMemory, text: str) -> dict[str, str]:
    """Return {entity id: name as it stands in the text}, by exact name or alias.

    The first person names the owner, whose id is that of the User node. Spaced scripts are read in
    runs of up to four words, Han and kana in runs of characters.
    """
    names = memory.graph.names
    found: dict[str, str] = {}
    folded = normalise(text)
    words = folded.split()
    longest = max(1, min(MAX_NAME_WORDS, memory.graph.longest_name, len(words)))
    for size in range(longest, 0, -1):
        for i in range(len(words) - size + 1):
            phrase = " ".join(words[i : i + size]).strip(_OUTER)
            entity = names.get(phrase) or names.get(phrase.removesuffix("'s").removesuffix("'"))
            if entity is not None:
                found.setdefault(entity, phrase)
            elif phrase in OWN_WORDS:
                found.setdefault(n.USER_NODE, phrase)
    if _UNSPACED.search(folded):
        for size in range(MAX_HAN_NAME, 1, -1):
            for i in range(len(folded) - size + 1):
                if (entity := names.get(folded[i : i + size])) is not None:
                    found.setdefault(entity, folded[i : i + size])
        if OWN_HAN in folded:
            found.setdefault(n.USER_NODE, OWN_HAN)
    return found


def _allowed(memory: UserMemory, query: Query) -> Allowed:
    """Return the test whether a text may answer, each judged once; None when every one may."""
    node_of, types, moment, where = memory.graph.node, query.types, query.moment, query.where
    judged: dict[str, bool] = {}

    def judge(node_id: str) -> bool:
        verdict = judged.get(node_id)
        if verdict is None:
            node = node_of(node_id)
            verdict = judged[node_id] = (
                isinstance(node, n.Memory | n.Message | n.Summary)
                and READABLE[type(node)] in types
                and is_visible(node, moment)
                and (where is None or where(seen(node, moment)))
            )
        return verdict

    plain = moment == Moment(moment.now) and where is None and len(types) == len(READABLE)
    if not plain:
        return judge
    veiled = memory.graph.veiled
    if not veiled:
        return None
    return lambda node_id: node_id not in veiled or judge(node_id)


def _seeds(
    near: Hits, lexical: list[tuple[str, float]], names: Mapping[str, str]
) -> dict[str, float]:
    seeds: dict[str, float] = {}
    for node_id, cosine in near[:SEEDS]:
        seeds[node_id] = max(0.0, (cosine - near.mean) / near.std / Z_SPREAD)
    top = lexical[0][1] if lexical else 1.0
    for node_id, score in lexical[:SEEDS]:
        seeds[node_id] = seeds.get(node_id, 0.0) + score / top
    for entity in names:
        seeds[entity] = seeds.get(entity, 0.0) + 1.0
    return seeds


def _best(
    look: _Look,
    query: Query,
    ids: Sequence[str],
    asked: Asked,
    reached: Mapping[str, Reached],
    names: Mapping[str, str],
    near: Hits,
) -> list[_Found]:
    """Score the candidates and return the best, in order.

    What is cheap to bound and dear to compute (recency, importance, outdated) is added from the
    top down, until no other candidate can come among the best any more. Plain loops: for some
    dozens of candidates they are quicker than array operations.
    """
    if not ids:
        return []
    memory, weights, limit = look.memory, query.weights, query.limit
    cosines = [math.nan] * len(ids)
    if query.vector is not None and memory.vectors is not None:
        cosines = memory.vectors.similarities(query.vector, ids, near)
    scale, mean = weights["meaning"] / (near.std * Z_SPREAD), near.mean
    most_meaning = weights["meaning"] * MOST_MEANING
    ceiling = mean + most_meaning / scale if scale > 0 else math.inf
    columns = {  # a text without a vector has NaN, which is not above the mean
        "meaning": [
            (x - mean) * scale if mean < x < ceiling else most_meaning if x > mean else 0.0
            for x in cosines
        ],
        **_columns(memory, ids, asked, reached, names, weights),
    }
    ranked: list[float] = list(map(sum, zip(*columns.values(), strict=True)))
    most = max(0.0, weights["recency"]) + max(0.0, weights["importance"])
    states: dict[int, _State] = {}
    bar: list[float] = []  # the best scores so far, as a heap
    for at in sorted(range(len(ids)), key=ranked.__getitem__, reverse=True):
        if len(bar) >= limit and ranked[at] + most < bar[0]:
            break
        state = states[at] = look.state(ids[at])
        ranked[at] += state.recency + state.importance + state.outdated
        (heappush if len(bar) < limit else heappushpop)(bar, ranked[at])
    # Stable, so that what is equal in score and time stays in the order in which it was found.
    order = sorted(states, key=lambda at: (-rounded(ranked[at]), -states[at].at))[:limit]
    found: list[_Found] = []
    for at in order:
        state = states[at]
        parts = {name: column[at] for name, column in columns.items() if column[at]}
        parts["recency"] = state.recency
        if state.importance:
            parts["importance"] = state.importance
        if state.outdated:
            parts["outdated"] = state.outdated
        found.append(_Found(state.node, cosines[at], parts, sum(parts.values())))
    return found


def _columns(
    memory: UserMemory,
    ids: Sequence[str],
    asked: Asked,
    reached: Mapping[str, Reached],
    names: Mapping[str, str],
    weights: Mapping[str, float],
) -> dict[str, list[float]]:
    """Return the weighted parts of each candidate from words, walk and names."""
    words = asked.score(ids)
    masses = [r.mass if (r := reached.get(i)) is not None else 0.0 for i in ids]
    per_word = weights["words"] / (max(words) or 1.0)
    per_mass = weights["graph"] / (max(masses) or 1.0)
    columns = {
        "words": [per_word * score for score in words],
        "graph": [per_mass * mass for mass in masses],
    }
    if names:
        named: set[str] = set()
        for entity in names:
            tails = memory.graph.tails(entity)
            named.update(i for i in ids if i in tails)
        if n.USER_NODE in names:
            named.update(i for i in ids if _is_of_owner(memory, i))
        columns["entity"] = [weights["entity"] if i in named else 0.0 for i in ids]
    return columns


class _State(NamedTuple):
    """A candidate's parts that depend on itself alone, and its time."""

    node: Readable
    at: float
    recency: float
    importance: float
    outdated: float


class _Look:
    """One moment from which a user's memory is looked at, with one set of weights: each node is
    judged and copied once, for all questions that are asked from there."""

    def __init__(self, memory: UserMemory, moment: Moment, weights: Mapping[str, float]) -> None:
        self.memory, self.moment, self._weights = memory, moment, weights
        self._now = moment.now if moment.as_of is None else moment.as_of
        self._states: dict[str, _State] = {}
        self._fields: dict[str, dict[str, object]] = {}

    def state(self, node_id: str) -> _State:
        """Return the parts of a candidate that depend on itself alone."""
        found = self._states.get(node_id)
        if found is None:
            found = self._states[node_id] = self._judge(node_id)
        return found

    def fields(self, node: Readable) -> dict[str, object]:
        """Return the set fields of an `Item`; they are shared, so copy what can be changed."""
        found = self._fields.get(node.id)
        if found is None:
            fields = item(self.memory, node)
            # What is empty by default need not be set on every hit.
            found = {k: v for k, v in fields.items() if v is not None and v != ()}
            self._fields[node.id] = found
        return found

    def _judge(self, node_id: str) -> _State:
        weights, moment, now = self._weights, self.moment, self._now
        node = self.memory.graph.node(node_id)
        assert isinstance(node, n.Memory | n.Message | n.Summary)  # noqa: S101 (by `allowed`)
        importance = outdated = 0.0
        present = moment.as_of is None and moment.valid_at is None
        if isinstance(node, n.Memory):
            at = node.recorded_at if node.valid_from is None else node.valid_from
            if node.last_access is not None and node.last_access > at:
                at = node.last_access
            importance = weights["importance"] * node.importance
            if present and node.valid_to is not None and node.valid_to <= now:
                outdated = weights["outdated"]
        elif isinstance(node, n.Message):
            at = node.said_at
            if present and is_outdated(self.memory, node):
                outdated = weights["outdated"]
        else:
            at = node.to_at
        return _State(node, at, weights["recency"] * decay.recency(at, now), importance, outdated)


def _is_of_owner(memory: UserMemory, node_id: str) -> bool:
    node = memory.graph.node(node_id)
    return isinstance(node, n.Memory) and (node.slot or "").startswith("user|")


def is_outdated(memory: UserMemory, message: n.Message) -> bool:
    """Return whether memories came from a message and none of them is believed any more."""
    kept = [memory.graph.node(m) for m, _ in memory.graph.into(message.id, n.DERIVED_FROM)]
    memories = [m for m in kept if isinstance(m, n.Memory)]
    return bool(memories) and all(m.retired_at is not None for m in memories)


# -- reasons ---------------------------------------------------------------------------


def _hit(
    look: _Look,
    query: Query,
    found: _Found,
    reached: Mapping[str, Reached],
    names: Mapping[str, str],
    words: Sequence[str],
) -> Hit:
    if query.moment.as_of is not None and isinstance(found.node, n.Memory):
        found = found._replace(node=as_seen(found.node, query.moment))
    fields = look.fields(found.node)
    if fields.get("metadata"):
        fields = fields | {"metadata": deepcopy(fields["metadata"])}  # each hit has its own
    return Hit(
        **fields,  # type: ignore[arg-type]
        score=found.score,
        parts=found.parts,
        reasons=tuple(_reasons(look.memory, query, found, reached, names, words)),
    )


def _reasons(
    memory: UserMemory,
    query: Query,
    found: _Found,
    reached: Mapping[str, Reached],
    names: Mapping[str, str],
    words: Sequence[str],
) -> list[str]:
    parts, node_id = found.parts, found.node.id
    reasons: list[str] = []
    if parts.get("meaning", 0.0) > 0.1 * query.weights["meaning"]:
        reasons.append(f"similar in meaning ({found.cosine:.2f})")
    if words:
        reasons.append(f"shares the words: {', '.join(words)}")
    reasons += _named(memory, node_id, names)
    there = reached.get(node_id)
    if there is not None and there.came_from is not None:
        reasons.append(_path(memory, node_id, reached))
    if "outdated" in parts and isinstance(found.node, n.Message):
        reasons.append("what it says was replaced later")
    elif "outdated" in parts:
        reasons.append("the time for which it holds is over")
    if isinstance(found.node, n.Memory) and found.node.retired_at is not None:
        reasons.append(f"no longer holds ({found.node.retired_why or found.node.status})")
    if not reasons:
        reasons.append("recent" if "recency" in parts else "important")
    return reasons


def _named(memory: UserMemory, node_id: str, names: Mapping[str, str]) -> list[str]:
    reasons: list[str] = []
    for entity in names:
        if memory.graph.edge(node_id, entity, n.CONTAINS_ENTITY) is not None:
            reasons.append(f"mentions {memory.display(entity)}")
        elif memory.graph.edge(node_id, entity, n.SENT_BY) is not None:
            reasons.append(f"said by {memory.display(entity)}")
        elif entity == n.USER_NODE and _is_of_owner(memory, node_id):
            reasons.append("about the user")
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
        words += [
            memory.display(here) if steps else "this",
            _STEP.get(there.via, there.via.replace("_", " ")),
        ]
        here = there.came_from
        steps += 1
    words.append(memory.display(here))
    return f"{steps} {'step' if steps == 1 else 'steps'}: {' - '.join(reversed(words))}"
