"""`reverie mcp` over standard input and output."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from mcp_client import ENDED_S, PROGRAM, arguments, go_through, started, texts
from support import check_folder
from tool_calls import CHINESE, ENGLISH

import reverie
from reverie.mcp.stdio import MAX_LINE_BYTES

pytestmark = pytest.mark.slow

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, name: str, given: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": given}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def as_lines(messages: Iterable[dict[str, Any] | bytes]) -> bytes:
    return b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)


@pytest.mark.parametrize(
    ("mode", "calls"), [("legacy", ENGLISH), ("auto", CHINESE)], ids=["legacy-en", "modern-zh"]
)
def test_the_official_client_calls_every_tool(
    tmp_path: Path, mode: str, calls: dict[str, dict[str, Any]]
) -> None:
    here = {name: given for name, given in calls.items() if name != "relationships"}
    args = arguments(tmp_path / "data", "--role", "admin")
    server = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], *args])
    answers = go_through(server, mode, here)
    assert not [name for name, answer in answers.items() if "error" in answer]
    assert answers["search_memory"]["results"][0]["text"] == calls["add_memory"]["text"]
    assert answers["delete_all_memories"]["is_proven"] is True
    check_folder(tmp_path / "data")


def test_all_calls_are_answered_when_input_ends_at_once(tmp_path: Path) -> None:
    notes = [f"Note {i}. 笔记{i}。" for i in range(20)]
    calls = [call(i + 1, "add_memory", {"text": note}) for i, note in enumerate(notes)]
    odd = [b"\n", b"no json\n", b"\xff\xfe\x00\n", b"x" * (MAX_LINE_BYTES + 9) + b"\n", b"[1, 2]\n"]
    sent = as_lines([HELLO, READY, *odd, *calls])
    with started(tmp_path / "data") as process:
        out, err = process.communicate(sent, timeout=ENDED_S)
    assert process.returncode == 0, err.decode()
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert set(answers) - {None} == set(range(21))
    for number in range(1, 21):
        assert answers[number]["result"]["structuredContent"]["event"] == "ADD"
    with reverie.open(tmp_path / "data", embedder="standin") as rt:
        assert sorted(texts(rt)) == sorted(notes)


def test_a_line_that_cannot_be_read_is_answered(tmp_path: Path) -> None:
    """Else who sent it would wait for ever. JSON of a text that was cut within an emoji is one."""
    cut = json.dumps(call(1, "add_memory", {"text": "Bees 蜜蜂 \ud83d"})).encode() + b"\n"
    huge = f'{{"jsonrpc":"2.0","id":"二","method":"tools/list","params":{"9" * 5000}}}\n'.encode()
    deep = b'{"jsonrpc":"2.0","id":3,"params":%s%s}\n' % (b"[" * 9999, b"]" * 9999)
    long = b"x" * (MAX_LINE_BYTES + 9) + b"\n"
    odd = [cut, huge, deep, long, b"no json\n", b"[1]\n", b'{"jsonrpc":"2.0","id":4,"x":5}\n']
    sent = as_lines([HELLO, READY, b"\n", b"  \n", *odd, call(5, "list_memories", {})])
    with started(tmp_path / "data") as process:
        out, err = process.communicate(sent, timeout=ENDED_S)
    assert process.returncode == 0, err.decode()
    answers = [json.loads(line) for line in out.splitlines()]
    refused = [(one["id"], one["error"]["code"]) for one in answers if "error" in one]
    read, known = -32700, -32600  # the codes of JSON-RPC: no JSON, no request
    expected = [(1, read), ("二", read), (None, read), (None, known), (None, read), (None, known)]
    assert refused == [*expected, (4, known)]
    assert answers[-1]["id"] == 5
    assert answers[-1]["result"]["structuredContent"]["total"] == 0


def test_sigterm_ends_it_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    with started(tmp_path / "data") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        note = "Bees sleep. 蜜蜂睡觉。"
        process.stdin.write(as_lines([HELLO, READY, call(1, "add_memory", {"text": note})]))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert answers[1]["result"]["structuredContent"] == {"event": "ADD", "id": "m1"}
        process.send_signal(signal.SIGTERM)  # its standard input stays open
        assert process.wait(timeout=ENDED_S) == 143
        assert process.stdout.read() == b""
    with reverie.open(tmp_path / "data", embedder="standin") as rt:
        assert texts(rt) == [note]


def test_nothing_but_the_protocol_is_written_to_standard_output(tmp_path: Path) -> None:
    """Also not what a library prints, or a process that it starts."""
    noisy = (
        "import os, subprocess, sys\n"
        "from reverie import user\n"
        "found = user.User.search\n"
        "def search(self, *args, **options):\n"
        "    print('printed'); os.write(1, b'written\\n'); subprocess.run(['echo', 'echoed'])\n"
        "    return found(self, *args, **options)\n"
        "user.User.search = search\n"
        "from reverie.cli import main; main()\n"
    )
    sent = as_lines([HELLO, READY, call(1, "search_memory", {"query": "bees"})])
    done = subprocess.run(
        [PROGRAM[0], "-c", noisy, *arguments(tmp_path / "data", "--verbose")],
        input=sent,
        capture_output=True,
        timeout=ENDED_S,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1]
    for word in (b"printed", b"written", b"echoed"):
        assert word in done.stderr
