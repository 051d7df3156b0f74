"""What operations give beside the structs of the public API."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from reverie.actors.nearest import Near
from reverie.memory_graph.views import Hit, Item

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Part of a list. `total` counts all; `cursor` begins the next page, null on the last."""

    items: list[T]
    total: int
    cursor: str | None


class Hits(msgspec.Struct, frozen=True):
    """What answers a question, best first."""

    hits: list[Hit]


class NearOnes(msgspec.Struct, frozen=True):
    """What is nearest in meaning, best first."""

    hits: list[Near]


class HitsOfMany(msgspec.Struct, frozen=True):
    """What answers each question, in order."""

    answers: list[list[Hit]]


class Items(msgspec.Struct, frozen=True):
    """Items, in order."""

    items: list[Item]


class Ended(msgspec.Struct, frozen=True):
    """Whether it was ended now; false when it had ended already."""

    ended: bool


class Related(msgspec.Struct, frozen=True):
    """The relation that holds now; null when it was ended."""

    relation_id: str | None


class Insights(msgspec.Struct, frozen=True):
    """Insights that were drawn, as ids."""

    ids: list[str]


class InsightsOfWorld(msgspec.Struct, frozen=True):
    """Insights that were drawn, by user id."""

    ids: dict[str, list[str]]


class Changed(msgspec.Struct, frozen=True):
    """Whether anything is different now."""

    changed: bool


class Count(msgspec.Struct, frozen=True):
    """How many it concerned."""

    count: int


class Values(msgspec.Struct, frozen=True):
    """Values of a relationship, by dimension."""

    values: dict[str, float]


class ManyValues(msgspec.Struct, frozen=True):
    """Values after each move, in order."""

    moved: list[dict[str, float]]


class Names(msgspec.Struct, frozen=True):
    """Names, sorted or in the order of the request."""

    names: list[str]


class Lines(msgspec.Struct, frozen=True):
    """Lines; of a check, one for each fault, none when all is sound."""

    lines: list[str]


class Words(msgspec.Struct, frozen=True):
    """A text."""

    text: str


class Digest(msgspec.Struct, frozen=True):
    """The digest of a whole state; "" for a user that is not there."""

    digest: str


class Moment(msgspec.Struct, frozen=True):
    """A time on the world's clock, in seconds."""

    now: float


class Done(msgspec.Struct, frozen=True):
    """It is done."""

    done: bool = True


class MadeWorld(msgspec.Struct, frozen=True):
    """A world that was made, and how many users it has."""

    world: str
    users: int


class Alive(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str = "alive"


class Ready(msgspec.Struct, frozen=True):
    """Whether requests are served now, and if not, why."""

    ready: bool
    why: str = ""
