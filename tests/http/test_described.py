"""The description: whole, and kept to by what answers; see fuzz.py for the long form."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_helpers import serving
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no hints

from reverie.http.faults import REFUSALS, codes, meaning
from reverie.http.tables import OPERATIONS
from reverie.memory_graph.errors import ReverieError

FUZZ = Path(__file__).with_name("fuzz.py")
CASES = 340  # four of each operation


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with serving(tmp_path_factory.mktemp("described") / "data") as client:
        yield client.get("/openapi.json").json()


def test_every_operation_has_examples_in_both_languages(document: dict[str, Any]) -> None:
    for op in OPERATIONS:
        told = document["paths"][op.path][op.method.lower()]
        assert told["summary"], op.name
        assert set(op.examples) == {"english", "chinese"}, op.name
        for parameter in told["parameters"]:
            if parameter["in"] == "path":
                assert set(parameter["examples"]) == {"english", "chinese"}
        if op.takes == "json":
            shown = told["requestBody"]["content"]["application/json"]
            for example in shown["examples"].values():
                whole = {**shown["schema"], "components": document["components"]}
                Draft202012Validator(whole).validate(example["value"])


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name == "$ref":
                    yield inner
                else:
                    yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    for reference in set(references(document)):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_error_has_a_status_and_a_meaning() -> None:
    found = codes([ReverieError], REFUSALS)
    names = [name for of_status in found.values() for name in of_status]
    assert len(names) == len(set(names))
    assert {"StorageFullError", "UnknownMemoryError", "InvariantError", "Draining"} <= set(names)
    assert all(meaning(status) for status in found)
    assert found[500] == ["InternalError", "InvariantError"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_some_hundred_requests_are_answered_as_described(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(FUZZ), "--cases", str(CASES), "--seed", "7"]
    done = subprocess.run(
        [*command, "--json", str(figures)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert json.loads(figures.read_text())["cases"] >= CASES
