"""What a run remembers for its report, and the file that a saved run goes on from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from reverie.memory_graph.errors import DataFolderError
from reverie.memory_graph.store.driver_errors import disk_error
from reverie.town.ledger import Ledger
from reverie.town.setting import Setting

FORMAT = 1


class TickFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hour: how many deeds, memories of witnesses, tellings and moves of relationships, and
    how long it took by the wall clock, which nothing in the town depends on."""

    tick: int
    deeds: int = 0
    observed: int = 0
    told: int = 0
    moves: int = 0
    seconds: float = 0.0


class Knower(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody who knows of an event, and from whom; `heard` is the chain, empty for a witness."""

    name: str
    text: str
    heard: tuple[str, ...] = ()
    confidence: float = 1.0
    status: str = "active"


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody's memory holds at the end of a day."""

    active: int
    archived: int = 0
    hearsay: int = 0
    summaries: int = 0


class DayFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of a day: what everybody's memory holds, who knows of the planted deed, and how
    much everybody trusts the player. Of large towns only some people are counted."""

    day: int
    counts: dict[str, Counts] = {}
    knowers: tuple[Knower, ...] = ()
    trust: dict[str, float] = {}
    affinities: tuple[tuple[str, str, float], ...] = ()


class Trace(msgspec.Struct, omit_defaults=True):
    """The weight of one memory over time.

    Attributes:
        name: whose memory it is.
        event: of what happening.
        seen_at: when it was last read, in seconds; None while it was not.
        points: of each hour: tick, weight, readings so far, and whether it is active.
    """

    name: str
    event: str
    memory_id: str
    text: str
    sentiment: float
    seen_at: float | None = None
    points: list[tuple[int, float, int, bool]] = []


class Away(msgspec.Struct, frozen=True, omit_defaults=True):
    """A memory that was put away, as the audit tells it; `at` is in seconds."""

    name: str
    text: str
    at: float
    became: str
    why: str


class Thought(msgspec.Struct, frozen=True, omit_defaults=True):
    """An insight that somebody drew from his memories at the end of a day."""

    day: int
    name: str
    text: str


class Choice(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="line", tag="scene"
):
    """What came of a scene; a line of the script log, from which a run can be played again.

    Attributes:
        id: of the scene, one of its branch.
        tick: the hour, counted from the town's first.
        place: where it was.
        who: who did something, or not.
        other: to whom.
        offered: keys of what might have happened; see scene.py.
        took: key of what did.
        by_model: a language model chose it; else the script did.
        why: why it was not the model.
        words: how a model put it, if that was kept.
        event: id of what happened, or was told of; empty when nothing was.
        text: what happened, or what was told.
        branch: of the run; empty for the town itself.
    """

    id: str
    tick: int
    place: str
    who: str
    other: str
    offered: tuple[str, ...]
    took: str
    by_model: bool = False
    why: str = ""
    words: str = ""
    event: str = ""
    text: str = ""
    branch: str = ""

    @property
    def by(self) -> str:
        """Who chose, in words."""
        return "by the model" if self.by_model else f"by the script ({self.why})"

    def told(self, setting: Setting) -> str:
        """Return what came of it as a sentence."""
        if not self.event:
            return (
                f"{self.who} met {self.other} at {setting.places[self.place].en}, and kept silent."
            )
        is_deed = self.took in setting.deeds
        return self.text if is_deed else f"{self.who} told {self.other}: “{self.text}”"


def reasons(scenes: Iterable[Choice]) -> dict[str, int]:
    """Return why the model did not choose in scenes, and in how many."""
    return dict(sorted(Counter(scene.why for scene in scenes if not scene.by_model).items()))


class Record(msgspec.Struct):
    """What a run has written down so far. `away` is of the last evening: how many memories were
    put away in all, and some of them. `scenes` is empty where no model took part."""

    ticks: list[TickFigures] = []
    days: list[DayFigures] = []
    traces: list[Trace] = []
    thoughts: list[Thought] = []
    away: tuple[int, tuple[Away, ...]] = (0, ())
    scenes: list[Choice] = []


class Save(msgspec.Struct, kw_only=True):
    """A run that can go on: at `tick`, with the memories of the save slot `tag`. `scenes` is how
    many there are a day."""

    format: int = FORMAT
    seed: int
    npcs: int
    pace: float
    linked: bool = True
    scenes: int = 0
    tick: int
    tag: str
    ledger: Ledger
    record: Record


def write_save(path: Path, save: Save) -> None:
    """Write a save beside the data folder; a file that is there is replaced at once or not.

    Raises:
        StorageError: it cannot be written.
    """
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_bytes(msgspec.json.encode(save))
        temporary.replace(path)
    except OSError as exc:
        raise disk_error(exc, path) from exc


def read_save(path: Path) -> Save:
    """Return a save.

    Raises:
        DataFolderError: it cannot be read, or is of another version.
    """
    try:
        save = msgspec.json.decode(path.read_bytes(), type=Save)
    except (OSError, msgspec.DecodeError) as exc:
        msg = f"the saved town at {path} cannot be read: {exc}"
        raise DataFolderError(msg, path=str(path)) from exc
    if save.format != FORMAT:
        msg = f"the saved town at {path} is of format {save.format}, not {FORMAT}"
        raise DataFolderError(msg, path=str(path))
    return save
