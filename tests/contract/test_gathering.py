"""Events, hearsay and groups: the same inline and on Ray."""

from __future__ import annotations

import pytest
from support import Home

from reverie import errors

CROWD = [f"npc-{i}" for i in range(8)]
THEFT = "The player stole the amulet at the market."


def test_an_event_reaches_its_witnesses_and_is_told_on(home: Home) -> None:
    town = home.rt.world(home.world)
    seen, rain = town.observe_many(
        [
            {"text": THEFT, "witnesses": CROWD[:5], "groups": ["行会"], "place": "market"},
            {"text": "下雨了。", "witnesses": CROWD},
        ]
    )
    assert set(seen.kept) == {*CROWD[:5], "group:行会"}
    assert {kept.op for kept in [*seen.kept.values(), *rain.kept.values()]} == {"ADD"}
    assert town.observe(THEFT, witnesses=CROWD[:5], event_id=seen.event_id).kept == {
        name: seen.kept[name] for name in CROWD[:5]
    }
    told = town.tell(CROWD[0], CROWD[6], seen.kept[CROWD[0]].memory_id)
    again = town.tell(CROWD[6], CROWD[7], told.memory_id, text="玩家偷了两个护身符。")
    item = home.user(CROWD[7]).get(again.memory_id)
    assert (item.heard, item.hops, item.event) == ((CROWD[0], CROWD[6]), 2, seen.event_id)
    assert [k.user_id for k in town.who_knows(seen.event_id)] == [*CROWD[:5], *CROWD[6:]]
    assert [h.text for h in home.user(CROWD[5]).search("Who stole the amulet?")] == ["下雨了。"]
    with pytest.raises(errors.UnknownMemoryError):
        town.tell(CROWD[5], "nobody", "m7")


def test_a_group_is_recalled_by_its_members(home: Home) -> None:
    town, guild = home.rt.world(home.world), home.rt.world(home.world).group("guild")
    assert guild.join(*CROWD[:4]) == CROWD[:4]
    assert guild.join(CROWD[0]) == []
    guild.observe("The guild will burn the mill.")
    guild.join(CROWD[4])
    asked = "What will the guild burn?"
    found = home.rt.search_many([(name, asked) for name in CROWD], world=home.world)
    assert [[h.group for h in hits] for hits in found] == [["guild"]] * 4 + [[]] * 4
    hit = found[1][0]
    assert home.user(CROWD[1]).get(hit.id).text == hit.text
    assert town.tell(CROWD[1], CROWD[7], hit.id).op == "ADD"
    town.checkpoint("before")
    assert guild.leave(*CROWD[:2], forget=True) == CROWD[:2]
    assert home.user(CROWD[0]).search(asked) == []
    town.rewind("before")
    assert guild.members() == CROWD[:5]
    assert home.user(CROWD[0]).search(asked)[0].group == "guild"
    assert home.user(CROWD[3]).forget().erased.existed
    assert guild.members() == [*CROWD[:3], CROWD[4]]
