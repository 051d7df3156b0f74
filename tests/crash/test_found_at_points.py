"""What the suites on named points and on failing disks have found, each in its shortest form."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crash import disk, scenes
from crash.faulty_vfs import Disk, Fault

import reverie
from reverie.actors import ingest
from reverie.memory_graph import errors, faults
from reverie.memory_graph.errors import (
    ShardUnavailableError,
    StorageFailedError,
    StorageFullError,
)
from reverie.memory_graph.store import Catalog, World


@pytest.fixture(autouse=True)
def _no_handler() -> Iterator[None]:
    yield
    faults.install(None)


def opened(path: Path, **settings: Any) -> reverie.Runtime:
    return reverie.open(path, embedder="standin", background=False, partitions=1, **settings)


def at(
    point: faults.Point,
    error: Exception,
    times: int = 1,
    *,
    since: faults.Point | None = None,
) -> None:
    """Raise an error at a point, so many times, once `since` was reached."""
    left = [error] * times
    waits = since is not None

    def handler(reached: faults.Point) -> None:
        nonlocal waits
        waits = waits and reached != since
        if reached == point and left and not waits:
            raise left.pop()

    faults.install(handler)


# -- errors that cost nobody an answer ---------------------------------------------------


@pytest.mark.parametrize("error", [MemoryError("planted"), OSError(errno.EIO, "planted")])
@pytest.mark.parametrize("point", ["passivation.before", "snapshot.before", "snapshot.after"])
def test_an_unknown_error_after_the_commit_takes_no_answer(
    tmp_path: Path, point: faults.Point, error: Exception
) -> None:
    """Users leave memory after others were answered; a snapshot comes after the commit."""
    with opened(tmp_path, byte_budget=1) as rt:
        for user in ("ana", "bo"):
            rt.user(user).remember(f"{user} keeps bees. " + "柏林 " * 30_000)
        at(point, error)
        assert rt.user("李娜").remember("One more. " + "x" * 100_000).op == "ADD"
        faults.install(None)
        assert [rt.user(u).list().total for u in ("ana", "bo", "李娜")] == [1, 1, 1]
        assert rt.check() == []


def test_readings_that_cannot_be_journaled_are_forgotten_in_memory_too(tmp_path: Path) -> None:
    """Or the head of the journal and the state would differ, and the next write be refused."""
    with opened(tmp_path) as rt:
        ana = rt.user("ana")
        ana.remember("Ana keeps bees.")
        ana.search("bees")
        at("commit.before", OSError(errno.EIO, "planted"))
        with suppress(OSError):
            ana.digest()  # journals the reading
        faults.install(None)
        assert ana.remember("Ana sells honey.").op == "ADD"


def test_drain_forgets_an_error_of_work_that_was_done_after_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome had landed, and its answer was lost: nothing waits any more."""
    monkeypatch.setattr(ingest, "RETRY_S", 60.0)
    settled = ["apply.before", "outbox.before", "commit.after", "reply.after"]

    def lose(point: faults.Point) -> None:
        if settled and point == settled[0]:
            settled.pop(0)
            if not settled:
                msg = "planted"
                raise ShardUnavailableError(msg)

    with reverie.open(tmp_path, embedder="standin", partitions=1) as rt:
        with rt.ingestor.hold(rt.user("ana").key):
            rt.user("ana").add("I keep bees.")
            faults.install(lose)
        with suppress(ShardUnavailableError):
            rt.ingestor.wait(10)
        assert settled == []
        faults.install(None)
        rt.drain(10)
        assert rt.user("ana").stats().pending == 0


def test_an_erasure_whose_answer_was_lost_is_finished_by_the_next_one(tmp_path: Path) -> None:
    with opened(tmp_path) as rt:
        rt.user("ana").remember("Ana keeps bees.")
        at("reply.after", ShardUnavailableError("planted"), since="intent.after")
        with pytest.raises(ShardUnavailableError):
            rt.user("ana").forget()
        faults.install(None)
        assert len(rt.check()) == 1
        rt.user("ana").forget()
        assert rt.check() == []


# -- files -------------------------------------------------------------------------------


