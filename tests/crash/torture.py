"""The long forms of all suites of this folder, one after the other, and the table that they make.

    make torture                                    # all of it: hours
    python tests/crash/torture.py --only power.py   # one suite
    python tests/crash/torture.py --share 0.02      # a fiftieth of each, to see that it runs

Each suite runs as it is, and has to find nothing; then once more with each of its planted bugs, and
has to find something. The rows are kept as JSON in docs/torture, from which the table in
docs/reliability.md is written (`--table` does only that); a suite whose rows are there is not run
again without `--fresh`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "reliability.md"
ROWS = ROOT / "docs" / "torture"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
MOST_HOURS = 3  # of one suite
BUG_ROUNDS = 5
NOT_YET = "only in the short form so far"


class Suite(NamedTuple):
    """A script of this folder, its long form, and how much is enough to find its planted bugs."""

    script: str
    amount: int
    bug_amount: int
    minutes: float = 1.0  # of those that run for a time
    bug_minutes: float = 1.0


SUITES = (  # the longest first
    Suite("damage.py", 1_000_000, 700),  # every place
    Suite("soak.py", 360, 40, minutes=30, bug_minutes=0.15),
    Suite("nodes.py", 200, 10),
    Suite("isolation.py", 1_000_000, 5_000),
    Suite("disk.py", 10, 20),
    Suite("kill9.py", 1_000, 60),
    Suite("points.py", 20, 1),
    Suite("takeover.py", 120, 8),
    Suite("power.py", 5_000, 1_500),
    Suite("point_errors.py", 3, 1),
    Suite("point_actors.py", 5, 1),
    Suite("churn.py", 100_000, 1_500),
    Suite("retries.py", 100_000, 1_000),
    Suite("fire.py", 2_000, 80),
    Suite("sigterm.py", 100, 6),
    Suite("pressure.py", 20_000, 800),
)


class Run(NamedTuple):
    """One run of a suite, with or without a planted bug."""

    suite: Suite
    bug: str | None

    @property
    def path(self) -> Path:
        """Where its row is kept."""
        return (
            ROWS / f"{Path(self.suite.script).stem}{'-' if self.bug else ''}{self.bug or ''}.json"
        )

    def command(self, share: float, seed: int) -> list[str]:
        """Return the command line."""
        suite = self.suite
        amount = suite.bug_amount if self.bug else max(1, round(suite.amount * share))
        minutes = suite.bug_minutes if self.bug else suite.minutes * share
        line = [f"tests/crash/{suite.script}", str(amount), "--seed", str(seed)]
        if suite.minutes != 1.0:
            line += ["--minutes", f"{minutes:g}"]
        return [*line, "--bug", self.bug] if self.bug else line


def bugs_of(suite: Suite) -> list[str]:
    """Return the planted bugs that a suite knows."""
    line = [sys.executable, str(HERE / suite.script), "1", "--list-bugs"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.split()


def carry_out(run: Run, share: float, seed: int, console: Console) -> str | None:
    """Run one suite, and keep its row; return what is wrong with the outcome."""
    name = " ".join(run.command(share, seed))
    console.print(f"begins: {name}")
    row = report.Row(run.suite.script, "")
    # One round with a planted bug meets only some interleavings.
    for tried in range(seed, seed + (BUG_ROUNDS if run.bug else 1)):
        run.path.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, *run.command(share, tried), "--json", str(run.path)],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=MOST_HOURS * 3600,
        )
        if not run.path.exists():
            return f"{name}: no result\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        row = read(run)
        if not row.is_clean:
            break
    console.print(f"ended:  {name}\n        {row.line}", highlight=False)
    row.day = dt.datetime.now(dt.UTC).date().isoformat()
    run.path.write_bytes(msgspec.json.format(msgspec.json.encode(row)) + b"\n")
    if row.is_clean == bool(run.bug):
        run.path.unlink()
        why = "the planted bug was not found" if run.bug else "\n".join(row.findings)
        return f"{name}: {why}"
    return None


def read(run: Run) -> report.Row:
    """Return the row that is kept of a run."""
    return msgspec.json.decode(run.path.read_bytes(), type=report.Row)


def table(runs: list[Run]) -> str:
    """Return the table of all rows that are kept."""
    heads = (
        "suite",
        "done",
        "acknowledged writes",
        "lost",
        "duplicated",
        "wrong states",
        "cross-user reads",
        "planted bugs found",
    )
    lines = [f"| {' | '.join(heads)} |", "|-" * len(heads) + "|"]
    for run in runs:
        if run.bug or not run.path.exists():
            continue
        row = read(run)
        controls = [r for r in runs if r.suite is run.suite and r.bug]
        found = [f"`{r.bug}`" for r in controls if r.path.exists()]
        told = f"{len(found)} of {len(controls)}: {', '.join(found)}" if found else NOT_YET
        lines.append(
            f"| {row.suite} (`{run.suite.script}`) | {row.count:,} {row.unit} "
            f"| {row.acknowledged:,} | {row.lost} | {row.duplicated} | {row.wrong} | {row.crossed} "
            f"| {told} |"
        )
    lines += ["", "What else was counted:", ""]
    for run in runs:
        if not run.bug and run.path.exists():
            row = read(run)
            figures = ", ".join(f"{name} {value:,.6g}" for name, value in row.figures.items())
            how = f"{row.seconds / 60:.0f} minutes, seed {row.seed}, {row.day}"
            lines.append(f"- {row.suite}: {figures}; {how}")
    machine = f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"
    lines += ["", f"Run with `make torture`, several suites at once, on a machine of {machine}."]
    return "\n".join(lines)


def write_page(text: str) -> None:
    """Put the table into the page, between its marks."""
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")


def main() -> int:
    """Run what was asked for; returns 1 when a suite found something, or missed a planted bug."""
    parser = argparse.ArgumentParser(description="the long forms of the crash suites")
    parser.add_argument("--only", action="append", choices=[s.script for s in SUITES])
    parser.add_argument("--share", type=float, default=1.0, help="of the long form of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="suites at once")
    parser.add_argument("--fresh", action="store_true", help="run again what has its row already")
    parser.add_argument("--no-bugs", action="store_true", help="without the planted bugs")
    parser.add_argument("--table", action="store_true", help="only write the table")
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    ROWS.mkdir(parents=True, exist_ok=True)
    wanted = [s for s in SUITES if not given.only or s.script in given.only]
    every = [Run(s, None) for s in SUITES]
    every += [Run(s, bug) for s in SUITES for bug in bugs_of(s)]
    if given.table:
        write_page(table(every))
        return 0
    todo = [
        run
        for run in every
        if run.suite in wanted
        and (given.fresh or not run.path.exists())
        and not (run.bug and given.no_bugs)
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        ended = pool.map(lambda run: carry_out(run, given.share, given.seed, console), todo)
        wrong = [line for line in ended if line]
    if given.share >= 1:
        write_page(table(every))
    for line in wrong:
        console.print(line, highlight=False)
    console.print(f"{len(todo)} runs, {len(wrong)} of them not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
