"""`reverie doctor`: whether reverie can work here, and how to mend what it needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import MASK_KEY, load_settings
from reverie.cli.options import WriterOptions, with_options
from reverie.memory_graph.errors import ConfigError

if TYPE_CHECKING:
    from reverie.operations.doctor import Line

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    options: WriterOptions,
    *,
    ray: Annotated[bool, typer.Option("--ray", help="Start Ray, with one actor.")] = False,
    model: Annotated[
        bool, typer.Option("--model", help="Load the models, and let each say something.")
    ] = False,
) -> None:
    """Look at Python, libraries, models, disk, permissions, settings, Ray and the data folder.

    Each line says ok, warn or fail, and how to mend it. Exit status 1 when something fails.
    """
    from reverie.config import Config
    from reverie.operations.doctor import Line, Patient, examine

    lines: list[Line] = []
    config = Config()
    unknown: tuple[str, ...] = ()
    try:
        loaded = load_settings(options)
        config, unknown = loaded.config, tuple(loaded.unknown)
    except ConfigError as exc:
        lines.append(Line("settings", "fail", exc.message, "mend it; reverie config check FILE"))
    lines += examine(
        Patient(
            folder=options.data,
            config=config,
            mask_key=os.environ.get(MASK_KEY),
            unknown=unknown,
            with_ray=ray,
            with_model=model,
        )
    )
    counts = {status: sum(line.status == status for line in lines) for status in _STYLES}
    if options.json:
        output.emit({"lines": lines, **counts})
    else:
        _print(lines)
        told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        output.console().print(told)
    if counts["fail"]:
        raise typer.Exit(1)


def _print(lines: list[Line]) -> None:
    screen = output.console()
    for line in lines:
        screen.print(
            output.plain(f"{line.status:5}", _STYLES[line.status]),
            output.plain(f"{line.check}: {line.text}"),
            soft_wrap=True,
        )
        if line.fix and line.status != "ok":
            screen.print(output.plain(f"      -> {line.fix}"), soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("doctor")(with_options(doctor))
