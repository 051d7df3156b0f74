"""States of which a thing or person is in one at a time: open and closed, calm and angry."""

from __future__ import annotations

import re

from reverie.models.rules.changes import HAN_FILLERS, HAN_LEADS, common
from reverie.models.rules.reading import Said
from reverie.models.rules.text import is_chinese, key_words

_ANTONYMS = [
    frozenset(key_words(a) | key_words(b))
    for a, b in (
        pair.split("/")
        for pair in """open/closed opens/closes alive/dead poisoned/clean locked/unlocked
        trusts/distrusts
        friendly/hostile friend/enemy ally/enemy safe/dangerous healthy/sick broken/repaired
        hired/fired
        loves/hates awake/asleep empty/full lit/dark rich/poor peace/war enabled/disabled
        free/imprisoned up/down raised/lowered hot/cold calm/angry frozen/thawed loyal/disloyal
        online/offline visible/hidden allowed/forbidden legal/illegal guilty/innocent present/absent
        happy/sad strong/weak clean/dirty wild/tame lost/found busy/free sharp/blunt wet/dry
        abandoned/inhabited hopeful/hopeless brave/cowardly
        wounded/healed healthy/ill broken/fixed employed/unemployed pregnant/postpartum""".split()
    )
]
# Words of which a thing or person is one at a time.
_SCALES = tuple(
    key_words(words)
    for words in (
        "friendly neutral hostile wary indifferent suspicious loyal disloyal kind unfriendly",
        "happy sad angry calm anxious content depressed cheerful",
        "beginner novice intermediate advanced expert master",
        "cold cool warm hot freezing",
        "poor rich wealthy broke",
        "thin slim fat overweight",
        "weak strong",
        "dirty clean filthy spotless",
        "ruined intact destroyed standing",
        "alone married single",
    )
)
# "Is X now" says no more than that it is X; "is X again" that it was not.
_AGAIN = re.compile(r"\b(?:again|once more|restored)\b|再次|又|恢复|重新")
_COMPLEMENT = re.compile(r"\b(?:to|by|with|for|from|of|in|on|at|near|under|against)\b")
MAX_STATE_WORDS = 2
MAX_HAN_STATE = 6  # characters of what stands for "is open again"


def opposite_state(new: Said, old: Said) -> bool:
    """Return whether `new` says the opposite of `old` of the same thing, in its other words."""
    a, b = new.claim, old.claim
    if a is None or b is None or a.owner != b.owner or b.ended or a.ended:
        return False
    loose = {"state", "event", "plans", "does", "works_as"}
    if a.predicate == "event" and b.predicate == "state" and is_chinese(new.text):
        return bool(_AGAIN.search(new.text)) and _two_states(new.text, old.text)
    if a.predicate not in loose or b.predicate not in loose:
        return False
    markers = key_words("again now finally still once more today")
    left, right = new.words - old.words - markers, old.words - new.words - markers
    if len(left) == len(right) == 1:
        pair = frozenset(left | right)
        if pair in _ANTONYMS or any(pair <= scale for scale in _SCALES):
            return True
    if not (a.predicate == b.predicate == "state" and left and right and _AGAIN.search(new.text)):
        return False
    if is_chinese(new.text):
        return _two_states(new.text, old.text)
    plain = not any(_noun_like(c.object) or _COMPLEMENT.search(c.object) for c in (a, b))
    return (
        new.text[:4].lower() == "the " and plain and max(len(left), len(right)) <= MAX_STATE_WORDS
    )


def _two_states(new: str, old: str) -> bool:
    """Whether two Chinese texts have one subject and no more than a state each: 城门关着 and
    城门又开了. Where a thing of the subject follows (的), or much else, it is another matter."""
    head = common(new, old).rstrip(HAN_LEADS)
    if len(head) < 2:  # noqa: PLR2004 - the shortest name
        return False
    rests = [text[len(head) :].rstrip("。！") for text in (new, old)]
    states = [frozenset(rest) - HAN_FILLERS - frozenset("又再次恢复重新") for rest in rests]
    if not all(states) or states[0] & states[1]:
        return False
    return not any(
        rest.startswith("的")
        or len(rest) > MAX_HAN_STATE
        or re.search("[一两几个岁名].|[里中].", rest)
        for rest in rests
    )


def _noun_like(state: str) -> bool:
    return bool(
        re.match(
            r"(?:the|an?|in|at|on|near|from|under|made|called|named|owned|located|built) ?\b"
            r"|.*\bof\b|(?:一|在)",
            state,
        )
    )
