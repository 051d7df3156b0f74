"""`reverie audit`: what was put away, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import Profile

Run = Callable[..., Any]


@pytest.fixture
def limited(data: Path) -> None:
    """A user that may keep two memories and has seen five events."""
    with reverie.open(data, embedder="standin", background=False) as rt:
        guard = rt.user("守卫", "town")
        guard.set_profile(Profile(name="guard", memories=2))
        for i in range(5):
            guard.observe(f"A cart went by, {i}. 有车经过。", importance=i / 10)


@pytest.mark.usefixtures("limited")
def test_an_audit_in_pages(run: Run, run_json: Run) -> None:
    whose = ("--world", "town", "--user", "守卫")
    page = run_json("audit", *whose, "-n", 2)
    assert (len(page["lines"]), page["total"]) == (2, 3)
    assert {line["why"] for line in page["lines"]} == {"budget: 2 memories"}
    rest = run_json("audit", *whose, "--cursor", page["cursor"])
    assert [line["text"] for line in rest["lines"]] == ["A cart went by, 2. 有车经过。"]
    shown = run("audit", *whose, "-n", 2)
    assert "budget: 2 memories" in shown.stdout
    assert page["cursor"] in shown.stderr


@pytest.mark.usefixtures("limited")
def test_nothing_was_put_away(run: Run, run_json: Run) -> None:
    assert run_json("audit") == {"lines": [], "total": 0, "cursor": None}
    assert "nothing was put away" in run("audit").stderr
