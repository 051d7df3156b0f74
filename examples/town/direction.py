"""Who directs a run: a language model, the log of an earlier run, or nobody; and the log of it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from reverie.memory_graph.errors import ConfigError
from reverie.models.summarise import WrittenSummaries
from reverie.models.usage import Budget, charged_to, purpose
from reverie.town.director import ByModel, Chooser, Director, FromLog, Taken, by_script
from reverie.town.record import Choice, Save
from reverie.town.scene import Scene
from reverie.town.script_log import (
    NAME,
    Begun,
    Line,
    NotedSummaries,
    ScriptLog,
    choices,
    read_log,
    texts,
)

if TYPE_CHECKING:
    from reverie import Runtime, World
    from reverie.town.setting import Setting

PURPOSE = "scene"  # under which the model's calls are counted


class Direction:
    """What a run needs of whoever directs it.

    Attributes:
        begun: how the run was begun whose log is played again; None when it is none.
        has_model: a language model is to take part.
        model: id of the model that takes part, or took part then; empty without one.
    """

    def __init__(
        self, folder: Path, settings: dict[str, Any], *, resume: bool, replay: Path | None
    ) -> None:
        """Read the log that is to be followed.

        Args:
            folder: of the town.
            settings: of `reverie.open`.
            resume: the town goes on from a save, and so does its log, if it has one.
            replay: the log that is played again, or a folder with one.

        Raises:
            DataFolderError: the log cannot be read.
            ConfigError: what is played again is to go on from a save, or with a model.
        """
        self.has_model = settings.get("language_model") is not None
        if replay is not None and (self.has_model or resume):
            what = "needs no language model" if self.has_model else "begins at its begin"
            msg = f"what is played again from a script log {what}: leave it out"
            raise ConfigError(msg, setting="replay")
        self.begun: Begun | None = None
        self.model = ""
        self._path = folder / NAME
        self._lines: list[Line] = []
        if replay is not None:
            self.begun, self._lines = read_log(replay)
            self.model = self.begun.model
        elif resume and self._path.exists():
            begun, self._lines = read_log(self._path)
            self.model = begun.model
        self._noted = NotedSummaries()
        self._writes = self.has_model and settings.get("summaries") == "written"
        self._language: Any = None
        self._chooser: ByModel | None = None
        self._log: ScriptLog | None = None

    def settings(self) -> dict[str, Any]:
        """Return what `reverie.open` is given so that texts of a model go through the log."""
        follows = self._writes or any(texts(self._lines))
        return {"summaries": self._noted} if follows else {}

    def opened(self, rt: Runtime, embedder: str) -> None:
        """Take the model of an open runtime.

        Args:
            rt: the runtime.
            embedder: id of the world's.

        Raises:
            ConfigError: what is played again was played with another embedder.
        """
        if self.begun is not None and self.begun.embedder != embedder:
            msg = (
                f"the script log is of a town whose embedder is {self.begun.embedder}, not "
                f"{embedder}: with another one, other things come to mind"
            )
            raise ConfigError(msg, setting="embedder")
        self._language = rt.mind.language.model
        if self._language is not None:
            self.model = self._language.info.id
            if self._writes:
                self._noted.writer = WrittenSummaries(self._language)

    def begin(self, begun: Begun, save: Save | None, closing: ExitStack) -> None:
        """Begin the log of a run, or go on with it from a save. A town in which nobody chooses, nor
        writes anything, keeps none. Raises StorageError."""
        if not (begun.scenes or self.has_model or self._lines):
            return
        kept = [*(save.record.scenes if save is not None else ()), *texts(self._lines)]
        log = ScriptLog(self._path, msgspec.structs.replace(begun, model=self.model), kept)
        self._log = self._noted.log = closing.enter_context(log)

    def director(self, setting: Setting, world: World, branch: str = "") -> Director:
        """Return who directs a branch: the model, else the log, and where that ends the script; in
        what is played again the log alone. What was chosen is written into the log."""

        def note(choice: Choice) -> None:
            if self._log is not None:
                self._log.add(msgspec.structs.replace(choice, branch=branch))

        if self._language is not None:
            if self._chooser is None:
                self._chooser = ByModel(self._language, setting)
                self._chooser.prepare()
            return Director(_charged(self._chooser, world), note)
        beyond = None if self.begun is not None else by_script
        return Director(FromLog(choices(self._lines, branch), beyond), note)


def _charged(chooser: Chooser, world: World) -> Chooser:
    """Charge the calls of a model to who does something, within his budget."""

    def choose(scene: Scene) -> Taken:
        limits = world.user(scene.who).profile()
        budget = None
        if limits is not None:
            budget = Budget(limits.model_calls, prompt_tokens=limits.prompt_tokens)
        with charged_to(world.name, scene.who, budget=budget), purpose(PURPOSE):
            return chooser(scene)

    return choose
