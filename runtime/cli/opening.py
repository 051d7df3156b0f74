"""From options to an open runtime."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from reverie.memory_graph.errors import DataFolderError

if TYPE_CHECKING:
    from reverie.cli.options import FolderOptions
    from reverie.clock import Clock
    from reverie.runtime import Runtime


MASK_KEY = "REVERIE_MASK_KEY"  # no option: other users of the machine can read a command line


def _mask_key(options: FolderOptions) -> str | None:
    """Return the key for a folder that is masked; to others it would be a mistake."""
    from reverie.vault import FILE

    return os.environ.get(MASK_KEY) if (options.data / FILE).exists() else None


def require_folder(options: FolderOptions) -> None:
    """Refuse a data folder that is not there.

    Raises:
        DataFolderError: there is none.
    """
    if not (options.data.is_dir() and any(options.data.iterdir())):
        msg = (
            f"there is no data folder at {options.data}; name another with --data, or make it "
            "with: reverie ingest FILE"
        )
        raise DataFolderError(msg, path=str(options.data))


def open_runtime(
    options: FolderOptions, *, create: bool = False, clock: Clock | None = None, **settings: Any
) -> Runtime:
    """Open the data folder that the options name.

    Args:
        options: of the command line.
        create: make it when it is not there. A command that only reads must not: a mistyped path
            would leave an empty folder and the impression that everything was forgotten.
        clock: the wall clock by default.
        settings: of the config, beside those that options set.

    Raises:
        DataFolderError: there is none, or it is something else.
        StorageError: it cannot be opened; the message says why.
    """
    if not create:
        require_folder(options)
    from reverie.runtime import open as open_folder

    return open_folder(
        options.data,
        actors=options.actors,
        clock=clock,
        embedder=options.embedder,
        models_folder=options.models_folder,
        trace=options.trace,
        mask_key=_mask_key(options) if "mask" not in settings else os.environ.get(MASK_KEY),
        **settings,
    )
