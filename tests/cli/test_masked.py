"""Commands on a masked data folder take the key from the environment, and from nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.cli.opening import MASK_KEY

Run = Callable[..., Any]


def test_a_masked_folder_is_fed_with_the_key_and_read_without(
    run: Run, run_json: Run, lines: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = reverie.new_mask_key()
    with reverie.open(data, mask=("person", "email"), mask_key=key, embedder="standin"):
        pass
    talk = lines([{"text": "My sister Ines lives in Porto."}, {"text": "写信到ines@example.org。"}])
    assert run_json("ingest", talk, expect=1)["error"] == "MaskKeyMissingError"
    monkeypatch.setenv(MASK_KEY, key)
    run("ingest", talk)
    monkeypatch.setenv(MASK_KEY, reverie.new_mask_key())
    assert run_json("stats", expect=1)["error"] == "ConfigError"
    monkeypatch.delenv(MASK_KEY)
    shown = run("search", "Where does Ines live?").stdout + run("show", "--types", "message").stdout
    assert "[PERSON_1]" in shown
    assert "[EMAIL_1]" in shown
    assert "Ines" not in shown
    assert "ines" not in shown
    assert run("check").exit_code == 0


def test_the_key_of_another_folder_is_no_hindrance(
    run: Run, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MASK_KEY, reverie.new_mask_key())
    run("ingest", talk, "--embedder", "standin")
    assert "Oslo" in run("search", "Where do I live?").stdout
