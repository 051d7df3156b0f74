"""Every operation, with its own examples: it works, in English and Chinese, as it is described."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # has no hints of its own
import pytest
from http_helpers import BY_NAME, LANGUAGES, ask, events, example_of, runtime_of, serving
from starlette.testclient import TestClient

import reverie
from reverie.groups import Group
from reverie.http.operation import Operation
from reverie.http.tables import NOT_SERVED, OPERATIONS
from reverie.relationships import Relationships

SERVED_CLASSES = (reverie.Runtime, reverie.World, reverie.User, Relationships, Group)


@pytest.fixture(scope="module")
def shared(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server for requests that change nothing."""
    folder = tmp_path_factory.mktemp("shared") / "data"
    shutil.copytree(prepared, folder)
    with serving(folder) as found:
        yield found


READS = [op for op in OPERATIONS if op.role == "read"]
WRITES = [op for op in OPERATIONS if op.role != "read"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("op", READS, ids=lambda op: op.name)
def test_a_read_works_and_answers_as_described(
    op: Operation, language: str, shared: TestClient
) -> None:
    works(op, language, shared)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("op", WRITES, ids=lambda op: op.name)
def test_a_write_works_and_answers_as_described(
    op: Operation, language: str, client: TestClient
) -> None:
    works(op, language, client)
    assert runtime_of(client).check() == []


def works(op: Operation, language: str, client: TestClient) -> None:
    """Send the request of an example, and compare the answer with the description."""
    answer = ask(client, op, example_of(op, language, client))
    assert answer.status_code == 200, answer.text
    media = {"json": "application/json", "events": "text/event-stream", "file": "application/oct"}
    assert answer.headers["content-type"].startswith(media[op.gives])
    if op.gives == "json":
        check(client, op, answer.json())
    elif op.gives == "events":
        assert [name for name, _ in events(answer.text)][-1] == "result", answer.text


def check(client: TestClient, op: Operation, answer: Any) -> None:
    """Compare an answer with its schema."""
    document = client.app_state["app"].openapi()
    described = document["paths"][op.path][op.method.lower()]["responses"]["200"]
    schema = described["content"]["application/json"]["schema"]
    jsonschema.validate(answer, {**schema, "components": document["components"]})


@pytest.mark.parametrize(
    "op", [op for op in OPERATIONS if op.takes == "json"], ids=lambda o: o.name
)
def test_an_unknown_field_is_refused(op: Operation, shared: TestClient) -> None:
    example = op.examples["english"]
    answer = ask(shared, op, example._replace(body={**example.body, "wrong": 1}))
    assert (answer.status_code, answer.json()["error"]) == (422, "InvalidValueError")


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_an_unknown_parameter_is_refused(op: Operation, shared: TestClient) -> None:
    example = op.examples["english"]
    answer = ask(shared, op, example._replace(query={**example.query, "wrong": "1"}))
    assert (answer.status_code, answer.json()["error"]) == (422, "InvalidValueError")


def test_an_answer_is_in_the_language_of_the_memory(shared: TestClient) -> None:
    op = BY_NAME["search"]
    english = ask(shared, op, op.examples["english"]).json()["hits"]
    chinese = ask(shared, op, op.examples["chinese"]).json()["hits"]
    assert english[0]["text"] == "Ana's sister lives in Oslo."
    assert chinese[0]["text"] == "安娜的姐姐住在奥斯陆。"
    assert english[0]["reasons"]


# -- nothing of the public API is left out -------------------------------------------------


def public_methods() -> set[str]:
    """The names of all public methods that HTTP could serve."""
    return {
        f"{kind.__name__}.{name}"
        for kind in SERVED_CLASSES
        for name, found in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_public_method_has_a_route_or_a_reason() -> None:
    served = {name for op in OPERATIONS for name in op.serves}
    methods = public_methods()
    assert not (missing := methods - served - NOT_SERVED.keys()), f"no route: {sorted(missing)}"
    assert not (gone := (served | NOT_SERVED.keys()) - methods), f"no method: {sorted(gone)}"
    assert not served & NOT_SERVED.keys()


def test_a_method_without_a_route_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverie.User, "planted", lambda self: None, raising=False)
    assert "User.planted" in public_methods()


def test_names_and_routes_are_given_once() -> None:
    assert len({op.name for op in OPERATIONS}) == len(OPERATIONS)
    assert len({(op.method, op.path) for op in OPERATIONS}) == len(OPERATIONS)


def test_writes_that_can_be_repeated_say_so() -> None:
    """A method that takes a request id is served with Idempotency-Key."""
    kinds = {kind.__name__: kind for kind in SERVED_CLASSES}
    for op in OPERATIONS:
        for name in op.serves:
            kind, _, method = name.partition(".")
            if "request_id" in inspect.signature(getattr(kinds[kind], method)).parameters:
                assert op.has_request_id, op.name
