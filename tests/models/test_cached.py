"""The cache of vectors against an embedder without one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.errors import ClosedError, ConfigError
from reverie.models.cached import CachedEmbedder
from reverie.models.protocol import Float32, TextRole
from reverie.models.standin import HashEmbedder


class Counting(HashEmbedder):
    """Notes what it is asked, and tells the roles apart."""

    def __init__(self) -> None:
        super().__init__(32)
        self.asked: list[tuple[str, TextRole]] = []

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        self.asked += [(text, role) for text in texts]
        return super().embed([f"{role} {text}" for text in texts], role)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6)), st.integers(0, 4000))
def test_answers_as_if_it_were_not_there(calls: list[list[str]], max_bytes: int) -> None:
    cached, plain = CachedEmbedder(Counting(), max_bytes=max_bytes), Counting()
    for texts in calls:
        for role in ("query", "passage"):
            assert np.array_equal(cached.embed(texts, role), plain.embed(texts, role))
        assert cached.stats.size_bytes <= max_bytes
    stats = cached.stats
    assert stats.hits + stats.misses == 2 * sum(map(len, calls))
    assert stats.size_bytes == 0 or stats.entries


def test_asks_once_for_each_text_and_role() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    cached.embed(["a", "b", "a"], "query")
    cached.embed(["b"], "query")
    cached.embed(["a"], "passage")
    assert inner.asked == [("a", "query"), ("b", "query"), ("a", "passage")]
    assert (cached.stats.hits, cached.stats.misses) == (1, 4)


def test_forgets_what_was_used_longest_ago() -> None:
    inner = Counting()
    cached = CachedEmbedder(inner)
    cached.embed(["a"], "query")
    room = cached.stats.size_bytes
    cached = CachedEmbedder(inner, max_bytes=2 * room)
    for text in ("a", "b", "a", "c"):
        cached.embed([text], "query")
    inner.asked.clear()
    cached.embed(["a", "c", "b"], "query")
    assert inner.asked == [("b", "query")]


def test_a_changed_answer_leaves_the_cache_alone() -> None:
    cached = CachedEmbedder(Counting())
    first = cached.embed(["a"], "query")
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(cached.embed(["a"], "query"), kept)


def test_threads_share_one() -> None:
    cached, plain = CachedEmbedder(Counting(), max_bytes=3000), Counting()
    texts = [str(number % 7) for number in range(300)]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: cached.embed([text], "query")[0], texts))
    assert np.array_equal(np.array(rows), plain.embed(texts, "query"))
    assert cached.stats.size_bytes <= 3000


def test_close_closes_the_inner() -> None:
    cached = CachedEmbedder(Counting())
    cached.embed(["a"], "query")
    cached.close()
    assert cached.stats.entries == 0
    with pytest.raises(ClosedError):
        cached.embed(["a"], "query")
    with pytest.raises(ConfigError):
        CachedEmbedder(Counting(), max_bytes=-1)
