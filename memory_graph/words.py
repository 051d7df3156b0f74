"""One user's word index: BM25 over the texts of a graph, built when it is first searched.

Three tiers, from new to old, because most of many thousand users write often and read rarely:
- pending: texts by reference, not analysed before the first search (the graph holds them anyway);
- tail: analysed documents as flat arrays, scanned by each search, at most a tenth of the base;
- base: postings sorted by term (compressed sparse rows), in the smallest integer types that fit.

Terms are 64-bit hashes; no string but the ids is kept. (Two of a million different terms collide
with a chance of 3e-8, and would then count as one word.) Not thread-safe; a search may build.

Source of the formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), with the never negative idf log(1 + (N - df + 0.5) / (df + 0.5)).
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import text as analysis
from reverie.memory_graph.topk import MILLION, SMALL, rounded, top, top_accepted

Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
UInt64: TypeAlias = NDArray[np.uint64]
QueryTerms: TypeAlias = Sequence[tuple[str, str]]  # (term, as the query wrote it)
Ints: TypeAlias = NDArray[Any]  # unsigned, of the smallest type that holds the values

_MIN_TAIL_DOCUMENTS = 64
_TAIL_SHARE = 0.1  # of the documents of the base
_MIN_DEAD = 64
_DEAD_SHARE = 0.2
_GOOD_SHARE = 0.5  # of the best score
_CACHE_HASHES = 32_768  # about 5 MB when full


class _Postings(NamedTuple):
    """Who has which term how often; `terms[i]` owns the entries `starts[i]` to `starts[i + 1]`."""

    terms: UInt64  # sorted, unique
    starts: Ints  # len(terms) + 1
    rows: Ints  # ascending within a term
    counts: Ints


class _Tail(NamedTuple):
    """The same, unsorted: one entry per document and term, documents in order."""

    terms: UInt64
    rows: Ints
    counts: Ints


_NO_TERMS = np.empty(0, np.uint64)
_NOTHING = np.empty(0, np.uint8)
_NO_POSTINGS = _Postings(_NO_TERMS, np.zeros(1, np.uint8), _NOTHING, _NOTHING)
_NO_TAIL = _Tail(_NO_TERMS, _NOTHING, _NOTHING)


class WordIndex:
    """Finds the documents of one user that share words with a query."""

    __slots__ = (
        "_alive",
        "_b",
        "_base",
        "_base_documents",
        "_dead",
        "_ids",
        "_k1",
        "_language",
        "_lengths",
        "_pending",
        "_rows",
        "_tail",
        "_total_length",
    )

    def __init__(
        self, *, k1: float = 1.5, b: float = 0.75, language: str = analysis.DEFAULT_LANGUAGE
    ) -> None:
        """Start empty.

        Args:
            k1: how fast repeating a word stops to count, 0 or more.
            b: how much a long document is discounted, 0 to 1.
            language: of words in Latin script, one of `text.LANGUAGES`.

        Raises:
            InvalidValueError: no such language.
        """
        analysis.terms("", language)  # refuses a language at the door, not at the first search
        self._k1, self._b, self._language = k1, b, language
        self._ids: list[str | None] = []  # by row; None once removed
        self._rows: dict[str, int] = {}
        self._pending: list[str | None] = []  # texts of the rows after the analysed ones
        self._dead = 0  # rows without an id, pending ones too
        self._reset()

    def _reset(self) -> None:
        self._base, self._base_documents, self._tail = _NO_POSTINGS, 0, _NO_TAIL
        self._lengths: Ints = _NOTHING  # terms per analysed row
        self._alive: NDArray[np.bool_] = np.empty(0, np.bool_)  # per analysed row
        self._total_length = 0  # terms of all live analysed documents

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._rows

    @property
    def size_bytes(self) -> int:
        """Memory held by the index, without the ids and the pending texts (the graph owns both)."""
        arrays = (*self._base, *self._tail, self._lengths, self._alive)
        holders = (self._ids, self._rows, self._pending)
        return (
            sum(a.nbytes + sys.getsizeof(_NOTHING) for a in arrays)
            + sum(sys.getsizeof(holder) for holder in holders)
            + 32 * max(0, len(self._ids) - 257)  # row numbers; smaller ones are shared
        )

    # -- writing -------------------------------------------------------------------------

    def add(self, node_id: str, text: str) -> None:
        """Add a document; one of the same id is replaced, and then counts as the newest."""
        self.remove(node_id)
        self._rows[node_id] = len(self._ids)
        self._ids.append(node_id)
        self._pending.append(text)

    def add_many(self, documents: Iterable[tuple[str, str]]) -> None:
        """Add `(id, text)` documents in order, as `add` does."""
        for node_id, text in documents:
            self.add(node_id, text)

    def remove(self, node_id: str) -> bool:
        """Remove a document from all results and statistics; False when it is not here.

        Its postings go when a fifth of the rows is dead. To leave no trace at once, `erase`.
        """
        row = self._rows.pop(node_id, None)
        if row is None:
            return False
        self._ids[row] = None
        self._dead += 1
        analysed = len(self._lengths)
        if row >= analysed:
            self._pending[row - analysed] = None
        else:
            self._alive[row] = False
            self._total_length -= int(self._lengths[row])
        if self._dead > max(_MIN_DEAD, _DEAD_SHARE * len(self._ids)):
            self._compact()
        return True

    def erase(self, ids: Iterable[str]) -> None:
        """Remove documents and every trace of them: postings, ids, and cached words."""
        found = [self.remove(node_id) for node_id in ids]
        if any(found):
            self._compact()
            clear_caches()

    # -- reading -------------------------------------------------------------------------

    def ask(self, query_terms: Sequence[tuple[str, str]]) -> Asked:
        """Return the scores of all documents for a query, computed once.

        Args:
            query_terms: `(term, surface)` as `text.query_terms` gives them. A repeated term counts
                again.
        """
        self._analyse_pending()
        query = Counter(_hash_of(term) for term, _ in query_terms)
        terms = sorted(query)
        if len(self._lengths) <= SMALL:
            return self._ask_few(query_terms, query, terms)
        wanted = np.array(terms, np.uint64)
        entries = self._entries(wanted)
        scores = self._scores(wanted, [query[term] for term in terms], entries)
        return _AskedMany(self, query_terms, terms, entries, scores)

    def _ask_few(self, query_terms: QueryTerms, query: Counter[int], terms: Sequence[int]) -> Asked:
        """Score one by one the few documents that have a term: for a small index that is several
        times as quick as array operations, each of which has its own start-up cost."""
        if self._tail.terms.size:
            self._merge()
        base, lengths, alive = self._base, self._lengths.data, self._alive.data
        known, starts = base.terms.data, base.starts.data
        documents = len(self._rows)
        longer = self._k1 * self._b * documents / (self._total_length or 1)
        scores: dict[int, float] = {}
        masks: dict[int, int] = {}  # bit i of a row: it has the i-th term
        for place, term in enumerate(terms):
            at = bisect_left(known, term)
            if at == len(known) or known[at] != term:
                continue
            part = slice(starts[at], starts[at + 1])
            entries = list(zip(base.rows[part].tolist(), base.counts[part].tolist(), strict=True))
            if self._dead:
                entries = [(row, count) for row, count in entries if alive[row]]
            idf = math.log1p((documents - len(entries) + 0.5) / (len(entries) + 0.5))
            weight = idf * query[term] * (self._k1 + 1)
            for row, count in entries:
                score = weight * count / (count + longer * lengths[row] + self._k1 * (1 - self._b))
                scores[row] = scores.get(row, 0.0) + score
                masks[row] = masks.get(row, 0) | 1 << place
        return _AskedFew(self, query_terms, terms, scores, masks)

    def search(
        self,
        query: str | Sequence[str],
        k: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> list[tuple[str, float]]:
        """Return what `Asked.top` does for a text, or for terms as `text.terms` gives them."""
        return self.ask(self._terms_of(query)).top(k, allowed)

    def score(self, query: str | Sequence[str], ids: Sequence[str]) -> Float32:
        """Return the scores of given documents, float32 (len(ids),); 0 for an unknown one."""
        return np.array(self.ask(self._terms_of(query)).score(ids), np.float32)

    def matched(self, query_terms: Sequence[tuple[str, str]], node_id: str) -> list[str]:
        """Return the words of a query that a document has, as the query wrote them.

        Args:
            query_terms: `(term, surface)` from `text.query_terms`.
            node_id: the document; an unknown one has no words.
        """
        return self.ask(query_terms).matched([node_id])[0]

    @property
    def rows(self) -> Mapping[str, int]:
        """The rows of the live documents by id; for reading."""
        return self._rows

    def _terms_of(self, query: str | Sequence[str]) -> list[tuple[str, str]]:
        words = analysis.terms(query, self._language) if isinstance(query, str) else query
        return [(word, word) for word in words]

    def id_of(self, row: int) -> str:
        """Return the id of a live row; only those have a score."""
        return cast("str", self._ids[row])

    def _slices(self, wanted: UInt64) -> list[slice]:
        """Return where the base keeps each of `wanted`; an empty slice for an unknown term."""
        terms, starts = self._base.terms, self._base.starts
        if not terms.size:
            return [slice(0, 0)] * wanted.size
        at = np.minimum(np.searchsorted(terms, wanted), terms.size - 1)
        known = terms[at] == wanted
        first, last = np.where(known, starts[at], 0), np.where(known, starts[at + 1], 0)
        return list(map(slice, first.tolist(), last.tolist()))

    def _entries(self, wanted: UInt64) -> tuple[Ints, Ints, Ints]:
        """Return (place in `wanted`, row, count) of each entry of live rows, by term, then row."""
        places: list[Ints] = []
        rows: list[Ints] = []
        counts: list[Ints] = []
        if self._base.terms.size:
            parts = self._slices(wanted)
            places.append(np.repeat(np.arange(wanted.size), [p.stop - p.start for p in parts]))
            rows += [self._base.rows[part] for part in parts]
            counts += [self._base.counts[part] for part in parts]
        tail = self._tail
        if tail.terms.size and wanted.size:
            at = np.searchsorted(wanted, tail.terms)
            at[at == wanted.size] = 0
            hits = np.flatnonzero(wanted[at] == tail.terms)
            hits = hits[np.argsort(at[hits], kind="stable")]
            places.append(at[hits])
            rows.append(tail.rows[hits])
            counts.append(tail.counts[hits])
        if not rows:
            return _NOTHING, _NOTHING, _NOTHING
        place, row, count = np.concatenate(places), np.concatenate(rows), np.concatenate(counts)
        if self._dead:
            live = self._alive[row]
            place, row, count = place[live], row[live], count[live]
        return place, row, count

    def _scores(
        self, wanted: UInt64, repeats: Sequence[int], entries: tuple[Ints, Ints, Ints]
    ) -> Float64:
        """Return the score of every analysed row; 0 for dead ones.

        Terms are summed in the order of their hashes in the base and in the tail, so that the same
        documents score the same, but for the last bits, before and after a merge.
        """
        analysed = len(self._lengths)
        term, rows, counts = entries
        if not rows.size:
            return np.zeros(analysed)
        documents = np.bincount(term, minlength=wanted.size)
        idf = np.log1p((len(self._rows) - documents + 0.5) / (documents + 0.5))
        weight = idf * repeats
        saturation = self._lengths[rows] * (
            self._k1 * self._b * len(self._rows) / self._total_length
        ) + self._k1 * (1 - self._b)
        part = weight[term] * (self._k1 + 1) * counts / (counts + saturation)
        return np.bincount(rows, weights=part, minlength=analysed).astype(np.float64, copy=False)

    # -- building ------------------------------------------------------------------------

    def _analyse_pending(self) -> None:
        """Move pending documents to the tail, and the tail to the base when it is long."""
        if not self._pending:
            return
        first = len(self._lengths)
        terms: list[int] = []
        rows: list[int] = []
        counts: list[int] = []
        lengths: list[int] = []
        for row, text in enumerate(self._pending, first):
            words = analysis.terms(text, self._language) if text is not None else []
            lengths.append(len(words))
            for term, count in Counter(words).items():
                terms.append(_hash_of(term))
                rows.append(row)
                counts.append(count)
        alive = np.array([text is not None for text in self._pending])
        self._pending = []
        self._lengths = _joined(self._lengths, lengths)
        self._alive = np.concatenate([self._alive, alive])
        self._total_length += sum(lengths)
        self._tail = _Tail(
            np.concatenate([self._tail.terms, np.array(terms, np.uint64)]),
            _joined(self._tail.rows, rows),
            _joined(self._tail.counts, counts),
        )
        analysed = len(self._lengths)
        new = analysed - self._base_documents
        if new > max(_MIN_TAIL_DOCUMENTS, _TAIL_SHARE * self._base_documents):
            self._merge()

    def _merge(self) -> None:
        self._base, self._tail = _merged(self._base, self._tail), _NO_TAIL
        self._base_documents = len(self._lengths)

    def _compact(self) -> None:
        """Drop dead rows everywhere and number the rest anew, in the same order."""
        analysed = len(self._lengths)
        self._pending = [text for text in self._pending if text is not None]
        self._ids = [node_id for node_id in self._ids if node_id is not None]
        self._rows = {cast("str", node_id): row for row, node_id in enumerate(self._ids)}
        self._dead = 0
        if self._alive.all():
            return
        renumbered = np.cumsum(self._alive) - 1
        keep = self._alive[self._base.rows]
        every = np.repeat(self._base.terms, np.diff(self._base.starts))[keep]
        kept = renumbered[self._base.rows[keep]]
        base = _grouped(every, kept, self._base.counts[keep])
        keep = self._alive[self._tail.rows]
        rows = _tight(renumbered[self._tail.rows[keep]])
        tail = _Tail(self._tail.terms[keep], rows, self._tail.counts[keep])
        lengths, total = _tight(self._lengths[self._alive]), self._total_length
        base_documents = int(self._alive[: self._base_documents].sum())
        alive = np.ones(int(self._alive.sum()), np.bool_)
        self._reset()
        if analysed and alive.size:
            self._base, self._base_documents, self._tail = base, base_documents, tail
            self._lengths, self._alive, self._total_length = lengths, alive, total


class Asked(Protocol):
    """The answer of a `WordIndex` to one query; valid until the index changes."""

    def top(self, k: int, allowed: Callable[[str], bool] | None = None) -> list[tuple[str, float]]:
        """Return up to `k` `(id, score)` with a score over 0, best first.

        Args:
            k: 0 or less gives nothing; more than there are gives all that match.
            allowed: asked from the best down, no more often than needed.

        Returns:
            Equal scores (6 decimals) are in the order in which the documents were added.
        """
        ...

    def score(self, ids: Sequence[str]) -> list[float]:
        """Return the scores of given documents; 0 for an unknown one."""
        ...

    def matched(self, ids: Sequence[str]) -> list[list[str]]:
        """Return for each document the query's words that it has, as the query wrote them."""
        ...


