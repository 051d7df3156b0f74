"""`reverie import mcp-memory`: the file of the official server-memory of MCP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, with_options

if TYPE_CHECKING:
    from reverie.tools.server_memory_file import Imported

_SHOWN_LINES = 20


def mcp_memory(
    options: WriterOptions,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSONL, an entity or a relation a line.",
            exists=True,
            dir_okay=False,
            readable=True,
            show_default=False,
        ),
    ],
    *,
    on_bad_line: Annotated[
        Literal["stop", "skip"],
        typer.Option(help="What to do about a line that cannot be used."),
    ] = "skip",
) -> None:
    """Take in the file of the official server-memory of MCP, as a user's knowledge graph.

    Names, types, relations and observations stay as they are, in their order; `reverie mcp` shows
    them again. The same file again adds nothing.
    """
    from reverie.stopping import closing_on_sigterm
    from reverie.tools.knowledge import Knowledge
    from reverie.tools.server_memory_file import read

    with open_runtime(options, create=True, background=False) as rt, closing_on_sigterm(rt):
        user = rt.user(options.user_id, options.world_name)
        done = read(Knowledge(rt, user), file, stop=on_bad_line == "stop")
    if options.json:
        output.emit({"file": file, "done": done})
        return
    _print(file, done)


def _print(file: Path, done: Imported) -> None:
    added = done.added
    typer.echo(
        f"{file}: {added.entities} entities, {added.observations} observations and "
        f"{added.relations} relations are new; {added.known} were known"
    )
    for bad in done.bad_lines[:_SHOWN_LINES]:
        output.note(f"line {bad.line} was left out: {bad.why}")
    if done.bad > _SHOWN_LINES:
        output.note(f"{done.bad} lines were left out; --json names {len(done.bad_lines)} of them")


def register(app: typer.Typer) -> None:
    """Add the command of this file to `reverie import`."""
    app.command("mcp-memory")(with_options(mcp_memory))
