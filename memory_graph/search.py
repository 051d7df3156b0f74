"""From a question to ranked, explained hits: candidates, a walk, signals, one weighted sum.

    signals      of all texts, by arrays (signals.py): words, what is around, who, when, what for
    candidates   the best of these, and the nearest vectors
    walk         personalised PageRank from the best of them (spread.py); adds what it reaches
    meaning      of the candidates, mixed with the turns around
    score        the sum of the parts, so every hit explains itself

Signals are fused as normalised scores, not as ranks: fusing ranks with a weak embedder measured
worse than BM25 alone. Vectors, times and the question arrive as arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from heapq import heappush, heappushpop
from typing import NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import decay, nodes as n, signals
from reverie.memory_graph.asked import Asked, Entries
from reverie.memory_graph.filters import Predicate, Readable
from reverie.memory_graph.graph import MEMORY, MESSAGE, SUMMARY
from reverie.memory_graph.naming import (
    entities_named,
    is_of_owner,
    is_plain,
    speakers_named,
    terms_without,
)
from reverie.memory_graph.passages import NOBODY, Float64, Rows
from reverie.memory_graph.reasons import Question, Scored, reasons
from reverie.memory_graph.spread import Reached, spread
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.topk import SMALL, rounded, top, top_accepted
from reverie.memory_graph.vectors import Hits
from reverie.memory_graph.views import Hit, ItemType, item
from reverie.memory_graph.visible import Moment, as_seen, is_visible, seen

MOST_MEANING = 1.5  # of a z-score divided by 5: a lone near text must not drown the rest
POOL = 100  # candidates by all signals but meaning
NEAR = 50  # candidates by meaning
MENTIONS = 50  # candidates by each name in the question: the newest that mention it
COMMON = 50  # texts that mention an entity, above which a mention counts less
SEEDS = 6  # best candidates of each kind that the walk starts from
MAX_QUERY_CHARS = 2000

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
        weights: weight of each signal; by default those for the script of the question.
        times: the times that the question names, as (from, to) in seconds.
        whole: every candidate comes back, not only the best `limit` of them.
    """

    text: str
    vector: NDArray[np.float32] | None
    moment: Moment
    limit: int = 10
    types: frozenset[str] = frozenset({"memory", "message", "summary"})
    where: Predicate | None = None
    weights: Mapping[str, float] | None = None
    times: tuple[tuple[float, float], ...] = ()
    whole: bool = False


def search(memory: UserMemory, query: Query) -> list[Hit]:
    """Return at most `query.limit` hits, best first.

    The same state and query give the same, as long as the vector search is exact; an approximate
    index (of a large user) may propose other candidates by how it came to be built.
    """
    return search_many(memory, [query])[0]


def search_many(memory: UserMemory, queries: Sequence[Query]) -> list[list[Hit]]:
    """Return what `search` does for each of several queries; what they share is done once."""
    texts = [query.text[:MAX_QUERY_CHARS] for query in queries]
    names = [entities_named(memory, text) for text in texts]
    memory.words.settle()
    memory.passages.sync(memory.graph, memory.words)
    allowed = [_allowed(memory, query) for query in queries]
    near = _nearest(memory, queries, allowed)
    looks: dict[tuple[Moment, int], _Look] = {}
    fixed: dict[int, Float64] = {}
    found: list[list[Hit]] = []
    for place, query in enumerate(queries):
        weights = signals.weights_for(texts[place]) if query.weights is None else query.weights
        seen_from = (query.moment, id(weights))
        look = looks.get(seen_from)
        if look is None:
            look = looks[seen_from] = _Look(memory, query.moment, weights, fixed)
        said_by = speakers_named(memory, texts[place], names[place])
        asked = memory.words.ask(terms_without(memory, texts[place], said_by))
        given = _Given(query, texts[place], asked, near[place], names[place], said_by)
        found.append(_answer(look, given, allowed[place]))
    return found


Allowed: TypeAlias = Callable[[str], bool] | None


