"""Save slots of a world: checkpoint, rewind, fork, drop."""

from __future__ import annotations

import threading

import pytest
from support import DAY, DIM, START, Factory, Gate, Home, shown

from reverie import errors
from reverie.models.standin import HashEmbedder


def digests(home: Home, world: str | None = None) -> dict[str, str]:
    world = world or home.world
    return {u: home.rt.user(u, world).digest() for u in home.rt.users(world)}


def two_users(home: Home) -> None:
    home.user().remember("Ana keeps bees.")
    home.user("小明").add("小明住在上海。", wait=True)


def test_rewinding_brings_back_the_state_and_its_answers(home: Home) -> None:
    two_users(home)
    rt, world, now = home.rt, home.world, home.clock.now()
    before = digests(home)
    hits = shown(home.user().search("bees", as_of=now))
    assert rt.checkpoint("存档 1", world) == 2
    home.clock.advance(DAY)
    home.user().remember("Ana sold the bees.", replaces="m1")
    home.user("小明").delete("m1")
    home.user("new").remember("Hello.")
    assert rt.checkpoint("later", world) == 3
    later = digests(home)
    assert [(t.tag, t.made_at) for t in rt.checkpoints(world)] == [
        ("存档 1", START),
        ("later", START + DAY),
    ]
    assert rt.rewind("存档 1", world) == 2
    assert digests(home) == before
    assert shown(home.user().search("bees", as_of=now)) == hits
    assert home.user("new").digest() == ""
    home.user().remember("Another branch.")
    assert rt.rewind("later", world) == 3  # later tags stay loadable
    assert digests(home) == later
    assert rt.rewind("存档 1", world) == 2
    assert digests(home) == before
    home.user("new").remember("Hello again.")
    assert home.user("new").stats().memories == 1


def test_writing_goes_on_after_a_rewind(home: Home) -> None:
    two_users(home)
    home.rt.checkpoint("a", home.world)
    for i in range(5):
        home.user().remember(f"Try {i}.")
        assert home.user().list().total == 2
        home.rt.rewind("a", home.world)
        assert home.user().list().total == 1
    assert home.user().remember("At last.").memory_id == "m2"


def test_forks_share_the_past_only(home: Home) -> None:
    two_users(home)
    rt, world, other = home.rt, home.world, f"{home.world} 另一个"
    before = digests(home)
    rt.checkpoint("a", world)
    home.user().remember("Only in the first.")
    assert rt.fork("a", other, world) == 2
    assert digests(home, other) == before
    assert other in rt.worlds()
    mine = digests(home)
    rt.user("ana", other).remember("只在第二个世界。")
    rt.user("ana", other).add("I keep wasps.", wait=True)
    rt.user("eve", other).remember("I am new.")
    assert digests(home) == mine
    assert home.user().search("wasps", types="message") == []
    assert "eve" not in rt.users(world)
    texts = {hit.text for hit in rt.user("ana", other).search("Only in the first.")}
    assert texts
    assert "Only in the first." not in texts
    rt.user("ana", other).forget()
    assert digests(home) == mine
    with pytest.raises(errors.CheckpointExistsError):
        rt.fork("a", other, world)
    with pytest.raises(errors.CheckpointExistsError):
        rt.fork("a", world, world)


def test_unknown_and_taken_tags(home: Home) -> None:
    rt, world = home.rt, home.world
    two_users(home)
    rt.checkpoint("a", world)
    with pytest.raises(errors.CheckpointExistsError):
        rt.checkpoint("a", world)
    with pytest.raises(errors.UnknownCheckpointError, match="it has: a"):
        rt.rewind("b", world)
    with pytest.raises(errors.UnknownCheckpointError):
        rt.fork("b", "elsewhere", world)
    with pytest.raises(errors.UnknownCheckpointError):
        rt.drop_checkpoint("b", world)
    rt.drop_checkpoint("a", world)
    assert rt.checkpoints(world) == []
    with pytest.raises(errors.UnknownCheckpointError):
        rt.rewind("a", world)
    rt.checkpoint("a", world)
    assert rt.rewind("a", world) == 2
    assert rt.checkpoint("empty", f"{world} of nobody") == 0


