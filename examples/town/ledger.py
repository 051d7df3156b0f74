"""What really happened, by the script's own book: who saw what, and who told whom.

Nothing in here comes out of a memory, so that what memories say can be checked against it.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from reverie.town.setting import Claim, Language


class Happening(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Something that happened. `text` is how its witnesses keep it.

    Attributes:
        id: the same in all memories of it.
        tick: the hour, counted from the town's first.
        witnesses: all who were there, with those who did it and had it done; may be empty.
        planted: name of the planted deed, if it is one.
        by_model: a language model chose it.
    """

    id: str
    tick: int
    claim: Claim
    text: str
    language: Language
    witnesses: tuple[str, ...]
    planted: str | None = None
    by_model: bool = False


class Telling(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Somebody told somebody of a happening.

    Attributes:
        event: id of the happening.
        claim: what was said to have happened.
        heard: who had told it on before, and last the speaker: the chain behind the listener.
        distortion: what was changed on the way from speaker to listener, in words.
        memory_id: what the listener keeps it as.
        is_new: the listener had not known of it.
        by_model: a language model chose that it be told, and whether it be told right.
    """

    event: str
    tick: int
    speaker: str
    listener: str
    claim: Claim
    text: str
    heard: tuple[str, ...]
    distortion: str = ""
    memory_id: str = ""
    confidence: float = 1.0
    is_new: bool = True
    by_model: bool = False


class Ledger(msgspec.Struct):
    """The book. Times are ticks; names are user ids."""

    happenings: dict[str, Happening] = {}
    tellings: list[Telling] = []

    def copy(self) -> Ledger:
        """Return a book that goes on by itself."""
        return Ledger(dict(self.happenings), list(self.tellings))

    def planted(self, name: str) -> Happening | None:
        """Return a planted deed that has happened."""
        return next((h for h in self.happenings.values() if h.planted == name), None)

    def chains(self) -> dict[str, dict[str, set[tuple[str, ...]]]]:
        """Return user -> event -> the chains by which it came, () for what was seen: all that
        anybody can possibly know."""
        found: dict[str, dict[str, set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
        for happening in self.happenings.values():
            for witness in happening.witnesses:
                found[witness][happening.id].add(())
        for telling in self.tellings:
            found[telling.listener][telling.event].add(telling.heard)
        return {user: dict(events) for user, events in found.items()}

    def of(self, event: str) -> list[Telling]:
        """Return how a happening was told on, in order."""
        return [telling for telling in self.tellings if telling.event == event]


class Book:
    """A ledger that is being written, and what the script looks up in it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._claims: dict[tuple[str, tuple[str, ...], str], Claim] = {}
        self._talked: set[tuple[str, str, str]] = set()
        self._told: dict[str, set[str]] = defaultdict(set)
        for telling in ledger.tellings:
            self._index(telling)

    def happened(self, happening: Happening) -> None:
        """Write down what happened."""
        self.ledger.happenings[happening.id] = happening

    def told(self, telling: Telling) -> None:
        """Write down what was told."""
        self.ledger.tellings.append(telling)
        self._index(telling)

    def _index(self, telling: Telling) -> None:
        self._claims[telling.event, telling.heard, telling.listener] = telling.claim
        self._talked.add((telling.event, telling.speaker, telling.listener))
        self._told[telling.event].add(telling.listener)

    def claim(self, event: str, heard: tuple[str, ...], owner: str) -> Claim | None:
        """Return what somebody believes of an event, as it came by that chain."""
        if heard:
            return self._claims.get((event, heard, owner))
        happening = self.ledger.happenings.get(event)
        return None if happening is None else happening.claim

    def have_talked(self, event: str, one: str, other: str) -> bool:
        """Say whether two have spoken of an event before, or were both there."""
        if (event, one, other) in self._talked or (event, other, one) in self._talked:
            return True
        happening = self.ledger.happenings.get(event)
        return happening is not None and {one, other} <= set(happening.witnesses)

    def knows(self, event: str, name: str) -> bool:
        """Say whether somebody has seen or heard of an event."""
        happening = self.ledger.happenings.get(event)
        seen = happening is not None and name in happening.witnesses
        return seen or name in self._told.get(event, ())
