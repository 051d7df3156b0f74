"""`reverie audit`: what became of the memories of a user that no longer answer, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options

if TYPE_CHECKING:
    from reverie.memory_graph.audit import AuditPage


def audit(
    options: UserOptions,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many.")] = 100,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the page before ended.", show_default=False)
    ] = None,
) -> None:
    """List what was archived, told in a summary, expired or deleted, oldest first, and why."""
    with open_runtime(options, background=False) as rt:
        page = rt.user(options.user_id, options.world_name).audit(limit=limit, cursor=cursor)
    if options.json:
        output.emit(page)
        return
    if not page.total:
        output.note("nothing was put away")
        return
    output.console().print(_lines(page))
    shown = f"{len(page.lines)} of {page.total}"
    output.note(shown + (f"; go on with --cursor '{page.cursor}'" if page.cursor else ""))


def _lines(page: AuditPage) -> object:
    made = output.table("id", "when", "became", "why", "told in", "text")
    for line in page.lines:
        made.add_row(
            line.id,
            output.moment(line.at),
            line.became,
            output.plain(line.why),
            line.summary or "",
            output.plain(line.text),
        )
    return made


def register(program: typer.Typer) -> None:
    """Add the command."""
    program.command("audit")(with_options(audit))
