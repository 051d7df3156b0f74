"""Write the stores that test_importing.py reads, with mem0 itself.

    PYTHON tests/mem0_facade/make_stores.py FOLDER PROVIDER...

PYTHON has mem0ai (1.0.11 or 2.2.1) and what the providers need: qdrant, faiss (faiss-cpu), chroma
(chromadb). Packed as tests/data/mem0_stores.tar.xz they lie under 1/qdrant, 2/qdrant, 2/faiss,
2/chroma.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mem0_calls


def fill(folder: Path, provider: str) -> None:
    """Make a store with a history: four memories, one of them changed twice, and a deleted one."""
    config: dict[str, Any] = {"collection_name": "memories", "path": str(folder / provider)}
    if provider != "chroma":
        config["embedding_model_dims"] = mem0_calls.DIM
    if provider == "qdrant":
        config["on_disk"] = True
    (folder / provider).mkdir(parents=True)
    memory = mem0_calls.real_memory(
        {
            "vector_store": {"provider": provider, "config": config},
            "history_db_path": str(folder / provider / "history.db"),
        }
    )

    def add(text: str, **options: Any) -> str:
        found: str = memory.add(text, infer=False, **options)["results"][0]["id"]
        return found

    home = add("I live in Bergen", user_id="ana", metadata={"topic": "home", "n": 3})
    memory.update(home, "I live in Oslo")
    memory.update(home, "I live in Rome")
    add("她喜欢喝龙井茶", user_id="李雷", agent_id="guide", metadata={"主题": "茶"})
    add("Runs end at noon", run_id="r1")
    add("I answer in short sentences", agent_id="guide", metadata={"flag": True, "owner": "me"})
    memory.delete(add("To be deleted", user_id="ana"))
    memory.db.close()


if __name__ == "__main__":
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["ANONYMIZED_TELEMETRY"] = "False"  # of Chroma
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as home:
        os.environ["MEM0_DIR"] = os.environ["HOME"] = home
        for name in sys.argv[2:]:
            fill(Path(sys.argv[1]), name)
