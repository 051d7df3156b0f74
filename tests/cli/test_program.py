"""The program as a whole: help, usage, errors, logs, signals and its start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

import reverie
from reverie.cli.logs import configure_logs
from reverie.cli.options import with_options
from reverie.cli.search import LookOptions

Run = Callable[..., Any]
PROGRAM = [sys.executable, "-c", "from reverie.cli import main; main()"]
QUARANTINE = ("quarantine list", "quarantine retry", "quarantine drop")
COMMANDS = ("demo", "ingest", "search", "context", "show", "stats", "check")


@pytest.mark.parametrize(
    "command", [*COMMANDS, "models pull", "models list", "models path", *QUARANTINE]
)
def test_every_command_has_help(run: Run, command: str) -> None:
    shown = run(*command.split(), "--help").stdout
    assert "--json" in shown
    *parent, name = command.split()
    assert f" {name} " in run(*parent, "--help").stdout


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"reverie {reverie.__version__}\n"


def test_wrong_usage_is_status_2_in_either_form(run: Run, run_json: Run) -> None:
    assert "QUESTION" in run("search", expect=2).stderr
    assert "QUESTION" in run_json("search", expect=2)["message"]
    assert "no-such" in run_json("search", "x", "--no-such", expect=2)["message"]
    assert run_json("search", "x", "--actors", "0", expect=2)["error"]
    assert run_json("ingest", "/no/such/file", expect=2)["error"]
    assert "nonsense" in run("nonsense", expect=2).stderr


@pytest.mark.parametrize(
    "flag",
    ["--rate 5", "--rate 1000", "--host ::1", "--port 0", "--allow-host 记忆", "--allow-origin x"],
)
def test_flags_of_http_are_refused_where_mcp_speaks_over_stdio(
    run: Run, run_json: Run, data: Path, flag: str
) -> None:
    name, value = flag.split()
    said = run_json("mcp", name, value, expect=2)["message"]
    assert name in said
    assert "--http" in said
    assert name in run("mcp", name, value, expect=2).stderr
    assert not data.exists()


def test_a_question_may_look_like_an_option(run: Run, talk: Path) -> None:
    run("ingest", talk, "--embedder", "standin")
    assert "score" in run("search", "--", "--json").stdout


def test_an_error_is_one_line_without_a_traceback(run: Run) -> None:
    result = run("stats", expect=1)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("DataFolderError: ")


def test_a_folder_in_use_names_its_owner(run_json: Run, data: Path) -> None:
    with reverie.open(data, embedder="standin"):
        error = run_json("stats", expect=1)
    assert error["error"] == "DataFolderLockedError"
    assert error["details"]["pid"] == os.getpid()


def test_logs_are_lines_on_stderr_without_values_of_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret = "4711"  # noqa: S105
    for as_json in (True, False):
        configure_logs(verbose=False, as_json=as_json)
        log = structlog.get_logger()
        log.info("not shown")
        try:
            int(secret) / 0
        except ZeroDivisionError:
            log.exception("failed")
        out, err = capsys.readouterr()
        assert out == ""
        assert "not shown" not in err
        assert "ZeroDivisionError" in err
        assert secret not in err
        if as_json:
            assert json.loads(err)["event"] == "failed"
    configure_logs(verbose=True, as_json=False)
    structlog.get_logger().debug("shown")
    assert "shown" in capsys.readouterr().err


def test_shared_options_become_options_of_a_command() -> None:
    seen: list[Any] = []

    def command(options: LookOptions, name: str) -> None:
        seen.append((options, name))

    made = with_options(command)
    made(name="x", **{**vars(LookOptions()), "types": "memory, message"})
    ((options, name),) = seen
    assert name == "x"
    assert options.look()["types"] == ["memory", "message"]


def test_every_public_name_is_there() -> None:
    for name in reverie.__all__:
        assert getattr(reverie, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = reverie.no_such_name  # type: ignore[attr-defined]


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from reverie.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "typer" in loaded
    assert not loaded & {"numpy", "networkx", "ray", "llama_cpp", "apsw", "structlog", "asyncio"}


def test_a_real_process_speaks_json_only(talk: Path, data: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "ingest", str(talk), "--embedder", "standin", "--json", "--verbose"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["stored"] == 5
    assert data.is_dir()


def test_a_reader_that_goes_away_is_no_error(talk: Path) -> None:
    subprocess.run([*PROGRAM, "ingest", str(talk), "--embedder", "standin"], check=True)
    done = subprocess.run(  # noqa: S602 (a pipe is what it is about)
        f"{sys.executable} -c 'from reverie.cli import main; main()' show | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_acknowledged(lines: Callable[..., Path], data: Path) -> None:
    path = lines([{"text": f"I have {n} apples.", "id": str(n)} for n in range(40_000)])
    command = [*PROGRAM, "ingest", str(path), "--embedder", "standin", "--follow-time"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell ignores the signal, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 60
    logs = "partitions/*-wal"  # larger than of an empty folder: something was acknowledged
    while not any(p.stat().st_size > 200_000 for p in data.glob(logs)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    with reverie.open(data, background=False) as rt:
        stored = rt.user("user").stats().messages
        assert 0 < stored < 40_000
        assert rt.check() == []
