"""Short forms of the suites on named points, and that they find the bugs planted for them."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest
from crash import point_actors, points, report, scenes, short, writer

from reverie.memory_graph import faults

HERE = Path(__file__).parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_every_point_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But that of the actors, which test_actors_die_at_points comes to."""
    monkeypatch.setattr("reverie.memory_graph.store.sqlite.CHECKPOINT_PAGES", scenes.LOG_PAGES)
    monkeypatch.setattr("reverie.actors.ingest.RETRY_S", scenes.RETRY_S)
    reached: Counter[str] = Counter()
    stop, script = threading.Event(), scenes.Script(tmp_path / "script")
    plan = writer.Plan(folder="", log="", run=1, seed=1)
    faults.install(lambda point: reached.update([point]))
    try:
        with scenes.open_runtime(
            tmp_path / "data", byte_budget=points.TIGHT_BYTES, background=True
        ) as runtime:
            load = (plan, runtime, writer.Log(tmp_path / "log"), stop)
            threads = [
                threading.Thread(target=writer.work, args=load),
                threading.Thread(target=scenes.act, args=(runtime, script, 1, stop)),
            ]
            for thread in threads:
                thread.start()
            stop.wait(1.5)
            stop.set()
            for thread in threads:
                thread.join()
            assert scenes.judge(runtime, script.read()) == []
    finally:
        faults.install(None)
    assert set(faults.POINTS) - set(reached) == {"actor-reply.before"}
    assert {"actor-reply.before"} <= {point for _, point in point_actors.SHORT}


def test_points_cost_nothing_when_nobody_listens() -> None:
    faults.reach("commit.before")
    heard: list[str] = []
    faults.install(heard.append)
    faults.reach("commit.after")
    faults.install(None)
    faults.reach("commit.before")
    assert heard == ["commit.after"]


def test_kill_9_at_points(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        status, row = short.run("points", tmp_path, "0", "--seed", str(seed))
        assert (status, row.findings, row.is_clean) == (0, [], True)
        assert row.count >= len(points.SHORT)
        assert row.figures["fewest at a point"] >= 1
        assert row.acknowledged > 0
        return row

    short.until(lambda row: min(row.figures["repeated"], row.figures["scenes"]) > 0, attempt)


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("ack-before-commit", ["lost", "wrong"]),
        ("commit-in-pieces", ["wrong", "lost"]),
        ("no-request-ids", ["duplicated"]),
        ("no-intents", ["wrong"]),
        ("no-scrub-at-opening", ["wrong"]),
        ("dead-point", ["wrong"]),
    ],
)
def test_a_bug_is_found_by_kills_at_points(bug: str, kinds: list[str], tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        row = short.with_bug("points", tmp_path, "0", bug, seed)
        if bug == "dead-point":
            assert row.findings == ["never reached: nowhere"]
        return row

    short.until_found(kinds, attempt)


def test_errors_delays_and_lost_replies_at_points(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        status, row = short.run("point_errors", tmp_path, "0", "--seed", str(seed))
        assert (status, row.findings, row.is_clean) == (0, [], True)
        assert row.figures["fewest of a form at a point"] >= 1
        assert row.acknowledged > 0
        return row

    kinds = ("error", "delay", "lost", "errors that a caller got")
    short.until(lambda row: all(row.figures[kind] > 0 for kind in kinds), attempt)


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        ("state-kept", ["wrong", "lost"]),
        ("no-request-ids", ["duplicated", "wrong"]),
        ("swallowed", ["lost", "wrong"]),
    ],
)
def test_a_bug_is_found_by_errors_at_points(bug: str, kinds: list[str], tmp_path: Path) -> None:
    short.until_found(kinds, lambda seed: short.with_bug("point_errors", tmp_path, "0", bug, seed))


@pytest.mark.ray
def test_actors_die_at_points(tmp_path: Path) -> None:
    status, row = short.run("point_actors", tmp_path, "0", uses_ray=True)
    assert (status, row.findings, row.is_clean) == (0, [], True)
    assert row.count == len(point_actors.SHORT)
    assert row.acknowledged > 0
