"""`reverie serve` and `reverie keys` as processes: the start, the end, and kill -9 under load."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_process import Server, program, running

import reverie
from reverie.http.heads import TimedHeads
from reverie.http.keys import FILE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WORLD = "/v1/worlds/town"


def test_a_key_is_shown_once_and_works_until_it_is_revoked(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    made = json.loads(
        program(
            "keys",
            "create",
            "--new",
            "--data",
            folder,
            "--role",
            "write",
            "--world",
            "小镇",
            "--json",
        ).stdout
    )
    listed = program("keys", "list", "--data", folder, "--json").stdout
    assert made["key"] not in listed
    assert "digest" not in listed
    assert json.loads(listed)["keys"][0]["worlds"] == ["小镇"]
    headers = {"Authorization": f"Bearer {made['key']}"}
    with running(tmp_path / "data") as server:
        path = f"{server.address}/v1/worlds/%E5%B0%8F%E9%95%87/users/ana/memories"
        assert httpx.post(path, json={"text": "茶 tea"}).status_code == 401
        assert httpx.post(path, json={"text": "茶 tea"}, headers=headers).status_code == 200
        program("keys", "revoke", made["id"], "--data", folder)
        time.sleep(1.2)
        assert httpx.get(path, headers=headers).status_code == 401
        assert server.end() == 128 + signal.SIGTERM


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 (it is refused)
def test_it_does_not_start_where_others_reach_it_without_keys(host: str, tmp_path: Path) -> None:
    done = program("serve", "--data", str(tmp_path / "data"), "--host", host, "--json", expect=1)
    assert json.loads(done.stdout)["error"] == "ConfigError"
    assert not (tmp_path / "data").exists()


def test_it_does_not_start_with_a_file_of_keys_that_is_open_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    program("keys", "create", "--new", "--data", str(folder), "--role", "read", "--all-worlds")
    (folder / FILE).chmod(0o644)
    done = program("serve", "--data", str(folder), "--json", expect=1)
    assert "chmod 600" in json.loads(done.stdout)["message"]


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = program("serve", "--data", str(tmp_path / "d"), "--port", port, "--json", expect=1)
        assert port in json.loads(done.stdout)["message"]
    with reverie.open(tmp_path / "d", background=False):  # it was closed again
        pass


def test_what_is_under_way_is_finished_and_the_rest_refused(tmp_path: Path) -> None:
    with running(tmp_path / "data") as server:
        body = json.dumps({"text": "The last word. 最后一句话。"}).encode()
        slow = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        slow.putrequest("POST", f"{WORLD}/users/ana/memories")
        slow.putheader("Content-Type", "application/json")
        slow.putheader("Content-Length", str(len(body)))
        slow.endheaders()
        slow.send(body[:5])
        _until(lambda: "reverie_http_in_flight 2.0" in httpx.get(f"{server.address}/metrics").text)
        server.process.send_signal(signal.SIGTERM)
        _until(lambda: httpx.get(f"{server.address}/ready").status_code == 503)
        refused = httpx.post(f"{server.address}{WORLD}/users/ana/memories", json={"text": "No."})
        assert (refused.status_code, refused.json()["error"]) == (503, "Draining")
        slow.send(body[5:])
        answer = slow.getresponse()
        assert answer.status == 200
        kept = json.loads(answer.read())
        slow.close()
        assert server.process.wait(30) == 128 + signal.SIGTERM
    with reverie.open(tmp_path / "data", background=False) as runtime:
        assert runtime.user("ana", "town").get(kept["memory_id"]).text.startswith("The last")
        assert runtime.user("ana", "town").stats().memories == 1


def test_it_ends_in_time_whatever_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that never comes does not hold up the end for longer than is stated."""
    with (
        running(tmp_path / "data") as server,
        socket.create_connection(("127.0.0.1", server.port)) as stuck,
    ):
        head = f"POST {WORLD}/users/a/memories HTTP/1.1\r\nHost: localhost\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n"
        stuck.sendall(head.encode())
        _until(lambda: "reverie_http_in_flight 2.0" in httpx.get(f"{server.address}/metrics").text)
        began = time.monotonic()
        assert server.end() == 128 + signal.SIGTERM
        # `Config.drain_s` is 10 seconds; the rest is for a busy machine to start and to reap.
        assert time.monotonic() - began < 25
    with reverie.open(tmp_path / "data", background=False) as runtime:
        assert runtime.check() == []


