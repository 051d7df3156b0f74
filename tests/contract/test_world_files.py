"""A world in one file: out of one folder, into another, the same in every digest, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support import DAY, DIM, START, Factory, Gate, Home, Sentences

import reverie
from reverie import Runtime, SimulatedClock, errors
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import OutboxTurn, Transaction, UserImage, world_file
from reverie.models.standin import HashEmbedder
from reverie.slots import HELD, SlotPlan, Slots, _intent

NAMES = ("ana", "李娜", "../../etc/passwd", "x" * 512, "a/b\\c:%00*")


def peopled(rt: Runtime, world: str = "town") -> dict[str, str]:
    """Fill a world with some of everything; return the digests."""
    for i, name in enumerate(NAMES):
        user = rt.user(name, world)
        user.add([f"I am number {i}.", "我住在上海。"], wait=True)
        user.remember(f"Bees {i}. 蜜蜂。", tags=["t"], metadata={"n": i})
        user.remember("Wasps.", replaces=user.remember("Hornets.").memory_id)
        user.relate("Ana", "knows", "李娜")
        user.search("bees")
        if i % 2:
            rt.flush()  # these have a snapshot
            user.remember("After the snapshot.")
    return digests(rt, world)


def digests(rt: Runtime, world: str) -> dict[str, str]:
    return {name: rt.user(name, world).digest() for name in rt.users(world)}


def tags_of(rt: Runtime, world: str) -> list[str]:
    """Return the tags in the files of an inline runtime."""
    parts = rt._router.backend.shard.partitions.values()  # type: ignore[attr-defined]
    return [tag for partition in parts for tag in partition.tags(world)]


# -- there and back ----------------------------------------------------------------------


def test_a_world_is_the_same_in_another_folder(home: Home, tmp_path: Path) -> None:
    world = home.rt.world(home.world)
    before = peopled(home.rt, home.world)
    home.clock.advance(DAY)
    seen: list[tuple[int, int]] = []
    path = tmp_path / "save.rvw"
    assert world.export(path, progress=lambda done, of: seen.append((done, of))) == len(NAMES)
    assert seen == [(i, len(NAMES)) for i in range(1, len(NAMES) + 1)]
    assert [p.name for p in tmp_path.glob("*rvw*")] == ["save.rvw"]
    assert path.stat().st_mode & 0o077 == 0
    assert world.checkpoints() == []
    for partitions in (1, 7):
        other = reverie.open(
            tmp_path / f"p{partitions}",
            partitions=partitions,
            embedder=HashEmbedder(DIM),
            clock=home.clock,
            background=False,
        )
        with other as rt:
            there = rt.import_world(path, progress=lambda done, of: seen.append((done, of)))
            assert there.name == home.world
            assert digests(rt, home.world) == before
            assert rt.check() == []
            again = rt.import_world(path, "again")
            assert digests(rt, "again") == before
            assert again.user("ana").search("bees")[0].text == "Bees 0. 蜜蜂。"
            again.user("ana").remember("Only here.")
            assert digests(rt, home.world) == before
            assert again.export(tmp_path / "again.rvw") == len(NAMES)
            assert rt.worlds() == sorted({"again", home.world})
    copy = home.rt.import_world(tmp_path / "again.rvw", f"{home.world} copy")
    assert copy.user("ana").search("Only here.", limit=1)[0].text == "Only here."
    assert digests(home.rt, home.world) == before


def test_a_tag_is_exported_as_it_was(home: Home, tmp_path: Path) -> None:
    world = home.rt.world(home.world)
    before = peopled(home.rt, home.world)
    world.checkpoint("day 1")
    world.user("ana").remember("Later.")
    world.user("new").remember("Later.")
    assert world.export(tmp_path / "f", "day 1") == len(NAMES)
    there = home.rt.import_world(tmp_path / "f", f"{home.world} 2")
    assert digests(home.rt, there.name) == before
    with pytest.raises(errors.UnknownCheckpointError, match="it has: day 1"):
        world.export(tmp_path / "g", "day 2")
    with pytest.raises(errors.InvalidValueError, match="no world"):
        home.rt.world("nowhere").export(tmp_path / "g")
    with pytest.raises(errors.CheckpointExistsError):
        home.rt.import_world(tmp_path / "f")
    with pytest.raises(errors.InvalidIdError):
        home.rt.import_world(tmp_path / "f", "")


def test_waiting_turns_travel_and_work_under_way_stays(
    runtime_factory: Factory, tmp_path: Path
) -> None:
    gate = Gate()
    rt = runtime_factory(extractor=gate)
    ana = rt.user("ana")
    ana.remember("Before.")
    ana.add("Ana is in Oslo.")
    assert gate.entered.wait(30)
    rt.world().export(tmp_path / "f")
    there = rt.import_world(tmp_path / "f", "there")
    assert there.user("ana").stats().pending == 1
    gate.go.set()
    rt.drain(60)
    assert ana.digest() == there.user("ana").digest()
    assert ana.stats().memories == there.user("ana").stats().memories == 2
    # The outcome that was under way went to the world that it was begun in, and only once.
    assert rt.ingestor.counts.turns == 2
    assert rt.ingestor.counts.stale == 0


def test_quarantined_turns_travel(runtime_factory: Factory, tmp_path: Path) -> None:
    rt = runtime_factory(extractor=Sentences(), background=False)
    rt.user("ana").add(["boom!", "Fine."], wait=True)
    rt.world().export(tmp_path / "f")
    rt.import_world(tmp_path / "f", "there")
    (here, there) = rt.quarantined()
    assert (here.turn_ids, here.errors) == (there.turn_ids, there.errors)


def test_a_world_of_relations_only_has_no_embedder_yet(home: Home, tmp_path: Path) -> None:
    world = home.rt.world(home.world)
    world.user("ana").relate("Ana", "knows", "Bo")
    world.export(tmp_path / "f")
    with reverie.open(tmp_path / "d", embedder=HashEmbedder(8), background=False) as rt:
        there = rt.import_world(tmp_path / "f", "there")
        assert there.user("ana").digest() == world.user("ana").digest()
        there.user("ana").remember("Now it has one.")


def test_clocks_of_imported_and_forked_worlds(runtime_factory: Factory, tmp_path: Path) -> None:
    rt = runtime_factory(background=False)
    town = rt.world("town", clock=SimulatedClock(5.0))
    town.user("ana").add("Ana is in Oslo.")
    town.checkpoint("a")
    town.export(tmp_path / "f")
    town.fork("a", "fork")
    there = rt.import_world(tmp_path / "f", "there", clock=SimulatedClock(-7.0))
    rt.drain()
    assert rt.world("fork").now() == town.now() == 5.0
    assert {m.recorded_at for m in there.user("ana").list().items} == {-7.0}
    assert {m.recorded_at for m in rt.user("ana", "fork").list().items} == {5.0}
    with pytest.raises(errors.CheckpointExistsError):
        rt.import_world(tmp_path / "f", "town", clock=SimulatedClock(99.0))
    assert town.now() == 5.0


# -- what is refused -----------------------------------------------------------------------


def test_vectors_of_another_embedder_are_refused(home: Home, tmp_path: Path) -> None:
    peopled(home.rt, home.world)
    home.rt.world(home.world).export(tmp_path / "f")
    with reverie.open(tmp_path / "d", embedder=HashEmbedder(8), background=False) as rt:
        with pytest.raises(errors.EmbedderMismatchError, match="standin:32") as caught:
            rt.import_world(tmp_path / "f", "there")
        assert "embedder=" in caught.value.message
        assert rt.worlds() == []


def test_masked_and_other_worlds_do_not_mix(tmp_path: Path) -> None:
    key = reverie.new_mask_key()
    masked: dict[str, Any] = {"mask": ("person",), "mask_key": key}
    plain: dict[str, Any] = {"embedder": HashEmbedder(DIM), "background": False}
    with reverie.open(tmp_path / "m", **plain, **masked) as rt:
        ana = rt.user("ana")
        ana.remember("My sister is Ines Moreau.", entities=[("Ines Moreau", "person")])
        text = ana.list().items[0].text
        assert "Ines" not in text
        rt.world().export(tmp_path / "f")
        there = rt.import_world(tmp_path / "f", "there")
        bo = there.user("bo")
        bo.remember("Oyelaran is here.", entities=[("Oyelaran", "person")])
        number = bo.list().items[0].text
        # A number that stands in the texts of the file is given to nobody else.
        assert number.split()[0] not in text
        assert there.user("ana").unmask(text) == text
    assert b"Ines" not in (tmp_path / "f").read_bytes()
    with reverie.open(tmp_path / "p", **plain) as rt:
        with pytest.raises(errors.ConfigError, match="person is masked"):
            rt.import_world(tmp_path / "f", "there")
        rt.user("ana").remember("Ines Moreau.")
        rt.world().export(tmp_path / "g")
    with (
        reverie.open(tmp_path / "m", **plain, **masked) as rt,
        pytest.raises(errors.ConfigError, match="nothing is masked"),
    ):
        rt.import_world(tmp_path / "g", "other")
    with (
        reverie.open(tmp_path / "m", **plain) as rt,
        pytest.raises(errors.MaskKeyMissingError),
    ):
        rt.import_world(tmp_path / "f", "other")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, str]]:
    """A small world file, and the digests of its users."""
    folder = tmp_path_factory.mktemp("small")
    with reverie.open(
        folder / "d", embedder=HashEmbedder(8), background=False, clock=SimulatedClock(START)
    ) as rt:
        rt.user("ana", "w").remember("Bees. 蜜蜂。")
        rt.user("bo", "w").add("I live in Oslo.")
        rt.world("w").export(folder / "f")
        return (folder / "f").read_bytes(), digests(rt, "w")


@pytest.fixture
def target(tmp_path: Path) -> Any:
    with reverie.open(
        tmp_path / "t", embedder=HashEmbedder(8), background=False, partitions=3
    ) as rt:
        yield rt
        assert rt.check() == []


def refused(rt: Runtime, path: Path, data: bytes, kind: type[Exception]) -> str:
    path.write_bytes(data)
    with pytest.raises(kind) as caught:
        rt.import_world(path)
    assert type(caught.value) is kind, caught.value
    assert rt.worlds() == []
    return str(caught.value)


def test_every_flipped_byte_and_every_cut_is_noticed(
    small: tuple[bytes, dict[str, str]], target: Runtime, tmp_path: Path
) -> None:
    data, before = small
    path = tmp_path / "f"
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
        for wrong in (flipped, data[:at]):
            path.write_bytes(wrong)
            with pytest.raises(errors.WorldFileError):
                target.import_world(path)
    assert target.worlds() == []
    for more in (b"\0", data):
        refused(target, path, data + more, errors.WorldFileError)
        with pytest.raises(errors.WorldFileError), world_file.reading(path):
            pass
    path.write_bytes(data)
    target.import_world(path)
    assert digests(target, "w") == before


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=40), st.integers(0, 40))))
def test_spliced_files_are_refused_or_the_same(
    small: tuple[bytes, dict[str, str]], edits: list[tuple[float, bytes, int]], tmp_path: Path
) -> None:
    data = small[0]
    for share, new, gone in edits:
        at = int(share * len(data))
        data = data[:at] + new + data[at + gone :]
    path = tmp_path / "f"
    path.write_bytes(data)
    if data == small[0]:
        return
    with pytest.raises(errors.WorldFileError), world_file.reading(path):
        pass


def test_other_files_are_refused(target: Runtime, tmp_path: Path) -> None:
    for data in (b"", b"\x89", b"PK\x03\x04", b"{}", b"\0" * 100_000, world_file.MAGIC):
        refused(target, tmp_path / "f", data, errors.WorldFileError)
    with pytest.raises(errors.StorageError):
        target.import_world(tmp_path / "none")
    with pytest.raises(errors.StorageError):
        target.import_world(tmp_path)


HEAD = world_file.FileHead(
    format=1, written_by="0", world="w", tag=None, made_at=0.0, embedder="standin:8:1", dim=8
)


def made_up(path: Path, head: Any, *users: bytes, count: int | None = None) -> None:
    """Write a file that verifies, whatever is in it."""
    with path.open("wb") as file:
        writer = world_file.WorldFileWriter(file, head)
        for user in users:
            writer.user(user)
        if count is not None:
            writer.users = count
        writer.end()


def user_of(data: bytes, path: Path, name: str) -> world_file.FileUser:
    path.write_bytes(data)
    with world_file.reading(path) as file:
        return next(user for user in file.images() if user.image.key.user_id == name)


CHANGES: dict[str, Callable[[UserImage], UserImage]] = {
    "no id": lambda i: msgspec.structs.replace(i, key=Key("w", "")),
    "a gap": lambda i: msgspec.structs.replace(i, tail=i.tail[1:]),
    "past its end": lambda i: msgspec.structs.replace(i, seq=i.seq + 1),
    "a huge seq": lambda i: msgspec.structs.replace(i, seq=2**63, snapshot_seq=2**63 - 1, tail=[]),
    "no event": lambda i: msgspec.structs.replace(i, tail=[(1, b"\xc1"), *i.tail[1:]]),
    "no snapshot": lambda i: msgspec.structs.replace(
        i, snapshot=b"\x80", snapshot_seq=i.seq, tail=[]
    ),
    "another event": lambda i: msgspec.structs.replace(i, tail=i.tail[:-1], seq=i.seq - 1),
    "another turn": lambda i: msgspec.structs.replace(i, pending=[OutboxTurn("t9")]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["ana", "bo"])
def test_made_up_users_are_refused(
    small: tuple[bytes, dict[str, str]], target: Runtime, tmp_path: Path, change: str, name: str
) -> None:
    path = tmp_path / "f"
    good = user_of(small[0], path, "ana" if name == "bo" else "bo")
    user = user_of(small[0], path, name)
    bad = msgspec.structs.replace(user, image=CHANGES[change](user.image))
    made_up(path, HEAD, msgspec.msgpack.encode(good), msgspec.msgpack.encode(bad))
    kind = errors.InvalidIdError if change == "no id" else errors.WorldFileError
    refused(target, path, path.read_bytes(), kind)
    made_up(path, HEAD, msgspec.msgpack.encode(good))
    assert len(target.import_world(path).users()) == 1


def test_made_up_heads_are_refused(
    small: tuple[bytes, dict[str, str]], target: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    user = msgspec.msgpack.encode(user_of(small[0], path, "ana"))
    newer = {"format": 2, "written_by": "9.9", "what": ["is", "this"]}
    made_up(path, newer, user)
    assert "newer version of reverie (9.9)" in refused(
        target, path, path.read_bytes(), errors.WorldFileError
    )
    heads: tuple[Any, ...] = ({"format": 1}, {"format": "1"}, [], None)
    for head in heads:
        made_up(path, head, user)
        refused(target, path, path.read_bytes(), errors.WorldFileError)
    made_up(path, HEAD, user, count=2)
    refused(target, path, path.read_bytes(), errors.WorldFileError)
    made_up(path, HEAD, user, user)
    refused(target, path, path.read_bytes(), errors.WorldFileError)
    # The name of a model is a word, never a path that is opened.
    for spec in ("/etc/passwd", "../../x.gguf", "object", "auto"):
        made_up(path, msgspec.structs.replace(HEAD, spec=spec), user)
        target.import_world(path, f"w {spec}").user("ana").search("bees")
    made_up(path, msgspec.structs.replace(HEAD, world="bad\x00name"), user)
    with pytest.raises(errors.InvalidIdError):
        target.import_world(path)


# -- all or nothing --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [errors.StorageFullError("planted"), KeyboardInterrupt()])
def test_an_import_that_fails_leaves_nothing(
    home: Home,
    backend: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    before = peopled(home.rt, home.world)
    home.rt.world(home.world).export(tmp_path / "f")
    name, rt = f"{home.world} 2", home.rt
    calls = 0

    def progress(_done: int, _of: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise error

    with pytest.raises(type(error)):
        rt.import_world(tmp_path / "f", name, progress=progress)
    assert rt.users(name) == []
    assert name not in rt.worlds()
    if backend == "inline":
        with monkeypatch.context() as patch:
            done, count = Transaction.import_user, 0

            def fail(txn: Transaction, *args: Any, **kwargs: Any) -> bool:
                nonlocal count
                count += 1
                if count == 3:
                    raise error
                return done(txn, *args, **kwargs)

            patch.setattr(Transaction, "import_user", fail)
            with pytest.raises(type(error)):
                rt.import_world(tmp_path / "f", name)
        assert rt.users(name) == []
    assert rt.check() == []
    rt.import_world(tmp_path / "f", name)
    assert digests(rt, name) == before


def test_an_import_or_export_that_was_killed_is_undone_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(background=False)
    before = peopled(rt, "w")
    rt.world("w").export(tmp_path / "f")
    with monkeypatch.context() as patch:
        patch.setattr(Slots, "_give_up", lambda *_: None)  # as if there had been no time for it
        done = Transaction.import_user

        calls = 0

        def killed(txn: Transaction, *args: Any, **kwargs: Any) -> bool:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise KeyboardInterrupt
            return done(txn, *args, **kwargs)

        patch.setattr(Transaction, "import_user", killed)
        patch.setattr("reverie.slots.MAX_BULK", 1)
        with pytest.raises(KeyboardInterrupt):
            rt.import_world(tmp_path / "f", "copy")
    assert len(rt.users("copy")) == 2
    held = _intent("hold", SlotPlan("w", f"{HELD}op", 0.0), "op")
    rt._slots._catalog.begin_intent(*held)
    rt._slots._checkpoint(SlotPlan("w", f"{HELD}op", 0.0), "op")
    assert f"{HELD}op" in tags_of(rt, "w")
    rt.close()
    rt = factory(background=False)
    assert rt.worlds() == ["w"]
    assert tags_of(rt, "w") == []
    assert digests(rt, "w") == before
    assert rt.check() == []
    factory.finish()


def test_an_export_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(background=False)
    peopled(rt, "w")
    path = tmp_path / "f"
    rt.world("w").export(path)
    old = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(errors.StorageFullError):
            rt.world("w").export(path)

    def interrupt(done: int, _of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rt.world("w").export(path, progress=interrupt)
    with pytest.raises(errors.StorageError):
        rt.world("w").export(tmp_path)
    with pytest.raises(errors.StorageError):
        rt.world("w").export(tmp_path / "none" / "f")
    assert path.read_bytes() == old
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "f"]
    assert tags_of(rt, "w") == []
    factory.finish()


def test_an_export_replaces_no_file_but_an_export(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(background=False)
    rt.user("李娜", "w").remember("我住在上海。")
    (tmp_path / "link").symlink_to(rt.path / "partitions")
    (tmp_path / "inner").symlink_to(rt.path / "new")
    before = {p: p.read_bytes() for p in rt.path.rglob("*.db")}
    mine = (
        rt.path / "partitions" / "p0000.db",
        rt.path / "new.zip",
        tmp_path / "none" / ".." / "data" / "new",
        tmp_path / "link" / "p0000.db",
        tmp_path / "inner",
        rt.path,
    )
    for path in mine:
        with pytest.raises(errors.InvalidValueError, match="lies in the data folder"):
            rt.world("w").export(path)
        with pytest.raises(errors.InvalidValueError, match="lies in the data folder"):
            rt.user("李娜", "w").export(path)
        with pytest.raises(errors.InvalidValueError, match="lies in the data folder"):
            rt.backup(path)
    assert {p: p.read_bytes() for p in rt.path.rglob("*.db")} == before
    diary = tmp_path / "日记.txt"
    diary.write_text("昨天下雨。")
    with pytest.raises(errors.InvalidValueError, match=r"日记\.txt is there already"):
        rt.world("w").export(diary)
    assert diary.read_text() == "昨天下雨。"
    (tmp_path / "empty").touch()
    for name in ("empty", "f", "f"):
        assert rt.world("w").export(tmp_path / name) == 1
    with pytest.raises(errors.InvalidValueError, match="path"):
        rt.world("w").export("a\x00b")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(errors.ReverieError):
        rt.world("w").export(tmp_path / "round" / "f")
    factory.finish()


def test_the_end_of_an_export_is_never_taken_for_one_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(background=False)
    rt.user("ana", "w").remember("Bees.")
    slots, found, undo = rt._slots, list[str](), Slots._give_up

    def other_thread(self: Slots, intent: Any) -> None:
        """Take the lock at the moment at which it is given up."""
        thread = threading.Thread(target=lambda: found.append(str(slots.lock.acquire(timeout=0.1))))
        thread.start()
        thread.join()
        undo(self, intent)

    class Under(set[str]):
        def discard(self, operation: object) -> None:
            thread = threading.Thread(target=rt.slots.unfinished, daemon=True)
            thread.start()
            thread.join(0.1)
            found.append(str(thread.is_alive()))
            super().discard(operation)

    monkeypatch.setattr(Slots, "_give_up", other_thread)
    monkeypatch.setattr(slots, "_under_way", Under())
    rt.world("w").export(tmp_path / "f")
    assert found == ["True", "False"]  # it waits from before the mark goes until the pin is gone
    factory.finish()


def test_what_happens_during_an_export_is_not_in_it(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(background=False)
    before = peopled(rt, "w")
    world = rt.world("w")
    world.checkpoint("a")
    gone = ""

    def meanwhile(done: int, _of: int) -> None:
        nonlocal gone
        if done == 1:
            assert rt.check() == []
            for user in world.users():
                world.user(user).remember("Meanwhile.")
            world.checkpoint("b")
            world.rewind("a")
            world.user("new").remember("Meanwhile.")
            if rt.slots is not None:  # one that is not in the file yet
                gone = world.users()[-2]
                world.user(gone).forget()

    path = tmp_path / "f"
    # One user a page, so that later ones are read after all this.
    real = Slots.images
    Slots.images = lambda *a, **k: real(*a, **{**k, "max_bytes": 1})  # type: ignore[method-assign]
    try:
        count = world.export(path, progress=meanwhile)
    finally:
        Slots.images = real  # type: ignore[method-assign]
    assert gone
    there = rt.import_world(path, "there")
    assert len(there.users()) == count >= len(before) - 1
    assert digests(rt, "there").items() <= before.items()
    assert rt.check() == []
    factory.finish()
