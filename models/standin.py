"""A stand-in embedder: no model, no download, the same vectors on every machine.

A text is the sum of its words' vectors; a word is the sum of random signs drawn from hashes of the
word, its English stem and its character trigrams; runs of Chinese, Japanese and Korean characters
count by single characters and pairs. Two texts are similar as far as they share these, so that
paraphrases that share words rank first; synonyms are strangers. All sums are of small integers,
exact in float32, so that no processor rounds differently.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import shake_128

import numpy as np
import Stemmer
from stop_words import get_stop_words

from reverie.memory_graph.errors import ClosedError, ConfigError, InvalidValueError
from reverie.models.protocol import EmbedderInfo, Float32, TextRole

_WORD_WEIGHT = 6  # the word as it stands; its stem counts as much again
_GRAM_WEIGHT = 2  # one of its trigrams
_STOP_WEIGHT = 1  # "the", "was"
_PAIR_WEIGHT = 8  # two neighbouring CJK characters
_CHAR_WEIGHT = 3  # one of them
_GRAM = 3
_MAX_WORD_CHARS = 64
_CACHED_WORDS = 8192  # x 4 dim bytes each

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
# Combining marks of the Indic and South-East Asian scripts are part of a word, but not of \w.
_LETTER = f"[^\\W_{_CJK}]|[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0dff\u0e30-\u0fff]"
_TOKEN = re.compile(f"([{_CJK}]+)|((?:{_LETTER})+)|([\u2600-\u27bf\U0001f000-\U0001faff])")
_ACCENTS = re.compile("[\u0300-\u036f]")
_STOP_WORDS = frozenset(part for word in get_stop_words("en") for part in re.findall(r"\w+", word))


class HashEmbedder:
    """An `Embedder` for tests and for a first run without a download."""

    def __init__(self, dim: int = 256, *, max_tokens: int = 256) -> None:
        """Make an embedder of `dim` dimensions that reads `max_tokens` distinct words.

        Raises:
            ConfigError: `dim` is no multiple of 8 from 8 to 4096, or `max_tokens` is below 1.
        """
        if dim % 8 or not 8 <= dim <= 4096 or max_tokens < 1:  # noqa: PLR2004 - in the message
            msg = (
                f"dim must be a multiple of 8 up to 4096, max_tokens 1 or more: {dim}, {max_tokens}"
            )
            raise ConfigError(msg)
        self._info = EmbedderInfo(f"standin:{dim}:1", dim, max_tokens)
        self._stemmer = Stemmer.Stemmer("english")
        self._lock = threading.Lock()  # the stemmer is not safe for threads
        self._closed = False
        self._token_vector = lru_cache(_CACHED_WORDS)(self._make_token_vector)

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return self._info

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return unit rows, C-contiguous float32 of shape (len(texts), dim); the role is ignored.

        Raises:
            InvalidValueError: an unknown role.
            ClosedError: the embedder was closed.
        """
        self._require_open()
        if role not in {"query", "passage"}:
            msg = f"role must be query or passage, not {role!r}"
            raise InvalidValueError(msg, role=str(role))
        rows = np.empty((len(texts), self._info.dim), np.float32)
        with self._lock:
            for row, text in zip(rows, texts, strict=True):
                row[:] = self._sum(text)
        rows /= np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return rows

    def count_tokens(self, text: str) -> int:
        """Return how many words and CJK characters `text` has.

        Raises:
            ClosedError: the embedder was closed.
        """
        self._require_open()
        return sum(len(match[1]) if match[1] else 1 for match in _TOKEN.finditer(_fold(text)))

    def unknown_share(self, text: str) -> float:  # noqa: ARG002 - the protocol's argument
        """Return 0: every word can be hashed.

        Raises:
            ClosedError: the embedder was closed.
        """
        self._require_open()
        return 0.0

    def close(self) -> None:
        """Refuse further calls."""
        self._closed = True
        self._token_vector.cache_clear()

    def _require_open(self) -> None:
        if self._closed:
            msg = f"the embedder {self._info.id} was closed"
            raise ClosedError(msg)

    def _sum(self, text: str) -> Float32:
        """Return the integer vector of `text`; never zero. Each token counts once."""
        tokens = list(dict.fromkeys(_tokens(_fold(text))))[: self._info.max_tokens]
        if tokens:
            total: Float32 = np.add.reduce([self._token_vector(token) for token in tokens])
            if total.any():
                return total
        return self._signs(f"t{text}")

    def _make_token_vector(self, token: str) -> Float32:
        weights = {"w" + token: _WORD_WEIGHT}
        if re.match(f"[{_CJK}]", token):
            weights["w" + token] = _CHAR_WEIGHT if len(token) == 1 else _PAIR_WEIGHT
        elif token in _STOP_WORDS:
            weights["w" + token] = _STOP_WEIGHT
        else:
            weights["s" + self._stemmer.stemWord(token)] = _WORD_WEIGHT
            marked = f"^{token}$"
            for at in range(len(marked) - _GRAM + 1):
                weights["g" + marked[at : at + _GRAM]] = _GRAM_WEIGHT
        vector = np.zeros(self._info.dim, np.float32)
        for feature, weight in weights.items():
            vector += weight * self._signs(feature)
        return vector

    def _signs(self, feature: str) -> Float32:
        digest = shake_128(feature.encode("utf-8", "replace")).digest(self._info.dim // 8)
        bits = np.unpackbits(np.frombuffer(digest, np.uint8))
        return bits.astype(np.float32) * 2 - 1


def _fold(text: str) -> str:
    """Return `text` without case, width variants and Latin accents."""
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", bare).casefold()


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        run = match[1]
        if run:
            yield from run
            yield from (run[at : at + 2] for at in range(len(run) - 1))
        else:
            yield match[0][:_MAX_WORD_CHARS]
