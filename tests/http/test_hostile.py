"""Requests that mean harm, or were made by mistake: each gets a stable code, and nothing breaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from http_helpers import runtime_of, serving
from hypothesis import given, strategies as st
from starlette.testclient import TestClient

from reverie.http.faults import Refusal
from reverie.http.limits import CLOSE, Held, Rates, check_depth
from reverie.http.paths import filled, routable, segment
from reverie.http.settings import HttpSettings

SMALL = HttpSettings(
    max_body_bytes=4096, max_upload_bytes=8192, rate_per_s=None, access_log=False, body_timeout_s=1
)
USER = "/v1/worlds/town/users/ana"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with serving(tmp_path_factory.mktemp("hostile") / "data", settings=SMALL) as found:
        yield found


def told(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


DEEP = b'{"messages": "a", "x": ' + b"[" * 1000 + b"]" * 1000 + b"}"
BODIES: dict[str, tuple[bytes, int, str]] = {
    "none": (b"", 422, "InvalidValueError"),
    "null": (b"null", 422, "InvalidValueError"),
    "list": (b"[]", 422, "InvalidValueError"),
    "cut": (b'{"messages": "a"', 400, "MalformedRequest"),
    "two": (b'{"messages": "a"} {}', 400, "MalformedRequest"),
    "nan": (b'{"messages": "a", "at": NaN}', 400, "MalformedRequest"),
    "endless": (b'{"messages": "a", "at": 1e999}', 422, "*"),
    "huge number": (b'{"messages": "a", "at": ' + b"9" * 3000 + b"}", 422, "*"),
    "no utf-8": (b'{"messages": "\xff\xfe"}', 400, "MalformedRequest"),
    "surrogate": (b'{"messages": "\\ud800"}', 400, "MalformedRequest"),
    "nul": (b'{"messages": "a\\u0000b"}', 422, "InvalidTextError"),
    "blank": (b'{"messages": "  "}', 422, "InvalidTextError"),
    "deep": (DEEP, 400, "MalformedRequest"),
    "deep metadata": (
        b'{"messages": [{"text": "a", "metadata": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}]}",
        422,
        "InvalidMetadataError",
    ),
    "owner as metadata": (
        b'{"messages": [{"text": "a", "metadata": {"user_id": "bo"}}]}',
        422,
        "InvalidMetadataError",
    ),
    "wrong type": (b'{"messages": 7}', 422, "InvalidValueError"),
    "wrong flag": (b'{"messages": "a", "infer": "yes"}', 422, "InvalidValueError"),
    "twice": (b'{"messages": "a", "session": "\\u0007"}', 422, "InvalidIdError"),
    "chinese": ('{"messages": "好", "会话": "一"}'.encode(), 422, "InvalidValueError"),
    "large": (b'{"messages": "' + b"a" * 5000 + b'"}', 413, "BodyTooLarge"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_gets_a_code_and_stores_nothing(name: str, client: TestClient) -> None:
    body, status, code = BODIES[name]
    before = runtime_of(client).user("ana", "town").digest()
    answer = client.post(f"{USER}/messages", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert code in {"*", answer.json()["error"]}
    assert runtime_of(client).user("ana", "town").digest() == before


@pytest.mark.parametrize("size", [4097, 100_000])
def test_a_large_body_is_refused_also_without_a_length(size: int, client: TestClient) -> None:
    sent = 0

    def parts() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(size):
            sent += 1
            yield b"a"

    answer = client.post(f"{USER}/messages", content=parts(), headers=JSON)
    assert told(answer) == (413, "BodyTooLarge")
    assert answer.headers["connection"] == "close"
    lines = client.post(
        "/v1/worlds/town/ingest",
        content=(b"x" * 100 for _ in range(100)),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert told(lines) == (413, "BodyTooLarge")


@pytest.mark.parametrize("length", ["-1", "1e9", "0x10", "9" * 40, "十"])
def test_a_length_that_is_none_or_too_large(length: str, client: TestClient) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Length", length.encode())]
    answer = client.post(f"{USER}/messages", content=b"", headers=headers)  # type: ignore[arg-type]
    assert answer.status_code in {400, 413}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "UnknownRoute"),
        ("GET", "/v1", 404, "UnknownRoute"),
        ("GET", f"{USER}/", 404, "UnknownRoute"),
        ("GET", "/v1/worlds//users", 404, "UnknownRoute"),
        ("GET", "/v1/worlds/%2e%2E/users", 400, "MalformedRequest"),
        ("GET", "/v1/worlds/%ff/users", 400, "MalformedRequest"),
        ("GET", "/v1/worlds/%c0%af/users", 400, "MalformedRequest"),
        ("GET", "/v1/worlds/%ed%a0%80/users", 400, "MalformedRequest"),
        ("GET", "/v1/worlds/a%/users", 400, "MalformedRequest"),
        ("GET", "/v1/worlds/a%zz/users", 400, "MalformedRequest"),
        ("GET", "/v1/worlds/%00/users", 422, "InvalidIdError"),
        ("GET", "/v1/worlds/%20/users", 422, "InvalidIdError"),
        ("GET", "/v1/worlds/" + "a" * 600 + "/users", 422, "InvalidIdError"),
        ("GET", "/v1/worlds/" + "a" * 20_000 + "/users", 400, "MalformedRequest"),
        ("GET", f"{USER}/memories/m99", 404, "UnknownMemoryError"),
        ("GET", f"{USER}/memories?limit=0", 422, "InvalidValueError"),
        ("GET", f"{USER}/memories?limit=x", 422, "InvalidValueError"),
        ("GET", f"{USER}/memories?limit=1&limit=2", 422, "InvalidValueError"),
        ("GET", f"{USER}/memories?cursor=nothing", 422, "*"),
        ("GET", f"{USER}/memories?filters=x", 422, "FilterError"),
        ("GET", f"{USER}/memories?filters=%7B%22no%22%3A1%7D", 422, "FilterError"),
        ("GET", f"{USER}/memories?limit=%FF", 400, "MalformedRequest"),
        ("GET", f"{USER}/memories?" + "&".join(f"a{n}=1" for n in range(99)), 400, "*"),
        ("GET", "/v1/worlds?cursor=%00", 200, ""),
        ("GET", "/v1/worlds/town/usage?cursor=-1", 422, "InvalidLimitError"),
        ("GET", "/v1/worlds/town/usage?cursor=٣", 422, "InvalidLimitError"),
        ("POST", f"{USER}/memories/m1", 405, "MethodNotAllowed"),
        ("OPTIONS", f"{USER}/memories", 405, "MethodNotAllowed"),
        ("TRACE", "/health", 405, "MethodNotAllowed"),
        ("POST", "/v1/worlds/town/checkpoints/none/rewind", 404, "UnknownCheckpointError"),
    ],
)
def test_a_bad_path_or_query_gets_a_code(
    method: str, path: str, status: int, code: str, client: TestClient
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status, answer.text
    assert status == 200 or code in {"*", answer.json()["error"]}, answer.text


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "evil.example"}, 421, "MisdirectedHost"),
        ({"Host": "localhost.evil.example"}, 421, "MisdirectedHost"),
        ({"Host": "evil.example:80@localhost"}, 421, "MisdirectedHost"),
        ({"Host": ""}, 421, "MisdirectedHost"),
        ({"Host": "LOCALHOST:99"}, 200, ""),
        ({"Host": "[::1]:8642"}, 200, ""),
        ({"Origin": "http://evil.example"}, 403, "ForeignOrigin"),
        ({"Origin": "null"}, 403, "ForeignOrigin"),
        ({"Origin": "http://localhost"}, 200, ""),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "ForeignOrigin"),
        ({"Idempotency-Key": "a"}, 422, "InvalidValueError"),
        ({"X-Forwarded-Host": "evil.example"}, 200, ""),
    ],
)
def test_a_request_that_means_somebody_else_is_refused(
    headers: dict[str, str], status: int, code: str, client: TestClient
) -> None:
    answer = client.get(f"{USER}/memories", headers=headers)
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.json()["error"] == code


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "a;b"]
)
def test_what_a_web_page_may_send_anywhere_is_not_read(media: str, client: TestClient) -> None:
    answer = client.post(
        f"{USER}/memories", content=b'{"text": "a"}', headers={"Content-Type": media}
    )
    assert told(answer) == (415, "UnsupportedMediaType")
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post(f"{USER}/memories", content=b"\x1f\x8b", headers=packed)
    assert told(answer) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("key", ["", " ", "a\x01b", "x" * 600])
def test_a_request_id_is_one_or_is_refused(key: str, client: TestClient) -> None:
    answer = client.post(
        f"{USER}/memories",
        json={"text": "a"},
        headers=[(b"Idempotency-Key", key.encode("latin-1"))],
    )
    assert answer.status_code == 422, answer.text


# -- ids of any script ---------------------------------------------------------------------------

IDS = [
    "安娜",
    "a/b",
    "a%2Fb",
    "a%b",
    "group:行会",
    "a b",
    "a+b",
    "a?b#c",
    "a;b=c",
    "..a",
    "...",
    "Ωμέγα",
    "عمر",
    "👩‍👩‍👧",
    "e\N{COMBINING ACUTE ACCENT}",
    "é",
    "a\\b",
    '"',
    "{user}",
    "-",
    "0",
]


def test_ids_of_any_script_are_each_a_user_of_their_own(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as client:
        for place, user in enumerate(IDS):
            path = filled("/v1/worlds/{world}/users/{user}/memories", {"world": user, "user": user})
            assert (
                client.post(path, json={"text": f"Note {place}. 第{place}条。"}).status_code == 200
            )
        for place, user in enumerate(IDS):
            path = filled("/v1/worlds/{world}/users/{user}/memories", {"world": user, "user": user})
            page = client.get(path).json()
            assert [item["text"] for item in page["items"]] == [f"Note {place}. 第{place}条。"]
        assert client.get("/v1/worlds").json()["items"] == sorted(IDS)


@given(st.lists(st.text(min_size=1).filter(lambda s: s not in {".", ".."}), min_size=1, max_size=4))
def test_a_path_says_which_ids_it_was_made_of(ids: list[str]) -> None:
    ids = [i.encode("utf-8", "replace").decode() for i in ids]
    raw = "/" + "/".join(quote(i, safe="") for i in ids)
    assert [segment(part) for part in routable(raw.encode()).split("/")[1:]] == ids


@given(st.binary(max_size=60))
def test_any_bytes_make_a_path_or_a_refusal(raw: bytes) -> None:
    try:
        found = routable(b"/" + raw)
    except Refusal:
        return
    assert found.count("/") == raw.count(b"/") + 1


@pytest.mark.parametrize("path", ["/a/../b", "/a/./b", "/..", "/a/%2e./b", "/a/%2E%2e"])
def test_a_step_up_is_refused(path: str) -> None:
    """Clients take them out; who sends one all the same means harm."""
    with pytest.raises(Refusal) as caught:
        routable(path.encode())
    assert caught.value.status == 400


# -- bounds ------------------------------------------------------------------------------------


@given(st.recursive(st.none() | st.text(max_size=9), lambda c: st.lists(c, max_size=3)))
def test_depth_is_counted_as_a_parser_would(value: Any) -> None:
    def levels(found: Any) -> int:
        return 1 + max(map(levels, found), default=0) if isinstance(found, list) else 0

    data = json.dumps(value).encode()
    check_depth(data, max(1, levels(value)))
    if levels(value) > 1:
        with pytest.raises(Refusal):
            check_depth(data, levels(value) - 1)


def test_brackets_in_texts_are_no_levels() -> None:
    check_depth(json.dumps({"a": '[[[["{{{{', "乙": "[" * 50}).encode(), 2)


def test_the_bytes_of_all_bodies_are_bounded() -> None:
    held = Held(10)
    held.add(6)
    with pytest.raises(Refusal) as caught:
        held.add(5)
    assert caught.value.status == 429
    assert CLOSE.items() <= caught.value.headers.items()
    held.drop(6)
    held.add(10)


def test_a_key_has_a_burst_and_then_a_rate() -> None:
    now = 0.0
    rates = Rates(2.0, 3, lambda: now)
    for _ in range(3):
        rates.take("a")
    with pytest.raises(Refusal) as caught:
        rates.take("a")
    assert caught.value.status == 429
    assert caught.value.headers["Retry-After"] == "1"
    rates.take("b")  # another key has a bucket of its own
    now = 0.5
    rates.take("a")
    with pytest.raises(Refusal):
        rates.take("a")


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    settings = HttpSettings(rate_per_s=0.001, burst=2, access_log=False)
    with serving(tmp_path / "data", settings=settings) as client:
        answers = [client.get("/v1/worlds") for _ in range(3)]
        assert [a.status_code for a in answers] == [200, 200, 429]
        assert int(answers[2].headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200  # probes are not counted
