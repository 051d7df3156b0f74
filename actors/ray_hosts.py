"""Model hosts on Ray: the embedding model in actors, so that a cluster's cores embed.

Embedding has no effect, so a call that died with its actor is simply made again; unlike the
shards, Ray may restart these and the client may ask any of them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import exceptions as ray_errors

from reverie.memory_graph.errors import ClosedError, ModelFailedError, ReverieError, WireError
from reverie.models.embedders import open_embedder
from reverie.models.protocol import EmbedderInfo, Float32, TextRole

ATTEMPTS = 3
CALL_TIMEOUT_S = 600.0


class EmbedderActor:
    """What runs in the actor: an embedder. Its errors travel as values ."""

    def __init__(self, spec: str, folder: str, threads: int) -> None:
        """Load the model; an error is kept for the first call."""
        self._error: WireError | None = None
        try:
            self._model = open_embedder(spec, Path(folder), threads=threads)
        except ReverieError as exc:
            self._error = exc.to_wire()

    def call(self, method: str, *args: Any) -> Any:
        """Return (answer, None), or (None, wire error)."""
        if self._error is not None:
            return None, self._error
        try:
            if method == "info":
                return self._model.info, None
            return getattr(self._model, method)(*args), None
        except ReverieError as exc:
            return None, exc.to_wire()


class RayEmbedder:
    """An `Embedder` whose work is shared by actors. Ray must be running already."""

    def __init__(self, spec: str, folder: Path, *, threads: int, hosts: int) -> None:
        """Start `hosts` actors, each with its own copy of the model.

        Raises:
            ModelError: the model cannot be opened there.
        """
        actor_class: Any = ray.remote(EmbedderActor)
        self._actors: list[Any] = [
            actor_class.options(
                num_cpus=0, max_restarts=-1, max_task_retries=0, scheduling_strategy="SPREAD"
            ).remote(spec, str(folder), threads)
            for _ in range(hosts)
        ]
        self._turns = itertools.cycle(range(hosts))
        self._lock = threading.Lock()
        try:
            self._info: EmbedderInfo = self._ask("info")
        except BaseException:
            self.close()
            raise

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return self._info

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return unit rows, float32 (len(texts), dim); the texts are shared out to the hosts."""
        hosts = len(self._actors)
        if not hosts:
            msg = "the embedder is closed"
            raise ClosedError(msg)
        share = max(1, -(-len(texts) // hosts))
        parts = [list(texts[i : i + share]) for i in range(0, len(texts), share)]
        if not parts:
            return np.empty((0, self._info.dim), np.float32)
        refs = [
            (part, self._actors[self._next()].call.remote("embed", part, role)) for part in parts
        ]
        return np.concatenate([self._wait(ref, "embed", part, role) for part, ref in refs])

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has for this model."""
        count: int = self._ask("count_tokens", text)
        return count

    def unknown_share(self, text: str) -> float:
        """Return the share of tokens that the vocabulary does not know."""
        share: float = self._ask("unknown_share", text)
        return share

    def close(self) -> None:
        """Stop the actors."""
        for actor in self._actors:
            with suppress(ray_errors.RayError):
                ray.kill(actor, no_restart=True)
        self._actors = []

    def _next(self) -> int:
        with self._lock:
            return next(self._turns)

    def _ask(self, method: str, *args: Any) -> Any:
        if not self._actors:
            msg = "the embedder is closed"
            raise ClosedError(msg)
        return self._wait(self._actors[self._next()].call.remote(method, *args), method, *args)

    def _wait(self, ref: Any, method: str, *args: Any) -> Any:
        """Return the answer of a call, asking again when its actor died."""
        attempts = 1
        while True:
            try:
                answer, error = ray.get(ref, timeout=CALL_TIMEOUT_S)
            except ray_errors.RayError as exc:
                if attempts == ATTEMPTS:
                    msg = f"no model host answered: {type(exc).__name__}"
                    raise ModelFailedError(msg) from exc
                attempts += 1
                ref = self._actors[self._next()].call.remote(method, *args)
            else:
                if error is not None:
                    raise ReverieError.from_wire(error)
                return answer
