"""Damage on disk: a typed error that names the place, or an older snapshot; never a wrong state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from reverie.memory_graph.errors import DataFolderError, JournalDamagedError, StorageFailedError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition

ANN = Key("世界", "Ann")

REPEAT_LAST = """
    INSERT INTO journal
    SELECT uid, generation, 31, checksum, payload FROM journal WHERE seq = 30"""
MOVE_FROM_28_TO_27 = """
    UPDATE journal SET (payload, checksum) =
        (SELECT payload, checksum FROM journal AS other WHERE other.seq = 28)
    WHERE seq = 27"""
MOVE_FROM_BOB = """
    UPDATE journal SET (payload, checksum) =
        (SELECT payload, checksum FROM journal AS bob WHERE bob.uid = 2)
    WHERE uid = 1 AND seq = 22"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A partition with snapshots at 10 and 20 and events 11 to 25."""
    partition = Partition.open(tmp_path / "p.db", index=0, owner="test")
    with partition.write() as txn:
        for first in (1, 11, 21):
            txn.append(ANN, [f"event-{seq:02d}".encode() for seq in range(first, first + 10)][:15])
            if first < 21:
                txn.save_snapshot(ANN, first + 9, b"state-%d" % (first + 9), embedder="e")
        txn.append(Key("世界", "Bob"), [b"event-of-bob"])
    partition.close()
    return tmp_path / "p.db"


def damage(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
        assert connection.changes() >= 1, f"the statement damaged nothing: {statement}"
    connection.close()


@pytest.fixture
def reopened(path: Path) -> Iterator[Partition]:
    partition = Partition.open(path, index=0, owner="test")
    yield partition
    partition.close()


def test_the_undamaged_file_is_sound(path: Path, reopened: Partition) -> None:
    loaded = reopened.load(ANN)
    assert loaded is not None
    assert (loaded.snapshot, loaded.seq, len(loaded.tail)) == (b"state-20", 30, 10)
    assert reopened.check() == []


@pytest.mark.parametrize(
    "change",
    [
        "state = x'00'",
        "checksum = x'0000000000000000'",
        "embedder = 'another'",
        "format = 2",
        "seq = 19",
    ],
)
def test_a_damaged_snapshot_falls_back_to_the_one_before(
    path: Path, reopened: Partition, change: str
) -> None:
    damage(path, f"UPDATE snapshots SET {change} WHERE seq = 20")  # noqa: S608
    loaded = reopened.load(ANN)
    assert loaded is not None
    assert (loaded.snapshot, loaded.snapshot_seq) == (b"state-10", 10)
    assert loaded.tail == [(seq, f"event-{seq:02d}".encode()) for seq in range(11, 31)]
    assert len(loaded.warnings) == 1
    assert "Ann" in loaded.warnings[0]
    assert any("damaged" in line for line in reopened.check())
    with reopened.write() as txn:  # the damaged one does not count as the older of two
        txn.save_snapshot(ANN, 30, b"state-30", embedder="e")
    assert reopened._db.rows("SELECT seq FROM snapshots ORDER BY seq") == [(10,), (30,)]
    assert reopened.check() == []


def test_without_a_good_snapshot_the_first_missing_event_is_named(
    path: Path, reopened: Partition
) -> None:
    damage(path, "UPDATE snapshots SET state = x'00'")
    with pytest.raises(JournalDamagedError) as caught:
        reopened.load(ANN)
    assert (caught.value.world, caught.value.user_id, caught.value.seq) == ("世界", "Ann", 1)


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("DELETE FROM journal WHERE seq = 23", 23),
        ("DELETE FROM journal WHERE seq = 30", 30),
        ("DELETE FROM journal WHERE seq >= 21", 21),
        ("UPDATE journal SET payload = x'6576' WHERE seq = 24", 24),
        ("UPDATE journal SET checksum = x'0011223344556677' WHERE seq = 25", 25),
        ("UPDATE journal SET seq = 31 WHERE seq = 26", 31),
        ("UPDATE users SET head = 28 WHERE user_id = 'Ann'", 29),
        ("UPDATE users SET head = 33 WHERE user_id = 'Ann'", 31),
        ("UPDATE generations SET base_seq = 22 WHERE uid = 1", 11),
        (REPEAT_LAST, 31),
        (MOVE_FROM_28_TO_27, 27),
        (MOVE_FROM_BOB, 22),
    ],
)
def test_a_damaged_journal_names_the_user_and_the_first_bad_event(
    path: Path, reopened: Partition, statement: str, seq: int
) -> None:
    damage(path, statement)
    with pytest.raises(JournalDamagedError) as caught:
        reopened.load(ANN)
    assert (caught.value.world, caught.value.user_id, caught.value.seq) == ("世界", "Ann", seq)
    assert any("Ann" in line for line in reopened.check())
    bob = reopened.load(Key("世界", "Bob"))  # others are not harmed
    assert bob is not None
    assert bob.tail == [(1, b"event-of-bob")]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO journal VALUES (9, 1, 1, x'00', x'00')", "user number 9"),
        ("INSERT INTO snapshots VALUES (1, 5, 1, 'e', 1, x'00', x'00')", "unknown generation 5"),
        ("INSERT INTO outbox (uid, turn_id) VALUES (9, 't')", "user number 9"),
        ("INSERT INTO pins VALUES ('世界', 'tag', 1, 1, 25, x'', x'')", "unknown tag"),
        ("UPDATE users SET generation = 7 WHERE uid = 1", "no known generation"),
        ("DELETE FROM journal WHERE seq = 12", "misses events after the older snapshot"),
        ("INSERT INTO snapshots VALUES (1, 1, 99, 'e', 1, x'00', x'00')", "past its head"),
    ],
)
def test_the_checker_finds_what_loading_does_not_meet(
    path: Path, reopened: Partition, statement: str, words: str
) -> None:
    damage(path, statement)
    found = reopened.check()
    assert any(words in line for line in found), found


