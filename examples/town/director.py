"""Who chooses what happens in a scene: a language model, the log of an earlier run, or the script.

A small model (of less than about a billion parameters) gets the scene as a story that breaks off
before a verb. The share that it gives to each verb is set against what it gives it in stories of
all kinds, and by what is left one of them is drawn: so what counts is this scene, and not how
common a verb is. A larger model is shown the scene as a JSON object, answers with a key, held to a
grammar, and may find words for what happens.

Whatever a model does, the town goes on: without an answer the script's choice stands, with the
reason. A model that has failed over three scenes in a row is left alone for the rest of the day,
and from then on asked once a day until it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple, TypeAlias

import msgspec

from reverie.memory_graph.errors import (
    BudgetExceededError,
    ConfigError,
    InvalidValueError,
    ModelTimeoutError,
    UnavailableError,
)
from reverie.models.chat_prompts import for_model
from reverie.models.protocol import LanguageModel
from reverie.models.summarise import LARGE_ENOUGH
from reverie.town.prompts import MAX_TOKENS, choice_grammar, messages, story, usual_stories
from reverie.town.record import Choice
from reverie.town.scene import Scene
from reverie.town.schedule import day_and_hour
from reverie.town.setting import TALK_VERBS, Setting

PATIENCE = 3  # scenes in a row over which a model may fail
LEAST = 1e-4  # share of a verb in any story: below, it is noise

NO_MODEL = "no model"
LATE = "took too long"
SPENT = "budget spent"
AWAY = "not there"
GARBAGE = "answered none of them"
UNFIT = "cannot be asked this"
FAILED = "failed"
LEFT_ALONE = "failed before"


class Taken(msgspec.Struct, frozen=True):
    """What is to happen: the place of an option, and words for it, if there are any of a model's;
    `why` is why it was not the model that chose."""

    option: int
    by_model: bool = False
    words: str = ""
    why: str = ""


def came_of(scene: Scene, taken: Taken, *, event: str, text: str, words: str) -> Choice:
    """Return what came of a scene, for the record; see `Choice`."""
    return Choice(
        id=scene.id,
        tick=scene.tick,
        place=scene.place,
        who=scene.who,
        other=scene.other,
        offered=scene.offered,
        took=scene.offered[taken.option],
        by_model=taken.by_model,
        why=taken.why,
        words=words,
        event=event,
        text=text,
    )


Chooser: TypeAlias = Callable[[Scene], Taken]


def by_script(scene: Scene) -> Taken:
    """Choose as the script does."""
    return Taken(scene.plain, why=NO_MODEL)


class Director(NamedTuple):
    """Chooses what happens in a scene, and is told what came of it."""

    choose: Chooser
    note: Callable[[Choice], None]


SCRIPT = Director(by_script, lambda _: None)


class _GarbageError(Exception):
    """The answer is no choice."""


class ByModel:
    """Lets a model choose."""

    def __init__(self, model: LanguageModel, setting: Setting) -> None:
        """Begin.

        Args:
            model: of any kind; whom its calls are charged to is said around them.
            setting: the town.
        """
        self._model = model
        self._setting = setting
        self._is_small = 0 < model.info.parameters < LARGE_ENOUGH
        self._usual: dict[str, float] = {}  # shares of verbs in any story
        self._failed = 0  # in a row
        self._day = 0

    def __call__(self, scene: Scene) -> Taken:
        """Return the model's choice, or the script's where it made none."""
        day, _ = day_and_hour(scene.tick)
        if day != self._day:
            self._day, self._failed = day, min(self._failed, PATIENCE - 1)
        if self._failed >= PATIENCE:
            return Taken(scene.plain, why=LEFT_ALONE)
        try:
            taken = self._taken(scene)
        except Exception as exc:  # noqa: BLE001 (whatever somebody's own model raises)
            self._failed += 1
            return Taken(scene.plain, why=_why(exc))
        self._failed = 0
        return taken

    def _taken(self, scene: Scene) -> Taken:
        if not self._is_small:
            return self._answered(scene)
        try:
            return self._drawn(scene)
        except InvalidValueError:  # to its vocabulary two verbs begin alike
            return msgspec.structs.replace(self._answered(scene), words="")

    def prepare(self) -> None:
        """Learn what a small model gives to verbs in any story; where it fails, it is asked again
        in the first scene."""
        if self._is_small and not self._usual:
            with suppress(Exception):  # a scene will tell
                self._usual = self._learned()

    def _learned(self) -> dict[str, float]:
        deeds = [deed.verb for deed in self._setting.deeds.values() if deed.verb]
        verbs = [*TALK_VERBS, *deeds]
        rows = self._shares(usual_stories(), verbs)
        means = (fmean(column) for column in zip(*rows, strict=True))
        return dict(zip(verbs, means, strict=True))

    def _shares(self, stories: Sequence[str], verbs: Sequence[str]) -> list[list[float]]:
        rows = self._model.choose(stories, [f" {verb}" for verb in verbs])
        for row in rows:
            if len(row) != len(verbs) or not all(0 <= share <= 1 for share in row):
                raise _GarbageError
        if len(rows) != len(stories):
            raise _GarbageError
        return rows

    def _drawn(self, scene: Scene) -> Taken:
        self._usual = self._usual or self._learned()
        verbs = [option.verb for option in scene.options]
        (row,) = self._shares([story(self._setting, scene)], verbs)
        shares = [s / max(self._usual[verb], LEAST) for s, verb in zip(row, verbs, strict=True)]
        if not (whole := sum(shares)):
            raise _GarbageError
        return Taken(_place(shares, scene.share * whole), by_model=True)

    def _answered(self, scene: Scene) -> Taken:
        done = self._model.complete(
            for_model(self._model, messages(self._setting, scene)),
            max_tokens=MAX_TOKENS,
            grammar=choice_grammar(scene.offered),
        )
        try:
            said = msgspec.json.decode(done.text, type=_Said)
        except msgspec.DecodeError:
            raise _GarbageError from None
        if said.choice not in scene.offered:
            raise _GarbageError
        return Taken(scene.offered.index(said.choice), by_model=True, words=said.words)


class _Said(msgspec.Struct, frozen=True):
    choice: str
    words: str = ""


def _place(shares: Sequence[float], left: float) -> int:
    """Return the share that is reached when so much of all is taken away."""
    for place, share in enumerate(shares):
        left -= share
        if left <= 0 < share:
            return place
    return max(range(len(shares)), key=shares.__getitem__)


def _why(exc: Exception) -> str:
    match exc:
        case _GarbageError():
            return GARBAGE
        case ModelTimeoutError() | TimeoutError():
            return LATE
        case BudgetExceededError():
            return SPENT
        case UnavailableError():
            return AWAY
        case InvalidValueError():
            return UNFIT
        case _:
            return FAILED


class FromLog:
    """Chooses as an earlier run did."""

    def __init__(self, known: Mapping[str, Choice], beyond: Chooser | None = None) -> None:
        """Begin.

        Args:
            known: what was chosen, by scene.
            beyond: chooses in scenes that the log does not have; None refuses them.
        """
        self._known = known
        self._beyond = beyond

    def __call__(self, scene: Scene) -> Taken:
        """Return what was chosen.

        Raises:
            ConfigError: the log does not have this scene, or has another one in its place.
        """
        found = self._known.get(scene.id)
        here = (scene.place, scene.who, scene.other, scene.offered)
        is_same = found is not None and here == (found.place, found.who, found.other, found.offered)
        if found is not None and is_same and found.took in scene.offered:
            option = scene.offered.index(found.took)
            return Taken(option, found.by_model, found.words, found.why)
        if self._beyond is not None:
            return self._beyond(scene)
        what = "does not have" if found is None else "has something else in"
        msg = f"the script log {what} scene {scene.id}: it is of another town, or cut short"
        raise ConfigError(msg, scene=scene.id)
