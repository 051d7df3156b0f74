"""`reverie import` of exported conversations: stored once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from import_exports import write_export

import reverie
from reverie.importers import read

Run = Callable[..., Any]
BARE = ("--no-infer", "--embedder", "standin")


def texts(data: Path, user: str = "user", world: str = "default") -> list[str]:
    """The turns of a user, in order."""
    with reverie.open(data, embedder="standin", background=False) as rt:
        assert rt.check() == []
        page = rt.user(user, world).list(types="message", limit=10_000)
        return [item.text for item in page.items]


def test_an_export_is_stored_once_and_a_newer_one_adds_what_is_new(
    run_json: Run, data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    expected = write_export(path, 25_000, seed=3)
    done = run_json("import", "chatgpt", path, "--user", "ana", "--world", "w", *BARE)
    assert (done["turns"], done["stored"], done["known"], done["bad"]) == (
        len(expected), len(expected), 0, 0,
    )  # fmt: skip
    assert texts(data, "ana", "w") == expected
    assert done["left_out"]["messages of other branches"] > 0
    again = run_json("import", "chatgpt", path, "--user", "ana", "--world", "w", *BARE)
    assert (again["stored"], again["known"]) == (0, len(expected))
    newer = tmp_path / "export.zip"
    longer = write_export(path, 40_000, seed=3)
    with zipfile.ZipFile(newer, "w") as archive:
        archive.write(path, "conversations.json")
    more = run_json("import", "chatgpt", newer, "--user", "ana", "--world", "w", *BARE)
    assert (more["stored"], more["known"]) == (len(longer) - len(expected), len(expected))
    assert texts(data, "ana", "w") == longer


def test_the_words_of_the_command(run: Run, run_json: Run, tmp_path: Path) -> None:
    chat = tmp_path / "_chat.txt"
    chat.write_text(
        "[13/1/2024, 10:00:00] Ana: I live in Oslo.\n[13/1/2024, 10:01:00] 小明: 我住在上海。\n"
        "[99/1/2024, 10:02:00] Ana: never\n[13/1/2024, 10:02:00] Ana: <Media omitted>\n",
        encoding="utf-8",
    )
    options = ("--embedder", "standin", "--speaker-map", "Ana=user", "--timezone", "Asia/Shanghai")
    shown = run("import", "whatsapp", chat, *options)
    for part in ("date order", "dmy", "left out: images and files", "1 entries skipped", "line 3"):
        assert part in shown.stdout
    found = run_json("search", "Where do I live?", "--embedder", "standin")
    assert any("Oslo" in hit["text"] for hit in found["hits"])
    wrong = run_json("import", "whatsapp", chat, "--timezone", "Mars/Base", expect=1)
    assert wrong["error"] == "InvalidValueError"
    wrong = run_json("import", "whatsapp", chat, "--speaker-map", "Ana", expect=1)
    assert "NAME=NAME" in wrong["message"]
    none = tmp_path / "prose.md"
    none.write_text("Once upon a time.\n")
    wrong = run_json("import", "markdown", none, *BARE, expect=1)
    assert "no line begins a turn" in wrong["message"]


@pytest.mark.parametrize("name", ["claude", "jsonl", "markdown"])
def test_the_other_formats(run_json: Run, data: Path, tmp_path: Path, name: str) -> None:
    files = {
        "claude": json.dumps(
            [{"uuid": "k", "chat_messages": [{"uuid": "1", "sender": "human", "text": "你好"}]}]
        ),
        "jsonl": '{"text": "你好"}\nno json\n',
        "markdown": "# 2024-05-01\n**User:** 你好\n",
    }
    path = tmp_path / f"file.{name}"
    path.write_text(files[name], encoding="utf-8")
    done = run_json("import", name, path, *BARE)
    assert (done["stored"], done["bad"]) == (1, int(name == "jsonl"))
    assert texts(data) == ["你好"]


def test_a_turn_that_is_refused_costs_itself_alone(
    run_json: Run, data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "talk.jsonl"
    lines = [{"text": "one"}, {"text": "x" * 1_100_000}, {"text": "three", "metadata": {"user": 1}},
             {"text": "four"}]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    done = run_json("import", "jsonl", path, *BARE)
    assert (done["turns"], done["stored"], done["bad"]) == (2, 2, 2)
    assert [s["where"] for s in done["skipped"]] == ["entry 2", "entry 3"]
    assert texts(data) == ["one", "four"]


@pytest.mark.slow
def test_an_import_that_is_killed_goes_on_without_duplicates(
    run_json: Run, data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    expected = write_export(path, 1_500_000, seed=5)
    command = [sys.executable, "-c", "from reverie.cli import main; main()", "import", "chatgpt"]
    process = subprocess.Popen(
        [*command, str(path), *BARE, "--data", str(data)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None:
        # Not the journals that SQLite makes for a moment: they may be gone when they are asked.
        files = [*data.glob("partitions/*.db"), *data.glob("partitions/*.db-wal")]
        sizes = [p.stat().st_size for p in files]
        if max(sizes, default=0) > 900_000:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.02)
    assert process.wait() == -signal.SIGKILL
    stored = len(texts(data))
    assert 0 < stored < len(expected)
    done = run_json("import", "chatgpt", path, *BARE)
    assert done["known"] == stored
    assert done["stored"] == len(expected) - stored
    assert Counter(texts(data)) == Counter(expected)


@pytest.mark.slow
def test_reading_holds_a_small_part_of_a_file(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "conversations.json"
    expected = write_export(path, 6_000_000, seed=7)
    tracemalloc.start()
    turns = sum(1 for _ in read(path, format="chatgpt"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert turns == len(expected)
    assert peak < path.stat().st_size / 3


def test_names_in_a_chat_are_masked(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_MASK_KEY", reverie.new_mask_key())
    chat = tmp_path / "WhatsApp Chat with Ines Moreau.txt"
    chat.write_text(
        "13/1/2024, 10:00 - Ines Moreau: Call 13912345678.\n13/1/2024, 10:01 - 赵敏敏: 好的。\n",
        encoding="utf-8",
    )
    run("import", "whatsapp", chat, *BARE, "--mask")
    stored = b"".join(path.read_bytes() for path in data.rglob("*") if path.is_file())
    for secret in ("Moreau", "赵敏敏", "13912345678"):
        assert secret.encode() not in stored
    run("export", tmp_path / "out", "--unmask")
    shown = (tmp_path / "out" / "messages.jsonl").read_text(encoding="utf-8")
    assert all(secret in shown for secret in ("Ines Moreau", "赵敏敏", "13912345678"))
