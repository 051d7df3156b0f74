"""How much a statement matters, from what it says: 0 to 1."""

from __future__ import annotations

import re

from reverie.models.rules.claims import Claim

EXPLICIT = 1.0
_BASE = {"fact": 0.5, "preference": 0.45, "event": 0.4}
_WEIGHTY = frozenset(
    """name allergic_to has_condition partner kin birthday lives_in works_at works_as email phone
    address diet manager goal""".split(),
)
_EMOTION = re.compile(
    r"\b(?:love|loves|hate|hates|adores?|terrified|heartbroken|devastated|thrilled|ecstatic"
    r"|scared|proud"
    r"|afraid|furious|grateful|died|death|killed|passed away|cried|miss(?:es)?|dream"
    r"|can't stand|betrayed)\b"
    r"|爱|恨|讨厌|害怕|难过|伤心|高兴|激动|去世|死|想念|梦想|骄傲|受不了",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided|decide|quit|resigned|engaged|married|divorced|moved|moving|switched|accepted"
    r"|signed"
    r"|no longer|stopped|gave up|adopted|promised|swore|graduated)\b"
    r"|决定|辞职|离职|结婚|离婚|订婚|搬到|换成|戒|不再|毕业|答应",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"\b(?:died|killed|passed away|hurt|lost|stole|broke|fired|laid off|sick|divorced|scared"
    r"|afraid|betrayed)\b|去世|死|受伤|丢|生病|离婚|难过"
)
_POSITIVE = re.compile(
    r"\b(?:won|married|engaged|graduated|promoted|thrilled|proud|happy|excited|accepted|adopted"
    r"|passed)\b|结婚|毕业|高兴|开心|赢|考上|升职"
)


def importance_of(claim: Claim, *, names: int) -> float:
    """Return the importance of a claim, by kind plus what weighs: the predicate, names, numbers,
    emotion and decisions.

    Args:
        claim: what is said.
        names: how many named entities it has.
    """
    value = _BASE[claim.about.kind]
    value += 0.2 if claim.predicate in _WEIGHTY else 0.0
    value += 0.1 if names else 0.0
    value += 0.05 if re.search(r"\d", claim.text) else 0.0
    value += 0.1 if _EMOTION.search(claim.text) else 0.0
    value += 0.1 if _DECISION.search(claim.text) else 0.0
    value -= 0.1 if not claim.explicit else 0.0
    return round(min(value, 0.95), 2)


def sentiment_of(claim: Claim) -> float:
    """Return how the statement feels, -1 to 1; tastes by their strength."""
    if claim.predicate in {"likes", "favourite", "prefers"}:
        strong = bool(_EMOTION.search(claim.text)) or claim.predicate == "favourite"
        return claim.polarity * (0.8 if strong else 0.4) * (-1 if claim.ended else 1)
    if _NEGATIVE.search(claim.text):
        return -0.5
    return 0.4 if _POSITIVE.search(claim.text) else 0.0
