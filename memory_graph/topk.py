"""The best rows of a score array, with ties broken the same way everywhere.

Scores are rounded to 6 decimals before they are compared, so that the last bits of a sum do not
decide. That is not enough after a matrix product, in which equal rows may differ by where they
stand: `rescore` computes the best ones anew, each by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Positions: TypeAlias = NDArray[np.intp]
Scores: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Rescore: TypeAlias = Callable[[Positions], Scores]

DECIMALS = 6
MILLION = 1_000_000  # 10 to the power of DECIMALS
_MARGIN = 2e-6  # scores further apart than this keep their order when rounded or rescored
_MAX_RESCORED = 1024  # equal scores further down are in no promised order
SMALL = 512
_BLOCK = 16
_FIRST_CHUNK = 64
_CHUNK_GROWTH = 8


def rounded(score: float) -> int:
    """Return a score in millionths, for comparing: `round` takes eight times as long."""
    millionths: int = math.floor(score * MILLION + 0.5)
    return millionths


def top(
    scores: Scores, k: int, rescore: Rescore | None = None
) -> tuple[Positions, NDArray[np.float64]]:
    """Return the positions of the `k` highest scores, best first, and their rounded scores.

    Args:
        scores: shape (n,); -inf marks a position that never counts.
        k: how many, at most; above n is fine, 0 or less gives nothing.
        rescore: gives the scores of positions again, the same for the same row.

    Returns:
        Positions and scores, both of shape (min(k, finite scores),). Equal scores are in the order
        of their positions.
    """
    k = min(k, scores.size)
    if k <= 0:
        return np.empty(0, np.intp), np.empty(0, np.float64)
    if scores.size <= SMALL and rescore is None:  # one sort is quicker than choosing what to sort
        rounded = scores.astype(np.float64).round(DECIMALS)
        order = np.argsort(-rounded, kind="stable")[:k]
        order = order[rounded[order] > -np.inf]
        return order, rounded[order]
    found = _highest(scores, k)
    exact = rescore(found) if rescore and found.size <= _MAX_RESCORED else scores[found]
    rounded = exact.astype(np.float64).round(DECIMALS)
    order = np.argsort(-rounded, kind="stable")[:k]
    return found[order], rounded[order]


def _highest(scores: Scores, k: int) -> Positions:
    """Return, in order, the positions of the `k` highest scores and of what is as good as the last
    of these; none of -inf."""
    blocks = scores.size // _BLOCK
    if k >= scores.size:
        return np.flatnonzero(scores > -np.inf)
    if blocks > 2 * k:
        # The k-th best of the blocks' best is no better than the k-th best of all, and choosing
        # among few is many times as quick.
        best = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
        floor = np.partition(best, blocks - k)[-k] - _MARGIN
        found = (
            np.flatnonzero(scores >= floor) if floor > -np.inf else np.flatnonzero(scores > floor)
        )
        if found.size <= k:
            return found
        chosen = scores[found]
        last = np.partition(chosen, found.size - k)[-k]
        highest: Positions = found[chosen >= last - _MARGIN]
        return highest
    floor = np.partition(scores, scores.size - k)[-k] - _MARGIN
    return np.flatnonzero(scores >= floor) if floor > -np.inf else np.flatnonzero(scores > floor)


def top_accepted(
    scores: Scores, k: int, accept: Callable[[int], bool], rescore: Rescore | None = None
) -> list[tuple[int, float]]:
    """Return up to `k` (position, score) that `accept` lets through, ranked as by `top`.

    `accept` is asked from the top down and no further than needed: a filter reads the graph, which
    costs more than the ranking.
    """
    kept: list[tuple[int, float]] = []
    asked: set[int] = set()
    size = max(_FIRST_CHUNK, 2 * k)
    while len(kept) < k:
        positions, values = top(scores, size, rescore)
        for position, value in zip(positions.tolist(), values.tolist(), strict=True):
            if len(kept) == k:
                break
            if position not in asked:
                asked.add(position)
                if accept(position):
                    kept.append((position, value))
        if size >= scores.size:
            break
        size *= _CHUNK_GROWTH
    return kept
