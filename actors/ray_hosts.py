"""Model hosts on Ray: the embedding model in actors, so that a cluster's cores embed.

Embedding has no effect, so a call that died with its actor is simply made again; unlike the
shards, Ray may restart these and the client may ask any of them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import exceptions as ray_errors

from reverie.actors.ray_backend import is_of_ray
from reverie.memory_graph.errors import (
    ClosedError,
    ModelFailedError,
    ModelUnavailableError,
    ReverieError,
    WireError,
)
from reverie.models.cached import CachedEmbedder
from reverie.models.embedders import open_embedder
from reverie.models.protocol import EmbedderInfo, Float32, TextRole

CALL_TIMEOUT_S = 600.0
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0


class EmbedderActor:
    """What runs in the actor: an embedder. Its errors travel as values."""

    def __init__(self, spec: str, folder: str, threads: int) -> None:
        """Load the model; an error is kept for the calls. Ray does not start an actor again whose
        `__init__` raised."""
        self._error: WireError | None = None
        try:
            # The cache keeps nothing; it answers for models that cannot weigh pairs, too.
            model = open_embedder(spec, Path(folder), threads=threads)
            self._model = CachedEmbedder(model, max_bytes=0)
        except ReverieError as exc:
            self._error = exc.to_wire()
        except Exception as exc:  # noqa: BLE001 (whatever a model raises)
            self._error = ModelFailedError(f"{type(exc).__name__}: {exc}").to_wire()

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

    def __init__(
        self, spec: str, folder: Path, *, threads: int, hosts: int, retry_s: float = 60.0
    ) -> None:
        """Start `hosts` actors, each with its own copy of the model.

        Args:
            spec: the model; see `open_embedder`.
            folder: where models lie, on every node.
            threads: of each host.
            hosts: how many, at least 1.
            retry_s: how long a call is made again, of one host after the other, while they restart.

        Raises:
            ModelError: the model cannot be opened there.
            ModelUnavailableError: no host starts.
        """
        self._retry_s = retry_s
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
        """Return unit rows, float32 (len(texts), dim); the texts are shared out to the hosts.

        Raises:
            ModelFailedError: the model raised.
            ModelUnavailableError: no host answered within `retry_s`, or within `CALL_TIMEOUT_S`.
        """
        share = max(1, -(-len(texts) // max(1, len(self._actors))))
        parts = [list(texts[i : i + share]) for i in range(0, len(texts), share)]
        if not parts:
            return np.empty((0, self._info.dim), np.float32)
        refs = [(part, self._send("embed", part, role)) for part in parts]
        until = time.monotonic() + self._retry_s
        return np.concatenate([self._wait(until, ref, "embed", part, role) for part, ref in refs])

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has for this model."""
        count: int = self._ask("count_tokens", text)
        return count

    def unknown_share(self, text: str) -> float:
        """Return the share of tokens that the vocabulary does not know."""
        share: float = self._ask("unknown_share", text)
        return share

    def pair_share(self) -> float:
        """Return the share of the model's word about pairs; 0 when it cannot weigh them."""
        share: float = self._ask("pair_share")
        return share

    def weigh_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        """Return the probabilities of `PAIR_CHOICES` for known and new statements; see
        `CrossEncoder`.

        Raises:
            ConfigError, ModelFailedError, ModelUnavailableError: as `embed`, or no such adapter.
        """
        rows: list[list[float] | None] = self._ask("weigh_pairs", list(pairs))
        return rows

    def close(self) -> None:
        """Stop the actors."""
        for actor in self._actors:
            with suppress(ray_errors.RayError):
                ray.kill(actor, no_restart=True)
        self._actors = []

    def _ask(self, method: str, *args: Any) -> Any:
        return self._wait(
            time.monotonic() + self._retry_s, self._send(method, *args), method, *args
        )

    def _send(self, method: str, *args: Any) -> Any:
        """Call the next host; return a reference to the answer, or the error that kept the call
        from being sent."""
        with self._lock:
            actors = self._actors
            if not actors:
                msg = "the embedder is closed"
                raise ClosedError(msg)
            actor = actors[next(self._turns)]
        try:
            return actor.call.remote(method, *args)
        except ray_errors.RayError as exc:  # there is no room for it
            return exc

    def _wait(self, until: float, ref: Any, method: str, *args: Any) -> Any:
        """Return the answer of a call, asking again until then when its actor died."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                if isinstance(ref, ray_errors.RayError):
                    raise ref
                answer, error = ray.get(ref, timeout=CALL_TIMEOUT_S)
            except ray_errors.GetTimeoutError as exc:
                msg = f"a model host did not answer within {CALL_TIMEOUT_S:g} s"
                raise ModelUnavailableError(msg) from exc
            except ray_errors.RayError as exc:
                if isinstance(exc, ray_errors.RayTaskError) and not is_of_ray(exc):
                    msg = f"a model raised {type(exc.cause).__name__}: {exc.cause}"
                    raise ModelFailedError(msg) from exc
                if time.monotonic() + pause > until:
                    msg = f"no model host answered within {self._retry_s:g} s: {type(exc).__name__}"
                    raise ModelUnavailableError(msg) from exc
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE_S)
                ref = self._send(method, *args)
            else:
                if error is not None:
                    raise ReverieError.from_wire(error)
                return answer
