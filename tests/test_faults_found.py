"""Faults that a review found, each with the situation that showed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import PARTITIONS, Factory, routed, vector

import reverie
from reverie import Runtime, errors
from reverie.actors import commands as c, erasure
from reverie.actors.residents import ShardSettings, open_partitions
from reverie.actors.shard import Shard
from reverie.memory_graph.drafts import MemoryDraft
from reverie.memory_graph.ids import Key, partition_of
from reverie.memory_graph.store import Partition, Transaction
from reverie.memory_graph.store.sqlite import Database

USERS = [f"user {i}" for i in range(9)]


@pytest.fixture
def factory(tmp_path: Path) -> Factory:
    return Factory(tmp_path, None)


def saved(factory: Factory) -> Runtime:
    """Open a runtime with users in all partitions and the checkpoint "a"."""
    rt = factory()
    rt.remember_many({u: ["Before. 以前。"] for u in USERS})
    rt.checkpoint("a")
    return rt


def broken(*_args: object, **_kwargs: object) -> Any:
    msg = "planted"
    raise errors.StorageFullError(msg)


def nth_fails(patch: pytest.MonkeyPatch, step: str, nth: int, error: BaseException) -> None:
    """Make the `nth` call of a step of save slots raise, once."""
    done, calls = getattr(Transaction, step), 0

    def fail(txn: Transaction, *args: Any, **kwargs: Any) -> object:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise error
        return done(txn, *args, **kwargs)

    patch.setattr(Transaction, step, fail)


# -- save slots -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [errors.StorageFullError("planted"), KeyboardInterrupt()])
def test_a_fork_that_fails_leaves_nothing(
    factory: Factory, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    rt = saved(factory)
    nth_fails(monkeypatch, "import_user", 5, error)
    with pytest.raises(type(error)):
        rt.fork("a", "b")
    assert rt.users("b") == []
    assert rt.worlds() == ["default"]
    assert rt.check() == []
    assert rt.fork("a", "b") == len(USERS)
    assert rt.users("b") == USERS
    factory.finish()


def test_a_fork_into_what_somebody_writes_meanwhile(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = saved(factory)
    export = Partition.export_pin
    written: list[str] = []

    def meanwhile(partition: Partition, world: str, tag: str, after: str = "") -> Any:
        if not written:
            other = next(p for p in rt._router.backend.shard.partitions.values())  # type: ignore[attr-defined]
            here = [u for u in USERS if partition_of(Key("b", u), PARTITIONS) == 0]
            written.append(here[0])
            with other.write() as txn:
                txn.append(Key("b", here[0]), [b"\x80"])
        return export(partition, world, tag, after)

    monkeypatch.setattr(Partition, "export_pin", meanwhile)
    with pytest.raises(errors.CheckpointExistsError):
        rt.fork("a", "b")
    assert rt.users("b") == written  # theirs stays
    rt.close()
    with reverie.open(factory.folder / "data") as again:
        assert again.user(written[0], "b").forget().erased.existed
        assert again.users("b") == []
    factory.finish()


def test_a_damaged_checkpoint_keeps_nothing_from_working(factory: Factory) -> None:
    rt = saved(factory)
    number = partition_of(Key("default", USERS[0]), PARTITIONS)
    partition = rt._router.backend.shard.partitions[number]  # type: ignore[attr-defined]
    partition._db.rows(
        "UPDATE journal SET payload = x'00' WHERE uid = (SELECT uid FROM users WHERE user_id = ?)",
        (USERS[0],),
    )
    with pytest.raises(errors.JournalDamagedError):
        rt.fork("a", "b")
    rt.close()
    rt = factory()
    assert rt.users("b") == []
    rt.user(USERS[0]).forget()
    assert rt.fork("a", "b") == len(USERS) - 1
    factory.finish()


def test_a_fork_that_cannot_be_undone_now_is_so_later(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = saved(factory)
    with monkeypatch.context() as patch:
        nth_fails(patch, "import_user", 5, errors.StorageFullError("planted"))
        patch.setattr(Transaction, "erase_imported", broken)
        with pytest.raises(errors.StorageFullError):
            rt.fork("a", "b")
        assert [line for line in rt.check() if line.startswith("unfinished unfork of world")]
        with pytest.raises(errors.StorageFullError):
            rt.fork("a", "b")
        rt.remember_many({"x": ["Elsewhere."]}, world="other")
        assert rt.checkpoint("elsewhere", "other") == 1  # other worlds are not held up
        gone = rt.users("b")[0]
        rt.user(gone, "b").forget()
        rt.close()
        rt = factory()  # opens all the same
        assert rt.check()
    rt.checkpoint("c")
    assert rt.users("b") == []
    assert rt.check() == []
    factory.finish()


def test_a_forgotten_user_of_a_failed_fork_does_not_come_back(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the intent to undo it could be noted, for want of space."""
    rt = saved(factory)
    catalog = rt._folder.catalog
    with monkeypatch.context() as patch:
        nth_fails(patch, "import_user", 5, errors.StorageFullError("planted"))
        patch.setattr(catalog, "finish_intent", broken)
        with pytest.raises(errors.StorageFullError):
            rt.fork("a", "b")
    there = rt.users("b")
    assert there
    rt.user(there[0], "b").forget()
    rt.checkpoint("c")
    assert rt.users("b") == []
    factory.finish()


