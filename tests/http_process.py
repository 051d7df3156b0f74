"""A server in a process of its own, as people run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PROGRAM = (sys.executable, "-c", "from reverie.cli import main; main()")
WAIT_S = 90.0


class Server(NamedTuple):
    """A server that runs."""

    process: subprocess.Popen[str]
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def end(self, sign: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit status."""
        self.process.send_signal(sign)
        return self.process.wait(WAIT_S)


def start(folder: Path, *more: str) -> Server:
    """Start one over a folder, on a port that is free."""
    command = [
        *(*PROGRAM, "serve", "--data", str(folder), "--embedder", "standin", "--json"),
        *("--port", "0", "--rate", "0", "--no-access-log", *more),
    ]
    environment = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.stdout.close()
    assert line, f"the server did not start: {process.wait(WAIT_S)}"
    told: dict[str, Any] = json.loads(line)
    return Server(process, told["listening"])


@contextmanager
def running(folder: Path, *more: str) -> Iterator[Server]:
    """One that is ended in any case."""
    server = start(folder, *more)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(WAIT_S)
        assert server.process.stdout is not None
        server.process.stdout.close()


def program(*args: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and expect an exit status."""
    done = subprocess.run(
        [*PROGRAM, *args], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == expect, (args, done.stdout, done.stderr)
    return done
