"""MCP over standard input and output: a message a line.

From the start, file descriptor 1 leads to standard error, and the protocol goes through a copy of
it that nothing else knows: whatever a library prints, a client never sees. Lines are read by a
thread of their own, which may hang in a read for ever without holding up the end.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import anyio
import structlog
from mcp.server.stdio import stdio_server

from reverie.mcp.server import McpServer
from reverie.mcp.signals import until_sigterm
from reverie.tools import Tools

MAX_LINE_BYTES = 8 * 1024**2  # longer ones are passed over
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
    lines = _Lines(asyncio.get_running_loop(), server, drain_s)
    wrapped = anyio.wrap_file(io.TextIOWrapper(stdout, encoding="utf-8", write_through=True))
    with until_sigterm(drain_s, lines.end) as came:
        try:
            async with stdio_server(stdin=lines, stdout=wrapped) as (read, write):  # type: ignore[arg-type]  # it only iterates
                options = server.protocol.create_initialization_options()
                await server.protocol.run(read, write, options)
        except* (BrokenPipeError, anyio.BrokenResourceError):
            log.warning("the client is gone")
    return came.is_set()


class _Lines:
    """The lines of standard input, until it or `end` comes; calls under way then go first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: McpServer, drain_s: float) -> None:
        self._loop = loop
        self._server = server
        self._drain_s = drain_s
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(_QUEUED_LINES)
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
                    log.error("a line is too long and passed over", max_bytes=MAX_LINE_BYTES)
                    continue
                if not self._put(data.decode(errors="replace")):
                    return
        self._put(None)

    def _put(self, line: str | None) -> bool:
        try:
            waiting: Any = asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop)
            waiting.result()
        except RuntimeError:  # the loop is closed
            return False
        return True
