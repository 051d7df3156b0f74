"""The LangGraph store: what InMemoryStore cannot be compared with, and what is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import START, Factory, opened

import reverie
from reverie import Runtime, errors
from reverie.adapters.matching import check_filter, fits

pytest.importorskip("langgraph.store.base", reason="needs the extra 'langgraph'")

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

from reverie.adapters import rows
from reverie.adapters.langgraph import MAX_VALUE_BYTES, ReverieStore

ANA, BO = ("memories", "u1"), ("memories", "u10")
VALUE = {"text": "Ana drinks 绿茶 in Oslo.", "n": [1, 2.5, None, True, {"user_id": "x", "": "é"}]}


@pytest.fixture
def rt(factory: Factory) -> Runtime:
    return factory(background=False)


@pytest.fixture
def store(rt: Runtime) -> ReverieStore:
    return ReverieStore(rt)


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def test_a_value_lasts_as_it_was(factory: Factory) -> None:
    first = factory(background=False)
    ReverieStore(first).put(ANA, "k", VALUE)
    first.close()
    item = ReverieStore(factory(background=False)).get(ANA, "k")
    assert item is not None
    assert (item.value, item.key, item.namespace) == (VALUE, "k", ANA)
    assert item.created_at == item.updated_at == datetime.fromtimestamp(START, UTC)


def test_a_new_value_keeps_its_place_and_first_time(factory: Factory, rt: Runtime) -> None:
    store = ReverieStore(rt)
    store.put(ANA, "a", {"text": "one"})
    store.put(ANA, "b", {"text": "two"})
    factory.clock.advance(60)
    store.put(ANA, "a", {"text": "three"})
    found = store.search(ANA)
    assert keys(found) == ["a", "b"]
    assert found[0].created_at == datetime.fromtimestamp(START, UTC)
    assert found[0].updated_at == datetime.fromtimestamp(START + 60, UTC)
    old = store.user(ANA).list(include_retired=True).items
    assert [item.status for item in old] == ["superseded", "active", "active"]
    assert store.search(ANA, query="one")[0].value == {"text": "two"}  # not found by its old text


def test_a_prefix_is_of_whole_labels(store: ReverieStore) -> None:
    store.put(ANA, "k", {"text": "Ana's"})
    store.put(BO, "k", {"text": "Bo's"})
    store.put((*ANA, "deeper"), "k", {"text": "Ana's, too"})
    for query in (None, "Bo's"):
        found = store.search(ANA, query=query)
        assert {item.namespace for item in found} == {ANA, (*ANA, "deeper")}
        assert len(store.search(("memories",), query=query)) == 3
        assert store.search(("memor",), query=query) == []
    assert store.get(("memories",), "k") is None


def test_worlds_do_not_meet(rt: Runtime) -> None:
    one, other = ReverieStore(rt), ReverieStore(rt, "other")
    one.put(ANA, "k", VALUE)
    assert other.get(ANA, "k") is None
    assert other.search(()) == []
    assert other.list_namespaces() == []


def test_what_others_keep_in_the_world_is_not_shown(store: ReverieStore, rt: Runtime) -> None:
    store.put(ANA, "k", VALUE)
    store.user(ANA).remember("Ana keeps bees.")
    rt.user("ns:", "langgraph").remember("No namespace.")
    rt.user("somebody", "langgraph").remember("Not of the store.")
    assert keys(store.search(())) == ["k"]
    assert keys(store.search((), query="bees")) == ["k"]
    assert store.list_namespaces() == [ANA]


def test_forgetting_a_namespace(store: ReverieStore) -> None:
    store.put(ANA, "k", VALUE)
    store.put(BO, "k", VALUE)
    assert store.user(ANA).forget().clean
    assert store.get(ANA, "k") is None
    assert store.list_namespaces() == [BO]


# -- time to live -----------------------------------------------------------------------


def test_a_value_lives_as_long_as_it_is_read(factory: Factory, rt: Runtime) -> None:
    store = ReverieStore(rt)
    store.put(ANA, "k", {"a": "one 一", "b": "two 二"}, index=["a", "b"], ttl=2)
    for _ in range(3):  # 4.5 minutes in all
        factory.clock.advance(90)
        assert store.get(ANA, "k") is not None
    factory.clock.advance(90)
    assert keys(store.search(ANA, query="two")) == ["k"]  # by a further text, which was kept alive
    factory.clock.advance(90)
    assert store.get(ANA, "k", refresh_ttl=False) is not None
    assert keys(store.search(ANA, refresh_ttl=False)) == ["k"]
    factory.clock.advance(31)
    assert store.get(ANA, "k") is None
    assert store.search(ANA) == []
    assert store.search(ANA, query="two") == []
    assert store.list_namespaces() == []
    store.put(ANA, "k", {"a": "again"})
    factory.clock.advance(10_000)
    item = store.get(ANA, "k")
    assert item is not None
    assert item.value == {"a": "again"}


def test_defaults_of_the_time_to_live(factory: Factory, rt: Runtime) -> None:
    store = ReverieStore(rt, ttl={"default_ttl": 1, "refresh_on_read": False})
    store.put(ANA, "k", VALUE)
    store.put(ANA, "kept", VALUE, ttl=None)
    factory.clock.advance(59)
    assert store.get(ANA, "k") is not None
    factory.clock.advance(1)
    assert store.get(ANA, "k") is None
    assert store.get(ANA, "kept") is not None


# -- by meaning -------------------------------------------------------------------------


def test_each_text_of_a_value_finds_it_once(store: ReverieStore) -> None:
    store.put(
        ANA,
        "song",
        {"title": "红河谷", "lines": ["rain on the boat", "rain again"]},
        index=["title", "lines[*]"],
    )
    store.put(ANA, "bread", {"title": "sourdough bread"}, index=["title"])
    store.put(ANA, "hidden", {"title": "rain on the boat"}, index=False)
    found = store.search(ANA, query="rain on the boat")
    assert keys(found) == ["song", "bread", "hidden"]
    assert found[0].score == pytest.approx(1.0)
    assert found[2].score is None
    assert keys(store.search(ANA, query="红河谷", limit=1)) == ["song"]
    assert keys(store.search(ANA, query="rain", limit=1, offset=2)) == ["hidden"]
    store.put(ANA, "song", {"title": "another"}, index=["title"])
    best = store.search(ANA, query="rain again", limit=3)
    assert all(item.score is None or item.score < 0.9 for item in best)
    store.delete(ANA, "song")
    assert keys(store.search(ANA, query="rain")) == ["bread", "hidden"]


def test_a_filter_goes_before_the_limit(store: ReverieStore) -> None:
    values = [{"text": f"tea number {i}", "even": i % 2 == 0} for i in range(130)]
    store.batch([PutOp(ANA, f"k{i}", value) for i, value in enumerate(values)])
    found = store.search(ANA, query="tea number 7", filter={"even": True}, limit=65)
    assert len(found) == 65
    assert all(item.value["even"] for item in found)
    assert keys(store.search(ANA, limit=3, offset=64, filter={"even": True})) == ["k128"]


def test_nothing_is_found_by_meaning_without_an_index(rt: Runtime) -> None:
    store = ReverieStore(rt, index=False)
    store.put(ANA, "a", {"text": "tea"})
    store.put(ANA, "b", {"text": "coffee"}, index=["text"])
    assert [item.score for item in store.search(ANA, query="coffee")] == [None, None]


# -- batches ----------------------------------------------------------------------------


def test_the_last_write_of_a_batch_counts_and_reads_come_before(store: ReverieStore) -> None:
    ops: list[Op] = [
        PutOp(ANA, "k", {"n": 1}),
        GetOp(ANA, "k"),
        SearchOp(ANA),
        PutOp(ANA, "gone", {"n": 1}),
        PutOp(ANA, "k", {"n": 2}),
        PutOp(ANA, "gone", None),
        ListNamespacesOp((MatchCondition("suffix", ("u1",)),)),
    ]
    assert store.batch(ops) == [None, None, [], None, None, None, []]
    assert keys(store.search(ANA, filter={"n": 2})) == ["k"]
    assert store.batch([]) == []


def test_a_batch_with_a_mistake_stores_nothing(store: ReverieStore) -> None:
    with pytest.raises(errors.InvalidValueError):
        store.batch([PutOp(ANA, "k", VALUE), PutOp(ANA, "bad", {"x": {1, 2}})])
    assert store.search(()) == []


def test_many_threads_on_one_key(store: ReverieStore) -> None:
    def write(i: int) -> None:
        for n in range(4):
            store.put(ANA, "k", {"text": f"{i} {n}"})

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search(ANA)) == 1
    assert len(store.user(ANA).list().items) == 1


def test_a_row_that_ends_meanwhile_is_no_error(
    store: ReverieStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(ANA, "k", {"n": 1})
    before = rows.Rows._live
    ended: list[str] = []

    def live(self: rows.Rows, wanted: Any) -> Any:
        found = before(self, wanted)
        if wanted and not ended:
            ended.extend(found[0][1])
            store.user(ANA).delete(ended[0])
        return found

    monkeypatch.setattr(rows.Rows, "_live", live)
    store.put(ANA, "k", {"n": 2})
    assert ended
    assert [item.value for item in store.search(ANA)] == [{"n": 2}]


def test_async_methods_and_an_async_runtime(tmp_path: Path) -> None:
    async def go() -> None:
        async with await reverie.open_async(tmp_path / "data", embedder="standin") as rt:
            store = ReverieStore(rt)
            await asyncio.gather(*(store.aput(ANA, f"k{i}", VALUE) for i in range(5)))
            assert len(await store.asearch(ANA, query="绿茶")) == 5
            await store.adelete(ANA, "k0")
            assert await store.aget(ANA, "k0") is None
            assert await store.alist_namespaces(prefix=("memories",)) == [ANA]

    asyncio.run(go())


def test_values_are_masked(factory: Factory) -> None:
    rt = factory(mask=("email",), mask_key=reverie.new_mask_key(), background=False)
    store = ReverieStore(rt, fields=["mail"])
    store.put(ANA, "ana@example.org", {"mail": "bo@example.org", "n": 1})
    store.put(ANA, "ana@example.org", {"mail": "bo@example.org", "n": 2})
    assert keys(store.search(ANA)) == ["[EMAIL_2]"]
    item = store.get(ANA, "ana@example.org")
    assert item is not None
    assert item.value == {"mail": "[EMAIL_1]", "n": 2}


# -- what is refused --------------------------------------------------------------------

DEEP: dict[str, Any] = {}
for _ in range(200):
    DEEP = {"d": DEEP}

INFIX = MatchCondition("infix", ("a",))  # type: ignore[arg-type]
REFUSED: list[tuple[type[Exception], Callable[[ReverieStore], object]]] = [
    (InvalidNamespaceError, lambda s: s.put((), "k", VALUE)),
    (InvalidNamespaceError, lambda s: s.put(("a.b",), "k", VALUE)),
    (InvalidNamespaceError, lambda s: s.put(("langgraph",), "k", VALUE)),
    (InvalidNamespaceError, lambda s: s.batch([PutOp((), "k", VALUE)])),
    (InvalidNamespaceError, lambda s: s.batch([PutOp(("a.b",), "k", VALUE)])),
    (InvalidNamespaceError, lambda s: s.batch([GetOp(("a", ""), "k")])),
    (InvalidNamespaceError, lambda s: s.batch([GetOp("ab", "k")])),  # type: ignore[arg-type]
    (InvalidNamespaceError, lambda s: s.batch([SearchOp(("a\0b",))])),
    (InvalidNamespaceError, lambda s: s.batch([SearchOp((1,))])),  # type: ignore[arg-type]
    (InvalidNamespaceError, lambda s: s.batch([SearchOp(("a",) * 65)])),
    (errors.InvalidIdError, lambda s: s.put(("a\nb",), "k", VALUE)),
    (errors.InvalidIdError, lambda s: s.put(("\ud800",), "k", VALUE)),
    (errors.InvalidIdError, lambda s: s.get(("长" * 200,), "k")),
    (errors.InvalidIdError, lambda s: s.put(ANA, "k" * 1025, VALUE)),
    (errors.InvalidIdError, lambda s: s.put(ANA, "\udc00", VALUE)),
    (errors.InvalidIdError, lambda s: s.batch([GetOp(ANA, None)])),  # type: ignore[arg-type]
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", "text")),  # type: ignore[arg-type]
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", {"x": float("nan")})),
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", {"x": 2**64})),
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", {"x": {1: 2}})),
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", {"x": b"bytes"})),
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", DEEP)),
    (errors.InvalidLimitError, lambda s: s.put(ANA, "k", {"x": "y" * MAX_VALUE_BYTES})),
    (
        errors.InvalidLimitError,
        lambda s: s.put(ANA, "k", {"x": [str(i) for i in range(300)]}, index=["x[*]"]),
    ),
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", VALUE, index="text")),  # type: ignore[arg-type]
    (errors.InvalidValueError, lambda s: s.put(ANA, "k", VALUE, index=[""])),
    (errors.InvalidTimeError, lambda s: s.put(ANA, "k", VALUE, ttl=0)),
    (errors.InvalidTimeError, lambda s: s.put(ANA, "k", VALUE, ttl=-1)),
    (errors.InvalidTimeError, lambda s: s.put(ANA, "k", VALUE, ttl=float("inf"))),
    (errors.InvalidTimeError, lambda s: s.put(ANA, "k", VALUE, ttl=1e308)),
    (errors.InvalidLimitError, lambda s: s.search(ANA, limit=-1)),
    (errors.InvalidLimitError, lambda s: s.search(ANA, limit=10_001)),
    (errors.InvalidLimitError, lambda s: s.search(ANA, offset=-1)),
    (errors.InvalidLimitError, lambda s: s.list_namespaces(max_depth=0)),
    (errors.InvalidTextError, lambda s: s.search(ANA, query="a\0b")),
    (errors.InvalidTextError, lambda s: s.search(ANA, query="x" * 2_000_000)),
    (errors.FilterError, lambda s: s.search(ANA, filter={"n": {"$in": [1]}})),
    (errors.FilterError, lambda s: s.search(ANA, filter={"n": {"$gt": 1, "x": 2}})),
    (errors.FilterError, lambda s: s.search(ANA, filter={"$or": []})),
    (errors.FilterError, lambda s: s.search(ANA, filter=DEEP)),
    (errors.FilterError, lambda s: s.search(ANA, filter={str(i): i for i in range(300)})),
    (errors.FilterError, lambda s: s.search(ANA, filter=[1])),  # type: ignore[arg-type]
    (errors.InvalidValueError, lambda s: s.batch(["x"])),  # type: ignore[list-item]
    (errors.InvalidLimitError, lambda s: s.batch([GetOp(ANA, "k")] * 10_001)),
    (errors.InvalidValueError, lambda s: s.batch([ListNamespacesOp((INFIX,))])),
]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with opened(tmp_path_factory.mktemp("refused") / "data", background=False) as rt:
        store = ReverieStore(rt)
        store.put(ANA, "k", {"text": "kept 留下"})
        yield store


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused_with_a_typed_error(full: ReverieStore, number: int) -> None:
    kind, call = REFUSED[number]
    digest = full.user(ANA).digest()
    with pytest.raises(kind) as caught:
        call(full)
    assert type(caught.value) is kind
    assert full.list_namespaces() == [ANA]
    assert full.user(ANA).digest() == digest


def test_a_time_to_live_that_is_refused_is_told_in_its_unit(rt: Runtime) -> None:
    for call in (
        lambda: ReverieStore(rt).put(ANA, "k", VALUE, ttl=0),
        lambda: ReverieStore(rt, ttl={"default_ttl": -1}),
    ):
        with pytest.raises(errors.InvalidTimeError, match="a positive number of minutes"):
            call()


@pytest.mark.parametrize(
    "settings",
    [
        {"index": {"dims": 3}},
        {"index": {"embed": len, "fields": ["a"]}},
        {"ttl": {"ttl": 1}},
    ],
)
def test_what_cannot_be_followed_is_refused(rt: Runtime, settings: dict[str, Any]) -> None:
    with pytest.raises(errors.ConfigError):
        ReverieStore(rt, **settings)


# -- filters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [
        ({"n": "2026-11-30"}, {"n": {"$gt": "2026-02"}}, True),
        ({"n": "10"}, {"n": {"$gt": 9}}, True),
        ({"n": None}, {"n": {"$gt": 0}}, False),
        ({}, {"n": {"$lte": 0}}, False),
        ({"n": "x"}, {"n": {"$lt": 5}}, False),
        ({"n": float("1e3")}, {"n": {"$gte": "nan"}}, False),
        ({}, {"n": {"$ne": 1}}, True),
        ({"n": [1]}, {"n": {"$eq": [1]}}, True),
        ({"n": "茶"}, {"n": "茶"}, True),
        ({"n": {"a": 1, "b": 2}}, {"n": {"a": 1}}, True),
        ({"n": [1, 2]}, {"n": [1]}, False),
    ],
)
def test_filters(value: dict[str, Any], spec: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    check_filter(spec)
    assert fits(value, spec) is expected
