"""`reverie demo`: two conversations, questions, a fact that changes, a restart, and a check."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reverie.cli import output
from reverie.cli.models import folder_of
from reverie.cli.options import ModelOptions, with_options
from reverie.memory_graph.errors import DataFolderError, ModelMissingError

if TYPE_CHECKING:
    from reverie.cli.story import Story

FAILED = 1


def demo(
    options: ModelOptions,
    *,
    english: Annotated[
        Path | None,
        typer.Option(help="Instead of examples/data/english.jsonl.", show_default=False),
    ] = None,
    chinese: Annotated[
        Path | None,
        typer.Option(help="Instead of examples/data/chinese.jsonl.", show_default=False),
    ] = None,
    actors: Annotated[int, typer.Option(min=1, help="How many Ray actors to begin with.")] = 2,
    inline: Annotated[
        bool, typer.Option("--inline", help="Without Ray: everything in this process.")
    ] = False,
    no_download: Annotated[
        bool,
        typer.Option(
            "--no-download", help="Fetch no models; the stand-in knows words, not meaning."
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A new data folder, which is kept; by default one that is removed at the end.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what reverie does on two example conversations; exit 0 only when all of it held."""
    from reverie.cli.story import load_stories
    from reverie.cli.tour import Tour

    began = time.monotonic()
    stories = load_stories(english, chinese, embedder="standin" if no_download else None)
    if not no_download:
        _pull(options)
    other = 1 if actors > 1 else 2  # shards need not be as many as before
    shards: list[int | None] = [None, None] if inline else [actors, other, None]
    with _folder(data) as folder:
        tour = Tour(folder, stories, folder_of(options), quiet=options.json)
        _run(tour, shards)
    seconds = time.monotonic() - began
    if options.json:
        output.emit({**tour.summary(), "seconds": round(seconds, 2)})
    else:
        tour.show_summary(seconds)
        if data is not None:
            _say_how_to_go_on(data, stories)
    if not tour.held:
        raise typer.Exit(FAILED)


def _run(tour: Any, shards: list[int | None]) -> None:
    with tour.open(shards[0]):
        tour.listen()
        tour.ask(detailed=True)
        tour.show_context()
        tour.change_facts()
        tour.remember_digests()
    for number in shards[1:]:
        with tour.open(number):
            tour.compare_digests()
            tour.ask(detailed=False)
            if number == shards[-1]:
                tour.check()
            tour.remember_digests()


def _pull(options: ModelOptions) -> None:
    from reverie.cli.story import MODELS
    from reverie.models.pull import pull

    say = output.note if options.json else typer.echo
    try:
        pull(MODELS, folder_of(options), say)
    except ModelMissingError as exc:
        msg = f"{exc.message}\nWithout models: reverie demo --no-download"
        raise ModelMissingError(msg, **exc.details) from exc


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    """Make the data folder; one that the caller did not name is removed afterwards."""
    if data is not None:
        if data.exists() and (not data.is_dir() or any(data.iterdir())):
            msg = f"{data} is not empty; the demonstration needs a new folder"
            raise DataFolderError(msg, path=str(data))
        yield data
        return
    made = Path(tempfile.mkdtemp(prefix="reverie-demo-"))
    try:
        yield made / "data"
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _say_how_to_go_on(data: Path, stories: list[Story]) -> None:
    for story in stories:
        asked = f'reverie search --data {data} --world {story.world} --user {story.user} "..."'
        output.note(f"go on with: {asked}")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("demo")(with_options(demo))
