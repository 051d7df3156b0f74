"""A key of one world, and everything that one could try to reach another with it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from http_helpers import key_for, serving
from starlette.testclient import TestClient

import reverie
from reverie.http.operation import Operation
from reverie.http.tables import OPERATIONS

TRIES = 1600
SECRET, ZH_SECRET = "The vault opens with 7731.", "保险库的密码是七七三一。"
MINE, THEIRS = "mine 我的", "theirs 他们的"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """A server over two worlds, and a key that is admin of one."""
    folder = tmp_path_factory.mktemp("worlds") / "data"
    with reverie.open(folder, embedder="standin", background=False, partitions=1) as runtime:
        for world, text in ((MINE, "Mine."), (THEIRS, SECRET), (f"{THEIRS}/x", ZH_SECRET)):
            runtime.user("ana", world).remember(text)
            runtime.user("ana", world).remember(ZH_SECRET if world != MINE else "我的。")
            runtime.checkpoint("t", world)
            runtime.world(world).group("guild").join("ana")
    headers = key_for(folder, "admin", MINE)
    with serving(folder) as client:
        yield client, headers


# -- the tries: each is a path, and headers and bodies that try to say something else ------------


def encodings(chance: random.Random, world: str) -> str:
    """A world's name in one of the ways that it might be smuggled in."""
    quoted = quote(world, safe="")
    ways = [
        quoted,
        quoted.lower(),
        quote(world, safe=" 他们的我的").encode().decode("latin-1").encode("latin-1").decode(),
        quote(quoted, safe=""),
        quoted.replace("%20", "+"),
        quoted + "%00",
        quoted + "%20",
        "%20" + quoted,
        quoted + "%2F",
        quote(MINE, safe="") + "%2F..%2F" + quoted,
        quote(MINE, safe="") + "/../" + quoted,
        quote(MINE, safe="") + "/%2e%2e/" + quoted,
        quote(MINE, safe="") + ";" + quoted,
        quote(MINE, safe="") + "%0a" + quoted,
        quote(MINE, safe="") + "," + quoted,
        "*",
        "%2A",
        ".",
        "%2e%2e",
        "",
        quoted.replace("t", "%54"),
        quote(world.upper(), safe=""),
        quote(world.title(), safe=""),
        quote(world.replace(" ", "\N{NO-BREAK SPACE}"), safe=""),
        quote(world.replace("e", "\N{CYRILLIC SMALL LETTER IE}"), safe=""),
        quote(world + "\N{ZERO WIDTH SPACE}", safe=""),
        quoted + "?world=" + quote(MINE, safe=""),
        quoted + "#" + quote(MINE, safe=""),
        quoted.replace("%", "%25"),
        quoted.encode().hex(),
        "%c0%ae%c0%ae%c0%af" + quoted,
    ]
    return chance.choice(ways)


def extras(chance: random.Random, headers: dict[str, str]) -> list[tuple[str, str]]:
    """Headers that try to say who is asking, or for what."""
    mine, theirs = quote(MINE), quote(THEIRS)
    own = list(headers.items())
    return chance.choice(
        [
            own,
            [*own, ("X-World", theirs)],
            [*own, ("X-Original-URL", f"/v1/worlds/{mine}/users")],
            [*own, ("X-Rewrite-URL", f"/v1/worlds/{mine}/users")],
            [*own, ("X-Forwarded-For", "127.0.0.1")],
            [*own, ("X-Forwarded-Prefix", f"/v1/worlds/{mine}")],
            [*own, ("X-HTTP-Method-Override", "GET")],
            [*own, ("Forwarded", "for=127.0.0.1;host=localhost")],
            [*own, ("Idempotency-Key", theirs)],
            [*own, *own],
            [("authorization", own[0][1]), ("Authorization", "Bearer x")],
            [("Proxy-Authorization", own[0][1])],
            [("Cookie", f"key={own[0][1]}")],
            [],
        ]
    )


