"""Actors on Ray that are killed: the client repeats, the partitions fence, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash import audit, writer

import reverie

ACTORS = 2
KILLS = 10

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def audited(auditor: audit.Auditor, log: Path) -> None:
    """Audit the folder after a run, in this process and without Ray."""
    auditor.read(log)
    auditor.audit()
    assert auditor.findings.lines == []


def kill_an_actor(runtime: reverie.Runtime, chance: random.Random) -> int:
    """Kill the process of one actor, which may just be starting again; return its id."""
    ray = pytest.importorskip("ray")
    backend: Any = runtime._router.backend
    actor = chance.choice(backend.actors)
    deadline = time.monotonic() + 60
    while True:
        try:
            pid: int = ray.get(actor.pid.remote(), timeout=60)
        except ray.exceptions.RayError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            os.kill(pid, signal.SIGKILL)
            return pid


def test_kill_9_of_actors_under_load(tmp_path: Path) -> None:
    """Every call returns, as if nothing had happened."""
    folder, log = tmp_path / "data", tmp_path / "log"
    plan = writer.Plan(folder=str(folder), log=str(log), run=1, seed=3, actors=ACTORS)
    stop, chance, killed = threading.Event(), random.Random(3), set()
    with writer.open_runtime(folder, actors=ACTORS, background=True) as runtime:
        arguments = (plan, runtime, writer.Log(log), stop)
        load = threading.Thread(target=writer.work, args=arguments)
        load.start()
        try:
            for _ in range(KILLS):
                time.sleep(chance.uniform(0.1, 0.6))
                killed.add(kill_an_actor(runtime, chance))
            time.sleep(0.5)
        finally:
            stop.set()
            load.join(timeout=120)
        assert not load.is_alive()
    assert len(killed) == KILLS
    lines = writer.read_log(log)
    asked = {line.op.id for line in lines if isinstance(line, writer.Asked)}
    answered = {line.id for line in lines if isinstance(line, writer.Answered)}
    assert asked == answered
    assert len(asked) > KILLS  # an actor needs seconds to start again
    audited(audit.Auditor(folder, audit.Findings()), log)


def test_kill_9_of_the_client_leaves_a_folder_that_another_process_can_open(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    auditor = audit.Auditor(folder, audit.Findings())
    for run, after_s in enumerate((0.3, 1.0), 1):
        log = tmp_path / f"log-{run}"
        plan = writer.Plan(folder=str(folder), log=str(log), run=run, seed=5, actors=ACTORS)
        client = subprocess.Popen(
            [sys.executable, "-m", "crash.writer", msgspec.json.encode(plan)],
            cwd=Path(__file__).parents[1],
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 120
            while not log.exists() or b'"answered"' not in log.read_bytes():
                assert client.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(after_s)
            client.kill()
            client.wait()
            audited(auditor, log)  # at once: its actors may still be alive, and must not get in
        finally:
            with suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)  # parts of Ray outlive their client
            client.wait()
