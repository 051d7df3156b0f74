"""Relationships and reflection are the same on every backend."""

from __future__ import annotations

import pytest
from support import DAY, START, Home

from reverie import Dimension
from reverie.memory_graph import relationships as r
from reverie.memory_graph.errors import InvalidValueError, UnknownMemoryError


def test_relationships_of_many(home: Home) -> None:
    names = [f"npc-{i}" for i in range(6)]
    for i, name in enumerate(names):
        other = names[(i + 1) % 6]
        moved = home.user(name).relationships.move(
            other, {"debt": 10 * i}, 忠诚=1, dimensions={"忠诚": Dimension(0.0, 9.0, 4.0, DAY)}
        )
        assert moved == {"debt": 10.0 * i, "忠诚": 5.0}
    world = home.rt.world(home.world)
    moves = [
        {"owner": name, "other": "小明", "by": {"trust": 0.1 * i}} for i, name in enumerate(names)
    ]
    assert world.move_many(moves) == [{"trust": 0.1 * i} for i in range(6)]
    late = {
        "owner": "npc-1",
        "other": "小明",
        "by": {"trust": 1},
        "at": START - DAY,
        "reason": "晚",
    }
    assert world.move_many([late]) == [{"trust": 1.0}]
    for bad in ({"owner": "npc-1", "other": "x"}, {**late, "why": 1}, {**late, "by": {}}, "move"):
        with pytest.raises(InvalidValueError):
            world.move_many([late, bad])  # type: ignore[list-item]
    with pytest.raises(UnknownMemoryError):
        world.move_many([{**late, "memory_id": "m9"}, {**late, "by": {"fear": 0.5}}])
    fear = home.user("npc-1").relationships.of("小明")["fear"]  # the others were done
    assert fear == pytest.approx(0.5 * 2 ** (-1 / 14))  # since a day ago
    assert len(home.user("npc-1").relationships.history("小明")) == 3
    owed = world.relationships("debt", at_least=1)
    assert [(x.owner, x.other, x.value) for x in owed] == [
        (names[i], names[(i + 1) % 6], 10.0 * i) for i in (5, 4, 3, 2, 1)
    ]
    (one,) = home.user("npc-3").relationships.towards("忠诚")
    assert (one.owner, one.rest) == ("npc-2", 4.0)
    assert home.user("npc-2").relationships.remove("NPC-3") == r.Untied(dimensions=2)
    assert home.user("npc-3").relationships.towards() == []
    assert home.user("npc-2").relationships.history("npc-3") == []


def test_reflection(home: Home) -> None:
    ana = home.user()
    for i in range(6):
        ana.observe(f"Bo and 小明 quarrelled, time {i}. 又吵了。", participants=["Bo", "小明"])
        home.clock.advance(DAY)
    (made,) = ana.reflect(force=True)
    item = ana.get(made)
    assert item.text.startswith("Bo and 小明 come up together in 6 of 6 memories.\n")
    assert item.sources == tuple(f"m{i}" for i in range(1, 7))
    assert home.rt.world(home.world).reflect(force=True) == {}