class _Given(NamedTuple):
    """What is known of a question before anything is scored."""

    query: Query
    text: str
    asked: Asked
    near: Hits
    names: Mapping[str, str]
    said_by: frozenset[str]  # speakers that the question names


def _nearest(
    memory: UserMemory, queries: Sequence[Query], allowed: Sequence[Allowed]
) -> list[Hits]:
    """Return the nearest vectors of each query; those without a filter are looked up together."""
    near = [Hits()] * len(queries)
    if memory.vectors is None:
        return near
    together: dict[int, list[int]] = {}
    for place, query in enumerate(queries):
        if query.vector is None:
            continue
        pool = max(NEAR, query.limit)
        if allowed[place] is None:
            together.setdefault(pool, []).append(place)
        else:
            near[place] = memory.vectors.search(query.vector, pool, allowed[place])
    for pool, places in together.items():
        vectors = [v for place in places if (v := queries[place].vector) is not None]
        for place, hits in zip(places, memory.vectors.search_many(vectors, pool), strict=True):
            near[place] = hits
    return near


def _answer(look: _Look, given: _Given, allowed: Allowed) -> list[Hit]:
    memory = look.memory
    if not memory.passages.count:
        return []
    columns, own, cheap = _columns(look, given, allowed)
    best, scores = _ranked(memory, cheap, max(POOL, 2 * given.query.limit), allowed)
    ids = cast("Sequence[str]", memory.words.ids)  # of live rows
    worded = np.flatnonzero(own[best] > 0)[:SEEDS]
    seeds = _seeds(
        given.near,
        [ids[row] for row in best[worded].tolist()],
        scores[worded].tolist(),
        given.names,
    )
    reached = spread(memory.graph, seeds, given.query.moment)
    pool = _pool(memory, given, best, reached, allowed)
    if not pool.size:
        return []
    found_ids = [ids[row] for row in pool.tolist()]
    parts = {name: column[pool] for name, column in columns.items()}
    for name, column in memory.passages.fixed.items():
        parts[name] = look.weights[name] * column[pool].astype(np.float64)
    masses = np.zeros(memory.passages.count + 1)  # one more, for -1
    row_of = memory.words.rows
    masses[[row_of.get(i, NOBODY) for i in reached]] = [r.mass for r in reached.values()]
    masses = masses[pool]
    parts["graph"] = masses * (look.weights["graph"] / (float(masses.max()) or 1.0))
    if given.names:
        parts["entity"] = look.weights["entity"] * _mentions(memory, given.names, found_ids)
    cosines = _meaning(look, given, pool, parts)
    found = _best(look, given.query, found_ids, parts, cosines)
    question = Question(given.text, given.names, given.said_by, look.weights, reached)
    matched = given.asked.matched([f.node.id for f in found])
    return [_hit(look, question, f, words) for f, words in zip(found, matched, strict=True)]


def _pool(
    memory: UserMemory,
    given: _Given,
    best: Rows,
    reached: Mapping[str, Reached],
    allowed: Allowed,
) -> Rows:
    """Return the rows of the candidates, ascending: the best by all signals but meaning, the
    nearest by meaning, what the walk has reached, and what mentions a name in the question."""
    row_of = memory.words.rows
    is_chosen = np.zeros(memory.passages.count + 1, np.bool_)  # one more, for -1
    is_chosen[best] = True
    if memory.vectors is not None and given.near:
        rows = memory.passages.text_rows(memory.words, memory.vectors.table)
        is_chosen[rows[given.near.rows]] = True
    further = [i for i in reached if i[0] in TEXTS]
    for entity in given.names:
        further += memory.graph.newest_tails(entity, MENTIONS)
    for node_id in further:
        row = row_of.get(node_id, NOBODY)
        if not is_chosen[row] and (allowed is None or allowed(node_id)):
            is_chosen[row] = True
    return np.flatnonzero(is_chosen[:-1])


