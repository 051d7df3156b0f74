"""`reverie backup` and `reverie restore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import FolderOptions, OutputOptions, with_options
from reverie.cli.progress import bar

if TYPE_CHECKING:
    from reverie.operations.copying import Backup

PROBLEMS_FOUND = 3


def backup(
    options: FolderOptions,
    dest: Annotated[
        str,
        typer.Argument(
            help="A folder, or a URL that fsspec knows; it may hold many backups.",
            show_default=False,
        ),
    ],
    *,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Make none; read the backup at DEST, or the newest there, and compare all "
            "checksums.",
        ),
    ] = False,
    show: Annotated[
        bool, typer.Option("--list", help="Make none; list those at DEST, oldest first.")
    ] = False,
) -> None:
    """Copy the data folder, as it is at one moment, into a new folder at DEST, and verify it.

    Nobody may have the folder open; a program that has makes a backup with `rt.backup(dest)`.
    Backups are not encrypted: they hold what was remembered. Exit status 3 when something was
    wrong in the data folder, and so is in the copy.
    """
    from reverie.operations.copying import backups, verify_backup

    if show:
        _list(backups(dest), as_json=options.json)
        return
    if verify:
        with bar("verifying files", quiet=options.json) as step:
            found = verify_backup(dest, progress=step)
    else:
        with (
            open_runtime(options, background=False) as rt,
            bar("files", quiet=options.json) as step,
        ):
            found = rt.backup(dest, progress=step)
    if options.json:
        output.emit(found)
    else:
        told = "is sound" if verify else "written and verified"
        typer.echo(output.printable(f"{found.place}: {told}; {_sizes(found)}"))
    _tell(found.problems, as_json=options.json)


def restore(
    options: OutputOptions,
    source: Annotated[
        str,
        typer.Argument(
            help="A backup; or a folder or URL of several: the newest that is whole.",
            show_default=False,
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="The data folder to make.", show_default=False)],
) -> None:
    """Make a data folder of a backup, and check it; all of it or nothing.

    Who was forgotten since the backup is back: forget them again. Exit status 3 when the check
    found problems.
    """
    from reverie.operations.restoring import restore as restore_folder

    with bar("steps", quiet=options.json) as step:
        made = restore_folder(source, folder, progress=step)
    if options.json:
        output.emit(made)
    else:
        line = f"{made.path}: restored as of {made.made_at}; {made.users} users, checked"
        typer.echo(output.printable(line))
    _tell(made.problems, as_json=options.json)


def _list(found: list[Backup], *, as_json: bool) -> None:
    if as_json:
        output.emit({"backups": found})
        return
    if not found:
        output.note("there is no backup that was completed")
        return
    made = output.table("backup", "made at (UTC)", ">users", ">MB", "")
    for one in found:
        made.add_row(
            output.plain(one.name),
            one.made_at[:19].replace("T", " "),
            str(one.users),
            f"{one.size_bytes / 1e6:.1f}",
            "with problems" if one.problems else "",
        )
    output.console().print(made)


def _sizes(found: Backup) -> str:
    return f"{found.users} users, {found.files} files, {found.size_bytes:,} bytes"


def _tell(problems: tuple[str, ...], *, as_json: bool) -> None:
    if not problems:
        return
    if not as_json:
        for line in problems:
            output.notes().print(output.plain(line, "red"), soft_wrap=True)
    raise typer.Exit(PROBLEMS_FOUND)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("backup")(with_options(backup))
    app.command("restore")(with_options(restore))
