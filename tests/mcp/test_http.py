"""`reverie mcp --http`: who is let in, and the official client against it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Iterator, Sequence
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
from reverie.http.admission import Admission
from reverie.http.keys import Door, KeyFile, Role
from reverie.http.settings import HttpSettings
from reverie.mcp.http import MAX_CONNECTIONS, Guard, Server
from reverie.mcp.server import ROLE
from reverie.tools import Tools

# -- the guard ------------------------------------------------------------------------------


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    factory = Factory(tmp_path, actors=None)
    yield factory(background=False)
    factory.finish()


class Passed:
    """What stands behind the guard."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


def asked(
    guard: Guard,
    headers: list[tuple[str, str]],
    path: str = "/mcp",
    parts: Sequence[bytes | None] = (b"",),
) -> list[Any]:
    """Send a request through a guard, its body in parts (None: nothing more comes); returns the
    messages of its answer."""
    sent: list[Any] = []
    left = list(parts)

    async def receive() -> Any:
        part = left.pop(0) if left else None
        if part is None:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    scope: Any = {"type": "http", "method": "POST", "path": path, "headers": raw}
    asyncio.run(guard(scope, receive, send))
    return sent


def ask(
    guard: Guard, headers: list[tuple[str, str]], path: str = "/mcp"
) -> tuple[int, dict[str, Any]]:
    """Send a request through a guard; returns status and body."""
    sent = asked(guard, headers, path)
    return sent[0]["status"], json.loads(sent[1]["body"])


def guarded(rt: Runtime, app: Passed, *, origins: tuple[str, ...] = (), **settings: Any) -> Guard:
    tools = Tools(rt, user="ana", role="admin")
    bounds = HttpSettings(**settings)
    return Guard(app, tools, Admission(Door(KeyFile(rt.path)), bounds, origins), bounds)


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


# -- bounds: those of HTTP ---------------------------------------------------------------------

HOST = ("host", "localhost")


def refusal(sent: list[Any]) -> tuple[int, str, dict[bytes, bytes]]:
    """Status, code and headers of an answer."""
    return sent[0]["status"], json.loads(sent[1]["body"])["error"], dict(sent[0]["headers"])


def test_a_body_is_passed_on_whole(rt: Runtime) -> None:
    app = Passed()
    whole = json.dumps({"text": "Bees sleep. 蜜蜂睡觉。"}, ensure_ascii=False).encode()
    parts = [whole[:7], b"", whole[7:33], whole[33:]]  # within a character
    assert asked(guarded(rt, app), [HOST], parts=parts)[0]["status"] == 200
    assert app.bodies == [whole]


def test_who_asks_too_often_is_told_when_to_come_again(rt: Runtime) -> None:
    keys = [KeyFile(rt.path).create("read", worlds=["default"])[0] for _ in range(2)]
    app = Passed()
    guard = guarded(rt, app, rate_per_s=0.001, burst=3)
    often, seldom = ([HOST, ("authorization", f"Bearer {key}")] for key in keys)
    assert [ask(guard, often)[0] for _ in range(5)] == [200, 200, 200, 429, 429]
    status, code, headers = refusal(asked(guard, often))
    assert (status, code) == (429, "TooManyRequests")
    assert int(headers[b"retry-after"]) > 100
    assert ask(guard, seldom)[0] == 200  # each key has its own
    assert len(app.scopes) == 4


def test_without_keys_everybody_is_one(rt: Runtime) -> None:
    guard = guarded(rt, Passed(), rate_per_s=0.001, burst=2)
    assert [ask(guard, [HOST])[0] for _ in range(3)] == [200, 200, 429]
    open_to_all = guarded(rt, Passed(), rate_per_s=None, burst=2)
    assert [ask(open_to_all, [HOST])[0] for _ in range(4)] == [200] * 4


@pytest.mark.parametrize(
    ("headers", "parts", "expected"),
    [
        ([("content-length", "101")], [b"never read"], (413, "BodyTooLarge")),
        ([("content-length", "9" * 30)], [b""], (413, "BodyTooLarge")),
        ([("content-length", "-1")], [b""], (400, "MalformedRequest")),
        ([], [b"x" * 60, b"y" * 60], (413, "BodyTooLarge")),
        ([("content-length", "10")], ["茶".encode() * 40], (413, "BodyTooLarge")),
        ([], [b"[" * 50], (400, "MalformedRequest")),
        ([], [b'{"a":' * 8 + b"1", b"}" * 8], (400, "MalformedRequest")),
        ([], [b"{", None], (408, "RequestTimeout")),
    ],
    ids=str,
)
def test_a_body_that_is_too_much_is_not_passed_on(
    rt: Runtime,
    headers: list[tuple[str, str]],
    parts: list[bytes | None],
    expected: tuple[int, str],
) -> None:
    app = Passed()
    guard = guarded(rt, app, max_body_bytes=100, max_depth=7, body_timeout_s=0.05)
    status, code, told = refusal(asked(guard, [HOST, *headers], parts=parts))
    assert (status, code) == expected
    assert told[b"connection"] == b"close"
    assert not app.scopes
    assert guard._held.bytes == 0


def test_all_bodies_together_are_bounded(rt: Runtime) -> None:
    app = Passed()
    guard = guarded(rt, app, max_held_bytes=50)
    status, code, _ = refusal(asked(guard, [HOST], parts=[b"x" * 30, b"y" * 30]))
    assert (status, code) == (429, "TooManyRequests")
    assert asked(guard, [HOST], parts=[b"x" * 30, b"y" * 20])[0]["status"] == 200
    assert guard._held.bytes == 0


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
def test_connections_that_send_no_head_keep_nobody_out(tmp_path: Path) -> None:
    async def few() -> int:
        with reverie.open(tmp_path / "data", embedder="standin") as rt:
            settings = HttpSettings(port=0, head_timeout_s=0.2)
            server = Server(Tools(rt, user="ana"), settings)
            serving = asyncio.create_task(server.serve(drain_s=60))
            for _ in range(3_000):
                await asyncio.sleep(0.01)
                if server._server.started:
                    break
            host, port = server._server.servers[0].sockets[0].getsockname()[:2]
            begun = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
            silent = [await asyncio.open_connection(host, port) for _ in range(MAX_CONNECTIONS)]
            for _, writer in silent:
                writer.write(begun)
            ended = [await asyncio.wait_for(reader.read(), ENDED_S) for reader, _ in silent]
            assert ended == [b""] * MAX_CONNECTIONS
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(begun + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
            status = int((await reader.readline()).split()[1])
            for _, one in [*silent, (reader, writer)]:
                one.close()
            server._stop()
            await serving
        return status

    assert asyncio.run(few()) != 503


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
