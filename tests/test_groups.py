"""Groups: what a group knows is known to its members, from the time of their membership."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import DAY, Factory, ShardsBackend, fact, writer

import reverie
import reverie.runtime
from reverie import Runtime, errors
from reverie.memory_graph import events, groups
from reverie.memory_graph.errors import InvariantError
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.world import World

PLAN = "The guild will burn the mill."
ASKED = "What will the guild do to the mill?"


def known(town: World, user: str, question: str = ASKED, **options: object) -> list[str]:
    return [hit.text for hit in town.user(user).search(question, limit=50, **options)]  # type: ignore[arg-type]


def test_members_recall_what_came_after_they_joined(town: World) -> None:
    guild = town.group("行会")
    assert guild.join("ana", "小明") == ["ana", "小明"]
    seen = guild.observe(PLAN, importance=0.9)  # at one time on a clock that stands still
    assert guild.join("bo", "ana") == ["bo"]
    assert guild.join("cem", history=True) == ["cem"]
    assert guild.members() == ["ana", "bo", "cem", "小明"]
    for user, texts in (("ana", [PLAN]), ("小明", [PLAN]), ("bo", []), ("cem", [PLAN]), ("x", [])):
        assert known(town, user) == texts, user
        assert (PLAN in town.user(user).context(ASKED).text) == bool(texts)
    second = guild.observe("行会要烧磨坊。")
    for user in ("ana", "bo", "cem", "小明"):
        assert "行会要烧磨坊。" in known(town, user, "行会要做什么？")
    (hit,) = town.user("ana").search(ASKED, filters={"event": seen.event_id})
    assert (hit.id, hit.group) == ("group:行会/m1", "行会")
    assert hit.reasons[-1] == "known to the group 行会"
    assert town.user("ana").get(hit.id).text == PLAN
    assert [(k.user_id, k.group) for k in town.who_knows(seen.event_id)] == [
        ("ana", "行会"),
        ("cem", "行会"),
        ("小明", "行会"),
    ]
    assert len(town.who_knows(second.event_id)) == 4
    assert town.groups() == ["行会"]
    assert "group:行会" not in town.users()
    assert guild.user.list().total == 2  # stored once
    assert town.user("ana").list().total == 0


@pytest.mark.parametrize("user", ["bo", "stranger", "group:other"])
def test_who_does_not_know_it_has_no_way_to_it(town: World, user: str) -> None:
    guild = town.group("guild")
    guild.join("ana")
    guild.observe(PLAN, place="mill")
    guild.join("bo")
    town.group("other").observe("Rain.")
    town.group("other").join("stranger")
    one = town.user(user)
    for read in (
        lambda: one.search(ASKED, include_retired=True, include_archived=True),
        lambda: one.search(ASKED, as_of=town.now()),
        lambda: one.context(ASKED).hits,
        lambda: one.list(types=None, include_retired=True).items,
        lambda: one.entities("mill"),
    ):
        assert PLAN not in repr(read()), read
        assert "group:guild" not in repr(read()), read
    for node_id in ("group:guild/m1", "group:guild/m2", "group:guild/e1", "group:guild/x"):
        with pytest.raises(errors.UnknownMemoryError):
            one.get(node_id)
    with pytest.raises(errors.UnknownMemoryError):
        one.neighbors("mill")
    assert PLAN not in repr(one.why(ASKED, "group:guild/m1"))
    if not user.startswith("group:"):
        with pytest.raises(errors.UnknownMemoryError):
            town.tell(user, "eve", "group:guild/m1")


def test_who_leaves_knows_what_was_until_then_or_nothing(town: World) -> None:
    guild = town.group("guild")
    guild.join("ana", "bo")
    guild.observe(PLAN)
    assert guild.leave("ana") == ["ana"]
    assert guild.leave("ana", "nobody") == []
    assert guild.leave("bo", forget=True) == ["bo"]
    guild.observe("The guild hides the grain at the mill.")
    assert known(town, "ana") == [PLAN]
    assert known(town, "bo") == []
    assert guild.members() == []
    guild.join("ana", "bo")
    guild.observe("The guild sells the mill.")
    assert set(known(town, "ana")) == {PLAN, "The guild sells the mill."}
    assert known(town, "bo") == ["The guild sells the mill."]
    guild.leave("ana", forget=True)
    assert guild.leave("ana", forget=True) == []
    assert known(town, "ana") == []
    guild.leave("bo")
    assert guild.leave("bo", forget=True) == ["bo"]  # afterwards, too
    assert known(town, "bo") == []


def test_a_member_tells_what_the_group_knows_and_its_own_view_comes_first(town: World) -> None:
    guild = town.group("guild")
    guild.join("ana", "bo")
    seen = town.observe(PLAN, witnesses=["ana"], groups=["guild"])
    assert list(seen.kept) == ["ana", "group:guild"]
    assert [h.group for h in town.user("ana").search(ASKED)] == [None]  # once
    (hit,) = town.user("bo").search(ASKED)
    told = town.tell("bo", "cem", hit.id)
    item = town.user("cem").get(told.memory_id)
    assert (item.heard, item.event, item.confidence) == (("bo",), seen.event_id, 0.8)
    assert town.tell("bo", "ana", hit.id).op == "NOOP"
    digest = guild.user.digest()
    town.user("bo").search(ASKED)  # what one recalls is not rekindled for all
    assert guild.user.digest() == digest


def test_options_of_a_search_hold_for_groups_too(town: World, factory: Factory) -> None:
    guild = town.group("guild")
    guild.join("ana")
    guild.observe(PLAN, tags=["plan"])
    before = town.now()
    factory.clock.advance(DAY)
    guild.observe("The guild burned the mill.")
    guild.join("late", history=True)
    assert known(town, "ana", as_of=before) == [PLAN]
    assert known(town, "late", as_of=before) == []
    assert len(known(town, "late")) == 2
    assert known(town, "ana", filters={"tags": "plan"}) == [PLAN]
    assert known(town, "ana", types="message") == []
    assert len(town.user("ana").search(ASKED, limit=1)) == 1
    (first, second) = town._rt.search_many([("ana", ASKED), ("late", "grain")], world="town")
    assert {h.text for h in first} == {PLAN, "The guild burned the mill."}
    assert all(h.group == "guild" for h in second)
    guild.user.delete("m1")
    assert known(town, "ana") == ["The guild burned the mill."]


def test_bad_names_and_members_are_refused(town: World) -> None:
    for name, error in (("", errors.InvalidIdError), ("x" * 510, errors.InvalidIdError)):
        with pytest.raises(error):
            town.group(name)
    guild = town.group("guild")
    with pytest.raises(errors.InvalidValueError):
        guild.join("group:other")
    with pytest.raises(errors.InvalidIdError):
        guild.join("ana", "\x00")
    assert guild.join() == []
    assert guild.members() == []
    assert town.users() == town.groups() == []


def test_who_is_erased_is_a_member_no_more(rt: Runtime, town: World, factory: Factory) -> None:
    town.group("guild").join("somebody-to-erase", "bo")
    town.group("guild").observe(PLAN)
    assert town.user("somebody-to-erase").forget().clean
    assert town.group("guild").members() == ["bo"]
    assert known(town, "somebody-to-erase") == []
    town.user("somebody-to-erase").remember("I am new here.")
    assert known(town, "somebody-to-erase") == ["I am new here."]
    assert town.group("guild").user.forget().erased.existed
    assert known(town, "bo") == []
    assert town.user("bo").digest() != ""
    assert town.groups() == []
    assert rt.check() == []


def test_membership_is_rewound_and_forked_with_the_rest(town: World) -> None:
    guild = town.group("guild")
    guild.join("ana")
    guild.observe(PLAN)
    town.checkpoint("before")
    guild.leave("ana", forget=True)
    guild.join("bo", history=True)
    assert (known(town, "ana"), known(town, "bo")) == ([], [PLAN])
    town.rewind("before")
    assert (known(town, "ana"), known(town, "bo")) == ([PLAN], [])
    moon = town.fork("before", "moon")
    assert moon.group("guild").members() == ["ana"]
    assert known(moon, "ana") == [PLAN]
    moon.group("guild").observe("The guild flies to the mill.")
    assert known(town, "ana") == [PLAN]


@pytest.mark.parametrize("way", ["bury", "forget"])
@pytest.mark.parametrize("dead", ["bram", "小红"])
def test_a_rewind_brings_back_no_member_that_was_erased(town: World, way: str, dead: str) -> None:
    guild = town.group("guild")
    guild.join(dead, "tom", "gone")
    seen = guild.observe(PLAN)
    guild.leave("gone")
    town.checkpoint("before")
    for user in (dead, "gone"):
        _ = town.bury(user) if way == "bury" else town.user(user).forget()
    town.rewind("before")
    for world in (town, town.fork("before", "moon")):
        again = world.group("guild")
        assert again.members() == ["tom"]
        assert [k.user_id for k in world.who_knows(seen.event_id)] == ["tom"]
        assert dead not in world.users()
        # Whoever has the id now is somebody else: he knows nothing of before, nor by its id.
        world.user(dead).remember("I am new here.")
        assert again.members() == ["tom"]
        with pytest.raises(errors.UnknownMemoryError):
            world.user(dead).get("group:guild/m1")
        with pytest.raises(errors.UnknownMemoryError):
            world.tell(dead, "eve", "group:guild/m1")
        assert again.join(dead, "tom", "gone") == [dead, "gone"]
        assert again.members() == sorted([dead, "gone", "tom"])
        assert known(world, "gone") == []
        assert PLAN not in known(world, dead)
        assert [k.user_id for k in world.who_knows(seen.event_id)] == ["tom"]
        later = again.observe("The guild hides the grain at the mill.")
        assert len(world.who_knows(later.event_id)) == 3
        assert world.user(dead).get("group:guild/m2").text.startswith("The guild hides")
        assert town._rt.check() == []


def test_a_group_that_was_erased_begins_anew_after_a_rewind(town: World) -> None:
    guild = town.group("行会")
    guild.join("ana", "小明")
    seen = guild.observe("行会要烧磨坊。")
    town.checkpoint("before")
    town.bury("group:行会")
    town.rewind("before")
    assert (town.groups(), guild.members()) == ([], [])
    assert town.who_knows(seen.event_id) == []
    later = guild.observe("行会藏了粮食。")
    assert (town.who_knows(later.event_id), known(town, "ana", "行会要做什么？")) == ([], [])
    assert guild.join("ana") == ["ana"]
    assert guild.members() == ["ana"]
    assert known(town, "ana", "行会要做什么？") == []


def test_what_only_takes_away_makes_no_group(town: World) -> None:
    guild = town.group("行会")
    assert guild.leave("ana", "小明") == []
    assert guild.leave("ana", forget=True) == []
    guild.user.relationships.remove("ana")
    assert town.groups() == town.users() == []
    assert guild.join("ana") == ["ana"]
    assert town.groups() == ["行会"]


def test_a_member_can_be_given_the_history_later(town: World) -> None:
    guild = town.group("guild")
    guild.join("first")
    seen = guild.observe(PLAN)
    guild.join("ana", "小明")
    assert known(town, "ana") == known(town, "小明") == []
    assert guild.join("ana", "first", history=True) == ["ana"]
    assert (known(town, "ana"), known(town, "小明")) == ([PLAN], [])
    assert guild.join("ana", history=True) == []
    assert guild.members() == ["ana", "first", "小明"]
    assert [k.user_id for k in town.who_knows(seen.event_id)] == ["ana", "first"]
    assert town._rt.check() == []


@pytest.mark.parametrize("user_id", ["group:", "group: ", "group:\u3000"])
def test_no_group_has_an_empty_name(town: World, user_id: str) -> None:
    """What is named like the prefix alone is a user like any other."""
    town.user(user_id).remember("Hm.")
    assert (town.groups(), town.users()) == ([], [user_id])
    town.group("guild").join(user_id)
    assert town.group("guild").members() == [user_id]
    with pytest.raises(errors.InvalidIdError):
        town.observe("It rained.", groups=[user_id.removeprefix("group:")])


def test_joining_works_where_calls_are_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reverie.runtime, "InlineBackend", lambda folder, *_, **__: ShardsBackend(folder, 3)
    )
    factory = Factory(tmp_path, None)
    town = factory().world("town")
    people = [f"npc-{i}" for i in range(12)]
    assert town.group("guild").join(*people) == people
    assert town.group("guild").join(*people) == []
    town.group("guild").observe(PLAN)
    assert [known(town, user) for user in people] == [[PLAN]] * 12
    assert town._rt._folder.catalog.unfinished() == []  # of memberships the note goes at once
    for _, rt in factory._opened:
        rt.close()


# -- the state -------------------------------------------------------------------------


def test_membership_survives_a_snapshot_and_is_in_the_digest() -> None:
    w = writer()
    empty = state_digest(w.memory)
    w.emit(events.GroupFormed(at=1.0, name="guild"))
    w.emit(events.MemberJoined(at=1.0, member="ana"))
    w.remember(fact("One."))
    w.emit(events.MemberLeft(at=2.0, member="ana"))
    w.remember(fact("Two."))
    w.emit(events.MemberJoined(at=2.0, member="ana", history=True))
    again = decode_snapshot(encode_snapshot(w.memory))
    assert state_digest(again) == state_digest(w.memory) != empty
    for memory in (w.memory, again):
        one, two = (memory.graph.node(i) for i in ("m1", "m2"))
        assert one is not None
        assert two is not None
        ana, bo = groups.known_to(memory, "ana"), groups.known_to(memory, "bo")
        assert ana(one)  # type: ignore[arg-type]
        assert ana(two)  # type: ignore[arg-type]
        assert not groups.known_to(memory, "ana", 1.5)(two)  # type: ignore[arg-type]
        assert not bo(one)  # type: ignore[arg-type]
        assert list(groups.broken(memory)) == []
        assert groups.knows_all(memory, "ana")
        assert not groups.knows_all(memory, "ana", 1.5)
        assert not groups.knows_all(memory, "bo")
    with pytest.raises(InvariantError):
        w.emit(events.MemberJoined(at=3.0, member="ana"))
    with pytest.raises(InvariantError):
        w.emit(events.MemberLeft(at=3.0, member="bo"))


def test_the_checker_sees_broken_memberships() -> None:
    from reverie.memory_graph.nodes import Stay

    w = writer()
    owner = groups.root(w.memory)
    owner.members["ana"] = (Stay(1.0, 5), Stay(2.0, 3, 3.0, 2))
    owner.groups["guild"] = True
    lines = list(groups.broken(w.memory))
    assert len(lines) == 3
    owner.group = "guild"
    assert any("a member of groups" in line for line in groups.broken(w.memory))
