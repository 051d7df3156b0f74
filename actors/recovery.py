"""Repairing a data folder: what the store cannot do by itself, since it reads no state."""

from __future__ import annotations

from pathlib import Path

from reverie.actors.residents import build_state
from reverie.memory_graph import nodes as n
from reverie.memory_graph.graph import number
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Built, Loaded, OutboxTurn, Repaired, repair_folder

EXACT = 1 << 62  # no index is built: nothing is searched here


def build(key: Key, loaded: Loaded) -> Built:
    """Build a state and return what a repair has to know of it.

    Raises:
        JournalDamagedError: the state cannot be built.
        DataFolderError: it was written by a newer version.
    """
    memory = build_state(key, loaded, exact_limit=EXACT)
    turns = [turn for turn in memory.graph.nodes() if isinstance(turn, n.Message)]
    waiting = [
        OutboxTurn(turn.id, is_quarantined=turn.status == "quarantined")
        for turn in sorted(turns, key=lambda turn: number(turn.id))
        if turn.status in {"pending", "quarantined"}
    ]
    return Built(waiting, memory.embedder, 0 if memory.vectors is None else memory.vectors.dim)


def repair(path: str | Path) -> Repaired:
    """Save all that is whole of a damaged data folder that nobody has open.

    A sound folder is left as it is. Of a damaged file, a new one is built of every row that
    verifies; the old one is kept under `damaged/`. A user is restored to the longest part of its
    history that verifies.

    Returns:
        What was built anew, and everything that is not as it was.

    Raises:
        DataFolderLockedError: somebody has it open.
        DataFolderError: no data folder, or of a newer version.
        StorageError: a file cannot be read or written.
    """
    return repair_folder(Path(path).absolute(), build)
