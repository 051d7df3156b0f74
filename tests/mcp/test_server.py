"""The protocol's server in this process: how many calls at once, and what a client is told."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest
from mcp import Client

from reverie import Runtime, errors
from reverie.mcp import needs_extra, server
from reverie.mcp.server import McpServer
from reverie.tools import TABLE, Tools


def test_calls_beyond_the_bound_are_refused_as_answers(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, go = Tools(rt, user="ana"), threading.Event()
    begun = threading.Semaphore(0)
    monkeypatch.setattr(server, "MAX_CALLS", 2)
    carry_out = tools.call

    def slow(*args: Any, **options: Any) -> dict[str, Any]:
        begun.release()
        go.wait(60)
        return carry_out(*args, **options)

    monkeypatch.setattr(tools, "call", slow)

    async def overload() -> list[Any]:
        ours = McpServer(tools)
        async with Client(ours.protocol) as client:
            note = {"text": "Bees. 蜜蜂。"}
            waiting = [asyncio.ensure_future(client.call_tool("add_memory", note)) for _ in "12"]
            for _ in waiting:
                assert await asyncio.to_thread(begun.acquire, timeout=60)
            refused = await client.call_tool("add_memory", note)
            await ours.finish(0.05)  # they are still under way
            assert not any(one.done() for one in waiting)
            go.set()
            await ours.finish(60)
            return [refused, *await asyncio.gather(*waiting)]

    refused, *others = asyncio.run(overload())
    assert refused.structured_content["error"] == "OverloadedError"
    assert sorted(one.structured_content["event"] for one in others) == ["ADD", "NOOP"]


def test_clients_are_told_what_is_safe(rt: Runtime) -> None:
    async def listed() -> Any:
        async with Client(McpServer(Tools(rt, user="ana", role="admin")).protocol) as client:
            return (await client.list_tools()).tools

    for tool in asyncio.run(listed()):
        row, hints = TABLE[tool.name], tool.annotations
        assert hints is not None
        assert hints.read_only_hint is (row.role == "read")
        assert hints.destructive_hint is (tool.name == "forget")
        assert hints.open_world_hint is False
        assert tool.description == row.description


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(errors.ConfigError, match=r"reverie\[mcp\]"), needs_extra():
        import mcp  # noqa: F401 (it is not there)
