"""What time takes away, and what a death leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_language import FakeLanguageModel
from support import DAY, START, Factory

from reverie import Profile, Runtime, SimulatedClock, errors, new_mask_key
from reverie.actors import limits
from reverie.actors.limits import Tended
from reverie.memory_graph import faults
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import search_files
from reverie.world import World

DEAD = "bram-the-smith"


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[Factory]:
    made = Factory(tmp_path, None)
    yield made
    faults.install(None)
    made.finish()


def town(rt: Runtime) -> World:
    """A world of three who know each other, and one who knows nobody."""
    world = rt.world("town")
    for name in ("ana", "小明"):
        user = world.user(name)
        user.observe("Bram shod a horse for Ana.", participants=["Bram", "Ana"])
        user.observe(f"{DEAD} sang.", participants=[DEAD, "Ana"])
        user.relationships.move(DEAD, trust=0.4)
        user.relate("user", "knows", "Bram", head_type="person")
    world.user(DEAD).observe("I shod a horse for Ana.")
    world.user("hermit").observe("It rained.")
    return world


# -- tending ---------------------------------------------------------------------------


def test_times_to_live_come_from_the_profile(factory: Factory) -> None:
    rt = factory(background=False)
    ana = rt.user("ana")
    ana.observe("Before the profile.")
    ana.set_profile(Profile(ttl_s={"event": DAY}))
    ana.observe("昨天下了雨。")
    ana.observe("A vow.", ttl_s=9 * DAY)
    ana.remember("A fact.")
    ana.remember("Pinned.", kind="event", pinned=True)
    factory.clock.advance(DAY)
    assert "昨天下了雨。" not in [item.text for item in ana.list().items]
    (before,) = ana.audit().lines  # told though nothing was carried out yet
    assert rt.world().tend() == {"ana": Tended(expired=1)}
    (line,) = ana.audit().lines
    assert line == before
    assert (line.at, line.became, line.why) == (START + DAY, "expired", "time to live: 86400 s")
    assert ana.stats().active == 4
    assert rt.world().tend() == {}


def test_what_weighs_too_little_is_archived_and_told(factory: Factory) -> None:
    rt = factory(background=False)
    ana = rt.user("ana")
    ana.set_profile(Profile(archive_below=0.2))
    for i in range(20):
        ana.observe(f"A cart went by, {i}.", importance=0.3, participants=["Bo"])
    ana.observe("The king died. 国王死了。", importance=1.0)
    assert rt.world().tend() == {}
    done = rt.world().tend(at=START + 60 * DAY)
    assert done == {"ana": Tended(faded=20, waiting=20, gists=1)}
    assert [item.text for item in ana.list().items] == ["The king died. 国王死了。"]
    assert {line.why[:7] for line in ana.audit().lines} == {"weight:"}
    assert {line.became for line in ana.audit().lines} == {"consolidated"}
    (hit, *_) = ana.search("Did a cart go by?", types=["memory", "summary"])
    assert hit.type == "summary"


def test_idle_users_are_left_on_disk(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    rt = factory(background=False)
    world = rt.world("town")
    world.set_profiles({f"npc {i}": Profile(ttl_s={"event": DAY * i}) for i in range(1, 9)})
    for i in range(1, 9):
        world.user(f"npc {i}").observe("雨。 It rained.")
    assert world.tend() == {}
    loaded: list[Key] = []
    due = limits._due

    def noted(memory: Any) -> tuple[float, bool]:
        loaded.append(memory)
        return due(memory)

    monkeypatch.setattr(limits, "_due", noted)
    for _ in range(5):
        assert world.tend() == {}
    assert not loaded
    factory.clock.advance(2 * DAY)
    assert world.tend() == {"npc 1": Tended(expired=1), "npc 2": Tended(expired=1)}
    world.tend()
    assert len(loaded) == 2  # those that have changed since
    world.user("npc 8").observe("It rained again.")
    assert world.tend() == {}
    assert len(loaded) == 3
    assert world.tend(users=["npc 7", "nobody"]) == {"npc 7": Tended()}
    assert world.users() == [f"npc {i}" for i in range(1, 9)]


def test_tending_does_not_depend_on_who_is_in_memory(factory: Factory) -> None:
    seen = []
    for name, byte_budget in (("a", 2**30), ("b", 1)):
        factory.clock = SimulatedClock(START)
        rt = factory(name, background=False, byte_budget=byte_budget)
        world = rt.world("town")
        world.set_profiles(
            {f"npc {i}": Profile(archive_below=0.1 * i, memories=20) for i in range(1, 5)}
        )
        done = []
        for day in range(6):
            for i in range(1, 5):
                for k in range(6):
                    text = f"Day {day}: Bo did {k}."
                    world.user(f"npc {i}").observe(text, importance=k / 6, participants=["Bo"])
            factory.clock.advance(5 * DAY)
            done.append(world.tend())
        seen.append((done, [world.user(u).digest() for u in world.users()]))
    assert seen[0] == seen[1]
    assert any(tended.faded for tended in seen[0][0][3].values())


# -- death -----------------------------------------------------------------------------


def test_who_is_tended_is_named_by_ids(factory: Factory) -> None:
    world = town(factory())
    for bad in (1, "tt", b"tt", {"ana": 1}):
        with pytest.raises(errors.InvalidValueError, match="users"):
            world.tend(users=bad)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidIdError):
        world.tend(users=[7])  # type: ignore[list-item]
    assert world.tend(users={"nobody", "无人"}) == {}
    with pytest.raises(errors.InvalidValueError, match="memories"):
        world.bury("ana", memories="no")  # type: ignore[arg-type]


def test_a_death_takes_the_ties_of_others_with_it(factory: Factory) -> None:
    rt = factory(background=False)
    world = town(rt)
    world.checkpoint("before")
    untouched = world.user("hermit").digest()
    burial = world.bury(DEAD, names=["Bram"])
    assert burial.receipt.clean
    assert burial.receipt.user_id == DEAD
    assert sorted(burial.others) == ["ana", "小明"]
    assert (burial.others["ana"].dimensions, burial.others["ana"].relations) == (1, 1)
    assert world.users() == ["ana", "hermit", "小明"]
    assert world.relationships() == []
    ana = world.user("ana")
    assert ana.neighbors("user").relations == []
    assert all(name not in (DEAD, "Bram") for name, _ in ana.neighbors("Ana").related)
    assert ana.search("Who shod the horse?")[0].text == "Bram shod a horse for Ana."  # remembered
    assert world.user("hermit").digest() == untouched
    assert world.bury(DEAD, names=["Bram"]).others == {}  # done again
    # The dead stay dead; what others had towards them comes back with the others.
    world.rewind("before")
    assert world.users() == ["ana", "hermit", "小明"]
    assert [r.owner for r in world.relationships("trust")] == ["ana", "小明"]


def test_a_death_can_take_the_memories_of_others_too(factory: Factory) -> None:
    rt = factory(background=False)
    world = town(rt)
    burial = world.bury(DEAD, names=["Bram"], memories=True)
    assert burial.others["小明"].archived == 2
    ana = world.user("ana")
    assert ana.list().items == []
    assert {line.why for line in ana.audit().lines} == {"Bram was buried", f"{DEAD} was buried"}
    assert world.user("hermit").list().total == 1


@pytest.mark.parametrize("dead", ["bram", "小红"])
def test_a_death_takes_the_ties_of_groups_with_it(factory: Factory, dead: str) -> None:
    world = factory(background=False).world("town")
    guild = world.group("行会")
    guild.join(dead, "tom")
    guild.observe(f"{dead} mended the bridge.", participants=[dead])
    guild.user.relationships.move(dead, trust=0.9)
    burial = world.bury(dead, memories=True)
    assert burial.others["group:行会"].dimensions == 1
    assert burial.others["group:行会"].archived == 1
    assert guild.user.relationships.list() == []
    assert guild.user.list().items == []
    assert (guild.members(), world.users()) == (["tom"], ["tom"])


@pytest.mark.parametrize(
    ("dead", "living", "as_name"), [("bob", "Bob", "BOB"), ("ａ小红", "A小红", "a小红")]
)
def test_a_death_leaves_the_ties_to_a_namesake(
    factory: Factory, dead: str, living: str, as_name: str
) -> None:
    """Ties are to names, for which case and width do not count; ids are compared byte for byte."""
    world = factory(background=False).world("town")
    world.user(dead).remember("I am here.")
    world.user(living).remember("I am here too.")
    world.user(living).relationships.move("Robert", trust=0.3)
    ana = world.user("ana")
    ana.observe(f"{as_name} sang.", participants=[as_name])
    ana.relationships.move(living, trust=0.7)
    ana.relationships.move("Robert", fear=0.1)
    with pytest.raises(errors.InvalidValueError, match="case and width do not count"):
        world.user(living).relationships.move(dead, trust=0.1)
    burial = world.bury(dead, names=["Robert", as_name], memories=True)
    assert burial.shared == (dead, as_name)
    assert sorted(burial.others) == [living, "ana"]  # of "Robert"
    assert ana.relationships.of(living)["trust"] == 0.7
    assert [item.text for item in ana.list().items] == [f"{as_name} sang."]
    last = world.bury(living, memories=True)  # there is no other by now
    assert (last.shared, list(last.others)) == ((), ["ana"])
    assert ana.relationships.of(living)["trust"] == 0.0
    assert ana.list().items == []


def test_a_burial_finds_masked_names(factory: Factory) -> None:
    rt = factory(background=False, mask=["person"], mask_key=new_mask_key())
    world = rt.world("town")
    for name in ("ana", "bo"):
        user = world.user(name)
        user.relate("user", "fears", "Ines Moreau", head_type="person", tail_type="person")
        user.relationships.move("Ines Moreau", fear=0.5)
        assert "Moreau" not in str(user.neighbors("user"))
    world.user("npc-17").observe("I came to town.")
    assert sorted(world.bury("npc-17", names=["Ines Moreau"]).others) == ["ana", "bo"]
    assert world.relationships() == []
    rt.close()
    assert search_files(rt.path, [b"Moreau"])[b"Moreau"] == []
    with pytest.raises(errors.InvalidLimitError):
        factory(background=False).world("town").bury("x", names=[f"n{i}" for i in range(64)])


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("at", range(1, 12))
def test_a_burial_that_was_cut_off_is_finished(factory: Factory, at: int) -> None:
    """Cut off at each commit in turn: the next opening finishes it, with nothing left of it."""
    rt = factory(background=False)
    world = town(rt)
    count = 0

    def cut(point: faults.Point) -> None:
        nonlocal count
        if point in {"commit.before", "commit.after"}:
            count += 1
            if count == at:
                raise Killed

    faults.install(cut)
    begun = True
    try:
        world.bury(DEAD, names=["Bram"])
    except Killed:
        begun = at > 1  # before the first commit nothing is noted
    faults.install(None)
    rt.close()
    again = factory(background=False)
    world = again.world("town")
    if begun:
        assert world.users() == ["ana", "hermit", "小明"]
        assert world.relationships() == []
    else:
        assert len(world.users()) == 4
        assert len(world.relationships()) == 2
    assert again.check() == []
    again.close()
    if begun:
        assert again.path.is_dir()
        catalog = search_files(again.path, [DEAD.encode()])[DEAD.encode()]
        assert all("partitions" in path.parts for path, _ in catalog)  # others remember the name


# -- the budget of a language model ----------------------------------------------------


def test_extraction_goes_on_by_rules_when_the_model_is_spent(factory: Factory) -> None:
    model = FakeLanguageModel(lambda _: "[]")
    rt = factory(background=False, language_model=model, extractor="layered")
    ana = rt.user("ana")
    ana.set_profile(Profile(model_calls=1))
    for text in ("I live in Oslo.", "I work at the mill.", "我喜欢绿茶。"):
        ana.add(text, wait=True)
    lines = [line for line in ana.audit().lines if line.became == "spent"]
    assert len(lines) == 1
    assert lines[0].id == "u"
    assert any("Oslo" in item.text for item in ana.list().items)
    assert any("绿茶" in item.text for item in ana.list().items)
    assert not rt.quarantined()
    used = rt.usage("default", "ana")
    assert sum(row.usage.calls for row in used) == len(model.calls) == 1
    # Another, without limits, goes on to use it.
    rt.user("bo").add("I live in Rome.", wait=True)
    assert rt.user("bo").audit().lines == []


def test_a_budget_of_prompt_tokens(factory: Factory) -> None:
    model = FakeLanguageModel(lambda _: "[]")
    rt = factory(background=False, language_model=model)
    ana = rt.user("ana")
    ana.set_profile(Profile(prompt_tokens=1))
    ana.add("I live in Oslo.", wait=True)
    assert [line.became for line in ana.audit().lines] == ["spent"]
    assert sum(row.usage.calls for row in rt.usage("default", "ana")) == 0
    ana.set_profile(Profile(prompt_tokens=10_000))
    ana.add("I work at the mill.", wait=True)
    assert sum(row.usage.calls for row in rt.usage("default", "ana")) > 0


@pytest.mark.ray
@pytest.mark.slow
def test_actors_change_nothing(tmp_path: Path) -> None:
    seen = []
    for actors in (None, 2):
        made = Factory(tmp_path / str(actors), actors)
        rt = made(background=False)
        world = town(rt)
        world.set_profiles(
            {u: Profile(name="村民", memories=3, archive_below=0.1) for u in world.users()}
        )
        for i in range(16):
            world.user("ana").observe(f"Bo sold horse {i}.", participants=["Bo"])
        made.clock.advance(90 * DAY)
        done = world.tend()
        burial = world.bury(DEAD, names=["Bram"], memories=True)
        assert burial.receipt.clean
        audits = [world.user(u).audit().lines for u in world.users()]
        digests = [world.user(u).digest() for u in world.users()]
        seen.append((done, burial.others, audits, digests))
        made.finish()
    assert seen[0] == seen[1]
    assert seen[0][0]["ana"].gists == 1
