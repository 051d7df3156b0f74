"""A very short soak, and that it finds the bugs which are planted for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import short, soak

SHORT = ("40", "--minutes", "0.1")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_memory_handles_and_files_stay_level(tmp_path: Path) -> None:
    _, row = short.run("soak", tmp_path, *SHORT)
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
    short.until(
        lambda row: any(line.startswith(f"wrong: {measure} grew") for line in row.findings),
        lambda seed: short.run("soak", tmp_path, *SHORT, "--bug", bug, "--seed", str(seed))[1],
    )


def test_a_slope_is_not_moved_by_outliers() -> None:
    assert soak.slope([float(i) for i in range(100)]) == 1.0
    level = [5.0] * 90
    assert soak.slope([*level, *[500.0] * 5, *level]) == 0.0
