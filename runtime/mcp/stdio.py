"""MCP over standard input and output: a message a line.

From the start, file descriptor 1 leads to standard error, and the protocol goes through a copy of
it that nothing else knows: whatever a library prints, a client never sees. Lines are read by a
thread of their own, which may hang in a read for ever without holding up the end.

The SDK passes over lines that it cannot read, and whoever sent one would wait for ever: they are
answered here.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple, TypedDict

import anyio
import msgspec
import structlog
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from pydantic import ValidationError

from reverie.mcp.server import McpServer
from reverie.mcp.signals import until_sigterm
from reverie.tools import Tools

MAX_LINE_BYTES = 8 * 1024**2  # longer ones are refused
_QUEUED_LINES = 16
_ANSWERED_S = 0.05  # from the end of a call until its answer is in the pipe

log = structlog.get_logger(__name__)


@contextmanager
def own_stdout() -> Iterator[BinaryIO]:
    """Yield the standard output as it was, while everything else that is printed goes to standard
    error, also by libraries and by processes that are started."""
    sys.stdout.flush()
    ours = os.dup(1)
    try:
        os.dup2(2, 1)
        with os.fdopen(ours, "wb", closefd=False) as file:
            yield file
    finally:
        os.dup2(ours, 1)
        os.close(ours)


def serve(tools: Tools, stdout: BinaryIO, *, drain_s: float) -> bool:
    """Serve until standard input ends or SIGTERM comes; to be called in the main thread.

    Calls under way are finished first, within `drain_s` seconds. After SIGTERM, a thread ends the
    process when it is still there then; the caller closes the runtime and exits.

    Returns:
        Whether it was SIGTERM.
    """
    return asyncio.run(_serve(tools, stdout, drain_s))


async def _serve(tools: Tools, stdout: BinaryIO, drain_s: float) -> bool:
    server = McpServer(tools)
    output = _Output(stdout)
    lines = _Lines(asyncio.get_running_loop(), server, output, drain_s)
    with until_sigterm(drain_s, lines.end) as came:
        try:
            async with stdio_server(stdin=lines, stdout=output) as (read, write):  # type: ignore[arg-type]  # all it uses
                options = server.protocol.create_initialization_options()
                await server.protocol.run(read, write, options)
        except* (BrokenPipeError, anyio.BrokenResourceError):
            log.warning("the client is gone")
    return came.is_set()


class _Output:
    """Standard output for the SDK and for refusals: whole lines, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        self._file = anyio.wrap_file(text)
        self._lock = anyio.Lock()

    async def write(self, line: str) -> None:
        """Write a line."""
        async with self._lock:
            await self._file.write(line)

    async def flush(self) -> None:
        """Let all of it reach the client."""
        async with self._lock:
            await self._file.flush()


class _Head(TypedDict, total=False):
    """What is read of a line that is not passed on; the rest is not decoded."""

    id: str | int | None


class _Refused(NamedTuple):
    """The answer to a line that is not passed on."""

    answer: str


def _refusal(line: str) -> _Refused | None:
    """Return the answer to a line that the SDK would pass over in silence; None for others.

    Such are a text that is cut within a character (half of a surrogate pair), a number beyond all
    reason, and what is no message. A line that is blank asks nothing.
    """
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as exc:
        if not line.strip():
            return None
        first = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        is_json = first["type"] != "json_invalid"
        why = "a line is no message of JSON-RPC" if is_json else first["msg"]
        return _refused(line, INVALID_REQUEST if is_json else PARSE_ERROR, why)
    return None


def _refused(line: str, code: int, why: str) -> _Refused:
    made = {"jsonrpc": "2.0", "id": _id_of(line), "error": {"code": code, "message": why}}
    return _Refused(json.dumps(made) + "\n")


def _id_of(line: str) -> str | int | None:
    """Return whose answer a refusal is; None where that cannot be read either.

    `json` reads halves of surrogate pairs, and msgspec passes over numbers of any length.
    """
    for read in (json.loads, partial(msgspec.json.decode, type=_Head)):
        try:
            found = read(line)
        except (ValueError, RecursionError):
            continue
        given = found.get("id") if isinstance(found, dict) else None
        return given if isinstance(given, str | int) else None
    return None


class _Lines:
    """The lines of standard input, until it or `end` comes; calls under way then go first."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server: McpServer,
        output: _Output,
        drain_s: float,
    ) -> None:
        self._loop = loop
        self._server = server
        self._output = output
        self._drain_s = drain_s
        self._queue: asyncio.Queue[str | _Refused | None] = asyncio.Queue(_QUEUED_LINES)
        self._ended = asyncio.Event()
        threading.Thread(target=self._read, name="reverie-mcp-stdin", daemon=True).start()

    def end(self) -> None:
        """Take no more lines."""
        self._ended.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        ended = asyncio.ensure_future(self._ended.wait())
        while not self._ended.is_set():
            line = asyncio.ensure_future(self._queue.get())
            await asyncio.wait({line, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                line.cancel()
                break
            if (text := line.result()) is None:
                break
            if isinstance(text, _Refused):
                await self._output.write(text.answer)
                await self._output.flush()
            else:
                yield text
        ended.cancel()
        await asyncio.sleep(_ANSWERED_S)  # until the last line has become a call
        await self._server.finish(self._drain_s)
        await asyncio.sleep(_ANSWERED_S)

    def _read(self) -> None:
        with open(0, "rb", closefd=False) as file:
            while data := file.readline(MAX_LINE_BYTES):
                if len(data) == MAX_LINE_BYTES and not data.endswith(b"\n"):
                    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                        pass
                    why = f"a line has at most {MAX_LINE_BYTES:,} bytes"
                    log.error("a line is too long and refused", max_bytes=MAX_LINE_BYTES)
                    found: str | _Refused = _refused("", INVALID_REQUEST, why)
                else:
                    line = data.decode(errors="replace")
                    found = _refusal(line) or line
                if not self._put(found):
                    return
        self._put(None)

    def _put(self, line: str | _Refused | None) -> bool:
        try:
            waiting: Any = asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop)
            waiting.result()
        except RuntimeError:  # the loop is closed
            return False
        return True
