"""`reverie mcp` as a process, and the official client of the SDK against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from reverie import Runtime

PROGRAM = [sys.executable, "-c", "from reverie.cli import main; main()"]
ENDED_S = 60.0


def arguments(data: Path, *more: str) -> list[str]:
    """The command line of a server, with all tools."""
    tools = "reverie,server-memory,openmemory"
    shared = ["--data", str(data), "--embedder", "standin", "--user", "ana"]
    return ["mcp", *shared, "--tools", tools, *more]


@contextmanager
def started(data: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server as a process, killed at the end if it is still there."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*PROGRAM, *arguments(data, *more)], stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def go_through(server: Any, mode: str, calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """List all tools and call each; returns the answers by tool."""

    async def client() -> dict[str, Any]:
        answers: dict[str, Any] = {}
        async with Client(server, mode=mode, read_timeout_seconds=ENDED_S) as session:
            tools = (await session.list_tools()).tools
            assert {tool.name for tool in tools} == set(calls)
            assert all(tool.input_schema["type"] == "object" for tool in tools)
            for name, given in calls.items():
                found = await session.call_tool(name, given)
                (content,) = found.content
                assert json.loads(content.text) == found.structured_content  # type: ignore[union-attr]
                assert found.is_error is ("error" in found.structured_content)
                answers[name] = found.structured_content
            wrong = await session.call_tool("search_memory", {"query": 7})
            assert wrong.is_error
            assert wrong.structured_content["error"] == "InvalidArguments"
            unknown = await session.call_tool("read_file", {"path": "/etc/passwd"})
            assert unknown.structured_content["error"] == "UnknownTool"
        return answers

    return anyio.run(client)


def texts(rt: Runtime) -> list[str]:
    """What is kept of the user of the server."""
    return [item.text for item in rt.user("ana").list().items]
