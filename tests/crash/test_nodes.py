"""A short form of the suite of Ray failures, and that it finds the bugs planted for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from crash.report import Row

RAY = {"RAY_TMPDIR": tempfile.gettempdir()}  # the paths of its sockets must be short
SUITE = Path(__file__).with_name("nodes.py")

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(600)]


def nodes(tmp_path: Path, count: int, *arguments: str) -> tuple[int, Row]:
    """Run the suite; return its exit status and row."""
    found = tmp_path / "row.json"
    done = subprocess.run(
        [sys.executable, SUITE, str(count), "--json", found, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)} | RAY,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.exists(), done.stderr
    return done.returncode, msgspec.json.decode(found.read_bytes(), type=Row)


def test_while_nodes_come_and_go_every_call_is_answered_and_nothing_is_lost(tmp_path: Path) -> None:
    status, row = nodes(tmp_path, 4)
    assert (status, row.findings) == (0, [])
    assert row.is_clean
    assert row.count == 4
    assert row.acknowledged > 0
    figures = row.figures
    deaths = ("append.after", "commit.before", "commit.after", "actor-reply.before", "embed")
    assert sum(figures.get(point, 0) for point in deaths) > 0
    assert figures["refused in time"] == 80
    assert figures.get("room", 0) + figures.get("no room", 0) == 2


# The two of the client ("no-retries", "endless-retries") are also found by test_replaced.py,
# without a cluster.
@pytest.mark.parametrize(
    ("bug", "kind"), [("ack-before-commit", "lost"), ("no-request-ids", "duplicated")]
)
def test_a_planted_bug_is_found(bug: str, kind: str, tmp_path: Path) -> None:
    status, row = nodes(tmp_path, 4, "--bug", bug)
    assert status == 1
    assert getattr(row, kind) > 0
