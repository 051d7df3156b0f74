"""Commands that write take a language model and masking; `usage` shows what it has cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_language import FakeLanguageModel

import reverie
from reverie import language
from reverie.cli.opening import MASK_KEY
from reverie.models.language import LanguageSettings
from reverie.models.usage import Meter, MeteredLanguageModel

Run = Callable[..., Any]
EMPTY = '{"memories": [], "entities": [], "relations": []}'


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """A model in the place of any that is named; returns which were opened, on how many hosts."""
    opened: list[tuple[str, int]] = []

    def open_it(settings: LanguageSettings, *, meter: Meter, ray_hosts: int = 0) -> Any:
        opened.append((settings.model, ray_hosts))
        return MeteredLanguageModel(FakeLanguageModel(lambda _: EMPTY), meter)

    monkeypatch.setattr(language, "open_language_model", open_it)
    return opened


def test_ingest_takes_a_language_model_and_usage_shows_its_cost(
    run: Run, run_json: Run, talk: Path, asked: list[tuple[str, int]]
) -> None:
    run("ingest", talk, "--embedder", "standin", "--user", "安娜", "--language-model", "my.gguf")
    assert asked == [("my.gguf", 0)]
    rows = run_json("usage")["usage"]
    assert {row["purpose"] for row in rows} <= {"extract", "decide"}
    (row,) = [row for row in rows if row["purpose"] == "extract"]
    assert (row["world"], row["user"], row["purpose"]) == ("default", "安娜", "extract")
    assert row["calls"] == 4  # the turns of the owner
    assert row["prompt_tokens"] > 0
    assert row["completion_tokens"] > 0
    shown = run("usage").stdout
    assert "安娜" in shown
    assert f"{sum(row['prompt_tokens'] for row in rows):,}" in shown
    assert run_json("usage", "--user", "bo")["usage"] == []
    assert run_json("usage", "--world", "sea")["usage"] == []
    assert "no language model was called" in run("usage", "--user", "bo").output
    assert run_json("usage", "--user", "安娜", "--reset")["usage"] == rows
    assert run_json("usage")["usage"] == []
    assert asked == [("my.gguf", 0)]  # to look at it takes no model


@pytest.mark.parametrize(
    "command", [("quarantine", "retry", "--all"), ("summary", "--update")], ids=" ".join
)
def test_other_commands_that_write_take_it_too(
    run: Run, told: None, asked: list[tuple[str, int]], command: tuple[str, ...]
) -> None:
    run(*command, "--language-model", "smollm2")
    assert asked == [("smollm2", 0)]
    run(*command)
    assert len(asked) == 1


def test_hosts_need_actors(run_json: Run, talk: Path, asked: list[tuple[str, int]]) -> None:
    options = ("--language-model", "smollm2", "--language-hosts", "2")
    found = run_json("ingest", talk, *options, expect=1)
    assert found["error"] == "ConfigError"
    assert "actors" in found["message"]
    assert asked == []


def test_masking_is_turned_on_for_good(
    run: Run, run_json: Run, lines: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = lines([{"text": "My sister Ines lives in Porto."}, {"text": "写信到ines@example.org。"}])
    ingest = ("ingest", talk, "--embedder", "standin")
    missing = run_json(*ingest, "--mask", expect=1)
    assert missing["error"] == "ConfigError"
    assert MASK_KEY in missing["message"]
    monkeypatch.setenv(MASK_KEY, reverie.new_mask_key())
    run(*ingest, "--mask")
    shown = run("show", "--types", "message").stdout
    assert "[EMAIL_1]" in shown
    assert "[PERSON_1]" in shown
    assert "ines" not in shown.casefold()
    refused = run_json(*ingest, "--no-mask", expect=1)
    assert refused["error"] == "ConfigError"
    assert "--no-mask" in refused["message"]
    run(*ingest, "--mask")  # as it is already
    run(*ingest)


def test_a_folder_without_masking_stays_so(run: Run, talk: Path, data: Path) -> None:
    run("ingest", talk, "--embedder", "standin", "--no-mask")
    assert "Oslo" in run("search", "Where do I live?").stdout
