"""A bar on stderr, for commands that take a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reverie.cli import output


@contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told (done, in all); nothing is shown when `quiet`, or when stderr is
    no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    notes = output.notes()
    with Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        console=notes,
        disable=quiet or not notes.is_terminal,
        transient=True,
    ) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
