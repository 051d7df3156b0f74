"""Feed the turns of a file to a runtime, in batches, so that it can be stopped and repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from reverie.cli.options import DEFAULT_USER
from reverie.clock import SimulatedClock
from reverie.formats import TurnRecord, read_turns, sniff, with_id
from reverie.memory_graph.errors import InputError, InvalidValueError
from reverie.memory_graph.ids import DEFAULT_WORLD, Key

if TYPE_CHECKING:
    from reverie.runtime import Runtime
    from reverie.user import User

BATCH_TURNS = 32

Targets: TypeAlias = Callable[[str], Key]


@dataclass
class Report:
    """What became of the turns of a file. `stored` counts those that were new; `skipped` has the
    line and the error of those that cannot be used."""

    turns: int = 0
    stored: int = 0
    memories: int = 0
    pending: int = 0
    users: list[Key] = field(default_factory=list)
    skipped: list[tuple[int, InputError]] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "turns": self.turns,
            "stored": self.stored,
            "known": self.turns - self.stored - len(self.skipped),
            "memories": self.memories,
            "pending": self.pending,
            "users": [{"world": key.world, "user": key.user_id} for key in self.users],
            "skipped": [
                {"line": line, "error": type(error).__name__, "message": error.message}
                for line, error in self.skipped
            ],
        }


def targets(file: Path, world: str | None, user: str | None) -> Targets:
    """Return whose memory each conversation of a file becomes.

    A JSONL file is one conversation of `user` in `world`. In a LoCoMo file each conversation has a
    world of its own, or, when `world` is given, a user of its own in it.

    Raises:
        InvalidValueError: both are given for a file with several conversations.
    """
    if sniff(file) == "jsonl":
        key = Key(world or DEFAULT_WORLD, user or DEFAULT_USER)
        return lambda _name: key
    if world is None:
        return lambda name: Key(name, user or DEFAULT_USER)
    if user is None:
        return lambda name: Key(world, name)
    names = {record.conversation for record in read_turns(file, on_error="skip")}
    if len(names) > 1:
        msg = (
            f"{file} holds {len(names)} conversations, which cannot all belong to one user; give "
            "--world or --user, not both"
        )
        raise InvalidValueError(msg, file=str(file))
    return lambda _name: Key(world, user)


class Feeder:
    """Adds turns of files to a runtime.

    With a simulated `clock`, each turn is recorded at its own time, and so are its memories. A
    turn without a time, or one earlier than the user's turn before it, is recorded at the time
    of that one: nobody learns backwards.
    """

    def __init__(
        self, rt: Runtime, clock: SimulatedClock | None, *, infer: bool, wait: bool, skip: bool
    ) -> None:
        """Feed `rt`, whose clock `clock` is, when it is simulated."""
        self.report = Report()
        self._rt = rt
        self._clock = clock
        self._infer = infer
        self._wait = wait or clock is not None
        self._skip = skip
        self._before: dict[Key, tuple[int, int]] = {}  # messages and memories
        self._latest: dict[Key, float] = {}

    def feed(self, file: Path, targets: Targets, progress: Callable[[int], None]) -> None:
        """Add all turns of a file; `progress` is called with the number of turns done since.

        Raises:
            InputError: a turn that cannot be used, unless such turns are skipped. What stands
                before it is stored.
        """

        def skipped(line: int, error: InputError) -> None:
            self._skipped(line, error)
            progress(1)

        records = read_turns(file, on_error="skip" if self._skip else "raise", on_skip=skipped)
        self.feed_records(map(with_id, records), targets, progress)

    def feed_records(
        self, records: Iterator[TurnRecord], targets: Targets, progress: Callable[[int], None]
    ) -> None:
        """Add turns that have ids; as `feed`."""
        for key, batch in _batches(records, targets, self._size):
            self._add(key, batch)
            progress(len(batch))

    def finish(self) -> Report:
        """Wait for extraction, when that is wanted, and return the report."""
        if self._infer and self._wait:
            self._rt.drain()
        for key, (messages, memories) in self._before.items():
            stats = self._rt.user(key.user_id, key.world).stats()
            self.report.stored += stats.messages - messages
            self.report.memories += stats.memories - memories
            self.report.pending += stats.pending
            self.report.users.append(key)
        return self.report

    @property
    def _size(self) -> int:
        return BATCH_TURNS if self._clock is None else 1

    def _add(self, key: Key, batch: list[TurnRecord]) -> None:
        user = self._rt.user(key.user_id, key.world)
        if key not in self._before:
            stats = user.stats()
            self._before[key] = (stats.messages, stats.memories)
        if self._clock is not None:
            self._move_clock(key, batch[0].turn.said_at)
        try:
            self._store(user, batch)
        except InputError as exc:
            # A batch is refused as a whole: find out which of its turns it was.
            if len(batch) > 1:
                for record in batch:
                    self._add(key, [record])
                return
            if not self._skip:
                raise
            self._skipped(batch[0].line, exc)
            return
        self.report.turns += len(batch)

    def _store(self, user: User, batch: list[TurnRecord]) -> None:
        turns = [record.turn for record in batch]
        user.add(turns, infer=self._infer, wait=self._wait)

    def _move_clock(self, key: Key, said_at: float | None) -> None:
        assert self._clock is not None  # noqa: S101 (for the type checker)
        latest = self._latest.get(key)
        if latest is None:
            latest = self._clock.now() if said_at is None else said_at
        self._latest[key] = max(latest, latest if said_at is None else said_at)
        self._clock.set(self._latest[key])

    def _skipped(self, line: int, error: InputError) -> None:
        self.report.turns += 1
        self.report.skipped.append((line, error))


def _batches(
    records: Iterator[TurnRecord], targets: Targets, size: int
) -> Iterator[tuple[Key, list[TurnRecord]]]:
    """Group turns that follow each other and belong to one user, at most `size` of them."""
    batch: list[TurnRecord] = []
    owner = ""
    try:
        for record in records:
            if batch and (len(batch) == size or record.conversation != owner):
                yield targets(owner), batch
                batch = []
            owner = record.conversation
            batch.append(record)
    except InputError:  # of a line: the turns before it are good
        if batch:
            yield targets(owner), batch
        raise
    if batch:
        yield targets(owner), batch
