"""Statements read back: the claims of a kept text, whoever wrote it."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from reverie.models.rules import chinese, chinese_frame, english
from reverie.models.rules.claims import PREDICATES, USER_LABELS, Claim
from reverie.models.rules.clauses import split_clauses
from reverie.models.rules.person import to_third
from reverie.models.rules.text import MAX_CLAUSE_CHARS, clean, is_chinese, key_words, numbers

_RETRACTED = re.compile(r"(?P<who>.{1,80}?)(?: took back: |收回：)")


@lru_cache(maxsize=4096)
def claims_of(text: str) -> tuple[Claim, ...]:
    """Read the claims back out of a kept statement, in either language, any person."""
    text = clean(text)[: MAX_CLAUSE_CHARS * 2].strip()
    taken_back = _RETRACTED.match(text)
    if taken_back:
        text = text[taken_back.end() :]
    if is_chinese(text):
        third = chinese_frame.to_third(text, USER_LABELS[1])
        label = USER_LABELS[1]
        found = chinese.parse(third, label, loose=True)
        rest = third.split("，") if not found else []
        for part in rest:
            found += chinese.parse(part, label, loose=True)
    else:
        found = []
        for clause in split_clauses(text.rstrip(".!")):
            third = to_third(clause, USER_LABELS[0])
            found += english.parse(third[:1].upper() + third[1:], USER_LABELS[0], loose=True)
    if taken_back:
        found = [msgspec.structs.replace(c, ended=True) for c in found]
        found = found or [Claim(taken_back["who"], "retracted", text, text, ended=True)]
    return tuple(found)


class Said(msgspec.Struct, frozen=True):
    """A statement as rules compare it: its text, main claim, words and numbers."""

    text: str
    claim: Claim | None
    words: frozenset[str]
    numbers: frozenset[str]

    @property
    def slot(self) -> str | None:
        """The slot of the main claim."""
        return self.claim.slot if self.claim else None


def read(text: str, slot: str | None = None, polarity: int = 1) -> Said:
    """Parse a statement; a given `slot` chooses among its claims, or stands in for them.

    Args:
        text: the statement.
        slot: as its memory carries it, or None.
        polarity: -1 where the draft says that it denies or ends the slot.
    """
    found = claims_of(text)
    claim = next((c for c in found if c.slot == slot), found[0] if found else None)
    if slot and "|" in slot and (claim is None or (claim.slot != slot and not claim.explicit)):
        owner, _, predicate = slot.partition("|")
        base, _, detail = predicate.partition("_")
        if base == "favourite":
            predicate = base
        elif predicate not in PREDICATES:
            predicate, detail = "state", ""
        claim = Claim(owner, predicate, text, text, detail=detail if base == "favourite" else "")
    if claim is not None and polarity < 0 and claim.polarity > 0 and not claim.ended:
        claim = msgspec.structs.replace(claim, ended=True)
    return Said(text, claim, key_words(text), numbers(text))
