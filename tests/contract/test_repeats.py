"""Calls that are more than one write, sent again after a lost answer: one effect, one answer.

What has a request id of its own in each command (`add`, `remember`) is tested elsewhere; here are
save slots, erasures, groups, and what goes to many users at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import Factory, Home

from reverie import Runtime, User, World, errors
from reverie.memory_graph import faults
from reverie.memory_graph.drafts import MemoryDraft
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.store import search_files

ID = "请求-1 request"


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    faults.install(None)


def village(home: Home) -> World:
    """A world of three users, with a save slot and a group."""
    world = home.rt.world(home.world)
    for name, text in (("ana", "Ana keeps bees."), ("李娜", "李娜爱喝绿茶。"), ("bo", "Bo swims.")):
        world.user(name).remember(text)
    world.group("行会").join("ana")
    world.user("ana").relationships.move("bo", trust=0.5)
    world.checkpoint("first 第一")
    world.user("ana").remember("Ana sold her hives. 安娜卖了蜂箱。")
    return world


def state(home: Home) -> dict[str, Any]:
    """All that the calls of these tests change."""
    rt = home.rt
    worlds = [name for name in rt.worlds() if name.startswith(home.world)]
    return {
        name: (
            {user: rt.user(user, name).digest() for user in rt.users(name)},
            [slot.tag for slot in rt.checkpoints(name)],
        )
        for name in worlds
    }


class Case(NamedTuple):
    """A call, and what somebody does before it is sent again."""

    call: Callable[[World, str], Any]
    then: Callable[[World], object]
    other: Callable[[World, str], Any]  # another call under the same id


def _drafts(text: str) -> dict[str, list[str | MemoryDraft]]:
    return {"ana": [text, "安娜会游泳。"], "李娜": [MemoryDraft(text)]}


def _ended(world: World) -> None:
    for user in ("ana", "李娜"):
        for item in world.user(user).list().items:
            if item.text == "A guest came.":
                world.user(user).delete(item.id)


CASES: dict[str, Case] = {
    "checkpoint": Case(
        lambda w, r: w.checkpoint("第二", request_id=r),
        lambda w: w.drop_checkpoint("第二"),
        lambda w, r: w.checkpoint("third", request_id=r),
    ),
    "rewind": Case(
        lambda w, r: w.rewind("first 第一", request_id=r),
        lambda w: w.user("ana").remember("Written since. 后来写的。"),
        lambda w, r: w.drop_checkpoint("first 第一", request_id=r),
    ),
    "fork": Case(
        lambda w, r: w.fork("first 第一", f"{w.name} 二", request_id=r).name,
        lambda w: w.user("ana").remember("Written since. 后来写的。"),
        lambda w, r: w.fork("first 第一", f"{w.name} 三", request_id=r),
    ),
    "drop": Case(
        lambda w, r: w.drop_checkpoint("first 第一", request_id=r),
        lambda w: w.checkpoint("first 第一"),
        lambda w, r: w.drop_checkpoint("other", request_id=r),
    ),
    "forget": Case(
        lambda w, r: w.user("李娜").forget(request_id=r),
        lambda w: w.user("李娜").remember("Another 李娜 moved in."),
        lambda w, r: w.bury("李娜", request_id=r),
    ),
    "forget nobody": Case(
        lambda w, r: w.user("nobody").forget(request_id=r),
        lambda w: w.user("nobody").remember("Somebody, now. 现在有人了。"),
        lambda w, r: w.bury("nobody", request_id=r),
    ),
    "bury": Case(
        lambda w, r: w.bury("bo", request_id=r).receipt,
        lambda w: w.user("bo").remember("Another Bo moved in. 另一个。"),
        lambda w, r: w.bury("bo", memories=True, request_id=r),
    ),
    "join": Case(
        lambda w, r: w.group("行会").join("bo", "李娜", request_id=r),
        lambda w: w.group("行会").leave("bo"),
        lambda w, r: w.group("行会").leave("bo", request_id=r),
    ),
    "leave": Case(
        lambda w, r: w.group("行会").leave("ana", request_id=r),
        lambda w: w.group("行会").join("ana"),
        lambda w, r: w.group("行会").join("ana", request_id=r),
    ),
    "remember_many": Case(
        lambda w, r: w._rt.remember_many(_drafts("A guest came."), world=w.name, request_id=r),
        _ended,
        lambda w, r: w._rt.remember_many(_drafts("Nobody came."), world=w.name, request_id=r),
    ),
    "move_many": Case(
        lambda w, r: w.move_many(
            [{"owner": "ana", "other": "bo", "by": {"trust": 0.1}}] * 2
            + [{"owner": "李娜", "other": "安娜", "by": {"fear": 0.3}}],
            request_id=r,
        ),
        lambda w: w.user("ana").relationships.move("bo", trust=-0.4),
        lambda w, r: w.move_many(
            [{"owner": "ana", "other": "bo", "by": {"debt": 3}}], request_id=r
        ),
    ),
    "set_profiles": Case(
        lambda w, r: w.set_profiles({"ana": Profile(memories=50), "李娜": None}, request_id=r),
        lambda w: w.user("ana").set_profile(None),
        lambda w, r: w.set_profiles({"ana": Profile(memories=7)}, request_id=r),
    ),
    "observe_many": Case(
        lambda w, r: [
            seen.event_id
            for seen in w.observe_many(
                [{"text": "The bell rang. 钟响了。", "witnesses": ["ana", "李娜"]}] * 2,
                request_id=r,
            )
        ],
        lambda w: w.observe("The bell broke. 钟坏了。", witnesses=["ana"]),
        lambda w, r: w.observe_many(
            [{"text": "Silence. 安静。", "witnesses": ["ana"]}], request_id=r
        ),
    ),
    "tell_many": Case(
        lambda w, r: w.tell_many(
            [{"speaker": "ana", "listener": "李娜", "memory_id": "m1"}], request_id=r
        ),
        lambda w: w.user("ana").delete("m1"),
        lambda w, r: w.tell_many(
            [{"speaker": "bo", "listener": "李娜", "memory_id": "m1"}], request_id=r
        ),
    ),
    "tell": Case(
        lambda w, r: w.tell("李娜", "bo", "m1", confidence=0.4, request_id=r),
        lambda w: w.user("李娜").update("m1", "李娜如今爱喝红茶。", confidence=0.2),
        lambda w, r: w.tell("李娜", "bo", "m1", confidence=0.5, request_id=r),
    ),
    "reset_usage": Case(
        lambda w, r: w._rt.reset_usage("ana", w.name, request_id=r),
        lambda w: w.user("ana").remember("Written since. 后来写的。"),
        lambda w, r: w.user("ana").forget(request_id=r),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_whose_answer_was_lost_is_not_made_again(name: str, home: Home) -> None:
    """Also not when the world has gone on since, so that a second one would change it."""
    case, world = CASES[name], village(home)
    before = state(home)
    first = case.call(world, ID)
    if name not in {"forget nobody", "reset_usage"}:
        assert state(home) != before
    once = state(home)
    assert case.call(world, ID) == first
    assert state(home) == once
    case.then(world)
    since = state(home)
    assert case.call(world, ID) == first
    assert state(home) == since
    assert since != once or name == "forget nobody"


@pytest.mark.parametrize("name", CASES)
def test_another_call_under_the_same_id_is_refused(name: str, home: Home) -> None:
    case, world = CASES[name], village(home)
    case.call(world, ID)
    once = state(home)
    with pytest.raises(errors.RequestReusedError):
        case.other(world, ID)
    assert state(home) == once


@pytest.mark.parametrize("name", CASES)
def test_another_id_is_another_call(name: str, home: Home) -> None:
    """Only the id makes it the same: without it, or under another, there is no memory of it."""
    case, world = CASES[name], village(home)
    case.call(world, ID)
    case.then(world)
    since = state(home)
    try:
        case.call(world, "another")
    except errors.ReverieError as exc:
        assert not isinstance(exc, errors.RequestReusedError)  # noqa: PT017 (some are refused)
    else:
        assert state(home) != since or name in {"forget nobody", "reset_usage", "tell_many"}


@pytest.mark.parametrize("name", ["checkpoint", "fork", "forget", "bury", "join", "remember_many"])
def test_of_many_at_once_under_one_id_one_has_an_effect(name: str, home: Home) -> None:
    case, world = CASES[name], village(home)
    answers: list[Any] = []
    failed: list[BaseException] = []
    begin = threading.Barrier(6)

    def call() -> None:
        try:
            begin.wait()
            answers.append(case.call(world, ID))
        except BaseException as exc:  # noqa: BLE001 (shown by the assertion)
            failed.append(exc)

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert answers == answers[:1] * 6
    once = state(home)
    assert case.call(world, ID) == answers[0]
    assert state(home) == once


def test_an_id_counts_in_its_own_world_and_for_its_own_user(home: Home) -> None:
    world = village(home)
    other = home.rt.world(f"{home.world} 旁边")
    other.user("ana").remember("Elsewhere. 别处。")
    assert world.checkpoint("a", request_id=ID) == 4  # with the memory of the group
    assert other.checkpoint("b", request_id=ID) == 1
    assert world.user("bo").forget(request_id=ID).erased.existed
    assert world.user("ana").forget(request_id=ID).erased.existed
    assert world.users() == ["李娜"]


def test_a_bad_id_is_refused_before_anything_is_done(home: Home) -> None:
    world = village(home)
    before = state(home)
    for case in CASES.values():
        for bad in ("", "x" * 513, "a\nb"):
            with pytest.raises(errors.InvalidIdError):
                case.call(world, bad)
    assert state(home) == before


def test_a_world_is_brought_in_once(runtime_factory: Factory, tmp_path: Path) -> None:
    rt = runtime_factory(background=False)
    world = village(Home(rt, runtime_factory.clock))
    file, other = tmp_path / "world.reverie", tmp_path / "other.reverie"
    world.export(file)
    world.user("bo").forget()
    world.export(other)
    answers: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(rt.import_world(file, "复本", request_id=ID).name)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == ["复本"] * 4
    copy = rt.world("复本")
    copy.user("李娜").remember("Written since. 后来写的。")
    since = copy.user("李娜").digest()
    assert rt.import_world(file, "复本", request_id=ID).users() == ["ana", "bo", "李娜"]
    assert copy.user("李娜").digest() == since
    with pytest.raises(errors.RequestReusedError):
        rt.import_world(other, "复本", request_id=ID)
    with pytest.raises(errors.CheckpointExistsError):
        rt.import_world(file, "复本", request_id="another")


# -- turns in quarantine ----------------------------------------------------------------


class Broken:
    """An extractor that raises at every turn."""

    def extract(self, turns: Any, history: Any) -> Any:
        msg = "broken"
        raise RuntimeError(msg)


def test_turns_are_given_up_once(runtime_factory: Factory) -> None:
    rt = runtime_factory(extractor=Broken(), background=False)
    ana = rt.user("ana")
    ana.add(["I moved. 我搬家了。", "I swim. 我游泳。", "I sing."], wait=True)
    assert ana.stats().quarantined == 3
    assert rt.drop_quarantined("ana", turn_ids=["t1"], request_id=ID) == 1
    assert rt.drop_quarantined("ana", turn_ids=["t1"], request_id=ID) == 1
    with pytest.raises(errors.UnknownMemoryError):
        rt.drop_quarantined("ana", turn_ids=["t1"])
    with pytest.raises(errors.RequestReusedError):
        rt.drop_quarantined("ana", turn_ids=["t2"], request_id=ID)
    assert rt.retry_quarantined("ana", turn_ids=["t2"], request_id="again") == 1
    rt.drain()
    assert ana.stats().quarantined == 2
    assert rt.retry_quarantined("ana", turn_ids=["t2"], request_id="again") == 1
    assert (ana.stats().quarantined, ana.stats().pending) == (2, 0)
    assert rt.drop_quarantined("ana", request_id="all 全部") == 2
    ana.add("I paint.", wait=True)
    assert rt.drop_quarantined("ana", request_id="all 全部") == 2
    assert ana.stats().quarantined == 1


# -- the end of the process ---------------------------------------------------------------


class Killed(BaseException):
    """Stands for the end of the process."""


def cut_off(call: Callable[[], object], at: int) -> bool:
    """Make a call whose process ends at its commit number `at`, counting both sides of each;
    returns whether it came so far."""
    count = 0

    def cut(point: faults.Point) -> None:
        nonlocal count
        if point in {"commit.before", "commit.after"}:
            count += 1
            if count >= at:  # what is dead does not undo anything
                raise Killed

    faults.install(cut)
    with suppress(Killed, errors.ReverieError):
        call()
    faults.install(None)
    return count >= at


KILLED = ("checkpoint", "rewind", "fork", "drop", "forget", "bury", "join")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["inline"])
@pytest.mark.parametrize("name", KILLED)
def test_a_call_cut_off_at_any_commit_is_made_once(name: str, runtime_factory: Factory) -> None:
    """Whether it had its effect before the end or not: sent again it answers, and has it once."""
    case, at, is_cut = CASES[name], 0, True
    while is_cut:
        at += 1
        rt = runtime_factory(f"data {at}", background=False, partitions=2)
        world = village(Home(rt, runtime_factory.clock))
        is_cut = cut_off(lambda world=world: case.call(world, ID), at)  # type: ignore[misc]
        rt.close()
        rt = runtime_factory(f"data {at}", background=False)
        home = Home(rt, runtime_factory.clock)
        first = case.call(rt.world(), ID)
        once = state(home)
        assert case.call(rt.world(), ID) == first
        assert state(home) == once
        case.then(rt.world())
        since = state(home)
        assert case.call(rt.world(), ID) == first
        assert state(home) == since
        rt.close()
    assert at > 6


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["inline"])
def test_an_import_cut_off_at_any_commit_is_made_once(
    runtime_factory: Factory, tmp_path: Path
) -> None:
    file = tmp_path / "world.reverie"
    rt = runtime_factory(background=False)
    village(Home(rt, runtime_factory.clock)).export(file)
    at, is_cut = 0, True
    while is_cut:
        at += 1
        rt = runtime_factory(f"data {at}", background=False, partitions=2)
        call = partial(rt.import_world, file, "复本", request_id=ID)
        is_cut = cut_off(call, at)
        rt.close()
        rt = runtime_factory(f"data {at}", background=False)
        copy = rt.import_world(file, "复本", request_id=ID)
        copy.user("李娜").remember("Written since. 后来写的。")
        since = copy.user("李娜").digest()
        assert rt.import_world(file, "复本", request_id=ID).users() == ["ana", "bo", "李娜"]
        assert copy.user("李娜").digest() == since
        rt.close()
    assert at > 6


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["inline"])
def test_who_is_new_is_not_erased_for_who_was_before(runtime_factory: Factory) -> None:
    """The erasure was cut off; its user came anew before the request was sent again."""
    at, is_cut, ends = 0, True, set()
    while is_cut:
        at += 1
        rt = runtime_factory(f"data {at}", background=False, partitions=1)
        rt.user("李娜").remember("李娜爱喝绿茶。 Green tea.")
        user = rt.user("李娜")
        is_cut = cut_off(lambda user=user: user.forget(request_id=ID), at)  # type: ignore[misc]
        rt.close()
        rt = runtime_factory(f"data {at}", background=False)
        was_erased = not rt.user("李娜").digest()
        rt.user("李娜").remember("New here. 新来的。")
        receipt = rt.user("李娜").forget(request_id=ID)
        assert receipt.erased.existed
        assert (rt.users() == ["李娜"]) == was_erased
        rt.close()
        ends.add((was_erased, receipt.clean))
    # Cut off before the rows were gone; after, and before the search; at the end.
    assert ends == {(False, True), (True, False), (True, True)}


def test_what_is_kept_names_nobody(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    world = rt.world("小镇的世界")
    names = ["Ana Lindqvist", "李娜·林德奎斯特"]
    for name in names:
        world.user(name).remember(f"{name} keeps bees. {name}养蜂。")
    world.user("bo").relationships.move(names[0], trust=0.5)
    receipt = world.bury(names[0], names=[names[0]], request_id=f"bury {names[0]}").receipt
    assert receipt.clean
    assert world.user(names[1]).forget(request_id=f"forget {names[1]}").clean
    assert world.user("bo").forget(request_id="bo").erased.existed
    rt.close()
    needles = [name.encode() for name in names]
    assert search_files(Path(rt.path), needles) == {needle: [] for needle in needles}


def test_an_id_with_the_first_answer_outlives_the_process(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    world = village(Home(rt, runtime_factory.clock))
    first = {name: CASES[name].call(world, f"{ID} {name}") for name in ("checkpoint", "forget")}
    rt.close()
    rt = runtime_factory(background=False)
    for name, answer in first.items():
        assert CASES[name].call(rt.world(), f"{ID} {name}") == answer


def test_without_an_id_nothing_is_kept(runtime_factory: Factory) -> None:
    """As before there were ids: the same again is another call."""
    rt: Runtime = runtime_factory(background=False)
    ana: User = rt.user("ana")
    ana.remember("Bees. 蜜蜂。")
    rt.checkpoint("a")
    with pytest.raises(errors.CheckpointExistsError):
        rt.checkpoint("a")
    assert ana.forget().erased.existed
    assert not ana.forget().erased.existed
