"""What the power-loss suite has found, each in its shortest form."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from crash import lost_power
from crash.recording_vfs import Recorder

import reverie
from reverie.memory_graph.ids import Key, key_hash
from reverie.memory_graph.store import DataFolder

TEXT = "The smith sold a red lantern. 铁匠卖了红灯笼。"


def open_in(folder: Path) -> reverie.Runtime:
    return reverie.open(
        folder / "far" / "data", embedder="standin", partitions=1, exact_limit=2, background=False
    )


def after_power_loss(tmp_path: Path, act: Callable[[reverie.Runtime], object]) -> Path:
    """Return what is left for certain when the power fails right after `act` was answered."""
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    recorder, disk = Recorder(recorded), lost_power.Disk()
    with recorder.recording(), open_in(recorded) as runtime:
        act(runtime)
        for record in list(recorder.records):
            disk.take(record)
    left = tmp_path / "left"
    left.mkdir()
    disk.cut("nothing", random.Random(0)).materialise(left)
    return left


def test_the_name_of_a_new_data_folder_is_durable(tmp_path: Path) -> None:
    left = after_power_loss(tmp_path, lambda runtime: runtime.user("ana").remember(TEXT))
    with open_in(left) as runtime:
        assert [item.text for item in runtime.user("ana").list().items] == [TEXT]


def test_a_name_that_cannot_be_synced_is_the_folder_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        if folder != tmp_path / "data":
            raise PermissionError(13, "refused", str(folder))

    monkeypatch.setattr("reverie.memory_graph.store.folder.sync_folder", refuse)
    DataFolder.open(tmp_path / "data", owner="test").close()


def test_what_was_erased_does_not_come_back(tmp_path: Path) -> None:
    """Neither by a log whose cutting was not synced nor by index files that still have names."""

    def act(runtime: reverie.Runtime) -> None:
        user = runtime.user("ana")
        for number in range(4):
            user.remember(f"{TEXT} {number}")
        runtime.flush()
        assert list((runtime.path / "indices").iterdir())
        assert user.forget().clean

    left = after_power_loss(tmp_path, act)
    files = [path for path in left.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path.name for path in files if TEXT.encode() in path.read_bytes()] == []
    assert [path.name for path in files if key_hash(Key("default", "ana")).hex() in path.name] == []


def test_the_digest_of_an_index_may_be_garbage(tmp_path: Path) -> None:
    with open_in(tmp_path) as runtime:
        for number in range(4):
            runtime.user("ana").remember(f"{TEXT} {number}")
    (digest,) = (runtime.path / "indices").glob("*.sum")
    digest.write_bytes(b"\xc7\xff")
    with open_in(tmp_path) as runtime:
        hits = runtime.user("ana").search(f"{TEXT} 3", limit=1)
        assert [hit.text for hit in hits] == [f"{TEXT} 3"]


@pytest.mark.parametrize("name", ["catalog.db-journal", "catalog.db-wal", "catalog.commits"])
def test_a_folder_that_was_being_made_opens(name: str, tmp_path: Path) -> None:
    """Of the files that SQLite made, any may have kept its name without the others."""
    folder = tmp_path / "far" / "data"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(bytes(512))
    with open_in(tmp_path) as runtime:
        runtime.user("ana").remember(TEXT)
    with open_in(tmp_path) as runtime:
        assert [item.text for item in runtime.user("ana").list().items] == [TEXT]
