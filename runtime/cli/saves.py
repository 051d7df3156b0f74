"""`reverie diff`, `export-world` and `import-world`: what has changed since a save, and a world as
one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options
from reverie.cli.progress import bar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reverie.diffing import WorldDiff
    from reverie.memory_graph.diff import Change, UserDiff

_MAX_ROWS = 200
_SIGNS = {"added": "+", "ended": "-", "changed": "~", "missing": "not there"}


def diff(
    options: UserOptions,
    tag_a: Annotated[str, typer.Argument(help="The first checkpoint.", show_default=False)],
    tag_b: Annotated[
        str | None, typer.Argument(help="The second; now by default.", show_default=False)
    ] = None,
    *,
    limit: Annotated[
        int, typer.Option(min=1, help="Differences of each kind that are told of one user.")
    ] = 100,
) -> None:
    """Show what differs between two checkpoints of a world, or one and now: for each user (or
    --user) what was added (+), has ended (-), was changed (~), or is not there in the second."""
    with open_runtime(options, background=False) as rt, bar("users", quiet=options.json) as show:
        world = rt.world(options.world_name)
        found = world.diff(tag_a, tag_b, limit=limit, progress=show)
    if options.user is not None:
        import msgspec

        chosen = tuple(user for user in found.changed if user.user_id == options.user)
        found = msgspec.structs.replace(found, changed=chosen)
    if options.json:
        output.emit(found)
        return
    _print(found)


def _print(found: WorldDiff) -> None:
    second = "now" if found.tag_b is None else found.tag_b
    screen = output.console()
    if not found.changed:
        output.note(f"nothing differs between {found.tag_a} and {second} ({found.users} users)")
        return
    made = output.table("user", "", "what", "id", "text", "how")
    rows = [row for user in found.changed for row in _rows(user)]
    for row in rows[:_MAX_ROWS]:
        made.add_row(*map(output.plain, row))
    screen.print(made)
    if len(rows) > _MAX_ROWS:
        output.note(f"and {len(rows) - _MAX_ROWS} more lines; --json prints all")
    told = ", ".join(
        f"{name.replace('_', ' ')} {count}" for name, count in found.counts.items() if count
    )
    screen.print(
        output.plain(
            f"{found.tag_a} to {second}: {len(found.changed)} of {found.users} users differ; {told}"
        ),
        soft_wrap=True,
    )


def _rows(user: UserDiff) -> Iterator[tuple[str, str, str, str, str, str]]:
    name = user.user_id
    if user.presence != "there":
        yield name, "+" if user.presence == "came" else "-", "user", "", "", user.presence
    for kind, sign in _SIGNS.items():
        for item in getattr(user, kind):
            if kind == "changed":
                yield name, sign, "memory", item.id, item.text, _how(item)
            else:
                yield name, sign, item.type, item.id, item.text, item.retired_why
        for view in getattr(user, f"relations_{kind}"):
            if kind == "changed":
                yield name, sign, "relation", view.id, view.text, _how(view)
            else:
                text = f"{view.head} {view.predicate} {view.tail}"
                yield name, sign, "relation", view.id, text, ""
    for tie in user.relationships:
        how = f"{_number(tie.before)} -> {_number(tie.after)}"
        yield name, "~", "relationship", "", f"{tie.dimension} of {tie.other}", how
    for field, (was, now) in user.owner.fields.items():
        yield name, "~", "user", "", field.replace("_", " "), f"{was} -> {now}"
    if user.turns_added or user.turns_missing:
        yield name, "", "turns", "", "", f"{user.turns_added} more, {user.turns_missing} not there"


def _how(change: Change) -> str:
    return ", ".join(f"{name}: {was} -> {now}" for name, (was, now) in change.fields.items())


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def export_world(
    options: UserOptions,
    file: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    *,
    tag: Annotated[
        str | None,
        typer.Option(
            help="Of a checkpoint; the world as it is now by default.", show_default=False
        ),
    ] = None,
) -> None:
    """Write a world into one file, for another folder or machine; an older one of that name is
    replaced.

    It is checksummed and compressed, not encrypted: it holds what was remembered.
    """
    with open_runtime(options, background=False) as rt, bar("users", quiet=options.json) as show:
        users = rt.world(options.world_name).export(file, tag, progress=show)
    size_bytes = file.stat().st_size
    if options.json:
        output.emit(
            {"file": file, "world": options.world_name, "users": users, "bytes": size_bytes}
        )
        return
    typer.echo(f"{file}: {users} users, {size_bytes:,} bytes")


def import_world(
    options: UserOptions,
    file: Annotated[
        Path, typer.Argument(help="Written by `reverie export-world`.", show_default=False)
    ],
) -> None:
    """Make a world of a file, under the name of --world or that of the file; all of it or nothing.

    The data folder is made when it is not there.
    """
    with (
        open_runtime(options, create=True, background=False) as rt,
        bar("users", quiet=options.json) as show,
    ):
        world = rt.import_world(file, options.world, progress=show)
        users = len(world.users())
    if options.json:
        output.emit({"file": file, "world": world.name, "users": users})
        return
    typer.echo(output.printable(f"world {world.name}: {users} users"))


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("diff")(with_options(diff))
    app.command("export-world")(with_options(export_world))
    app.command("import-world")(with_options(import_world))
