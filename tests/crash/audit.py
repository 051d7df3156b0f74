"""What a killed writer left behind: is all of it there, once, and whole?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Set as AbstractSet
from pathlib import Path

import msgspec
from crash import ops, writer

import reverie

REPEATED = 8  # acknowledged requests that are sent once more after each run


class Findings:
    """What is wrong, in lines, and how much was looked at."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.duplicated: list[str] = []
        self.partial: list[str] = []
        self.broken: list[str] = []
        self.acknowledged = 0
        self.landed = 0  # never acknowledged, and yet on disk
        self.absent = 0  # neither
        self.repeated = 0

    @property
    def lines(self) -> list[str]:
        """All that is wrong."""
        kinds = ("lost", "duplicated", "partial", "broken")
        return [f"{kind}: {line}" for kind in kinds for line in getattr(self, kind)]


class Auditor:
    """Follows one data folder from run to run. `worlds` are those that it looks at."""

    def __init__(self, folder: Path, findings: Findings, seed: int = 0) -> None:
        self.folder = folder
        self.findings = findings
        self.model = ops.Model()
        self.worlds: tuple[str, ...] = writer.WORLDS
        self._random = random.Random(seed)
        self._open: list[ops.AnyOp] = []  # asked, not answered
        self._answers: dict[str, list[tuple[ops.AnyOp, str]]] = {}  # of each world, repeatable

    def read(self, log: Path) -> None:
        """Take in what a writer said of its requests."""
        self.take(writer.read_log(log))

    def take(self, lines: Iterable[writer.Line]) -> None:
        """Take in lines of a writer."""
        asked: dict[str, ops.AnyOp] = {}
        self._answers = {}
        for line in lines:
            match line:
                case writer.Asked(op):
                    asked[op.id] = op
                case writer.Answered(request_id, answer):
                    self.findings.acknowledged += 1
                    self._done(asked.pop(request_id), answer)
                case writer.Refused(request_id, error):
                    self.findings.broken.append(f"{asked.pop(request_id)}: {error}")
                case writer.Opened():
                    pass
        self._open += asked.values()

    def audit(self, open_runtime: Callable[[Path], reverie.Runtime] = writer.open_runtime) -> None:
        """Open the folder and check everything that was ever written to it.

        Requests without an answer are sent again, under their ids, so nothing is open afterwards.
        """
        with open_runtime(self.folder) as runtime:
            self.findings.broken += runtime.check()
            runtime.drain()
            self._judge(ops.observed(runtime, self.worlds))
            if self.findings.lines:
                return
            self._repeat(runtime)
            runtime.drain()
            self._compare(ops.observed(runtime, self.worlds))
            self.findings.broken += runtime.check()
            stats = runtime.stats()
            if stats.pending or stats.quarantined:
                self.findings.broken.append(
                    f"{stats.pending} turns wait, {stats.quarantined} failed"
                )

    def _done(self, op: ops.AnyOp, answer: str) -> None:
        self.model.apply(op, answer)
        if isinstance(op, ops.Rewind):
            self._answers[op.world] = []
        elif isinstance(op, ops.Forget):  # its requests are forgotten, too
            kept = [pair for pair in self._answers.get(op.world, ()) if pair[0].user != op.user]
            self._answers[op.world] = kept
        elif not isinstance(op, ops.SAVE_SLOTS):
            self._answers.setdefault(op.world, []).append((op, answer))

    def _judge(self, seen: ops.Seen) -> None:
        """Find out which of the requests without an answer were carried out: none in part."""
        again: list[ops.AnyOp] = []
        unsure: set[ops.Place] = set()
        for op in self._open:
            changes = op.changes(self.model)
            unsure |= changes.keys()
            found = {place: [v for v, _ in seen.get(place, ())] for place in changes}
            if all(found[p] == ([] if v is None else [v]) for p, v in changes.items()):
                self.findings.landed += 1
                if isinstance(op, ops.SAVE_SLOTS):
                    self._done(op, "null")
                    continue
            elif all(found[p] == self._expected(p) for p in changes):
                self.findings.absent += 1
            elif any(len(values) > 1 for values in found.values()):
                self.findings.duplicated.append(f"{op}: {found}")
            else:
                self.findings.partial.append(f"{op}: {found}")
            if not isinstance(op, ops.SAVE_SLOTS):
                again.append(op)
        self._open = again
        self._compare(seen, unsure)

    def _repeat(self, runtime: reverie.Runtime) -> None:
        """Send requests again: those without an answer, and some of those that have one."""
        answered = [pair for done in self._answers.values() for pair in done]
        again = self._random.sample(answered, min(REPEATED, len(answered)))
        for op in self._open:
            try:
                answer = op.send(runtime)
            except reverie.ReverieError as exc:
                self.findings.duplicated.append(f"{op} cannot be sent again: {exc!r}")
            else:
                self.model.apply(op, answer)
                again.append((op, answer))
        self._open = []
        for op, answer in again:
            self._repeat_one(runtime, op, answer)

    def _repeat_one(self, runtime: reverie.Runtime, op: ops.AnyOp, answer: str) -> None:
        self.findings.repeated += 1
        try:
            again = op.send(runtime)
        except reverie.ReverieError as exc:
            self.findings.duplicated.append(f"{op} was answered {answer}, then {exc!r}")
            return
        if again != answer:
            self.findings.duplicated.append(f"{op} was answered {answer}, then {again}")
        elif wrong := op.amiss(runtime, msgspec.json.decode(answer)):
            self.findings.partial.append(f"{op}: {wrong}")

    def _expected(self, place: ops.Place) -> list[ops.Value]:
        value = self.model.values.get(place)
        return [] if value is None else [value]

    def _compare(self, seen: ops.Seen, unsure: AbstractSet[ops.Place] = frozenset()) -> None:
        """Hold everything there is against everything there should be."""
        for place in (self.model.values.keys() | seen.keys()) - unsure:
            expected, found = self._expected(place), seen.get(place, [])
            values = [value for value, _ in found]
            line = f"{place}: {found}, not {expected}"
            if len(values) > 1:
                self.findings.duplicated.append(line)
            elif not expected:
                self.findings.broken.append(f"nobody wrote {line}")
            elif values != expected:
                self.findings.lost.append(line)
            elif self.model.ids.get(place, found[0][1]) != found[0][1]:
                self.findings.broken.append(f"{line}: answered as {self.model.ids[place]}")
