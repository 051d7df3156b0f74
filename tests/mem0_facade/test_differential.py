"""The facade against mem0 itself: recorded answers of 2.2.1 (Qdrant, FAISS) and 1.0.11 (Qdrant).

With REVERIE_MEM0_PYTHONS="PYTHON:PYTHON" (interpreters that have mem0ai 2.2.1 with faiss-cpu, and
1.0.11) the recordings are made anew and compared with the stored ones.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import mem0_calls
import numpy as np
import pytest

from reverie.mem0 import AsyncMemory, Memory
from reverie.models.protocol import EmbedderInfo, Float32

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
KINDS = sorted(mem0_calls.COUNTS)
FEW = 15  # sequences of the quick test
ORACLES = [python for python in os.environ.get("REVERIE_MEM0_PYTHONS", "").split(":") if python]


class Embedder:
    """The vectors that mem0 was given, too."""

    info = EmbedderInfo("mem0-calls", mem0_calls.DIM)

    def embed(self, texts: list[str], role: str) -> Float32:
        vectors = [mem0_calls.vector(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(texts), mem0_calls.DIM)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def unknown_share(self, text: str) -> float:
        return 0.0

    def close(self) -> None:
        pass


def recorded(kind: str) -> dict[str, Any]:
    with lzma.open(DATA / f"mem0_{kind}.json.xz", "rt", encoding="utf-8") as stream:
        found: dict[str, Any] = json.load(stream)
    return found


def facade(folder: Path, number: int, version: int | None) -> Memory:
    store = {"provider": "qdrant", "config": {"collection_name": f"w{number}"}}
    own = {"data": folder / "data", "embedder": EMBEDDER, "partitions": 1, "background": False}
    return Memory.from_config({"vector_store": store}, version=version, **own)


EMBEDDER = Embedder()


def documented(call: mem0_calls.Call) -> bool:
    """Whether a call is one of those that differ on purpose; see docs/mem0.md."""
    filters = call[2].get("filters", {})
    return bool(call[0] == "get_all" and filters.get("OR") == [])  # mem0 refuses it in search only


def differences(folder: Path, kind: str, most: int | None = None) -> list[str]:
    theirs, told, version = recorded(kind), [], int(kind[0])
    sequences = mem0_calls.sequences(kind)
    assert len(theirs["answers"]) == len(sequences)
    with facade(folder, -1, version) as kept_open:  # so that not each of them opens the folder
        assert kept_open.get(mem0_calls.UNKNOWN) is None
        for number, calls in enumerate(sequences[:most]):
            with facade(folder, number, version) as memory:
                ours = json.loads(json.dumps(mem0_calls.run(memory, calls)))
            for call, a, b in zip(calls, theirs["answers"][number], ours, strict=True):
                told_of = mem0_calls.difference(call, a, b, kind.split("-")[1])
                if told_of is not None and not documented(call):
                    told.append(f"sequence {number}: {told_of}")
    return told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [FEW, pytest.param(None, marks=pytest.mark.slow)])
def test_no_difference(tmp_path: Path, kind: str, most: int | None) -> None:
    found = differences(tmp_path, kind, most)
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:5])


@pytest.mark.parametrize("kind", ["1-qdrant", "2-qdrant"])
def test_the_async_twin_answers_the_same(tmp_path: Path, kind: str) -> None:
    theirs, store = recorded(kind), {"provider": "qdrant", "config": {"collection_name": "w"}}
    own = {"data": tmp_path / "data", "embedder": EMBEDDER, "partitions": 1, "background": False}

    async def run() -> None:
        config = {"vector_store": store}
        async with AsyncMemory.from_config(config, version=int(kind[0]), **own) as memory:
            for number, calls in enumerate(mem0_calls.sequences(kind)[:FEW]):
                twin = Blocking(memory)
                ours = json.loads(json.dumps(await asyncio.to_thread(mem0_calls.run, twin, calls)))
                for call, a, b in zip(calls, theirs["answers"][number], ours, strict=True):
                    told = mem0_calls.difference(call, a, b, "qdrant")
                    assert told is None or documented(call), told
                await memory.reset()

    class Blocking:
        """Calls the coroutines of a memory from another thread."""

        def __init__(self, memory: AsyncMemory) -> None:
            self.memory = memory

        def __getattr__(self, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                coroutine = getattr(self.memory, name)(*args, **kwargs)
                return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

            return call

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(run())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def test_every_call_is_among_the_sequences() -> None:
    said = Counter(
        (kind[0], call[0])
        for kind in KINDS
        for calls in mem0_calls.sequences(kind)
        for call in calls
    )
    methods = "add get get_all search update delete delete_all history reset".split()
    assert all(said[version, method] >= 5 for version in "12" for method in methods)
    assert sum(mem0_calls.COUNTS.values()) >= 200


@pytest.mark.parametrize("name", ["get_all", "search", "update", "delete_all"])
def test_a_planted_difference_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole = getattr(Memory, name)

    def wrong(self: Memory, *args: Any, **options: Any) -> Any:
        if name in {"update", "delete_all"}:
            return whole(self, *args, **options) | {"message": "Done"}
        answer = whole(self, *args, **options)
        return {"results": answer["results"][:-1]}

    monkeypatch.setattr(Memory, name, wrong)
    assert differences(tmp_path, "2-faiss", FEW)


@pytest.mark.slow
@pytest.mark.skipif(not ORACLES, reason="needs REVERIE_MEM0_PYTHONS")
@pytest.mark.parametrize("kind", KINDS)
def test_the_recordings_are_what_mem0_answers(tmp_path: Path, kind: str) -> None:
    program = [
        ORACLES[0 if kind.startswith("2") else 1],
        str(Path(__file__).with_name("record.py")),
    ]
    fresh = tmp_path / "fresh.json.xz"
    subprocess.run([*program, kind, str(fresh)], check=True, timeout=280)
    with lzma.open(fresh, "rt", encoding="utf-8") as stream:
        anew = json.load(stream)
    stored = recorded(kind)
    assert anew["mem0ai"] == stored["mem0ai"]
    sequences = mem0_calls.sequences(kind)
    store = kind.split("-")[1]
    for calls, a, b in zip(sequences, stored["answers"], anew["answers"], strict=True):
        for call, old, new in zip(calls, a, b, strict=True):
            assert mem0_calls.difference(call, old, new, store) is None
