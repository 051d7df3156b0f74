"""A bounded memory of vectors, for questions that are asked again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from reverie.memory_graph.errors import ConfigError
from reverie.models.protocol import CrossEncoder, Embedder, EmbedderInfo, Float32, TextRole

_Key: TypeAlias = tuple[TextRole, str]

_ENTRY_BYTES = 400  # of Python objects around one vector and its key
_CHAR_BYTES = 4  # upper bound of a character in a str


class CacheStats(msgspec.Struct, frozen=True):
    """Counts since the start; `size_bytes` is what the cache holds now, estimated from above."""

    hits: int
    misses: int
    entries: int
    size_bytes: int


class CachedEmbedder:
    """An `Embedder` in front of another, which keeps the vectors used last."""

    def __init__(self, inner: Embedder, *, max_bytes: int = 8 << 20) -> None:
        """Wrap `inner`; at most `max_bytes` of vectors and texts are kept.

        Raises:
            ConfigError: `max_bytes` is negative.
        """
        if max_bytes < 0:
            msg = f"max_bytes must be 0 or more, not {max_bytes}"
            raise ConfigError(msg)
        self._inner = inner
        self._max_bytes = max_bytes
        self._rows: OrderedDict[_Key, Float32] = OrderedDict()
        self._size_bytes = 0
        self._hits = 0
        self._misses = 0
        self._lock = threading.Lock()

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the inner embedder."""
        return self._inner.info

    def pair_share(self) -> float:
        """Return that of the inner embedder; 0 when it cannot weigh pairs."""
        return self._inner.pair_share() if isinstance(self._inner, CrossEncoder) else 0.0

    def weigh_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        """Return what the inner embedder says; nothing of it is kept.

        Raises:
            ConfigError: the inner embedder cannot weigh pairs.
        """
        if not isinstance(self._inner, CrossEncoder):
            msg = f"the embedder {self.info.id} has no adapter that weighs pairs"
            raise ConfigError(msg)
        return self._inner.weigh_pairs(pairs)

    @property
    def stats(self) -> CacheStats:
        """How often the cache answered, and what it holds."""
        with self._lock:
            return CacheStats(self._hits, self._misses, len(self._rows), self._size_bytes)

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return unit rows as the inner embedder does; only texts not kept are passed on to it,
        each once."""
        keys: list[_Key] = [(role, text) for text in texts]
        with self._lock:
            known = {key: self._rows[key] for key in keys if key in self._rows}
            for key in known:
                self._rows.move_to_end(key)
            found = sum(key in known for key in keys)
            self._hits += found
            self._misses += len(keys) - found
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            fresh = self._inner.embed([text for _, text in missing], role)
            known.update(zip(missing, fresh, strict=True))
            with self._lock:
                for key in missing:
                    self._keep(key, known[key].copy())  # a row alone would hold its whole matrix
        rows = np.empty((len(texts), self.info.dim), np.float32)
        for index, key in enumerate(keys):
            rows[index] = known[key]
        return rows

    def count_tokens(self, text: str) -> int:
        """Return what the inner embedder counts."""
        return self._inner.count_tokens(text)

    def unknown_share(self, text: str) -> float:
        """Return what the inner embedder says."""
        return self._inner.unknown_share(text)

    def clear(self) -> None:
        """Drop every cached row."""
        with self._lock:
            self._rows.clear()
            self._size_bytes = 0

    def close(self) -> None:
        """Forget the vectors and close the inner embedder."""
        with self._lock:
            self._rows.clear()
            self._size_bytes = 0
        self._inner.close()

    def _keep(self, key: _Key, row: Float32) -> None:
        if key in self._rows or _cost(key, row) > self._max_bytes:
            return
        self._rows[key] = row
        self._size_bytes += _cost(key, row)
        while self._size_bytes > self._max_bytes:
            old_key, old_row = self._rows.popitem(last=False)
            self._size_bytes -= _cost(old_key, old_row)


def _cost(key: _Key, row: Float32) -> int:
    return _ENTRY_BYTES + _CHAR_BYTES * len(key[1]) + row.nbytes
