"""Backups over HTTP: whole ones, into the one folder of the server, told of as they grow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from http_helpers import events, key_for, runtime_of, serving
from starlette.testclient import TestClient

import reverie
from reverie.http import create_app
from reverie.http.settings import HttpSettings
from reverie.memory_graph.errors import ConfigError
from reverie.operations import copying

PATH = "/v1/backups"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with serving(tmp_path / "data", partitions=4) as found:
        for name in ("ana", "安娜"):
            runtime_of(found).user(name, "小镇").remember(f"{name} keeps bees. {name}养蜂。")
        yield found


def test_a_backup_is_made_and_told_of_and_can_be_restored(
    client: TestClient, tmp_path: Path
) -> None:
    answer = client.post(PATH)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.text)
    assert [name for name, _ in told] == ["begin", *["progress"] * (len(told) - 2), "result"]
    steps = [step["files"] for name, step in told if name == "progress"]
    assert steps == list(range(1, len(steps) + 1))
    assert {step["of_files"] for name, step in told if name == "progress"} == {len(steps)}
    result = told[-1][1]
    assert (result["users"], result["problems"]) == (2, [])
    assert str(tmp_path) not in answer.text
    kept = tmp_path / "backups" / result["name"]
    assert reverie.verify_backup(kept).name == result["name"]
    digest = runtime_of(client).user("安娜", "小镇").digest()
    reverie.restore(kept, tmp_path / "restored")
    with reverie.open(tmp_path / "restored", background=False) as restored:
        assert restored.user("安娜", "小镇").digest() == digest


def test_backups_are_listed_by_name_page_by_page(client: TestClient, tmp_path: Path) -> None:
    assert client.get(PATH).json() == {"items": [], "total": 0, "cursor": None}
    made = [events(client.post(PATH).text)[-1][1] for _ in range(3)]
    first = client.get(PATH, params={"limit": 2}).json()
    rest = client.get(PATH, params={"limit": 2, "cursor": first["cursor"]}).json()
    assert first["items"] + rest["items"] == made
    assert (first["total"], rest["cursor"]) == (3, None)
    assert str(tmp_path) not in str(first)


def test_the_same_key_makes_one_backup(client: TestClient, tmp_path: Path) -> None:
    headers: Any = {"Idempotency-Key": "每天 daily".encode()}
    first = events(client.post(PATH, headers=headers).text)[-1]
    runtime_of(client).user("ana", "小镇").remember("Something later. 后来的事。")
    again = events(client.post(PATH, headers=headers).text)
    assert [name for name, _ in again] == ["begin", "result"]
    assert again[-1] == first
    assert len(list((tmp_path / "backups").iterdir())) == 1


def test_one_is_made_at_a_time(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    daily: Any = {"Idempotency-Key": "每天 daily".encode()}
    earlier = events(client.post(PATH, headers=daily).text)[-1]
    entered, go = threading.Event(), threading.Event()
    real = copying.backup

    def slow(self: Any, dest: Any, **more: Any) -> Any:
        entered.set()
        assert go.wait(30)
        return real(self, dest, **more)

    monkeypatch.setattr(reverie.Runtime, "backup", slow)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(client.post(PATH)))
    thread.start()
    try:
        assert entered.wait(30)
        other: Any = {"Idempotency-Key": "another 另一个".encode()}
        for refused in (client.post(PATH), client.post(PATH, headers=other)):
            assert (refused.status_code, refused.json()["error"]) == (409, "BackupUnderWay")
            assert str(tmp_path) not in refused.text
        assert events(client.post(PATH, headers=daily).text)[-1] == earlier  # it was made before
    finally:
        go.set()
        thread.join(60)
    assert events(answers[0].text)[-1][0] == "result"
    assert events(client.post(PATH).text)[-1][0] == "result"


def test_an_error_names_no_folder_and_leaves_nothing(client: TestClient, tmp_path: Path) -> None:
    server = client.app_state["app"].state.reverie
    nowhere = Path("/proc/1/no such place 没有")
    server.settings = msgspec.structs.replace(server.settings, backups=nowhere)
    failed = events(client.post(PATH).text)[-1]
    assert failed[0] == "error"
    assert "/proc" not in str(failed)
    assert str(tmp_path) not in str(failed)


def test_only_an_admin_of_everything_may(client: TestClient) -> None:
    folder = runtime_of(client).path
    client.app_state["app"].state.reverie.admission.door._looked_at = -1e9
    for headers in (
        key_for(folder, "write", everywhere=True),
        key_for(folder, "admin", "小镇"),
        key_for(folder, "read", everywhere=True),
    ):
        for method in ("POST", "GET"):
            answer = client.request(method, PATH, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (403, "Forbidden")
    assert client.get(PATH).status_code == 401
    admin = key_for(folder, "admin", everywhere=True)
    client.app_state["app"].state.reverie.admission.door._looked_at = -1e9
    assert client.get(PATH, headers=admin).json()["total"] == 0


@pytest.mark.parametrize(
    "sent",
    [
        {"params": {"dest": "/tmp"}},  # noqa: S108 (it is refused)
        {"json": {"dest": "s3://elsewhere"}},
        {"content": "/etc"},
    ],
    ids=str,
)
def test_no_request_says_where_it_goes(sent: dict[str, Any], client: TestClient) -> None:
    answer = client.post(PATH, **sent)
    assert answer.status_code in {400, 422}
    assert client.get(PATH).json()["total"] == 0


def test_a_server_without_a_folder_makes_none(tmp_path: Path) -> None:
    settings = HttpSettings(rate_per_s=None, access_log=False)
    with serving(tmp_path / "data", settings=settings) as client:
        for method in ("GET", "POST"):
            answer = client.request(method, PATH)
            assert (answer.status_code, answer.json()["error"]) == (409, "BackupsOff")


def test_a_folder_that_cannot_be_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "a file 文件").write_text("x")
    with reverie.open(tmp_path / "data", background=False, partitions=1) as runtime:
        inside = runtime.path / "partitions"
        for wrong in (inside, runtime.path, tmp_path / "nowhere", tmp_path / "a file 文件"):
            with pytest.raises(ConfigError):
                create_app(runtime, HttpSettings(backups=wrong))
        link = tmp_path / "link"
        link.symlink_to(inside)
        with pytest.raises(ConfigError):
            create_app(runtime, HttpSettings(backups=link))
