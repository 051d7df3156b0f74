"""mem0's `Memory` and `AsyncMemory`, answered by reverie: only the import changes.

    from reverie.mem0 import Memory

    with Memory() as memory:
        memory.add("I moved to Oslo last week.", user_id="ana")
        memory.search("Where does she live?", filters={"user_id": "ana"})  # as in 2.x
        memory.search("Where does she live?", user_id="ana")  # as in 1.x

What maps to what, and what differs, is told in docs/mem0.md. Nothing is sent anywhere.
"""

from reverie.mem0.aio import AsyncMemory
from reverie.mem0.config import MemoryConfig
from reverie.mem0.exceptions import (
    ConfigurationError,
    MemoryError,  # noqa: A004 (mem0's name)
    MemoryNotFoundError,
    ValidationError,
)
from reverie.mem0.memory import Memory

__all__ = [
    "AsyncMemory",
    "ConfigurationError",
    "Memory",
    "MemoryConfig",
    "MemoryError",
    "MemoryNotFoundError",
    "ValidationError",
]
