"""`reverie stats` and `reverie check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime, require_folder
from reverie.cli.options import FolderOptions, UserOptions, with_options

if TYPE_CHECKING:
    from reverie.memory_graph.store import Repaired
    from reverie.user import User

PROBLEMS_FOUND = 3
_MAX_ROWS = 50


def stats(options: UserOptions) -> None:
    """Count what is kept: in all, and for each user (of --world and --user, when given)."""
    with open_runtime(options, background=False) as rt:
        whole = rt.stats()
        worlds = whole.worlds if options.world is None else [options.world]
        users = [
            rt.user(name, world)
            for world in worlds
            for name in rt.users(world)
            if options.user in {None, name}
        ]
        if options.json:
            output.emit({"path": rt.path, **_fields(whole), "by_user": [_row(u) for u in users]})
            return
        screen = output.console()
        screen.print(
            output.pairs(
                [
                    ("data folder", rt.path),
                    ("worlds", ", ".join(whole.worlds)),
                    ("users", whole.users),
                    ("turns that wait for extraction", whole.pending),
                    ("turns in quarantine", whole.quarantined),
                ]
            )
        )
        made = output.table(
            "world", "user", ">turns", ">memories", ">active", ">entities", ">relations", "embedder"
        )
        for user in users[:_MAX_ROWS]:
            found = user.stats()
            made.add_row(
                output.plain(user.key.world),
                output.plain(user.key.user_id),
                *map(str, (found.messages, found.memories, found.active)),
                *map(str, (found.entities, found.relations)),
                found.embedder or "",
            )
        if users:
            screen.print(made)
        if len(users) > _MAX_ROWS:
            output.note(f"and {len(users) - _MAX_ROWS} more users; --json prints all")


def _fields(value: object) -> dict[str, object]:
    import msgspec

    fields: dict[str, object] = msgspec.to_builtins(value)
    return fields


def _row(user: User) -> dict[str, object]:
    return {"world": user.key.world, "user": user.key.user_id, **_fields(user.stats())}


def check(
    options: FolderOptions,
    *,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First save all that is whole of damaged files; nobody may have the folder open. "
            "The damaged files are kept under damaged/.",
        ),
    ] = False,
) -> None:
    """Look for broken invariants in all files and users; exit status 3 when there are any."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    notes = output.notes()
    repaired = _repair(options) if repair else None
    with (
        open_runtime(options, background=False) as rt,
        Progress(
            TextColumn("checking users"),
            BarColumn(),
            MofNCompleteColumn(),
            console=notes,
            disable=options.json or not notes.is_terminal,
            transient=True,
        ) as bar,
    ):
        task = bar.add_task("users", total=None)
        done = 0

        def show_progress(users: int, of: int) -> None:
            nonlocal done
            done = users
            bar.update(task, completed=users, total=of)

        problems = rt.check(show_progress)
    found: dict[str, object] = {"users": done, "problems": problems}
    if repaired is not None:
        problems += (line for line in repaired.problems if line not in problems)
        found["repaired"] = _fields(repaired)
    if options.json:
        output.emit(found)
    else:
        screen = output.console()
        for line in [] if repaired is None else _told(repaired):
            screen.print(output.plain(line), soft_wrap=True)
        for line in problems:
            screen.print(output.plain(line, "red"), soft_wrap=True)
        screen.print(f"users checked: {done}, problems: {len(problems) or 'none'}")
    if problems:
        raise typer.Exit(PROBLEMS_FOUND)


def _repair(options: FolderOptions) -> Repaired:
    from reverie.actors.recovery import repair

    require_folder(options)
    return repair(options.data)


def _told(repaired: Repaired) -> list[str]:
    if not repaired.files:
        return ["nothing to repair" if not repaired.problems else "nothing was repaired"]
    files = ", ".join(repaired.files)
    return [
        f"built anew: {files}; the damaged files are in {repaired.kept_in}",
        *(loss.line for loss in repaired.losses),
    ]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("stats")(with_options(stats))
    app.command("check")(with_options(check))
