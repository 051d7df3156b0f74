"""`reverie summary`: what was said lately or of a topic, and the summaries that are kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reverie.memory_graph.views import Item
    from reverie.user import User

_MOST = 10_000


def summary(  # noqa: PLR0913 (each is an option)
    options: WriterOptions,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="Name of a topic or entity; any other is searched for.",
            show_default=False,
        ),
    ] = None,
    *,
    last_n_days: Annotated[
        float | None, typer.Option("--days", help="How far back, from now.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Or from then: ISO 8601 (UTC) or seconds.", show_default=False),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Until then: ISO 8601 (UTC) or seconds.", show_default=False)
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="Of one session only.", show_default=False)
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="About how long the text may be.")] = 200,
    kept: Annotated[
        bool, typer.Option("--kept", help="Show the summaries that are kept instead.")
    ] = False,
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Bring those up to date first, and show them. Implies --kept."
        ),
    ] = False,
) -> None:
    """Summarise what was said, in a period or of a topic; nothing is kept of it."""
    asked = (topic, last_n_days, since, until, session)
    if (kept or update) and any(value is not None for value in asked):
        msg = "--kept and --update show what is kept: they take no topic, session or period"
        raise typer.BadParameter(msg)
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        if kept or update:
            _show_kept(user, made=user.summarise() if update else [], as_json=options.json)
            return
        found = user.get_conversation_summary(
            topic,
            last_n_days,
            since=since,
            until=until,
            session=session,
            max_tokens=max_tokens,
        )
        if options.json:
            output.emit(found)
            return
        if found.text:
            typer.echo(output.printable(found.text) if sys.stdout.isatty() else found.text)
        begin, end = output.moment(found.from_at), output.moment(found.to_at)
        output.note(f"{found.messages} turns" + (f", {begin} to {end}" if found.messages else ""))


def _show_kept(user: User, *, made: Sequence[Item], as_json: bool) -> None:
    page = user.list(types="summary", limit=_MOST)
    if as_json:
        output.emit({"summaries": page.items, "made": [item.id for item in made]})
        return
    table = output.table("id", "of", "text", "until")
    for item in page.items:
        table.add_row(
            item.id,
            output.plain(item.about or ""),
            output.plain(item.text),
            output.moment(item.at)[:10],
        )
    output.console().print(table)
    output.note(f"{page.total} kept, {len(made)} of them new")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("summary")(with_options(summary))
