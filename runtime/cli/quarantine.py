"""`reverie quarantine`: turns whose extraction failed twice, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, WriterOptions, with_options

if TYPE_CHECKING:
    from reverie.actors.commands import PendingUser
    from reverie.runtime import Runtime

app = typer.Typer(
    no_args_is_help=True, help="Look after turns whose extraction failed twice; nothing is lost."
)

_TEXT_CHARS = 60  # of a turn that are shown

Ids: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...", help="Of turns, as `reverie quarantine list` shows.", show_default=False
    ),
]
All: TypeAlias = Annotated[
    bool, typer.Option("--all", help="All of the user's turns in quarantine.")
]


def list_(options: UserOptions) -> None:
    """List the turns in quarantine (of --world and --user, when given) with what went wrong."""
    with open_runtime(options, background=False) as rt:
        rows = [row for user in _away(rt, options) for row in _rows(rt, user)]
    if options.json:
        output.emit({"turns": rows})
        return
    if not rows:
        output.note("no turn is in quarantine")
        return
    made = output.table("world", "user", "turn", "said", "what went wrong", "text")
    for row in rows:
        text = str(row["text"])
        shown = text if len(text) <= _TEXT_CHARS else f"{text[: _TEXT_CHARS - 3]}..."
        cells = (row["world"], row["user"], row["id"], row["said"], row["error"], shown)
        made.add_row(*(output.plain(str(cell)) for cell in cells))
    output.console().print(made)
    output.note("try them again with: reverie quarantine retry; or give them up with: drop")


def retry(options: WriterOptions, ids: Ids = None, *, every: All = False) -> None:
    """Extract turns in quarantine again, now; those that fail twice more go back there."""
    chosen = _chosen(ids, every=every)
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        count = rt.retry_quarantined(user.key.user_id, user.key.world, turn_ids=chosen)
        rt.ingestor.drain(user.key)
        left = sum(
            1
            for away in rt.quarantined(user.key.world)
            if away.user_id == user.key.user_id
            for turn_id in away.turn_ids
            if not chosen or turn_id in chosen
        )
    if options.json:
        output.emit({"retried": count, "failed": left})
        return
    typer.echo(f"extracted again: {count - left}, back in quarantine: {left}")


def drop(options: UserOptions, ids: Ids = None, *, every: All = False) -> None:
    """Give turns in quarantine up: they stay messages that answer searches, without memories."""
    chosen = _chosen(ids, every=every)
    with open_runtime(options, background=False) as rt:
        count = rt.drop_quarantined(options.user_id, options.world_name, turn_ids=chosen)
    if options.json:
        output.emit({"dropped": count})
        return
    typer.echo(f"given up, and kept as messages: {count}")


def _chosen(ids: list[str] | None, *, every: bool) -> list[str]:
    if bool(ids) == every:
        msg = "name the turns, or say --all"
        raise typer.BadParameter(msg)
    return list(ids or ())


def _away(rt: Runtime, options: UserOptions) -> list[PendingUser]:
    found = rt.quarantined(options.world)
    return [user for user in found if options.user in {None, user.user_id}]


def _rows(rt: Runtime, away: PendingUser) -> list[dict[str, object]]:
    user = rt.user(away.user_id, away.world)
    rows: list[dict[str, object]] = []
    for turn_id, error in zip(away.turn_ids, away.errors, strict=True):
        item = user.get(turn_id)
        rows.append(
            {
                "world": away.world,
                "user": away.user_id,
                "id": turn_id,
                "said": output.moment(item.at),
                "error": error,
                "text": item.text,
            }
        )
    return rows


app.command("list")(with_options(list_))
app.command("retry")(with_options(retry))
app.command("drop")(with_options(drop))
