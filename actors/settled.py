"""What became of turns, for those who wait for it.

Turns of a user are worked off in batches, by whichever thread comes first: the background's, or
that of somebody else who waits. So what a batch gave is noted here by turn, and each who waits asks
for his own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from reverie.memory_graph.drafts import Kept, TurnOutcome
from reverie.memory_graph.ids import Key

MAX_TURNS = 20_000  # noted, of all users; twice as many as one `add` has


class SettledTurns:
    """The last turns that were worked off. Safe to share between threads."""

    def __init__(self, most: int = MAX_TURNS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Key, str], tuple[Kept, ...]] = OrderedDict()

    def note(self, key: Key, outcomes: Sequence[TurnOutcome], kept: Sequence[Kept]) -> None:
        """Note what became of extracted turns.

        Args:
            key: the user.
            outcomes: of the turns, each with its memories.
            kept: of each memory of each outcome, in that order.
        """
        start = 0
        with self._lock:
            for outcome in outcomes:
                stop = start + len(outcome.memories)
                own = tuple(one for one in kept[start:stop] if one.memory_id)
                start = stop
                self._kept.pop((key, outcome.turn_id), None)
                self._kept[key, outcome.turn_id] = own
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def drop(self, key: Key, turn_id: str) -> None:
        """Take back what is noted of a turn: after a rewind or an erasure a new one may have the
        name of an old one, and has failed."""
        with self._lock:
            self._kept.pop((key, turn_id), None)

    def of(self, key: Key, turn_ids: Iterable[str]) -> list[Kept]:
        """Return what became of the memories of these turns, as far as it is noted."""
        with self._lock:
            return [one for turn in turn_ids for one in self._kept.get((key, turn), ())]
