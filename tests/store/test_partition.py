"""A partition's journal, results, outbox and fence."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.memory_graph.errors import (
    ClosedError,
    DataFolderError,
    FencedError,
    InvariantError,
    RequestReusedError,
    StaleGenerationError,
    StorageFailedError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition, results

ANN = Key("town", "Ann")
IDS = [
    "Ann",
    "ann",
    "玩家一号",
    "👩‍🚀🐉",
    "../../etc/passwd",
    "a'; DROP TABLE users; --",
    "x" * 512,
]


def test_append_numbers_events_from_one_without_a_gap(
    partition: Partition, open_partition: Callable[..., Partition]
) -> None:
    with partition.write() as txn:
        assert txn.append(ANN, [b"one", b"two"]) == 2
    with partition.write() as txn:
        assert txn.append(ANN, [b"three"]) == 3
        assert txn.append(ANN, []) == 3
    partition.close()
    loaded = open_partition().load(ANN)
    assert loaded is not None
    assert (loaded.generation, loaded.seq, loaded.snapshot, loaded.warnings) == (1, 3, None, [])
    assert loaded.tail == [(1, b"one"), (2, b"two"), (3, b"three")]


def test_ids_are_compared_byte_for_byte_and_never_become_paths(
    partition: Partition, tmp_path: Path
) -> None:
    with partition.write() as txn:
        for i, user in enumerate(IDS):
            txn.append(Key("世界", user), [f"event {i}".encode()])
            txn.append(Key(user, "世界"), [b"other"])
    for i, user in enumerate(IDS):
        loaded = partition.load(Key("世界", user))
        assert loaded is not None
        assert loaded.tail == [(1, f"event {i}".encode())]
    assert partition.users("世界") == sorted(IDS)
    assert partition.worlds() == sorted([*IDS, "世界"])
    ours = {"p0000.db", "p0000.db-wal", "p0000.db-shm", "p0000.commits"}
    assert {p.name for p in tmp_path.iterdir()} <= ours


def test_nobody_there(partition: Partition) -> None:
    assert partition.state(ANN) is None
    assert partition.load(ANN) is None
    assert partition.export_user(ANN) is None
    assert (partition.users("town"), partition.worlds()) == ([], [])
    assert (partition.tail_bytes(ANN), partition.snapshot_bytes(ANN)) == (0, 0)
    assert partition.next_generation(ANN) == 1
    with pytest.raises(InvariantError, match="Ann"), partition.write() as txn:
        txn.enqueue(ANN, ["t1"])


def test_an_exception_in_the_body_leaves_nothing(partition: Partition) -> None:
    with pytest.raises(ZeroDivisionError), partition.write() as txn:  # noqa: PT012
        txn.append(ANN, [b"lost"])
        raise ZeroDivisionError
    assert partition.load(ANN) is None


def test_a_transaction_ends_with_its_block_and_does_not_nest(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"x"])
        with pytest.raises(InvariantError), partition.write():
            pass
    with pytest.raises(ClosedError):
        txn.append(ANN, [b"y"])
    assert partition.state(ANN) == (1, 1)


def test_reads_within_a_transaction_see_its_writes(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"x"])
        loaded = partition.load(ANN)
        assert loaded is not None
        assert loaded.tail == [(1, b"x")]


def test_a_failed_statement_cannot_be_swallowed(partition: Partition) -> None:
    with pytest.raises(StorageFailedError, match="cannot go on"), partition.write() as txn:  # noqa: PT012
        txn.append(ANN, [b"half"])
        txn.keep_result("r", ANN, b"f", b"result")
        with pytest.raises(InvariantError):
            txn.keep_result("r", ANN, b"f", b"again")
        txn.append(ANN, [b"more"])
    assert partition.load(ANN) is None
    with partition.write() as txn:  # the partition itself is well
        txn.append(ANN, [b"x"])


def test_a_partition_may_change_threads(partition: Partition) -> None:
    def work() -> None:
        with partition.write() as txn:
            txn.append(ANN, [b"x"])

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert partition.state(ANN) == (1, 3)


# -- snapshots ---------------------------------------------------------------------------


def test_the_two_newest_snapshots_and_what_follows_the_older_are_kept(partition: Partition) -> None:
    events = [f"event-{i}".encode() for i in range(1, 31)]
    for i, event in enumerate(events, 1):
        with partition.write() as txn:
            txn.append(ANN, [event])
            if i % 10 == 0:
                txn.save_snapshot(ANN, i, b"S" * i, embedder="minilm", format_version=7)
    loaded = partition.load(ANN)
    assert loaded is not None
    assert (loaded.snapshot, loaded.snapshot_seq, loaded.tail) == (b"S" * 30, 30, [])
    assert (loaded.embedder, loaded.snapshot_format) == ("minilm", 7)
    assert partition._db.rows("SELECT seq FROM snapshots ORDER BY seq") == [(20,), (30,)]
    assert partition._db.rows("SELECT MIN(seq), MAX(seq) FROM journal") == [(21, 30)]


def test_sizes_tell_when_a_snapshot_is_due(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"12345", b"678"])
    assert (partition.tail_bytes(ANN), partition.snapshot_bytes(ANN)) == (8, 0)
    with partition.write() as txn:
        txn.save_snapshot(ANN, 1, b"state", embedder="e")
    assert (partition.tail_bytes(ANN), partition.snapshot_bytes(ANN)) == (3, 5)


def test_a_snapshot_must_lie_within_the_history(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"x"])
    for seq in (-1, 2):
        with pytest.raises(InvariantError), partition.write() as txn:
            txn.save_snapshot(ANN, seq, b"", embedder="e")


# -- requests ----------------------------------------------------------------------------


def test_a_request_sent_twice_gets_its_first_result(partition: Partition) -> None:
    with partition.write() as txn:
        assert txn.result_of("r1", b"print") is None
        txn.append(ANN, [b"x"])
        txn.keep_result("r1", ANN, b"print", b"result")
        txn.keep_result("forget-1", None, b"print", b"receipt")
    with partition.write() as txn:
        assert txn.result_of("r1", b"print") == b"result"
        assert txn.result_of("forget-1", b"print") == b"receipt"
        with pytest.raises(RequestReusedError):
            txn.result_of("r1", b"another")


def test_a_result_before_the_first_event_makes_no_user_and_stays_valid(
    partition: Partition,
) -> None:
    with partition.write() as txn:
        txn.keep_result("noop", ANN, b"f", b"nothing")
    assert partition.users("town") == []
    with partition.write() as txn:
        txn.append(ANN, [b"x"])
        assert txn.result_of("noop", b"f") == b"nothing"


def test_a_request_from_before_a_rewind_is_stale(partition: Partition) -> None:
    bob = Key("town", "Bob")
    with partition.write() as txn:
        txn.append(ANN, [b"x"])
        txn.keep_result("before", ANN, b"f", b"r")
        txn.pin("town", "save", operation="op1")
        txn.append(bob, [b"x"])
        txn.keep_result("of-bob", bob, b"f", b"r")
        txn.rewind("town", "save", operation="op2")
        for request in ("before", "of-bob"):
            with pytest.raises(StaleGenerationError):
                txn.result_of(request, b"f")


def test_results_are_bounded(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_RESULTS", 100)
    monkeypatch.setattr(results, "PRUNE_EVERY", 10)
    with partition.write() as txn:
        for i in range(255):
            txn.keep_result(f"r{i}", ANN, b"f", b"r")
        assert txn.result_of("r254", b"f") == b"r"
        assert txn.result_of("r155", b"f") == b"r"
        assert txn.result_of("r100", b"f") is None
    ((count,),) = partition._db.rows("SELECT COUNT(*) FROM results")
    assert 100 <= count <= 110


# -- the outbox --------------------------------------------------------------------------


def test_turns_wait_in_order_until_they_are_done(partition: Partition) -> None:
    bob = Key("town", "Bob")
    with partition.write() as txn:
        txn.append(bob, [b"x"])
        txn.append(ANN, [b"x"])
        txn.enqueue(bob, ["b1"])
        txn.enqueue(ANN, ["z", "a", "轮次"])
        txn.enqueue(bob, ["b2", "b1"])
    assert [tuple(p) for p in partition.pending(10)] == [
        (bob, 1, ["b1", "b2"]),
        (ANN, 1, ["z", "a", "轮次"]),
    ]
    assert [p.key for p in partition.pending(1)] == [bob]
    assert [p.turn_ids for p in partition.pending(10, per_user=1)] == [["b1"], ["z"]]
    assert partition.pending_of(ANN, 2) == ["z", "a"]
    with partition.write() as txn:
        txn.dequeue(bob, ["b1", "b2", "unknown"])
    assert [p.key for p in partition.pending(10)] == [ANN]


def test_a_turn_that_failed_twice_is_put_aside_and_can_return(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"x"])
        txn.enqueue(ANN, ["t1", "t2"])
        assert txn.fail(ANN, "t1", "first") == 1
        assert txn.fail(ANN, "t1", "second" * 1000) == 2
        assert txn.fail(ANN, "unknown", "?") == 0
        txn.quarantine(ANN, "t1")
    assert partition.pending_of(ANN, 9) == ["t2"]
    (turn,) = partition.quarantined("town")
    assert (turn.key, turn.turn_id, turn.attempts) == (ANN, "t1", 2)
    assert turn.error.startswith("secondsecond")
    assert len(turn.error) == 500
    assert partition.quarantined() == [turn]
    assert partition.quarantined("elsewhere") == []
    with partition.write() as txn:
        assert txn.requeue(ANN, ["t1", "t2"]) == 1
        assert txn.fail(ANN, "t1", "third") == 1
    assert partition.pending_of(ANN, 9) == ["t1", "t2"]


# -- ownership ---------------------------------------------------------------------------


def test_a_second_opener_fences_the_first(open_partition: Callable[..., Partition]) -> None:
    first = open_partition(owner="first")
    with first.write() as txn:
        txn.append(ANN, [b"x"])
    second = open_partition(owner="second")
    assert second.epoch == first.epoch + 1
    with pytest.raises(FencedError, match="second"), first.write() as txn:
        txn.append(ANN, [b"stale"])
    with second.write() as txn:
        assert txn.append(ANN, [b"y"]) == 2
    loaded = first.load(ANN)  # reading is no harm
    assert loaded is not None
    assert loaded.seq == 2


def test_a_file_of_another_number_kind_or_format_is_refused(
    partition: Partition, tmp_path: Path
) -> None:
    partition.close()
    with pytest.raises(DataFolderError, match="partition 0, not 3"):
        Partition.open(partition.path, index=3, owner="x")
    text = tmp_path / "text.db"
    text.write_text("no database at all, but a text that is long enough to be read\n" * 100)
    with pytest.raises(DataFolderError):
        Partition.open(text, index=0, owner="x")
    assert text.read_text().startswith("no database")
    newer = Partition.open(tmp_path / "newer.db", index=0, owner="x")
    newer._db.rows("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(DataFolderError, match="format 99"):
        Partition.open(newer.path, index=0, owner="x")


def test_a_strangers_database_stays_as_it_is(partition: Partition, tmp_path: Path) -> None:
    partition._db.rows(f"VACUUM INTO '{tmp_path / 'other.db'}'")
    other = tmp_path / "other.db"
    data = bytearray(other.read_bytes())
    data[68:72] = b"\0\0\0\0"  # the application id
    other.write_bytes(data)
    with pytest.raises(DataFolderError, match="something else"):
        Partition.open(other, index=0, owner="x")
    assert other.read_bytes() == bytes(data)


def test_a_closed_partition_says_so(partition: Partition) -> None:
    partition.close()
    partition.close()
    with pytest.raises(StorageFailedError, match="closed"):
        partition.state(ANN)
