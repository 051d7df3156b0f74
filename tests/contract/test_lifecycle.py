"""Forgetting, migrating, failing, closing, opening again."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support import DAY, DIM, START, Factory, Gate, Home, Sentences, Spoiled, shown

from reverie import Runtime, User, errors
from reverie.models.standin import HashEmbedder

# -- forgetting -------------------------------------------------------------------------

CANARIES = [
    "canary-4711-message",
    "金丝雀的秘密藏在第九棵树下",
    "canary-4711-memory",
    "canary-4711-meta",
]


def test_what_is_forgotten_leaves_no_trace(runtime_factory: Factory) -> None:
    rt = runtime_factory(trace=True, byte_budget=50_000)
    ana, bo = rt.user("ana-canary-4711"), rt.user("bo")
    bo.remember("Bo stays.")
    ana.add([CANARIES[0], CANARIES[1]], wait=True, session="canary-4711-session")
    ana.remember(CANARIES[2], metadata={"k": CANARIES[3]}, entities=["Canary 4711"], request_id="r")
    ana.search(CANARIES[1])
    rt.flush()
    rt.checkpoint("save")
    for i in range(50):
        bo.remember(f"Bo says {i}.")
    digest = bo.digest()
    receipt = ana.forget()
    assert receipt.clean
    assert receipt.erased.existed
    assert receipt.erased.rows["events"] > 0
    assert receipt.erased.rows["pins"] == 1
    assert receipt.erased.needles >= 4
    assert receipt.erased.files > 0
    assert rt.users() == ["bo"]
    assert ana.stats().messages == 0
    assert ana.digest() == ""
    assert bo.digest() == digest
    again = ana.forget()
    assert (again.clean, again.erased.existed) == (False, False)  # it proves nothing
    rt.close()
    left = [
        (path.name, canary)
        for path in runtime_factory.folder.rglob("*")
        if path.is_file()
        for canary in [*CANARIES, "canary-4711"]
        if canary.encode() in path.read_bytes()
    ]
    assert left == []


def test_a_forgotten_user_may_come_back_as_a_new_one(home: Home) -> None:
    ana = home.user()
    ana.remember("I was here.", request_id="r")
    ana.forget()
    assert ana.remember("I was here.", request_id="r").op == "ADD"
    assert [i.id for i in ana.list().items] == ["m1"]


def test_a_receipt_tells_what_others_still_hold(home: Home) -> None:
    home.user().remember("We both saw the dragon of Dale.")
    home.user("bo").remember("We both saw the dragon of Dale.")
    digest = home.user("bo").digest()
    receipt = home.user().forget()
    assert home.user("bo").digest() == digest
    assert receipt.clean is (receipt.erased.found == [])


def test_work_for_a_forgotten_user_is_discarded(runtime_factory: Factory) -> None:
    gate = Gate()
    rt = runtime_factory(extractor=gate)
    ana = rt.user("ana")
    ana.add("The secret is out.")
    assert gate.entered.wait(30)
    ana.forget()
    gate.go.set()
    rt.drain(30)
    assert rt.users() == []
    ana.add("A new life.", wait=True)
    assert [i.text for i in ana.list().items] == ["A new life."]


# -- migrating --------------------------------------------------------------------------


def test_reembedding_replaces_all_vectors(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    ana = rt.user("ana")
    ana.add(["I keep bees.", "我养蜜蜂。"], wait=True)
    ana.add("Still pending.")
    rt.user("bo", "other").remember("Elsewhere.")
    seen: list[tuple[int, int]] = []
    new = HashEmbedder(2 * DIM)
    assert rt.reembed(embedder=new, progress=lambda done, of: seen.append((done, of))) == 1
    assert seen == [(1, 1)]
    assert ana.stats().embedder == new.info.id
    assert ana.stats().vectors == len(ana.list(types=None).items)
    assert ana.search("bees")[0].score > 0
    rt.drain()
    ana.add("More bees.", wait=True)
    assert rt.user("bo", "other").stats().embedder == HashEmbedder(DIM).info.id
    rt.close()
    with pytest.raises(errors.EmbedderMismatchError, match="reembed") as caught:
        runtime_factory().user("ana").search("bees")
    assert caught.value.details["stored"] == new.info.id
    runtime_factory._opened[-1][1].close()
    again = runtime_factory(embedder=new)
    assert again.user("ana").search("bees")[0].score > 0
    with pytest.raises(errors.InvalidValueError):
        again.reembed("no such world", embedder=new)
    with pytest.raises(errors.EmbedderMismatchError):
        again.create_world("default", embedder=HashEmbedder(DIM))
    again.create_world("third", embedder=HashEmbedder(4 * DIM))
    assert again.user("ana", "third").remember("Hi.").op == "ADD"


def test_bad_vectors_are_refused_and_harm_nothing(runtime_factory: Factory) -> None:
    rt = runtime_factory(embedder=Spoiled(DIM), background=False)
    ana = rt.user("ana")
    ana.remember("Good.")
    digest = ana.digest()
    for text in ("nan", "short"):
        with pytest.raises(errors.ReverieError):
            ana.remember(text)
        with pytest.raises(errors.ReverieError):
            ana.add(text, infer=False)
        with pytest.raises(errors.ReverieError):
            ana.search(text)
        assert ana.digest() == digest
    assert ana.remember("Good again.").memory_id == "m2"
    ana.search("good")
    with pytest.raises(errors.ReverieError):
        ana.remember("nan")
    assert ana.get("m1").hits == 1  # the reading before the failed write is not lost
    digest = ana.digest()
    rt.close()
    assert runtime_factory(embedder=Spoiled(DIM)).user("ana").digest() == digest


# -- failing extraction -----------------------------------------------------------------


def test_a_turn_that_fails_twice_is_put_aside_and_can_be_retried(runtime_factory: Factory) -> None:
    extractor = Sentences()
    rt = runtime_factory(extractor=extractor)
    ana = rt.user("ana")
    ana.add(["Fine one.", "This goes boom.", "好的一句。"])
    rt.drain(30)
    stats = ana.stats()
    assert (stats.pending, stats.quarantined, stats.memories) == (0, 1, 2)
    assert ana.get("t2").status == "quarantined"
    (away,) = rt.quarantined()
    assert (away.user_id, away.turn_ids) == ("ana", ["t2"])
    assert away.errors == ["RuntimeError: boom"]
    assert rt.quarantined("default") == [away]
    assert rt.quarantined("elsewhere") == []
    assert rt.stats().quarantined == 1
    rt.close()
    extractor.booms = 0
    rt = runtime_factory(extractor=extractor)
    ana = rt.user("ana")
    assert ana.stats().quarantined == 1
    assert rt.retry_quarantined("ana") == 1
    rt.drain(30)
    assert rt.quarantined() == []
    assert [i.text for i in ana.list().items] == ["Fine one.", "好的一句。", "This goes boom."]
    assert rt.retry_quarantined("ana") == 0
    assert rt.retry_quarantined("nobody") == 0
    assert rt.users() == ["ana"]


def test_a_turn_that_fails_once_is_tried_again(runtime_factory: Factory) -> None:
    extractor = Sentences(booms=1)
    rt = runtime_factory(extractor=extractor)
    ana = rt.user("ana")
    (kept,) = ana.add("This goes boom.", wait=True).kept
    assert kept.op == "ADD"
    assert extractor.calls == 2
    assert ana.stats().quarantined == 0


def test_a_turn_that_is_added_again_does_not_wait_again(runtime_factory: Factory) -> None:
    rt = runtime_factory()
    for _ in range(2):
        rt.user("ana").add({"text": "I live in Oslo.", "id": "x"}, wait=True)
        assert rt.stats().pending == 0
    assert rt.user("ana").stats().memories == 1


def test_pending_work_survives_closing(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    rt.user("ana").add(["I live in Oslo.", "I love tea."])
    rt.user("李雷").add(["我住在上海。"] + ["嗯。"] * 40)
    assert rt.stats().pending == 43
    rt.close()
    rt = runtime_factory()
    rt.drain(60)
    assert rt.stats().pending == 0
    assert rt.user("ana").stats().memories == 2
    assert rt.user("李雷").list(filters={"slot": "user|lives_in"}).total == 1


# -- limits and ends --------------------------------------------------------------------


def test_a_full_queue_says_so(runtime_factory: Factory) -> None:
    rt = runtime_factory(max_waiting=1)
    ana = rt.user("ana")
    ana.remember("Before.")
    lane = rt._router.lanes[rt._router.lane_of(_stats(ana))]
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lane.alone():
            inside.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert inside.wait(30)
    waiter = threading.Thread(target=lambda: ana.remember("I wait."))
    waiter.start()
    while not lane._queue:
        time.sleep(0.001)
    with pytest.raises(errors.OverloadedError):
        ana.remember("I do not.")
    leave.set()
    waiter.join(30)
    holder.join(30)
    assert [i.text for i in ana.list().items] == ["Before.", "I wait."]
    assert ana.remember("I do not.").op == "ADD"


def _stats(user: User) -> Any:
    from reverie.actors import commands as c

    return c.Stats(world=user.key.world, user_id=user.key.user_id, now=START)


CLOSED: dict[str, Callable[[Runtime, User], object]] = {
    "add": lambda rt, u: u.add("x"),
    "add without inference": lambda rt, u: u.add("x", infer=False),
    "remember": lambda rt, u: u.remember("x"),
    "observe": lambda rt, u: u.observe("x"),
    "relate": lambda rt, u: u.relate("a", "b", "c"),
    "update": lambda rt, u: u.update("m1", "x"),
    "delete": lambda rt, u: u.delete("m1"),
    "search": lambda rt, u: u.search("x"),
    "context": lambda rt, u: u.context("x"),
    "get": lambda rt, u: u.get("m1"),
    "list": lambda rt, u: u.list(),
    "digest": lambda rt, u: u.digest(),
    "forget": lambda rt, u: u.forget(),
    "create_world": lambda rt, u: rt.create_world("w"),
    "worlds": lambda rt, u: rt.worlds(),
    "users": lambda rt, u: rt.users(),
    "add_many": lambda rt, u: rt.add_many({"a": "x"}),
    "remember_many": lambda rt, u: rt.remember_many({"a": ["x"]}),
    "search_many": lambda rt, u: rt.search_many([("a", "x")]),
    "drain": lambda rt, u: rt.drain(1),
    "quarantined": lambda rt, u: rt.quarantined(),
    "checkpoint": lambda rt, u: rt.checkpoint("a"),
    "rewind": lambda rt, u: rt.rewind("a"),
    "fork": lambda rt, u: rt.fork("a", "b"),
    "drop": lambda rt, u: rt.drop_checkpoint("a"),
    "checkpoints": lambda rt, u: rt.checkpoints(),
    "reembed": lambda rt, u: rt.reembed(embedder=HashEmbedder(64)),
    "stats": lambda rt, u: rt.stats(),
    "check": lambda rt, u: rt.check(),
    "flush": lambda rt, u: rt.flush(),
}


def test_a_closed_runtime_says_so(runtime_factory: Factory) -> None:
    rt = runtime_factory()
    ana = rt.user("ana")
    ana.remember("x")
    rt.close()
    rt.close()
    for name, call in CLOSED.items():
        try:
            call(rt, ana)
        except errors.ClosedError:
            continue
        except Exception as exc:  # noqa: BLE001 (named in the failure)
            pytest.fail(f"{name}: {exc!r}")
        pytest.fail(f"{name} did not say that the runtime is closed")


def test_closing_while_others_write_loses_nothing_acknowledged(runtime_factory: Factory) -> None:
    rt = runtime_factory()
    acknowledged: list[list[str]] = [[] for _ in range(4)]
    wrong: list[BaseException] = []

    def write(i: int) -> None:
        n = 0
        while True:
            try:
                rt.user(f"u{i}").remember(f"fact {n}")
            except errors.ClosedError:
                return
            except BaseException as exc:  # noqa: BLE001
                wrong.append(exc)
                return
            acknowledged[i].append(f"fact {n}")
            n += 1

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    while not all(acknowledged):
        time.sleep(0.001)
    rt.close()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    again = runtime_factory()
    for i, facts in enumerate(acknowledged):
        kept = [item.text for item in again.user(f"u{i}").list(limit=10_000).items]
        assert kept == facts


SECOND = """
import sys, reverie
try:
    reverie.open(sys.argv[1])
