"""One runtime for all facades of this process that name the same data folder.

A data folder has one owner, while programs make a `Memory` here and another there. The runtime is
closed with the last of them, or when the program ends.
"""

from __future__ import annotations

import atexit
import threading
from pathlib import Path
from typing import Any

import structlog

from reverie.mem0.config import Plan, config_of
from reverie.runtime import Runtime, open as open_runtime

log = structlog.get_logger(__name__)


class _Shared:
    """An open runtime, who uses it, and what they know together."""

    def __init__(self, runtime: Runtime, settings: dict[str, Any]) -> None:
        self.runtime = runtime
        self.settings = settings
        self.users = 0


_lock = threading.Lock()
_open: dict[Path, _Shared] = {}


def borrow(plan: Plan) -> Runtime:
    """Return the open runtime of a plan's data folder; give it back with `release`.

    Raises:
        DataFolderLockedError: another process has it open.
        ConfigError: a setting that reverie does not know.
    """
    path = plan.data.absolute()
    config = config_of(plan)
    with _lock:
        shared = _open.get(path)
        if shared is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            runtime = open_runtime(path, config=config, **plan.opening)
            shared = _open[path] = _Shared(runtime, plan.settings)
        elif shared.settings != plan.settings:
            log.warning("mem0_settings_of_first_opening_stay", data=str(path))
        shared.users += 1
        return shared.runtime


def release(runtime: Runtime) -> None:
    """Give a runtime back; the last one closes it."""
    with _lock:
        for path, shared in list(_open.items()):
            if shared.runtime is runtime:
                shared.users -= 1
                if shared.users <= 0:
                    del _open[path]
                    runtime.close()
                return


def _close_all() -> None:
    with _lock:
        every = [shared.runtime for shared in _open.values()]
        _open.clear()
    for runtime in every:
        runtime.close()


atexit.register(_close_all)
