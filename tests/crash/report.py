"""What the suites of this folder have in common: one row of results, and one command line.

    python tests/crash/NAME.py COUNT [--seed N] [--bug BUG] [--json FILE] [--minutes M]

Every suite counts what it did, holds it against what it should be, and ends with a `Row`. Each has
planted bugs: with `--bug` the product is broken on purpose, and then the suite has to fail.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

SHOWN = 20  # findings that are told


class Row(msgspec.Struct):
    """What came of a suite.

    Attributes:
        suite: its name, of a few words.
        count: how many of `unit` were done.
        unit: what was counted: "kills", "power-cut states".
        acknowledged: writes that were acknowledged.
        lost: acknowledged writes that are not there.
        duplicated: writes that are there more than once, or were answered in two ways.
        wrong: states that no run without faults could have: partial, broken, made up.
        crossed: reads that returned what belongs to another user.
        seconds: how long it took.
        seed: of all random choices.
        bug: what was broken on purpose.
        figures: further counts and measures by name, for the table and for asserts.
        findings: what is wrong, in lines; the first `SHOWN` of them.
        day: when it was run, of a long form that is kept.
    """

    suite: str
    unit: str
    count: int = 0
    acknowledged: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    crossed: int = 0
    seconds: float = 0.0
    seed: int = 1
    bug: str | None = None
    figures: dict[str, float] = {}
    findings: list[str] = []
    day: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether nothing at all was found."""
        return not (self.lost or self.duplicated or self.wrong or self.crossed or self.findings)

    @property
    def line(self) -> str:
        """Everything in one line."""
        figures = "".join(f"; {name} {value:,.6g}" for name, value in self.figures.items())
        return (
            f"{self.suite}: {self.count:,} {self.unit}, {self.acknowledged:,} acknowledged writes: "
            f"{self.lost} lost, {self.duplicated} duplicated, {self.wrong} wrong, "
            f"{self.crossed} crossed{figures}; {self.seconds:.0f} s"
        )


class Options(msgspec.Struct, frozen=True):
    """What a suite is asked to do; `advance(n)` tells that `n` more of the count are done.

    `work` is an empty folder, which stays when something was found. `minutes` is for suites that
    run for a time.
    """

    count: int
    seed: int
    bug: str | None
    minutes: float
    work: Path
    advance: Callable[[int], None]


def command_line(
    run: Callable[[Options], Row], *, what: str, bugs: Iterable[str] = (), count: int | None = None
) -> int:
    """Parse the arguments, run a suite with a progress bar, and tell what came of it.

    Returns 1 when anything was found, else 0. Without `count` the number must be given.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("count", type=int, nargs="?" if count else None, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bug", choices=sorted(bugs), help="break the product on purpose")
    parser.add_argument("--minutes", type=float, default=1.0, help="of suites that run for a time")
    parser.add_argument("--json", type=Path, help="write the row to this file, too")
    parser.add_argument("--list-bugs", action="store_true", help="name the planted bugs, and end")
    given = parser.parse_args()
    if given.list_bugs:
        sys.stdout.write("".join(f"{bug}\n" for bug in sorted(bugs)))
        return 0
    work = Path(tempfile.mkdtemp(prefix="reverie-crash-"))
    began = time.monotonic()
    with _progress(what, given.count) as advance:
        row = run(Options(given.count, given.seed, given.bug, given.minutes, work, advance))
    row.seconds = round(time.monotonic() - began, 1)
    row.seed, row.bug = given.seed, given.bug
    row.findings = row.findings[:SHOWN]
    if given.json:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(row)))
    for line in row.findings:
        sys.stdout.write(line + "\n")
    sys.stdout.write(row.line + "\n")
    if not row.is_clean:
        sys.stdout.write(f"what there was is in {work}\n")
        return 1
    shutil.rmtree(work, ignore_errors=True)
    return 0


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda n: progress.advance(task, n)
