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
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import cues, text as analysis
from reverie.memory_graph.asked import (
    Asked,
    AskedFew,
    AskedMany,
    Entries,
    Float64,
    Ints,
    QueryTerms,
    hash_of,
)

Float32: TypeAlias = NDArray[np.float32]
UInt64: TypeAlias = NDArray[np.uint64]

_MIN_TAIL_DOCUMENTS = 64
_TAIL_SHARE = 0.1  # of the documents of the base
_MIN_DEAD = 64
_DEAD_SHARE = 0.2
_FEW = 100  # documents, up to which they are scored one by one


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
_NO_ROWS = np.empty(0, np.intp)


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
        "_varieties",
        "compactions",
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
        self.compactions = 0  # how often the rows have got new numbers
        self._reset()

    def _reset(self) -> None:
        self._base, self._base_documents, self._tail = _NO_POSTINGS, 0, _NO_TAIL
        self._lengths: Ints = _NOTHING  # terms per analysed row
        self._varieties: Ints = _NOTHING  # different ones
        self._alive: NDArray[np.bool_] = np.empty(0, np.bool_)  # per analysed row
        self._total_length = 0  # terms of all live analysed documents

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._rows

    @property
    def size_bytes(self) -> int:
        """Memory held by the index, without the ids and the pending texts (the graph owns both)."""
        arrays = (*self._base, *self._tail, self._lengths, self._varieties, self._alive)
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

    def settle(self) -> None:
        """Analyse what was added since the last question."""
        self._analyse_pending()

    def ask(self, query_terms: Sequence[tuple[str, str]]) -> Asked:
        """Return the scores of all documents for a query, computed once.

        Args:
            query_terms: `(term, surface)` as `text.query_terms` gives them. A repeated term counts
                again.
        """
        self._analyse_pending()
        query = Counter(hash_of(term) for term, _ in query_terms)
        terms = sorted(query)
        if len(self._lengths) <= _FEW:
            return self._ask_few(query_terms, query, terms)
        wanted = np.array(terms, np.uint64)
        entries = self._entries(wanted)
        weight = self._weights([query[term] for term in terms], entries[0])
        whole = Entries(*entries, weight)
        return AskedMany(self, query_terms, terms, whole, self._scores(whole))

    def _ask_few(self, query_terms: QueryTerms, query: Counter[int], terms: Sequence[int]) -> Asked:
        """Score one by one the few documents that have a term: for a small index that is several
        times as quick as array operations, each of which has its own start-up cost."""
        if self._tail.terms.size:
            self._merge()
        base, lengths, alive = self._base, self._lengths.data, self._alive.data
        known, starts = base.terms.data, base.starts.data
        documents = len(self._rows)
        longer = self._k1 * self._b * documents / (self._total_length or 1)
        short = self._k1 * (1 - self._b)
        norms = [longer * length + short for length in lengths]
        scores = [0.0] * len(norms)
        masks = [0] * len(norms)  # bit i: the row has the i-th term
        found: list[tuple[int, float, list[tuple[int, int]]]] = []
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
            found.append((place, weight, entries))
            bit = 1 << place
            for row, count in entries:
                scores[row] += weight * count / (count + norms[row])
                masks[row] |= bit
        return AskedFew(self, query_terms, terms, (scores, masks, found))

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

    @property
    def ids(self) -> Sequence[str | None]:
        """The ids by row, None for a removed document; for reading. The last ones may not be
        analysed yet."""
        return self._ids

    @property
    def analysed(self) -> int:
        """How many rows have their words: all, after a question."""
        return len(self._lengths)

    @property
    def lengths(self) -> Ints:
        """The number of words of each analysed row."""
        return self._lengths

    @property
    def varieties(self) -> Ints:
        """The number of different words of each analysed row."""
        return self._varieties

    @property
    def dead_rows(self) -> NDArray[np.intp]:
        """The analysed rows of removed documents."""
        return np.flatnonzero(~self._alive) if self._dead else _NO_ROWS

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

    def _weights(self, repeats: Sequence[int], places: Ints) -> Float64:
        documents = np.bincount(places, minlength=len(repeats))
        idf = np.log1p((len(self._rows) - documents + 0.5) / (documents + 0.5))
        weights: Float64 = idf * np.array(repeats, np.float64) * (self._k1 + 1)
        return weights

    def _scores(self, entries: Entries) -> Float64:
        """Return the score of every analysed row; 0 for dead ones.

        Terms are summed in the order of their hashes in the base and in the tail, so that the same
        documents score the same, but for the last bits, before and after a merge.
        """
        analysed = len(self._lengths)
        place, rows, counts, weight = entries
        if not rows.size:
            return np.zeros(analysed)
        saturation = self._lengths[rows] * (
            self._k1 * self._b * len(self._rows) / self._total_length
        ) + self._k1 * (1 - self._b)
        part = weight[place] * counts / (counts + saturation)
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
        varieties: list[int] = []
        for row, text in enumerate(self._pending, first):
            words = analysis.terms(text, self._language) if text is not None else []
            lengths.append(len(words))
            counted = Counter(words)
            varieties.append(len(counted))
            for term, count in counted.items():
                terms.append(hash_of(term))
                rows.append(row)
                counts.append(count)
        alive = np.array([text is not None for text in self._pending])
        self._pending = []
        self._lengths = _joined(self._lengths, lengths)
        self._varieties = _joined(self._varieties, varieties)
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
        self.compactions += 1
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
        varieties = _tight(self._varieties[self._alive])
        base_documents = int(self._alive[: self._base_documents].sum())
        alive = np.ones(int(self._alive.sum()), np.bool_)
        self._reset()
        if analysed and alive.size:
            self._base, self._base_documents, self._tail = base, base_documents, tail
            self._lengths, self._alive, self._total_length = lengths, alive, total
            self._varieties = varieties


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
    cues.clear_caches()
    hash_of.cache_clear()
