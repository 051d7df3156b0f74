"""A partition that is damaged or lost, on both backends: only its own users are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import Factory

import reverie
from reverie import errors
from reverie.memory_graph.ids import DEFAULT_WORLD, Key, partition_of

NAMES = ("ana", "bo", "小明", "李娜", "carl", "dora")


@pytest.mark.parametrize("how", ["cut", "lost", "changed"])
def test_a_damaged_partition_refuses_its_own_users_only(
    runtime_factory: Factory, tmp_path: Path, how: str
) -> None:
    rt = runtime_factory(partitions=2, background=False)
    for name in NAMES:
        rt.user(name).remember(f"{name} keeps bees. 养蜂。")
    digests = {name: rt.user(name).digest() for name in NAMES}
    rt.close()
    path = tmp_path / "data" / "partitions" / "p0001.db"
    data = path.read_bytes()
    if how == "lost":
        path.unlink()
    elif how == "cut":
        path.write_bytes(data[:5000])
    else:
        world = DEFAULT_WORLD.encode()  # of the first row that holds it before a user's name
        there = [n.encode() for n in NAMES if partition_of(Key(DEFAULT_WORLD, n), 2) == 1]
        assert world + there[0] in data
        path.write_bytes(data.replace(world + there[0], world[::-1] + there[0], 1))
    rt = runtime_factory(partitions=2, background=False)
    for name in NAMES:
        user = rt.user(name)
        if partition_of(Key(DEFAULT_WORLD, name), 2) == 0:
            assert user.digest() == digests[name]
            continue
        for call in (user.digest, lambda u=user: u.search("bees"), lambda u=user: u.remember("x")):
            with pytest.raises(errors.StorageError, match=r"p0001\.db"):
                call()
    for of_all in (rt.users, lambda: rt.checkpoint("a"), rt.stats):
        with pytest.raises(errors.StorageError, match=r"p0001\.db"):
            of_all()
    assert any("p0001.db" in line for line in rt.check())
    assert rt.checkpoints() == []
    rt.close()
    done = reverie.repair(tmp_path / "data")
    assert done.files == ["p0001.db"]
    rt = runtime_factory(partitions=2, background=False)
    for name in NAMES:
        assert rt.user(name).digest() in {digests[name], ""}
        if how == "changed":
            assert rt.user(name).digest() == digests[name]
        assert rt.user(name).remember("It goes on. 继续。").op == "ADD"
