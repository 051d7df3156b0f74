"""Builders that many tests share: runtimes on temporary folders, and models of a few lines.

Every runtime that is opened here is checked when it is closed, whatever the test was about.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import reverie
from reverie import Runtime, SimulatedClock, User
from reverie.actors.backend import Router
from reverie.actors.residents import ShardSettings
from reverie.actors.shard import Shard, open_shard
from reverie.memory_graph.drafts import Decision, EntityDraft, Known, MemoryDraft
from reverie.memory_graph.errors import ReverieError
from reverie.memory_graph.state import UserMemory, as_bytes
from reverie.memory_graph.write import Writer
from reverie.models.protocol import Extraction, Float32, TextRole, Turn
from reverie.models.standin import HashEmbedder

START = 1_700_000_000.0  # 2023-11-14, a Tuesday
DAY = 86_400.0
DIM = 32
PARTITIONS = 4


class Home:
    """An open runtime, its clock, and a world of one test."""

    def __init__(self, rt: Runtime, clock: SimulatedClock, world: str = "default") -> None:
        self.rt = rt
        self.clock = clock
        self.world = world

    def user(self, user_id: str = "ana") -> User:
        """Return a user of the test's world."""
        return self.rt.user(user_id, self.world)


class Factory:
    """Opens runtimes; `finish` closes them and asserts that every folder is sound."""

    def __init__(self, folder: Path, actors: int | None) -> None:
        self.folder = folder
        self.actors = actors
        self.clock = SimulatedClock(START)
        self._opened: list[tuple[Path, Runtime]] = []

    def __call__(self, name: str = "data", **settings: Any) -> Runtime:
        """Open the folder `name` with small defaults; `actors` may be among the settings."""
        path = self.folder / name
        settings = {
            "embedder": HashEmbedder(DIM),
            "partitions": PARTITIONS,
            "actors": self.actors,
            "clock": self.clock,
            **settings,
        }
        rt = reverie.open(path, **settings)
        self._opened.append((path, rt))
        return rt

    def finish(self) -> None:
        """Close what is open, and check every folder by a runtime of its own."""
        for _, rt in self._opened:
            rt.close()
        for path in dict.fromkeys(path for path, _ in self._opened):
            check_folder(path)


def check_folder(path: Path) -> None:
    """Assert that a closed data folder is sound."""
    with reverie.open(path, background=False, clock=SimulatedClock(START)) as rt:
        assert rt.check() == []


@contextmanager
def opened(path: Path, **settings: Any) -> Iterator[Runtime]:
    """Open a runtime in this process; check the folder afterwards."""
    factory = Factory(path.parent, None)
    rt = factory(path.name, **settings)
    try:
        yield rt
    finally:
        rt.close()
    factory.finish()


class Guard:
    """A user with something to lose."""

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.user: User = rt.user("ana")
        self.user.add("Something to lose. 有东西可丢。", infer=False)
        self.user.remember("Ana keeps bees.", tags=["a"])
        self.digest = self.user.digest()
        self.users = rt.users()

    def refuses(self, kind: type[ReverieError], call: Callable[[], object]) -> str:
        """Assert that a call raises exactly `kind` and changes nothing; return its message."""
        with pytest.raises(ReverieError) as caught:
            call()
        assert type(caught.value) is kind, caught.value
        assert self.user.digest() == self.digest
        assert self.rt.users() == self.users
        return caught.value.message

    def goes_on(self) -> None:
        """Assert that the next write works."""
        assert self.user.remember("It goes on. 继续。").op == "ADD"
        assert self.rt.check() == []


# -- models -----------------------------------------------------------------------------


class Sentences:
    """An extractor: each turn is one memory, capitalised words in it are entities.

    A turn that holds "boom" makes it raise, as often as `booms` says (always by default).
    """

    def __init__(self, booms: float = float("inf")) -> None:
        self.booms = booms
        self.calls = 0

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return an extraction per turn."""
        self.calls += 1
        if any("boom" in turn.text for turn in turns) and self.booms > 0:
            self.booms -= 1
            msg = "boom"
            raise RuntimeError(msg)
        return [self._one(turn) for turn in turns]

    @staticmethod
    def _one(turn: Turn) -> Extraction:
        names = tuple(
            EntityDraft(name) for name in re.findall(r"[A-Z][a-z]+|[阿-鿿]{2}", turn.text)
        )
        draft = MemoryDraft(turn.text, importance=0.6, sources=(turn.id,), entities=names[:4])
        return Extraction(turn.id, (draft,), names[:4])


class Always:
    """A decider that gives the same answer to everything."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return it."""
        return self.decision


class Gate:
    """An extractor that waits: `entered` says that it was called, `go` lets it go on."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go = threading.Event()
        self.inner = Sentences()

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Wait for `go`, then extract."""
        self.entered.set()
        assert self.go.wait(60)
        return self.inner.extract(turns, history)


class Spoiled(HashEmbedder):
    """An embedder that gives NaN for texts that hold "nan", and too few numbers for "short"."""

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return vectors, some of them bad."""
        rows = super().embed(texts, role)
        for i, text in enumerate(texts):
            if "nan" in text:
                rows[i] = np.nan
        return rows[:, :-1] if any("short" in t for t in texts) else rows


# -- without a runtime ------------------------------------------------------------------


def vector(text: str, dim: int = DIM) -> bytes:
    """Return the stand-in vector of a text, as drafts carry it."""
    return as_bytes(HashEmbedder(dim).embed([text], "passage")[0])


def fact(text: str, **fields: Any) -> MemoryDraft:
    """Return a memory draft with its vector."""
    return MemoryDraft(text, vector=vector(text), **fields)


def writer(at: float = START, memory: UserMemory | None = None) -> Writer:
    """Return a writer on an empty (or the given) state."""
    return Writer(UserMemory() if memory is None else memory, at)


class ShardsBackend:
    """Several plain shards in this process: what the Ray backend does, without Ray.

    With `on_wire`, commands and answers are encoded and decoded as on Ray.
    """

    repeats = True

    def __init__(self, folder: Path, count: int, settings: ShardSettings | None = None) -> None:
        settings = settings or ShardSettings()
        numbers = range(PARTITIONS)
        self.shards: list[Shard] = [
            open_shard(folder, [n for n in numbers if n % count == i], PARTITIONS, settings, "test")
            for i in range(count)
        ]
        self.transports: Sequence[Callable[[Sequence[Any]], list[Any]]] = [
            shard.execute for shard in self.shards
        ]

    def close(self) -> None:
        """Close all shards."""
        for shard in self.shards:
            shard.close()


@contextmanager
def routed(folder: Path, count: int, settings: ShardSettings | None = None) -> Iterator[Router]:
    """Open a router over `count` shards of a folder."""
    (folder / "partitions").mkdir(parents=True, exist_ok=True)
    (folder / "indices").mkdir(exist_ok=True)
    router = Router(ShardsBackend(folder, count, settings), PARTITIONS, max_waiting=4096)
    try:
        yield router
    finally:
        router.close()


def shown(items: Sequence[Any]) -> list[dict[str, Any]]:
    """Return structs as plain values, for comparing all of their fields."""
    return [msgspec.to_builtins(item) for item in items]