class _Words:
    """Says which words of a query stand for its terms; each set of terms is put together once."""

    def __init__(self, query_terms: QueryTerms, terms: Sequence[int]) -> None:
        places = {term: place for place, term in enumerate(terms)}
        self._words = [(places[_hash_of(term)], surface) for term, surface in query_terms]
        self._joined: dict[int, list[str]] = {0: []}

    def of(self, mask: int) -> list[str]:
        """Return the words for the terms whose bits are set."""
        if mask not in self._joined:
            surfaces = [surface for place, surface in self._words if mask >> place & 1]
            self._joined[mask] = analysis.join_surfaces(surfaces)
        return self._joined[mask]


class _AskedFew:
    """Of a small index: what the few documents that match have scored, by row."""

    def __init__(
        self,
        index: WordIndex,
        query_terms: QueryTerms,
        terms: Sequence[int],
        scores: dict[int, float],
        masks: dict[int, int],
    ) -> None:
        self._index, self._scores, self._masks = index, scores, masks
        self._words = _Words(query_terms, terms)

    def top(self, k: int, allowed: Callable[[str], bool] | None = None) -> list[tuple[str, float]]:
        """See `Asked.top`."""
        ranked = sorted([(-rounded(score), row) for row, score in self._scores.items()])
        id_of = self._index.id_of
        if allowed is None:
            return [(id_of(row), -score / MILLION) for score, row in ranked[: max(0, k)]]
        hits: list[tuple[str, float]] = []
        for score, row in ranked:
            if len(hits) >= k:
                break
            if allowed(node_id := id_of(row)):
                hits.append((node_id, -score / MILLION))
        return hits

    def score(self, ids: Sequence[str]) -> list[float]:
        """See `Asked.score`."""
        row_of, score = self._index.rows.get, self._scores.get
        return [score(row_of(i, -1), 0.0) for i in ids]

    def matched(self, ids: Sequence[str]) -> list[list[str]]:
        """See `Asked.matched`."""
        row_of, masks, of = self._index.rows.get, self._masks, self._words.of
        return [of(masks.get(row_of(i, -1), 0)) for i in ids]


