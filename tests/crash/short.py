"""A suite in its short form, in a process of its own or in this one, for the tests beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from crash import report

HERE = Path(__file__).parent


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


def options(tmp_path: Path, count: int, bug: str | None = None, *, seed: int = 1) -> report.Options:
    """Return what a suite's `run` takes, to run it in this process."""
    return report.Options(count, seed, bug, 1.0, tmp_path, lambda _: None)
