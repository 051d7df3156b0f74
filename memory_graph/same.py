"""Which hits say the same, so that a block for a prompt shows each statement once.

Equal texts of the same speaker say the same, and so do a memory and the turn it came from when
the memory has every word of the turn that counts. This is about words: two ways of saying one thing
stay two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reverie.memory_graph.text import normalise, terms
from reverie.memory_graph.views import Hit

_NEGATED = re.compile(r"\b(?:not|no|never|none|nobody|nothing|cannot)\b|n't\b|[不没沒无無别別未]")
_HAN_PAIR = re.compile("[\u3400-\u9fff\uf900-\ufaff]{2}")
_END = ".。!！… "


class Statement(NamedTuple):
    """A hit that stands for all that say the same.

    Attributes:
        hit: the first of them, or the first memory.
        relevance: the best score of them.
        also: ids of the turns among the others, and of what those cite.
    """

    hit: Hit
    relevance: float
    also: tuple[str, ...] = ()


def merged(hits: Sequence[Hit]) -> list[Statement]:
    """Return hits, best first, as statements, each once, in the order of the best of each."""
    found: list[list[Hit]] = []  # empty: merged into one before it
    by_key: dict[str, list[int]] = {}  # text, or the id of a turn that is one or is cited -> places
    for hit in hits:
        keys = (f"text {_said(hit)}", *(f"turn {turn}" for turn in _turns(hit)))
        near = dict.fromkeys(place for key in keys for place in by_key.get(key, ()))
        same = [at for at in near if any(says_same(other, hit) for other in found[at])]
        place = min(same, default=len(found))
        together = [other for at in sorted(same) for other in found[at]]
        for at in same:
            found[at] = []
        found[place : place + 1] = [[*together, hit]]
        for key in keys:
            by_key.setdefault(key, []).append(place)
    return [_statement(same) for same in found if same]


def says_same(one: Hit, other: Hit) -> bool:
    """Return whether two hits are one statement."""
    if _said(one) == _said(other):  # "I love tea" of two speakers is two statements
        return one.speaker is None or other.speaker is None or one.speaker == other.speaker
    for memory, turn in ((one, other), (other, one)):
        if memory.type == "memory" and turn.type == "message" and turn.id in memory.sources:
            return _holds_all(memory.text, turn)
    return False


def _said(hit: Hit) -> str:
    return normalise(" ".join(hit.text.split())).rstrip(_END)


def _holds_all(text: str, turn: Hit) -> bool:
    """Return whether a text has every word of a turn that counts, and denies as often."""
    if len(_NEGATED.findall(turn.text.lower())) != len(_NEGATED.findall(text.lower())):
        return False
    told = set(terms(turn.text)) - set(terms(turn.speaker or ""))
    # A pair of Chinese characters changes with what stands around it; the characters say it all.
    told = {term for term in told if not _HAN_PAIR.fullmatch(term)}
    return bool(told) and told <= set(terms(text))


def _turns(hit: Hit) -> tuple[str, ...]:
    return (hit.id,) if hit.type == "message" else hit.sources


def _statement(same: Sequence[Hit]) -> Statement:
    """Return the statement of hits that say the same, of which there is one at least."""
    kept = next((hit for hit in same if hit.type == "memory"), same[0])
    mine = {kept.id, *kept.sources}
    turns = dict.fromkeys(turn for hit in same for turn in _turns(hit) if turn not in mine)
    return Statement(kept, max(hit.score for hit in same), tuple(turns))
