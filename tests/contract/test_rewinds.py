"""Rewinds with extraction under way, on a simulated clock: nothing from after the point is there,
in any read, at any time after."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from unittest.mock import patch

import msgspec
import pytest
from support import START, Factory, Sentences

from reverie import Runtime, User, errors
from reverie.actors import writes
from reverie.models.protocol import Extraction, Turn

USERS = ("ana", "bo", "李娜")
HOUR = 3600.0
MARK = re.compile(r"Round(\d+)x")
ROUNDS = 200
SHORT = 15


class Slow(Sentences):
    """An extractor that takes a while, so that rewinds come in the middle of its work."""

    def __init__(self) -> None:
        super().__init__()
        self.chance = random.Random(1)
        self.entered = threading.Event()

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return the extractions, later."""
        self.entered.set()
        time.sleep(self.chance.uniform(0.005, 0.15))
        return super().extract(turns, history)


def everything(user: User) -> Iterator[object]:
    """Yield what every kind of read gives."""
    kinds = ("memory", "message", "summary")
    question = "What was seen in the round? 看见了什么?"
    yield user.list(limit=1000, types=kinds, include_retired=True, include_archived=True)
    yield user.search(question, limit=50, types=kinds, include_retired=True, include_archived=True)
    yield user.search(question, as_of=START + 1000 * HOUR)
    yield user.context(question)
    yield user.entities()
    yield user.neighbors(include_retired=True)
    yield user.get_conversation_summary()
    yield user.relationships.list()
    if user.stats().memories:
        yield user.history("m1")


def marks(value: object) -> set[int]:
    """Return the numbers of the rounds that a value tells of."""
    return {
        int(found) for found in MARK.findall(msgspec.json.encode(value, enc_hook=repr).decode())
    }


def seen(rt: Runtime) -> set[int]:
    """Return the rounds that any read of any user tells of."""
    told = {mark for name in USERS for value in everything(rt.user(name)) for mark in marks(value)}
    if "new" in rt.users():
        told |= {mark for value in everything(rt.user("new")) for mark in marks(value)}
    return told | marks(rt.world().diff("point"))


def play(factory: Factory, rounds: int) -> list[str]:
    """Rewind so many times; return what was found to be wrong."""
    extractor, chance, wrong = Slow(), random.Random(7), []
    rt = factory(extractor=extractor, summary_every=2)
    clock, world = factory.clock, rt.world()
    for name in USERS:
        rt.user(name).add([f"{name} lives in Oslo.", "我住在上海。"], wait=True)
    rt.drain(60)
    rt.user("ana").add("This one waits, perhaps.")
    world.checkpoint("point")
    for number in range(rounds):
        extractor.entered.clear()
        clock.advance(HOUR)
        for name in USERS:
            rt.user(name).add([f"Round{number}x was seen by {name}.", f"看见了Round{number}x。"])
        user = rt.user(chance.choice(USERS))
        user.remember(f"Round{number}x is noted.", entities=[f"Round{number}x"])
        user.relate("user", "saw", f"Round{number}x")
        rt.user("new").observe(f"Round{number}x.", place=f"Round{number}x")
        if number % 3:
            extractor.entered.wait(5)
            time.sleep(chance.uniform(0, 0.02))
        # Whatever was under way at the rewind before this must not have come up meanwhile.
        if number % 3 == 0 and (older := seen(rt) - {number}):
            wrong.append(f"in round {number} there was something of {sorted(older)}")
        world.rewind("point")
        clock.set(START)
        if found := seen(rt):
            wrong.append(f"after rewind {number} there was something of {sorted(found)}")
        if "new" in rt.users():
            wrong.append(f"after rewind {number} there was somebody who had come later")
        if wrong:
            break
    rt.drain(60)
    if found := seen(rt):
        wrong.append(f"at the end there was something of {sorted(found)}")
    if rounds and not rt.ingestor.counts.stale:
        wrong.append("no outcome was ever under way at a rewind")
    wrong += rt.check()
    return wrong


def test_a_few_rewinds_with_extraction_under_way(runtime_factory: Factory) -> None:
    assert play(runtime_factory, SHORT) == []


@pytest.mark.slow
def test_200_rewinds_with_extraction_under_way(runtime_factory: Factory) -> None:
    assert play(runtime_factory, ROUNDS) == []


@pytest.mark.slow
def test_outcomes_without_a_fence_are_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The planted bug: outcomes of before a rewind are carried out after it."""
    for attempt in range(5):
        factory = Factory(tmp_path_factory.mktemp(f"try{attempt}"), None)
        with patch.object(writes, "_check_generation", lambda *_: None):
            wrong = play(factory, 60)
        factory.finish()
        if any("there was something of" in line for line in wrong):
            return
    pytest.fail("the missing fence was never noticed")


def test_a_rewind_does_not_move_the_clock(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    rt.user("ana").remember("Before.")
    rt.checkpoint("point")
    runtime_factory.clock.advance(HOUR)
    rt.rewind("point")
    assert rt.now() == START + HOUR
    with pytest.raises(errors.InvalidTimeError):
        runtime_factory.clock.advance(-HOUR)
