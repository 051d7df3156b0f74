"""Writes over HTTP: repeated, streamed, paged; figures and logs that name nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from http_helpers import events, runtime_of, serving
from starlette.testclient import TestClient

import reverie
from reverie.http.settings import HttpSettings
from reverie.memory_graph import errors as e

USER = "/v1/worlds/town/users/ana"
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with serving(tmp_path / "data") as found:
        yield found


# -- request ids ---------------------------------------------------------------------------------

REPEATED = [
    ("POST", "messages", {"messages": ["Hello.", "你好。"], "infer": False}),
    ("POST", "memories", {"text": "Ana likes tea. 安娜爱喝茶。"}),
    ("POST", "observations", {"event": "The bell rang. 钟响了。"}),
    ("POST", "relations", {"head": "user", "predicate": "knows", "tail": "阿波"}),
    ("POST", "relationships/bo/moves", {"by": {"trust": 0.1}}),
    ("PUT", "profile", {"profile": {"memories": 5}}),
]


@pytest.mark.parametrize(("method", "path", "body"), REPEATED, ids=lambda v: str(v)[:12])
def test_a_repeated_write_has_one_effect_and_the_first_answer(
    method: str, path: str, body: object, client: TestClient
) -> None:
    headers = {"Idempotency-Key": "编号-1".encode()}
    sent = {"json": body, "headers": headers}
    first = client.request(method, f"{USER}/{path}", **sent)  # type: ignore[arg-type]
    digest = runtime_of(client).user("ana", "town").digest()
    again = client.request(method, f"{USER}/{path}", **sent)  # type: ignore[arg-type]
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert runtime_of(client).user("ana", "town").digest() == digest


def test_another_request_under_the_same_id_is_refused(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k"}
    client.post(f"{USER}/memories", json={"text": "Tea. 茶。"}, headers=headers)
    answer = client.post(
        f"{USER}/relations", json={"head": "a", "predicate": "b", "tail": "c"}, headers=headers
    )
    assert (answer.status_code, answer.json()["error"]) == (409, "RequestReusedError")


def test_an_event_of_the_world_is_one_event(client: TestClient) -> None:
    sent = {"text": "The bridge fell. 桥塌了。", "witnesses": ["ana", "阿波"]}
    answers = [
        client.post("/v1/worlds/town/observations", json=sent, headers={"Idempotency-Key": "e1"})
        for _ in range(2)
    ]
    assert answers[0].json()["event_id"] == answers[1].json()["event_id"]
    assert client.get(f"{USER}/memories").json()["total"] == 1


# -- pages ---------------------------------------------------------------------------------------


def test_pages_end_and_give_everything_once(client: TestClient) -> None:
    for user in ("ana", "bo", "安娜", "阿波", "group:行会"):
        runtime_of(client).user(user, "town").remember(f"I am {user}.")
    found, cursor = [], None
    while True:
        query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = client.get("/v1/worlds/town/users", params=query).json()
        assert page["total"] == 4
        found += page["items"]
        if (cursor := page["cursor"]) is None:
            break
    assert found == sorted(["ana", "bo", "安娜", "阿波"])
    everybody = client.get("/v1/worlds/town/users", params={"groups": "true"}).json()
    assert everybody["total"] == 5


def test_a_list_is_filtered_by_json(client: TestClient) -> None:
    user = runtime_of(client).user("ana", "town")
    user.remember("Tea. 茶。", tags=["饮料"])
    user.remember("Bread. 面包。")
    query = {"filters": json.dumps({"tags": {"contains": "饮料"}}), "types": ["memory", "message"]}
    page = client.get(f"{USER}/memories", params=query).json()
    assert [item["text"] for item in page["items"]] == ["Tea. 茶。"]


# -- ingestion -------------------------------------------------------------------------------------


def lines(count: int) -> bytes:
    """Lines of two users, and some that cannot be stored."""
    made = []
    for n in range(count):
        if n % 50 == 7:
            made.append("no json 不是")
        elif n % 50 == 8:
            made.append(json.dumps({"user": "ana"}))
        elif n % 50 == 9:
            made.append(json.dumps({"user": "ana", "text": "a", "metadata": {"world": "b"}}))
        else:
            user = "ana" if n % 2 else "阿波"
            made.append(json.dumps({"user": user, "text": f"Line {n}. 第{n}行。"}))
    return "\n".join(made).encode()


def test_lines_are_stored_and_told_batch_by_batch(client: TestClient) -> None:
    data = lines(200)
    path = "/v1/worlds/town/ingest"
    answer = client.post(path, content=data, headers=NDJSON, params={"infer": "false"})
    found = events(answer.text)
    assert [name for name, _ in found] == ["begin", *["progress"] * 4, "result"]
    result = found[-1][1]
    assert (result["lines"], result["stored"], result["skipped"]) == (200, 188, 12)
    bad = [bad for name, told in found if name == "progress" for bad in told["bad"]]
    assert [b["line"] for b in bad][:3] == [8, 9, 10]
    assert {b["error"] for b in bad} == {
        "MalformedRequest",
        "InvalidTextError",
        "InvalidMetadataError",
    }
    kept = sum(runtime_of(client).user(u, "town").stats().messages for u in ("ana", "阿波"))
    assert kept == 188


def test_lines_sent_again_with_their_id_go_on_and_double_nothing(client: TestClient) -> None:
    """As a client does whose connection broke after some batches."""
    data, path = lines(300), "/v1/worlds/town/ingest"
    query = {"infer": "false"}
    runtime = runtime_of(client)
    add, calls = runtime.add_many, 0

    def breaks(*args: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            msg = "no space left"
            raise e.StorageFullError(msg)
        return add(*args, **more)  # type: ignore[arg-type]

    runtime.add_many = breaks  # type: ignore[method-assign, assignment]
    first = events(client.post(path, content=data, headers=NDJSON, params=query).text)
    assert first[-1][0] == "error"
    assert first[-1][1]["error"] == "StorageFullError"
    again = {**NDJSON, "Idempotency-Key": first[0][1]["request_id"]}
    second = events(client.post(path, content=data, headers=again, params=query).text)
    third = events(client.post(path, content=data, headers=again, params=query).text)
    assert second[-1][0] == third[-1][0] == "result"
    stored = second[-1][1]["stored"]
    kept = sum(runtime.user(u, "town").stats().messages for u in ("ana", "阿波"))
    assert kept == stored == third[-1][1]["stored"] == 282


def test_it_waits_for_extraction_when_asked(tmp_path: Path) -> None:
    with serving(tmp_path / "data", background=True) as client:
        data = b'{"user": "ana", "text": "I live in Oslo."}\n{"user": "a", "text": "I love tea."}'
        path = "/v1/worlds/town/ingest"
        found = events(client.post(path, content=data, headers=NDJSON, params={"wait": "1"}).text)
        assert found[-1][0] == "result"
        assert runtime_of(client).user("ana", "town").stats().memories >= 1
        assert runtime_of(client).stats().pending == 0


def test_a_line_that_is_too_long_is_told_and_skipped(tmp_path: Path) -> None:
    settings = HttpSettings(max_body_bytes=500, access_log=False)
    with serving(tmp_path / "data", settings=settings) as client:
        good = json.dumps({"user": "ana", "text": "short 短"}).encode()
        data = b"\n".join([good, b'{"user": "ana", "text": "' + b"x" * 3000 + b'"}', good])
        answer = client.post("/v1/worlds/town/ingest", content=data, headers=NDJSON)
        found = events(answer.text)
        assert found[-1][1]["stored"] == 2
        assert [b["line"] for name, t in found if name == "progress" for b in t["bad"]] == [2]


# -- a world as a file -----------------------------------------------------------------------------


def test_a_world_goes_out_and_comes_in_whole(client: TestClient) -> None:
    runtime_of(client).user("安娜", "town").remember("Ana lives in Oslo. 安娜住在奥斯陆。")
    exported = client.get("/v1/worlds/town/export")
    assert exported.headers["content-type"] == "application/octet-stream"
    media = {"Content-Type": "application/octet-stream"}
    made = client.post("/v1/worlds/copy/import", content=exported.content, headers=media)
    assert made.json() == {"world": "copy", "users": 1}
    digests = [runtime_of(client).user("安娜", w).digest() for w in ("town", "copy")]
    assert digests[0] == digests[1] != ""
    again = client.post("/v1/worlds/copy/import", content=exported.content, headers=media)
    assert (again.status_code, again.json()["error"]) == (409, "CheckpointExistsError")
    cut = client.post("/v1/worlds/other/import", content=exported.content[:-9], headers=media)
    assert (cut.status_code, cut.json()["error"]) == (422, "WorldFileError")
    assert "other" not in runtime_of(client).worlds()


# -- errors, figures, logs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "is_told"),
    [
        (e.StorageFullError("no space on /srv/secret", path="/srv/secret"), 503, False),
        (e.JournalDamagedError("at /srv/x", world="town", user_id="ana", seq=7), 503, False),
        (e.OverloadedError("too many wait"), 429, True),
        (e.BudgetExceededError("spent"), 503, True),
        (e.EmbedderMismatchError("made by another"), 409, True),
        (e.ClosedError("the runtime is closed"), 503, True),
        (e.InternalError("no"), 500, True),
        (ValueError("a text 一段文字"), 500, False),
    ],
    ids=lambda v: type(v).__name__,
)
def test_each_error_has_its_status(
    error: Exception,
    status: int,
    is_told: bool,  # noqa: FBT001 (a column of the table)
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(self: object) -> None:
        raise error

    monkeypatch.setattr(reverie.User, "stats", fails)
    answer = client.get(f"{USER}/stats")
    code = type(error).__name__ if isinstance(error, reverie.ReverieError) else "InternalError"
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert ("retry-after" in answer.headers) == (status in {429, 503})
    assert (str(error) in answer.text) == is_told
    assert "/srv" not in answer.text


def test_figures_and_logs_name_no_user_and_no_text(tmp_path: Path) -> None:
    secrets = ["安娜·林", "Ana Lindqvist", "vault", "保险库", "小镇七号"]
    settings = HttpSettings(access_log=True)
    with (
        structlog.testing.capture_logs() as logs,
        serving(tmp_path / "data", settings=settings) as client,
    ):
        for user in secrets[:2]:
            path = f"/v1/worlds/{secrets[4]}/users/{user}"
            client.post(f"{path}/memories", json={"text": "The vault is open. 保险库开着。"})
            client.post(f"{path}/search", json={"question": "保险库 vault?"})
            client.get(f"{path}/memories/vault")
            client.get(f"{path}/nowhere/vault")
        figures = client.get("/metrics").text
    for name in ("requests_total", "request_seconds_bucket", "errors_total", "in_flight"):
        assert f"reverie_http_{name}" in figures
    for name in ("pending_turns", "resident_bytes", "users", "model_tokens"):
        assert f"reverie_{name}" in figures
    assert 'operation="search",status="200"' in figures
    assert 'code="UnknownMemoryError"' in figures
    written = [line for line in logs if line["event"] == "request"]
    assert {line["operation"] for line in written} >= {"search", "remember", "get_item", "none"}
    shown = repr(logs) + figures
    assert not [secret for secret in secrets if secret in shown]


def test_it_says_when_it_is_not_ready(client: TestClient) -> None:
    assert client.get("/ready").json() == {"ready": True, "why": ""}
    client.app_state["app"].state.reverie.drain()
    ready = client.get("/ready")
    assert (ready.status_code, ready.json()) == (503, {"ready": False, "why": "Draining"})
    assert client.get("/health").status_code == 200
    refused = client.get(f"{USER}/stats")
    assert (refused.status_code, refused.json()["error"]) == (503, "Draining")
    assert refused.headers["connection"] == "close"