@pytest.mark.parametrize("hole", disk.HOLES)
def test_what_is_written_to_a_file_without_a_name_is_refused(
    tmp_path: Path, hole: disk.Hole
) -> None:
    rt = opened(tmp_path / "data")
    ana = rt.user("ana")
    ana.remember("Before.")
    for path in disk.victims(hole, tmp_path / "data"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(StorageFailedError, match="removed or replaced"):
        ana.remember("After.")
    rt.close()


def test_a_folder_that_was_moved_away_and_back_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as rt:
        ana = rt.user("ana")
        ana.remember("Before.", request_id="before")
        (tmp_path / "data").rename(tmp_path / "away")
        for _ in range(2):
            with pytest.raises(StorageFailedError):
                ana.remember("Meanwhile.", request_id="meanwhile")
            with pytest.raises(StorageFailedError):
                rt.checkpoint("meanwhile")
        (tmp_path / "away").rename(tmp_path / "data")
        ana.remember("Meanwhile.", request_id="meanwhile")
        assert rt.checkpoint("after") == 1  # the catalog is recovered, too
        assert ana.list().total == 2


def test_a_catalog_that_failed_is_recovered(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / "catalog.db", partitions=1)
    catalog.add_world(World("town", "e", 4, "", 0.0))
    with pytest.raises(StorageFailedError), catalog.write():  # noqa: PT012 (one transaction)
        catalog.add_tag("town", "lost", 0.0)
        catalog._db._break("planted")
        catalog.add_tag("town", "lost, too", 0.0)  # not in a transaction of its own
    assert catalog.tags("town") == []
    catalog.add_tag("town", "kept", 0.0)
    assert [tag.tag for tag in catalog.tags("town")] == ["kept"]
    catalog.close()
    with pytest.raises(errors.StorageError):
        catalog.worlds()


class Steps(Disk):
    """Remembers what a power cut would leave after each sync."""

    def __init__(self) -> None:
        super().__init__()
        self.after: list[tuple[int, dict[str, bytearray]]] = []
        self.acknowledged = 0

    def settle(self, path: str, data: bytes) -> None:
        super().settle(path, data)
        whole = {name: bytearray(content) for name, content in self.durable.items()}
        self.after.append((self.acknowledged, whole))


def test_a_power_cut_after_a_failed_sync_takes_nothing_acknowledged(tmp_path: Path) -> None:
    """The pages of a failed sync can be read, and are gone when the power is: the log has to be
    written anew before anything is acknowledged that comes after them. At each step of that."""
    steps = Steps()
    scenes.silence()
    texts = ["Before.", "Again.", "After.", "Later."]
    with steps.mounted(), opened(tmp_path / "data") as rt:
        ana = rt.user("ana")
        ana.remember(texts[0])
        steps.acknowledged = 1
        steps.faults = (Fault("sync", "log", 1, 1),)
        with pytest.raises(StorageFailedError):
            ana.remember(texts[1], request_id="again")
        steps.after.clear()
        for text in texts[1:]:
            ana.remember(text, request_id="again" if text == texts[1] else None)
            steps.acknowledged += 1
        steps.cut_power(tmp_path / "data", tmp_path / "rest")
    assert steps.after_failed_sync == []
    assert len(steps.after) >= len(texts)
    for number, (acknowledged, durable) in enumerate(steps.after):
        cut = tmp_path / f"cut-{number}"
        shutil.copytree(tmp_path / "rest", cut)
        for lost in cut.rglob("*.commits"):  # what they prove is of later
            lost.unlink()
        for path, data in durable.items():
            (cut / Path(path).relative_to(tmp_path / "data")).write_bytes(data)
        with opened(cut) as rt:
            found = scenes.texts(rt, "ana", "default")
            assert set(texts[:acknowledged]) <= set(found) <= set(texts[: acknowledged + 1])
            assert rt.check() == []


def test_opening_on_a_full_disk_says_what_to_do(tmp_path: Path) -> None:
    with disk.small_disk(tmp_path / "small") as place:
        if place is None:
            pytest.skip("may not mount")
        with opened(place / "data") as rt:
            rt.user("ana").remember("Before.")
        disk.brim(place / "filler")
        for _ in range(2):
            with pytest.raises(StorageFullError, match="free some space"):
                opened(place / "data")
        (place / "filler").unlink()
        with opened(place / "data") as rt:
            assert rt.user("ana").list().total == 1


def test_a_failed_opening_closes_its_files(tmp_path: Path) -> None:
    opened(tmp_path).close()
    at("owner-name.before", OSError(errno.EIO, "planted"))
    with pytest.raises(StorageFailedError):
        opened(tmp_path)
    faults.install(None)
    assert not (tmp_path / "catalog.db-wal").exists()  # the last one to close it removes it
    opened(tmp_path).close()


# -- a fork ------------------------------------------------------------------------------

FORKED = """
import os, subprocess, sys
import reverie
from reverie.memory_graph.errors import ClosedError, DataFolderLockedError

rt = reverie.open(sys.argv[1], embedder="standin", partitions=1)
ana = rt.user("ana")
ana.remember("Before.")
child = os.fork()
if not child:
    calls = (lambda: ana.remember("Child."), lambda: ana.search("before"), lambda: ana.add("Hi."),
             ana.forget, rt.stats, rt.worlds, rt.flush, lambda: rt.checkpoint("x"), rt.check)
    for call in calls:
        try:
            call()
        except ClosedError as exc:
            assert "forked" in str(exc)
        else:
            os._exit(1)
    rt.close()
    del rt, ana
    sys.exit(0)  # with all that runs at the end of an interpreter
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert os.path.exists(os.path.join(sys.argv[1], "OWNER.json"))
opener = "import reverie, sys; reverie.open(sys.argv[1], embedder='standin')"
other = subprocess.run([sys.executable, "-c", opener, sys.argv[1]], stderr=subprocess.PIPE)
assert b"DataFolderLockedError" in other.stderr
ana.remember("After.")
assert rt.check() == []
rt.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="does not fork")
def test_a_forked_process_leaves_everything_to_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    with opened(tmp_path / "data") as rt:
        assert rt.user("ana").list().total == 2
