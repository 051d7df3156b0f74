"""`reverie usage`: what the language model has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options

if TYPE_CHECKING:
    from reverie.models.usage import Usage, UsageRow


def usage(
    options: UserOptions,
    *,
    reset: Annotated[
        bool,
        typer.Option("--reset", help="Set these counters, and so what is left of budgets, anew."),
    ] = False,
) -> None:
    """Show what the language model has cost each user (of --world and --user, when given).

    Counted over all runs on the data folder; a process that was killed is not in it.
    """
    with open_runtime(options, background=False) as rt:
        rows = rt.usage(options.world, options.user)
        if reset:
            for world, user_id in {(row.world, row.user_id) for row in rows if row.world}:
                rt.reset_usage(user_id, world)
    if options.json:
        output.emit({"usage": [_fields(row) for row in rows], "reset": reset})
        return
    if not rows:
        output.note("no language model was called for them")
        return
    made = output.table(
        "world", "user", ">calls", ">failed", ">refused", ">tokens read", ">written", ">seconds"
    )
    for (world, user_id), whole in _by_user(rows).items():
        counts = (whole.calls, whole.failed, whole.refused)
        tokens = (whole.prompt_tokens, whole.completion_tokens)
        made.add_row(
            output.plain(world),
            output.plain(user_id),
            *(f"{count:,}" for count in (*counts, *tokens)),
            f"{whole.seconds:,.1f}",
        )
    output.console().print(made)


def _fields(row: UsageRow) -> dict[str, object]:
    counts = {name: getattr(row.usage, name) for name in row.usage.__struct_fields__}
    whose = {"world": row.world, "user": row.user_id, "purpose": row.purpose}
    return {**whose, **counts, "seconds": round(row.usage.seconds, 3)}


def _by_user(rows: list[UsageRow]) -> dict[tuple[str, str], Usage]:
    from reverie.models.usage import Usage

    found: dict[tuple[str, str], Usage] = {}
    for row in rows:
        found.setdefault((row.world, row.user_id), Usage()).add(row.usage)
    return found


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("usage")(with_options(usage))