class _AskedMany:
    """Of a large index: the score of every row, and all entries of the query's terms."""

    def __init__(
        self,
        index: WordIndex,
        query_terms: QueryTerms,
        terms: Sequence[int],
        entries: tuple[Ints, Ints, Ints],
        scores: Float64,
    ) -> None:
        self._index, self._entries, self._scores = index, entries, scores
        self._words = _Words(query_terms, terms)

    def top(self, k: int, allowed: Callable[[str], bool] | None = None) -> list[tuple[str, float]]:
        """See `Asked.top`."""
        if k <= 0 or not self._scores.size:
            return []
        # Most documents share a common word at most: first look only at those that score well.
        good = self._top_above(_GOOD_SHARE * float(self._scores.max()), k, allowed)
        return good if len(good) == k else self._top_above(0.0, k, allowed)

    def _top_above(
        self, floor: float, k: int, allowed: Callable[[str], bool] | None
    ) -> list[tuple[str, float]]:
        rows = np.flatnonzero(self._scores > floor)
        found, id_of = self._scores[rows], self._index.id_of
        if allowed is None:
            best, values = top(found, k)
            ranked = zip(rows[best].tolist(), values.tolist(), strict=True)
            return [(id_of(row), value) for row, value in ranked]
        accepted = top_accepted(found, k, lambda i: allowed(id_of(int(rows[i]))))
        return [(id_of(int(rows[i])), value) for i, value in accepted]

    def score(self, ids: Sequence[str]) -> list[float]:
        """See `Asked.score`."""
        rows = self._rows_of(ids)
        scores = np.where(rows >= 0, self._scores[rows], 0.0) if self._scores.size else rows * 0.0
        found: list[float] = scores.tolist()
        return found

    def matched(self, ids: Sequence[str]) -> list[list[str]]:
        """See `Asked.matched`."""
        place, row, _ = self._entries
        wanted = self._rows_of(ids)
        is_wanted = np.zeros(self._scores.size + 1, np.bool_)  # one more, for unknown ids (-1)
        is_wanted[wanted] = True
        hits = np.flatnonzero(is_wanted[row])
        masks: dict[int, int] = {}
        for at, i in zip(row[hits].tolist(), place[hits].tolist(), strict=True):
            masks[at] = masks.get(at, 0) | 1 << i
        return [self._words.of(masks.get(at, 0)) for at in wanted.tolist()]

    def _rows_of(self, ids: Sequence[str]) -> NDArray[np.intp]:
        row_of = self._index.rows.get
        return np.array([row_of(i, -1) for i in ids], np.intp)


