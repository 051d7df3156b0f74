"""Rankings to hold reverie against, from words and vectors alone, without a graph.

    BM25         Okapi BM25 (k1 1.5, b 0.75) over stemmed words without stop words
    dense        cosine of the embedder that reverie uses
    rank fusion  reciprocal rank fusion (k 60) of these two
    linear6      a weighted sum of six signals: BM25, BM25 with the turn before, dense with the
                 date, whether the speaker is named in the question, BM25 of the session, length

Okapi BM25: Robertson and Zaragoza, 2009; words in over half of all turns get a quarter of the mean
weight, as is common, for theirs would be negative. Rank fusion: Cormack et al., 2009. The weights
of linear6 were fitted on chats of real people, not on LoCoMo; which signals it has was chosen with
LoCoMo in view, so it is a strong bar.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache

import numpy as np
import Stemmer
from numpy.typing import NDArray

from reverie.memory_graph.drafts import TurnDraft
from reverie.models.protocol import Embedder

Float64 = NDArray[np.float64]
Advance = Callable[[int], None]

BM25, DENSE, FUSION, LINEAR6 = "BM25", "dense", "rank fusion", "linear6"
SYSTEMS = (BM25, DENSE, FUSION, LINEAR6)

K1, B, EPSILON = 1.5, 0.75, 0.25
FUSION_K = 60
SPEAKER_WEIGHT, LENGTH_WEIGHT = 1.5, 0.2  # of linear6; its other four have 1
Z_SPREAD = 5.0  # z-scores of cosines are divided by it, to be as wide as the others
EMBEDDED = 64  # texts per call, so that progress can be told

_STOP_WORDS = frozenset(
    "a an the this that these those there here then than so not no "
    "and or but if of to in on at by for with from as "
    "am is are was were be been being do does did doing have has had having "
    "will would can could should may might must "
    "i me my you your he him his she her it its we us our they them their "
    "what which who whom whose when where why how "
    "s t d ll m re ve".split()  # what is left of "it's", "don't", "I'll"
)


def score_turns(
    turns: Sequence[TurnDraft],
    questions: Sequence[str],
    embedder: Embedder,
    advance: Advance = lambda _: None,
) -> dict[str, Float64]:
    """Return for each of SYSTEMS the scores of all turns, shape (questions, turns).

    Args:
        turns: of one conversation, in order, at least one; each with speaker and time.
        questions: about it, at least one.
        embedder: for the dense parts.
        advance: called with the number of texts embedded since the last call.
    """
    texts = [f"{turn.speaker}: {turn.text}" for turn in turns]
    dated = [f"({_date(turn)}) {text}" for turn, text in zip(turns, texts, strict=True)]
    asked = _embedded(embedder, questions, "query", advance)
    words = bm25(texts, questions)
    dense = asked @ _embedded(embedder, texts, "passage", advance).T
    return {
        BM25: words,
        DENSE: dense,
        FUSION: np.array([fuse([w, d]) for w, d in zip(words, dense, strict=True)]),
        LINEAR6: _per_best(words)
        + _per_best(bm25(_with_previous(turns, texts), questions))
        + _standard(asked @ _embedded(embedder, dated, "passage", advance).T) / Z_SPREAD
        + SPEAKER_WEIGHT * _speaker_named(turns, questions)
        + _per_best(_of_sessions(turns, texts, questions))
        + LENGTH_WEIGHT * _standard(np.log1p([[len(text.split()) for text in texts]])),
    }


def embedded_texts(turns: int, questions: int) -> int:
    """Return how many texts `score_turns` embeds."""
    return 2 * turns + questions


def order(scores: Float64) -> list[int]:
    """Return the places of `scores`, shape (n,), best first; of equals the earlier one first."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def bm25(texts: Sequence[str], questions: Sequence[str]) -> Float64:
    """Return the Okapi BM25 scores of texts for questions, shape (questions, texts)."""
    counts = [Counter(terms(text)) for text in texts]
    lengths = np.array([max(1, count.total()) for count in counts], np.float64)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    holders: dict[str, list[int]] = {}
    for place, count in enumerate(counts):
        for term in count:
            holders.setdefault(term, []).append(place)
    holding = np.array([len(places) for places in holders.values()], np.float64)
    weights = np.log(len(texts) - holding + 0.5) - np.log(holding + 0.5)
    if weights.size:
        weights[weights < 0] = EPSILON * weights.mean()
    weight_of = dict(zip(holders, weights, strict=True))
    scores = np.zeros((len(questions), len(texts)))
    for row, question in zip(scores, questions, strict=True):
        for term in terms(question):
            places = holders.get(term, [])
            often = np.array([counts[place][term] for place in places], np.float64)
            row[places] += weight_of.get(term, 0.0) * often * (K1 + 1) / (often + norm[places])
    return scores


