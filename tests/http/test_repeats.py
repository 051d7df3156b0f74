"""Idempotency-Key at every operation that writes: one effect and one answer, however often it is
sent, also by several at once, after the world has gone on, and after an error at the last step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from http_helpers import BASE, BY_NAME, LANGUAGES, ask, events, example_of, key_for, runtime_of
from starlette.testclient import TestClient

from reverie.actors import commands as c
from reverie.http.operation import Operation
from reverie.http.tables import OPERATIONS
from reverie.memory_graph.errors import StorageFailedError

KEY: dict[str, Any] = {"Idempotency-Key": "编号-1".encode()}
WRITES = [op for op in OPERATIONS if op.has_request_id]
# What their answers tell is what this call did: the second does nothing.
TELLS_WHAT_IT_DID = {"summarise_user", "summarise_world", "reflect_user", "reflect_world", "bury"}


def state(client: TestClient) -> dict[str, Any]:
    """All that is remembered, and all save slots."""
    rt = runtime_of(client)
    return {
        world: (
            {user: rt.user(user, world).digest() for user in rt.users(world)},
            [slot.tag for slot in rt.checkpoints(world)],
        )
        for world in rt.worlds()
    }


def send(client: TestClient, op: Operation, language: str) -> Any:
    """Send the request of an example, under `KEY`."""
    return ask(client, op, op.examples[language], KEY)


def test_every_operation_that_writes_takes_a_key() -> None:
    reads = {op.name for op in OPERATIONS if not op.has_request_id}
    assert reads == {op.name for op in OPERATIONS if op.role == "read" or op.method == "GET"} | {
        "unmask"
    }


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("op", WRITES, ids=lambda op: op.name)
def test_a_write_sent_again_has_one_effect_and_the_first_answer(
    op: Operation, language: str, client: TestClient
) -> None:
    example = example_of(op, language, client)
    answers = []
    after = []
    for _ in range(3):
        answer = ask(client, op, example, KEY)
        assert answer.status_code == 200, answer.text
        answers.append(answer)
        after.append(state(client))
    assert after[1] == after[2] == after[0]
    if op.gives == "events":
        results = [events(answer.text)[-1] for answer in answers]
        assert results[0][0] == "result", answers[0].text
        assert results[1:] == results[:1] * 2
    elif op.name not in TELLS_WHAT_IT_DID:
        assert answers[1].content == answers[2].content == answers[0].content


REFUSED = {
    "make_checkpoint": {"tag": "night 夜里"},
    "join_group": {"user_ids": ["安娜"], "history": True},
    "remember_many": {"memories": {"ana": ["Something else. 别的。"]}},
    "bury": {"names": ["Ana"], "memories": True},
    "fork_world": {"new_world": "a third 第三个"},
    "set_profiles": {"profiles": {"ana": {"memories": 7}}},
    "move_many": {"moves": [{"owner": "ana", "other": "bo", "by": {"debt": 31}}]},
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_request_under_the_same_key_is_refused(name: str, client: TestClient) -> None:
    op = BY_NAME[name]
    example = op.examples["english"]
    if name == "join_group":
        example = example._replace(body={"user_ids": ["安娜"]})
    assert ask(client, op, example, KEY).status_code == 200
    once = state(client)
    answer = ask(client, op, example._replace(body=REFUSED[name]), KEY)
    assert (answer.status_code, answer.json()["error"]) == (409, "RequestReusedError")
    assert state(client) == once


WORLD = "/v1/worlds/小镇"
GONE_ON: dict[str, tuple[str, str, Any, Callable[[Any], object]]] = {
    "a tag is dropped since": (
        "POST",
        f"{WORLD}/checkpoints",
        {"tag": "第二天"},
        lambda w: w.drop_checkpoint("第二天"),
    ),
    "a rewound world is written to since": (
        "POST",
        f"{WORLD}/checkpoints/第一天/rewind",
        None,
        lambda w: w.user("安娜").remember("后来的事。 Later."),
    ),
    "a fork is written to since": (
        "POST",
        f"{WORLD}/checkpoints/第一天/fork",
        {"new_world": "分叉"},
        lambda w: w._rt.user("安娜", "分叉").remember("后来的事。 Later."),
    ),
    "a dropped tag is made anew since": (
        "DELETE",
        f"{WORLD}/checkpoints/第一天",
        None,
        lambda w: w.checkpoint("第一天"),
    ),
    "somebody has the id of who was forgotten": (
        "DELETE",
        f"{WORLD}/users/阿波",
        None,
        lambda w: w.user("阿波").remember("新来的阿波。 Another."),
    ),
    "somebody has the id of who was buried": (
        "POST",
        f"{WORLD}/users/阿波/burial",
        {},
        lambda w: w.user("阿波").remember("新来的阿波。 Another."),
    ),
    "who joined has left since": (
        "POST",
        f"{WORLD}/groups/行会/join",
        {"user_ids": ["阿波"]},
        lambda w: w.group("行会").leave("阿波"),
    ),
    "what was kept was deleted since": (
        "POST",
        f"{WORLD}/memories",
        {"memories": {"阿波": ["安娜欠他一杯酒。"]}},
        lambda w: w.user("阿波").delete(w.user("阿波").list().items[-1].id),
    ),
}


@pytest.mark.parametrize("name", GONE_ON)
def test_after_a_lost_answer_the_world_that_has_gone_on_is_left_alone(
    name: str, client: TestClient
) -> None:
    method, path, body, then = GONE_ON[name]
    sent: dict[str, Any] = {"headers": KEY} | ({} if body is None else {"json": body})
    first = client.request(method, path, **sent)
    assert first.status_code == 200, first.text
    then(runtime_of(client).world("小镇"))
    since = state(client)
    again = client.request(method, path, **sent)
    assert again.status_code == 200, again.text
    if "buried" in name:
        assert again.json()["receipt"] == first.json()["receipt"]
    else:
        assert again.content == first.content
    assert state(client) == since


@pytest.mark.parametrize(
    "name", ["make_checkpoint", "rewind_world", "fork_world", "drop_checkpoint", "forget_user"]
)
def test_an_error_after_the_effect_does_not_make_the_request_fail_for_good(
    name: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails when the answer is to be kept: sent again, the request has its success."""
    router = runtime_of(client)._router
    real, is_broken = type(router).call, True

    def call(self: Any, command: c.UserCommand) -> Any:
        if is_broken and isinstance(command, c.KeepAnswer):
            msg = "no space left"
            raise StorageFailedError(msg)
        return real(self, command)

    monkeypatch.setattr(type(router), "call", call)
    op = BY_NAME[name]
    failed = send(client, op, "chinese")
    assert (failed.status_code, failed.json()["error"]) == (503, "StorageFailedError")
    after = state(client)
    is_broken = False
    again = send(client, op, "chinese")
    assert again.status_code == 200, again.text
    assert state(client) == after
    assert send(client, op, "chinese").content == again.content