def test_the_outcome_of_work_begun_before_a_rewind_is_discarded(runtime_factory: Factory) -> None:
    gate = Gate()
    rt = runtime_factory(extractor=gate)
    ana = rt.user("ana")
    ana.remember("Before.")
    rt.checkpoint("a")
    digest = ana.digest()
    ana.add("Said after the checkpoint.")
    assert gate.entered.wait(30)
    rt.rewind("a")
    gate.go.set()
    rt.drain(30)
    assert rt.ingestor.counts.stale == 1
    assert ana.digest() == digest
    assert ana.add("Said once more.", wait=True).ids == ["t1"]
    assert ana.stats().memories == 2


def test_pending_turns_come_back_with_a_rewind(runtime_factory: Factory) -> None:
    rt = runtime_factory(background=False)
    ana = rt.user("ana")
    ana.add("I live in Oslo.")
    rt.checkpoint("a")
    rt.drain()
    assert ana.stats().pending == 0
    done = ana.digest()
    rt.rewind("a")
    assert ana.stats().pending == 1
    rt.fork("a", "b")
    rt.drain()
    assert ana.digest() == rt.user("ana", "b").digest() == done


def test_a_request_of_before_a_rewind_is_not_answered_from_memory(home: Home) -> None:
    two_users(home)
    home.rt.checkpoint("a", home.world)
    home.user().remember("Once.", request_id="r")
    home.rt.rewind("a", home.world)
    with pytest.raises(errors.StaleGenerationError, match="request 'r'"):
        home.user().remember("Once.", request_id="r")


def test_slots_are_taken_one_at_a_time(home: Home) -> None:
    two_users(home)
    made: list[int] = []
    failed: list[BaseException] = []

    def save(i: int) -> None:
        try:
            made.append(home.rt.checkpoint(f"tag {i}", home.world))
            home.rt.user("ana", f"{home.world} {i}").remember("A new world.")
        except BaseException as exc:  # noqa: BLE001 (shown by the assertion)
            failed.append(exc)

    threads = [threading.Thread(target=save, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert made == [2] * 8
    assert len(home.rt.checkpoints(home.world)) == 8


def test_a_checkpoint_is_one_cut_through_all_users(home: Home) -> None:
    """A writer gives each user the same number of memories, one after the other."""
    users = [f"u{i}" for i in range(6)]
    stop = threading.Event()

    def rounds() -> None:
        for i in range(100):
            for user in users:
                home.user(user).remember(f"round {i}")
            if stop.is_set():
                return

    home.rt.remember_many({u: ["round x"] for u in users}, world=home.world)
    thread = threading.Thread(target=rounds)
    thread.start()
    for i in range(3):
        home.rt.checkpoint(f"cut {i}", home.world)
    stop.set()
    thread.join(60)
    for i in range(3):
        home.rt.rewind(f"cut {i}", home.world)
        counts = [home.user(u).list().total for u in users]
        assert sorted(counts, reverse=True) == counts
        assert counts[0] - counts[-1] <= 1


def test_a_tag_of_before_a_migration_can_be_migrated(runtime_factory: Factory) -> None:
    rt = runtime_factory()
    ana = rt.user("ana")
    ana.remember("Ana keeps bees.")
    rt.checkpoint("a")
    rt.reembed(embedder=HashEmbedder(2 * DIM))
    rt.rewind("a")
    with pytest.raises(errors.EmbedderMismatchError, match="reembed"):
        ana.search("bees")
    with pytest.raises(errors.EmbedderMismatchError, match="reembed"):
        ana.remember("More.")
    rt.reembed(embedder=HashEmbedder(2 * DIM))
    assert ana.search("bees")[0].id == "m1"
