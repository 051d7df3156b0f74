"""A very short soak, and that it finds the bugs which are planted for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from crash import soak
from crash.report import Row

SOAK = Path(__file__).with_name("soak.py")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(tmp_path: Path, *arguments: str) -> Row:
    """Run the suite in a process of its own, whose memory is not that of other tests."""
    found = tmp_path / "row.json"
    done = subprocess.run(
        [sys.executable, SOAK, "40", "--minutes", "0.1", "--json", found, *arguments],
        env=os.environ | {"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.exists(), done.stderr
    return msgspec.json.decode(found.read_bytes(), type=Row)


def test_memory_handles_and_files_stay_level(tmp_path: Path) -> None:
    row = run(tmp_path)
    assert row.findings == []
    assert row.is_clean
    assert row.count > 0
    assert row.acknowledged > 0
    assert row.figures["openings"] > 1
    assert row.figures["users forgotten"] > 0


@pytest.mark.parametrize(
    ("bug", "measure"),
    [
        ("residents-kept", "MiB in use"),
        ("growing-list", "MiB in use"),
        ("files-left-open", "open files"),
    ],
)
def test_a_planted_bug_is_found(bug: str, measure: str, tmp_path: Path) -> None:
    row = run(tmp_path, "--bug", bug)
    assert any(line.startswith(f"wrong: {measure} grew") for line in row.findings), row.figures


def test_a_slope_is_not_moved_by_outliers() -> None:
    assert soak.slope([float(i) for i in range(100)]) == 1.0
    level = [5.0] * 90
    assert soak.slope([*level, *[500.0] * 5, *level]) == 0.0