def _ranked(
    memory: UserMemory, cheap: Float64, wanted: int, allowed: Allowed
) -> tuple[Rows, Float64]:
    """Return the rows of the highest scores, best first, and these; those of -inf never."""
    if allowed is None:
        if cheap.size <= SMALL:
            rows = np.argsort(-cheap, kind="stable")[:wanted]
            rows = rows[: np.count_nonzero(cheap > -np.inf)]
            return rows, cheap[rows]
        # Choosing among few is quick; among thousands that are all -inf, numpy is at its slowest.
        some = np.flatnonzero(cheap > -np.inf)
        best, scores = top(cheap[some], wanted)
        return some[best], scores
    ids = cast("Sequence[str]", memory.words.ids)
    found = top_accepted(cheap, wanted, lambda row: allowed(ids[row]))
    kept = [(row, score) for row, score in found if score > -math.inf]
    return np.array([row for row, _ in kept], np.intp), np.array([score for _, score in kept])


def _worded(look: _Look, given: _Given, own: Float64, allowed: Allowed) -> dict[str, Float64]:
    """Return the weighted signals that come from the words of the question; `own` is BM25."""
    memory, weights, query = look.memory, look.weights, given.query
    passages = memory.passages
    columns: dict[str, Float64] = {}
    ids = cast("Sequence[str]", memory.words.ids)

    def share(raw: Float64, *names: str) -> None:
        """Add a signal by one or more names, divided by the best that may be seen."""
        if allowed is None:
            most = float(raw.max())
        else:
            most = next((x for _, x in top_accepted(raw, 1, lambda row: allowed(ids[row]))), 0.0)
        if most > 0:
            for name in names:
                columns[name] = raw * (weights[name] / most)

    if passages.has_turns:
        entries = given.asked.entries()
        if query.moment.as_of is not None:  # what was said later does not count
            known = passages.columns["recorded"][entries.row] <= query.moment.as_of
            place, row, times, weight = entries
            entries = Entries(place[known], row[known], times[known], weight)
        share(own, "words")
        share(signals.around(entries, passages, own if allowed is None else None), "around")
        share(signals.session(entries, passages), "session")
    else:  # nothing is around
        share(own, "words", "around")
    return columns


def _columns(
    look: _Look, given: _Given, allowed: Allowed
) -> tuple[dict[str, Float64], Float64, Float64]:
    """Return the weighted signals of all texts that depend on the question, but those that are
    computed of candidates alone; BM25 of each text; and the sum of these and of the fixed signals,
    -inf for texts that have nothing to do with the question."""
    memory, weights, query = look.memory, look.weights, given.query
    passages, words = memory.passages, memory.words
    own = given.asked.array()
    columns = _worded(look, given, own, allowed)
    if (spoken := signals.speaker(passages, given.said_by)) is not None:
        columns["speaker"] = weights["speaker"] * spoken
    if query.times:
        columns["time"] = weights["time"] * signals.time(passages, query.times)
    cheap = np.zeros(passages.count)
    for name, column in columns.items():
        if name != "session":  # that alone brings nothing up
            cheap += column
    nothing = cheap <= 0
    if "session" in columns:
        cheap += columns["session"]
    if (answers := signals.answer(passages, given.text)) is not None:
        columns["answer"] = weights["answer"] * answers
        cheap += columns["answer"]
    cheap += look.fixed()
    cheap[nothing] = -np.inf
    if (dead := words.dead_rows).size:
        cheap[dead] = -np.inf
    return columns, own, cheap


def _mentions(memory: UserMemory, names: Mapping[str, str], ids: Sequence[str]) -> Float64:
    """Return for each text whether it mentions somebody or something that the question names; what
    half of the texts mention tells little, and a common noun is among the words."""
    found = np.zeros(len(ids))
    for entity in names:
        if is_plain(memory.graph.node(entity)):
            continue
        tails = memory.graph.tails(entity)
        share = 1.0 / (1.0 + math.log(max(1.0, len(tails) / COMMON)))
        for place, node_id in enumerate(ids):
            is_about = (
                memory.graph.edge(node_id, entity, n.CONTAINS_ENTITY) is not None
                if node_id in tails
                else entity == n.USER_NODE and is_of_owner(memory, node_id)
            )
            if is_about and share > found[place]:
                found[place] = share
    return found


