"""The data folder: its layout, and that one process owns it at a time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reverie.memory_graph.errors import (
    ConfigError,
    DataFolderError,
    DataFolderLockedError,
    StorageFullError,
    StorageReadOnlyError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import DataFolder, FolderOwner, folder, replace

HOLD = """
import sys, time
from pathlib import Path
from reverie.memory_graph.store import DataFolder
folder = DataFolder.open(Path(sys.argv[1]), owner="holder")
print("open", flush=True)
time.sleep(60)
"""
TRY = """
import sys
from pathlib import Path
from reverie.memory_graph.errors import DataFolderLockedError
from reverie.memory_graph.store import DataFolder
try:
    DataFolder.open(Path(sys.argv[1]), owner="second")
except DataFolderLockedError as error:
    print(error.pid, error)
"""


def started(program: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True, cwd="/"
    )


def test_the_layout(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path / "new" / "data", owner="test", partitions=4) as data:
        assert data.partitions == 4
        assert data.warnings == []
        partition = data.open_partition(3)
        partition.close()
        for user in ("../../etc", "用户"):
            index = data.index_path(Key("/", user))
            assert index.parent == data.path / "indices"
            assert index.name.isalnum()
        names = {str(p.relative_to(data.path)) for p in data.path.rglob("*")}
    assert {"catalog.db", "LOCK", "OWNER.json", "indices", "traces", "partitions"} <= names
    assert "partitions/p0003.db" in names
    assert not (tmp_path / "new" / "data" / "OWNER.json").exists()


def test_the_number_of_partitions_is_fixed_when_the_folder_is_made(tmp_path: Path) -> None:
    DataFolder.open(tmp_path / "data", owner="test", partitions=4).close()
    with DataFolder.open(tmp_path / "data", owner="test", partitions=8) as data:
        assert data.partitions == 4
        assert len(data.warnings) == 1
        assert "8 were asked for" in data.warnings[0]


def test_closing_twice_does_not_take_the_lock_from_the_next_owner(tmp_path: Path) -> None:
    first = DataFolder.open(tmp_path / "data", owner="test")
    first.close()
    second = DataFolder.open(tmp_path / "data", owner="test")
    first.close()
    assert (tmp_path / "data" / "OWNER.json").exists()
    second.close()


def test_a_second_opener_in_this_process_is_told_who_has_it(tmp_path: Path) -> None:
    with DataFolder.open(tmp_path / "data", owner="test") as data:
        with pytest.raises(DataFolderLockedError, match=str(os.getpid())) as caught:
            DataFolder.open(tmp_path / "data", owner="second")
        assert caught.value.details["host"] == socket.gethostname()
        holder = msgspec.json.decode((data.path / "OWNER.json").read_bytes(), type=FolderOwner)
        assert (holder.pid, holder.owner) == (os.getpid(), "test")
        (data.path / "OWNER.json").write_text("{")  # unreadable: locked all the same
        with pytest.raises(DataFolderLockedError):
            DataFolder.open(tmp_path / "data", owner="second")
    DataFolder.open(tmp_path / "data", owner="test").close()


def test_a_second_opener_in_another_process_is_told_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with DataFolder.open(path, owner="test"), started(TRY, path) as process:
        said = process.communicate(timeout=60)[0]
    assert said.startswith(f"{os.getpid()} ")
    assert socket.gethostname() in said


def test_the_lock_goes_with_a_killed_owner(tmp_path: Path) -> None:
    with started(HOLD, tmp_path / "data") as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            with pytest.raises(DataFolderLockedError, match=f"process {holder.pid} "):
                DataFolder.open(tmp_path / "data", owner="test")
        finally:
            holder.send_signal(signal.SIGKILL)
    DataFolder.open(tmp_path / "data", owner="test").close()


def test_a_strangers_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataFolderError, match="not empty"):
        DataFolder.open(tmp_path, owner="test")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(DataFolderError, match="is a file"):
        DataFolder.open(tmp_path / "thesis.txt", owner="test")


def test_what_is_made_is_for_its_owner_and_what_was_there_stays_as_it_was(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "there").mkdir(mode=0o755)
        for name in ("made", "there"):
            DataFolder.open(tmp_path / name, owner="test").close()
            replace.new_place(tmp_path / name)
    finally:
        os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o755
    for name in ("made", "there"):
        inside = [path for path in (tmp_path / name).iterdir() if path.is_dir()]
        assert len(inside) == 4
        assert {path.stat().st_mode & 0o777 for path in inside} == {0o700}


def test_creation_cut_short_is_taken_up_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "partitions").mkdir(parents=True)
    (data / "LOCK").touch()
    (data / "OWNER.json.new").touch()
    with DataFolder.open(data, owner="test", partitions=2) as opened:
        assert opened.partitions == 2


def test_a_failed_opening_releases_the_lock(tmp_path: Path) -> None:
    DataFolder.open(tmp_path / "data", owner="test").close()
    catalog = tmp_path / "data" / "catalog.db"
    good = catalog.read_bytes()
    catalog.write_bytes(b"no database at all " * 500)
    for _ in range(2):
        with pytest.raises(DataFolderError):
            DataFolder.open(tmp_path / "data", owner="test")
    catalog.write_bytes(good)
    DataFolder.open(tmp_path / "data", owner="test").close()


@pytest.mark.parametrize("partitions", [0, -1, 100_000])
def test_the_number_of_partitions_has_bounds(tmp_path: Path, partitions: int) -> None:
    with pytest.raises(ConfigError):
        DataFolder.open(tmp_path / "data", owner="test", partitions=partitions)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError(13, "denied"), StorageReadOnlyError),
        (OSError(28, "full"), StorageFullError),
    ],
)
def test_what_the_system_says_is_told_in_our_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, expected: type[Exception]
) -> None:
    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(folder, "_name_owner", fail)
    with pytest.raises(expected):
        DataFolder.open(tmp_path / "data", owner="test")
    monkeypatch.undo()
    DataFolder.open(tmp_path / "data", owner="test").close()
