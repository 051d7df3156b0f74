"""The disk: a data folder of partitions, each one SQLite file. Deals in bytes, decodes nothing.

Reading order: `schema` (the tables), `sqlite` (durability and errors), `partition` (the doors),
`branches` (loading and pruning), `slots` (checkpoints), `catalog` and `folder`, `erase`, `check`.
"""

from reverie.memory_graph.store.catalog import Catalog, Intent, Tag, World
from reverie.memory_graph.store.erase import search_files
from reverie.memory_graph.store.folder import DataFolder, FolderOwner
from reverie.memory_graph.store.partition import Partition, Transaction
from reverie.memory_graph.store.records import (
    ErasureCounts,
    Loaded,
    OutboxTurn,
    PendingTurns,
    QuarantinedTurn,
    UserImage,
)

__all__ = [
    "Catalog",
    "DataFolder",
    "ErasureCounts",
    "FolderOwner",
    "Intent",
    "Loaded",
    "OutboxTurn",
    "Partition",
    "PendingTurns",
    "QuarantinedTurn",
    "Tag",
    "Transaction",
    "UserImage",
    "World",
    "search_files",
]
