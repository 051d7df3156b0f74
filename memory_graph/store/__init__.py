"""The disk: a data folder of partitions, each one SQLite file. Deals in bytes, decodes nothing.

Reading order: `schema` (the tables), `sqlite` (durability and errors), `partition` (the doors),
`branches` (loading and pruning), `slots` (checkpoints), `catalog` and `folder`, `erase`, `check`;
`seal` (what makes damage known), then `salvage`, `rebuild`, `replace`, `repair`; `migrations`.
"""

from reverie.memory_graph.store.catalog import Catalog, Intent, Tag, World, World as StoredWorld
from reverie.memory_graph.store.erase import search_files
from reverie.memory_graph.store.folder import DataFolder, FolderOwner
from reverie.memory_graph.store.partition import Partition, Transaction
from reverie.memory_graph.store.rebuild import Loss
from reverie.memory_graph.store.records import (
    Built,
    ErasureCounts,
    Loaded,
    OutboxTurn,
    PendingTurns,
    QuarantinedTurn,
    UserImage,
)
from reverie.memory_graph.store.repair import Repaired, repair_folder
from reverie.memory_graph.store.sqlite import sync_folder
from reverie.memory_graph.store.world_file import WorldFile

__all__ = [
    "Built",
    "Catalog",
    "DataFolder",
    "ErasureCounts",
    "FolderOwner",
    "Intent",
    "Loaded",
    "Loss",
    "OutboxTurn",
    "Partition",
    "PendingTurns",
    "QuarantinedTurn",
    "Repaired",
    "StoredWorld",
    "Tag",
    "Transaction",
    "UserImage",
    "World",
    "WorldFile",
    "repair_folder",
    "search_files",
    "sync_folder",
]
