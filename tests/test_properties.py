"""Whatever is done, and on whatever way it is kept: the same operations give the same state."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from operations import TEXTS, USERS, Op, carry_out, digests, look, operations
from support import DIM, PARTITIONS, START, Factory, ShardsBackend, fact, writer

import reverie
import reverie.runtime
from reverie import Runtime, SimulatedClock
from reverie.actors.residents import ShardSettings
from reverie.memory_graph.apply import apply
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.events import decode_event
from reverie.memory_graph.ids import Key
from reverie.memory_graph.nodes import Memory
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store import Partition
from reverie.memory_graph.visible import Moment, is_visible
from reverie.models.standin import HashEmbedder

EXAMPLES = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


@contextmanager
def run(folder: Path, clock: SimulatedClock, **settings_: Any) -> Iterator[Runtime]:
    fields: dict[str, Any] = {
        "embedder": HashEmbedder(DIM),
        "partitions": PARTITIONS,
        "background": False,
    }
    with reverie.open(folder, clock=clock, **{**fields, **settings_}) as rt:
        yield rt


def replayed(folder: Path, *, snapshots: bool) -> dict[str, str]:
    """Return digests of every user, built from the files without a shard."""
    found = {}
    for path in sorted((folder / "partitions").glob("*.db")):
        partition = Partition.open(path, index=int(path.stem[1:]), owner="test")
        for world in partition.worlds():
            for name in partition.users(world):
                loaded = partition.load(Key(world, name))
                assert loaded is not None
                memory = UserMemory()
                if loaded.snapshot is not None:
                    assert snapshots, "no snapshot was asked for"
                    memory = decode_snapshot(loaded.snapshot)
                for _, payload in loaded.tail:
                    apply(memory, decode_event(payload))
                found[f"{world}/{name}"] = state_digest(memory)
                assert check_memory(memory) == []
        partition.close()
    return found


@EXAMPLES
@given(ops=operations())
def test_every_way_to_a_state_gives_the_same(ops: list[Op]) -> None:
    ops = [op for op in ops if op.name != "flush"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        clock = SimulatedClock(START)
        with run(folder / "a", clock) as rt:
            answers = carry_out(rt, clock, ops)
            assert rt.check() == []
            seen, expected = look(rt), digests(rt)
        # Opened again, from the journal alone.
        assert replayed(folder / "a", snapshots=False) == expected
        with run(folder / "a", clock) as rt:
            assert look(rt) == seen
            rt.flush()
            assert look(rt) == seen
        # From snapshots, and from snapshots with a tail.
        assert replayed(folder / "a", snapshots=True) == expected
        with run(folder / "a", clock) as rt:
            assert look(rt) == seen
            assert rt.check() == []
        # With users that leave memory after every call, and with snapshots in between.
        clock = SimulatedClock(START)
        with run(folder / "b", clock, byte_budget=1) as rt:
            halfway = len(ops) // 2
            assert carry_out(rt, clock, ops[:halfway]) == answers[:halfway]
            rt.flush()
            assert carry_out(rt, clock, ops[halfway:]) == answers[halfway:]
            assert look(rt) == seen


@EXAMPLES
@given(ops=operations(), cut=st.integers(0, 25))
def test_any_number_of_shards_gives_the_same(ops: list[Op], cut: int) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        seen = []
        for count in (1, 2, 3):

            def backend(
                folder: Path, *_: object, n: int = count, **_settings: object
            ) -> ShardsBackend:
                return ShardsBackend(
                    folder, n, ShardSettings(byte_budget=60_000 if n == 2 else 2**30)
                )

            patch.setattr(reverie.runtime, "InlineBackend", backend)
            clock = SimulatedClock(START)
            with run(Path(name, str(count)), clock) as rt:
                answers = carry_out(rt, clock, ops[:cut])
                if count == 1:
                    answers += carry_out(rt, clock, ops[cut:])
                    seen.append((answers, look(rt)))
            if count > 1:  # opened again in the middle, on another number
                patch.setattr(
                    reverie.runtime,
                    "InlineBackend",
                    lambda folder, *_, n=count, **_settings: ShardsBackend(folder, 4 - n),
                )
                with run(Path(name, str(count)), clock) as rt:
                    answers += carry_out(rt, clock, ops[cut:])
                    seen.append((answers, look(rt)))
        assert seen[0] == seen[1] == seen[2]


def some_operations(seed: int, count: int) -> list[Op]:
    """The same list for the same seed, for what is too slow for many examples."""
    rng = random.Random(seed)
    names = ["add", "add", "remember", "remember", "replace", "relate", "search", "search"]
    names += ["update", "edit", "delete", "archive", "restore", "advance", "checkpoint", "rewind"]
    names += ["move", "move", "untie", "reflect"]
    names += ["summarise", "profile", "tend", "observe", "observe", "tell", "join", "leave"]
    return [
        Op(rng.choice(names), rng.randrange(len(USERS)), rng.randrange(12), rng.randrange(12))
        for _ in range(count)
    ]


def test_hash_seeds_change_nothing() -> None:
    ops = msgspec.json.encode(some_operations(1, 120))
    program = Path(__file__).with_name("operations.py")
    results = {
        subprocess.run(
            [sys.executable, str(program)],
            input=ops,
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(program.parent)},
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(results) == 1
    assert b"default/ana" in results.pop()


@pytest.mark.ray
@pytest.mark.slow
def test_ray_changes_nothing(tmp_path: Path) -> None:
    ops = some_operations(2, 60)
    seen = []
    for actors in (None, 2):
        factory = Factory(tmp_path / str(actors), actors)
        rt = factory()
        answers = carry_out(rt, factory.clock, ops)
        seen.append((answers, look(rt)))
        factory.finish()
    assert seen[0] == seen[1]


@pytest.mark.slow
def test_a_long_life_gives_the_same(tmp_path: Path) -> None:
    """Long enough for merged word postings and snapshots by size."""
    ops = some_operations(3, 500)
    clock = SimulatedClock(START)
    with run(tmp_path / "a", clock) as rt:
        carry_out(rt, clock, ops)
        seen = look(rt)
        assert rt.check() == []
    with run(tmp_path / "a", clock) as rt:
        assert look(rt) == seen
        rt.flush()
    with run(tmp_path / "a", clock) as rt:
        assert look(rt) == seen


# -- searching before and after opening -------------------------------------------------


@EXAMPLES
@given(
    texts=st.lists(
        st.text(min_size=1, max_size=30).filter(lambda t: t.strip() and "\0" not in t),
        min_size=1,
        max_size=15,
    )
)
@example(texts=TEXTS * 3)
def test_answers_are_the_same_after_opening_again(texts: list[str]) -> None:
    with TemporaryDirectory() as name:
        clock = SimulatedClock(START)
        with run(Path(name), clock) as rt:
            rt.user("ana").add(texts, infer=False)
            rt.remember_many({"ana": texts})
            plain = rt.user("ana").search(texts[0])
            seen = [rt.user("ana").search(text, as_of=START) for text in texts]
            digest = rt.user("ana").digest()
        with run(Path(name), clock) as rt:
            assert [rt.user("ana").search(text, as_of=START) for text in texts] == seen
            assert rt.user("ana").digest() == digest
            rt.flush()
        with run(Path(name), clock) as rt:
            assert [rt.user("ana").search(text, as_of=START) for text in texts] == seen
            # The second plain search differs from the first by the first one's touch only.
            again = rt.user("ana").search(texts[0])
            assert {h.id for h in again} == {h.id for h in plain}


@EXAMPLES
@given(ops=operations(15))
def test_snapshots_keep_everything(ops: list[Op]) -> None:
    with TemporaryDirectory() as name:
        clock = SimulatedClock(START)
        with run(Path(name), clock) as rt:
            carry_out(rt, clock, ops)
            shard = rt._router.backend.shard  # type: ignore[attr-defined]
            for resident in shard.residents.all():
                memory = resident.memory
                copy = decode_snapshot(encode_snapshot(memory))
                assert encode_snapshot(copy) == encode_snapshot(memory)
                assert state_digest(copy) == state_digest(memory)
                for attribute in ("names", "sessions", "externals", "slots", "statements"):
                    assert getattr(copy.graph, attribute) == getattr(memory.graph, attribute)
                assert dict(copy.graph.relations) == dict(memory.graph.relations)
                assert check_memory(copy) == []


# -- visibility against a twin ------------------------------------------------------------

TICKS = 6
times = st.integers(0, TICKS).map(float)


class Twin(msgspec.Struct):
    """One memory as an outsider would note it: when it was told, and what became of it when."""

    told: float
    begins: float | None
    ends: float | None
    ttl: float | None
    replaced: float  # told that another one holds, from then on; infinite for never
    deleted: float  # told that it was wrong

    def kept(self, at: float) -> bool:
        """Whether it was told by then, and neither taken back nor over."""
        alive = self.ttl is None or self.told + self.ttl > at
        return self.told <= at < self.deleted and alive

    def believed(self, at: float) -> bool:
        """Whether a reader of that time got it."""
        return self.kept(at) and at < self.replaced

    def held(self, when: float, at: float) -> bool:
        """Whether, by what was known at `at`, it held in the world at `when`."""
        begins = self.told if self.begins is None else self.begins
        learned = self.replaced if self.replaced <= at else float("inf")
        ends = learned if self.ends is None else self.ends
        return self.kept(at) and begins <= when < max(ends, begins)


@given(
    told=times,
    begins=st.none() | times,
    length=st.none() | st.integers(0, 4).map(float),
    ttl=st.none() | st.integers(1, 4).map(float),
    end=st.none() | st.tuples(st.sampled_from(["replaced", "deleted"]), times),
)
@settings(max_examples=200)
def test_visibility_is_that_of_a_twin(
    told: float,
    begins: float | None,
    length: float | None,
    ttl: float | None,
    end: tuple[str, float] | None,
) -> None:
    ends = None if length is None else (told if begins is None else begins) + length
    never = float("inf")
    twin = Twin(told, begins, ends, ttl, never, never)
    memory = writer().memory
    first = writer(told, memory).remember(
        fact("It is so.", valid_from=begins, valid_to=ends, ttl_s=ttl)
    )
    if end is not None and end[1] >= told:
        how, at = end
        setattr(twin, how, at)
        if how == "replaced":
            writer(at, memory).remember(fact("It is not so."), (first,))
        else:
            writer(at, memory).retire(first, "expired", "wrong")
    node = memory.graph.node(first)
    assert isinstance(node, Memory)
    now = TICKS + 1.0
    assert is_visible(node, Moment(now)) == twin.believed(now)
    for tick in range(TICKS + 1):
        assert is_visible(node, Moment(now, as_of=tick)) == twin.believed(tick)
        assert is_visible(node, Moment(now, valid_at=tick)) == twin.held(tick, now)
        assert is_visible(node, Moment(now, as_of=tick, retired=True)) == (told <= tick)
        for other in range(TICKS + 1):
            both = Moment(now, as_of=tick, valid_at=other)
            assert is_visible(node, both) == twin.held(other, tick)
    assert is_visible(node, Moment(now, retired=True))