# -- several at once -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("make_checkpoint", "fork_world", "drop_checkpoint", "forget_user", "join_group"),
        *("remember_many", "observe_many", "move_many", "make_backup", "reembed"),
    ],
)
def test_two_clients_with_one_key_at_once_get_one_answer(name: str, client: TestClient) -> None:
    op = BY_NAME[name]
    example = op.examples["chinese"]
    app = client.app_state["app"]

    async def all_at_once() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE, timeout=60) as many:
            url = op.path
            for key, value in example.path.items():
                url = url.replace(f"{{{key}}}", value)
            sent: dict[str, Any] = {"headers": KEY}
            if op.takes == "json":
                sent["json"] = example.body
            return await asyncio.gather(*(many.request(op.method, url, **sent) for _ in range(5)))

    answers = asyncio.run(all_at_once())
    assert [answer.status_code for answer in answers] == [200] * 5, answers[0].text
    if op.gives == "events":
        results = [events(answer.text)[-1] for answer in answers]
        assert results[0][0] == "result"
        assert results == results[:1] * 5
    else:
        assert len({answer.content for answer in answers}) == 1
    once = state(client)
    assert send(client, op, "chinese").status_code == 200
    assert state(client) == once


# -- keys and roles --------------------------------------------------------------------------------


def test_a_key_of_too_low_a_role_leaves_no_trace_of_its_request(client: TestClient) -> None:
    folder = runtime_of(client).path
    write, admin = key_for(folder, "write", "小镇"), key_for(folder, "admin", "小镇")
    elsewhere = key_for(folder, "admin", "town")
    state_of = client.app_state["app"].state.reverie
    state_of.admission.door._looked_at = -1e9  # look at the keys again
    path = f"{WORLD}/checkpoints"
    before = state(client)
    for headers in (write, elsewhere):
        refused = client.post(path, json={"tag": "夜里"}, headers={**headers, **KEY})
        assert (refused.status_code, refused.json()["error"]) == (403, "Forbidden")
        erased = client.delete(f"{WORLD}/users/安娜", headers={**headers, **KEY})
        assert erased.status_code == 403
    assert state(client) == before
    made = client.post(path, json={"tag": "早上"}, headers={**admin, **KEY})
    assert made.status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 513, "a b\u0007"])
def test_a_bad_key_is_refused(key: str, client: TestClient) -> None:
    before = state(client)
    for name in ("make_checkpoint", "forget_user", "join_group", "flush", "make_backup"):
        op = BY_NAME[name]
        answer = ask(client, op, op.examples["english"], {"Idempotency-Key": key})
        assert (answer.status_code, answer.json()["error"]) == (422, "InvalidIdError"), name
    assert state(client) == before
