"""Whether a statement still held when it was said: "I moved to Bergen last week" did.

What was said to hold without a date is known to have held at that moment, and nothing more: a later
statement that begins before it may well replace it. One that tells of a time that is over ("I lived
in Bergen in 2019") does not.
"""

from __future__ import annotations

import re

from reverie.models.rules.claims import Claim
from reverie.models.rules.reading import claims_of
from reverie.models.rules.text import is_chinese

# From a change to the moment at which it is told. "I live in Oslo. I moved to Bergen in 2019": more
# than this long before, another one has followed, for all that the text says.
RECENT_S = 183 * 86_400.0

_LASTING = re.compile(
    r"\bsince\b|\b(?:for|over|during) the (?:last|past)\b|\bever after\b"
    r"|以来|以后|至今|一直|到现在|[年月日号周天][起开](?:始)?|从.{1,10}(?:起|开始)",
    re.IGNORECASE,
)

_CHANGE = re.compile(
    r"\b(?:started|began|joined|moved|relocated|switched|transferred|became|changed|took over)\b"
    r"|开始|换[到成]|改[到成住叫]|搬|加入|入职|跳槽|成为|当上",
)
_DENIED = re.compile(
    r"\b(?:not|never|no longer|will|would|plans?|going to)\b|n't\b|没|不|别|打算|准备|想|要|会",
    re.IGNORECASE,
)
_STATES = frozenset({"lives_in", "works_at", "works_as", "studies_at", "manager", "drives"})
_PAST_STATE = re.compile(
    r"\b(?<!has )(?<!have )(?<!'ve )(?:lived|resided|rented|worked|studied|drove"
    r"|was (?:\w+ly )?(?:living|working|based|employed|studying|driving|a|an|the|my|their|User's)"
    r")\b",
)
_HAN_PAST = re.compile(
    r"以前|曾经?|从前|当时|那时|当年|小时候|(?:19|20)\d\d年|[去前]年|过(?:[。！]|$)"
)


def is_over(claim: Claim) -> bool:
    """Return whether a claim tells of a state of the past, which says nothing of now: "lived in
    Bergen in 2019". Not "has lived in Bergen since 2019", nor "moved to Bergen in 2019"."""
    if claim.predicate not in _STATES or claim.changed or claim.future:
        return False
    text = claim.text
    past = _HAN_PAST if is_chinese(text) else _PAST_STATE
    return past.search(text) is not None and not _LASTING.search(text)


def held_when_said(text: str, begins: float, said_at: float) -> bool:
    """Return whether a statement that names its beginning is said to hold still.

    Args:
        text: of a memory, in either language, any person.
        begins: when it holds from, in seconds.
        said_at: when it was said, in seconds.
    """
    if begins > said_at:
        return False
    is_change = _CHANGE.search(text) is not None
    claim = next(iter(claims_of(text)), None)
    if claim is None or not claim.explicit:  # of somebody of an unknown name, perhaps
        if _DENIED.search(text):
            return False
    elif claim.ended or claim.polarity < 0 or claim.future:
        return False
    else:
        is_change = is_change or claim.changed
    if _LASTING.search(text):
        return True
    return is_change and said_at - begins <= RECENT_S
