"""Exports of ChatGPT that are made up: seeded, English and Chinese, with all that real ones have.

A conversation is a tree with a branch that was given up, calls of tools with their answers, a
hidden system message, parts that are images, and times. What an import must make of it is known:
the texts of the turns, in order.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = (
    "I moved to Oslo and work on the harbour plan with Ana, who keeps bees and two old boats. "
    "The budget meeting is on Tuesday, the kitchen needs a new lamp, and my sister paints birds. "
    "Could you explain how a binary search finds an element and why it takes so few steps?"
).split()
CHARS = (
    "我搬到了奥斯陆，和李娜一起做港口的计划。她养蜜蜂，还有两条旧船。"
    "预算会议在星期二，厨房需要一盏新灯。"
)
START = 1_680_000_000.0
LONGEST_TURNS = 40  # of one conversation, on the branch that counts


def write_export(path: Path, size_bytes: int, seed: int = 0) -> list[str]:
    """Write conversations.json of about a size; returns the texts that its import must store."""
    rng = random.Random(seed)
    expected: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        number = written = 0
        while written < size_bytes:
            text = json.dumps(conversation(rng, number, expected), ensure_ascii=number % 2 == 0)
            file.write(", " * (number > 0) + text)
            number, written = number + 1, file.tell()
        file.write("]")
    return expected


def conversation(rng: random.Random, number: int, expected: list[str]) -> dict[str, Any]:
    """Return one conversation; adds the texts of its turns to `expected`."""
    name = f"{rng.getrandbits(64):016x}-{number}"
    created = START + 3_600.0 * number
    mapping: dict[str, Any] = {
        "root": {"id": "root", "message": None, "parent": None, "children": []}
    }
    last, count = "root", 0

    def add(role: str, content: dict[str, Any], **fields: Any) -> str:
        nonlocal count
        count += 1
        node = f"{name[:8]}-{count}"
        message = {
            "id": node,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": created + count,
            "content": content,
            "status": "finished_successfully",
            "weight": 1.0,
            "recipient": "all",
            "metadata": {"model_slug": "a-model", "timestamp_": "absolute"},
            **fields,
        }
        mapping[node] = {"id": node, "message": message, "parent": last, "children": []}
        mapping[last]["children"].append(node)
        return node

    hidden = {"is_visually_hidden_from_conversation": True}
    last = add("system", {"content_type": "text", "parts": [""]}, metadata=hidden)
    for turn in range(rng.randrange(1, LONGEST_TURNS // 2)):
        question = f"{prose(rng)} #{number}.{turn}"
        parts: list[Any] = [question]
        kind = "text"
        if rng.random() < 0.05:
            kind, parts = "multimodal_text", [{"content_type": "image_asset_pointer"}, question]
        last = add("user", {"content_type": kind, "parts": parts})
        expected.append(question)
        if rng.random() < 0.15:  # an answer that was asked for again
            add("assistant", {"content_type": "text", "parts": [f"given up: {prose(rng)}"]})
        if rng.random() < 0.1:
            last = add("assistant", {"content_type": "code", "text": "1+1"}, recipient="python")
            last = add("tool", {"content_type": "execution_output", "text": "2"})
        answer = "\n\n".join(prose(rng) for _ in range(rng.randrange(1, 4)))
        answer = f"{answer} #{number}.{turn}"
        last = add("assistant", {"content_type": "text", "parts": [answer]})
        expected.append(answer)
    return {
        "title": f"{prose(rng)[:40]}",
        "create_time": created,
        "update_time": created + count,
        "mapping": mapping,
        "current_node": last,
        "conversation_id": name,
    }


def prose(rng: random.Random) -> str:
    """Return a few sentences, in one of the two languages."""
    if rng.random() < 0.5:
        return " ".join(rng.choices(WORDS, k=rng.randrange(8, 60)))
    return "".join(rng.choices(CHARS, k=rng.randrange(10, 80)))


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of messages.jsonl of an export of reverie."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]
