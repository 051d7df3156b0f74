"""The best of many scores, against sorting them all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.topk import top

SIZES = st.integers(0, 3000)  # on both sides of what is sorted whole, and of choosing by blocks


@given(
    size=SIZES,
    k=st.integers(-1, 120),
    different=st.integers(1, 5000),
    missing=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_top_is_the_beginning_of_a_stable_sort(
    size: int, k: int, different: int, missing: float, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    scores = chance.integers(0, different, size) / 1000  # few values: many are equal
    scores[chance.random(size) < missing] = -np.inf
    order = sorted(np.flatnonzero(scores > -np.inf).tolist(), key=lambda i: (-scores[i], i))
    rows, values = top(scores, k)
    assert rows.tolist() == order[: max(0, k)]
    assert values == pytest.approx(scores[rows])


def test_what_differs_after_the_sixth_decimal_is_equal() -> None:
    scores = np.zeros(2000)
    scores[[7, 1500, 1900]] = 0.5, 0.5 + 3e-7, 0.5 + 2e-6
    rows, _ = top(scores, 3)
    assert rows.tolist() == [1900, 7, 1500]
