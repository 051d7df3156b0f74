"""A short form of the power-loss suite, what it stands on, and that it finds planted bugs."""

from __future__ import annotations

import random
from pathlib import Path

import apsw
import pytest
from crash import lost_power, power, report
from crash.recording_vfs import (
    FolderSynced,
    Made,
    Marked,
    Named,
    Record,
    Recorder,
    Removed,
    Renamed,
    Synced,
    Truncated,
    Written,
)
from crash.short import options, until, until_found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_power_cut_loses_what_was_acknowledged(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        row = power.run(options(tmp_path, 140, seed=seed))
        assert row.findings == []
        assert row.is_clean
        assert row.count == 140
        assert row.acknowledged > 0
        return row

    until(lambda row: min(row.figures.values()) > 0, attempt)  # all of it has happened


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("ack-before-commit", ["lost"]),
        ("folders-not-synced", ["lost"]),
        ("log-cut-not-synced", ["wrong"]),  # erased text is back
        # Also a folder to which nothing was written yet may then refuse to open.
        ("synchronous-normal", ["lost", "wrong"]),
        ("synchronous-off", ["lost", "wrong"]),
    ],
)
def test_a_planted_bug_is_found(bug: str, kinds: list[str], tmp_path: Path) -> None:
    until_found(kinds, lambda seed: power.run(options(tmp_path, 1200, bug, seed=seed)))
    assert any(path.is_dir() for path in tmp_path.glob("*/*"))  # the state is kept


# -- the recorder ------------------------------------------------------------------------


def test_all_that_sqlite_does_is_recorded_in_order(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with recorder.recording():
        db = apsw.Connection(str(tmp_path / "a.db"))
        db.pragma("journal_mode", "wal")
        db.execute("CREATE TABLE t (x)")
        recorder.mark("made")
        db.execute("INSERT INTO t VALUES ('灯笼')")
        recorder.mark("added")
        db.close()
    records = recorder.records
    marks = [i for i, record in enumerate(records) if not isinstance(record, Written)]
    between = records[marks[-1] + 1 :]
    kinds = [type(record) for record in records]
    assert Named("a.db", 1) in records
    assert Named("a.db-wal", 3) in records
    assert FolderSynced(".") in records
    assert Removed("a.db-wal") in records
    assert kinds.count(Synced) > 3
    assert between == []
    before = records[: [getattr(r, "line", "") for r in records].index("added")]
    assert isinstance(before[-1], Synced)  # of the log, before the statement has returned
    assert any("灯笼".encode() in r.data for r in before if isinstance(r, Written))


def test_a_state_of_all_that_was_recorded_is_what_lies_on_the_disk(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "data")
    (tmp_path / "data").mkdir()
    with recorder.recording():
        db = apsw.Connection(str(tmp_path / "data" / "a.db"))
        db.pragma("journal_mode", "wal")
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (zeroblob(9000))")
        (tmp_path / "data" / "b").mkdir()
        (tmp_path / "data" / "b" / "new").write_bytes(b"12345")
        (tmp_path / "data" / "b" / "new").replace(tmp_path / "data" / "b" / "c")
        found = {
            path.relative_to(tmp_path / "data").as_posix(): path.read_bytes()
            for path in (tmp_path / "data").rglob("*")
            if path.is_file() and not path.name.endswith("-shm")
        }
        records = list(recorder.records)
        db.close()
    state = cut(records, "all")
    assert state.files == found
    assert state.folders == ["b"]


def test_nothing_of_a_killed_process_reaches_the_disk(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with recorder.recording():
        db = apsw.Connection(str(tmp_path / "a.db"))
        db.execute("CREATE TABLE t (x)")
        before = (tmp_path / "a.db").read_bytes()
        recorder.kill_after(0)
        recorder.mark("the last word")
        with pytest.raises(apsw.Error):
            db.execute("INSERT INTO t VALUES (1)")
        recorder.mark("not heard")
        db.close()
        (tmp_path / "b").write_bytes(b"1")
        recorder.revive()
        (tmp_path / "c").write_bytes(b"1")
    assert (tmp_path / "a.db").read_bytes() == before
    assert [r.line for r in recorder.records if isinstance(r, Marked)] == ["the last word"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "c"]


# -- the disk ----------------------------------------------------------------------------


def cut(records: list[Record], landing: lost_power.Landing, seed: int = 0) -> lost_power.State:
    disk = lost_power.Disk()
    for record in records:
        disk.take(record)
    return disk.cut(landing, random.Random(seed))


def possible(records: list[Record], landing: lost_power.Landing) -> list[dict[str, bytes]]:
    """Return the files of many states."""
    return [cut(records, landing, seed).files for seed in range(300)]


FILE: list[Record] = [Named("f", 1), Written(1, 0, b"a" * 1024), Synced(1), FolderSynced(".")]


def test_what_was_synced_is_there_and_of_the_rest_anything() -> None:
    records = [*FILE, Written(1, 0, b"b" * 512), Written(1, 512, b"c" * 512)]
    assert cut(records, "nothing").files == {"f": b"a" * 1024}
    assert cut(records, "all").files == {"f": b"b" * 512 + b"c" * 512}
    found = {files["f"] for files in possible(records, "subset")}
    assert found == {x * 512 + y * 512 for x in (b"a", b"b") for y in (b"a", b"c")}
    assert {files["f"] for files in possible([*records, Synced(1)], "torn")} == {
        b"b" * 512 + b"c" * 512
    }


def test_a_write_is_torn_between_sectors_and_only_there() -> None:
    records = [*FILE, Written(1, 0, b"b" * 1024)]
    assert {files["f"] for files in possible(records, "subset")} == {b"a" * 1024, b"b" * 1024}
    assert {files["f"] for files in possible(records, "torn")} == {
        x * 512 + y * 512 for x in (b"a", b"b") for y in (b"a", b"b")
    }


def test_what_grew_may_hold_zeros_or_garbage() -> None:
    records = [*FILE, Written(1, 1024, b"b" * 1024)]
    tails = {files["f"][1024:] for files in possible(records, "torn")}
    assert {b"", b"b" * 1024, bytes(1024)} < tails
    assert any(tail.strip(b"\0b") for tail in tails)  # garbage
    assert all(files["f"].startswith(b"a" * 1024) for files in possible(records, "torn"))


def test_a_truncation_has_happened_or_not() -> None:
    found = {files["f"] for files in possible([*FILE, Truncated(1, 100)], "torn")}
    assert found == {b"a" * 1024, b"a" * 100}


def test_a_name_is_certain_once_its_folder_was_synced() -> None:
    records: list[Record] = [Made("d"), Named("d/f", 1), Written(1, 0, b"1"), Synced(1)]
    assert cut(records, "nothing") == ([], {})
    assert cut([*records, FolderSynced("d")], "nothing") == ([], {})  # the folder itself is not
    records += [FolderSynced("d"), FolderSynced(".")]
    assert cut(records, "nothing") == (["d"], {"d/f": b"1"})
    records += [Named("d/new", 2), Written(2, 0, b"2"), Synced(2), Renamed("d/new", "d/f", 2)]
    found = possible(records, "subset")
    assert {files["d/f"] for files in found} == {b"1", b"2"}
    records += [FolderSynced("d"), Removed("d/f")]
    assert {tuple(files.items()) for files in possible(records, "subset")} == {
        (),
        (("d/f", b"2"),),
    }
