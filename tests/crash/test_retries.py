"""A short form of the retries suite, its planted bugs, and how long a request is known."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from crash import report, retries
from crash.short import options, until
from crash.test_kill_actor import kill_an_actor

import reverie
from reverie.memory_graph.errors import RequestReusedError
from reverie.memory_graph.store import results


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_request_has_one_effect_however_often_it_is_sent(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        row = retries.run(options(tmp_path, 2_000, seed=seed))
        assert row.findings == []
        assert row.is_clean
        assert row.count >= 2_000
        assert row.figures["sends"] > 2 * row.count
        return row

    kinds = (
        "answers lost",
        "calls lost",
        "closed",
        "dropped",
        "finished",
        "first sent at the same moment",
        "ids used twice",
        "in order",
        "looks",
        "pipelined",
        "sent again",
        "sent again after a restart",
        "sent again at the same moment",
        "sent long after",
        "users out of memory",
    )
    until(lambda row: all(row.figures.get(kind, 0) > 0 for kind in kinds), attempt)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        # A second update of a memory that has ended meanwhile is refused, not answered.
        ("answers-not-kept", ("duplicated:", "broken: Client")),
        ("answers-in-memory", ("duplicated:", "broken: Client")),
        ("batch-reversed", ("broken: out of order",)),
        ("any-content", ("broken:",)),
    ],
)
def test_a_planted_bug_is_found(bug: str, kinds: tuple[str, ...], tmp_path: Path) -> None:
    until(
        lambda row: any(line.startswith(kinds) for line in row.findings),
        lambda seed: retries.run(options(tmp_path, 1_000, bug, seed=seed)),
    )


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_on_ray_with_an_actor_that_is_killed(tmp_path: Path) -> None:
    chance = random.Random(1)
    killed: list[int] = []

    def disturb(runtime: reverie.Runtime) -> None:
        for _ in range(2):
            time.sleep(0.3)
            killed.append(kill_an_actor(runtime, chance))

    row = retries.run_on_ray(options(tmp_path, 360), disturb)
    assert row.findings == []
    assert row.is_clean
    assert len(killed) == 2
    for pid in killed:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIG_DFL)
    done = row.figures
    assert min(done["answers lost"], done["pipelined"], done["in order"], done["looks"]) > 0


def test_a_partition_remembers_its_newest_requests_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, total = 64, 200
    monkeypatch.setattr(results, "MAX_RESULTS", most)
    monkeypatch.setattr(results, "PRUNE_EVERY", 8)
    settings: dict[str, Any] = {"embedder": "standin", "partitions": 1, "background": False}

    def send(user: reverie.User, number: int) -> list[str]:
        return user.add(f"Line {number}: 红灯笼", infer=False, request_id=f"r{number}").ids

    with reverie.open(tmp_path, **settings) as runtime:
        answers = [send(runtime.user("ana"), number) for number in range(total)]
    with reverie.open(tmp_path, **settings) as runtime:
        user = runtime.user("ana")
        for number in reversed(range(total - most, total)):  # the last ones, over a reopening
            assert send(user, number) == answers[number]
        with pytest.raises(RequestReusedError):
            user.add("other content", infer=False, request_id=f"r{total - most}")
        assert user.stats().messages == total
        assert send(user, 0) != answers[0]  # long forgotten: a new request
        assert user.stats().messages == total + 1
        assert runtime.check() == []
