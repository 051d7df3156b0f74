"""`reverie export`: everything of one user in open formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import UserOptions, with_options

if TYPE_CHECKING:
    from reverie.exporting import ExportManifest


def export(
    options: UserOptions,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE.zip",
            help="A new name, or an empty folder.",
            show_default=False,
        ),
    ],
    *,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="The vectors, too, as vectors.npy.")
    ] = False,
    unmask: Annotated[
        bool,
        typer.Option(
            "--unmask",
            help="Names and numbers of people as they were said; needs the key in "
            "REVERIE_MASK_KEY.",
        ),
    ] = False,
) -> None:
    """Write everything of one user: messages, memories with their history, entities, relations,
    relationships, summaries, audit, profile, groups and usage, as JSON Lines.

    README.txt in it explains each field, manifest.json has counts and checksums. It is not
    encrypted. What others remember of the user is theirs, and not in it; nor are save games. For a
    whole world to be moved elsewhere, there is `reverie export-world`.
    """
    with open_runtime(options, background=False) as rt:
        user = rt.user(options.user_id, options.world_name)
        manifest = user.export(path, vectors=vectors, unmask=unmask)
    if options.json:
        output.emit({"path": path, "manifest": manifest})
        return
    _print(path, manifest)


def _print(path: Path, manifest: ExportManifest) -> None:
    rows = [
        (name, f"{facts.bytes:,} bytes" if facts.rows is None else f"{facts.rows:,} rows")
        for name, facts in manifest.files.items()
    ]
    output.console().print(output.pairs(rows))
    typer.echo(output.printable(f"{path}: user {manifest.user_id} of world {manifest.world}"))
    if manifest.mask == "masked":
        output.note("what is masked was written as placeholders; --unmask shows it, with the key")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("export")(with_options(export))
