"""What was acknowledged stays, whatever happens: kill -9, a full disk, failing syncs."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import apsw
import pytest

from reverie.memory_graph.errors import (
    StorageFailedError,
    StorageFullError,
    StorageReadOnlyError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Catalog, DataFolder, Partition, sqlite

HERE = Path(__file__).parent
USER = Key("w", "u")


def sound(path: Path, at_least: int) -> int:
    """Return how many events there are; each must be the right one."""
    partition = Partition.open(path, index=0, owner="check")
    try:
        assert partition.check() == []
        loaded = partition.load(USER)
        assert loaded is not None
        assert [int(event[:8]) for _, event in loaded.tail] == list(range(1, loaded.seq + 1))
        assert partition.pending_of(USER, 1 << 30) == [f"t{s}" for s in range(1, loaded.seq + 1)]
        assert loaded.seq >= at_least
        return loaded.seq
    finally:
        partition.close()


@contextmanager
def writing(
    path: Path, count: int, *pragmas: str, **env: str
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Run the writer; give its process and what it prints after its first line."""
    with subprocess.Popen(
        [sys.executable, HERE / "writer.py", path, str(count), *pragmas],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env=os.environ | env,
    ) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "open\n":
                pytest.fail(process.communicate()[1])
            yield process, process.stdout
        finally:
            process.kill()


@pytest.mark.parametrize("after", [3, 700])
def test_kill_9_loses_nothing_acknowledged(tmp_path: Path, after: int) -> None:
    path = tmp_path / "p.db"
    with writing(path, 0) as (process, heads):
        for _ in range(after):
            acknowledged = int(heads.readline())
        process.send_signal(signal.SIGKILL)
        acknowledged = int([str(acknowledged), *heads.read().split()][-1])
    assert sound(path, at_least=acknowledged) <= acknowledged + 1


