"""The seal of a file and its witness: what they notice, and what they let pass."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

from reverie.memory_graph.errors import DataFolderError, StorageFailedError
from reverie.memory_graph.events import JOURNAL_FORMAT
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Catalog, Partition, World
from reverie.memory_graph.store.schema import SEALED
from reverie.memory_graph.store.seal import Witness

ANN, LI = Key("世界", "Ann"), Key("世界", "李娜")


def opened(path: Path) -> Partition:
    return Partition.open(path, index=0, owner="test")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed partition with something in every table."""
    partition = opened(tmp_path / "p.db")
    with partition.write() as txn:
        for key in (ANN, LI):
            txn.append(key, [b"one", b"two"])
            txn.enqueue(key, ["t1"])
            txn.keep_result(f"request of {key}", key, b"f", b"r")
        txn.pin("世界", "tag", operation="op1")
        txn.rewind("世界", "tag", operation="op2")
    partition.close()
    return tmp_path / "p.db"


def change(path: Path, statement: str) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute(statement).fetchall()
        assert connection.total_changes()
    connection.close()


def test_every_table_that_is_sealed_has_rows_here(path: Path) -> None:
    partition = opened(path)
    assert all(partition._db.row(f"SELECT 1 FROM {table}") for table in SEALED)  # noqa: S608
    assert partition.check() == []
    partition.close()


@pytest.mark.parametrize("table", SEALED)
def test_a_row_that_is_gone_or_there_twice_is_noticed(path: Path, table: str) -> None:
    whole = path.read_bytes()
    change(path, f"DELETE FROM {table}")  # noqa: S608
    for _ in range(2):  # an opening that is refused changes nothing
        with pytest.raises(StorageFailedError, match=rf"p\.db is damaged: rows of {table} do not"):
            opened(path)
    path.write_bytes(whole)
    opened(path).close()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE users SET head = 1 WHERE uid = 1", "rows of users"),
        ("UPDATE users SET user_id = 'Bob' WHERE uid = 1", "rows of users"),
        ("UPDATE generations SET base_seq = 1 WHERE generation = 2", "rows of generations"),
        ("UPDATE pins SET seq = 1", "rows of pins"),
        ("UPDATE outbox SET attempts = 1", "rows of outbox"),
        ("UPDATE results SET uid = 3 - uid", "rows of results"),
        ("UPDATE owner SET floor = 9", "rows of owner"),
        ("UPDATE seal SET commits = commits - 1", "its seal does not verify"),
        ("DELETE FROM seal", "its seal does not verify"),
    ],
)
def test_a_changed_row_is_noticed(path: Path, statement: str, words: str) -> None:
    change(path, statement)
    with pytest.raises(StorageFailedError, match=words):
        opened(path)


def test_a_text_that_is_no_text_any_more(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace("李娜".encode(), b"\xff\xfe\xfd\xff\xfe\xfd"))
    with pytest.raises(StorageFailedError, match=r"p\.db is damaged"):
        opened(path)


def test_what_failed_is_not_in_the_sums(path: Path) -> None:
    partition = opened(path)
    for count in (1, 0):  # a transaction that is rolled back, and one that is not
        try:
            with partition.write() as txn:
                txn.append(ANN, [b"more"])
                1 / count
        except ZeroDivisionError:
            pass
    partition.scrub()  # all rows move
    with partition.write() as txn:
        txn.erase(LI)
    partition.close()
    again = opened(path)
    assert again.check() == []
    assert again.state(ANN) == (2, 3)
    again.close()


