"""What the kill -9 suite has found, each in its shortest form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import reverie
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition
from reverie.models.protocol import Float32, TextRole
from reverie.models.standin import HashEmbedder


def test_an_event_that_is_observed_again_under_its_id_is_the_same_request(tmp_path: Path) -> None:
    clock = reverie.SimulatedClock(10.0)
    with reverie.open(tmp_path, clock=clock, embedder="standin", background=False) as runtime:
        user = runtime.user("ana")
        first = user.observe("The bell rang.", request_id="bell")
        clock.advance(5.0)
        assert user.observe("The bell rang.", request_id="bell") == first
        assert user.get(first.memory_id).at == 10.0


class Fickle(HashEmbedder):
    """Gives another vector each time, as a model may whose batches differ."""

    calls = 0

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        self.calls += 1
        return super().embed([f"{text} {self.calls}" for text in texts], role)


def test_a_request_is_the_same_whatever_its_vectors(tmp_path: Path) -> None:
    with reverie.open(tmp_path, embedder=Fickle(), background=False) as runtime:
        user = runtime.user("ana")
        for send in (
            lambda: user.add(["It rains.", "It pours."], infer=False, request_id="turns"),
            lambda: user.remember("Ana likes rain.", request_id="memory"),
            lambda: user.update("m1", "Ana likes snow.", request_id="update"),
        ):
            assert send() == send()


def test_a_user_that_was_rewound_is_sound_without_its_older_snapshot(tmp_path: Path) -> None:
    """The head's two newest snapshots may lie on the way back from a pin that kept only one."""
    key = Key("town", "ana")
    partition = Partition.open(tmp_path / "p.db", index=0, owner="test")
    with partition.write() as txn:
        txn.append(key, [b"1", b"2"])
        txn.save_snapshot(key, 2, b"", embedder="e")
        txn.pin("town", "early", operation="op1")
        txn.append(key, [b"3", b"4"])
        txn.save_snapshot(key, 4, b"", embedder="e")
        txn.pin("town", "late", operation="op2")
        txn.rewind("town", "early", operation="op3")  # nothing needs the events 3 and 4 any more
        txn.rewind("town", "late", operation="op4")
    assert partition.check() == []
    with partition.write() as txn:
        txn.append(key, [b"5"])
        txn.save_snapshot(key, 5, b"", embedder="e")
    assert partition.check() == []
    partition._db.rows("DELETE FROM journal WHERE seq = 5")  # the fallback needs it
    assert len(partition.check()) == 1
    partition.close()
