"""A short form of the kill -9 suite, and that it finds the bugs which are planted for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from crash.report import Row

KILL9 = Path(__file__).with_name("kill9.py")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def kill9(tmp_path: Path, runs: int, *arguments: str) -> tuple[int, Row]:
    """Run the suite; return its exit status and row."""
    found = tmp_path / "row.json"
    done = subprocess.run(
        [sys.executable, KILL9, str(runs), "--json", found, *arguments],
        env=os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.exists(), done.stderr
    return done.returncode, msgspec.json.decode(found.read_bytes(), type=Row)


def test_kill_9_loses_nothing_doubles_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    status, row = kill9(tmp_path, 60)
    assert (status, row.findings) == (0, [])
    assert row.count >= 60
    assert row.acknowledged > 0
    # Kills hit requests before and after a commit.
    assert min(row.figures[f"unacknowledged that {what}"] for what in ("landed", "did not")) > 0


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("ack-before-commit", ["lost"]),
        ("no-request-ids", ["duplicated"]),
        # An extraction that was cut in two looks lost, a turn without its outbox broken.
        ("commit-in-pieces", ["wrong", "lost"]),
    ],
)
def test_a_planted_bug_is_found(bug: str, kinds: list[str], tmp_path: Path) -> None:
    status, row = kill9(tmp_path, 60, "--bug", bug)
    assert status == 1
    assert any(getattr(row, kind) for kind in kinds)
