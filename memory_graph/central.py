"""Which few of many statements stand for all: those like many others, and unlike each other.

A statement is like another by meaning (the cosine of their vectors, above what any two have) and by
words (rare ones count more). Centrality is the stationary distribution of a walk from statement to
like statement that jumps, now and then, to one that matters by itself (LexRank, Erkan and Radev
2004, with a biased jump). The choice then goes by maximal marginal relevance (Carbonell and
Goldstein 1998).

Pure functions; sums are taken in one order and rounded, so the hash seed changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph.topk import DECIMALS

Float64: TypeAlias = NDArray[np.float64]

STAY = 0.85  # chance to walk on rather than to jump
STEPS = 40
OWN_SHARE = 0.4  # of a score: what a statement is by itself, the rest is centrality
RELEVANCE = 0.7  # of a statement's worth when it is chosen, the rest is being new
SAME = 0.5  # so like one that was chosen that it says nothing new


def likeness(
    words: Sequence[frozenset[str]], vectors: Sequence[NDArray[np.float32] | None]
) -> Float64:
    """Return how like each two statements are, 0 to 1: symmetric, shape (n, n), diagonal 0.

    Args:
        words: the terms of each.
        vectors: the unit vector of each, or None; likeness is by words alone then.
    """
    shared = _by_words(words)
    there = [i for i, vector in enumerate(vectors) if vector is not None]
    if len(there) > 1:
        matrix = np.array([vectors[i] for i in there], np.float64)
        cosines = matrix @ matrix.T
        usual = float(np.median(cosines[np.triu_indices(len(there), 1)]))
        meant = np.clip((cosines - usual) / max(1.0 - usual, 1e-3), 0.0, 1.0)
        shared[np.ix_(there, there)] = (shared[np.ix_(there, there)] + meant) / 2
    np.fill_diagonal(shared, 0.0)
    like: Float64 = np.round(shared, DECIMALS)
    return like


def _by_words(words: Sequence[frozenset[str]]) -> Float64:
    """Return the weighted share of common words (Jaccard) of each two."""
    count = len(words)
    held = Counter(word for some in words for word in some)
    columns = {word: i for i, word in enumerate(sorted(held))}
    has = np.zeros((count, len(columns)))
    for row, some in enumerate(words):
        has[row, [columns[word] for word in some]] = 1.0
    weights = np.array([math.sqrt(math.log1p(count / held[word])) for word in columns])
    common = (has * weights) @ has.T
    sizes = common.diagonal()
    either = sizes[:, None] + sizes[None, :] - common
    shares: Float64 = np.divide(common, either, out=np.zeros_like(common), where=either > 0)
    return shares


def scores(like: Float64, own: Sequence[float]) -> Float64:
    """Return how well each statement stands for all, 0 to 1, shape (n,).

    Args:
        like: as `likeness` gives it.
        own: what each is worth by itself, positive.
    """
    worth = np.asarray(own, np.float64)
    jump = worth / worth.sum()
    out = like.sum(axis=1)
    lonely = out <= 0
    walk = np.divide(like, out[:, None], out=np.zeros_like(like), where=~lonely[:, None])
    here = jump
    for _ in range(STEPS):
        here = STAY * (here @ walk + here[lonely].sum() * jump) + (1 - STAY) * jump
    central = here / here.max()
    found: Float64 = np.round(OWN_SHARE * worth / worth.max() + (1 - OWN_SHARE) * central, DECIMALS)
    return found


def chosen(
    score: Float64, like: Float64, sizes: Sequence[int], budget: int, most: int
) -> list[int]:
    """Return the statements that are told, best first.

    Args:
        score: as `scores` gives it; of equal ones the first is taken.
        like: as `likeness` gives it.
        sizes: of each, in the unit of `budget`.
        budget: of all that is chosen; the best one is chosen though it be larger.
        most: how many at most.
    """
    picked: list[int] = []
    left = budget
    nearest = np.zeros(len(sizes))
    can = np.ones(len(sizes), np.bool_)
    while len(picked) < most and can.any():
        worth = np.where(can, RELEVANCE * score - (1 - RELEVANCE) * nearest, -np.inf)
        best = int(np.argmax(np.round(worth, DECIMALS)))
        can[best] = False
        if picked and (sizes[best] > left or nearest[best] >= SAME):
            continue
        picked.append(best)
        left -= sizes[best]
        nearest = np.maximum(nearest, like[best])
    return picked