def test_a_connection_that_sends_no_head_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer of the protocol, without a server."""
    import asyncio

    class Transport(asyncio.Transport):
        aborted = False

        def is_closing(self) -> bool:
            return self.aborted

        def abort(self) -> None:
            self.aborted = True

    async def idle() -> bool:
        protocol = object.__new__(TimedHeads)
        protocol.head_timeout_s = 0.01
        protocol.transport = Transport()
        protocol._wait()
        await asyncio.sleep(0.05)
        return protocol.transport.aborted

    assert asyncio.run(idle())


def _until(holds: Callable[[], object]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("it never came to that")


# -- kill -9 -------------------------------------------------------------------------------------


class Load:
    """Threads that write over HTTP, and know what was acknowledged."""

    def __init__(self, server: Server, run: int) -> None:
        self.sent: dict[str, tuple[str, str]] = {}  # request id -> user, text
        self.acknowledged: set[str] = set()
        self.streamed = 0  # lines that the events of an ingestion have told of
        self._server, self._run = server, run
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(6)]
        self._threads.append(threading.Thread(target=self._stream))
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        with httpx.Client(base_url=self._server.address, timeout=30) as client:
            for count in range(100_000):
                request = f"{self._run}-{number}-{count}"
                user = ("ana", "阿波")[count % 2]
                text = f"Note {request}. 第{count}条。"
                self.sent[request] = user, text
                try:
                    answer = client.post(
                        f"{WORLD}/users/{user}/messages",
                        json={"messages": text},
                        headers={"Idempotency-Key": request},
                    )
                except httpx.HTTPError:
                    return
                assert answer.status_code == 200, answer.text
                self.acknowledged.add(request)

    def _stream(self) -> None:
        lines = "".join(
            json.dumps({"user": "流", "text": f"Line {self._run} {n}."}) + "\n" for n in range(5000)
        )
        sent: dict[str, Any] = {
            "content": lines.encode(),
            "headers": {
                "Content-Type": "application/x-ndjson",
                "Idempotency-Key": f"stream-{self._run}",
            },
            "params": {"infer": "false"},
        }
        try:
            with httpx.stream("POST", f"{self._server.address}{WORLD}/ingest", **sent) as answer:
                for line in answer.iter_lines():
                    if line.startswith("data: {") and '"stored"' in line:
                        self.streamed = json.loads(line[6:])["stored"]
        except httpx.HTTPError:
            return

    def is_under_way(self) -> bool:
        return len(self.acknowledged) > 20 and self.streamed > 0

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)


@pytest.mark.timeout(600)
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    loads: list[Load] = []
    for run in range(3):
        with running(folder) as server:
            load = Load(server, run)
            loads.append(load)
            _until(load.is_under_way)
            server.process.kill()
            load.join()
    sent = {request: said for load in loads for request, said in load.sent.items()}
    acknowledged = set().union(*(load.acknowledged for load in loads))
    with running(folder) as server:  # what got no answer is sent again, under its id
        for request in sorted(sent.keys() - acknowledged):
            user, text = sent[request]
            answer = httpx.post(
                f"{server.address}{WORLD}/users/{user}/messages",
                json={"messages": text},
                headers={"Idempotency-Key": request},
                timeout=60,
            )
            assert answer.status_code == 200
        assert server.end() == 128 + signal.SIGTERM
    with reverie.open(folder, background=False) as runtime:
        assert runtime.check() == []
        said = [
            (user, item.text)
            for user in ("ana", "阿波")
            for item in runtime.user(user, "town").list(types="message", limit=10_000).items
        ]
        assert sorted(said) == sorted(sent.values())  # each, and each once
        streamed = runtime.user("流", "town").list(types="message", limit=10_000).items
        texts = [item.text for item in streamed]
        assert len(texts) == len(set(texts)) >= sum(load.streamed for load in loads)
    assert len(acknowledged) > 60


# -- the documentation -----------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are for curl")
def test_the_examples_of_the_documentation_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- test: curl -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 4
    (tmp_path / "talk.jsonl").write_text('{"user": "ana", "text": "I like tea. 我爱茶。"}\n')
    with running(tmp_path / "data") as server:
        for block in blocks:
            script = block.replace("http://127.0.0.1:8642", server.address)
            done = subprocess.run(
                ["/bin/sh", "-euc", script.replace("curl ", "curl -fsS ")],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={**os.environ, "no_proxy": "*"},
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            assert '"error"' not in done.stdout, done.stdout
        assert server.end() == 128 + signal.SIGTERM
