"""`reverie town`: a small town whose people see, tell, distort and forget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reverie.cli import output
from reverie.cli.models import folder_of
from reverie.cli.options import ModelOptions, flags_given, with_options
from reverie.memory_graph.errors import ConfigError

if TYPE_CHECKING:
    from reverie.town import Outcome
    from reverie.town.ask import Answer
    from reverie.town.play import Play
    from reverie.town.record import Knower
    from reverie.town.truth import Truth

FAILED = 1
_NAMED = 6  # who know, in a line
_CHECKED = 50  # people whose memories are compared with the script in a large town
_LINKED = 1000  # people up to which memories are linked with people and places
_ASKED = 120  # questions to each of them, for what they cannot know
_FIXED = ("npcs", "seed", "pace", "scenes", "days")  # settings that a save or a log fixes
_QUESTION = "who knows that the player stole the amulet?"


def town(  # noqa: PLR0913 (each is an option)
    options: ModelOptions,
    *,
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=365, help="How many days to play.")] = 7,
    npcs: Annotated[
        int, typer.Option(min=2, help="How many people; those beyond 25 are made up.")
    ] = 25,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    data: Annotated[
        Path, typer.Option(help="A folder for the town: its memories and its saves.")
    ] = Path("town-data"),
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write a page with pictures there (needs the extra 'report').",
            show_default=False,
        ),
    ] = None,
    actors: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Run on that many Ray actors; in this process by default.",
            show_default=False,
        ),
    ] = None,
    save_day: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Make a save slot at the end of that day too; with --resume, go on from it.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from a save slot, by default the newest.")
    ] = False,
    what_if: Annotated[
        bool,
        typer.Option(help="Play the days once more, in a fork in which nobody saw the theft."),
    ] = True,
    pace: Annotated[
        float, typer.Option(min=0.0, max=10.0, help="Deeds an hour at a place with people.")
    ] = 0.5,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            help="Ask the town at the end who knows of something; may be given several times.",
            show_default=False,
        ),
    ] = None,
    language_model: Annotated[
        str | None,
        typer.Option(
            help="Chooses what happens in some scenes of a day: smollm2, or an instruct model's "
            "GGUF file. A larger one finds words for it, and writes what people think in the "
            "evening.",
            show_default=False,
        ),
    ] = None,
    scenes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=200,
            help="How many scenes a day it chooses in; 3 by default. Without a model the script "
            "chooses.",
            show_default=False,
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            help="Play another town again, by its folder or script.jsonl, without its model, to "
            "the same memories.",
            show_default=False,
        ),
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="minilm, multilingual, standin, a GGUF file, or auto.")
    ] = "standin",
) -> None:
    """Play a town of people who remember what they saw and were told; exit 1 when a memory says
    what its owner cannot know."""
    from reverie import door
    from reverie.town import Plan, run
    from reverie.town.truth import compare

    asked = [door.question(question) for question in ask or ()]
    if report is not None:
        _require_report(report, data)
    plan = Plan(
        folder=data,
        days=days,
        npcs=npcs,
        seed=seed,
        pace=pace,
        actors=actors,
        save_day=save_day,
        resume=resume,
        what_if=what_if,
        linked=npcs <= _LINKED,
        embedder=embedder,
        scenes=scenes,
        replay=replay,
        given=flags_given(context, _FIXED),
        models_folder=folder_of(options),
        settings={} if language_model is None else _written_by(language_model),
    )
    found: list[Truth] = []
    answers: list[Answer] = []

    def finish(outcome: Outcome) -> None:
        from reverie.town.ask import ask as ask_town

        answers.extend(ask_town(outcome.play, question) for question in asked)
        truth = compare(outcome.play, people=_CHECKED, ask=_ASKED)
        found.append(truth)
        if report is not None:
            from reverie.town.report import write_page

            write_page(report, outcome, truth)

    with _progress(quiet=options.json) as (step, say):
        outcome = run(
            plan,
            progress=step,
            after_day=None if options.json else lambda play, day: say(_evening(play, day)),
            at_end=finish,
        )
    truth = found[0]
    if options.json:
        output.emit({**_document(outcome, truth, report), "answers": answers})
    else:
        _show(outcome, truth, report)
        for answer in answers:
            said = f"“{answer.knowers[0].text}”: " if answer.knowers else ""
            line = f"{answer.question} {said}{_named(answer.knowers)}"
            output.console().print(output.plain(line), soft_wrap=True)
    if not truth.holds:
        raise typer.Exit(FAILED)


def _written_by(language_model: str) -> dict[str, object]:
    return {"language_model": language_model, "summaries": "written"}


def _require_report(report: Path, data: Path) -> None:
    """Refuse before the town is played, not after."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        msg = "the report needs matplotlib: pip install 'reverie[report]'"
        raise ConfigError(msg, setting="report")
    from reverie.town.report import require_place
    from reverie.town.run import MEMORY

    require_place(report, data / MEMORY)


