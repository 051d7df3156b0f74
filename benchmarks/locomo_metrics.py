"""How rankings are scored: recall, nDCG, all evidence within ten, and bootstrap intervals.

All metrics are of one question, 0 to 1, and are averaged over questions. An interval holds the
middle 95% of the means of resampled questions (percentile bootstrap). Two systems are compared by
the differences of each question, resampled in the same way: two systems whose own intervals
overlap may still differ for sure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

CUT = 10  # of nDCG@10 and all@10
RESAMPLES = 2000
MIDDLE = (2.5, 97.5)  # percentiles: 95%
SEED = 0


class Interval(msgspec.Struct, frozen=True):
    """A mean over `count` questions and its 95% interval, in percent."""

    mean: float
    low: float
    high: float
    count: int


def metric_names(ks: Sequence[int]) -> tuple[str, ...]:
    """Return the names of what `score` returns, in order."""
    return (*(f"R@{k}" for k in ks), f"nDCG@{CUT}", f"all@{CUT}")


def score(ranked: Sequence[str], gold: Collection[str], ks: Sequence[int]) -> tuple[float, ...]:
    """Return the metrics of one question, in the order of `metric_names`.

    R@k is the share of the evidence among the first k turns; nDCG@10 discounts a turn at rank r
    by log2(r + 1) and divides by the best that is possible; all@10 is 1 when the first ten hold
    all of the evidence.

    Args:
        ranked: ids of turns, best first, each once.
        gold: ids of the turns that are evidence; at least one.
        ks: cuts of the recall.

    Raises:
        ValueError: no evidence, or an id that is ranked twice.
    """
    if not gold or len(set(ranked)) < len(ranked):
        msg = "a question needs evidence, and each turn has one rank"
        raise ValueError(msg)
    wanted = set(gold)
    found = [turn in wanted for turn in ranked[: max(*ks, CUT)]]
    gain = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(found[:CUT]) if hit)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(len(wanted), CUT)))
    recalls = (sum(found[:k]) / len(wanted) for k in ks)
    return (*recalls, gain / best, float(sum(found[:CUT]) == len(wanted)))


def recall(turns: Collection[str], gold: Collection[str]) -> float:
    """Return the share of the evidence, at least one turn, that is among `turns`."""
    wanted = set(gold)
    return len(wanted & set(turns)) / len(wanted)


def interval(values: Float64) -> Interval:
    """Return the mean of one value per question, shape (n,), n at least 1; the same each time."""
    means = values[_resamples(len(values))].mean(axis=1)
    low, high = np.percentile(means, MIDDLE)
    return Interval(100 * float(values.mean()), 100 * float(low), 100 * float(high), len(values))


@lru_cache(maxsize=8)
def _resamples(count: int) -> NDArray[np.int32]:
    """Return the questions of each resample, shape (RESAMPLES, count)."""
    return np.random.default_rng(SEED).integers(0, count, (RESAMPLES, count), np.int32)


def difference(ours: Float64, theirs: Float64) -> Interval:
    """Return the mean of `ours - theirs`, both of shape (n,) over the same questions."""
    return interval(ours - theirs)
