"""Vectors by id in one float32 matrix, ranked exactly, with as little spare room as can be.

Row order is the order of adding; a replaced vector keeps its row. A removed row is zeroed at once
and stays until `compact` closes the gaps. Not thread-safe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph.errors import InvalidValueError
from reverie.memory_graph.topk import DECIMALS, SMALL, top, top_accepted

Float32: TypeAlias = NDArray[np.float32]
Rows: TypeAlias = NDArray[np.intp]

FLOAT_BYTES = 4
DEAD_SHARE = 0.2
MIN_DEAD = 16
_MIN_STD = 1e-6
_GROWTH = 1.125  # not 2: resident memory is what limits the number of users
_CHUNK_ROWS = 1024
_NO_ROWS = np.empty(0, np.intp)
_NO_COSINES = np.empty(0, np.float64)


class Hits(Sequence[tuple[str, float]]):
    """What a search found: `(id, cosine)`, best first; valid until the table changes.

    Attributes:
        rows: of the table, intp (hits,).
        cosines: theirs, float64 (hits,).
        mean, std: of the query's cosines with all rows; std is never 0.
        scores: the cosines by row, float32 (rows of the table,), where all were computed exactly.
    """

    __slots__ = ("_ids", "cosines", "mean", "rows", "scores", "std")

    def __init__(
        self,
        ids: Sequence[str | None] = (),
        rows: Rows = _NO_ROWS,
        cosines: NDArray[np.float64] = _NO_COSINES,
        background: tuple[float, float] = (0.0, 1.0),
        scores: Float32 | None = None,
    ) -> None:
        self._ids, self.rows, self.cosines, self.scores = ids, rows, cosines, scores
        self.mean, self.std = background

    def __len__(self) -> int:
        return self.rows.size

    @overload
    def __getitem__(self, place: int) -> tuple[str, float]: ...

    @overload
    def __getitem__(self, place: slice) -> list[tuple[str, float]]: ...

    def __getitem__(self, place: int | slice) -> tuple[str, float] | list[tuple[str, float]]:
        if isinstance(place, slice):
            return self._named(self.rows[place], self.cosines[place])
        return self._named(
            self.rows[place : place + 1 or None], self.cosines[place : place + 1 or None]
        )[0]

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _named(self, rows: Rows, cosines: NDArray[np.float64]) -> list[tuple[str, float]]:
        ids = self._ids
        return [
            (cast("str", ids[row]), cosine)  # live rows have one
            for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True)
        ]


class VectorTable:
    """The rows of one user. `matrix`, `ids`, `rows`, `dead` and `version` are for reading."""

    __slots__ = ("_room", "dead", "dim", "ids", "rows", "version")

    def __init__(self, dim: int) -> None:
        """Start empty, for vectors of `dim` numbers."""
        self.dim = dim
        self._room: Float32 = np.zeros((0, dim), np.float32)
        self.ids: list[str | None] = []  # by row; None once removed
        self.rows: dict[str, int] = {}  # live ids, in the order of their rows
        self.dead: list[int] = []  # removed rows
        self.version = 0  # changes when a row is replaced, removed or renumbered

    @property
    def matrix(self) -> Float32:
        """A view of all rows, dead ones too (zeros): float32 (len(ids), dim). Do not keep it."""
        return self._room[: len(self.ids)]

    @property
    def is_worn(self) -> bool:
        """Whether so many rows are dead that compacting is worth its copy."""
        return len(self.dead) > max(MIN_DEAD, DEAD_SHARE * len(self.ids))

    @property
    def size_bytes(self) -> int:
        """Memory held, spare room included, without the ids themselves."""
        tables = sum(map(sys.getsizeof, (self.ids, self.rows, self.dead)))
        numbers = 32 * max(0, len(self.ids) - 257)  # row numbers; Python shares the smaller ones
        return self._room.nbytes + tables + numbers

    def checked(self, vectors: Float32, *shape: int) -> Float32:
        """Return `vectors` as float32 of `shape`.

        Raises:
            InvalidValueError: another shape, or a number that is not finite.
        """
        array = np.asarray(vectors, np.float32)
        if array.shape != shape:
            msg = f"expected vectors of shape {shape}, got {array.shape}"
            raise InvalidValueError(msg, dim=self.dim)
        if not np.isfinite(array).all():
            msg = "a vector holds a number that is not finite"
            raise InvalidValueError(msg, dim=self.dim)
        return array

    def decoded(self, data: bytes, count: int) -> Float32:
        """Return float32 little endian bytes as an array of shape (count, dim).

        Raises:
            InvalidValueError: another length, or a number that is not finite.
        """
        if len(data) != FLOAT_BYTES * self.dim * count:
            msg = f"{len(data)} bytes are not {count} vectors of dimension {self.dim}"
            raise InvalidValueError(msg, dim=self.dim)
        return self.checked(np.frombuffer(data, "<f4").reshape(count, self.dim), count, self.dim)

    def put(self, ids: Sequence[str], vectors: Float32) -> list[int]:
        """Add or replace checked vectors, shape (len(ids), dim); return the rows replaced."""
        replaced = list({self.rows[node_id]: None for node_id in ids if node_id in self.rows})
        new = list(dict.fromkeys(node_id for node_id in ids if node_id not in self.rows))
        self.version += bool(replaced)
        self._reserve(len(new))
        for row, node_id in enumerate(new, len(self.ids)):
            self.rows[node_id] = row
        self.ids.extend(new)
        for node_id, vector in zip(ids, vectors, strict=True):  # the last one of an id stays
            self._room[self.rows[node_id]] = vector
        return replaced

    def drop(self, node_id: str) -> int | None:
        """Remove and zero a vector; return the row that is now dead, None for an unknown id."""
        row = self.rows.pop(node_id, None)
        if row is not None:
            self.ids[row] = None
            self._room[row] = 0.0
            self.version += 1
            self.dead.append(row)
        return row

    def compact(self) -> Rows:
        """Close the gaps in place and give spare room back; return the old rows, now 0, 1, ..."""
        kept, used = self.live_rows(), len(self.ids)
        self.version += 1
        for start in range(0, kept.size, _CHUNK_ROWS):
            part = kept[start : start + _CHUNK_ROWS]
            self._room[start : start + part.size] = self._room[part]
        self._room[kept.size : used] = 0.0  # before the memory goes back: no copy is left there
        self._resize(kept.size)
        self.ids = list(self.rows)
        self.rows = {node_id: row for row, node_id in enumerate(self.rows)}
        self.dead = []
        return kept

    def live_rows(self) -> Rows:
        """Return the rows that are not dead, ascending."""
        rows = np.arange(len(self.ids))
        return np.delete(rows, self.dead) if self.dead else rows

    def id_of(self, row: int) -> str:
        """Return the id of a live row."""
        return cast("str", self.ids[row])

    def export(self) -> tuple[list[str], bytes]:
        """Return ids in row order and their vectors, float32 little endian."""
        live = self.matrix[self.live_rows()] if self.dead else self.matrix
        return list(self.rows), live.astype("<f4", copy=False).tobytes()

    def ranked(
        self,
        query: Float32,
        scores: Float32,
        k: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> Hits:
        """Return the `k` rows that are nearest to `query`.

        Args:
            query: shape (dim,).
            scores: its product with all rows, float32 (len(ids),), which is written to.
            k: how many, at most.
            allowed: asked from the best down, no more often than needed.
        """
        background = self.spread(scores)
        scores[self.dead] = -np.inf
        exact = scores.size <= SMALL  # they were computed row by row: see `product`

        def recomputed(rows: Rows) -> Float32:
            return self.cosines(query, rows)

        again = None if exact else recomputed
        if allowed is None:
            rows, cosines = top(scores, k, again)
        else:
            found = top_accepted(scores, k, lambda row: allowed(self.id_of(row)), again)
            rows = np.array([row for row, _ in found], np.intp)
            cosines = np.array([cosine for _, cosine in found], np.float64)
        return Hits(self.ids, rows, cosines, background, scores if exact else None)

    def ranked_small(self, queries: Sequence[Float32], k: int) -> list[Hits]:
        """Return what `ranked` does for several queries over at most `SMALL` rows: most users are
        small, and then the calls cost more than the numbers."""
        count = len(self.ids)
        if not count or not queries:
            return [Hits(scores=np.zeros(0, np.float32)) for _ in queries]
        scores = np.stack([self.product(query) for query in queries])
        live = np.delete(scores, self.dead, axis=1) if self.dead else scores
        backgrounds = spreads(live)
        scores[:, self.dead] = -np.inf
        ranking = scores.astype(np.float64).round(DECIMALS)
        order = np.argsort(-ranking, axis=1, kind="stable")[:, : max(0, min(k, len(self.rows)))]
        cosines = np.take_along_axis(ranking, order, axis=1)
        found = zip(order, cosines, backgrounds, scores, strict=True)
        return [Hits(self.ids, *one) for one in found]

    def product(self, query: Float32) -> Float32:
        """Return the cosines of all rows, float32 (rows,); of few rows, each as `cosines` does."""
        if len(self.ids) <= SMALL:
            return self._each(self.matrix, query)
        return self.matrix @ query

    def cosines(self, query: Float32, rows: Rows) -> Float32:
        """Return the cosines of some rows, to the bit the same for equal vectors.

        A matrix product does not promise that: it adds up differently in its last rows.
        """
        return self._each(self.matrix.take(rows, axis=0), query)  # quicker than by index

    @staticmethod
    def _each(rows: Float32, query: Float32) -> Float32:
        products: Float32 = np.einsum("ij,j->i", rows, query)  # row by row, unlike a BLAS product
        return products

    def spread(self, scores: Float32) -> tuple[float, float]:
        """Return mean and standard deviation of the scores of live rows, as `spreads` does."""
        live = np.delete(scores, self.dead) if self.dead else scores
        return spreads(live[None, :])[0]

    def similarities(self, query: Float32, ids: Sequence[str]) -> list[float]:
        """Return the cosines of given ids; NaN for an unknown one."""
        get = self.rows.get
        rows = np.array([get(node_id, -1) for node_id in ids], np.intp)
        known = rows >= 0
        out = np.full(len(ids), np.nan, np.float32)
        out[known] = self.cosines(query, rows[known])
        found: list[float] = out.tolist()
        return found

    def _reserve(self, extra: int) -> None:
        room, needed = len(self._room), len(self.ids) + extra
        if needed > room:
            self._resize(max(needed, int(room * _GROWTH)))  # exactly, for a large addition

    def _resize(self, room: int) -> None:
        # Moves pages instead of copying them. No view outlives the call that took it, which is
        # what numpy's check would ask (it counts references, and a debugger misleads it).
        self._room.resize((room, self.dim), refcheck=False)


def spreads(cosines: Float32) -> list[tuple[float, float]]:
    """Return mean and standard deviation (never 0) of each row; (0, 1) without columns."""
    size = cosines.shape[1]
    if not size:
        return [(0.0, 1.0)] * len(cosines)
    mean = cosines.sum(axis=1) / np.float32(size)
    apart = cosines - mean[:, None]  # before squaring: cosines may all lie near 0.85
    std = np.sqrt(np.einsum("ij,ij->i", apart, apart) / np.float32(size))
    return list(zip(mean.tolist(), np.maximum(std, _MIN_STD).tolist(), strict=True))
