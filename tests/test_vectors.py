"""The vector index against plain NumPy, and its hnswlib index against exact search."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from reverie.memory_graph import vectors as vectors_module
from reverie.memory_graph.errors import (
    InvalidValueError,
    StorageFailedError,
    StorageFullError,
)
from reverie.memory_graph.vector_table import Float32, VectorTable
from reverie.memory_graph.vectors import VectorIndex

DIM = 16


def unit(values: Any) -> Float32:
    array = np.asarray(values, np.float32)
    return np.asarray(array / np.linalg.norm(array, axis=-1, keepdims=True), np.float32)


def clustered(rng: np.random.Generator, count: int, clusters: int = 40) -> Float32:
    centres = rng.standard_normal((clusters, DIM))
    return unit(centres[np.arange(count) % clusters] + 0.5 * rng.standard_normal((count, DIM)))


def filled(count: int, exact_limit: int, seed: int = 0) -> tuple[VectorIndex, Float32]:
    matrix = clustered(np.random.default_rng(seed), count)
    index = VectorIndex(DIM, exact_limit=exact_limit)
    index.add_many([f"m{i}" for i in range(count)], matrix)
    return index, matrix


class Twin:
    """A dict of vectors; a replaced one keeps its place, as a dict's keys do."""

    def __init__(self) -> None:
        self.vectors: dict[str, Float32] = {}

    def search(self, query: Float32, k: int, parity: int | None = None) -> list[tuple[str, float]]:
        scored = [(i, round(float(v @ query), 6)) for i, v in self.vectors.items()]
        scored = [hit for hit in scored if parity is None or int(hit[0]) % 2 == parity]
        return sorted(scored, key=lambda hit: -hit[1])[:k]


def assert_same(index: VectorIndex, twin: Twin, query: Float32, k: int) -> None:
    assert len(index) == len(twin.vectors)
    assert index.ids() == list(twin.vectors)
    wanted = twin.search(query, k)
    hits = index.search(query, k)
    assert_ranked(hits, wanted)
    assert_ranked(index.search(query, k, lambda i: int(i) % 2 == 1), twin.search(query, k, 1))
    assert_ranked(index.search_many(np.stack([query, -query]), k)[0], wanted)
    everything = [float(v @ query) for v in twin.vectors.values()] or [0.0]
    assert hits.mean == pytest.approx(np.mean(everything), abs=1e-5)
    assert hits.std == pytest.approx(max(np.std(everything), 1e-6) if twin.vectors else 1, abs=1e-5)
    assert index.background(query) == pytest.approx((hits.mean, hits.std), abs=1e-5)
    ids, data = index.export()
    assert np.array_equal(np.frombuffer(data, "<f4"), np.ravel([*twin.vectors.values()]))
    restored = VectorIndex.restore(DIM, ids, data)
    assert_ranked(restored.search(query, k), wanted)


def assert_ranked(hits: Sequence[tuple[str, float]], wanted: list[tuple[str, float]]) -> None:
    assert [i for i, _ in hits] == [i for i, _ in wanted]
    assert [s for _, s in hits] == pytest.approx([s for _, s in wanted], abs=2e-6)


PALETTE = unit(np.random.default_rng(3).standard_normal((9, DIM)))  # few, so that ties are common
IDS = st.integers(0, 14).map(str)
COLOURS = st.integers(0, len(PALETTE) - 1)
OPERATIONS = st.one_of(
    st.tuples(st.just("add"), IDS, COLOURS),
    st.tuples(st.just("add_many"), st.lists(st.tuples(IDS, COLOURS), max_size=12)),
    st.tuples(st.just("remove"), IDS),
    st.tuples(st.just("erase"), st.lists(IDS, max_size=3)),
    st.tuples(st.just("search"), COLOURS, st.integers(-1, 20)),
)


