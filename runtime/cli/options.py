"""Options that many commands share, each described once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from reverie.memory_graph.ids import DEFAULT_WORLD

DEFAULT_USER = "user"
_PANEL = "Common options"

Command: TypeAlias = Callable[..., None]


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How a command speaks."""

    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print JSON on stdout and nothing else.", rich_help_panel=_PANEL
        ),
    ] = False
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log more, to stderr.", rich_help_panel=_PANEL)
    ] = False
    log_json: Annotated[
        bool,
        typer.Option("--log-json", help="Log one JSON object per line.", rich_help_panel=_PANEL),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ModelOptions(OutputOptions):
    """Where models lie."""

    models_folder: Annotated[
        Path | None,
        typer.Option(
            envvar="REVERIE_MODELS",
            help="Where pulled models lie; the user's cache by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class FolderOptions(ModelOptions):
    """Which data folder, and how it is opened."""

    data: Annotated[
        Path, typer.Option(envvar="REVERIE_DATA", help="The data folder.", rich_help_panel=_PANEL)
    ] = Path("reverie-data")
    actors: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Run that many shards as Ray actors; in this process by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="REVERIE_CONFIG",
            help="A TOML file of settings; reverie.toml in the data folder by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Of worlds that are new: minilm, multilingual, standin, a GGUF file, or auto, "
            "the default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Keep raw parts of extractions and searches under traces/ of the data folder.",
            rich_help_panel=_PANEL,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class UserOptions(FolderOptions):
    """Whose memory. None where the command line did not say."""

    world: Annotated[
        str | None,
        typer.Option(
            help=f"The world; {DEFAULT_WORLD!r} by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            help=f"Whose memory; {DEFAULT_USER!r} by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    @property
    def world_name(self) -> str:
        """The world, by default `DEFAULT_WORLD`."""
        return DEFAULT_WORLD if self.world is None else self.world

    @property
    def user_id(self) -> str:
        """The user, by default `DEFAULT_USER`."""
        return DEFAULT_USER if self.user is None else self.user


@dataclass(frozen=True, kw_only=True)
class WriterOptions(UserOptions):
    """What works on what is written."""

    language_model: Annotated[
        str | None,
        typer.Option(
            help="Extract and decide with it, too: smollm2, or an instruct model's GGUF file.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    language_hosts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Run it in that many Ray actors, with --actors; beside this process by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    mask: Annotated[
        bool | None,
        typer.Option(
            "--mask/--no-mask",
            help="Store placeholders for names, addresses and numbers of people, from now on and "
            "for good, with the key in REVERIE_MASK_KEY; or refuse a folder that does. As the "
            "folder is by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None


def flags_given(context: typer.Context, names: Sequence[str]) -> tuple[str, ...]:
    """Return which of these parameters of a command are on the command line, or set by a variable
    of the environment."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return tuple(name for name, source in sources.items() if source and source.name != "DEFAULT")


def with_options(command: Command) -> Command:
    """Return `command` as typer wants it: the fields of its first parameter, one of the classes
    above, become options of their own. Logging is set up by them before it runs."""
    (first, *own) = inspect.signature(command, eval_str=True).parameters.values()
    kind = first.annotation
    hints = get_type_hints(kind, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        from reverie.cli.logs import configure_logs

        options = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        configure_logs(verbose=options.verbose, as_json=options.log_json)
        command(options, **given)

    # typer reads the signature, and looks up what it finds there among the type hints
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *shared]
    )
    run.__annotations__ = {p.name: p.annotation for p in [*own, *shared]}
    return run