def _merged(base: _Postings, tail: _Tail) -> _Postings:
    order = np.argsort(tail.terms, kind="stable")
    terms = np.concatenate([np.repeat(base.terms, np.diff(base.starts)), tail.terms[order]])
    rows = np.concatenate([base.rows, tail.rows[order]])
    counts = np.concatenate([base.counts, tail.counts[order]])
    order = np.argsort(terms, kind="stable")  # two sorted halves: merged in linear time
    return _grouped(terms[order], rows[order], counts[order])


def _grouped(terms: UInt64, rows: Ints, counts: Ints) -> _Postings:
    """Return postings from entries that are sorted by term, then row."""
    if not terms.size:
        return _NO_POSTINGS
    first = np.flatnonzero(np.concatenate([[True], terms[1:] != terms[:-1]]))
    starts = _tight(np.append(first, terms.size))
    return _Postings(terms[first], starts, _tight(rows), _tight(counts))


def _tight(values: Ints) -> Ints:
    """Return `values` in the smallest unsigned type; postings are most of the index."""
    return values.astype(np.min_scalar_type(int(values.max()) if values.size else 0))


def _joined(old: Ints, new: Sequence[int]) -> Ints:
    return np.concatenate([old, _tight(np.array(new, np.int64))])


def clear_caches() -> None:
    """Forget every word and question that was met: after an erasure none may linger."""
    analysis.clear_caches()
    _hash_of.cache_clear()


@lru_cache(maxsize=_CACHE_HASHES)
def _hash_of(term: str) -> int:
    """Return 64 bits that stand for `term`, the same in every process."""
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
