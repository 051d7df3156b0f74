"""A suite in its short form, in a process of its own or in this one, for the tests beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from crash import report

HERE = Path(__file__).parent
TRIES = 5  # rounds, in which what depends on how threads take turns has to happen once


def until(happened: Callable[[report.Row], object], attempt: Callable[[int], report.Row]) -> None:
    """Run a suite with other seeds until what is asked for has happened in one of its rounds.

    One round meets only some interleavings, fewer on a busy machine. What must hold in every round
    is asserted by `attempt`.

    Args:
        happened: whether a row shows it.
        attempt: runs the suite with the seed given, from 1 on, and returns its row.
    """
    rows = []
    for seed in range(1, TRIES + 1):
        rows.append(attempt(seed))
        if happened(rows[-1]):
            return
    lines = "\n".join(f"{row.findings} {row.figures}" for row in rows)
    pytest.fail(f"it did not happen in {TRIES} rounds:\n{lines}")


def until_found(kinds: Sequence[str], attempt: Callable[[int], report.Row]) -> None:
    """Run a suite with a planted bug until it finds something of `kinds` (counts of a row)."""
    until(lambda row: any(getattr(row, kind) for kind in kinds), attempt)


def run(
    suite: str, tmp_path: Path, *arguments: str, uses_ray: bool = False
) -> tuple[int, report.Row]:
    """Run `suite`.py; return its exit status and row.

    Args:
        suite: name of the script, without ".py".
        tmp_path: what it leaves lies here.
        arguments: of the command line; the first is how much is done.
        uses_ray: Ray's sockets have names of up to 107 bytes, so its folder lies further up.
    """
    row = tmp_path / "row.json"
    row.unlink(missing_ok=True)
    environment = {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    if uses_ray:
        environment["RAY_TMPDIR"] = tempfile.gettempdir()
    done = subprocess.run(
        [sys.executable, HERE / f"{suite}.py", *arguments, "--json", row],
        env=os.environ | environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert row.exists(), done.stderr
    return done.returncode, msgspec.json.decode(row.read_bytes(), type=report.Row)


def with_bug(
    suite: str, tmp_path: Path, count: str, bug: str, seed: int, *, uses_ray: bool = False
) -> report.Row:
    """Run `suite`.py with a planted bug; its exit status says whether its row is clean."""
    arguments = (count, "--bug", bug, "--seed", str(seed))
    status, row = run(suite, tmp_path, *arguments, uses_ray=uses_ray)
    assert status == (not row.is_clean)
    return row


def options(tmp_path: Path, count: int, bug: str | None = None, *, seed: int = 1) -> report.Options:
    """Return what a suite's `run` takes, to run it in this process."""
    work = tmp_path / f"{count}-{seed}"  # of its own, for rounds in one test
    work.mkdir()
    return report.Options(count, seed, bug, 1.0, work, lambda _: None)
