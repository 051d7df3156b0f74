"""`reverie keys`: who may ask `reverie serve` for what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime, require_folder
from reverie.cli.options import FolderOptions, with_options
from reverie.memory_graph.errors import DataFolderError

if TYPE_CHECKING:
    from reverie.http.keys import Key, KeyFile

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the keys of `reverie serve`.")


def _file(folder: Path) -> KeyFile:
    from reverie.http.keys import KeyFile

    return KeyFile(folder)


def create(
    options: FolderOptions,
    *,
    role: Annotated[str, typer.Option(help="read, write, or admin; each includes those before.")],
    world: Annotated[
        list[str] | None,
        typer.Option(help="A world that it is for; may be repeated.", show_default=False),
    ] = None,
    all_worlds: Annotated[
        bool, typer.Option("--all-worlds", help="It is for all worlds, also those to come.")
    ] = False,
    name: Annotated[str, typer.Option(help="What it is for.", show_default=False)] = "",
    new: Annotated[
        bool, typer.Option("--new", help="Make the data folder, too, when there is none.")
    ] = False,
) -> None:
    """Make a key and show it; it cannot be shown again.

    With the first one, every request needs a key. A server that runs knows of it within a second.
    """
    if not (options.data / "catalog.db").exists():
        if not new:
            msg = (
                f"there is no data folder at {options.data}; name another with --data, or make it "
                "with --new"
            )
            raise DataFolderError(msg, path=str(options.data))
        open_runtime(options, create=True, background=False).close()
    whole, key = _file(options.data).create(
        role,  # type: ignore[arg-type]  # checked there
        worlds=world or (),
        everywhere=all_worlds,
        name=name,
    )
    if options.json:
        output.emit({"key": whole, **_fields(key)})
        return
    output.console().print(output.plain(whole), soft_wrap=True)
    output.note("keep it now: only a hash of it was stored")


def list_(options: FolderOptions) -> None:
    """List the keys, without their secrets."""
    require_folder(options)
    keys = _file(options.data).read()
    if options.json:
        output.emit({"keys": [_fields(key) for key in keys]})
        return
    if not keys:
        output.note("there are no keys")
        return
    made = output.table("id", "name", "role", "worlds", "made", "revoked")
    for key in keys:
        worlds = "all" if key.is_everywhere else ", ".join(key.worlds)
        cells = (key.id, key.name, key.role, worlds)
        times = (output.moment(key.made_at), output.moment(key.revoked_at))
        made.add_row(*(output.plain(cell) for cell in (*cells, *times)))
    output.console().print(made)


def revoke(
    options: FolderOptions,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Of a key, as the list shows it.")],
) -> None:
    """Let a key open nothing from now on; a server that runs knows of it within a second."""
    require_folder(options)
    key = _file(options.data).revoke(key_id)
    if options.json:
        output.emit(_fields(key))
        return
    output.note(f"{key.id} opens nothing any more")


def _fields(key: Key) -> dict[str, Any]:
    """Return what may be shown of a key."""
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(key)
    del fields["digest"]
    return fields


app.command("create")(with_options(create))
app.command("list")(with_options(list_))
app.command("revoke")(with_options(revoke))
