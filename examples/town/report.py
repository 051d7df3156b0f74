"""One self-contained page about a run: no scripts, no fonts, nothing from elsewhere."""

from __future__ import annotations

import errno
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from reverie import __version__
from reverie.destinations import outside, require_replaceable
from reverie.memory_graph.errors import ConfigError
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.town.evening import STORY, counted, how
from reverie.town.ledger import Happening
from reverie.town.play import Play
from reverie.town.record import reasons
from reverie.town.run import Outcome
from reverie.town.schedule import HOURS, clock_text, time_of
from reverie.town.setting import said
from reverie.town.truth import Truth

_ROWS = 300  # of a table at most
_START = b"<!doctype html>"  # of a page


def page(outcome: Outcome, truth: Truth) -> str:
    """Return the page as HTML.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        import reverie.town.pictures as pictures  # noqa: PLR0402 (the form that looks for it anew)
    except ImportError as exc:
        msg = "the report needs matplotlib: pip install 'reverie[report]'"
        raise ConfigError(msg) from exc
    play, other, setting = outcome.play, outcome.other, outcome.setting
    ledger, record = play.book.ledger, play.record
    last = outcome.plan.days * HOURS
    story = ledger.happenings.get(STORY)
    drawn = {
        "weights": pictures.weights(setting, record, last),
        "trust": pictures.trust(setting, record, None if other is None else other.record),
        "affinities": pictures.affinities(record),
        "map": pictures.town_map(setting, ledger),
        "counts": pictures.counts(record),
        "times": pictures.times(record, last),
    }
    if story is not None:
        drawn["spread"] = pictures.spread(setting, ledger, STORY, last)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    here = files("reverie.town")
    template = environment.from_string(here.joinpath("report.jinja").read_text("utf-8"))
    return template.render(
        name=setting.name,
        people=len(setting.people),
        days=outcome.plan.days,
        seed=outcome.plan.seed,
        css=Markup(here.joinpath("report.css").read_text("utf-8")),  # noqa: S704 (our own file)
        pictures={name: Markup(svg) for name, svg in drawn.items()},  # noqa: S704 (drawn above)
        tiles=_tiles(play),
        story=None if story is None else _story(play, story),
        knowers=_knowers(play),
        changes=_changes(play),
        other=None if other is None else {"text": _compared(play, other)},
        counted=_counted(play),
        away=_away(play),
        thoughts=_thoughts(play),
        scenes=_scenes(outcome),
        truth=_truth(truth),
        cast=_cast(play),
        version=__version__,
        embedder=outcome.embedder,
        digest=outcome.digest,
    )


def write_page(path: Path, outcome: Outcome, truth: Truth) -> None:
    """Write the page to a file; see `page`. Raises StorageError."""
    text = page(outcome, truth)
    try:
        path.write_text(text, "utf-8")
    except OSError as exc:
        raise disk_error(exc, path) from exc


def require_place(path: Path, folder: Path) -> None:
    """Refuse a path that the page cannot be written to, before there is a page.

    Args:
        path: of the page.
        folder: the data folder, which it must not lie in.

    Raises:
        InvalidValueError: it lies in the data folder, or is that of something else than a page.
        StorageError: its folder is not there, or is not to be written to.
    """
    path = outside(path, folder)
    require_replaceable(path, _START, "page of the town")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise PermissionError(errno.EACCES, "it cannot be written", str(path))
    except OSError as exc:
        raise disk_error(exc, path) from exc


def _tiles(play: Play) -> list[tuple[str, str]]:
    ticks = play.record.ticks
    spent = sorted(figures.seconds for figures in ticks)
    middle = 1e3 * spent[len(spent) // 2] if spent else 0.0
    by_model = sum(scene.by_model for scene in play.record.scenes)
    scenes = [(f"{by_model:,}", "scenes that the model chose in")] if play.record.scenes else []
    return [
        (f"{sum(f.deeds for f in ticks):,}", "deeds"),
        *scenes,
        (f"{sum(f.observed for f in ticks):,}", "memories of witnesses"),
        (f"{sum(f.told for f in ticks):,}", "times told on"),
        (f"{sum(bool(t.distortion) for t in play.book.ledger.tellings):,}", "of them distorted"),
        (f"{sum(f.moves for f in ticks):,}", "moves of relationships"),
        (f"{middle:,.0f} ms", "for an hour of the town (median)"),
    ]


def _story(play: Play, story: Happening) -> dict[str, Any]:
    setting = play.setting
    names = [_both(play, name) for name in story.witnesses]
    knowers = play.record.days[-1].knowers if play.record.days else ()
    right = {said(setting, story.claim, "en"), said(setting, story.claim, "zh")}
    return {
        "when": clock_text(time_of(story.tick)),
        "place": setting.places[story.claim.place].en,
        "text": story.text,
        "seen_by": " and ".join(names) if names else "Nobody",
        "knowers": len(knowers),
        "wrong": sum(knower.text not in right for knower in knowers),
    }


def _both(play: Play, name: str) -> str:
    person = play.setting.people.get(name)
    return f"{person.zh} ({name})" if person is not None and person.zh else name


def _knowers(play: Play) -> list[dict[str, Any]]:
    if not play.record.days:
        return []
    return [
        {
            "name": _both(play, knower.name),
            "how": how(knower),
            "text": knower.text,
            "language": "en" if knower.text.isascii() else "zh",
            "confidence": knower.confidence,
        }
        for knower in play.record.days[-1].knowers[:_ROWS]
    ]


def _changes(play: Play) -> list[dict[str, str]]:
    return [
        {
            "when": clock_text(time_of(telling.tick)),
            "who": f"{telling.speaker} to {telling.listener}",
            "change": telling.distortion,
        }
        for telling in play.book.ledger.of(STORY)
        if telling.distortion
    ][:_ROWS]


def _compared(play: Play, other: Play) -> str:
    def mean(one: Play) -> float:
        found = one.record.days[-1].trust if one.record.days else {}
        people = len(one.setting.people)
        return sum(v for name, v in found.items() if name in one.setting.people) / people

    knowers = [len(one.record.days[-1].knowers) if one.record.days else 0 for one in (play, other)]
    return (
        f"{knowers[1]} people know of the theft there, against {knowers[0]}. At the end the player "
        f"is trusted {mean(other):+.2f} on average there, and {mean(play):+.2f} here."
    )


def _counted(play: Play) -> str:
    number, people = len(counted(play)), len(play.setting.people)
    return f"all {people} people" if number == people else f"{number} of the {people} people"


def _away(play: Play) -> dict[str, Any]:
    total, lines = play.record.away
    rows = [
        {
            "when": clock_text(line.at),
            "name": line.name,
            "text": line.text,
            "why": f"{line.became}: {line.why}",
        }
        for line in lines[:_ROWS]
    ]
    return {"total": f"{total:,}", "rows": rows}


def _thoughts(play: Play) -> list[dict[str, str]]:
    """Return the last thought of each person, of those who had one."""
    last = {thought.name: thought for thought in play.record.thoughts}
    return [
        {"when": f"day {thought.day}", "name": _both(play, name), "text": thought.text}
        for name, thought in last.items()
    ][:_ROWS]


def _scenes(outcome: Outcome) -> dict[str, Any] | None:
    """Return what was chosen in scenes, the last ones; None in a town without any."""
    play = outcome.play
    scenes = play.record.scenes
    if not scenes:
        return None
    by_model = sum(scene.by_model for scene in scenes)
    rest = [f"{count} by the script ({why})" for why, count in reasons(scenes).items()]
    return {
        "model": outcome.model or "no language model",
        "counted": ", ".join([f"{by_model} of {len(scenes)} by the model", *rest]),
        "in_words": sum(bool(scene.words) for scene in scenes),
        "rows": [
            {
                "when": clock_text(time_of(scene.tick)),
                "where": play.setting.places[scene.place].en,
                "text": scene.told(play.setting),
                "by": scene.by,
                "offered": ", ".join(scene.offered),
            }
            for scene in scenes[-_ROWS:]
        ],
    }


def _truth(truth: Truth) -> dict[str, Any]:
    def line(text: str, found: list[str]) -> tuple[str, str, bool]:
        return text, f"{len(found):,}", not found

    return {
        "people": truth.people,
        "rows": [
            ("memories read", f"{truth.memories:,}", True),
            ("of them hearsay", f"{truth.hearsay:,}", True),
            line("memories of what their owner cannot know of", truth.unknown),
            line("hearsay without the chain by which it came", truth.unchained),
            line("seen or told of, and not in memory at all", truth.unkept),
            ("questions for what one cannot know of", f"{truth.asked:,}", True),
            line("answers to them that give it away", truth.leaked),
        ],
    }


def _cast(play: Play) -> list[dict[str, Any]]:
    last = play.record.days[-1].counts if play.record.days else {}
    return [
        {
            "name": _both(play, name),
            "job": play.setting.people[name].job,
            "goal": play.setting.people[name].goal,
            "feuds": ", ".join(play.setting.people[name].feuds),
            "active": f"{found.active:,}",
            "hearsay": f"{found.hearsay:,}",
            "archived": f"{found.archived:,}",
        }
        for name, found in last.items()
    ]
