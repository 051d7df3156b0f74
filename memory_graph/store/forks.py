"""What a forked process must leave to its parent: open files, locks, and who waits for whom.

SQLite's locks belong to the process that took them, a lock of a thread that was not copied is never
let go of, and two processes that write as one owner ruin each other's view. So whatever is open is
told of a fork in the child, and refuses to work there; the parent notices nothing.
"""

from __future__ import annotations

import ctypes
import os
from typing import Protocol
from weakref import WeakSet

REFUSAL = (
    "the runtime was opened by the process that this one was forked from; "
    "open data folders after forking"
)


class Guarded(Protocol):
    """Something that a forked process must not use."""

    def leave_to_parent(self) -> None:
        """Refuse to work from now on. Called in the child, whose locks may be held by nobody."""


_open: WeakSet[Guarded] = WeakSet()


def guard(thing: Guarded) -> None:
    """Call `thing.leave_to_parent` in every process that is forked while it exists."""
    _open.add(thing)


def keep(thing: object) -> None:
    """Never finalize `thing` in this process: to close what the parent has open would harm it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _leave_all() -> None:
    for thing in list(_open):
        thing.leave_to_parent()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_leave_all)
