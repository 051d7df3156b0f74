"""The catalog: worlds, tags and unfinished operations survive a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.memory_graph.errors import CheckpointExistsError, DataFolderError, InvariantError
from reverie.memory_graph.store import Catalog, Intent, Partition, Tag, World

TOWN = World("town", "minilm", 384, '{"language": "en"}', 12.5)
SEA = World("海底世界 🌊", "e5", 384, "", 13.0)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = Catalog.open(tmp_path / "catalog.db", partitions=16)
    yield catalog
    catalog.close()


def reopened(catalog: Catalog) -> Catalog:
    catalog.close()
    return Catalog.open(catalog._db.path, partitions=99)


def test_worlds(catalog: Catalog) -> None:
    catalog.add_world(TOWN)
    catalog.add_world(SEA)
    with pytest.raises(CheckpointExistsError):
        catalog.add_world(TOWN)
    catalog.set_world_embedder(SEA.name, "e5-large", 1024, "e5")
    with pytest.raises(InvariantError):
        catalog.set_world_embedder("nowhere", "e5", 384, "e5")
    catalog = reopened(catalog)
    assert catalog.partitions == 16
    assert catalog.world("town") == TOWN
    assert catalog.world("nowhere") is None
    assert catalog.worlds() == [TOWN, SEA._replace(embedder="e5-large", dim=1024, spec="e5")]
    catalog.close()


def test_tags(catalog: Catalog) -> None:
    catalog.add_tag("town", "second", 2.0)
    catalog.add_tag("town", "first", 1.0)
    catalog.add_tag("town", "first", 9.0)
    catalog.add_tag("sea", "first", 3.0)
    catalog.remove_tag("town", "unknown")
    assert catalog.tags("town") == [Tag("town", "first", 1.0), Tag("town", "second", 2.0)]
    catalog.remove_tag("town", "first")
    catalog = reopened(catalog)
    assert catalog.tags("town") == [Tag("town", "second", 2.0)]
    assert catalog.tags("sea") == [Tag("sea", "first", 3.0)]
    catalog.close()


def test_unfinished_operations_are_listed_in_their_order(catalog: Catalog) -> None:
    for operation in ("z", "a", "m"):
        catalog.begin_intent(operation, "rewind", operation.encode())
    with pytest.raises(InvariantError):
        catalog.begin_intent("a", "fork", b"")
    catalog.finish_intent("a")
    catalog.finish_intent("unknown")
    catalog = reopened(catalog)
    assert catalog.unfinished() == [Intent("z", "rewind", b"z"), Intent("m", "rewind", b"m")]
    catalog.close()


def test_changes_can_be_one_transaction(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError), catalog.write():  # noqa: PT012
        catalog.add_tag("town", "tag", 1.0)
        catalog.finish_intent("op")
        raise ZeroDivisionError
    assert catalog.tags("town") == []


def test_a_partition_is_no_catalog(tmp_path: Path) -> None:
    Partition.open(tmp_path / "p.db", index=0, owner="x").close()
    with pytest.raises(DataFolderError):
        Catalog.open(tmp_path / "p.db", partitions=16)
