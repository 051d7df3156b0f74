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
    "npc_dialogue.py": [
        "Robin: Who took the amulet?\n  | Mira recalls",
        "  | Robin was told\n",
        "Mira: I remember: Tom the tinker took the silver amulet from the shrine at dusk.",
    ],
    "two_npcs.py": [
        "tom knows: []",
        "mira: The player stole the amulet. [witnessed]",
        "tom: The player stole the amulet. [told by mira]",
        "shares the words: stole, amulet",
        "who knows: [('mira', ()), ('tom', ('mira',))]",
        "tom trusts the player: -0.20",
        "mira trusts the player: -0.40",
    ],
}
IN_ORDER = {"npc_observe.py", "npc_dialogue.py", "two_npcs.py"}

# Options before the data folder, and what is typed.
OPTIONS = {"npc_dialogue.py": ["--explain", "--data"]}
TYPED = {"npc_dialogue.py": "Who took the amulet?\n"}


def run(name: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *OPTIONS.get(name, ()), str(folder)],
        input=TYPED.get(name, ""),
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
        if name in IN_ORDER:
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
