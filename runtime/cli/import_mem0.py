"""`reverie import mem0`: a store of mem0 into a data folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.opening import open_runtime
from reverie.cli.options import WriterOptions, with_options

if TYPE_CHECKING:
    from reverie.mem0.importing import Report

_SHOWN = 20  # entries that were skipped
_WORLD = "mem0"


def import_mem0(
    options: WriterOptions,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A folder of Qdrant, FAISS or Chroma as mem0 has made it, or a JSON file of items "
            'as get_all gives them (a list, or {"results": [...]}).',
            exists=True,
            readable=True,
            show_default=False,
        ),
    ],
    data_folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", help="The data folder; that of --data by default.", show_default=False
        ),
    ] = None,
    *,
    collection: Annotated[
        str | None,
        typer.Option(help="Only this collection; all by default.", show_default=False),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            help="mem0's history.db; one in SOURCE or beside it by default.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="The Kuzu file of a graph of mem0 1.x; needs the extra mem0.",
            exists=True,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Bring over what mem0 has kept: texts, ids, times, metadata, and their history.

    It lies in the world "mem0" then (another one with --world), where `reverie.mem0` finds it under
    the same ids. Memories that name neither a user nor an agent nor a run belong to --user, or are
    skipped. The same command run again adds nothing twice and goes on where it was stopped.
    Nothing of SOURCE is changed.
    """
    from reverie.mem0.importing import import_mem0 as bring_over
    from reverie.stopping import closing_on_sigterm

    if data_folder is not None:
        options = replace(options, data=data_folder)
    began = time.monotonic()
    with (
        open_runtime(options, create=True, background=False) as rt,
        closing_on_sigterm(rt),
        _progress(quiet=options.json) as advance,
    ):
        report = bring_over(
            rt,
            source,
            world=options.world or _WORLD,
            collection=collection,
            history=history,
            graph=graph,
            user_id=options.user,
            progress=advance,
        )
    seconds = time.monotonic() - began
    if options.json:
        output.emit({"source": source, "report": report, "seconds": round(seconds, 3)})
    else:
        _print(report, seconds)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr while a terminal reads it; yields what is told of each step."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    notes = output.notes()
    bar = Progress(
        TextColumn("importing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes,
        disable=quiet or not notes.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task("entries", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(report: Report, seconds: float) -> None:
    screen = output.console()
    rows: list[tuple[str, object]] = [
        ("from", ", ".join(report.sources)),
        ("entries read", report.read),
        ("new", report.new),
        ("known already", report.known),
        ("earlier versions", report.versions),
        ("relations", report.relations),
        ("deleted in mem0", report.gone),
        ("time", f"{seconds:.1f} s"),
    ]
    screen.print(output.pairs(rows))
    if report.skipped:
        screen.print(output.plain(f"{len(report.skipped)} entries skipped", "yellow"))
        for one in report.skipped[:_SHOWN]:
            line = f"  {one.source}, entry {one.number}: {one.why}"
            screen.print(output.plain(line, "yellow"), soft_wrap=True)


def register(group: typer.Typer) -> None:
    """Add the command of this file to `reverie import`."""
    group.command("mem0")(with_options(import_mem0))
