"""A guard in front of an embedder that somebody else wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from reverie.memory_graph.errors import ConfigError, ModelFailedError, ReverieError
from reverie.models.protocol import Embedder, EmbedderInfo, Float32, TextRole

T = TypeVar("T")

_METHODS = ("embed", "count_tokens", "unknown_share")


class CheckedEmbedder:
    """An `Embedder` that turns whatever another raises or returns wrongly into a typed error."""

    def __init__(self, inner: Any) -> None:
        """Wrap an object.

        Raises:
            ConfigError: it lacks a part of the protocol.
        """
        info = getattr(inner, "info", None)
        missing = [m for m in _METHODS if not callable(getattr(inner, m, None))]
        if not isinstance(info, EmbedderInfo) or missing:
            what = ", ".join([*missing, *([] if isinstance(info, EmbedderInfo) else ["info"])])
            msg = f"{type(inner).__name__} is no embedder: it lacks {what} (see models/protocol.py)"
            raise ConfigError(msg, setting="embedder")
        self._inner: Embedder = inner

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return self._inner.info

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return float32 (len(texts), dim); raises ModelFailedError when it gets anything else."""
        rows = _guarded(lambda: np.asarray(self._inner.embed(texts, role), np.float32))
        wanted = (len(texts), self.info.dim)
        if rows.shape != wanted:
            msg = f"embedder {self.info.id} returned shape {rows.shape}, not {wanted}"
            raise ModelFailedError(msg)
        if not np.isfinite(rows).all():
            msg = f"embedder {self.info.id} returned a number that is not finite"
            raise ModelFailedError(msg)
        return rows

    def count_tokens(self, text: str) -> int:
        """Return what the inner embedder counts; raises ModelFailedError."""
        return _guarded(lambda: int(self._inner.count_tokens(text)))

    def unknown_share(self, text: str) -> float:
        """Return what the inner embedder says; raises ModelFailedError."""
        return _guarded(lambda: float(self._inner.unknown_share(text)))

    def close(self) -> None:
        """Leave the inner embedder open: who made it closes it."""


def _guarded(call: Callable[[], T]) -> T:
    try:
        return call()
    except ReverieError:
        raise
    except Exception as exc:
        msg = f"the embedder failed: {type(exc).__name__}: {exc}"
        raise ModelFailedError(msg) from exc
