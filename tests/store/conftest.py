"""Partitions for tests; whatever a test did, the file must be sound afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reverie.memory_graph.store import Partition

OpenPartition = Callable[..., Partition]


@pytest.fixture
def open_partition(tmp_path: Path) -> Iterator[OpenPartition]:
    opened: list[Partition] = []

    def open_one(name: str = "p0000.db", *, owner: str = "test") -> Partition:
        opened.append(Partition.open(tmp_path / name, index=0, owner=owner))
        return opened[-1]

    yield open_one
    for partition in opened:
        partition.close()
    for path in {partition.path for partition in opened}:
        checked = Partition.open(path, index=0, owner="checker")
        try:
            assert checked.check() == []
        finally:
            checked.close()


@pytest.fixture
def partition(open_partition: OpenPartition) -> Partition:
    return open_partition()