@given(st.lists(OPERATIONS, max_size=30), st.sampled_from([2, 6, 4000]))
@settings(max_examples=120, deadline=None)
def test_random_operations_agree_with_the_twin(
    operations: list[tuple[Any, ...]], exact_limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:  # so that a few rows meet every rebuild
        patch.setattr("reverie.memory_graph.vector_table.MIN_DEAD", 1)
        patch.setattr(vectors_module, "MIN_DEAD", 1)
        patch.setattr(vectors_module, "_FEED_PER_ROW", 2)
        index, twin = VectorIndex(DIM, exact_limit=exact_limit), Twin()
        for name, *arguments in operations:
            if name == "add":
                index.add(arguments[0], PALETTE[arguments[1]].tobytes())
                twin.vectors[arguments[0]] = PALETTE[arguments[1]]
            elif name == "add_many":
                ids, colours = [i for i, _ in arguments[0]], [c for _, c in arguments[0]]
                index.add_many(ids, PALETTE[colours].reshape(-1, DIM))
                twin.vectors |= {i: PALETTE[c] for i, c in arguments[0]}
            elif name == "remove":
                assert index.remove(arguments[0]) == (arguments[0] in twin.vectors)
                twin.vectors.pop(arguments[0], None)
            elif name == "erase":
                index.erase(arguments[0])
                for node_id in arguments[0]:
                    twin.vectors.pop(node_id, None)
            else:
                assert_same_set(index, twin, PALETTE[arguments[0]], arguments[1])
        assert_same_set(index, twin, PALETTE[0], 5)


def assert_same_set(index: VectorIndex, twin: Twin, query: Float32, k: int) -> None:
    if index._is_indexed:  # its background is a sample, the rest is the same
        wanted = twin.search(query, max(0, k))
        assert_ranked(index.search(query, k), wanted)
        assert index.ids() == list(twin.vectors)
    else:
        assert_same(index, twin, query, max(0, k))


def test_wrong_vectors_are_refused_and_change_nothing() -> None:
    index, matrix = filled(10, 100)
    before = index.export()
    nan = matrix[0].copy()
    nan[3] = np.nan
    infinite = matrix[:2].copy()
    infinite[1, 1] = np.inf
    for bad in (nan, matrix[0, 1:], matrix[0].tobytes()[:-1], nan.tobytes()):
        with pytest.raises(InvalidValueError):
            index.add("m3", bad)
    with pytest.raises(InvalidValueError):
        index.add_many(["a", "b"], infinite)
    with pytest.raises(InvalidValueError):
        index.add_many(["a"], matrix[:2])
    with pytest.raises(InvalidValueError):
        index.search(nan, 3)
    with pytest.raises(InvalidValueError):
        index.search_many(matrix[:, 1:], 3)
    with pytest.raises(InvalidValueError):
        VectorIndex.restore(DIM, ["a", "a"], matrix[:2].tobytes())
    with pytest.raises(InvalidValueError):
        VectorIndex.restore(DIM, ["a"], matrix[:2].tobytes())
    with pytest.raises(InvalidValueError):
        VectorIndex(0)
    assert index.export() == before


def test_an_empty_index_answers() -> None:
    index = VectorIndex(DIM)
    hits = index.search(PALETTE[0], 5)
    assert (list(hits), hits.mean, hits.std) == ([], 0.0, 1.0)
    assert index.search_many(PALETTE, 5) == [[]] * len(PALETTE)
    assert index.export() == ([], b"")
    assert not index.remove("a")
    assert index.vector("a") is None
    index.erase(["a"])
    index.settle()
    assert index.backlog == 0


def test_similarities_and_copies() -> None:
    index, matrix = filled(10, 100)
    found = index.similarities(matrix[0], ["m2", "nobody", "m0"])
    assert [found[0], found[2]] == pytest.approx([matrix[2] @ matrix[0], 1.0], abs=1e-6)
    assert np.isnan(found[1])
    copy = index.vector("m0")
    assert copy is not None
    copy[:] = 0
    assert index.similarities(matrix[0], ["m0"])[0] == pytest.approx(1.0)


def test_equal_vectors_are_in_row_order() -> None:
    index = VectorIndex(384)
    vector = unit(np.random.default_rng(0).standard_normal(384))
    index.add_many([f"m{i}" for i in range(333)], np.tile(vector, (333, 1)))
    for k in (1, 7, 100, 500):
        assert [i for i, _ in index.search(vector, k)] == [f"m{i}" for i in range(min(k, 333))]


def test_the_last_bits_of_a_product_decide_nothing() -> None:
    rng = np.random.default_rng(1)
    index = VectorIndex(30)  # no multiple of a vector register
    index.add_many([f"m{i}" for i in range(37)], np.tile(unit(rng.standard_normal(30)), (37, 1)))
    for query in unit(rng.standard_normal((400, 30))):
        assert [i for i, _ in index.search(query, 9)] == [f"m{i}" for i in range(9)]


def test_a_removed_vector_is_zeroed_at_once() -> None:
    index, matrix = filled(50, 100)
    index.remove("m7")
    assert matrix[7].tobytes() not in index._table._room.tobytes()


def test_a_filter_is_asked_from_the_top() -> None:
    index, matrix = filled(3000, 5000)
    asked: list[str] = []

    def allowed(node_id: str) -> bool:
        asked.append(node_id)
        return len(asked) % 2 == 0

    assert len(index.search(matrix[7], 5, allowed)) == 5
    assert asked == [i for i, _ in index.search(matrix[7], 10)]


def test_room_is_tight() -> None:
    index, matrix = filled(200, 4000)
    assert index._table._room.shape == (200, DIM)
    for i in range(200):
        index.add(f"n{i}", matrix[i])
    assert len(index._table._room) <= 500
    assert index.size_bytes < 400 * (DIM * 4 * 1.25 + 150)


# -- the hnswlib index -----------------------------------------------------------------


def recall(index: VectorIndex, queries: Float32, k: int = 10) -> float:
    assert index._is_indexed
    ids, data = index.export()
    matrix = np.frombuffer(data, np.float32).reshape(-1, DIM)
    found = 0
    for query in queries:
        best = np.argsort(-(matrix @ query), kind="stable")[:k]
        hits = index.search(query, k)
        assert [s for _, s in hits] == sorted((s for _, s in hits), reverse=True)
        found += len({ids[row] for row in best} & {i for i, _ in hits})
    return found / k / len(queries)


def test_recall_through_a_whole_life(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    index, matrix = filled(6000, 1000)
    queries = unit(matrix[::120] + 0.3 * rng.standard_normal((50, DIM)))
    assert index.backlog > 5000  # a large addition does not block
    assert_ranked(index.search(matrix[5], 3)[:1], [("m5", 1.0)])  # exact until it has caught up
    while index.step(512):
        pass
    assert recall(index, queries) >= 0.95

    for i in range(900):
        assert index.remove(f"m{i}")
    index.erase([f"m{i}" for i in range(900, 1000)])
    index.add_many([f"m{i}" for i in range(1000, 1040)], clustered(rng, 40))  # replaced in place
    index.settle()
    assert recall(index, queries) >= 0.95
    assert all(int(i[1:]) >= 1000 for q in queries for i, _ in index.search(q, 20))

    digest = index.save_index(tmp_path / "x.hnsw")
    restored = VectorIndex.restore(DIM, *index.export(), exact_limit=1000)
    assert restored.load_index(tmp_path / "x.hnsw", digest)
    assert restored.backlog == 0
    assert not restored.is_changed
    assert [restored.search(q, 10) for q in queries] == [index.search(q, 10) for q in queries]

    for i in range(2000, 3600):  # past a fifth: given up, and built anew while it is written to
        restored.remove(f"m{i}")
    restored.settle()
    assert restored._graph is not None
    assert len(restored._graph._row_of) < 5000 * 1.3
    assert recall(restored, queries) >= 0.95


def test_filters_on_an_hnswlib_index() -> None:
    index, matrix = filled(3000, 1000)
    index.settle()
    twin = Twin()
    twin.vectors = {str(i): v for i, v in enumerate(matrix)}
    for share in (2, 50, 1500):
        allowed = {f"m{i}" for i in range(0, 3000, share)}
        scored = [(f"m{i}", s) for i, s in twin.search(matrix[9], 3000)]
        hits = index.search(matrix[9], 5, allowed.__contains__)
        assert_ranked(hits, [hit for hit in scored if hit[0] in allowed][:5])
    assert len(index.search(matrix[9], 2500)) == 2500
    assert len(index.search(matrix[9], 9000)) == 3000
    hits = index.search(matrix[9], 3)
    assert (hits.mean, hits.std) == pytest.approx(
        ((matrix @ matrix[9]).mean(), (matrix @ matrix[9]).std()), abs=0.1
    )


def test_it_is_the_same_twice() -> None:
    one, matrix = filled(2000, 500)
    other, _ = filled(2000, 500)
    for index in (one, other):
        index.settle()
    assert one.search_many(matrix[:50], 20) == other.search_many(matrix[:50], 20)


def test_it_is_given_up_when_few_are_left() -> None:
    index, _ = filled(1100, 1000)
    index.settle()
    assert index._is_indexed
    assert index.size_bytes > 2_600_000
    index.erase([f"m{i}" for i in range(700)])
    assert index._graph is None


@pytest.mark.parametrize("removed_before", [False, True])
def test_erased_vectors_leave_no_copy(tmp_path: Path, *, removed_before: bool) -> None:
    index, matrix = filled(1500, 1000)
    index.settle()
    if removed_before:
        index.remove("m8")
    index.erase(["m7", "m8", "m9"])
    index.settle()
    index.save_index(tmp_path / "x.hnsw")
    saved = (tmp_path / "x.hnsw").read_bytes()
    held = index._table._room.tobytes()
    assert matrix[10].tobytes() in saved
    for i in (7, 8, 9):
        assert matrix[i].tobytes() not in saved
        assert matrix[i].tobytes() not in held
    assert held.count(matrix[10].tobytes()) == 1


def test_a_table_keeps_no_second_copy_after_compacting() -> None:
    table = VectorTable(DIM)
    matrix = clustered(np.random.default_rng(0), 50)
    table.put([str(i) for i in range(50)], matrix)
    for i in range(25):
        table.drop(str(i))
    assert table.compact().tolist() == list(range(25, 50))
    assert np.array_equal(table._room, matrix[25:])


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    index, matrix = filled(1500, 1000)
    path = tmp_path / "x.hnsw"
    assert VectorIndex(DIM).save_index(path) == ""
    assert not path.exists()
    index.settle()
    changed = [index.is_changed]
    digest = index.save_index(path)
    changed.append(index.is_changed)
    assert changed == [True, False]
    assert [p.name for p in tmp_path.iterdir()] == ["x.hnsw"]

    def fresh(ids: list[str], vectors: Float32, limit: int = 1000) -> VectorIndex:
        return VectorIndex.restore(DIM, ids, vectors.tobytes(), exact_limit=limit)

    ids = index.ids()
    more = fresh([*ids, "new"], np.concatenate([matrix, matrix[:1]]))
    assert more.load_index(path, digest)
    assert more.backlog == 1
    more.add("newer", matrix[3])
    assert more.backlog == 0

    other = VectorIndex.restore(DIM // 2, ids * 1, matrix[:, : DIM // 2].tobytes(), exact_limit=9)
    assert not other.load_index(path, digest)
    assert not fresh(ids, matrix[::-1].copy()).load_index(path, digest)
    assert not fresh(ids[:1400], matrix[:1400]).load_index(path, digest)
    assert not fresh(ids, matrix, limit=2000).load_index(path, digest)
    assert not fresh(ids, matrix).load_index(path, "")
    assert not fresh(ids, matrix).load_index(tmp_path / "missing", digest)

    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    broken = fresh(ids, matrix)
    assert not broken.load_index(path, digest)
    broken.settle()  # built as usual
    assert_ranked(broken.search(matrix[4], 1), [("m4", 1.0)])


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, _ = filled(1500, 1000)
    index.settle()
    path = tmp_path / "x.hnsw"
    digest = index.save_index(path)
    index.remove("m3")
    with pytest.raises(StorageFailedError):
        index.save_index(tmp_path / "nowhere" / "x.hnsw")
    monkeypatch.setattr(vectors_module._Graph, "save", _short_save(vectors_module._Graph.save))
    with pytest.raises(StorageFullError):
        index.save_index(path)
    assert index.is_changed
    assert vectors_module._file_digest(path, DIM) == digest
    assert [p.name for p in tmp_path.iterdir()] == ["x.hnsw"]


def _short_save(real: Any) -> Any:
    """Return a `save` on a disk that fills up: hnswlib itself does not notice."""

    class Short:
        def __init__(self, index: Any) -> None:
            self._index = index

        def save_index(self, path: str) -> None:
            self._index.save_index(path)
            file = Path(path)
            file.write_bytes(file.read_bytes()[:-100])

        def index_file_size(self) -> int:
            return int(self._index.index_file_size())

    def save(graph: Any, path: Path) -> None:
        whole = graph._index
        graph._index = Short(whole)
        try:
            real(graph, path)
        finally:
            graph._index = whole

    return save


def test_growing_copies_nothing_twice() -> None:
    matrix = clustered(np.random.default_rng(0), 300)
    index = VectorIndex(DIM)
    for i, vector in enumerate(matrix):
        index.add(str(i), vector)
    assert np.array_equal(index._table.matrix, matrix)
    assert sys.getsizeof(index._table._room) >= 300 * DIM * 4