except reverie.errors.DataFolderLockedError as exc:
    print(exc.pid, exc)
"""


def test_a_second_process_is_told_who_has_the_folder(runtime_factory: Factory) -> None:
    rt = runtime_factory()
    run = subprocess.run(
        [sys.executable, "-c", SECOND, str(rt.path)], capture_output=True, text=True, check=True
    )
    import os

    assert run.stdout.split()[0] == str(os.getpid())
    assert "in use by process" in run.stdout
    with pytest.raises(errors.DataFolderLockedError):
        runtime_factory()
    assert rt.user("ana").remember("Still mine.").op == "ADD"


# -- threads ----------------------------------------------------------------------------


def test_threads_writing_to_one_user_and_to_many(home: Home) -> None:
    count, threads = 40, []
    results: dict[str, list[str]] = {}

    def write(name: str, users: list[str]) -> None:
        mine = []
        for i in range(count):
            kept = home.user(users[i % len(users)]).remember(f"{name} 说第 {i} 句")
            assert kept.op == "ADD"
            mine.append(kept.memory_id)
        results[name] = mine

    threads = [
        threading.Thread(target=write, args=(f"t{i}", users))
        for i, users in enumerate([["one"], ["one"], ["a", "b", "c"], ["c", "b", "a"]])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(results) == 4
    one = home.user("one").list(limit=1000)
    assert one.total == 2 * count
    assert sorted(results["t0"] + results["t1"]) == sorted(i.id for i in one.items)
    texts = [i.text for i in one.items if i.text.startswith("t0")]
    assert texts == [f"t0 说第 {i} 句" for i in range(count)]  # each in its own order
    assert sum(home.user(u).list().total for u in "abc") == 2 * count


def test_threads_adding_the_same_request(home: Home) -> None:
    barrier = threading.Barrier(4)
    ids: list[str] = []

    def once() -> None:
        barrier.wait(30)
        ids.append(home.user().remember("Just once.", request_id="same").memory_id)

    threads = [threading.Thread(target=once) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ids == ["m1"] * 4
    assert home.user().list().total == 1


# -- opening again ----------------------------------------------------------------------


def live(rt: Runtime, clock: Any) -> None:
    """Some life of several users in two worlds."""
    clock.set(START)
    for i in range(6):
        user = rt.user(f"npc {i}", "游戏" if i % 2 else "default")
        user.add(["I live in Oslo with Bo.", "我喜欢绿茶。", f"My number is {i}."], wait=True)
        clock.advance(DAY)
        user.add("I moved to Rome.", wait=True)
        user.remember("The code is 4711.", tags=["密码"], entities=["Code"])
        user.relate("user", "knows", "Bo", tail_type="person")
        user.search("Where is Bo?")
        clock.advance(DAY)
        user.search("绿茶")
    rt.user("npc 0").delete("m1")


def look(rt: Runtime) -> dict[str, object]:
    """What can be seen of it; looking does not change it, because it is as of a moment."""
    seen: dict[str, object] = {"worlds": rt.worlds()}
    for world in rt.worlds():
        for name in rt.users(world):
            user = rt.user(name, world)
            seen[f"{world}/{name}"] = {
                "list": shown(user.list(types=None, include_retired=True).items),
                "entities": shown(user.entities()),
                "neighbors": shown([user.neighbors(), user.neighbors("Bo")]),
                "hits": [
                    shown(user.search(q, as_of=START + 30 * DAY, limit=20))
                    for q in ("Where does Bo live?", "code", "绿茶还是咖啡", "What is new?")
                ],
                "digest": user.digest(),
            }
    return seen


def test_opening_with_any_number_of_actors_changes_nothing(runtime_factory: Factory) -> None:
    rt = runtime_factory()
    live(rt, runtime_factory.clock)
    seen = look(rt)
    rt.flush()
    assert look(rt) == seen
    rt.close()
    on_ray = runtime_factory.actors is not None
    for actors in (None, 1, 2, 3, None) if on_ray else (None, None):
        rt = runtime_factory(actors=actors)
        assert look(rt) == seen
        rt.close()


def test_the_same_life_gives_the_same_state(runtime_factory: Factory) -> None:
    """Also for users that leave memory all the time, and on another number of actors."""
    ways: list[dict[str, Any]] = [{}, {"byte_budget": 1}, {"actors": None}]
    seen = []
    for i, way in enumerate(ways):
        rt = runtime_factory(f"folder {i}", **way)
        live(rt, runtime_factory.clock)
        seen.append(look(rt))
        rt.close()
    assert seen[0] == seen[1] == seen[2]