def terms(text: str) -> list[str]:
    """Return the stems of a text's words, without stop words."""
    found = [word for word in re.findall(r"\w+", text.lower()) if word not in _STOP_WORDS]
    return list(_stemmer().stemWords(found))


@cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english")


def fuse(scores: Sequence[Float64]) -> Float64:
    """Return the reciprocal rank fusion of several scores of the same n turns, shape (n,)."""
    total = np.zeros(len(scores[0]))
    for one in scores:
        total[order(one)] += 1 / (FUSION_K + np.arange(1, len(one) + 1))
    return total


def _embedded(embedder: Embedder, texts: Sequence[str], role: str, advance: Advance) -> Float64:
    rows = []
    for start in range(0, len(texts), EMBEDDED):
        part = texts[start : start + EMBEDDED]
        rows.append(embedder.embed(part, "query" if role == "query" else "passage"))
        advance(len(part))
    return np.concatenate(rows).astype(np.float64)


def _per_best(scores: Float64) -> Float64:
    """Return scores divided by the best of each question; as they are where none is above 0."""
    best = scores.max(axis=1, keepdims=True)
    shares: Float64 = scores / np.where(best > 0, best, 1.0)
    return shares


def _standard(scores: Float64) -> Float64:
    """Return scores as z-scores within each question; zero where all are equal."""
    spread = scores.std(axis=1, keepdims=True)
    z: Float64 = (scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    return z


def _with_previous(turns: Sequence[TurnDraft], texts: Sequence[str]) -> list[str]:
    """Return each text after the one before it in its session."""
    joined = list(texts[:1])
    for place in range(1, len(texts)):
        is_next = turns[place - 1].session == turns[place].session
        joined.append(f"{texts[place - 1]}\n{texts[place]}" if is_next else texts[place])
    return joined


def _of_sessions(
    turns: Sequence[TurnDraft], texts: Sequence[str], questions: Sequence[str]
) -> Float64:
    """Return the BM25 score of each turn's whole session."""
    sessions: dict[str, list[str]] = {}
    for turn, text in zip(turns, texts, strict=True):
        sessions.setdefault(turn.session, []).append(text)
    place_of = {name: place for place, name in enumerate(sessions)}
    scores = bm25([" ".join(said) for said in sessions.values()], questions)
    return scores[:, [place_of[turn.session] for turn in turns]]


def _speaker_named(turns: Sequence[TurnDraft], questions: Sequence[str]) -> Float64:
    """Return 1 where the speaker of a turn is named in the question, else 0."""
    speakers = [str(turn.speaker).lower() for turn in turns]
    named = {
        speaker: [
            bool(re.search(rf"\b{re.escape(speaker)}\b", question.lower()))
            for question in questions
        ]
        for speaker in set(speakers)
    }
    return np.array([named[speaker] for speaker in speakers], np.float64).T


def _date(turn: TurnDraft) -> str:
    """Return the time of a turn as LoCoMo writes it: "1:56 pm on 8 May, 2023"."""
    at = datetime.fromtimestamp(turn.said_at or 0.0, UTC)
    half = "am" if at.hour < 12 else "pm"
    return f"{at.hour % 12 or 12}:{at:%M} {half} on {at.day} {at:%B}, {at.year}"
