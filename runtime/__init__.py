"""reverie: long-term memory for agents and game characters, on your own machines.

    import reverie

    with reverie.open("memory") as rt:
        ana = rt.user("ana")
        ana.add("I moved to Oslo last week.", wait=True)
        for hit in ana.search("Where does she live?"):
            print(hit.score, hit.text, hit.reasons)

Importing it starts nothing: no process, no thread, no model. What is named below is loaded when
it is first used, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie import errors
    from reverie.actors.answers import Knower
    from reverie.actors.recovery import repair
    from reverie.aio import AsyncRuntime, AsyncUser, open_async
    from reverie.aio_worlds import AsyncGroup, AsyncWorld
    from reverie.clock import Clock, SimulatedClock, WallClock
    from reverie.config import Config
    from reverie.diffing import WorldDiff
    from reverie.fields import parse_time
    from reverie.groups import Group
    from reverie.memory_graph.audit import AuditLine
    from reverie.memory_graph.context import Context
    from reverie.memory_graph.diff import UserDiff
    from reverie.memory_graph.drafts import EntityDraft, Kept, MemoryDraft, RelationDraft, TurnDraft
    from reverie.memory_graph.errors import ReverieError
    from reverie.memory_graph.gate import needs_memory
    from reverie.memory_graph.nodes import Dimension
    from reverie.memory_graph.profile import Profile
    from reverie.memory_graph.relationships import Relationship
    from reverie.memory_graph.views import EntityView, Hit, Item, RelationView
    from reverie.memory_graph.why import Explanation
    from reverie.models.protocol import Decider, Embedder, Extractor
    from reverie.operations.copying import Backup, backups, verify_backup
    from reverie.operations.restoring import Restored, restore
    from reverie.operations.settings import load_config
    from reverie.profiles import load_profiles
    from reverie.results import AddResult, ConversationSummary, ForgetReceipt, Observed
    from reverie.runtime import Checkpoint, Runtime, open  # noqa: A004 (reverie.open)
    from reverie.stopping import closing_on_sigterm
    from reverie.user import User
    from reverie.vault import new_mask_key
    from reverie.world import World

__version__ = "0.1.0"

__all__ = [
    "AddResult",
    "AsyncGroup",
    "AsyncRuntime",
    "AsyncUser",
    "AsyncWorld",
    "AuditLine",
    "Backup",
    "Checkpoint",
    "Clock",
    "Config",
    "Context",
    "ConversationSummary",
    "Decider",
    "Dimension",
    "Embedder",
    "EntityDraft",
    "EntityView",
    "Explanation",
    "Extractor",
    "ForgetReceipt",
    "Group",
    "Hit",
    "Item",
    "Kept",
    "Knower",
    "MemoryDraft",
    "Observed",
    "Profile",
    "RelationDraft",
    "RelationView",
    "Relationship",
    "Restored",
    "ReverieError",
    "Runtime",
    "SimulatedClock",
    "TurnDraft",
    "User",
    "UserDiff",
    "WallClock",
    "World",
    "WorldDiff",
    "__version__",
    "backups",
    "closing_on_sigterm",
    "errors",
    "load_config",
    "load_profiles",
    "needs_memory",
    "new_mask_key",
    "open",
    "open_async",
    "parse_time",
    "repair",
    "restore",
    "verify_backup",
]

_HOMES = {
    "reverie.actors.answers": ("Knower",),
    "reverie.actors.recovery": ("repair",),
    "reverie.aio": ("AsyncRuntime", "AsyncUser", "open_async"),
    "reverie.aio_worlds": ("AsyncGroup", "AsyncWorld"),
    "reverie.clock": ("Clock", "SimulatedClock", "WallClock"),
    "reverie.config": ("Config",),
    "reverie.diffing": ("WorldDiff",),
    "reverie.fields": ("parse_time",),
    "reverie.groups": ("Group",),
    "reverie.memory_graph.context": ("Context",),
    "reverie.memory_graph.diff": ("UserDiff",),
    "reverie.memory_graph.drafts": tuple(
        "EntityDraft Kept MemoryDraft RelationDraft TurnDraft".split()
    ),
    "reverie.errors": ("errors",),
    "reverie.memory_graph.errors": ("ReverieError",),
    "reverie.memory_graph.gate": ("needs_memory",),
    "reverie.memory_graph.views": ("EntityView", "Hit", "Item", "RelationView"),
    "reverie.memory_graph.why": ("Explanation",),
    "reverie.memory_graph.audit": ("AuditLine",),
    "reverie.memory_graph.profile": ("Profile",),
    "reverie.profiles": ("load_profiles",),
    "reverie.memory_graph.nodes": ("Dimension",),
    "reverie.memory_graph.relationships": ("Relationship",),
    "reverie.models.protocol": ("Decider", "Embedder", "Extractor"),
    "reverie.operations.copying": ("Backup", "backups", "verify_backup"),
    "reverie.operations.restoring": ("Restored", "restore"),
    "reverie.operations.settings": ("load_config",),
    "reverie.runtime": ("Checkpoint", "Runtime", "open"),
    "reverie.results": ("AddResult", "ConversationSummary", "ForgetReceipt", "Observed"),
    "reverie.stopping": ("closing_on_sigterm",),
    "reverie.user": ("User",),
    "reverie.vault": ("new_mask_key",),
    "reverie.world": ("World",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """Load one of the names above at its first use."""
        if name not in _HOME:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        module = import_module(_HOME[name])
        value = module if name == "errors" else getattr(module, name)
        globals()[name] = value
        return value
