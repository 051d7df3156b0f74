"""The program: its commands, and what becomes of their errors.

Nothing heavy is imported here or at the top of a command's file, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from reverie.cli import (
    audit,
    backup,
    config,
    demo,
    doctor,
    export,
    health,
    imports,
    ingest,
    keys,
    mcp,
    models,
    output,
    quarantine,
    query,
    saves,
    search,
    serve,
    show,
    summary,
    town,
    usage,
)
from reverie.memory_graph.errors import ReverieError

FAILED = 1
INTERRUPTED = 130
TERMINATED = 143
_INTERRUPTED = "interrupted; what was acknowledged is on disk"
_TERMINATED = "terminated; what was acknowledged is on disk"


class Program(TyperGroup):
    """Turns every error into one line (or one JSON document) and an exit status."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command line; see `typer.Typer.__call__`. Never returns: raises SystemExit."""
        given = list(sys.argv[1:] if args is None else args)
        as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
        try:
            if not as_json:
                super().main(given, *rest, **options)
            status = super().main(given, *rest, **{**options, "standalone_mode": False})
        except ReverieError as exc:
            output.show_error(exc, as_json=as_json)
            raise SystemExit(FAILED) from None
        except SystemExit as exc:
            if exc.code == INTERRUPTED:
                output.note(_INTERRUPTED)
            if exc.code == TERMINATED and as_json:
                output.emit({"error": "Terminated", "message": _TERMINATED})
            elif exc.code == TERMINATED:
                output.note(_TERMINATED)
            raise
        except Exception as exc:
            show_usage = getattr(exc, "format_message", None)
            if not as_json or show_usage is None:  # a fault of ours, or not for us
                raise
            output.emit({"error": type(exc).__name__, "message": show_usage()})
            raise SystemExit(getattr(exc, "exit_code", FAILED)) from None
        if status == INTERRUPTED:
            output.emit({"error": "Interrupted", "message": _INTERRUPTED})
        raise SystemExit(status if isinstance(status, int) else 0)


app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they would show the values of variables
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 success, 1 an error, 2 wrong usage, 3 problems found by check, "
    "143 ended by SIGTERM.",
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        from reverie import __version__

        typer.echo(f"reverie {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Long-term memory for agents and game characters, on your own machines."""


for module in (demo, town, ingest, search, show, summary, health, usage, saves, audit, serve, mcp):
    module.register(app)
for module in (backup, doctor, export, query):
    module.register(app)
app.add_typer(config.app, name="config")
app.add_typer(imports.app, name="import")
app.add_typer(keys.app, name="keys")
app.add_typer(models.app, name="models")
app.add_typer(quarantine.app, name="quarantine")
