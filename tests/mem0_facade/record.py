"""Record what mem0 answers to the call sequences of mem0_calls.py.

    PYTHON tests/mem0_facade/record.py KIND FILE

PYTHON has the mem0ai of that kind installed (2.2.1 with faiss-cpu, or 1.0.11), KIND is one of
mem0_calls.COUNTS, FILE is a .json.xz. Nothing is sent anywhere: the embedder is a stub, there is no
language model, the vector store is a temporary folder, and telemetry is off.
"""

from __future__ import annotations

import json
import logging
import lzma
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mem0_calls


def memory_of(kind: str, folder: str) -> Any:
    """Return a Memory of mem0 on a new folder."""
    store = kind.split("-")[1]
    config: dict[str, Any] = {
        "collection_name": "memories",
        "path": f"{folder}/{store}",
        "embedding_model_dims": mem0_calls.DIM,
    }
    config |= {"distance_strategy": "cosine"} if store == "faiss" else {"on_disk": True}
    return mem0_calls.real_memory(
        {
            "vector_store": {"provider": store, "config": config},
            "history_db_path": f"{folder}/history.db",
        }
    )


def record(kind: str) -> dict[str, Any]:
    """Return the answers of mem0 to all sequences of a kind."""
    answers = []
    for calls in mem0_calls.sequences(kind):
        with tempfile.TemporaryDirectory() as folder:
            memory = memory_of(kind, folder)
            answers.append(mem0_calls.run(memory, calls))
            memory.db.close()
            client = getattr(memory.vector_store, "client", None)
            if client is not None:
                client.close()
    return {"kind": kind, "mem0ai": version("mem0ai"), "answers": answers}


if __name__ == "__main__":
    os.environ["MEM0_TELEMETRY"] = "False"
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as home:
        os.environ["MEM0_DIR"] = os.environ["HOME"] = home
        found = record(sys.argv[1])
    target = Path(sys.argv[2])
    with lzma.open(target, "wt", encoding="utf-8", preset=9) as stream:
        json.dump(found, stream, ensure_ascii=False, separators=(",", ":"))
    print(target, found["mem0ai"], len(found["answers"]), "sequences,", target.stat().st_size, "B")  # noqa: T201
