"""Erasure leaves no copy in any file, and the search that proves it finds what is there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.errors import InvalidValueError, OverloadedError, UnknownCheckpointError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import DataFolder, ErasureCounts, Partition, erase, search_files

NEEDLE = "对阿琳娜的秘密：密码是榴莲 🐉 sekrit-0451"


def fill(partition: Partition, key: Key, secret: str) -> None:
    """Write `secret` into every table, also into rows that were pruned or replaced since."""
    text = secret.encode()
    with partition.write() as txn:
        txn.append(key, [b"event of " + text] * 5)
        txn.save_snapshot(key, 3, b"old state " + text * 300, embedder="e")
        txn.pin(key.world, f"tag-{key.world}", operation="pin")
    for _ in range(4):
        with partition.write() as txn:
            head = txn.append(key, [os.urandom(1000) + text, text + os.urandom(3000)])
            txn.save_snapshot(key, head, os.urandom(2000) + text * 50, embedder="e")
            txn.keep_result(f"request-{key.user_id}-{head}", key, b"f", b"answer " + text)
            txn.enqueue(key, [f"turn {head} {secret}", f"failed {head} {secret}"])
            txn.fail(key, f"failed {head} {secret}", f"model said {secret}")
            txn.quarantine(key, f"failed {head} {secret}")
    with partition.write() as txn:
        txn.rewind(key.world, f"tag-{key.world}", operation=f"rewind-{len(secret)}")
        txn.append(key, [text])


def test_erasing_leaves_no_needle_in_any_file(tmp_path: Path) -> None:
    ann, bob = Key("town", "阿琳娜-the-player"), Key("sea", "bob-the-other")
    needles = [NEEDLE.encode(), ann.user_id.encode(), "榴莲".encode(), b"sekrit-0451"]
    with DataFolder.open(tmp_path / "data", owner="test", partitions=2) as folder:
        partition = folder.open_partition(1)
        fill(partition, bob, "the secret of bob")
        fill(partition, ann, NEEDLE)
        bob_before = partition.export_user(bob)
        assert all(search_files(folder.path, needles).values())
        with partition.write() as txn:
            counts = txn.erase(ann)
        assert counts.events > 0
        assert counts.snapshots > 0
        assert counts.results == 4
        assert counts.pins == 1
        assert counts.generations == 2
        partition.scrub()
        assert search_files(folder.path, needles) == {needle: [] for needle in needles}
        assert search_files(folder.path, [b"the secret of bob"])[b"the secret of bob"]
        assert partition.export_user(bob) == bob_before
        assert partition.check() == []
        with partition.write() as txn:
            assert txn.erase(ann) == ErasureCounts()
            assert txn.result_of("request-阿琳娜-the-player-7", b"f") is None
        partition.close()
    found = search_files(tmp_path, needles)
    assert not any(found.values())


def test_rows_that_sqlite_moved_leave_no_copy(partition: Partition) -> None:
    """Overwriting where a row lies is not enough: this is why `scrub` builds the file anew."""
    rng = random.Random(2)
    keys = [Key("w", f"user-{i:03d}-{rng.random()}") for i in range(100)]
    for _ in range(150):
        with partition.write() as txn:
            for key in rng.choices(keys, k=20):
                size = rng.choice([20, 200, 1000, 1900, 5000])
                head = txn.append(key, [key.user_id.encode() + rng.randbytes(size)])
                if rng.random() < 0.1:
                    txn.save_snapshot(key, head, key.user_id.encode() * 20, embedder="e")
    erased = keys[::2]
    for key in erased:
        with partition.write() as txn:
            txn.erase(key)
    partition.scrub()
    folder = partition.path.parent
    found = search_files(folder, [key.user_id.encode() for key in keys])
    assert not any(found[key.user_id.encode()] for key in erased)
    assert all(found[key.user_id.encode()] for key in keys[1::2])


def test_an_erased_user_is_forgotten_but_its_generation_is_not_reused(partition: Partition) -> None:
    ann = Key("town", "Ann")
    fill(partition, ann, "x")
    generation = partition.next_generation(ann)
    with partition.write() as txn:
        txn.erase(ann)
    assert (partition.state(ann), partition.users("town")) == (None, [])
    assert partition.next_generation(ann) == generation + 1
    with partition.write() as txn:
        txn.append(ann, [b"new life"])
        txn.append(Key("town", "Bob"), [b"x"])
    assert partition.state(ann) == (generation + 1, 1)
    assert partition.tags("town") == ["tag-town"]
    assert list(partition.export_pin("town", "tag-town")) == []
    with pytest.raises(UnknownCheckpointError):
        partition.export_pin("town", "tag-sea")


def test_a_reader_in_the_way_of_scrubbing_is_told(partition: Partition) -> None:
    with partition.write() as txn:
        txn.append(Key("w", "u"), [b"x"])
    other = Partition.open(partition.path, index=0, owner="reader")
    partition._db.rows("PRAGMA busy_timeout = 50")
    with other._db.read():
        assert other.worlds() == ["w"]
        with pytest.raises(OverloadedError):
            partition.scrub()
    partition.scrub()
    other.close()


# -- the search --------------------------------------------------------------------------


def test_search_finds_matches_across_chunks_and_in_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "CHUNK_BYTES", 64)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.db-wal").write_bytes(
        b"." * 60 + b"needle" + b"." * 61 + b"needle"
    )
    (tmp_path / "b").write_bytes(b"aaaa")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert search_files(tmp_path, [b"needle", b"aa", b"none", b"aa"]) == {
        b"needle": [(tmp_path / "deep" / "er" / "a.db-wal", 2)],
        b"aa": [(tmp_path / "b", 3)],
        b"none": [],
    }
    assert search_files(tmp_path / "missing", [b"x"]) == {b"x": []}
    assert search_files(tmp_path, []) == {}


@pytest.mark.parametrize("needle", [b"", b"x" * (erase.MAX_NEEDLE_BYTES + 1)])
def test_needles_have_bounds(tmp_path: Path, needle: bytes) -> None:
    with pytest.raises(InvalidValueError):
        search_files(tmp_path, [b"fine", needle])


PARTS = [b"a", b"b", b"aaaaaaaa", b"abababab"]


@given(
    text=st.lists(st.sampled_from(PARTS), max_size=60).map(b"".join),
    needles=st.lists(
        st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(b"".join),
        min_size=1,
        max_size=30,
        unique=True,
    ),
    chunk=st.integers(1, 40),
    filtered=st.sampled_from([1, 1000]),
)
def test_search_counts_like_a_loop(
    tmp_path_factory: pytest.TempPathFactory,
    text: bytes,
    needles: list[bytes],
    chunk: int,
    filtered: int,
) -> None:
    folder = tmp_path_factory.mktemp("search")
    (folder / "file").write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erase, "CHUNK_BYTES", chunk)
        patch.setattr(erase, "MIN_FILTERED", filtered)
        found = search_files(folder, needles)
    for needle in needles:
        count = sum(text.startswith(needle, at) for at in range(len(text)))
        assert found[needle] == ([(folder / "file", count)] if count else [])