def test_the_end_of_the_log_is_missed(path: Path, tmp_path: Path) -> None:
    partition = opened(path)
    log = tmp_path / "p.db-wal"
    sizes = []
    for number in range(3):
        with partition.write() as txn:
            txn.append(ANN, [b"%d" % number])
        sizes.append(log.stat().st_size)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("p.db", "p.db-wal", "p.commits"):
        shutil.copy(tmp_path / name, copy)
    partition.close()
    whole = (copy / "p.db-wal").read_bytes()
    (copy / "p.db-wal").write_bytes(whole[: sizes[1]])
    for _ in range(2):
        with pytest.raises(StorageFailedError, match="its last 1 transaction of 6 are gone"):
            opened(copy / "p.db")
    (copy / "p.db-wal").write_bytes(whole)
    with_all = opened(copy / "p.db")
    assert with_all.state(ANN) == (2, 5)
    with_all.close()


def test_a_witness_that_is_behind_damaged_or_gone_proves_nothing(path: Path) -> None:
    witness = path.with_suffix(".commits")
    number = Witness(path).read()
    assert number == 2  # the opening, and the write
    for content in (b"", b"junk" * 5, witness.read_bytes()[:-1], None):
        if content is None:
            witness.unlink()
        else:
            witness.write_bytes(content)
        assert Witness(path).read() == 0
        opened(path).close()
    assert Witness(path).read() == number + 4


def test_a_journal_of_a_newer_version_is_refused(path: Path) -> None:
    partition = opened(path)
    with partition._db.write():
        partition._db.rows("UPDATE owner SET journal_format = ?", (JOURNAL_FORMAT + 1,))
    partition.close()
    with pytest.raises(DataFolderError, match="written by a newer version"):
        opened(path)


def test_the_catalog_is_sealed_too(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    catalog = Catalog.open(path, partitions=4)
    catalog.add_world(World("世界", "e", 8, "spec", 1.0))
    catalog.add_tag("世界", "tag", 2.0)
    catalog.begin_intent("op", "drop", b"plan")
    catalog.close()
    whole = path.read_bytes()
    for statement in (
        "UPDATE folder SET partitions = 5",
        "DELETE FROM worlds",
        "UPDATE tags SET tag = 'other'",
        "DELETE FROM intents",
    ):
        change(path, statement)
        with pytest.raises(StorageFailedError, match=r"catalog\.db is damaged"):
            Catalog.open(path, partitions=4)
        path.write_bytes(whole)
    catalog = Catalog.open(path, partitions=4)
    assert (catalog.partitions, len(catalog.worlds()), len(catalog.unfinished())) == (4, 1, 1)
    catalog.close()


# -- interrupts ------------------------------------------------------------------------


class Interrupter:
    """Raises KeyboardInterrupt before a certain line of the store, as Ctrl-C does, once."""

    def __init__(self, after_lines: int) -> None:
        self.left = after_lines
        self.came = False

    def trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        """Count the lines of the modules that carry a transaction out."""
        if Path(frame.f_code.co_filename).name not in {"sqlite.py", "seal.py"}:
            return None
        if event == "line" and not self.came:
            self.left -= 1
            if self.left < 0:
                self.came = True
                raise KeyboardInterrupt
        return self.trace


@pytest.mark.parametrize("change", ["append", "enqueue", "keep_result"])
def test_an_interrupt_between_any_two_lines_of_a_transaction_damages_nothing(
    path: Path, change: str
) -> None:
    def write(partition: Partition, name: str) -> None:
        with partition.write() as txn:
            match change:
                case "append":
                    txn.append(ANN, [name.encode()])
                case "enqueue":
                    txn.enqueue(ANN, [name])
                case _:
                    txn.keep_result(name, ANN, b"f", b"r")

    before, place = sys.gettrace(), 0
    while True:
        partition = opened(path)
        interrupter = Interrupter(place)
        sys.settrace(interrupter.trace)
        try:
            with suppress(KeyboardInterrupt):
                write(partition, f"interrupted {place}")
        finally:
            sys.settrace(before)
        write(partition, f"later {place}")
        partition.close()
        again = opened(path)  # which compares the seal with what is there
        assert again.check() == []
        again.close()
        if not interrupter.came:
            break
        place += 1
    assert place > 30  # so many lines were there to be interrupted
