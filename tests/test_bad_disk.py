"""Bad folders and bad disks: a typed error each, nothing lost or half-written, and a way on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import DIM, Factory, Guard, opened

import reverie
from reverie import errors
from reverie.memory_graph.store import Transaction
from reverie.models.standin import HashEmbedder


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(errors.DataFolderError):
        reverie.open(tmp_path)
    with pytest.raises(errors.DataFolderError):
        reverie.open(tmp_path / "notes.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_of_another_model(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder=HashEmbedder(2 * DIM)) as rt:
        rt.user("ana").add("I keep bees. 我养蜂。", infer=False)
        digest = rt.user("ana").digest()
    factory = Factory(tmp_path, None)
    rt = factory(background=False)
    ana = rt.user("ana")
    for call in (
        lambda: ana.search("bees"),
        lambda: ana.remember("hi"),
        lambda: ana.add("hi", infer=False),
    ):
        with pytest.raises(errors.EmbedderMismatchError, match=r"rt\.reembed\('default'"):
            call()
    assert ana.digest() == digest
    assert ana.list(types=None).total == 1
    rt.reembed("default", embedder=HashEmbedder(DIM))
    assert ana.search("bees")[0].id == "t1"
    assert ana.remember("More.").op == "ADD"
    factory.finish()


def test_a_waiting_turn_is_not_given_up_for_want_of_its_model(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder=HashEmbedder(2 * DIM), background=False) as rt:
        rt.user("ana").add("I live in Oslo.")
        rt.user("ana").remember("x")
    with opened(tmp_path / "data") as rt:
        for _ in range(3):
            with pytest.raises(errors.EmbedderMismatchError):
                rt.drain(30)
        assert rt.quarantined() == []
        assert rt.user("ana").stats().pending == 1
        rt.reembed("default", embedder=HashEmbedder(DIM))
        rt.drain(30)
        assert rt.user("ana").stats().memories == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB; permissions do not bind root, so read-only is a matter of mounts."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)  # noqa: S607


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)  # noqa: S607


def test_a_read_only_folder(small_disk: Path) -> None:
    with opened(small_disk / "data", partitions=1) as rt:
        guard = Guard(rt)
    remount(small_disk, "ro")
    for name in ("data", "new"):
        with pytest.raises(errors.StorageReadOnlyError):
            reverie.open(small_disk / name)
    remount(small_disk, "rw")
    with opened(small_disk / "data") as rt:
        assert rt.user("ana").digest() == guard.digest


def test_a_full_disk(small_disk: Path) -> None:
    with opened(small_disk / "data", partitions=1) as rt:
        guard = Guard(rt)
        written = 0
        with suppress(errors.StorageFullError):
            for written in range(1000):
                guard.user.remember(f"{written} " + "柏林 Berlin " * 1500)
        assert 3 < written < 999
        assert guard.user.list(limit=1000).total == written + 1
        guard.digest = guard.user.digest()
        for call in (
            lambda: guard.user.remember("x" * 20_000),
            lambda: guard.user.add("x" * 20_000, infer=False),
            lambda: guard.user.update("m1", "x" * 20_000),
            lambda: guard.user.remember("x" * 20_000, request_id="r"),
        ):
            guard.refuses(errors.StorageFullError, call)
        assert guard.user.search("bees")[0].id == "m1"
        remount(small_disk, "size=30m")
        assert guard.user.remember("x" * 20_000, request_id="r").op == "ADD"
        guard.goes_on()
        digest = guard.user.digest()
    with opened(small_disk / "data") as rt:
        assert rt.user("ana").digest() == digest


def test_a_full_file(tmp_path: Path) -> None:
    """The same without a mount: SQLite is told that the file may not grow."""
    with opened(tmp_path / "data", partitions=1) as rt:
        guard = Guard(rt)
        (partition,) = rt._router.backend.shard.partitions.values()  # type: ignore[attr-defined]
        ((pages,),) = partition._db.rows("PRAGMA page_count")
        partition._db.rows(f"PRAGMA max_page_count = {pages + 3}")
        for call in (
            lambda: guard.user.remember("x" * 50_000),
            lambda: guard.user.add(["y" * 50_000, "z"], infer=False),
            lambda: guard.rt.remember_many({"ana": ["a", "y" * 50_000], "bo": ["b"]}),
        ):
            guard.refuses(errors.StorageFullError, call)
        partition._db.rows("PRAGMA max_page_count = 1000000")
        guard.goes_on()


class SecondFails:
    """Makes a step of save slots fail in the second partition that it comes to, `times` times."""

    def __init__(self, patch: pytest.MonkeyPatch, step: str, times: int = 1) -> None:
        done = getattr(Transaction, step)
        self.calls, self.times = 0, times

        def fail(txn: Transaction, *args: Any, **kwargs: Any) -> object:
            self.calls += 1
            if self.calls >= 2 and self.times:
                self.times -= 1
                msg = "planted"
                raise errors.StorageFullError(msg)
            found: object = done(txn, *args, **kwargs)
            return found

        patch.setattr(Transaction, step, fail)


@pytest.mark.parametrize("how", ["open", "reopened"])
def test_a_checkpoint_that_fails_half_way_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    factory = Factory(tmp_path, None)
    rt = factory()
    rt.remember_many({f"u{i}": ["Before."] for i in range(9)})
    SecondFails(monkeypatch, "pin")
    with pytest.raises(errors.StorageFullError):
        rt.checkpoint("a")
    if how == "reopened":
        rt.close()
        rt = factory()
    assert rt.checkpoints() == []
    with pytest.raises(errors.UnknownCheckpointError):
        rt.rewind("a")
    rt.remember_many({f"u{i}": ["After."] for i in range(9)})
    assert rt.checkpoint("a") == 9
    rt.remember_many({f"u{i}": ["Later."] for i in range(9)})
    assert rt.rewind("a") == 9
    assert {rt.user(u).list().total for u in rt.users()} == {2}
    factory.finish()


@pytest.mark.parametrize("how", ["again", "reopened", "another"])
def test_a_rewind_that_fails_half_way_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    factory = Factory(tmp_path, None)
    rt = factory()
    rt.remember_many({f"u{i}": ["Before."] for i in range(9)})
    rt.checkpoint("a")
    rt.remember_many({f"u{i}": ["After."] for i in range(9)})
    SecondFails(monkeypatch, "rewind")
    with pytest.raises(errors.StorageFullError):
        rt.rewind("a")
    if how == "again":
        assert rt.rewind("a") == 9
    elif how == "reopened":
        rt.close()
        rt = factory()
    else:
        rt.checkpoint("b")
    assert {rt.user(u).list().total for u in rt.users()} == {1}
    rt.remember_many({f"u{i}": ["Anew."] for i in range(9)})
    rt.close()
    rt = factory()  # and it is not done once more
    assert {rt.user(u).list().total for u in rt.users()} == {2}
    factory.finish()