def _meaning(look: _Look, given: _Given, pool: Rows, parts: dict[str, Float64]) -> Float64:
    """Add the signal `meaning` of the candidates to their parts, and return the cosines that it
    comes from, NaN for one without a vector."""
    memory, vector = look.memory, given.query.vector
    if vector is None or memory.vectors is None:
        return np.full(pool.size, math.nan)
    passages, table = memory.passages, memory.vectors.table
    rows = passages.vector_rows(memory.words, table)
    own = rows[pool]
    scale = look.weights["meaning"] / (given.near.std * signals.Z_SPREAD)
    most = look.weights["meaning"] * MOST_MEANING
    if passages.has_turns:
        wanted = [own, *(rows[there[there >= 0]] for _, there in passages.around(pool))]
        cosines = memory.vectors.cosines(vector, given.near, np.concatenate(wanted))
        as_of = given.query.moment.as_of
        known = None if as_of is None else passages.columns["recorded"] <= as_of
        near, several = signals.mixed(passages, pool, rows, cosines, table, known)
        parts["meaning"] = np.minimum(
            (near - given.near.mean) * np.where(several, signals.MIXED_SPREAD * scale, scale), most
        )
    else:
        near = memory.vectors.cosines(vector, given.near, own)[own]
        parts["meaning"] = np.minimum((near - given.near.mean) * scale, most)
    if (lacks := own < 0).any():
        parts["meaning"][lacks] = 0.0
        near[lacks] = math.nan
    return near


def _allowed(memory: UserMemory, query: Query) -> Allowed:
    """Return the test whether a text may answer, each judged once; None when every one may."""
    node_of, types, moment, where = memory.graph.node, query.types, query.moment, query.where
    judged: dict[str, bool] = {}

    def judge(node_id: str) -> bool:
        verdict = judged.get(node_id)
        if verdict is None:
            node = node_of(node_id)
            verdict = judged[node_id] = (
                isinstance(node, Readable)
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
    near: Hits, best: Sequence[str], scores: Sequence[float], names: Mapping[str, str]
) -> dict[str, float]:
    seeds: dict[str, float] = {}
    for node_id, cosine in near[:SEEDS]:
        seeds[node_id] = max(0.0, (cosine - near.mean) / near.std / signals.Z_SPREAD)
    highest = scores[0] if scores else 1.0
    for node_id, score in zip(best, scores, strict=True):
        seeds[node_id] = seeds.get(node_id, 0.0) + max(0.0, score / (highest or 1.0))
    for entity in names:
        seeds[entity] = seeds.get(entity, 0.0) + 1.0
    return seeds


def _best(
    look: _Look,
    query: Query,
    ids: Sequence[str],
    parts: Mapping[str, Float64],
    cosines: Float64,
) -> list[Scored]:
    """Return the best candidates, in order.

    What is dear to compute (recency, importance, outdated) is added from the top down, until no
    other candidate can come among the best any more.
    """
    weights, limit = look.weights, len(ids) if query.whole else query.limit
    matrix = np.array(list(parts.values()))
    sums = matrix.sum(axis=0)
    ranked: list[float] = sums.tolist()
    most = max(0.0, weights["recency"]) + max(0.0, weights["importance"])
    states: dict[int, _State] = {}
    bar: list[float] = []  # the best scores so far, as a heap
    for at in np.argsort(-sums, kind="stable").tolist():
        if len(bar) >= limit and ranked[at] + most < bar[0]:
            break
        node_id = ids[at]
        state = states[at] = look.states.get(node_id) or look.judge(node_id)
        ranked[at] += state.recency + state.importance + state.outdated + state.summary
        (heappush if len(bar) < limit else heappushpop)(bar, ranked[at])
    # Stable, so that what is equal in score and time stays in the order in which it was found.
    order = sorted(states, key=lambda at: (-rounded(ranked[at]), -states[at].at))[:limit]
    names, places = list(parts), np.array(order, np.intp)
    shown: list[list[float]] = matrix[:, places].T.tolist()
    found: list[Scored] = []
    for at, values, cosine in zip(order, shown, cosines[places].tolist(), strict=True):
        state = states[at]
        own = {name: value for name, value in zip(names, values, strict=True) if value}
        own["recency"] = state.recency
        if state.importance:
            own["importance"] = state.importance
        if state.outdated:
            own["outdated"] = state.outdated
        if state.summary:
            own["summary"] = state.summary
        found.append(Scored(state.node, cosine, own, sum(own.values())))
    return found


