"""The same seed gives the same memories: in any process, under any hash seed, on any number of
actors, and after a save on the third day of seven."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, sys
from pathlib import Path
from reverie.town import Plan, run
from reverie.town.truth import compare

found = {}
def finish(outcome):
    truth = compare(outcome.play, ask=ask)
    found["wrong"] = truth.unknown + truth.unchained + truth.unkept + truth.leaked
    found["read"] = [truth.people, truth.memories, truth.hearsay, truth.asked]
folder, days, npcs, actors, save_day, resume, ask, embedder = json.loads(sys.argv[1])
plan = Plan(folder=Path(folder), days=days, npcs=npcs, actors=actors, save_day=save_day,
            resume=resume, what_if=False, embedder=embedder)
outcome = run(plan, at_end=finish)
found["digests"] = outcome.digests
found["knowers"] = [[k.name, k.heard, k.text] for k in outcome.play.record.days[-1].knowers]
found["told"] = [[t.speaker, t.listener, t.text] for t in outcome.play.book.ledger.tellings]
print(json.dumps(found))
"""


def play(  # noqa: PLR0913 (one town)
    folder: Path,
    *,
    days: int,
    npcs: int,
    actors: int | None = None,
    save_day: int | None = None,
    resume: bool = False,
    ask: int | None = 0,
    embedder: str = "standin",
    hash_seed: str = "0",
) -> Any:
    """Play a town in a process of its own."""
    given = json.dumps([str(folder), days, npcs, actors, save_day, resume, ask, embedder])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("npcs", [8, pytest.param(130, marks=pytest.mark.slow)])
def test_in_two_processes(tmp_path: Path, npcs: int) -> None:
    first = play(tmp_path / "a", days=1, npcs=npcs, hash_seed="1")
    second = play(tmp_path / "b", days=1, npcs=npcs, hash_seed="2")
    assert len(first["digests"]) == npcs
    assert second == first


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("actors", [1, 2])
def test_on_actors(tmp_path: Path, actors: int) -> None:
    first = play(tmp_path / "a", days=2, npcs=8, hash_seed="1")
    second = play(tmp_path / "b", days=2, npcs=8, actors=actors, hash_seed="3")
    assert second == first


@pytest.mark.model
@pytest.mark.slow
def test_with_vectors_of_a_model(tmp_path: Path) -> None:
    """What is embedded together with what differs after a resume; the vectors must not."""
    given: dict[str, Any] = {"days": 2, "npcs": 6, "embedder": "minilm", "save_day": 1}
    whole = play(tmp_path / "a", **given, ask=20)
    assert whole["wrong"] == []
    resumed = play(tmp_path / "a", **given, resume=True, hash_seed="4")
    assert resumed["digests"] == whole["digests"]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_seven_days_of_25_people(tmp_path: Path) -> None:
    whole = play(tmp_path / "a", days=7, npcs=25, save_day=3, ask=None, hash_seed="1")
    assert whole["wrong"] == []
    people, memories, hearsay, asked = whole["read"]
    assert people == len(whole["digests"]) == 25
    assert memories > 1000
    assert hearsay > 150
    assert asked > 10_000
    assert len(whole["knowers"]) > 5
    assert any(heard for _, heard, _ in whole["knowers"])
    assert any(not text.isascii() for _, _, text in whole["told"])
    resumed = play(
        tmp_path / "a", days=7, npcs=25, actors=2, save_day=3, resume=True, hash_seed="2"
    )
    one = play(tmp_path / "b", days=7, npcs=25, actors=1, hash_seed="3")
    for other in (resumed, one):
        assert other["digests"] == whole["digests"]
        assert other["knowers"] == whole["knowers"]
        assert other["told"] == whole["told"]
