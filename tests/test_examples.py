"""Every example runs, and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

# Lines that the output holds, also without a model.
PRINTED = {
    "quickstart.py": ["User lives in Oslo now", "User lives in Berlin [superseded]", "Facts:"],
    "async_quickstart.py": ["ana: ", "walnuts", "Autechre", "oolong"],
    "npc_observe.py": [
        "day 3: Tom paid for the bread and apologised. [witnessed]",
        "Tom owes: []",
        "after loading: ['Tom stole a loaf of bread from the market stall.']",
        "Tom owes: ['Mira']",
        "Tom heard from the baker",
    ],
}


def run(name: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_lines(name: str, printed: str) -> None:
    rest = printed
    for words in PRINTED[name]:
        assert words in rest, (words, printed)
        if name == "npc_observe.py":  # in this order
            rest = rest.partition(words)[2]


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_without_models(name: str, tmp_path: Path) -> None:
    printed = run(name, tmp_path / "data", XDG_CACHE_HOME=str(tmp_path / "no-models"))
    check_lines(name, printed)


@pytest.mark.model
@pytest.mark.parametrize("name", ["quickstart.py", "async_quickstart.py"])
def test_an_example_runs_with_models(name: str, tmp_path: Path) -> None:
    printed = run(name, tmp_path / "data")
    check_lines(name, printed)
    assert "stand-in" not in printed


def test_an_example_may_be_run_again(tmp_path: Path) -> None:
    for _ in range(2):
        check_lines("quickstart.py", run("quickstart.py", tmp_path / "data"))