def a_try(
    chance: random.Random, op: Operation, headers: dict[str, str]
) -> tuple[str, str, dict[str, Any]]:
    """A request that means the other world."""
    world = chance.choice([THEIRS, f"{THEIRS}/x"])
    parts = []
    for part in op.path.split("/"):
        if part == "{world}":
            parts.append(encodings(chance, world))
        elif part.startswith("{"):
            parts.append(
                chance.choice(
                    ["ana", "m1", "t", "guild", "..%2F..", quote(f"{THEIRS}/ana", safe="")]
                )
            )
        else:
            parts.append(part)
    body = op.examples["english"].body if op.takes == "json" else None
    if isinstance(body, dict) and chance.random() < 0.5:
        body = {**body, "world": world, "new_world": world, "user_id": "ana"}
    query = dict(op.examples["english"].query)
    if chance.random() < 0.3:
        query["world"] = world
    sent: dict[str, Any] = {"params": query, "headers": extras(chance, headers)}
    if body is not None:
        sent["content"] = msgspec.json.encode(body)
        sent["headers"] = [*sent["headers"], ("Content-Type", "application/json")]
    elif op.takes in {"lines", "file"}:
        sent["content"] = b'{"user": "ana", "text": "hi"}\n'
        media = "x-ndjson" if op.takes == "lines" else "octet-stream"
        sent["headers"] = [*sent["headers"], ("Content-Type", f"application/{media}")]
    return op.method, "/".join(parts), sent


def state(client: TestClient) -> dict[str, str]:
    """Digests of all that is not the key's."""
    runtime: reverie.Runtime = client.app_state["runtime"]
    return {
        f"{world}|{user}": runtime.user(user, world).digest()
        for world in runtime.worlds()
        if world != MINE
        for user in runtime.users(world)
    }


def test_no_try_reaches_another_world(server: tuple[TestClient, dict[str, str]]) -> None:
    client, headers = server
    chance = random.Random(7)
    before = state(client)
    of_worlds = [op for op in OPERATIONS if "world" in op.ids or op.is_of_folder]
    through = []
    for number in range(TRIES):
        op = of_worlds[number % len(of_worlds)]
        method, path, sent = a_try(chance, op, headers)
        answer = client.request(method, path, **sent)
        told = answer.text
        leaks = [s for s in (SECRET, ZH_SECRET, "7731", "七七三一") if s in told]
        if answer.status_code < 400 or leaks or answer.status_code >= 500:
            through.append((method, path, sent["headers"], answer.status_code, told[:200]))
    assert not through, through[:5]
    assert state(client) == before


def test_the_key_does_open_its_own_world(server: tuple[TestClient, dict[str, str]]) -> None:
    """Or the test above would pass with a server that lets nobody in."""
    client, headers = server
    own = f"/v1/worlds/{quote(MINE, safe='')}/users"
    assert client.get(own, headers=headers).json()["items"] == ["ana"]
    assert client.get("/v1/worlds", headers=headers).json()["items"] == [MINE]


def test_the_answer_does_not_say_whether_there_is_such_a_world(
    server: tuple[TestClient, dict[str, str]],
) -> None:
    client, headers = server
    there, nowhere = (
        client.get(f"/v1/worlds/{quote(world, safe='')}/users", headers=headers)
        for world in (THEIRS, "nowhere")
    )
    assert (there.status_code, there.content) == (nowhere.status_code, nowhere.content)


def test_a_fork_into_another_world_needs_a_key_for_it(
    server: tuple[TestClient, dict[str, str]],
) -> None:
    client, headers = server
    path = f"/v1/worlds/{quote(MINE, safe='')}/checkpoints/t/fork"
    answer = client.post(path, json={"new_world": "elsewhere"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (403, "Forbidden")


@pytest.mark.parametrize("planted", ["casefold", "prefix"])
def test_a_looser_comparison_would_be_found(
    planted: str, server: tuple[TestClient, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tries do find a key that reaches too far."""
    from reverie.http.keys import Key

    if planted == "casefold":
        monkeypatch.setattr(Key, "reaches", lambda self, world: True)
    else:
        monkeypatch.setattr(
            Key, "reaches", lambda self, world: any(world.startswith(w) for w in self.worlds)
        )
    client, headers = server
    chance = random.Random(7)
    of_reading = [op for op in OPERATIONS if op.role == "read" and "world" in op.ids]
    found = 0
    for number in range(400):
        method, path, sent = a_try(chance, of_reading[number % len(of_reading)], headers)
        found += client.request(method, path, **sent).status_code < 400
    assert found
