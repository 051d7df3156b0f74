"""The signals of the ranking: what speaks for a text, each a function over all texts of a user.

Each returns one number per row of `Passages`, about 0 to 1 (a z-score divided by 5 for `meaning`).
`WEIGHTS` holds what each counts; the score of a hit is the sum. How the weights came about is told
in benchmarks/learn_weights.py; recency, importance, outdated, entity and graph are set by hand.

    words       BM25 of the text
    around      BM25 of the text with the turns around it, each step away counting less: an answer
                stands beside its question, and seldom repeats its words
    session     BM25 of the whole session
    meaning     cosine of the question with the text's vector, mixed with those around it
    speaker     the question names who said it
    entity      the question names somebody or something that the text mentions
    time        the question names a time, and it was said then, or soon after
    answer      the text has what is asked for: a time, a number, a name
    names       how many names the text has
    replies     the turn before it asks something
    asks        the text itself is a question
    length      how many different words the text has
    graph       what a walk from the best reaches (spread.py)
    recency     when it was last read, said or true (decay.py)
    importance  as it was judged when it was kept
    outdated    it no longer holds
    summary     it is one: what it tells is told better by what it was made of
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph import cues
from reverie.memory_graph.asked import Entries
from reverie.memory_graph.passages import (
    EARLIER,
    K1,
    LATER,
    SAYS_NAME,
    SAYS_NAMES,
    SAYS_NUMBER,
    SAYS_TIME,
    Float64,
    Passages,
    Rows,
)
from reverie.memory_graph.topk import top
from reverie.memory_graph.vector_table import VectorTable

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "words": 0.24,
        "around": 1.18,
        "session": 0.48,
        "meaning": 1.0,
        "speaker": 0.84,
        "entity": 0.6,
        "time": 1.08,
        "answer": 0.67,
        "names": 0.14,
        "replies": 0.16,
        "asks": -0.2,
        "length": 0.09,
        "graph": 0.2,
        "recency": 0.1,
        "importance": 0.15,
        "outdated": -1.0,
        "summary": -2.0,
    }
)
# Questions in Chinese: BM25 over pairs of characters says less than over words, and a multilingual
# embedder more than MiniLM: benchmarks/learn_weights_zh.py.
HAN_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        **WEIGHTS,
        "words": 0.16,
        "around": 0.47,
        "session": 0.0,
        "speaker": 0.38,
        "time": 0.56,
        "answer": 0.15,
        "names": 0.0,
        "replies": 0.02,
        "asks": -0.24,
        "length": 0.07,
    }
)
Z_SPREAD = 5.0  # z-scores are divided by it
MIXED_SPREAD = 1.39  # how much closer together cosines with mixed vectors lie; measured
MANY, NEAR_BEST = 2048, 128  # see `around`
DAY_S = 86_400.0
AFTER_S, BEFORE_S = 7 * DAY_S, 3 * DAY_S  # what happened is told some days later, seldom before


def weights_for(question: str) -> Mapping[str, float]:
    """Return the weights for the script of a question: most of its letters decide."""
    if question.isascii():
        return WEIGHTS
    letters = [letter for letter in question if letter.isalpha()]
    han = sum("\u3400" <= letter <= "\u9fff" for letter in letters)
    return HAN_WEIGHTS if 2 * han > len(letters) else WEIGHTS


def around(entries: Entries, passages: Passages, own: Float64 | None = None) -> Float64:
    """Return BM25 over each turn with what is around it; a text that is no turn stands alone.

    Args:
        entries: where the words of the question stand.
        passages: all texts.
        own: BM25 of each text alone, float64 (count,), if every text may answer. Of more than
            `MANY` texts, only those near the `NEAR_BEST` best by it are then looked at, and the
            others have 0.
    """
    count = passages.count
    place, row, times, weight = entries
    if not row.size:
        return np.zeros(count)
    frequency = np.zeros((weight.size, count + 1))  # one more, for the row -1
    frequency.reshape(-1)[place * np.intp(count + 1) + row] = times
    rows = slice(0, count) if own is None or count <= MANY else _near_best(own, passages)
    # A word counts for the turns after it, for which it lies before, and for those before it.
    amount = frequency[:, rows].copy()
    for distance, (back, on) in enumerate(passages.near, 1):
        amount += EARLIER**distance * frequency[:, back[rows]]
        amount += LATER**distance * frequency[:, on[rows]]
    scores = np.zeros(count)
    amount /= amount + passages.window_norm[rows]
    scores[rows] = weight @ amount
    return scores


def _near_best(own: Float64, passages: Passages) -> Rows:
    """Return the rows of the best by their own words, and of what is around these, ascending."""
    some = np.flatnonzero(own > 0)
    best = some[top(own[some], NEAR_BEST)[0]]
    is_near = np.zeros(passages.count + 1, np.bool_)  # one more, for the row -1
    is_near[best] = True
    for back, on in passages.near:
        is_near[back[best]] = is_near[on[best]] = True
    return np.flatnonzero(is_near[:-1])


def session(entries: Entries, passages: Passages) -> Float64:
    """Return for each text BM25 of the session that it belongs to, taken as one document."""
    groups = len(passages.groups)
    column = passages.columns
    place, row, times, weight = entries
    if not groups or not row.size:
        return np.zeros(passages.count)
    if not passages.only_turns:
        turn = column["is_turn"][row]
        place, row, times = place[turn], row[turn], times[turn]
    group = column["group"]
    amount = np.bincount(
        place * np.intp(groups) + group[row], weights=times, minlength=weight.size * groups
    ).reshape(weight.size, groups)
    having = np.count_nonzero(amount, axis=1)
    idf = np.log1p((groups - having + 0.5) / (having + 0.5)) * (K1 + 1)
    scores = (idf[:, None] * amount / (amount + passages.group_norm)).sum(axis=0)
    found: Float64 = np.append(scores, 0.0)[group]  # group -1 is none
    return found


def time(passages: Passages, times: Sequence[tuple[float, float]]) -> Float64:
    """Return how near each text is to the nearest of some times, (from, to) in seconds: 1 within,
    falling to 1/e in `AFTER_S` after the end, and in `BEFORE_S` before the beginning."""
    at = passages.columns["at"]
    best = np.zeros(passages.count)
    for start, end in times:
        after, before = np.maximum(0.0, at - end), np.maximum(0.0, start - at)
        np.maximum(best, np.exp(-after / AFTER_S - before / BEFORE_S), out=best)
    return best


def answer(passages: Passages, question: str) -> Float64 | None:
    """Return whether each text has what the question asks for; None if it asks for nothing."""
    wanted = cues.asks(question)
    if not any(wanted):
        return None
    has = passages.columns["answers"]
    best = np.zeros(passages.count)
    if wanted.time:
        np.maximum(best, (has & SAYS_TIME) > 0, out=best)
    if wanted.number:
        np.maximum(best, (has & SAYS_NUMBER) > 0, out=best)
    if wanted.name:
        names = ((has & SAYS_NAME) > 0) * 0.5 + ((has & SAYS_NAMES) > 0) * 0.5
        np.maximum(best, names, out=best)
    return best


def speaker(passages: Passages, named: Iterable[str]) -> Float64 | None:
    """Return whether one of `named` (node ids) said each text; None if none of them spoke."""
    numbers = [passages.speakers[s] for s in named if s in passages.speakers]
    if not numbers:
        return None
    who = passages.columns["speaker"]
    found: Float64 = np.isin(who, numbers).astype(np.float64)
    return found


def mixed(
    passages: Passages,
    rows: Rows,
    vector_rows: Rows,
    cosines: Float64,
    table: VectorTable,
    known: NDArray[np.bool_] | None = None,
) -> tuple[Float64, NDArray[np.bool_]]:
    """Return the cosines of `rows` with the question, their vectors mixed with those around.

    Args:
        passages: all texts.
        rows: which of them are asked for.
        vector_rows: row in the table of every text, -1 without a vector.
        cosines: of every row of the table, float64.
        table: the vectors.
        known: which texts may be mixed in, bool (count,); all by default.

    Returns:
        (cosines, of no meaning for a text without a vector; whether anything was mixed in).
    """
    own = vector_rows[rows]
    total = cosines[own]
    several = np.zeros(rows.size, np.bool_)
    steps = []
    for weight, there in passages.around(rows):
        is_there = there >= 0 if known is None else (there >= 0) & known[there]
        vector = np.where(is_there, vector_rows[there], -1)
        real = vector >= 0
        if real.any():
            total = total + np.where(real, weight * cosines[vector], 0.0)
            several |= real
            steps.append((weight, vector, real))
    several &= own >= 0
    norms = passages.norms if known is None else np.full_like(passages.norms, np.nan)
    missing = np.flatnonzero(several & np.isnan(norms[rows]))
    if missing.size:
        whole = table.matrix[own[missing]].astype(np.float64)
        for weight, vector, real in steps:
            whole += (weight * real[missing])[:, None] * table.matrix[vector[missing]]
        norms[rows[missing]] = np.linalg.norm(whole, axis=1)
    return np.where(several, total / np.where(several, norms[rows], 1.0), total), several