def test_a_history_that_is_its_own_base_ends(path: Path, reopened: Partition) -> None:
    damage(path, "UPDATE generations SET base_generation = 1, base_seq = 15 WHERE uid = 1")
    with pytest.raises(JournalDamagedError):
        reopened.load(ANN)


def test_damaged_pages_are_an_error_that_names_the_file(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):  # all but the header and the schema
        data[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(data)
    with pytest.raises(StorageFailedError, match=r"p\.db is damaged"):
        Partition.open(path, index=0, owner="test")


@pytest.mark.parametrize("size", [0, 50, 3000, None])
def test_a_truncated_file_is_never_a_wrong_state(path: Path, size: int | None) -> None:
    if size is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:size])
    for _ in range(2):
        with pytest.raises((DataFolderError, StorageFailedError)):
            Partition.open(path, index=0, owner="test")


def test_without_its_witness_only_the_caller_knows_that_an_empty_file_is_not_new(
    path: Path,
) -> None:
    path.with_suffix(".commits").unlink()
    path.write_bytes(b"")
    with pytest.raises(StorageFailedError, match="is empty, and was not"):
        Partition.open(path, index=0, owner="test", create=False)
    partition = Partition.open(path, index=0, owner="test")
    assert partition.worlds() == []
    partition.close()


def test_a_header_of_another_format_of_sqlite_is_damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[47] ^= 0x10  # the schema format number
    path.write_bytes(data)
    with pytest.raises(StorageFailedError, match=path.name):
        Partition.open(path, index=0, owner="test")


def test_a_missing_row_or_one_of_another_type_is_damage(path: Path) -> None:
    damage(path, "DELETE FROM owner")
    with pytest.raises(StorageFailedError, match=path.name):
        Partition.open(path, index=0, owner="test")


def test_a_schema_of_another_type_is_damage(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON").fetchall()
    connection.execute(
        "UPDATE sqlite_schema SET sql = CAST(sql AS BLOB) WHERE name = 'outbox'"
    ).fetchall()
    connection.close()
    with pytest.raises(StorageFailedError, match=path.name):
        Partition.open(path, index=0, owner="test")


def test_a_row_that_always_is_there_and_is_not_is_damage(path: Path, reopened: Partition) -> None:
    database = reopened._db
    assert database.only_row("SELECT floor FROM owner") == (0,)
    for sql in ("SELECT floor FROM owner WHERE id = 2", "SELECT seq FROM journal"):
        with pytest.raises(StorageFailedError, match="rows where one belongs") as caught:
            database.only_row(sql)
        assert str(path) in str(caught.value)
