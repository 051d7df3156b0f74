"""Events: who saw them, who was told by whom, and that nobody else knows."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support import DAY, START, Factory

import reverie
from reverie import Runtime, errors
from reverie.fanout import DELIVERY, Gate
from reverie.memory_graph.hearsay import MAX_HOPS, MOST_HEARD, told_on
from reverie.memory_graph.store import search_files
from reverie.models.masking import KINDS
from reverie.vault import new_mask_key
from reverie.world import World

CROWD = [f"npc-{i}" for i in range(12)]  # over several partitions
THEFT = "The player stole the amulet at the market."


def texts(town: World, user: str, question: str = "Who stole the amulet?") -> list[str]:
    return [hit.text for hit in town.user(user).search(question, limit=100)]


# -- seeing ----------------------------------------------------------------------------


def test_each_witness_has_it_once_and_nobody_else(town: World) -> None:
    seen = town.observe(
        THEFT,
        witnesses=[*CROWD, "npc-0"],
        place="market",
        participants=["player"],
        importance=0.9,
        sentiment=-0.5,
        tags=["crime"],
    )
    assert list(seen.kept) == CROWD
    assert {kept.op for kept in seen.kept.values()} == {"ADD"}
    for name in CROWD:
        (item,) = town.user(name).list(filters={"event": seen.event_id}).items
        assert (item.text, item.provenance, item.hops) == (THEFT, "witnessed", 0)
        assert (item.entities, item.tags, item.at) == (("player", "market"), ("crime",), START)
        assert texts(town, name) == [THEFT]
    assert texts(town, "stranger") == []
    assert town.users() == sorted(CROWD)  # the participant is no user by that


def test_the_same_may_happen_twice_and_be_told_to_have_happened_once(
    rt: Runtime, town: World
) -> None:
    first = town.observe("钟响了。", witnesses=["ana", "bo"])
    second = town.observe("钟响了。", witnesses=["bo", "ana"])
    assert second.event_id == f"{first.event_id}.1"  # exactly so again
    both = town.observe_many([{"text": "钟响了。", "witnesses": ["ana", "bo"]}] * 2)
    assert [o.event_id for o in both] == [f"{first.event_id}.{n}" for n in (2, 3)]
    assert town.user("ana").stats().active == 4
    named = town.observe("The mill burns.", witnesses=["ana"], event_id="fire")
    again = town.observe("The mill burns.", witnesses=["ana", "bo"], event_id="fire")
    assert again.kept["ana"] == named.kept["ana"]
    assert again.kept["bo"].op == "ADD"
    assert town.user("ana").stats().active == 5
    with pytest.raises(errors.InvalidValueError, match="fire"):
        town.observe("The mill is gone.", witnesses=["cem", "ana"], event_id="fire")
    far = town.observe("Smoke, far away.", witnesses=["cem"], event_id="fire")
    assert far.kept["cem"].op == "ADD"  # another saw the same otherwise
    assert rt.check() == []


def test_an_event_in_other_words_after_an_update(town: World) -> None:
    seen = town.observe("磨坊着火了。", witnesses=["ana"], event_id="火")
    town.user("ana").update(seen.kept["ana"].memory_id, "磨坊冒烟了。")
    assert town.observe("磨坊着火了。", witnesses=["ana"], event_id="火") == seen
    with pytest.raises(errors.InvalidValueError, match="火"):
        town.observe("磨坊没了。", witnesses=["ana"], event_id="火")


def test_a_request_id_stands_for_one_event(rt: Runtime, town: World) -> None:
    first = town.observe("The mill burnt.", witnesses=["ana", "bo"], place="mill", request_id="R")
    same = town.observe("The mill burnt.", witnesses=["bo", "ana"], place="mill", request_id="R")
    assert same.event_id == first.event_id
    assert same.kept == first.kept
    other: list[dict[str, Any]] = [
        {"text": "The king died."},
        {"text": "国王死了。"},
        {"place": "bridge"},
        {"place": None},
        {"importance": 0.9},
        {"at": START - 5},
        {"participants": ["Rolf"]},
        {"tags": ["fire"]},
        {"witnesses": ["ana"]},
        {"witnesses": ["bo", "cem"]},
    ]
    call: dict[str, Any] = {"text": "The mill burnt.", "witnesses": ["ana", "bo"], "place": "mill"}
    for change in other:
        with pytest.raises(errors.RequestReusedError, match="'R'"):
            town.observe_many([call | change | {"request_id": "R"}])
    assert [town.user(name).stats().active for name in ("ana", "bo")] == [1, 1]
    assert "cem" not in town.users()
    twice = [
        {"text": text, "witnesses": ["dot"], "request_id": "Z"} for text in ("下雨了。", "雪。")
    ]
    with pytest.raises(errors.RequestReusedError, match="'Z'"):
        town.observe_many(twice)
    once = town.observe_many([twice[0], twice[0]])
    assert once[0] == once[1]
    assert town.user("dot").stats().active == 1
    assert rt.check() == []


def test_a_request_goes_by_what_is_remembered_so_that_a_game_can_go_on_after_a_rewind(
    town: World,
) -> None:
    town.observe("Dawn.", witnesses=["ana"], request_id="r0")
    town.checkpoint("dawn")
    first = town.observe("Rain.", witnesses=["ana"], request_id="r1")
    town.rewind("dawn")
    assert town.observe("Rain.", witnesses=["ana"], request_id="r1") == first
    town.rewind("dawn")
    assert town.observe("Snow.", witnesses=["ana"], request_id="r1").event_id != first.event_id
    with pytest.raises(errors.RequestReusedError):
        town.observe("Dusk.", witnesses=["ana"], request_id="r0")


def test_sets_get_into_no_id(town: World) -> None:
    names = {"Rolf", "Mira", "玩家"}
    for field in ("participants", "tags", "entities"):
        for bad in (names, frozenset(names), dict.fromkeys(names), dict.fromkeys(names).keys()):
            with pytest.raises(errors.InvalidValueError, match=field):
                town.observe("x", witnesses=["ana"], **{field: bad})  # type: ignore[arg-type]
    seen = town.observe("Rain.", witnesses={"cem", "ana", "bo"})  # type: ignore[arg-type]
    assert list(seen.kept) == ["ana", "bo", "cem"]


def test_a_text_that_is_remembered_is_still_an_event_of_its_own(town: World) -> None:
    town.user("ana").remember(THEFT)
    assert town.observe(THEFT, witnesses=["ana"]).kept["ana"].op == "ADD"
    assert town.user("ana").observe(THEFT).op == "NOOP"  # as before


def test_all_is_checked_before_anything_is_stored(town: World) -> None:
    good: dict[str, Any] = {"text": THEFT, "witnesses": CROWD}
    for bad, error in (
        ({}, errors.InvalidValueError),
        ("text", errors.InvalidValueError),
        ({"text": "x", "whom": 1}, errors.InvalidValueError),
        ({"text": "x", "witnesses": "ana"}, errors.InvalidValueError),
        ({"text": "x", "witnesses": ["group:guild"]}, errors.InvalidValueError),
        ({"text": "x", "witnesses": ["\x00"]}, errors.InvalidIdError),
        ({"text": "x", "importance": 2}, errors.InvalidValueError),
        ({"text": "x", "place": ""}, errors.InvalidIdError),
        ({"text": "", "witnesses": ["ana"]}, errors.InvalidTextError),
        ({"text": "x", "at": "soon"}, errors.InvalidTimeError),
        ({"text": "x", "event_id": ""}, errors.InvalidIdError),
        ({"text": "x", "pinned": "no"}, errors.InvalidValueError),
        ({"text": "x", "event_id": "e", "request_id": ""}, errors.InvalidIdError),
        ({"text": "x", "metadata": {"user_id": "bo"}}, errors.InvalidMetadataError),
    ):
        with pytest.raises(error):
            town.observe_many([good, bad])  # type: ignore[list-item]
    nothing: list[Any] = [None, 1, "text", b"text", {"text": "x"}, {1}]
    for none in nothing:
        for many in (town.observe_many, town.tell_many, town.move_many):
            with pytest.raises(errors.InvalidValueError):
                many(none)
        with pytest.raises(errors.InvalidValueError):
            town._rt.search_many(none, world="town")
    for pair in ("cy", ("cy",), ("cy", "rumour", 1)):
        with pytest.raises(errors.InvalidValueError, match="pairs"):
            town._rt.search_many([pair], world="town")  # type: ignore[list-item]
    with pytest.raises(errors.InvalidValueError, match="a telling needs"):
        town.tell_many([{"speaker": "ana", "listener": "bo"}])
    assert town.users() == []
    assert town.observe_many([]) == []
    assert town.observe("Nobody sees it.").kept == {}


def test_a_batch_embeds_each_text_once_and_costs_few_commits(
    rt: Runtime, town: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.observe("Before.", witnesses=CROWD)
    embedder = rt.mind.embedder("town")
    embedded: list[str] = []
    real = type(embedder).embed

    def counted(self: Any, given: Any, role: Any) -> Any:
        embedded.extend(given)
        return real(self, given, role)

    monkeypatch.setattr(type(embedder), "embed", counted)
    points: list[str] = []
    from reverie.memory_graph import faults

    faults.install(points.append)
    try:
        town.observe_many([{"text": f"Bell {i % 2}.", "witnesses": CROWD} for i in range(10)])
    finally:
        faults.install(None)
    assert sorted(embedded) == ["Bell 0.", "Bell 1."]
    assert points.count("commit.after") <= 1 + 4  # the catalog, and each of 4 partitions


def test_event_ids_are_the_same_in_every_folder_and_after_a_rewind(factory: Factory) -> None:
    def story(town: World) -> list[str]:
        return [
            town.observe(text, witnesses=CROWD[:n], place=place).event_id
            for text, n, place in (
                ("Rain.", 1, None),
                ("Rain.", 1, None),
                ("下雨了。", 3, "磨坊"),
                ("Rain.", 2, None),
            )
        ]

    rt = factory()
    town = rt.world("town")
    town.observe("Rain.", witnesses=CROWD[:1])
    town.checkpoint("dawn")
    first = story(town)
    digests = [town.user(name).digest() for name in CROWD[:3]]
    town.rewind("dawn")
    assert story(town) == first
    assert [town.user(name).digest() for name in CROWD[:3]] == digests
    moon = town.fork("dawn", "moon")
    assert story(moon) == first
    assert [moon.user(name).digest() for name in CROWD[:3]] == digests
    other = factory("other", partitions=1).world("elsewhere")
    other.observe("Rain.", witnesses=CROWD[:1])
    assert story(other) == first


def test_two_threads_that_tell_of_the_same_tell_of_two_events(town: World) -> None:
    found: list[str] = []
    start = threading.Barrier(4)

    def see() -> None:
        start.wait()
        found.extend(town.observe("A shout.", witnesses=CROWD).event_id for _ in range(5))

    threads = [threading.Thread(target=see) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 20
    assert {town.user(name).stats().active for name in CROWD} == {20}


# -- telling ---------------------------------------------------------------------------


def test_hearsay_names_its_chain_and_loses_confidence(town: World) -> None:
    seen = town.observe(
        "有人偷了护身符。", witnesses=["ana"], participants=["玩家"], importance=0.9
    )
    told = town.tell("ana", "bo", seen.kept["ana"].memory_id)
    again = town.tell("bo", "小明", told.memory_id, text="玩家偷了两个护身符。")
    item = town.user("小明").get(again.memory_id)
    assert (item.heard, item.hops, item.told_by) == (("ana", "bo"), 2, "bo")
    assert (item.provenance, item.event, item.at) == ("told", seen.event_id, START)
    assert item.confidence == pytest.approx(0.8 * 0.8)
    assert (item.importance, item.entities, item.text) == (0.9, ("玩家",), "玩家偷了两个护身符。")
    (hit,) = town.user("小明").search("护身符")
    assert "told by bo, who had it from ana" in hit.reasons
    assert [(k.user_id, k.heard) for k in town.who_knows(seen.event_id)] == [
        ("ana", ()),
        ("bo", ("ana",)),
        ("小明", ("ana", "bo")),
    ]
    user = town.user("小明")
    for where in (
        {"event": seen.event_id},
        {"told_by": "bo"},
        {"provenance": "told"},
        {"hops": {"gte": 2}},
        {"heard": "ana"},
    ):
        assert [i.id for i in user.list(filters=where).items] == [again.memory_id], where
    assert user.list(filters={"hops": 0}).items == []


def test_only_what_is_held_can_be_told(town: World, factory: Factory) -> None:
    seen = town.observe(THEFT, witnesses=["ana", "bo"], ttl_s=DAY).kept
    user = town.user("ana")
    turn = user.add("Hello.", infer=False).ids[0]
    for speaker, memory_id in (("ana", "m9"), ("cem", "m1"), ("ana", turn), ("nobody", "m1")):
        with pytest.raises(errors.UnknownMemoryError):
            town.tell(speaker, "dora", memory_id)
    user.delete(seen["ana"].memory_id)
    with pytest.raises(errors.UnknownMemoryError):
        town.tell("ana", "dora", "m1")
    factory.clock.advance(2 * DAY)
    with pytest.raises(errors.UnknownMemoryError):  # forgotten
        town.tell("bo", "dora", "m1")
    with pytest.raises(errors.InvalidValueError):
        town.tell("bo", "bo", "m1")
    with pytest.raises(errors.UnknownMemoryError):
        town.tell_many([{"speaker": "bo", "listener": "dora", "memory_id": "m1"}])
    assert texts(town, "dora") == []


def test_who_saw_it_is_not_told_and_who_sees_it_after_all_believes_that(town: World) -> None:
    seen = town.observe(THEFT, witnesses=["ana", "bo"])
    assert town.tell("ana", "bo", "m1") == reverie.Kept("NOOP", seen.kept["bo"].memory_id)
    town.tell("ana", "cem", "m1", text="The player stole a sword.")
    late = town.observe(THEFT, witnesses=["cem"], event_id=seen.event_id)
    assert late.kept["cem"].op == "UPDATE"
    assert town.observe(THEFT, witnesses=["cem"], event_id=seen.event_id) == late
    assert texts(town, "cem") == [THEFT]
    (knower,) = (k for k in town.who_knows(seen.event_id) if k.user_id == "cem")
    assert knower.heard == ()


def test_of_two_versions_the_surer_then_the_shorter_is_kept(town: World) -> None:
    town.observe(THEFT, witnesses=["ana", "bo"])
    town.tell("ana", "cem", "m1")
    first = town.tell("cem", "dora", "m1", text="The player stole a crown.")
    worse = town.tell("bo", "dora", "m1", text="The player stole a cow.", confidence=0.1)
    assert worse == reverie.Kept("NOOP", first.memory_id)
    shorter = town.tell("bo", "dora", "m1", confidence=0.8 * 0.8)
    assert shorter.op == "UPDATE"
    assert shorter.target == first.memory_id
    assert texts(town, "dora") == [THEFT]
    surer = town.tell("cem", "dora", "m1", confidence=0.9)
    assert surer.op == "UPDATE"
    assert town.user("dora").get(surer.memory_id).heard == ("ana", "cem")
    assert town.user("dora").check() == []


def test_another_source_makes_it_more_credible_once(town: World) -> None:
    town.observe(THEFT, witnesses=["ana", "bo", "eve"])
    kept = town.tell("ana", "dora", "m1", confidence=0.5)

    def confidence() -> float:
        return town.user("dora").get(kept.memory_id).confidence or 0.0

    for _ in range(2):  # a second time it is no other source
        assert town.tell("bo", "dora", "m1", confidence=0.5).op == "NOOP"
        assert confidence() == pytest.approx(0.5 + 0.5 * 0.5 * 0.5)
    assert town.tell("ana", "dora", "m1", confidence=0.5).op == "NOOP"
    town.tell("eve", "dora", "m1", confidence=0.5, text="The player stole a cow.")
    assert confidence() == pytest.approx(0.625)  # that is something else
    assert town.user("dora").get(kept.memory_id).backed == ("bo",)
    for i in range(40):
        town.observe(THEFT, witnesses=[f"w{i}"], event_id=town.user("ana").get("m1").event)
        town.tell(f"w{i}", "dora", "m1", confidence=confidence())
    assert confidence() <= MOST_HEARD


def test_what_comes_back_adds_nothing(town: World) -> None:
    seen = town.observe(THEFT, witnesses=["ana"])
    town.tell("ana", "bo", "m1")
    town.tell("bo", "cem", "m1")
    town.user("ana").delete("m1")  # she has forgotten
    for speaker in ("bo", "cem"):
        back = town.tell(speaker, "ana", "m1")
        assert (back.op, back.memory_id) == ("NOOP", "")
    assert texts(town, "ana") == []
    assert [k.user_id for k in town.who_knows(seen.event_id)] == ["bo", "cem"]
    fact = town.user("ana").remember("Ana keeps bees.")  # no event of the world
    kept = town.tell("ana", "dora", fact.memory_id)
    assert town.tell("dora", "ana", kept.memory_id).op == "NOOP"
    assert town.tell("ana", "dora", fact.memory_id) == reverie.Kept("NOOP", kept.memory_id)
    assert town.user("ana").stats().active == 1


def test_many_tell_at_once_from_what_is_known_now(town: World) -> None:
    town.observe(THEFT, witnesses=["ana"])
    ana_bo = {"speaker": "ana", "listener": "bo", "memory_id": "m1"}
    bo_cem = {"speaker": "bo", "listener": "cem", "memory_id": "m1"}
    with pytest.raises(errors.UnknownMemoryError):
        town.tell_many([ana_bo, bo_cem])
    assert texts(town, "bo") == []
    assert [k.op for k in town.tell_many([ana_bo, ana_bo])] == ["ADD", "NOOP"]
    assert [k.op for k in town.tell_many([bo_cem])] == ["ADD"]


def test_a_long_chain_keeps_its_ends() -> None:
    chain: tuple[str, ...] = ()
    for i in range(3 * MAX_HOPS):
        chain = told_on(chain, f"n{i}")
    assert len(chain) == MAX_HOPS
    assert (chain[0], chain[-2:]) == ("n0", (f"n{3 * MAX_HOPS - 2}", f"n{3 * MAX_HOPS - 1}"))


def test_told_by_of_a_user_alone_is_a_chain_of_one(town: World) -> None:
    kept = town.user("ana").observe("The mill burns.", told_by="bo")
    item = town.user("ana").get(kept.memory_id)
    assert (item.told_by, item.heard, item.hops) == ("bo", ("bo",), 1)


# -- what is noted, saved, erased, masked ----------------------------------------------


def test_nothing_of_a_delivery_is_left_in_the_catalog_of_who_is_erased(
    factory: Factory, rt: Runtime, town: World
) -> None:
    town.observe("Secret of the amulet maker.", witnesses=CROWD)
    catalog = rt._folder.catalog
    assert [i.kind for i in catalog.unfinished()] == [DELIVERY]  # done, and not yet struck out
    assert rt.check() == []
    for name in CROWD:
        assert town.user(name).forget().clean, name
    found = search_files(factory.folder / "data", [b"amulet maker", b"npc-1"])
    assert {needle: [p.name for p, _ in places] for needle, places in found.items() if places} == {}


def test_a_note_does_not_outlive_the_runtime(factory: Factory, town: World) -> None:
    town.observe("Secret of the amulet maker.", witnesses=CROWD)
    factory.finish()
    rt = factory()
    assert rt._folder.catalog.unfinished() == []
    assert {rt.user(n, "town").stats().active for n in CROWD} == {1}


def test_what_a_failed_disk_kept_back_comes_before_the_next_save(
    rt: Runtime, town: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.memory_graph.store import Partition

    real = Partition.write

    def failing(self: Partition) -> Any:
        if self.path.name == "p0001.db":
            msg = "no space left"
            raise errors.StorageFullError(msg)
        return real(self)

    monkeypatch.setattr(Partition, "write", failing)
    with pytest.raises(errors.StorageFullError):
        town.observe(THEFT, witnesses=CROWD)
    assert any("unfinished delivery in world 'town'" in line for line in rt.check())
    with pytest.raises(errors.StorageFullError):
        town.checkpoint("half")
    have = {n for n in CROWD if town.user(n).stats().active}
    assert 0 < len(have) < len(CROWD)
    lost = next(n for n in CROWD if n not in have)
    monkeypatch.setattr(Partition, "write", real)
    assert town.user(lost).forget().erased.existed  # it comes first, and then it is erased
    assert town.checkpoint("whole") == len(CROWD) - 1
    assert {n: town.user(n).stats().active for n in CROWD if n != lost} == dict.fromkeys(
        [n for n in CROWD if n != lost], 1
    )
    assert town.user(lost).stats().active == 0


def test_a_save_waits_for_deliveries_and_they_for_it() -> None:
    gate = Gate()
    order: list[str] = []
    entered, go = threading.Event(), threading.Event()

    def deliver() -> None:
        with gate.shared():
            entered.set()
            assert go.wait(10)
            order.append("delivered")

    def save() -> None:
        with gate.alone(), gate.alone(), gate.shared():  # who is alone may do anything
            order.append("saved")

    first = threading.Thread(target=deliver)
    first.start()
    assert entered.wait(10)
    second = threading.Thread(target=save)
    second.start()
    go.set()
    first.join(10)
    second.join(10)
    assert order == ["delivered", "saved"]
    with gate.shared():
        order.append("again")


def test_names_are_masked_in_events_and_hearsay(factory: Factory) -> None:
    rt = factory("masked", mask=KINDS, mask_key=new_mask_key(), background=False)
    town = rt.world("town")
    said = "Ines Moreau called +49 170 1234567."
    seen = town.observe(
        said,
        witnesses=CROWD,
        place="13912345678",
        participants=["Ines Moreau"],
        metadata={"who": "ines.moreau@example.org"},
        tags=["ines.moreau@example.org"],
    )
    for name in CROWD[:2]:
        (item,) = town.user(name).list().items
        assert "Moreau" not in repr(item)
        assert town.user(name).unmask(item.text) == said
    kept = town.tell("npc-0", "bo", seen.kept["npc-0"].memory_id)
    assert town.user("bo").unmask(town.user("bo").get(kept.memory_id).text) == said
    group = town.group("guild")
    group.join("bo")
    group.observe("Ines Moreau pays the guild.")
    (hit,) = [h for h in town.user("bo").search("Who pays the guild?") if h.group]
    assert "Moreau" not in hit.text
    rt.flush()
    needles = [b"Moreau", b"1234567", b"13912345678", b"example.org"]
    found = search_files(factory.folder / "masked", needles)
    assert not any(found.values()), found


# -- async -----------------------------------------------------------------------------


def test_worlds_and_groups_have_async_twins(tmp_path: Path) -> None:
    from reverie.aio_worlds import AsyncGroup, AsyncWorld
    from reverie.groups import Group

    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(World) <= public(AsyncWorld)
    assert public(Group) <= public(AsyncGroup)

    async def story() -> None:
        opened = reverie.open_async(
            tmp_path / "async", embedder="standin", clock=reverie.SimulatedClock(START)
        )
        async with await opened as rt:
            town = rt.world("town")
            seen = await town.observe(THEFT, witnesses=["ana"])
            assert (await town.tell("ana", "bo", "m1")).op == "ADD"
            assert len(await town.who_knows(seen.event_id)) == 2
            assert await town.group("guild").join("bo") == ["bo"]
            await town.group("guild").observe("行会要烧磨坊。")
            hits = await town.user("bo").search("行会要做什么？")
            assert any(hit.group == "guild" for hit in hits)
            assert (await town.group("guild").user.stats()).active == 1
            await town.checkpoint("one")
            assert [found async for found in town.diff_each("one")] == []
            await town.observe("下雨了。", witnesses=["ana", "bo"])
            found = [one.user_id async for one in town.diff_each("one")]
            assert found == ["ana", "bo"]
            with pytest.raises(errors.UnknownCheckpointError):
                await anext(town.diff_each("none"))
            assert (await town.fork("one", "moon")).name == "moon"

    asyncio.run(story())
