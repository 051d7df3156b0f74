"""A short form of the SIGTERM suite, that it finds planted bugs, and what programs see of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash import audit, report, short, sigterm, writer

import reverie

TERMINATED = 143
HERE = Path(__file__).parent

pytestmark = pytest.mark.slow


def test_a_program_ends_in_time_and_all_that_was_acknowledged_is_there(tmp_path: Path) -> None:
    def attempt(seed: int) -> report.Row:
        status, row = short.run("sigterm", tmp_path, "5", "--seed", str(seed))
        assert (status, row.findings) == (0, [])
        assert row.count == 5
        assert row.acknowledged > 0
        return row

    short.until(lambda row: min(row.figures.values()) > 0, attempt)


@pytest.mark.parametrize(
    ("bug", "kind"),
    [
        ("ignored", "wrong"),
        ("no-deadline", "wrong"),
        ("waits", "wrong"),
        ("ack-before-commit", "lost"),
    ],
)
def test_a_planted_bug_is_found(bug: str, kind: str, tmp_path: Path) -> None:
    short.until_found([kind], lambda seed: short.with_bug("sigterm", tmp_path, "5", bug, seed))


# -- inside one process -----------------------------------------------------------------


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[reverie.Runtime]:
    with writer.open_runtime(tmp_path / "data") as opened:
        yield opened


def test_the_block_is_left_and_the_runtime_closed(runtime: reverie.Runtime, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def work() -> None:
        with reverie.closing_on_sigterm(runtime):
            runtime.user("ana").remember("The gate is open. 门开着。")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    with pytest.raises(SystemExit) as caught:
        work()
    assert caught.value.code == TERMINATED
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(reverie.errors.ClosedError):
        runtime.user("ana").remember("Too late.")
    with writer.open_runtime(tmp_path / "data") as again:
        assert [i.text for i in again.user("ana").list().items] == ["The gate is open. 门开着。"]


def test_without_sigterm_nothing_is_changed(runtime: reverie.Runtime) -> None:
    before, threads = signal.getsignal(signal.SIGTERM), threading.active_count()
    with reverie.closing_on_sigterm(runtime):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
    assert threading.active_count() == threads
    assert runtime.users() == []


def test_other_threads_cannot_ask_for_it(runtime: reverie.Runtime) -> None:
    caught: list[BaseException] = []

    def enter() -> None:
        try:
            with reverie.closing_on_sigterm(runtime):
                pass
        except reverie.errors.InvalidValueError as exc:
            caught.append(exc)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])


# -- the command line -------------------------------------------------------------------


def test_a_terminated_ingest_goes_on_where_it_was(tmp_path: Path) -> None:
    file, data = tmp_path / "talk.jsonl", tmp_path / "data"
    turns = [{"text": f"Turn {i}: I sold lantern {i}. 第{i}盏灯笼。"} for i in range(3_000)]
    file.write_text("\n".join(json.dumps(t, ensure_ascii=False) for t in turns), encoding="utf-8")
    code = "from reverie.cli import main; main()"
    command = [sys.executable, "-c", code, "ingest", str(file), "--data", str(data), "--json"]
    command += ["--embedder", "standin", "--user", "ana"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        deadline = time.monotonic() + 60
        while not any(p.stat().st_size > 200_000 for p in data.glob("partitions/*-wal")):
            assert program.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        program.terminate()
        printed, _ = program.communicate(timeout=60)
    assert program.returncode == TERMINATED
    assert json.loads(printed)["error"] == "Terminated"
    command[command.index("--json")] = "--no-infer"
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with reverie.open(data, embedder="standin", background=False) as opened:
        messages = opened.user("ana").list(types="message", limit=10_000)
        assert [m.text for m in messages.items] == [turn["text"] for turn in turns]
        assert opened.check() == []


# -- Ray --------------------------------------------------------------------------------


@pytest.mark.ray
def test_sigterm_of_actors_loses_nothing_not_even_readings_and_our_handler_stays(
    tmp_path: Path,
) -> None:
    ray = pytest.importorskip("ray")
    log, stop = tmp_path / "log", threading.Event()
    plan = writer.Plan(folder=str(tmp_path / "data"), log=str(log), run=1, seed=7, actors=2)

    def terminate(opened: reverie.Runtime) -> None:
        backend: Any = opened._router.backend
        for actor in backend.actors:
            os.kill(ray.get(actor.pid.remote(), timeout=60), signal.SIGTERM)

    def mine(*_: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with writer.open_runtime(tmp_path / "data", actors=2) as opened:
            assert signal.getsignal(signal.SIGTERM) is mine  # Ray puts its own one there
            user = opened.user("ana")
            user.remember("Ana keeps bees. 安娜养蜂。")
            for _ in range(3):
                user.search("bees")
            terminate(opened)
            (item,) = user.list().items
            assert item.hits == 3
            arguments = (plan, opened, writer.Log(log), stop)
            load = threading.Thread(target=writer.work, args=arguments, daemon=True)
            load.start()
            time.sleep(1.0)
            terminate(opened)
            time.sleep(1.0)
            stop.set()
            load.join(120)
            assert not load.is_alive()
    finally:
        signal.signal(signal.SIGTERM, before)
    auditor = audit.Auditor(tmp_path / "data", audit.Findings())
    auditor.read(log)
    auditor.audit()
    assert auditor.findings.lines == []
    assert auditor.findings.acknowledged > 0


@pytest.mark.ray
@pytest.mark.parametrize("everybody", [False, True])
def test_a_program_on_ray_ends_in_time_also_when_all_its_processes_are_terminated(
    tmp_path: Path,
    everybody: bool,  # noqa: FBT001 (pytest calls it so)
) -> None:
    """A supervisor may terminate the program alone, or it and all of Ray at once."""
    log, data = tmp_path / "log", tmp_path / "data"
    plan = writer.Plan(folder=str(data), log=str(log), run=1, seed=9, actors=2)
    code = (
        "import sys, msgspec; from crash import sigterm, writer; "
        "sigterm.WITHIN_S = 10.0; "
        "sigterm.main(msgspec.json.decode(sys.argv[1], type=writer.Plan), 'busy', None)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, msgspec.json.encode(plan)],
        cwd=HERE.parent,
        start_new_session=True,
    ) as program:
        try:
            deadline = time.monotonic() + 120
            while not log.exists() or b'"answered"' not in log.read_bytes():
                assert program.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            if everybody:
                os.killpg(program.pid, signal.SIGTERM)
            else:
                program.terminate()
            assert program.wait(10.0 + sigterm.SLACK_S) == TERMINATED
            auditor = audit.Auditor(data, audit.Findings())
            auditor.read(log)
            auditor.audit()  # at once: parts of Ray may outlive their program
            assert auditor.findings.lines == []
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def test_the_suite_knows_its_bugs() -> None:
    assert set(sigterm.FOUND_BY) < set(sigterm.BUGS)
