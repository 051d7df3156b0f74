"""One user's vectors: exact search in one matrix, and an hnswlib index beside it when it is large.

The matrix is the truth; the hnswlib index only proposes candidates, which are scored from the
matrix. It exists above `exact_limit` rows, because an empty one costs 2.6 MB and exact search over
a few thousand rows is fast. It is built a few rows with each write, in the order of the rows, so
that no call blocks for as long as 50,000 rows take; until it has caught up, search is exact.

Vectors are expected to have norm 1, so that a product is a cosine. Not thread-safe.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import hnswlib
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import faults
from reverie.memory_graph.errors import (
    InvalidValueError,
    StorageError,
    StorageFailedError,
    StorageFullError,
)
from reverie.memory_graph.topk import SMALL, top
from reverie.memory_graph.vector_table import (
    DEAD_SHARE,
    MIN_DEAD,
    Float32,
    Hits,
    Rows,
    VectorTable,
    spreads,
)

__all__ = ["EF", "EXACT_LIMIT", "Hits", "VectorIndex"]

EXACT_LIMIT = 4000
_RESCORED = 64
EF = 128  # questions far from all of 10,000 rows: with 200, 93 of their 100 nearest are
# found, with 64, 72; questions near some rows lose nothing by 128

_LINKS = 16  # hnswlib's M
_EF_CONSTRUCTION = 100
_GROWTH = 1.25
_FEED_PER_ROW = 32  # rows put into the hnswlib index for each row that is written
_FEED_PER_CALL = 128  # and at most in one call: 15 to 40 ms
_EDITS_PER_CALL = 128  # vectors changed in place, at 2 ms each; for more, it is built anew
_MAX_FETCH = 1024  # candidates; past this, one exact search is cheaper
_LOCKS_BYTES = 2_600_000  # of every hnswlib index, however small

_SAMPLE_ROWS = 256  # for the background of a query when the search was not exact
_CHUNK_ROWS = 1024
_FILE_CHUNK_BYTES = 1 << 20


class VectorIndex:
    """Finds the vectors of one user that are nearest to a query.

    Equal cosines (6 decimals) are in row order: the order of adding, where a replaced vector keeps
    its place.
    """

    __slots__ = ("_ef", "_exact_limit", "_graph", "_sample", "_seed", "_table")

    def __init__(
        self, dim: int, *, exact_limit: int = EXACT_LIMIT, seed: int = 0, ef: int = EF
    ) -> None:
        """Start empty.

        Args:
            dim: numbers per vector, 1 or more.
            exact_limit: above this many live rows an hnswlib index is built.
            seed: of the hnswlib index.
            ef: candidates that each search of the hnswlib index looks at, 1 to 1,024.

        Raises:
            InvalidValueError: `dim`, `exact_limit` or `ef` is out of range.
        """
        if dim < 1 or exact_limit < 0 or not 1 <= ef <= _MAX_FETCH:
            msg = f"out of range: dim {dim}, exact_limit {exact_limit} or ef {ef}"
            raise InvalidValueError(msg, dim=dim, exact_limit=exact_limit, ef=ef)
        self._exact_limit, self._seed, self._ef = exact_limit, seed, ef
        self._table = VectorTable(dim)
        self._graph: _Graph | None = None
        self._sample: Float32 | None = None  # rows for `background`, until something changes

    @classmethod
    def restore(
        cls,
        dim: int,
        ids: Sequence[str],
        data: bytes,
        *,
        exact_limit: int = EXACT_LIMIT,
        seed: int = 0,
        ef: int = EF,
    ) -> Self:
        """Return the index that `export` described; `load_index` may follow.

        Raises:
            InvalidValueError: `data` does not fit `ids` and `dim`, an id occurs twice, or a number
                is not finite.
        """
        index = cls(dim, exact_limit=exact_limit, seed=seed, ef=ef)
        if len(set(ids)) != len(ids):
            msg = f"an id occurs twice among the {len(ids)} of the vectors"
            raise InvalidValueError(msg, dim=dim)
        index._table.put(ids, index._table.decoded(data, len(ids)))
        return index

    def __len__(self) -> int:
        return len(self._table.rows)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._table.rows

    @property
    def dim(self) -> int:
        """Numbers per vector."""
        return self._table.dim

    @property
    def size_bytes(self) -> int:
        """Memory held: the matrix with its spare room, tables, and the hnswlib index."""
        return self._table.size_bytes + (self._graph.size_bytes if self._graph else 0)

    @property
    def backlog(self) -> int:
        """Rows that the hnswlib index still lacks; 0 when there is none or it is complete."""
        return len(self._table.ids) - self._graph.fed if self._graph else 0

    @property
    def is_changed(self) -> bool:
        """Whether there is an hnswlib index of which no file holds the present state."""
        return self._graph is not None and not self._graph.is_saved

    # -- writing -------------------------------------------------------------------------

    def add(self, node_id: str, vector: bytes | Float32) -> None:
        """Add a vector, or replace the one of this id.

        Args:
            node_id: whose vector it is.
            vector: shape (dim,), or its float32 little endian bytes.

        Raises:
            InvalidValueError: another dimension, or a number that is not finite.
        """
        if isinstance(vector, bytes):
            row = self._table.decoded(vector, 1)
        else:
            row = self._table.checked(vector, self.dim)[None]
        self._write([node_id], row)

    def add_many(self, ids: Sequence[str], matrix: Float32) -> None:
        """Add or replace vectors, shape (len(ids), dim), in order; raises as `add` does."""
        self._write(ids, self._table.checked(matrix, len(ids), self.dim))

    def remove(self, node_id: str) -> bool:
        """Remove a vector from the matrix and from all results; False when it is not here.

        A copy may stay in the hnswlib index until that is rebuilt; `erase` leaves none.
        """
        self._sample = None
        row = self._table.drop(node_id)
        if row is None:
            return False
        if self._graph:
            self._graph.remove(row, wipe=False)
        if self._table.is_worn:
            self._compact()
        self._advance(1)
        return True

    def erase(self, ids: Iterable[str]) -> None:
        """Remove vectors so that no copy stays in the matrix or in the hnswlib index.

        Rows that `remove` took out before are wiped from the hnswlib index too.
        """
        known = [node_id for node_id in ids if node_id in self._table.rows]
        if self._graph and (len(known) > _EDITS_PER_CALL or self._graph.has_unwiped):
            self._graph = None
        for node_id in known:
            self._sample = None
            row = self._table.drop(node_id)
            if self._graph and row is not None:
                self._graph.remove(row, wipe=True)
        if self._table.dead:
            self._compact()
        self._advance(len(known))

    def step(self, rows: int = _FEED_PER_ROW) -> int:
        """Put up to `rows` rows into the hnswlib index (0.3 ms each); return how many are left."""
        self._advance(0)
        if self._graph:
            self._graph.feed(self._table, rows)
        return self.backlog

    def settle(self) -> None:
        """Finish the hnswlib index now: about 0.3 ms for each row of the backlog."""
        while self.step(_CHUNK_ROWS):
            pass

    def _write(self, ids: Sequence[str], matrix: Float32) -> None:
        self._sample = None
        replaced = self._table.put(ids, matrix)
        if len(replaced) > _EDITS_PER_CALL:
            self._graph = None
        if self._graph:
            for row in replaced:
                self._graph.change(row, self._table.matrix[row])
        self._advance(len(ids))

    def _compact(self) -> None:
        used = len(self._table.ids)
        self._sample = None
        kept = self._table.compact()
        if self._graph:
            self._graph.renumber(kept, used)

    def _advance(self, rows: int) -> None:
        """Begin, feed, or give up the hnswlib index, as the number of live rows asks."""
        live = len(self)
        if self._graph and (self._graph.is_worn or live <= self._exact_limit // 2):
            self._graph = None
        if self._graph is None and live > self._exact_limit:
            self._graph = _Graph.empty(self.dim, live, self._seed)
        if self._graph:
            self._graph.feed(self._table, min(_FEED_PER_ROW * rows, _FEED_PER_CALL))

    # -- reading -------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Return the ids in the order of their rows."""
        return list(self._table.rows)

    def vector(self, node_id: str) -> Float32 | None:
        """Return a copy of a vector, shape (dim,); None for an unknown id."""
        row = self._table.rows.get(node_id)
        return None if row is None else self._table.matrix[row].copy()

    def export(self) -> tuple[list[str], bytes]:
        """Return ids in row order and their vectors, float32 little endian, for `restore`."""
        return self._table.export()

    def search(self, query: Float32, k: int, allowed: Callable[[str], bool] | None = None) -> Hits:
        """Return the `k` nearest vectors, best first.

        Args:
            query: shape (dim,), of norm 1.
            k: 0 or less gives nothing; more than there are gives all.
            allowed: asked from the best down, not much further than needed.

        Raises:
            InvalidValueError: a query of another dimension, or not finite.
        """
        query = self._table.checked(query, self.dim)
        k = max(0, k)
        near = self._approximate(query, k, allowed) if self._is_indexed else None
        if near is not None:
            return Hits(self._table.ids, *near, self._background(query))
        if allowed is None and len(self._table.ids) <= SMALL:
            return self._table.ranked_small([query], k)[0]
        return self._table.ranked(query, self._table.product(query), k, allowed)

    def search_many(self, queries: Sequence[Float32] | Float32, k: int) -> list[Hits]:
        """Return what `search` returns for each of several queries, in fewer steps."""
        if self._is_indexed or len(self._table.ids) > SMALL:
            return [self.search(query, k) for query in queries]
        checked = [self._table.checked(query, self.dim) for query in queries]
        return self._table.ranked_small(checked, k)

    def similarities(self, query: Float32, ids: Sequence[str]) -> list[float]:
        """Return the cosines of given ids; NaN for an unknown one."""
        return self._table.similarities(self._table.checked(query, self.dim), ids)

    @property
    def table(self) -> VectorTable:
        """The vectors themselves, for reading."""
        return self._table

    def cosines(self, query: Float32, hits: Hits, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the cosines of the table's rows, float64 (rows of the table,), right at least at
        `rows`; what a search that has just returned `hits` has computed is used again."""
        every = np.zeros(len(self._table.ids) + 1)  # one more, for -1
        if hits.scores is not None:
            every[:-1] = hits.scores
        else:
            is_wanted = np.zeros(every.size, np.bool_)
            is_wanted[rows] = True
            wanted = np.flatnonzero(is_wanted[:-1])
            every[wanted] = self._table.cosines(query, wanted)
        return every

    def background(self, query: Float32) -> tuple[float, float]:
        """Return mean and standard deviation (never 0) of the query's cosines with the rows.

        Over all rows while search is exact, over a fixed, evenly spaced sample of 256 otherwise.
        `search` returns the same with its hits, at no further product. Empty: (0, 1).
        """
        return self._background(self._table.checked(query, self.dim))

    def _background(self, query: Float32) -> tuple[float, float]:
        if not self._is_indexed:
            return self._table.spread(self._table.product(query))
        if self._sample is None:
            rows = self._table.live_rows()
            chosen = rows[np.linspace(0, rows.size - 1, _SAMPLE_ROWS).astype(np.intp)]
            self._sample = self._table.matrix[chosen]
        return spreads((self._sample @ query)[None, :])[0]

    @property
    def _is_indexed(self) -> bool:
        return self._graph is not None and not self.backlog

    def _approximate(
        self, query: Float32, k: int, allowed: Callable[[str], bool] | None
    ) -> tuple[Rows, NDArray[np.float64]] | None:
        """Return the rows and cosines that the hnswlib index finds; None when exact search has to
        answer."""
        judged = cache(allowed) if allowed else None  # a wider search meets the same ids again
        fetch = max(k, self._ef)
        while self._graph and fetch <= _MAX_FETCH:
            rows = self._graph.search(query, fetch)
            if rows is None:
                break
            # Ties are broken among those that can come up; hnswlib's own order will do beyond.
            rows = np.sort(rows[: max(2 * k, _RESCORED)] if judged is None else rows)
            order, cosines = top(self._table.cosines(query, rows), fetch)
            rows = rows[order]
            if judged is not None:
                kept: list[int] = []
                for place, row in enumerate(rows.tolist()):
                    if len(kept) < k and judged(self._table.id_of(row)):
                        kept.append(place)
                rows, cosines = rows[kept], cosines[kept]
            if rows.size >= k or fetch >= len(self):
                return rows[:k], cosines[:k]
            fetch *= 4
        return None

    # -- the saved hnswlib index ---------------------------------------------------------

    def save_index(self, path: str | Path) -> str:
        """Write the hnswlib index to a file and return the digest that `load_index` asks for.

        The one place, with `load_index`, where an index touches files: hnswlib can save itself to
        a path only. The file is complete and synced before it gets its name.

        Returns:
            Hex of a blake2b; an empty string, and no file, when there is no hnswlib index.

        Raises:
            StorageFullError: the file came out short.
            StorageFailedError: any other error. In both cases, `path` is as it was.
        """
        if self._graph is None or not self._graph.fed:
            return ""
        path = Path(path)
        unfinished = path.with_name(path.name + ".tmp")
        try:
            self._graph.save(unfinished)
            digest = _file_digest(unfinished, self.dim)
            faults.reach("index-name.before")
            unfinished.replace(path)  # the moment from which the new file counts
            faults.reach("index-name.after")
            _sync(path.parent)
            self._graph.is_saved = True
        except (OSError, RuntimeError) as error:
            unfinished.unlink(missing_ok=True)
            if isinstance(error, StorageError):
                raise
            msg = f"cannot save the vector index: {error}"
            raise StorageFailedError(msg) from error
        return digest

    def load_index(self, path: str | Path, digest: str) -> bool:
        """Take the hnswlib index from a file instead of building it.

        The file must have the digest (hnswlib loads a damaged one without complaint) and hold,
        bit for bit, the first rows of this index; later rows are added to it as usual.

        Returns:
            False when the file is missing or does not fit, or there are too few rows for it: the
            index then stays as it is, and is built as usual.
        """
        if len(self) <= self._exact_limit:
            return False
        if self._table.dead:
            self._compact()
        try:
            if _file_digest(Path(path), self.dim) != digest:
                return False
            graph = _Graph.load(Path(path), self._table)
        except (OSError, RuntimeError):
            return False
        self._graph = graph or self._graph
        return graph is not None


class _Graph:
    """An hnswlib index over the rows of a matrix, in row order, with labels that never change.

    A label is the number of the addition; `_row_of[label]` and `_label_of[row]` are -1 for what
    is deleted. So rows can be renumbered without touching the index.
    """

    __slots__ = ("_index", "_label_of", "_live", "_row_of", "has_unwiped", "is_saved")

    def __init__(self, dim: int) -> None:
        self._index: Any = hnswlib.Index("ip", dim)  # of unit vectors: the cosine
        self._row_of = array("i")
        self._label_of = array("i")
        self._live = 0
        self.has_unwiped = False  # whether a deleted vector is still in it
        self.is_saved = False  # whether a file holds it as it is

    @classmethod
    def empty(cls, dim: int, capacity: int, seed: int) -> _Graph:
        """Return an index to be fed, with room for `capacity` rows at first."""
        graph = cls(dim)
        graph._index.init_index(
            capacity, M=_LINKS, ef_construction=_EF_CONSTRUCTION, random_seed=seed
        )
        graph._index.set_num_threads(1)  # more would make it depend on their timing
        return graph

    @property
    def fed(self) -> int:
        """Rows of the matrix that have been taken in, from the first."""
        return len(self._label_of)

    @property
    def is_worn(self) -> bool:
        """Whether so many are deleted that it should be built anew."""
        dead = len(self._row_of) - self._live
        return dead > max(MIN_DEAD, DEAD_SHARE * len(self._row_of))

    @property
    def size_bytes(self) -> int:
        """About the memory held: hnswlib's 65,536 locks, its data as saved, and the labels."""
        room = self._index.get_max_elements() / max(1, len(self._row_of))
        labels = 4 * (len(self._row_of) + len(self._label_of))
        return _LOCKS_BYTES + int(self._index.index_file_size() * room) + labels

    def feed(self, table: VectorTable, count: int) -> None:
        """Take in the next `count` live rows of `table`."""
        rows: list[int] = []
        while len(rows) < count and self.fed < len(table.ids):
            row = self.fed
            if table.ids[row] is None:
                self._label_of.append(-1)
                continue
            self._label_of.append(len(self._row_of))
            self._row_of.append(row)
            rows.append(row)
        if not rows:
            return
        if len(self._row_of) > self._index.get_max_elements():  # past it, hnswlib raises
            self._index.resize_index(max(len(self._row_of), int(len(self._row_of) * _GROWTH)))
        first = len(self._row_of) - len(rows)
        self._index.add_items(
            table.matrix[rows], np.arange(first, len(self._row_of)), num_threads=1
        )
        self._live += len(rows)
        self.is_saved = False

    def change(self, row: int, vector: Float32) -> None:
        """Replace the vector of a row, if it was taken in."""
        if row < self.fed:
            self._index.add_items(vector[None], [self._label_of[row]], num_threads=1)
            self.is_saved = False

    def remove(self, row: int, *, wipe: bool) -> None:
        """Delete a row; hnswlib keeps its vector as a waypoint, zeroed if `wipe`."""
        if row >= self.fed:
            return
        if wipe:
            self.change(row, np.zeros(self._index.dim, np.float32))
        self.has_unwiped |= not wipe
        label = self._label_of[row]
        self._index.mark_deleted(label)
        self._row_of[label] = self._label_of[row] = -1
        self._live -= 1
        self.is_saved = False

    def renumber(self, kept: Rows, used: int) -> None:
        """Follow a compaction of the matrix: old row `kept[i]` is now row i."""
        new = np.full(used, -1, np.int32)
        new[kept] = np.arange(kept.size)
        row_of = np.array(self._row_of, np.int32)
        live = row_of >= 0
        row_of[live] = new[row_of[live]]
        fed = kept[kept < self.fed]
        self._label_of = array("i", np.array(self._label_of, np.int32)[fed].tobytes())
        self._row_of = array("i", row_of.tobytes())

    def search(self, query: Float32, k: int) -> Rows | None:
        """Return about the `k` nearest rows, best first; None when hnswlib finds too few."""
        k = min(k, self._live)  # more than are live: hnswlib raises
        self._index.set_ef(k)
        try:
            labels, _ = self._index.knn_query(query, k=k, num_threads=1)
        except RuntimeError:  # parts of the index cannot be reached
            return None
        rows: Rows = np.frombuffer(self._row_of, np.int32)[labels[0]].astype(np.intp)
        return rows

    def save(self, path: Path) -> None:
        """Write and sync a file; hnswlib notices neither a missing folder nor a full disk."""
        path.touch()
        self._index.save_index(str(path))
        if path.stat().st_size != self._index.index_file_size():
            msg = f"no space left for the vector index {path.name}"
            raise StorageFullError(msg)
        _sync(path)

    @classmethod
    def load(cls, path: Path, table: VectorTable) -> _Graph | None:
        """Return the index of a verified file, if it holds the first rows of `table` in order."""
        graph = cls(table.dim)
        return graph if graph._fill(path, table.matrix) else None

    def _fill(self, path: Path, matrix: Float32) -> bool:
        self._index.load_index(str(path))
        self._index.set_num_threads(1)
        total = self._index.get_current_count()
        labels: list[int] = []
        for start in range(0, total, _FEED_PER_CALL):
            part, stored = self._live_part(range(start, min(start + _FEED_PER_CALL, total)))
            if not np.array_equal(stored, matrix[len(labels) : len(labels) + len(part)]):
                return False
            labels += part
        row_of = np.full(total, -1, np.int32)
        row_of[labels] = np.arange(len(labels))
        self._row_of = array("i", row_of.tobytes())
        self._label_of = array("i", labels)
        self._live = len(labels)
        self.has_unwiped = total > len(labels)
        self.is_saved = True
        return True

    def _live_part(self, labels: Sequence[int]) -> tuple[list[int], Float32]:
        """Return which labels are live, and their vectors; hnswlib tells by refusing the others."""
        try:
            return list(labels), np.asarray(self._index.get_items(labels), np.float32)
        except RuntimeError:
            if len(labels) == 1:
                return [], np.empty((0, self._index.dim), np.float32)
        half = len(labels) // 2
        low, high = self._live_part(labels[:half]), self._live_part(labels[half:])
        return low[0] + high[0], np.concatenate([low[1], high[1]])


def _file_digest(path: Path, dim: int) -> str:
    """Return the blake2b of the dimension and the file, as hex."""
    digest = blake2b(dim.to_bytes(4, "little"), digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_FILE_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
