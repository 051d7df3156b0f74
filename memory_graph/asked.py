"""The answer of a word index to one question: scores, matched words, and where the terms stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import text as analysis
from reverie.memory_graph.topk import MILLION, rounded, top, top_accepted

Float64: TypeAlias = NDArray[np.float64]
QueryTerms: TypeAlias = Sequence[tuple[str, str]]  # (term, as the query wrote it)
Ints: TypeAlias = NDArray[Any]  # unsigned, of the smallest type that holds the values

_GOOD_SHARE = 0.5  # of the best score
_CACHE_HASHES = 32_768  # about 5 MB when full


class Documents(Protocol):
    """What an answer needs of its index."""

    @property
    def rows(self) -> Mapping[str, int]:
        """The rows of the live documents by id."""
        ...

    @property
    def analysed(self) -> int:
        """How many rows there are."""
        ...

    def id_of(self, row: int) -> str:
        """Return the id of a live row."""
        ...


class Entries(NamedTuple):
    """Where the terms of a query stand: one entry per term and document that has it."""

    place: Ints  # number of the term in the query
    row: Ints
    times: Ints
    weight: Float64  # by place: how rare the term is, times how often it is asked for, times k1 + 1


class Asked(Protocol):
    """The answer of a `WordIndex` to one query; valid until the index changes."""

    def array(self) -> Float64:
        """Return the scores of all analysed rows, float64 (rows,); do not write to it."""
        ...

    def entries(self) -> Entries:
        """Return where the terms stand."""
        ...

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
        self._words = [(places[hash_of(term)], surface) for term, surface in query_terms]
        self._joined: dict[int, list[str]] = {0: []}

    def of(self, mask: int) -> list[str]:
        """Return the words for the terms whose bits are set."""
        if mask not in self._joined:
            surfaces = [surface for place, surface in self._words if mask >> place & 1]
            self._joined[mask] = analysis.join_surfaces(surfaces)
        return self._joined[mask]


class AskedFew:
    """Of a small index: what the few documents that match have scored, by row."""

    def __init__(
        self,
        index: Documents,
        query_terms: QueryTerms,
        terms: Sequence[int],
        found: tuple[list[float], list[int], list[tuple[int, float, list[tuple[int, int]]]]],
    ) -> None:
        """`found`: by row the score and the bits of the terms, by term (place, weight, entries)."""
        self._index, self._terms = index, len(terms)
        self._scores, self._masks, self._found = found
        self._words = _Words(query_terms, terms)

    def array(self) -> Float64:
        """See `Asked.array`."""
        return np.array(self._scores)

    def entries(self) -> Entries:
        """See `Asked.entries`."""
        weight = np.zeros(self._terms)
        for place, value, _ in self._found:
            weight[place] = value
        sizes = [len(entries) for _, _, entries in self._found]
        places = np.repeat(np.array([p for p, _, _ in self._found], np.intp), sizes)
        flat = [pair for _, _, entries in self._found for pair in entries]
        pairs = np.array(flat, np.intp).reshape(-1, 2)
        return Entries(places, pairs[:, 0], pairs[:, 1], weight)

    def top(self, k: int, allowed: Callable[[str], bool] | None = None) -> list[tuple[str, float]]:
        """See `Asked.top`."""
        ranked = sorted([(-rounded(score), row) for row, score in enumerate(self._scores) if score])
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
        row_of, scores = self._index.rows.get, self._scores
        return [0.0 if (row := row_of(i)) is None else scores[row] for i in ids]

    def matched(self, ids: Sequence[str]) -> list[list[str]]:
        """See `Asked.matched`."""
        row_of, masks, of = self._index.rows.get, self._masks, self._words.of
        return [of(0 if (row := row_of(i)) is None else masks[row]) for i in ids]


class AskedMany:
    """Of a large index: the score of every row, and all entries of the query's terms."""

    def __init__(
        self,
        index: Documents,
        query_terms: QueryTerms,
        terms: Sequence[int],
        entries: Entries,
        scores: Float64,
    ) -> None:
        self._index, self._entries, self._scores = index, entries, scores
        self._words = _Words(query_terms, terms)

    def array(self) -> Float64:
        """See `Asked.array`."""
        return self._scores

    def entries(self) -> Entries:
        """See `Asked.entries`."""
        return self._entries

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
        place, row, _, _ = self._entries
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


@lru_cache(maxsize=_CACHE_HASHES)
def hash_of(term: str) -> int:
    """Return 64 bits that stand for `term`, the same in every process."""
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
