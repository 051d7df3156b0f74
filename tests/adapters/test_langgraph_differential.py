"""The store against LangGraph's own InMemoryStore: the same calls, the same answers.

What differs is listed in docs/frameworks.md. Here `Oracle` does away with those differences on the
side of the InMemoryStore, each at a comment, so that whatever is left fails.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import DIM, opened

from reverie import Runtime
from reverie.models.standin import HashEmbedder

pytest.importorskip("langgraph.store.base", reason="needs the extra 'langgraph'")

from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from reverie.adapters.langgraph import ReverieStore

FIELDS = ["text", "notes[*].line"]
LABELS = ["u1", "u10", "memories", "安娜", "a b", "ns:", "%", "é"]
KEYS = ["k", "k1", "钥匙", "", "a.b/../c", "k'; --"]
WORDS = "tea coffee Oslo rain boat bread piano winter 茶 奥斯陆 下雨 钢琴 music 音乐 red".split()
ALL = 1_000
SHORT, LONG = range(15), range(15, 240)


class Oracle:
    """An InMemoryStore that keeps to what the documentation says of ours."""

    def __init__(self) -> None:
        embedder = HashEmbedder(DIM)
        self.store = InMemoryStore(
            index={
                "dims": DIM,
                "embed": lambda texts: embedder.embed(texts, "passage").tolist(),
                "fields": FIELDS,
            }
        )

    def batch(self, ops: list[Op]) -> list[Any]:
        self._drop_empty()
        results = [self._read(op) for op in ops]
        for op in ops:
            if isinstance(op, PutOp):  # it goes on finding a value by the texts of the one before
                self.store._vectors[op.namespace].pop(op.key, None)
        self.store.batch([op for op in ops if isinstance(op, PutOp)])
        return results

    def _drop_empty(self) -> None:  # it lists namespaces that hold nothing, or were only read
        data = self.store._data
        for namespace in [namespace for namespace, held in data.items() if not held]:
            del data[namespace]

    def _read(self, op: Op) -> Any:
        match op:
            case PutOp():
                return None
            case SearchOp():  # it pages wrongly over what has no score: all, and cut afterwards
                (found,) = self.store.batch([op._replace(limit=ALL, offset=0)])
                assert isinstance(found, list)
                # Its namespaces come in the order of their first use.
                return sorted(found, key=lambda item: item.namespace)
            case _:
                (answer,) = self.store.batch([op])
                self._drop_empty()
                return answer


def seen(item: Any) -> Any:
    """Return what is compared of an item; its times are tested elsewhere."""
    return None if item is None else (item.namespace, item.key, item.value)


def compare(ours: ReverieStore, op: Op, got: Any, expected: Any) -> None:
    match op:
        case GetOp():
            assert seen(got) == seen(expected), op
        case ListNamespacesOp():
            assert got == expected, op
        case PutOp():
            assert got is None
        case SearchOp():
            compare_search(ours, op, got, expected)


def compare_search(
    ours: ReverieStore, op: SearchOp, got: list[SearchItem], expected: list[SearchItem]
) -> None:
    (whole,) = ours.batch([op._replace(limit=ALL, offset=0)])
    assert isinstance(whole, list)
    found = [item for item in whole if isinstance(item, SearchItem)]
    page = found[op.offset : op.offset + op.limit]
    assert list(map(seen, got)) == list(map(seen, page)), op
    scores = [item.score for item in found if item.score is not None]
    assert scores == sorted(scores, reverse=True), op
    assert len(found) == len(expected), op
    first = {(i.namespace, i.key): i for i in found if i.score is not None}
    other = {(i.namespace, i.key): i for i in expected if i.score is not None}
    assert first.keys() == other.keys(), op
    for key, item in first.items():
        assert item.value == other[key].value, op
        assert item.score == pytest.approx(other[key].score, abs=2e-5), op
    assert [seen(i) for i in found if i.score is None] == [
        seen(i) for i in expected if i.score is None
    ], op


class Generator:
    """Makes sequences of batches; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = self.random.sample(LABELS, 3)
        self.made = 0

    def namespace(self, least: int = 1) -> tuple[str, ...]:
        return tuple(self.random.choices(self.labels, k=self.random.randint(least, 3)))

    def text(self) -> str:
        self.made += 1  # it fails when one batch holds the same text twice
        return f"{' '.join(self.random.choices(WORDS, k=self.random.randint(1, 6)))} w{self.made}"

    def value(self) -> dict[str, Any]:
        pick = self.random
        value: dict[str, Any] = {"n": pick.choice([0, 1, 2.5, -3, "4"]), "kind": pick.choice("ab")}
        if pick.random() < 0.8:
            value["text"] = self.text()
        if pick.random() < 0.3:
            value["notes"] = [{"line": self.text()} for _ in range(pick.randint(0, 3))]
        if pick.random() < 0.5:
            value["deep"] = {"x": pick.choice([None, True, "é"]), "list": [1, {"y": "是"}]}
        return value

    def put(self) -> PutOp:
        pick = self.random
        value = None if pick.random() < 0.2 else self.value()
        index: Any = pick.choice(
            [None, None, None, False, ["text"], ["notes[-1].line"], ["nothing"]]
        )
        return PutOp(self.namespace(), pick.choice(KEYS), value, index)

    def filter(self) -> dict[str, Any] | None:
        return self.random.choice(
            [
                None,
                None,
                {"kind": "a"},
                {"n": {"$gte": 1}, "kind": {"$ne": "b"}},
                {"n": {"$lt": 2.5}},
                {"n": {"$gt": "0", "$lte": 4}},
                {"n": {"$eq": 1}},
                {"deep": {"x": True}},
                {"deep": {"list": [1, {"y": "是"}]}},
                {"absent": None},
                {"deep": {}},
            ]
        )

    def search(self) -> SearchOp:
        pick = self.random
        return SearchOp(
            self.namespace(0),
            self.filter(),
            pick.choice([0, 1, 2, 5, 10, 100]),
            pick.choice([0, 0, 0, 1, 3]),
            None if pick.random() < 0.4 else " ".join(pick.choices(WORDS, k=2)),
        )

    def path(self) -> tuple[str, ...]:
        return tuple(
            self.random.choice([*LABELS, "*", "*"]) for _ in range(self.random.randint(1, 2))
        )

    def listing(self) -> ListNamespacesOp:
        pick = self.random
        conditions = [
            MatchCondition(pick.choice(["prefix", "suffix"]), self.path())
            for _ in range(pick.choice([0, 0, 1, 2]))
        ]
        depth = pick.choice([None, None, 1, 2, 3])
        return ListNamespacesOp(
            tuple(conditions), depth, pick.choice([1, 3, 100]), pick.choice([0, 0, 1])
        )

    def batch(self) -> list[Op]:
        pick = self.random
        kinds: list[Callable[[], Op]] = [self.put, self.put, self.put, self.search, self.listing]
        ops = [pick.choice(kinds)() for _ in range(pick.randint(1, 6))]
        known = [GetOp(op.namespace, op.key) for op in ops if isinstance(op, PutOp)]
        return [*ops, *known[:2], GetOp(self.namespace(), pick.choice(KEYS))]


