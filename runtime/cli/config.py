"""`reverie config`: which settings count, and where each comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from reverie.cli import output
from reverie.cli.opening import MASK_KEY, load_settings
from reverie.cli.options import OutputOptions, WriterOptions, with_options

app = typer.Typer(no_args_is_help=True, help="Show and check settings.")


def show(options: WriterOptions) -> None:
    """Show every setting with its value and where it comes from.

    Later ones win: defaults, a TOML file (--config, or reverie.toml in the data folder), variables
    named REVERIE_*, flags. The key of a masked folder is not shown.
    """
    loaded = load_settings(options)
    key = "set" if os.environ.get(MASK_KEY) else "not set"
    if options.json:
        output.emit(
            {
                "data": options.data,
                "file": loaded.file,
                "settings": loaded.settings,
                "mask_key": key,
                "unknown_variables": loaded.unknown,
            }
        )
        return
    made = output.table("setting", "value", "from")
    made.add_row("data", output.plain(str(options.data)), "")
    for setting in loaded.settings:
        made.add_row(
            setting.name, output.plain(_shown(setting.value)), output.plain(setting.source)
        )
    made.add_row("mask_key", f"({key})", MASK_KEY if key == "set" else "")
    output.console().print(made)
    for name, near in loaded.unknown.items():
        output.note(f"{name} is not known to reverie" + (f"; did you mean {near}?" if near else ""))


def check(
    options: OutputOptions,
    file: Annotated[Path, typer.Argument(help="A TOML file of settings.", show_default=False)],
) -> None:
    """Check a file of settings; exit status 1 and the file and key when there is a mistake."""
    from reverie.operations.settings import read_file

    found = read_file(file)
    if options.json:
        output.emit({"file": file, "settings": sorted(found)})
        return
    typer.echo(output.printable(f"{file}: {len(found)} settings, all of them valid"))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "(none)"
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items()) or "(none)"
    return "(none)" if value is None else str(value)


app.command("show")(with_options(show))
app.command("check")(with_options(check))
