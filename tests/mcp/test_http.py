"""`reverie mcp --http`: who is let in, and the official client against it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_client import ENDED_S, go_through, started, texts
from support import Factory
from tool_calls import CHINESE, ENGLISH

import reverie
from reverie import Runtime, errors
from reverie.http.keys import Door, KeyFile, Role
from reverie.http.settings import HttpSettings
from reverie.mcp.http import Guard, Server
from reverie.mcp.server import ROLE
from reverie.tools import Tools

# -- the guard ------------------------------------------------------------------------------

LOCAL = ("localhost", "127.0.0.1", "[::1]")


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    factory = Factory(tmp_path, actors=None)
    yield factory(background=False)
    factory.finish()


class Passed:
    """What stands behind the guard."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


def ask(
    guard: Guard, headers: list[tuple[str, str]], path: str = "/mcp"
) -> tuple[int, dict[str, Any]]:
    """Send a request through a guard; returns status and body."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    scope: Any = {"type": "http", "method": "POST", "path": path, "headers": raw}
    asyncio.run(guard(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def guarded(
    rt: Runtime, app: Passed, *, hosts: tuple[str, ...] = LOCAL, origins: tuple[str, ...] = ()
) -> Guard:
    tools = Tools(rt, user="ana", role="admin")
    return Guard(app, tools, Door(KeyFile(rt.path)), hosts, origins)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("host", "127.0.0.1:8643")], 200),
        ([("host", "LOCALHOST")], 200),
        ([("host", "[::1]:80")], 200),
        ([("host", "localhost:1"), ("origin", "http://localhost:1")], 200),
        ([("host", "localhost:1"), ("origin", "http://app.example:7")], 200),
        ([], 421),
        ([("host", "evil.example")], 421),
        ([("host", "127.0.0.1.evil.example:80")], 421),
        ([("host", "localhost"), ("host", "evil.example")], 421),
        ([("host", "")], 421),
        ([("host", "localhost:1"), ("origin", "http://localhost:2")], 403),
        ([("host", "localhost:1"), ("origin", "http://evil.example")], 403),
        ([("host", "localhost:1"), ("origin", "null")], 403),
    ],
)
def test_host_and_origin_are_checked(
    rt: Runtime, headers: list[tuple[str, str]], status: int
) -> None:
    app = Passed()
    guard = guarded(rt, app, origins=("http://app.example:7/",))
    found, body = ask(guard, headers)
    assert found == status
    assert len(app.scopes) == (status == 200)
    assert (status == 200) == ("error" not in body)


def test_only_the_one_path_is_served(rt: Runtime) -> None:
    guard = guarded(rt, Passed())
    assert ask(guard, [("host", "localhost")], "/mcp/")[0] == 200
    assert ask(guard, [("host", "localhost")], "/metrics")[0] == 404


def test_with_keys_each_request_shows_one_of_its_world(rt: Runtime) -> None:
    keys = KeyFile(rt.path)
    made = {role: keys.create(role, worlds=["default"])[0] for role in ("read", "write", "admin")}
    elsewhere, _ = keys.create("admin", worlds=["other"])
    gone, row = keys.create("admin", everywhere=True)
    keys.revoke(row.id)
    app = Passed()
    guard = guarded(rt, app)
    host = ("host", "localhost")
    wrong = made["read"][:-1] + ("A" if made["read"][-1] != "A" else "B")
    for header in ("", "Bearer", f"Basic {made['read']}", f"Bearer {wrong}", f"Bearer {gone}"):
        assert ask(guard, [host, ("authorization", header)])[0] == 401
    assert ask(guard, [host])[0] == 401
    assert ask(guard, [host, *[("authorization", f"Bearer {made['read']}")] * 2])[0] == 401
    assert ask(guard, [host, ("authorization", f"Bearer {elsewhere}")])[0] == 403
    assert not app.scopes
    for role, key in made.items():
        assert ask(guard, [host, ("authorization", f"Bearer {key}")])[0] == 200
        assert app.scopes[-1][ROLE] == role


def test_without_keys_it_listens_on_this_machine_only(rt: Runtime) -> None:
    tools = Tools(rt, user="ana")
    with pytest.raises(errors.ConfigError, match="without keys"):
        Server(tools, HttpSettings(host="0.0.0.0"))  # noqa: S104 (refused)
    KeyFile(rt.path).create("read", worlds=["default"])
    Server(tools, HttpSettings(host="0.0.0.0"))  # noqa: S104 (not begun)


# -- as a process -----------------------------------------------------------------------------


def address(process: Any) -> str:
    """Wait until a server says where it listens."""
    for line in process.stderr:
        if found := re.search(rb"http://[\d.]+:\d+/mcp", line):
            return found[0].decode()
    pytest.fail("the server has ended")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "calls"), [("legacy", CHINESE), ("auto", ENGLISH)], ids=["legacy-zh", "modern-en"]
)
def test_the_official_client_calls_every_tool(
    tmp_path: Path, mode: str, calls: dict[str, dict[str, Any]]
) -> None:
    more = ("--http", "--port", "0", "--role", "admin", "--characters")
    with started(tmp_path / "data", *more) as process:
        answers = go_through(address(process), mode, calls)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=ENDED_S) == 143
        assert process.stdout is not None
        assert process.stdout.read() == b""
    assert not [name for name, answer in answers.items() if "error" in answer]
    assert answers["search_memory"]["results"][0]["text"] == calls["add_memory"]["text"]


@pytest.mark.slow
def test_a_key_goes_as_far_as_its_role(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with reverie.open(data, embedder="standin") as rt:
        rt.user("ana").remember("Bees sleep. 蜜蜂睡觉。")
    keys: dict[Role, str] = {
        role: KeyFile(data).create(role, worlds=["default"])[0] for role in ("read", "write")
    }
    with started(data, "--http", "--port", "0", "--role", "admin") as process:
        url = address(process)
        where = HTTPConnection(url.split("/")[2], timeout=ENDED_S)
        where.request("POST", "/mcp", b"{}", {"Content-Type": "application/json"})
        assert where.getresponse().status == 401
        where.close()

        async def through(key: str) -> list[Any]:
            from mcp import Client

            headers = {"Authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(headers=headers, timeout=ENDED_S) as http:
                transport = streamable_http_client(url, http_client=http)
                async with Client(transport) as session:
                    tools = (await session.list_tools()).tools
                    note = {"text": "Bees wake. 蜜蜂醒来。"}
                    everything = {"everything": True, "confirm": "ana"}
                    answers = [
                        await session.call_tool("search_memory", {"query": "bees"}),
                        await session.call_tool("add_memory", note),
                        await session.call_tool("forget", everything),
                    ]
                    return [len(tools), *(one.structured_content for one in answers)]

        few, found, added, erased = asyncio.run(through(keys["read"]))
        assert found["results"]
        assert (added["error"], erased["error"]) == ("Forbidden", "Forbidden")
        more, found, added, erased = asyncio.run(through(keys["write"]))
        assert more > few
        assert (added["event"], erased["error"]) == ("ADD", "Forbidden")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=ENDED_S) == 143
    with reverie.open(data, embedder="standin") as rt:
        assert texts(rt) == ["Bees sleep. 蜜蜂睡觉。", "Bees wake. 蜜蜂醒来。"]