@pytest.mark.parametrize("kind", ["rewind", "checkpoint", "fork"])
def test_the_folder_opens_whatever_was_interrupted(
    factory: Factory, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As after kill -9: the intent is there, and nothing can be done about it."""
    rt = saved(factory)
    payload = {"world": "default", "tag": "b" if kind == "checkpoint" else "a", "at": 1.0}
    data = msgspec.msgpack.encode({**payload, "new_world": "b" if kind == "fork" else ""})
    rt._folder.catalog.begin_intent("op", kind, data)
    rt.close()
    with monkeypatch.context() as patch:
        for step in ("rewind", "pin", "unpin", "import_user", "erase_imported"):
            patch.setattr(Transaction, step, broken)
        rt = factory()
        assert any(line.startswith("unfinished ") and "planted" in line for line in rt.check())
        assert rt.user(USERS[0]).forget().erased.existed
        rt.close()
    rt = factory()
    assert rt.check() == []
    assert [t.tag for t in rt.checkpoints()] == ["a"]
    assert rt.users("b") == []
    factory.finish()


def test_an_interrupted_checkpoint_is_undone(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = saved(factory)
    nth_fails(monkeypatch, "pin", 3, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        rt.checkpoint("b")
    assert [t.tag for t in rt.checkpoints()] == ["a"]
    assert rt._folder.catalog.unfinished() == []
    assert rt.checkpoint("b") == len(USERS)
    factory.finish()


def test_an_interrupt_while_the_intent_is_synced(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = saved(factory)
    catalog = rt._folder.catalog
    begin = catalog.begin_intent

    def interrupted(*intent: Any) -> None:
        monkeypatch.undo()
        begin(*intent)
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog, "begin_intent", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rt.checkpoint("b")
    assert catalog.unfinished() == []
    rt.checkpoint("c")
    assert [t.tag for t in rt.checkpoints()] == ["a", "c"]
    factory.finish()


# -- partitions that fail ---------------------------------------------------------------


def remember(user_id: str, text: str = "Bees.") -> c.Remember:
    draft = MemoryDraft(text, vector=vector(text))
    return c.Remember(world="w", user_id=user_id, at=1.0, draft=draft, embedder="e", dim=32)


OF_ALL: dict[str, Callable[[], Any]] = {
    "users": c.ListUsers,
    "pending": c.ListPending,
    "quarantined": lambda: c.ListPending(quarantined=True),
    "pin": lambda: c.Slot("pin", "w", "b", "op 2"),
    "rewind": lambda: c.Slot("rewind", "w", "a", "op 3"),
    "export": lambda: c.ExportSlot("w", "a"),
    "check": c.CheckShard,
    "scrub": lambda: c.Scrub(0, "00"),
    "flush": lambda: c.Flush(snapshot=True),
}


@pytest.mark.parametrize("how", ["broken", "marked"])
@pytest.mark.parametrize("name", OF_ALL)
def test_commands_without_a_user_reopen_a_failed_partition(
    tmp_path: Path, name: str, how: str
) -> None:
    with routed(tmp_path, 1) as router:
        shard: Shard = router.backend.shards[0]  # type: ignore[attr-defined]
        shard.execute([remember(u) for u in USERS])
        shard.execute([c.Slot("pin", "w", "a", "op 1")])
        before = shard.partitions[0]
        if how == "broken":
            before._db._break("planted")
        else:
            shard.residents.failed.add(0)
        (answer,) = shard.execute([OF_ALL[name]()])
        assert not isinstance(answer, Exception), answer
        if name == "check":
            assert answer == []
        assert shard.partitions[0] is not before
        assert shard.residents.failed == set()


@pytest.mark.parametrize("name", ["users", "pending", "pin", "export", "scrub"])
def test_a_failure_there_marks_the_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with routed(tmp_path, 1) as router:
        shard: Shard = router.backend.shards[0]  # type: ignore[attr-defined]
        shard.execute([remember(u) for u in USERS])
        shard.execute([c.Slot("pin", "w", "a", "op 1")])

        def fail(*_args: object, **_kwargs: object) -> Any:
            msg = "planted"
            raise errors.StorageFailedError(msg)

        with monkeypatch.context() as patch:
            for step in ("worlds", "pending", "write", "export_pin", "scrub"):
                patch.setattr(Partition, step, fail)
            (answer,) = shard.execute([OF_ALL[name]()])
        assert isinstance(answer, errors.StorageFailedError)
        assert shard.residents.failed == {0}
        (answer,) = shard.execute([OF_ALL[name]()])
        assert not isinstance(answer, Exception)
        assert shard.residents.failed == set()


@pytest.mark.parametrize("step", ["flush_touches", "snapshot"])
def test_a_failure_that_costs_no_answer_marks_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with routed(tmp_path, 1) as router:
        shard: Shard = router.backend.shards[0]  # type: ignore[attr-defined]
        shard.execute([remember("ana")])
        key, residents = Key("w", "ana"), shard.residents
        shard.execute([c.Search(world="w", user_id="ana", now=2.0, text="bees")])
        number = residents.number(key)

        def fail(*_args: object) -> Any:
            msg = "planted"
            raise errors.StorageFailedError(msg)

        with monkeypatch.context() as patch:
            patch.setattr(Partition, "write", fail)
            getattr(residents, step)(residents.partition(number), [key])
        assert residents.failed == {number}
        assert residents.peek(key) is None
        assert shard.execute([remember("ana", "Wasps.")])[0].op == "ADD"


@pytest.mark.ray
def test_an_actor_tries_again_to_open_its_partitions(tmp_path: Path) -> None:
    from reverie.actors.ray_backend import ShardActor, _decoded

    (tmp_path / "partitions").mkdir()
    (tmp_path / "indices").mkdir()
    for partition in open_partitions(tmp_path, [0, 1], "test").values():  # as the client does
        partition.close()
    bad = tmp_path / "partitions" / "p0000.db"
    good = bad.read_bytes()
    bad.write_bytes(b"no database" * 1000)
    settings = msgspec.msgpack.encode(ShardSettings())
    actor = ShardActor(str(tmp_path), [0, 1], 2, settings, "test")
    batch: list[c.AnyCommand] = [c.Flush(), c.ListUsers()]

    def ask() -> list[Any]:
        return _decoded(actor.execute(msgspec.msgpack.encode(batch)), batch)

    for _ in range(2):  # only the users of the bad one are refused
        assert [type(answer) for answer in ask()] == [c.ShardStats, errors.DataFolderError]
    bad.write_bytes(good)
    stats, users = ask()
    assert stats.partitions == [0, 1]
    assert users == []
    actor.stop()


# -- erasure ----------------------------------------------------------------------------


def test_a_receipt_for_nobody_is_not_clean(factory: Factory) -> None:
    rt = factory()
    rt.user("somebody").remember("Somebody keeps bees.")
    assert rt.user("somebody").forget().clean
    receipt = rt.user("somebody").forget()  # also what Ray answers to a repeated call
    assert (receipt.clean, receipt.erased.existed) == (False, False)
    factory.finish()


def test_looking_into_a_partition_writes_nothing(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = factory()
    rt.user("ana").remember("The bees are in the garden.")
    paths = sorted((factory.folder / "data" / "partitions").glob("*.db"))
    monkeypatch.setattr(Database, "write", broken)
    held = [Partition.rows_hold(path, b"bees are in") for path in paths]
    assert held.count(True) == 1
    assert not any(Partition.rows_hold(path, b"wasps") for path in paths)
    monkeypatch.undo()
    assert rt.check() == []
    factory.finish()


def test_looking_works_while_its_owner_writes(factory: Factory) -> None:
    rt = factory()
    rt.user("ana").remember("The bees are in the garden.")
    number = partition_of(Key("default", "ana"), PARTITIONS)
    partition = rt._router.backend.shard.partitions[number]  # type: ignore[attr-defined]
    with partition.write():
        assert Partition.rows_hold(partition.path, b"bees are in")
    factory.finish()


def test_a_partition_that_cannot_be_read_does_not_take_the_receipt(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt = factory()
    for user in ("ana", "bo"):
        rt.user(user).remember("Both saw the dragon of Dale.")

    def busy(*_args: object) -> bool:
        msg = "planted"
        raise errors.OverloadedError(msg)

    monkeypatch.setattr(Partition, "rows_hold", busy)
    receipt = rt.user("ana").forget()
    assert receipt.erased.existed
    assert not receipt.clean
    assert receipt.erased.found
    assert receipt.erased.shared == 0
    assert rt.users() == ["bo"]
    factory.finish()


def test_files_may_vanish_while_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"123")
    real = Path.is_file

    def vanish(path: Path) -> bool:
        found = real(path)
        if path.name == "a":
            path.unlink()
        return found

    monkeypatch.setattr(Path, "is_file", vanish)
    assert erasure.file_sizes(tmp_path) == [3]
