"""Lazy decay: an edge stores (weight, at) and its weight at time t is computed, never swept.

    weight(t) = floor + (weight - floor) * 2 ** (-(t - at) / half_life)

A touch adds to the decayed value, `new = weight(t) + contribution`, bounded by `CEILING`. The
half-life is per kind of edge and stretched by the importance of its ends. Decay only re-ranks:
the floor keeps every edge walkable, so that a strong match is still found after a year (a
published system that multiplied scores by exp(-0.03 * days) measured recall 0.000 on a 242-day
conversation).

The constants are part of the journal format: reinforcement is applied on replay, so changing one
changes what an old journal means.
"""

from __future__ import annotations

import math

from reverie.memory_graph import nodes

DAY_S = 86_400.0
FLOOR = 0.1
CEILING = 8.0
TOUCH_GAIN = 0.25  # contribution of one reading, before importance and emotion

# Structural edges (who said it, in which session, what came before, what it derives from) state
# facts that do not fade; associations do.
HALF_LIFE_S: dict[str, float] = {
    nodes.IN_SESSION: math.inf,
    nodes.SENT_BY: math.inf,
    nodes.PREVIOUS: math.inf,
    nodes.DERIVED_FROM: math.inf,
    nodes.SUMMARIZES: math.inf,
    nodes.SUPERSEDES: math.inf,
    nodes.PARTICIPATED_IN: 60 * DAY_S,
    nodes.CONTAINS_ENTITY: 90 * DAY_S,
    nodes.IN_TOPIC: 90 * DAY_S,
    nodes.RELATED_TO: 30 * DAY_S,
    nodes.RELATION: 180 * DAY_S,
}


def half_life_s(kind: str, importance: float = 0.5) -> float:
    """Return the half-life in seconds of an edge of `kind` whose more important end has
    `importance` (0 to 1): halved at 0, doubled at 1, infinite for structural kinds."""
    return HALF_LIFE_S[kind] * math.exp2(2.0 * importance - 1.0)


def weight_at(weight: float, at: float, t: float, half_life: float, floor: float = FLOOR) -> float:
    """Return the weight at time `t` (seconds) of an edge that had `weight` at time `at`.

    A weight at or below the floor does not decay, and nothing decays backwards: for `t` before
    `at` the stored weight is returned.
    """
    if t <= at or weight <= floor or half_life == math.inf:
        return weight
    return floor + (weight - floor) * math.exp2(-(t - at) / half_life)


def contribution(importance: float, sentiment: float = 0.0) -> float:
    """Return what one touch adds: more for the important and the emotional (either sign).

    Args:
        importance: 0 to 1; 0.5 is neutral.
        sentiment: -1 to 1; its absolute value counts.
    """
    return TOUCH_GAIN * (0.5 + importance) * (1.0 + 0.5 * abs(sentiment))


def reinforce(
    weight: float, at: float, t: float, half_life: float, gain: float
) -> tuple[float, float]:
    """Return the edge's new `(weight, at)` after a touch of `gain` at time `t`: the old value,
    decayed, plus the gain. A touch from the past (t < at) adds without moving `at` back."""
    return min(CEILING, weight_at(weight, at, t, half_life) + gain), max(at, t)


def recency(t: float, now: float, half_life: float = 30 * DAY_S) -> float:
    """Return 1 for something of now, 0.5 after one half-life, towards 0; 1 for the future."""
    return 1.0 if t >= now else math.exp2(-(now - t) / half_life)