def play(rt: Runtime, seed: int) -> None:
    """Play one sequence of batches on both stores."""
    oracle, ours = Oracle(), ReverieStore(rt, f"world {seed}", fields=FIELDS)
    make = Generator(seed)
    for turn in range(6):
        ops = make.batch()
        expected = oracle.batch(ops)
        reads = [
            (op, wanted)
            for op, wanted in zip(ops, expected, strict=True)
            if not isinstance(op, PutOp)
        ]
        before = ours.batch([op for op, _ in reads])
        for (op, wanted), got in zip(reads, before, strict=True):
            compare(ours, op, got, wanted)
        results = ours.batch(ops) if turn % 2 else asyncio.run(ours.abatch(ops))
        read = [got for got, op in zip(results, ops, strict=True) if not isinstance(op, PutOp)]
        assert read == before  # what is asked in a batch is answered before what is written
    (left,) = ours.batch([SearchOp((), limit=ALL)])
    (expected_left,) = oracle.batch([SearchOp((), limit=ALL)])
    assert isinstance(left, list)
    assert list(map(seen, left)) == list(map(seen, expected_left))


def play_all(rt: Runtime, seeds: Iterable[int]) -> None:
    for seed in seeds:
        play(rt, seed)


@pytest.fixture(scope="module")
def rt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder: Path = tmp_path_factory.mktemp("differential")
    with opened(folder / "data", background=False) as runtime:
        yield runtime


@pytest.mark.parametrize("seed", SHORT)
def test_the_same_answers(rt: Runtime, seed: int) -> None:
    play(rt, seed)


@pytest.mark.slow
def test_the_same_answers_in_many_sequences(rt: Runtime) -> None:
    play_all(rt, LONG)


def test_a_difference_would_be_found(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reverie.adapters.langgraph.fits", lambda *_: True)
    monkeypatch.setattr("reverie.adapters.rows.fits", lambda *_: True)
    with pytest.raises(AssertionError):
        play_all(rt, range(1_000, 1_010))
