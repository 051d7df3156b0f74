"""`reverie ingest`: conversation files into memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, with_options

if TYPE_CHECKING:
    from rich.progress import Progress

    from reverie.cli.feed import Report

_SHOWN_LINES = 20


def ingest(
    options: WriterOptions,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSONL (one turn per line; `text` is required) or LoCoMo.",
            exists=True,
            dir_okay=False,
            readable=True,
            show_default=False,
        ),
    ],
    *,
    infer: Annotated[
        bool, typer.Option("--infer/--no-infer", help="Extract memories, or keep turns only.")
    ] = True,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait",
            help="Extract before this ends; otherwise the turns wait, safely on disk, for the "
            "next ingest or any program that opens the folder.",
        ),
    ] = True,
    on_bad_line: Annotated[
        Literal["stop", "skip"],
        typer.Option(help="What to do about a turn that cannot be used."),
    ] = "stop",
    follow_time: Annotated[
        bool,
        typer.Option(
            "--follow-time",
            help="Record each turn at its own time, as if the conversation happened now, so that "
            "--as-of can ask what was believed on the way. Implies --wait.",
        ),
    ] = False,
) -> None:
    """Store the turns of a conversation file and extract memories from them.

    The times of turns are kept. A turn is known by its id (or its place and text, when it has
    none), so the same command run again adds nothing twice and goes on where it was stopped. Each
    conversation of a LoCoMo file gets a world of its own, or with --world a user of its own.
    """
    from reverie.cli.feed import Feeder, targets
    from reverie.clock import SimulatedClock
    from reverie.formats import count_turns
    from reverie.stopping import closing_on_sigterm

    total = count_turns(file)
    whose = targets(file, options.world, options.user)
    clock = SimulatedClock(time.time()) if follow_time else None
    began = time.monotonic()
    with (
        open_runtime(options, create=True, clock=clock, background=clock is None) as rt,
        closing_on_sigterm(rt),
        _progress(quiet=options.json) as bar,
    ):
        task = bar.add_task("turns", total=total)
        feeder = Feeder(rt, clock, infer=infer, wait=wait, skip=on_bad_line == "skip")
        feeder.feed(file, whose, lambda turns: bar.update(task, advance=turns))
        report = feeder.finish()
    seconds = time.monotonic() - began
    if options.json:
        output.emit({"file": file, **report.as_dict(), "seconds": round(seconds, 3)})
    else:
        _print(file, report, seconds)


def _progress(*, quiet: bool) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TurnsPerSecond(ProgressColumn):
        """How fast it goes."""

        def render(self, task: Task) -> Text:
            """Return the speed as text."""
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.1f} turns/s")

    notes = output.notes()
    return Progress(
        TextColumn("ingesting"),
        BarColumn(),
        MofNCompleteColumn(),
        TurnsPerSecond(),
        TimeRemainingColumn(),
        console=notes,
        disable=quiet or not notes.is_terminal,
        transient=True,
    )


def _print(file: Path, report: Report, seconds: float) -> None:
    screen = output.console()
    rows: list[tuple[str, object]] = [
        ("file", file),
        ("turns read", report.turns),
        ("new", report.stored),
        ("known already", report.turns - report.stored - len(report.skipped)),
        ("memories made", report.memories),
        ("turns that wait", report.pending),
        ("into", ", ".join(f"{key.world}/{key.user_id}" for key in report.users[:5])),
        ("time", f"{seconds:.1f} s, {report.turns / max(seconds, 1e-9):,.0f} turns/s"),
    ]
    screen.print(output.pairs(rows))
    if report.skipped:
        numbers = [str(line) for line, _ in report.skipped]
        more = f" and {len(numbers) - _SHOWN_LINES} more" if len(numbers) > _SHOWN_LINES else ""
        screen.print(
            output.plain(
                f"{len(numbers)} turns skipped, lines {', '.join(numbers[:_SHOWN_LINES])}{more}",
                "yellow",
            ),
            soft_wrap=True,
        )
        for _, error in report.skipped[:_SHOWN_LINES]:
            screen.print(output.plain(f"  {error.message}", "yellow"), soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("ingest")(with_options(ingest))
