"""`reverie summary`: a period, a topic, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.usefixtures("told")
def test_a_summary_of_a_period_and_of_a_topic(run: Run, run_json: Run) -> None:
    found = run_json("summary", "--since", "2024-05-01", "--until", "2024-05-31")
    assert found["messages"] == 2
    assert "Oslo" in found["text"]
    assert "coffee" not in found["text"]
    told = run("summary", "Oslo").stdout
    assert told.startswith("1 May 2024: ")
    assert "Oslo" in told
    nothing = run("summary", "--since", "1990-01-01", "--until", "1991-01-01")
    assert nothing.stdout == ""
    assert "0 turns" in nothing.stderr


@pytest.mark.usefixtures("told")
def test_what_is_kept(run: Run, run_json: Run) -> None:
    assert run_json("summary", "--kept") == {"summaries": [], "made": []}
    made = run_json("summary", "--update")
    assert {item["about"] for item in made["summaries"]} == {"session default", "user"}
    assert made["made"] == [item["id"] for item in made["summaries"]]
    assert run_json("summary", "--update")["made"] == []
    assert "session default" in run("summary", "--kept").stdout


@pytest.mark.usefixtures("told")
def test_what_contradicts_itself(run: Run) -> None:
    assert "take no topic" in run("summary", "tea", "--kept", expect=2).stderr
    assert "UnknownMemoryError" in run("summary", "--session", "x", expect=1).stderr