@contextmanager
def _progress(
    *, quiet: bool
) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """Yield what shows progress, and what prints a line above it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("hours"),
        TimeElapsedColumn(),
        console=output.notes(),
        disable=quiet,
        transient=True,
    ) as bar:
        tasks: dict[str, int] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)  # type: ignore[arg-type]

        yield step, lambda line: bar.console.print(output.plain(line), soft_wrap=True)


def _evening(play: Play, day: int) -> str:
    """Return what was chosen in scenes of a day, and what the town answers at the end of it."""
    from reverie.town.schedule import clock_text, day_and_hour, time_of

    scenes = [scene for scene in play.record.scenes if day_and_hour(scene.tick)[0] == day]
    lines = [f"{clock_text(time_of(s.tick))}, {s.by}: {s.told(play.setting)}" for s in scenes]
    return "\n".join([*lines, f"day {day}: {_QUESTION} {_named(play.record.days[-1].knowers)}"])


def _named(knowers: Sequence[Knower]) -> str:
    """Return who knows, and from whom, in a line."""
    from reverie.town.evening import how

    if not knowers:
        return "nobody"
    names = [f"{knower.name} ({how(knower)})" for knower in knowers[:_NAMED]]
    more = f", and {len(knowers) - _NAMED} more" if len(knowers) > _NAMED else ""
    return ", ".join(names) + more


def _document(outcome: Outcome, truth: Truth, report: Path | None) -> dict[str, object]:
    play, other = outcome.play, outcome.other
    ticks = play.record.ticks
    last = play.record.days[-1].knowers if play.record.days else ()
    return {
        "days": outcome.plan.days,
        "npcs": len(outcome.setting.people),
        "seed": outcome.plan.seed,
        "deeds": sum(figures.deeds for figures in ticks),
        "observed": sum(figures.observed for figures in ticks),
        "told": sum(figures.told for figures in ticks),
        "knowers": last,
        "knowers_if_unseen": other.record.days[-1].knowers if other is not None else None,
        "scenes": _scenes(outcome),
        "truth": truth,
        "digest": outcome.digest,
        "digests": outcome.digests,
        "seconds": round(sum(figures.seconds for figures in ticks), 3),
        "report": None if report is None else str(report),
    }


def _scenes(outcome: Outcome) -> dict[str, object] | None:
    """Return who chose in how many scenes; None in a town without any."""
    from reverie.town.record import reasons

    scenes = outcome.play.record.scenes
    if not scenes:
        return None
    return {
        "model": outcome.model or None,
        "by_model": sum(scene.by_model for scene in scenes),
        "in_its_words": sum(bool(scene.words) for scene in scenes),
        "by_script": reasons(scenes),
    }


def _show(outcome: Outcome, truth: Truth, report: Path | None) -> None:
    from reverie.town.record import reasons

    play = outcome.play
    ticks = play.record.ticks
    spent = sorted(figures.seconds for figures in ticks)
    rows: list[tuple[str, object]] = [
        (
            "people, days, seed",
            f"{len(outcome.setting.people)}, {outcome.plan.days}, {outcome.plan.seed}",
        ),
        ("deeds", f"{sum(figures.deeds for figures in ticks):,}"),
        ("memories of witnesses", f"{sum(figures.observed for figures in ticks):,}"),
        ("times told on", f"{sum(figures.told for figures in ticks):,}"),
        ("of them distorted", f"{sum(bool(t.distortion) for t in play.book.ledger.tellings):,}"),
        ("time for an hour, median", f"{1e3 * spent[len(spent) // 2]:.0f} ms" if spent else ""),
        ("memories of what one cannot know", len(truth.unknown) + len(truth.leaked)),
        ("hearsay without its chain", len(truth.unchained)),
        ("digest of all memories", outcome.digest),
    ]
    if outcome.other is not None and outcome.other.record.days:
        unseen = len(outcome.other.record.days[-1].knowers)
        rows.insert(7, ("who would know, had nobody seen it", unseen))
    if scenes := play.record.scenes:
        by_model = sum(scene.by_model for scene in scenes)
        rows.insert(2, ("scenes that the model chose in", f"{by_model} of {len(scenes)}"))
        rows[3:3] = [(f"by the script: {why}", n) for why, n in reasons(scenes).items()]
    if report is not None:
        rows.append(("report", report))
    output.console().print(output.pairs(rows))
    for line in [*truth.unknown, *truth.leaked, *truth.unchained, *truth.unkept][:20]:
        output.note(f"  {line}")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("town")(with_options(town))
