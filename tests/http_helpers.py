"""Parts that the tests of HTTP share: a server in this process, and requests of its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.testclient import TestClient

import reverie
from reverie.http import create_app
from reverie.http.examples import prepare
from reverie.http.keys import KeyFile, Role
from reverie.http.operation import Example, Operation
from reverie.http.paths import filled
from reverie.http.settings import HttpSettings
from reverie.http.tables import OPERATIONS

BASE = "http://localhost"
LANGUAGES = ("english", "chinese")
BY_NAME = {op.name: op for op in OPERATIONS}
_MEDIA = {"lines": "application/x-ndjson", "file": "application/octet-stream"}


@contextmanager
def serving(
    folder: Path, *, prepared: bool = False, settings: HttpSettings | None = None, **config: Any
) -> Iterator[TestClient]:
    """A client of a server in this process, over a folder of the test's own."""
    given: dict[str, Any] = {"embedder": "standin", "background": False, "partitions": 1} | config
    with reverie.open(folder, **given) as runtime:
        if prepared:
            for language in LANGUAGES:
                prepare(runtime, language)
        if settings is None:
            backups = folder.parent / "backups"
            backups.mkdir(exist_ok=True)
            settings = HttpSettings(rate_per_s=None, access_log=False, backups=backups)
        app = create_app(runtime, settings)
        with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
            client.app_state = {"runtime": runtime, "app": app}
            yield client


def runtime_of(client: TestClient) -> reverie.Runtime:
    """The runtime behind a client."""
    runtime: reverie.Runtime = client.app_state["runtime"]
    return runtime


def key_for(folder: Path, role: Role, *worlds: str, everywhere: bool = False) -> dict[str, str]:
    """Headers with a key that was made now."""
    whole, _ = KeyFile(folder).create(role, worlds=worlds, everywhere=everywhere)
    return {"Authorization": f"Bearer {whole}"}


def ask(
    client: TestClient,
    op: Operation,
    example: Example,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Send the request of an example."""
    url = filled(op.path, dict(example.path))
    sent: dict[str, Any] = {"params": dict(example.query), "headers": dict(headers or {})}
    if op.takes == "json":
        sent["content"] = msgspec.json.encode(example.body)
        sent["headers"]["Content-Type"] = "application/json"
    elif op.takes != "nothing":
        sent["content"] = example.body
        sent["headers"]["Content-Type"] = _MEDIA[op.takes]
    return client.request(op.method, url, **sent)


def example_of(op: Operation, language: str, client: TestClient) -> Example:
    """The example of an operation, with what it needs beside what is prepared for all."""
    example = op.examples[language]
    if op.name == "restore_memory":
        user = runtime_of(client).user(example.path["user"], example.path["world"])
        user.delete(example.path["item"])
    if op.takes == "file":
        export = BY_NAME["export_world"]
        example = example._replace(body=ask(client, export, export.examples[language]).content)
    return example


def events(text: str) -> list[tuple[str, Any]]:
    """The events of a stream: names and data."""
    found = re.findall(r"event: (.*)\n(?:id: .*\n)?data: (.*)\n\n", text)
    return [(name, msgspec.json.decode(data)) for name, data in found]
