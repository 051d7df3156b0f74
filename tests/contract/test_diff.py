"""What differs between two save slots of a world, or one and now."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from support import DAY, START, Factory, Home, fact, writer

from reverie import errors
from reverie.memory_graph.diff import OwnerChange, UserDiff, diff
from reverie.memory_graph.drafts import RelationDraft
from reverie.memory_graph.nodes import Stay, User
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot
from reverie.memory_graph.state import UserMemory


def test_each_kind_of_difference_is_told(home: Home) -> None:
    world = home.rt.world(home.world)
    ana, old = world.user("ana"), world.user("老李")
    ana.remember("Ana keeps bees.")
    ana.remember("Ana is tall.")
    ana.relate("Ana", "lives_in", "Oslo", functional=True)
    old.remember("老李住在上海。")
    world.user("same").remember("Nothing happens here.")
    world.checkpoint("a")
    home.clock.advance(DAY)
    ana.remember("Ana sold the bees.", replaces="m1")
    ana.update("m2", importance=0.9, tags=["t", "蜂"])
    ana.relate("Ana", "lives_in", "Rome", functional=True)
    ana.add("Hello there.", infer=False)
    old.search("上海")  # a reading is no difference
    world.user("new").remember("I am new.")
    world.checkpoint("b")

    seen: list[tuple[int, int]] = []
    found = world.diff("a", "b", progress=lambda done, of: seen.append((done, of)))
    assert (found.users, found.came, found.gone) == (4, ("new",), ())
    assert seen[-1] == (4, 4)
    assert [user.user_id for user in found.changed] == ["ana", "new"]
    told = found.of("ana")
    assert [item.text for item in told.added] == ["Ana sold the bees."]
    assert [(item.id, item.retired_why) for item in told.ended] == [("m1", "replaced by m3")]
    (change,) = told.changed
    assert (change.id, change.text) == ("m2", "Ana is tall.")
    assert change.fields == {"importance": (0.7, 0.9), "tags": ([], ["t", "蜂"])}
    assert [(r.head, r.predicate, r.tail) for r in told.relations_added] == [
        ("Ana", "lives_in", "Rome")
    ]
    assert [r.tail for r in told.relations_ended] == ["Oslo"]
    assert told.turns_added == 1
    assert found.counts["added"] == 2
    assert found.of("same").is_empty
    assert found.of("老李").is_empty

    assert world.diff("a").counts == found.counts  # now is as at "b"
    back = world.diff("b", "a")
    assert back.gone == ("new",)
    assert [item.text for item in back.of("ana").missing] == ["Ana sold the bees."]
    assert back.of("ana").turns_missing == 1


def test_the_same_id_on_two_branches_is_two_things(home: Home) -> None:
    world = home.rt.world(home.world)
    world.user("ana").remember("Before.")
    world.user("bo").remember("Before.")
    world.checkpoint("a")
    world.user("ana").remember("One branch.")
    world.checkpoint("b")
    world.rewind("a")
    assert world.diff("a").changed == ()
    world.user("ana").remember("Another branch.")
    (told,) = world.diff("b").changed
    assert [item.text for item in told.added] == ["Another branch."]
    assert [item.text for item in told.missing] == ["One branch."]
    assert told.added[0].id == told.missing[0].id == "m2"
    world.rewind("b")
    assert world.diff("b").changed == ()


def test_only_what_was_written_to_is_looked_at(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    world = rt.world()
    rt.remember_many({f"u{i}": ["Bees."] for i in range(40)})
    world.checkpoint("a")
    for _ in range(3):
        world.rewind("a")  # other generations, the same history
    world.user("u7").remember("Wasps.")
    asked: list[str] = []
    ask = rt.slots.ask

    def noted(commands: list[object]) -> object:
        asked.extend(command.user_id for command in commands)  # type: ignore[attr-defined]
        return ask(commands)  # type: ignore[arg-type]

    rt.slots.ask = noted  # type: ignore[assignment, method-assign]
    assert [user.user_id for user in world.diff("a").changed] == ["u7"]
    assert asked == ["u7"]


def test_the_limit_cuts_lists_and_not_counts(home: Home) -> None:
    world = home.rt.world(home.world)
    world.user("ana").relate("Ana", "knows", "Bo")
    world.checkpoint("a")
    for i in range(7):
        world.user("ana").remember(f"Memory {i}.")
    (told,) = world.diff("a", limit=3).changed
    assert [item.text for item in told.added] == ["Memory 0.", "Memory 1.", "Memory 2."]
    assert told.count("added") == 7
    assert world.diff("a", limit=3).counts["added"] == 7
    with pytest.raises(errors.InvalidLimitError):
        world.diff("a", limit=0)


def test_groups_and_relationships_are_told(home: Home) -> None:
    world = home.rt.world(home.world)
    ana = world.user("ana")
    ana.remember("Before.")
    ana.relationships.move("Bo", trust=0.1)
    world.checkpoint("a")
    ana.relationships.move("Bo", trust=0.2, fear=0.5)
    world.group("guild").join("ana")
    world.group("guild").observe("The guild has met.")
    found = world.diff("a")
    told = found.of("ana")
    moved = [(m.other, m.dimension, m.before, m.after) for m in told.relationships]
    assert [(*m[:3], round(m[3] or 0.0, 6)) for m in moved] == [
        ("Bo", "fear", None, 0.5),
        ("Bo", "trust", 0.1, 0.3),
    ]
    assert told.owner.fields == {"groups": ({}, {"guild": True})}
    assert [item.text for item in found.of("group:guild").added] == ["The guild has met."]
    assert found.came == ("group:guild",)


def test_what_is_noted_of_a_user_is_told_in_its_types(home: Home) -> None:
    world = home.rt.world(home.world)
    ana = world.user("安娜")
    ana.remember("Before.")
    world.group("guild").join("bo")
    world.checkpoint("a")
    guard = Profile(name="守卫", memories=3, ttl_s={"event": 60.0})
    ana.set_profile(guard)
    world.group("guild").join("安娜", history=True)
    home.clock.advance(DAY)
    world.group("guild").leave("bo")
    found = world.diff("a")
    assert found.of("安娜").owner == OwnerChange(
        groups=({}, {"guild": True}), profile=(None, guard)
    )
    before, after = found.of("group:guild").owner.members or ({}, {})
    assert before == {"bo": (Stay(START, 0),)}
    assert after == {
        "bo": (Stay(START, 0, START + DAY, 0),),
        "安娜": (Stay(START, 0, history=True),),
    }
    world.checkpoint("b")
    kept = world.diff("a", "b")
    world.group("guild").leave("安娜")  # what was told does not change with the world
    assert kept.of("安娜").owner.groups == ({}, {"guild": True})


def test_each_field_of_a_user_can_differ() -> None:
    assert {"id", *OwnerChange.__struct_fields__} == set(User.__struct_fields__)


def test_unknown_tags_and_damage_are_told(home: Home) -> None:
    world = home.rt.world(home.world)
    world.user("ana").remember("Before.")
    world.checkpoint("a")
    for tags in (("b",), ("a", "b")):
        with pytest.raises(errors.UnknownCheckpointError, match="it has: a"):
            world.diff(*tags)
    world.user("ana").forget()
    assert world.diff("a").users == 0  # a pin of somebody who was erased is gone


def copy(memory: UserMemory) -> UserMemory:
    return decode_snapshot(encode_snapshot(memory))


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["remember", "retire", "replace", "relate", "touch"]), st.integers(0, 5)
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(first=OPERATIONS, then=OPERATIONS)
def test_a_difference_accounts_for_every_memory(
    first: list[tuple[str, int]], then: list[tuple[str, int]]
) -> None:
    """What is there before, and what the difference says, add up to what is there after."""
    memory = UserMemory()
    play(memory, first, START)
    before = copy(memory)
    play(memory, then, START + DAY)
    told = diff("ana", before, memory, limit=1000)
    old, new = active(before), active(memory)
    came = {item.id for item in told.added if item.status == "active"}
    assert (old - {item.id for item in told.ended}) | came == new
    assert told.missing == ()
    assert told.is_empty == (not {op for op, _ in then} - {"touch"} or told == blank(told))
    back = diff("ana", memory, before, limit=1000)
    assert {i.id for i in back.missing} == {i.id for i in told.added}
    assert diff("ana", memory, copy(memory)).is_empty
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=UserDiff) == told


def blank(told: UserDiff) -> UserDiff:
    return UserDiff(user_id=told.user_id, read=told.read)


def active(memory: UserMemory) -> set[str]:
    return {node.id for node in memory.graph.nodes() if getattr(node, "status", None) == "active"}


def play(memory: UserMemory, operations: list[tuple[str, int]], at: float) -> None:
    for i, (operation, number) in enumerate(operations):
        pen = writer(at + i, memory)
        ids = sorted(active(memory))
        target = ids[number % len(ids)] if ids else None
        match operation:
            case "remember":
                pen.remember(fact(f"memory {at} {i} 记忆"))
            case "replace" if target is not None:
                pen.remember(fact(f"memory {at} {i} new"), (target,))
            case "retire" if target is not None:
                pen.retire(target, "expired", "")
            case "touch" if target is not None:
                pen.touch([target], at + i)
            case "relate":
                pen.relate(RelationDraft("user", "likes", f"thing {number}"), None)
            case _:
                pass
