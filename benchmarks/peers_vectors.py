"""One embedder for several programs: a file of vectors, the model itself behind a socket, or its
file in each of them.

Needs nothing but numpy (and llama-cpp-python for the last), since the interpreter of a peer has no
reverie.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Embed = Callable[[Sequence[str], str], Float32]  # texts and their role ("query", "passage")


def write_table(folder: Path, embed: Embed, passages: Sequence[str], queries: Sequence[str]) -> int:
    """Embed everything once, keep it in a folder, and return the dimension."""
    rows = np.concatenate([embed(passages, "passage"), embed(queries, "query")])
    np.save(folder / "vectors.npy", rows)
    keys = [f"passage|{text}" for text in passages] + [f"query|{text}" for text in queries]
    (folder / "keys.json").write_text(json.dumps(keys, ensure_ascii=False), encoding="utf-8")
    return int(rows.shape[1])


def read_table(folder: Path) -> Embed:
    """Return what looks vectors up that `write_table` has kept; others are KeyErrors."""
    rows: Float32 = np.load(folder / "vectors.npy")
    keys = json.loads((folder / "keys.json").read_text(encoding="utf-8"))
    at = {key: i for i, key in enumerate(keys)}

    def embed(texts: Sequence[str], role: str) -> Float32:
        found: Float32 = rows[[at[f"{role}|{text}"] for text in texts]]
        return found

    return embed


def ask_server(address: str, dim: int) -> Embed:
    """Return what asks the model of another process, over one connection per thread."""
    own = threading.local()

    def embed(texts: Sequence[str], role: str) -> Float32:
        if not hasattr(own, "pipe"):
            own.pipe = Client(address, "AF_UNIX")
        own.pipe.send_bytes(json.dumps([role, list(texts)]).encode())
        return np.frombuffer(own.pipe.recv_bytes(), np.float32).reshape(-1, dim).copy()

    return embed


def load_model(path: str) -> Embed:
    """Return what runs the model in this process, as users of llama-cpp-python have it: by its own
    class, on one core, one call at a time, since threads cannot share a context."""
    module = import_module("llama_cpp")
    model: Any = module.Llama(
        path, embedding=True, n_ctx=512, n_threads=1, n_threads_batch=1, verbose=False
    )
    alone = threading.Lock()

    def embed(texts: Sequence[str], role: str) -> Float32:  # noqa: ARG001 (MiniLM has no prefixes)
        with alone:
            return np.array(model.embed(list(texts), normalize=True), np.float32)

    return embed


def live_questions(kept: Embed, live: Embed) -> Embed:
    """Return what asks `live` for the vectors of questions, and `kept` for the others."""

    def embed(texts: Sequence[str], role: str) -> Float32:
        return (live if role == "query" else kept)(texts, role)

    return embed


def serve(address: str, embed: Embed) -> Callable[[], None]:
    """Answer `ask_server` in threads of this process; returns what ends it."""
    listener = Listener(address, "AF_UNIX", backlog=256)

    def answer(pipe: Connection) -> None:
        try:
            while True:
                role, texts = json.loads(pipe.recv_bytes())
                pipe.send_bytes(np.ascontiguousarray(embed(texts, role)).tobytes())
        except (EOFError, ConnectionError):
            pipe.close()

    ended = threading.Event()

    def accept() -> None:
        while True:
            pipe = listener.accept()
            if ended.is_set():
                pipe.close()
                return
            threading.Thread(target=answer, args=(pipe,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()

    def end() -> None:  # a closed listener would go on accepting, for whoever gets its number next
        ended.set()
        Client(address, "AF_UNIX").close()
        accepting.join()
        listener.close()

    return end
