"""reverie: long-term memory for agents and game characters, on your own machines.

    import reverie

    with reverie.open("memory") as rt:
        ana = rt.user("ana")
        ana.add("I moved to Oslo last week.", wait=True)
        for hit in ana.search("Where does she live?"):
            print(hit.score, hit.text, hit.reasons)

Importing it starts nothing: no process, no thread, no model.
"""

from reverie.aio import AsyncRuntime, AsyncUser, open_async
from reverie.clock import Clock, SimulatedClock, WallClock
from reverie.config import Config
from reverie.fields import parse_time
from reverie.memory_graph import errors
from reverie.memory_graph.context import Context
from reverie.memory_graph.drafts import EntityDraft, Kept, MemoryDraft, RelationDraft, TurnDraft
from reverie.memory_graph.errors import ReverieError
from reverie.memory_graph.views import EntityView, Hit, Item, RelationView
from reverie.models.protocol import Decider, Embedder, Extractor
from reverie.runtime import Checkpoint, Runtime, open  # noqa: A004 (reverie.open)
from reverie.user import AddResult, ForgetReceipt, User

__version__ = "0.1.0"

__all__ = [
    "AddResult",
    "AsyncRuntime",
    "AsyncUser",
    "Checkpoint",
    "Clock",
    "Config",
    "Context",
    "Decider",
    "Embedder",
    "EntityDraft",
    "EntityView",
    "Extractor",
    "ForgetReceipt",
    "Hit",
    "Item",
    "Kept",
    "MemoryDraft",
    "RelationDraft",
    "RelationView",
    "ReverieError",
    "Runtime",
    "SimulatedClock",
    "TurnDraft",
    "User",
    "WallClock",
    "__version__",
    "errors",
    "open",
    "open_async",
    "parse_time",
]