class _State(NamedTuple):
    """A candidate's parts that depend on itself alone, and its time."""

    node: Readable
    at: float
    recency: float
    importance: float
    outdated: float
    summary: float


class _Look:
    """One moment from which a user's memory is looked at, with one set of weights: each node is
    judged and copied once, for all questions that are asked from there."""

    def __init__(
        self,
        memory: UserMemory,
        moment: Moment,
        weights: Mapping[str, float],
        fixed: dict[int, Float64],
    ) -> None:
        """`fixed`, by the id of the weights, is shared by the looks of all moments."""
        self.memory, self.moment, self.weights = memory, moment, weights
        self._fixed = fixed
        self._now = moment.now if moment.as_of is None else moment.as_of
        self.states: dict[str, _State] = {}  # of the nodes that were judged
        self._fields: dict[str, dict[str, object]] = {}

    def fixed(self) -> Float64:
        """Return the weighted sum of the signals that do not depend on the question."""
        found = self._fixed.get(id(self.weights))
        if found is None:
            found = self._fixed[id(self.weights)] = np.zeros(self.memory.passages.count)
            for name, column in self.memory.passages.fixed.items():
                found += self.weights[name] * column
        return found

    def fields(self, node: Readable) -> dict[str, object]:
        """Return the set fields of an `Item`; they are shared, so copy what can be changed."""
        found = self._fields.get(node.id)
        if found is None:
            found = self._fields[node.id] = item(self.memory, node)
        return found

    def judge(self, node_id: str) -> _State:
        """Return the parts of a candidate that depend on itself alone, and keep them."""
        weights, moment, now = self.weights, self.moment, self._now
        node = self.memory.graph.node(node_id)
        assert isinstance(node, Readable)  # noqa: S101 (by `allowed`)
        importance = outdated = summary = 0.0
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
            # Nothing that answers tells better what has faded.
            at, summary = node.to_at, 0.0 if node.gist else weights["summary"]
        recency = weights["recency"] * decay.recency(at, now)
        found = self.states[node_id] = _State(node, at, recency, importance, outdated, summary)
        return found


def is_outdated(memory: UserMemory, message: n.Message) -> bool:
    """Return whether memories came from a message and none of them is believed any more."""
    kept = [memory.graph.node(m) for m, _ in memory.graph.into(message.id, n.DERIVED_FROM)]
    memories = [m for m in kept if isinstance(m, n.Memory)]
    return bool(memories) and all(m.retired_at is not None for m in memories)


# -- reasons ---------------------------------------------------------------------------


def _hit(look: _Look, question: Question, found: Scored, words: Sequence[str]) -> Hit:
    if look.moment.as_of is not None and isinstance(found.node, n.Memory):
        found = found._replace(node=as_seen(found.node, look.moment))
    fields = look.fields(found.node)
    if "metadata" in fields:
        fields = fields | {"metadata": deepcopy(fields["metadata"])}  # each hit has its own
    return Hit(
        **fields,  # type: ignore[arg-type]
        score=found.score,
        parts=found.parts,
        reasons=tuple(reasons(look.memory, question, found, words)),
    )
