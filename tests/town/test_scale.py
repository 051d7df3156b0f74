"""The scale run at a small size: it measures what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import town_scale


def test_figures_of_a_small_town(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "figures.json"
    command = f"town_scale --npcs 60 --observations 14 --days 1 --actors 0 --json {out}"
    folders = f"--embedder standin --folder {tmp_path / 't'}"
    monkeypatch.setattr(sys, "argv", [*command.split(), *folders.split()])
    assert town_scale.main() == 0
    figures = json.loads(out.read_text("utf-8"))
    assert figures["npcs"] == 60
    assert figures["wrong"] == 0
    assert figures["observations"] >= 60 * 10
    assert 0 < figures["distinct_texts_embedded"] <= figures["asked_of_cache"]
    assert 0 < figures["recall_p50_ms"] <= figures["recall_p95_ms"]
    assert figures["recall_found"] > 0.5
    assert figures["peak_mib"] > 20
    assert "observations of 60 people" in capsys.readouterr().out
