"""Who owns a partition: what was replaced stays so, whatever it tries, and a lock has a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.memory_graph.errors import DataFolderLockedError, FencedError, StorageFailedError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition, sqlite

KEY = Key("town", "李娜")


def opened(path: Path, owner: str, held_by: str | None = None) -> Partition:
    return Partition.open(path / "p.db", index=0, owner=owner, held_by=held_by)


def test_reopening_takes_nothing_back(tmp_path: Path) -> None:
    old = opened(tmp_path, "old")
    old._db._break("planted")
    again = old.reopen(index=0)
    with again.write() as txn:
        txn.append(KEY, [b"1"])
    new = opened(tmp_path, "new")
    again._db._break("planted")
    for _ in range(2):  # it may try as often as it likes
        with pytest.raises(FencedError, match="taken over by new"):
            again.reopen(index=0)
    with new.write() as txn:
        assert txn.append(KEY, [b"2"]) == 2
    assert new.check() == []
    new.close()


def test_who_comes_back_gets_only_what_is_still_held_in_its_name(tmp_path: Path) -> None:
    opened(tmp_path, "client 1").close()
    first = opened(tmp_path, "client 1 (actor 7)", held_by="client 1")
    second = opened(tmp_path, "client 1 (actor 8)", held_by="client 1")  # an actor was restarted
    with pytest.raises(FencedError):
        first.require_ownership()
    second.require_ownership()
    new = opened(tmp_path, "client 2")
    with pytest.raises(FencedError, match="taken over by client 2"):
        opened(tmp_path, "client 1 (actor 9)", held_by="client 1")
    new.require_ownership()
    assert new.epoch == 4  # the one that was refused has changed nothing
    for partition in (first, second, new):
        partition.close()


def test_what_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    partition = opened(tmp_path, "owner")
    partition.close()
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(StorageFailedError):
        partition.reopen(index=0)
    with pytest.raises(StorageFailedError):
        opened(tmp_path, "owner", held_by="owner")
    assert not (tmp_path / "p.db").exists()


def test_whoever_is_stopped_inside_a_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.05)
    holder = opened(tmp_path, "reverie 1 (actor 7)")
    with holder.write() as txn:
        txn.append(KEY, [b"1"])
        with pytest.raises(
            DataFolderLockedError, match=r"write of reverie 1 \(actor 7\)"
        ) as caught:
            opened(tmp_path, "new")
    assert caught.value.details["owner"] == "reverie 1 (actor 7)"
    new = opened(tmp_path, "new")  # it has ended, and its write is there
    assert new.state(KEY) == (1, 1)
    for partition in (holder, new):
        partition.close()
