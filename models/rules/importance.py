"""How much a statement matters, 0 to 1, from what it says; and whether that is enough to keep it.

Pure functions. The parts: what kind of statement it is, a predicate that weighs (an allergy, a
home), names, numbers, a decision, how strongly it feels; and, once its neighbours are known, how
new it is. Who asks to have something remembered decides alone: that is 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from reverie.memory_graph.drafts import MemoryDraft
from reverie.memory_graph.nodes import MemoryKind
from reverie.models.rules import cues
from reverie.models.rules.claims import Claim
from reverie.models.rules.sentiment import sentiment
from reverie.models.rules.text import is_chinese

EXPLICIT = 1.0
HIGHEST = 0.95  # of what nobody asked to keep
KEPT_FROM = 0.3  # the threshold that drops small talk and little else (docs/concepts.md)
FAMILIAR = 0.3  # the share of its importance that a statement loses when it says nothing new
NEAR_DUPLICATE = 0.9  # cosine; e5 lies higher: runtime/mind.py has its own

_BASE: dict[MemoryKind, float] = {"fact": 0.5, "preference": 0.45, "event": 0.4}
_PLAIN = 0.15  # of a sentence in which no rule found a claim
_WEIGHTY = frozenset(
    """name allergic_to has_condition partner kin birthday lives_in works_at works_as email phone
    address diet manager goal""".split(),
)
_STRONG = 0.45  # of sentiment: "I love it", "my cat died"
_DECISION = re.compile(
    r"\b(?:decided|decide|quit|resigned|engaged|married|divorced|moved|moving|switched|accepted"
    r"|signed|chose|choose|settled on|made up (?:my|our|his|her|their) mind"
    r"|no longer|stopped|gave up|adopted|promised|promise|swore|graduated|agreed|cancelled)\b"
    r"|决定|打算|选了|选定|签了|辞职|离职|结婚|离婚|订婚|搬到|搬家|换成|戒|不再|毕业|答应|约好|说好|定了|取消",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million"
    r"|first|second|third|twice|half)\b|[二两三四五六七八九十百千万半][个只条岁月号日点年位次块元斤里件本张]",
    re.IGNORECASE,
)


def importance_of(claim: Claim, *, names: int) -> float:
    """Return the importance of a claim that was parsed.

    Args:
        claim: what is said.
        names: how many named entities it has.
    """
    return importance_of_text(
        claim.text,
        _BASE[claim.about.kind],
        names=names,
        weighty=claim.predicate in _WEIGHTY,
        sure=claim.explicit,
    )


def importance_of_text(
    text: str,
    base: float = _PLAIN,
    *,
    names: int = 0,
    weighty: bool = False,
    sure: bool = True,
) -> float:
    """Return the importance of a statement, of any extractor, before its neighbours are known.

    Args:
        text: the statement.
        base: what its kind is worth; that of a plain sentence by default.
        names: how many named entities it has.
        weighty: whether it is about something that seldom changes and matters often.
        sure: whether a rule was sure of it.
    """
    value = base
    value += 0.2 if weighty else 0.0
    value += 0.1 if names else 0.0
    value += 0.05 if _NUMBER.search(text) else 0.0
    value += 0.1 if abs(sentiment(text)) >= _STRONG else 0.0
    value += 0.1 if _DECISION.search(text) else 0.0
    value -= 0.0 if sure else 0.1
    return round(min(max(value, 0.0), HIGHEST), 2)


def is_asked_for(text: str) -> bool:
    """Return whether a sentence asks to be remembered: "Remember that ...", "记住……"."""
    cue = cues.EXPLICIT_ZH if is_chinese(text) else cues.EXPLICIT
    return cue.match(text.strip()) is not None


def novelty(similarities: Sequence[float], near_duplicate: float = NEAR_DUPLICATE) -> float:
    """Return how new a statement is, 0 to 1, by the cosines of its nearest memories.

    1 when nothing is known, or nothing near: four times as far from a cosine of 1 as a near
    duplicate is (0.6 for MiniLM). From there in a straight line to 0 at an equal vector. A cosine
    over 1 or under -1 is rounding.

    Args:
        similarities: in any order.
        near_duplicate: the cosine of the embedder from which on texts say the same, under 1.
    """
    nearest = max(similarities, default=-1.0)
    return min(1.0, max(0.0, (1.0 - nearest) / (4.0 * (1.0 - near_duplicate))))


def weighed(
    draft: MemoryDraft, similarities: Sequence[float], near_duplicate: float = NEAR_DUPLICATE
) -> MemoryDraft:
    """Return a draft with its importance lessened by what is known already.

    What was asked for, or pinned, keeps its importance; so does a draft that takes something
    back (`polarity` -1): it resembles what it ends.

    Args:
        draft: importance as `importance_of` says.
        similarities: cosines of the nearest active memories, in any order.
        near_duplicate: as in `novelty`.
    """
    if draft.pinned or draft.importance >= EXPLICIT or draft.polarity < 0:
        return draft
    share = 1.0 - FAMILIAR * (1.0 - novelty(similarities, near_duplicate))
    if share == 1.0:
        return draft
    return msgspec.structs.replace(draft, importance=round(draft.importance * share, 2))


def is_worth_keeping(draft: MemoryDraft, least: float) -> bool:
    """Return whether a draft becomes a memory; if not, its turn stays a message.

    Args:
        draft: weighed or not.
        least: importance from which on it does, 0 to 1; 0 keeps everything. What is pinned or
            ends another memory is always kept, so that a correction is never lost.
    """
    return draft.pinned or draft.polarity < 0 or draft.importance >= least


def sentiment_of(claim: Claim) -> float:
    """Return how the statement feels, -1 to 1; tastes by their strength."""
    felt = sentiment(claim.text)
    if claim.predicate in {"likes", "favourite", "prefers"}:
        strong = abs(felt) >= _STRONG or claim.predicate == "favourite"
        return claim.polarity * (0.8 if strong else 0.4) * (-1 if claim.ended else 1)
    return felt
