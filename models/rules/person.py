"""English first person to third: "I don't like my job" becomes "Ana doesn't like Ana's job"."""

from __future__ import annotations

import re

from reverie.models.rules.vocab import (
    ADVERBS,
    BASES,
    IRREGULAR_PASTS,
    MODALS,
    PARTICIPLES,
    PASTS,
    THIRDS,
    third_person,
)

_AUXILIARIES = {
    "'m": "is", " am": "is", "'re": "is", " are": "is", "'ve": "has", " have": "has", "'ll": "will",
    "'d": "would", " don't": "doesn't", " dont": "doesn't", " do": "does", " haven't": "hasn't",
    " were": "was", " weren't": "wasn't", " aren't": "isn't",
}  # fmt: skip
_CONTRACTED = {
    f"{who}{auxiliary}": f"{{}} {third}"
    for who in ("i", "we")
    for auxiliary, third in _AUXILIARIES.items()
} | {"im": "{} is", "ive": "{} has"}
_PRONOUN = re.compile(
    r"(?<![\w'])(?:(?P<fixed>"
    + "|".join(sorted(_CONTRACTED, key=len, reverse=True))
    + r")(?![\w'])"
    r"|(?P<subject>i|we)(?P<adverbs>(?:\s+(?:"
    + ADVERBS
    + r"|never|no longer|all|both|each|last))*)\s+(?P<verb>[a-z][a-z'-]*)"
    r"|(?P<possessive>my|our|mine|ours)(?![\w'])"
    r"|(?P<object>me|us|myself|ourselves|i|we)(?![\w']))",
    re.IGNORECASE,
)
# Object pronouns are lower case; "US" and the roman "I" in a name are not.
_NOT_PRONOUN = frozenset({"US", "Us", "ME", "Me", "Im"})


def conjugate(verb: str) -> str:
    """Return a first-person verb as the third person says it; a past form stays as it is."""
    low = verb.lower()
    if low in MODALS or low in {"am", "'m"}:
        return "is" if low in {"am", "'m"} else verb
    if low in {"no", "not", "never"}:
        return verb
    if low == "were":
        return "was"
    if low in IRREGULAR_PASTS or (low in THIRDS and low not in BASES):
        return verb
    past = low in PASTS and (
        low not in BASES or low in {"quit", "read", "hurt", "put", "cut", "let"}
    )
    if past or (low in PARTICIPLES and low not in BASES):
        return verb
    if low.endswith(("ed", "ing")) and low not in BASES and not low.endswith("eed"):
        return verb
    return third_person(low)


def to_third(clause: str, label: str) -> str:
    """Return `clause` with its first person replaced by `label` ("User", "Ana").

    Args:
        clause: one cleaned English clause.
        label: who speaks.
    """

    def swap(match: re.Match[str]) -> str:
        whole = match.group()
        if whole in _NOT_PRONOUN:
            return whole
        if fixed := match["fixed"]:
            return _CONTRACTED[fixed.lower()].format(label)
        if match["subject"]:
            verb = match["verb"]
            kept = verb if verb.lower() in {"and", "or", "in", "at", "of"} else conjugate(verb)
            adverbs = re.sub(r"\s+(?:all|both|each)\b", "", match["adverbs"])
            return f"{label}{adverbs} {kept}"
        if match["possessive"]:
            return f"{label}'s"
        return "themselves" if "sel" in whole.lower() else label

    return _PRONOUN.sub(swap, clause)