def test_a_full_disk_rolls_back_and_leaves_the_partition_usable(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(USER, [b"before"])
    ((pages,),) = partition._db.rows("PRAGMA page_count")
    partition._db.rows(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(StorageFullError), partition.write() as txn:
        txn.append(USER, [b"x" * 1000] * 100)
    with pytest.raises(StorageFailedError), partition.write() as txn:  # noqa: PT012 (swallowed)
        with pytest.raises(StorageFullError):
            txn.append(USER, [b"x" * 1000] * 100)
        txn.append(USER, [b"small"])
    assert partition.state(USER) == (1, 1)
    with partition.write() as txn:
        assert txn.append(USER, [b"small"]) == 2
    partition._db.rows(f"PRAGMA max_page_count = {pages + 500}")
    with partition.write() as txn:
        assert txn.append(USER, [b"x" * 1000] * 100) == 102


def test_a_write_error_breaks_the_partition_until_it_is_reopened(
    partition: Partition, open_partition: Callable[..., Partition]
) -> None:
    with partition.write() as txn:
        txn.append(USER, [b"before"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))  # a write beyond: EFBIG
    try:
        with pytest.raises(StorageFailedError, match="input/output"), partition.write() as txn:
            txn.append(USER, [b"x" * 1000] * 500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    with pytest.raises(StorageFailedError, match="reopened"), partition.write():
        pass
    with pytest.raises(StorageFailedError, match="reopened"):
        partition.load(USER)
    partition.close()
    again = open_partition()
    assert again.state(USER) == (1, 1)
    with again.write() as txn:
        assert txn.append(USER, [b"after"]) == 2


@pytest.fixture(scope="session")
def preload(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a writer whose syncs are counted and can be made to fail."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    library = tmp_path_factory.mktemp("lib") / "failsync.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "failsync.c"], check=True)
    return {"LD_PRELOAD": str(library)}


def syncs(tmp_path: Path, preload: dict[str, str], *pragmas: str) -> int:
    """Return how often a writer of 20 events syncs."""
    log = tmp_path / f"syncs{len(pragmas)}"
    env = preload | {"SYNC_LOG": str(log), "SYNC_FAIL": str(tmp_path / "never")}
    with writing(tmp_path / f"p{len(pragmas)}.db", 20, *pragmas, **env) as (process, heads):
        assert heads.read().split()[-1] == "20"
        assert process.wait(60) == 0
    return len(log.read_bytes())


def test_every_commit_is_synced(tmp_path: Path, preload: dict[str, str]) -> None:
    assert syncs(tmp_path, preload) >= 20
    assert syncs(tmp_path, preload, "synchronous = NORMAL") < 20  # the test can tell


def test_a_failed_sync_is_never_retried(tmp_path: Path, preload: dict[str, str]) -> None:
    path, log, fail = tmp_path / "p.db", tmp_path / "log", tmp_path / "fail"
    env = preload | {"SYNC_LOG": str(log), "SYNC_FAIL": str(fail)}
    with writing(path, 0, **env) as (process, heads):
        for _ in range(5):
            heads.readline()
        fail.touch()
        later = heads.read()  # not `communicate`, which passes over what was buffered
        assert process.stderr is not None
        errors = process.stderr.read()
        assert process.wait(60) == 1
    assert "StorageFailedError" in errors
    assert log.read_bytes().count(b"x") == 1
    acknowledged = 5 + len(later.split())
    assert acknowledged <= sound(path, at_least=acknowledged) <= acknowledged + 1


def test_durability_and_secure_deletion_are_on(partition: Partition, tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / "catalog.db", partitions=1)
    for db in (partition._db, catalog._db):
        for pragma, value in (
            ("synchronous", 2),
            ("secure_delete", 1),
            ("journal_mode", "wal"),
            ("temp_store", 2),
        ):
            assert db.rows(f"PRAGMA {pragma}") == [(value,)]
    catalog.close()


def test_the_log_is_moved_into_the_file_while_writing(partition: Partition) -> None:
    for _ in range(3):
        with partition.write() as txn:
            txn.append(USER, [os.urandom(2000)] * 3000)
    assert partition.path.stat().st_size > 12_000_000
    log = partition.path.with_name(partition.path.name + "-wal")
    assert log.stat().st_size <= sqlite.WAL_LIMIT_BYTES


def test_an_old_sqlite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite.check_version()
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.46.1")
    sqlite.check_version.cache_clear()
    with pytest.raises(StorageFailedError, match=r"3\.46\.1 is too old"):
        sqlite.check_version()
    sqlite.check_version.cache_clear()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageReadOnlyError):
        Partition.open(tmp_path / "missing" / "p.db", index=0, owner="x")


def test_a_read_only_file_system(tmp_path: Path) -> None:
    """Permissions do not bind root, so this mounts a small file system of its own."""
    mounted = tmp_path / "mount"
    mounted.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", mounted],  # noqa: S607
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("may not mount")
    try:
        with DataFolder.open(mounted / "data", owner="x") as folder:
            partition = folder.open_partition(0)
            with partition.write() as txn:
                txn.append(USER, [b"x"])
            partition.close()
        subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)  # noqa: S607
        with pytest.raises(StorageReadOnlyError):
            DataFolder.open(mounted / "data", owner="x")
        with pytest.raises(StorageReadOnlyError):
            DataFolder.open(mounted / "new", owner="x")
        with pytest.raises(StorageReadOnlyError):
            Partition.open(mounted / "data" / "partitions" / "p0000.db", index=0, owner="x")
        subprocess.run(["mount", "-o", "remount,rw", mounted], check=True)  # noqa: S607
        partition = Partition.open(mounted / "data/partitions/p0000.db", index=0, owner="x")
        with pytest.raises(StorageFullError), partition.write() as txn:  # a disk really full
            txn.append(USER, [b"x" * 4000] * 1000)
        with partition.write() as txn:
            assert txn.append(USER, [b"y"]) == 2
        assert partition.check() == []
        partition.close()
    finally:
        subprocess.run(["umount", mounted], check=True)  # noqa: S607


def test_a_file_without_write_permission(
    partition: Partition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user sees it: the file opens, but only for reading."""
    partition.close()
    flags = apsw.SQLITE_OPEN_READONLY
    connect = apsw.Connection
    monkeypatch.setattr(apsw, "Connection", lambda name, vfs=None: connect(name, flags))
    with pytest.raises(StorageReadOnlyError):
        Partition.open(partition.path, index=0, owner="x")
    monkeypatch.undo()
