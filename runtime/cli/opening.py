"""From options to an open runtime."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from reverie.memory_graph.errors import ConfigError, DataFolderError

if TYPE_CHECKING:
    from reverie.cli.options import FolderOptions
    from reverie.clock import Clock
    from reverie.config import Config
    from reverie.operations.settings import LoadedConfig
    from reverie.runtime import Runtime


MASK_KEY = "REVERIE_MASK_KEY"  # no option: other users of the machine can read a command line


def flags_of(options: FolderOptions) -> dict[str, Any]:
    """Return the settings that flags of a command line set.

    Raises:
        ConfigError: --no-mask for a folder that masks: it would not be obeyed.
    """
    from reverie.cli.options import WriterOptions

    flags: dict[str, Any] = {"actors": options.actors, "embedder": options.embedder}
    if str(options.models_folder) != os.environ.get("REVERIE_MODELS"):
        flags["models_folder"] = options.models_folder
    if options.trace:
        flags["trace"] = True
    if isinstance(options, WriterOptions):
        flags |= {
            "language_model": options.language_model,
            "language_hosts": options.language_hosts,
        }
        if options.mask:
            from reverie.models.masking import KINDS

            flags["mask"] = tuple(KINDS)
        elif options.mask is not None:
            if _is_masked(options):
                msg = f"{options.data} masks what is stored, and goes on to; leave --no-mask out"
                raise ConfigError(msg, setting="mask")
            flags["mask"] = ()
    return {name: value for name, value in flags.items() if value is not None}


def load_settings(options: FolderOptions) -> LoadedConfig:
    """Return the settings of a command: the file, the environment, and its flags, which win.

    Raises:
        ConfigError: one of them is unknown or out of its range.
    """
    from reverie.operations.settings import load_config

    return load_config(options.config, folder=options.data, **flags_of(options))


def _is_masked(options: FolderOptions) -> bool:
    from reverie.vault import FILE

    return (options.data / FILE).exists()


def _fitted(options: FolderOptions, config: Config) -> Config:
    """Return the settings as far as they concern a command.

    Raises:
        ConfigError: masking is asked for, and there is no key.
    """
    import msgspec

    from reverie.cli.options import WriterOptions

    if not isinstance(options, WriterOptions):  # it writes nothing that these work on
        summaries = "extractive" if config.summaries == "written" else config.summaries
        return msgspec.structs.replace(
            config, language_model=None, language_hosts=0, mask=(), summaries=summaries
        )
    if config.mask and not os.environ.get(MASK_KEY):
        asked = "--mask" if options.mask else "the setting mask"
        msg = (
            f"{asked} needs a key in {MASK_KEY}; make one with reverie.new_mask_key(), and keep "
            "it apart from the data folder"
        )
        raise ConfigError(msg, setting="mask_key")
    return config


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
        settings: that the command needs so, whatever was said.

    Raises:
        ConfigError: a setting is unknown or out of its range.
        DataFolderError: there is none, or it is something else.
        StorageError: it cannot be opened; the message says why.
    """
    if not create:
        require_folder(options)
    loaded = load_settings(options)
    config = _fitted(options, loaded.config)
    from reverie.runtime import open as open_folder

    return open_folder(
        options.data,
        actors=loaded.actors,
        address=loaded.address,
        clock=clock,
        # to a folder that is not masked it would be a mistake
        mask_key=os.environ.get(MASK_KEY) if config.mask or _is_masked(options) else None,
        config=config,
        **settings,
    )
