"""Save slots against a trivial twin: plain lists that are copied."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reverie.memory_graph.errors import (
    CheckpointExistsError,
    InvariantError,
    UnknownCheckpointError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Loaded, Partition, UserImage

ANN, BOB = Key("town", "Ann"), Key("town", "Bob")


def events_of(loaded: Loaded | UserImage) -> list[bytes]:
    """Return all events: those that the snapshot holds (as a MessagePack list) and the tail."""
    before = [] if loaded.snapshot is None else msgspec.msgpack.decode(loaded.snapshot)
    assert len(before) == loaded.snapshot_seq
    assert [seq for seq, _ in loaded.tail] == list(range(len(before) + 1, loaded.seq + 1))
    return [*before, *(event for _, event in loaded.tail)]


def history(partition: Partition, key: Key) -> list[bytes] | None:
    loaded = partition.load(key)
    return None if loaded is None else events_of(loaded)


def test_rewind_returns_to_the_pin_and_later_tags_stay(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"1", b"2"])
        txn.enqueue(ANN, ["t1"])
        assert txn.pin("town", "early", operation="op1") == 1
        txn.append(ANN, [b"3"])
        txn.append(BOB, [b"b"])
        txn.dequeue(ANN, ["t1"])
        assert txn.pin("town", "late", operation="op2") == 2
        assert txn.rewind("town", "early", operation="op3") == 1
    assert history(partition, ANN) == [b"1", b"2"]
    assert partition.state(ANN) == (2, 2)
    assert partition.users("town") == ["Ann"]
    assert partition.load(BOB) is None
    assert partition.next_generation(BOB) == 2
    assert partition.pending_of(ANN, 9) == ["t1"]
    with partition.write() as txn:
        txn.append(ANN, [b"other"])
        txn.append(BOB, [b"new"])
    assert partition.state(BOB) == (2, 1)
    with partition.write() as txn:
        txn.rewind("town", "late", operation="op4")
    assert history(partition, ANN) == [b"1", b"2", b"3"]
    assert history(partition, BOB) == [b"b"]
    assert partition.pending_of(ANN, 9) == []
    assert partition.tags("town") == ["early", "late"]
    assert partition.tags("elsewhere") == []


def test_operations_done_twice_do_nothing_twice(
    partition: Partition, open_partition: Callable[..., Partition]
) -> None:
    other = open_partition("p0001.db")
    with partition.write() as txn:
        txn.append(ANN, [b"1"])
        txn.pin("town", "save", operation="op1")
        txn.append(ANN, [b"2"])
        assert txn.pin("town", "save", operation="op1") == 1  # not moved
        with pytest.raises(CheckpointExistsError):
            txn.pin("town", "save", operation="other")
        txn.rewind("town", "save", operation="op2")
        txn.append(ANN, [b"3"])
        assert txn.rewind("town", "save", operation="op2") == 1  # not again
    assert history(partition, ANN) == [b"1", b"3"]
    (image,) = partition.export_pin("town", "save")
    with other.write() as txn:
        assert txn.import_user(image, "copy", operation="op3")
        assert not txn.import_user(image, "copy", operation="op3")
        with pytest.raises(CheckpointExistsError):
            txn.import_user(image, "copy", operation="op4")
    assert history(other, Key("copy", "Ann")) == [b"1"]
    with partition.write() as txn:
        assert txn.unpin("town", "save") == 1
        assert txn.unpin("town", "save") == 0


def test_unknown_tags(partition: Partition) -> None:
    with pytest.raises(UnknownCheckpointError):
        partition.export_pin("town", "nope")
    with pytest.raises(UnknownCheckpointError), partition.write() as txn:
        txn.rewind("town", "nope", operation="op")


def test_a_world_without_users_can_be_pinned(partition: Partition) -> None:
    with partition.write() as txn:
        assert txn.pin("town", "empty", operation="op1") == 0
        txn.append(ANN, [b"1"])
        assert txn.rewind("town", "empty", operation="op2") == 0
    assert partition.users("town") == []
    assert partition._db.rows("SELECT COUNT(*) FROM journal") == [(0,)]  # nothing needs it


def test_a_snapshot_begun_before_a_rewind_is_refused(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"1", b"2"])
        txn.pin("town", "save", operation="op1")
        txn.rewind("town", "save", operation="op2")
    with pytest.raises(InvariantError), partition.write() as txn:
        txn.save_snapshot(ANN, 1, b"", embedder="e")


def test_an_image_carries_everything(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"1", b"2", b"3"])
        txn.save_snapshot(ANN, 2, msgspec.msgpack.encode([b"1", b"2"]), embedder="e5")
        txn.enqueue(ANN, ["t1", "t2"])
        txn.fail(ANN, "t2", "why")
        txn.quarantine(ANN, "t2")
    image = partition.export_user(ANN)
    assert image is not None
    image = msgspec.msgpack.decode(msgspec.msgpack.encode(image), type=UserImage)
    with partition.write() as txn:
        txn.import_user(image, "副本", operation="op")
    copy = Key("副本", "Ann")
    assert history(partition, copy) == [b"1", b"2", b"3"]
    assert partition.pending_of(copy, 9) == ["t1"]
    assert [(t.turn_id, t.error) for t in partition.quarantined("副本")] == [("t2", "why")]
    assert partition.export_user(copy) == msgspec.structs.replace(image, key=copy)
    assert (partition.tail_bytes(copy), partition.snapshot_bytes(copy)) == (1, 7)


def test_what_only_a_pin_kept_goes_with_it(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"old"] * 5)
        txn.pin("town", "save", operation="op1")
        for _ in range(3):
            head = txn.append(ANN, [b"new"] * 5)
            state = msgspec.msgpack.encode([b"old"] * 5 + [b"new"] * (head - 5))
            txn.save_snapshot(ANN, head, state, embedder="e")
    ((before,),) = partition._db.rows("SELECT COUNT(*) FROM journal")
    assert before == 10  # 1 to 5 for the pin, 16 to 20 after the older snapshot
    with partition.write() as txn:
        txn.unpin("town", "save")
    assert partition._db.rows("SELECT MIN(seq), COUNT(*) FROM journal") == [(16, 5)]


def test_pruning_for_a_pin_keeps_what_the_head_needs(partition: Partition) -> None:
    events = [b"%d" % i for i in range(1, 31)]
    with partition.write() as txn:
        for snapshot in (5, 10):
            txn.append(ANN, events[snapshot - 5 : snapshot])
            state = msgspec.msgpack.encode(events[:snapshot])
            txn.save_snapshot(ANN, snapshot, state, embedder="e")
        txn.append(ANN, events[10:20])
        txn.pin("town", "kept", operation="op1")
        txn.pin("town", "lifted", operation="op2")
        txn.append(ANN, events[20:])
        txn.unpin("town", "lifted")  # the pin needs 11 to 20, within 6 to 30 of the head
    assert history(partition, ANN) == events
    assert partition._db.rows("SELECT MIN(seq), MAX(seq), COUNT(*) FROM journal") == [(6, 30, 25)]
    with partition.write() as txn:
        for head in (28, 30):
            state = msgspec.msgpack.encode(events[:head])
            txn.save_snapshot(ANN, head, state, embedder="e")
    (image,) = partition.export_pin("town", "kept")
    assert events_of(image) == events[:20]
    kept = [*range(11, 21), 29, 30]  # of the pin only one snapshot is kept, the one at 10
    assert partition._db.rows("SELECT seq FROM journal ORDER BY seq") == [(seq,) for seq in kept]


def test_a_snapshot_older_than_the_newest_is_passed_over(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(ANN, [b"1", b"2"])
        txn.save_snapshot(ANN, 2, msgspec.msgpack.encode([b"1", b"2"]), embedder="e")
    image = partition.export_user(ANN)
    assert image is not None
    with partition.write() as txn:
        txn.import_user(image, "copy", operation="op")  # has no events, only the state after them
        txn.save_snapshot(Key("copy", "Ann"), 1, msgspec.msgpack.encode([b"1"]), embedder="e")
    assert partition._db.rows("SELECT seq FROM snapshots") == [(2,), (2,)]
    assert partition.check() == []


NAMES = st.sampled_from(["Ann", "小明", "🐉"])
TAGS = st.sampled_from(["a", "b", "c"])
WORLDS = st.sampled_from(["town", "copy"])


class Twin:
    """One user: its events, its waiting turns, and where its present generation began."""

    def __init__(self, events: list[bytes], turns: list[str], base: int = 0) -> None:
        self.events, self.turns, self.base = list(events), list(turns), base


class SaveSlots(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="reverie-slots-"))
        self.count = 0
        self.live: dict[Key, Twin] = {}
        self.pins: dict[tuple[str, str], dict[Key, Twin]] = {}
        self.generations: dict[Key, int] = {}
        self.partition = self._opened()

    def _opened(self) -> Partition:
        partition = Partition.open(self.folder / "p.db", index=0, owner="twin")
        partition._db.rows("PRAGMA synchronous = OFF")  # nobody cuts the power here
        return partition

    def _next(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def _began_again(self, key: Key) -> None:
        """The generation of a user that went back, or came back, is one it never had."""
        state = self.partition.state(key)
        assert state is not None
        assert state[0] > self.generations.get(key, 0)
        self.generations[key] = state[0]

    @rule(world=WORLDS, name=NAMES, count=st.integers(0, 4))
    def append(self, world: str, name: str, count: int) -> None:
        key = Key(world, name)
        events = [self._next("e").encode() for _ in range(count)]
        with self.partition.write() as txn:
            head = txn.append(key, events)
        if key not in self.live:
            self.live[key] = Twin([], [])
            self._began_again(key)
        self.live[key].events += events
        assert head == len(self.live[key].events)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), back=st.integers(0, 2))
    def snapshot(self, data: st.DataObject, back: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.live)))
        twin = self.live[key]
        seq = max(twin.base, len(twin.events) - back)
        state = msgspec.msgpack.encode(twin.events[:seq])
        with self.partition.write() as txn:
            txn.save_snapshot(key, seq, state, embedder="e")

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.live)))
        twin = self.live[key]
        with self.partition.write() as txn:
            if len(twin.turns) > 1:
                txn.dequeue(key, [twin.turns.pop(0)])
            turn = self._next("t")
            twin.turns.append(turn)
            txn.enqueue(key, [turn])

    @rule(world=WORLDS, tag=TAGS, again=st.booleans())
    def pin(self, world: str, tag: str, again: bool) -> None:  # noqa: FBT001 (drawn)
        if (world, tag) in self.pins:
            return
        operation = self._next("op")
        for _ in range(1 + again):
            with self.partition.write() as txn:
                txn.pin(world, tag, operation=operation)
        self.pins[world, tag] = {
            key: Twin(twin.events, twin.turns)
            for key, twin in self.live.items()
            if key.world == world
        }

    @precondition(lambda self: self.pins)
    @rule(data=st.data(), again=st.booleans())
    def rewind(self, data: st.DataObject, again: bool) -> None:  # noqa: FBT001 (drawn)
        world, tag = data.draw(st.sampled_from(sorted(self.pins)))
        operation = self._next("op")
        for _ in range(1 + again):
            with self.partition.write() as txn:
                txn.rewind(world, tag, operation=operation)
        self.live = {key: twin for key, twin in self.live.items() if key.world != world}
        for key, twin in self.pins[world, tag].items():
            self.live[key] = Twin(twin.events, twin.turns, base=len(twin.events))
            self._began_again(key)

    @precondition(lambda self: self.pins)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        world, tag = data.draw(st.sampled_from(sorted(self.pins)))
        with self.partition.write() as txn:
            txn.unpin(world, tag)
        del self.pins[world, tag]

    @precondition(lambda self: self.pins)
    @rule(data=st.data(), to=WORLDS)
    def fork(self, data: st.DataObject, to: str) -> None:
        world, tag = data.draw(st.sampled_from(sorted(self.pins)))
        operation = self._next("op")
        for image in self.partition.export_pin(world, tag):
            key = Key(to, image.key.user_id)
            if key in self.live:
                continue
            with self.partition.write() as txn:
                assert txn.import_user(image, to, operation=operation)
                assert not txn.import_user(image, to, operation=operation)
            pinned = self.pins[world, tag][image.key]
            self.live[key] = Twin(pinned.events, pinned.turns)
            self._began_again(key)

    @rule(world=WORLDS, name=NAMES)
    def erase(self, world: str, name: str) -> None:
        key = Key(world, name)
        with self.partition.write() as txn:
            txn.erase(key)
        self.live.pop(key, None)
        for pinned in self.pins.values():
            pinned.pop(key, None)

    @rule()
    def reopen(self) -> None:
        self.partition.close()
        self.partition = self._opened()

    @invariant()
    def loads_equal_the_twin(self) -> None:
        for world in ("town", "copy"):
            names = sorted(key.user_id for key in self.live if key.world == world)
            assert self.partition.users(world) == names
        for key, twin in self.live.items():
            assert history(self.partition, key) == twin.events
            assert self.partition.pending_of(key, 99) == twin.turns

    @invariant()
    def pins_equal_the_twin(self) -> None:
        for (world, tag), pinned in self.pins.items():
            images = {image.key: image for image in self.partition.export_pin(world, tag)}
            assert images.keys() == pinned.keys()
            for key, twin in pinned.items():
                assert events_of(images[key]) == twin.events
                assert [turn.turn_id for turn in images[key].pending] == twin.turns

    @invariant()
    def the_file_is_sound(self) -> None:
        assert self.partition.check() == []

    @invariant()
    def sizes_are_right(self) -> None:
        for key in self.live:
            loaded = self.partition.load(key)
            assert loaded is not None
            assert self.partition.tail_bytes(key) == sum(len(event) for _, event in loaded.tail)
            assert self.partition.snapshot_bytes(key) == len(loaded.snapshot or b"")

    def teardown(self) -> None:
        self.partition.close()
        shutil.rmtree(self.folder)


TestSaveSlots = SaveSlots.TestCase
TestSaveSlots.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
