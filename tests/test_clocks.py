"""Time: clocks that stand, run, jump and lie; and one for each world."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support import DIM, START, Factory, Sentences

import reverie
from reverie import SimulatedClock, errors
from reverie.clocks import Clocks
from reverie.models.standin import HashEmbedder

EDGES = (-62_135_596_800.0, -1e9, -0.5, 0.0, 1e-9, 12.0, START, 253_402_300_799.0)
REFUSED = (math.nan, math.inf, -math.inf, 1e300, -1e300, 10**400, 253_402_300_800, None, True)


class Given:
    """A clock of somebody else that says what it is told to."""

    def __init__(self, at: Any) -> None:
        self.at = at

    def now(self) -> Any:
        return self.at


def test_a_clock_stands_moves_runs_and_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: machine)
    clock = SimulatedClock(-10)
    machine += 5
    assert clock.now() == -10.0
    assert clock.advance(4) == -6.0
    clock.run(60)
    machine += 2
    assert clock.now() == 114.0
    clock.set(0)
    machine += 1
    assert (clock.advance(0.5), clock.rate) == (60.5, 60.0)
    assert clock.pause() == 60.5
    assert clock.pause() == 60.5
    machine += 100
    assert (clock.now(), clock.rate) == (60.5, 0.0)
    clock.run()
    machine += 1
    clock.run(0)
    machine += 1
    assert clock.now() == 61.5


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, None, True, "3", 1j])
def test_a_clock_refuses_what_is_no_time(value: Any) -> None:
    clock = SimulatedClock(3.0)
    for call in (SimulatedClock, clock.set, clock.advance, clock.run):
        with pytest.raises(errors.InvalidTimeError):
            call(value)
    assert clock.now() == 3.0


def test_a_clock_neither_steps_back_nor_runs_off() -> None:
    clock = SimulatedClock(1.5e308)
    for call, value in ((clock.advance, -1.0), (clock.run, -1.0), (clock.advance, 1.5e308)):
        with pytest.raises(errors.InvalidTimeError):
            call(value)
    assert clock.now() == 1.5e308
    clock.set(-1.0)
    assert clock.now() == -1.0


@given(st.lists(st.floats(0, 1e9), max_size=20), st.floats(-1e9, 1e9))
def test_a_clock_that_is_moved_only_goes_forward(steps: list[float], start: float) -> None:
    clock = SimulatedClock(start)
    seen = [clock.now(), *(clock.advance(step) for step in steps)]
    assert seen == sorted(seen)


@pytest.mark.parametrize("at", EDGES)
def test_any_time_of_the_calendar_can_be_lived_in(factory: Factory, at: float) -> None:
    clock = SimulatedClock(at)
    rt = factory(clock=clock, background=False)
    ana = rt.user("ana")
    ana.add("I moved to Oslo yesterday. 我昨天搬到了上海。", wait=True)
    ana.remember("Ana keeps bees.", ttl_s=10.0)
    ana.relate("Ana", "lives_in", "Oslo")
    rt.checkpoint("a")
    for jump in (*EDGES, at):
        clock.set(jump)
        ana.search("bees yesterday, 昨天")
        ana.remember(f"Seen at {jump}.")
        ana.context("bees")
        ana.get_conversation_summary(last_n_days=2)
        ana.summarise()
        assert ana.search("Ana keeps bees", include_retired=True)[0].score > 0
        rt.rewind("a")
    assert rt.checkpoints()[0].made_at == at
    assert rt.check() == []


@pytest.mark.parametrize("at", REFUSED)
def test_a_clock_that_lies_is_refused_and_nothing_is_stored(factory: Factory, at: Any) -> None:
    clock = Given(START)
    rt = factory(clock=clock, background=False)
    ana = rt.user("ana")
    ana.remember("Before.")
    digest = ana.digest()
    clock.at = at
    for call in (
        lambda: ana.remember("After."),
        lambda: ana.add("After.", infer=False),
        lambda: ana.search("Before"),
        lambda: rt.checkpoint("a"),
        lambda: rt.world().now(),
    ):
        with pytest.raises(errors.InvalidTimeError, match="clock"):
            call()
    clock.at = START
    assert ana.digest() == digest
    assert rt.checkpoints() == []


def test_each_world_lives_by_its_own_clock(factory: Factory) -> None:
    game, other = SimulatedClock(10.0), SimulatedClock(-10.0)
    rt = factory(clocks={"game": game}, extractor=Sentences())
    rt.world("moon", clock=other)
    for world in ("game", "moon", "default"):
        user = rt.user("ana", world)
        user.remember("Bees.")
        user.add("Wasps are here.")
        rt.drain(60)
        rt.checkpoint("a", world)
        user.delete("m1")
    rt.add_many({"bo": "Hello."}, world="game", wait=True)
    rt.remember_many({"bo": ["Hi."]}, world="game")
    expected = {"game": 10.0, "moon": -10.0, "default": START}
    for world, at in expected.items():
        assert rt.world(world).now() == at
        items = rt.user("ana", world).list(types=("memory", "message"), include_retired=True).items
        assert {item.recorded_at for item in items} == {at}
        assert {item.retired_at for item in items} == {None, at}
        assert rt.checkpoints(world)[0].made_at == at
    bo = rt.user("bo", "game").list(types=("memory", "message")).items
    assert {item.recorded_at for item in bo} == {10.0}
    game.advance(5.0)
    assert (rt.world("game").now(), rt.world("moon").now(), rt.now()) == (15.0, -10.0, START)
    rt.world("moon").set_clock(None)
    assert rt.world("moon").now() == START


def test_turns_that_wait_are_extracted_on_the_clock_of_their_world(factory: Factory) -> None:
    """Background work begins with the opening, before anybody could name a clock."""
    with factory(background=False, clock=SimulatedClock(5.0)) as rt:
        rt.user("ana", "game").add("I live in Oslo.")
    rt = factory(clock=SimulatedClock(START), clocks={"game": SimulatedClock(7.0)})
    rt.drain(60)
    items = rt.user("ana", "game").list().items
    assert items
    assert {item.recorded_at for item in items} == {7.0}


def test_what_is_no_clock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="now"):
        Clocks(5.0)  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigError, match="now"):
        reverie.open(tmp_path, clocks={"w": None})  # type: ignore[dict-item]
    with pytest.raises(errors.InvalidIdError):
        reverie.open(tmp_path, clocks={"": SimulatedClock()})
    with reverie.open(tmp_path, embedder=HashEmbedder(DIM), background=False) as rt:
        with pytest.raises(errors.ConfigError):
            rt.world("w").set_clock("noon")  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidIdError):
            rt.world("", clock=SimulatedClock())
