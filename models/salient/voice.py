"""English first person to third for whole sentences: "I painted that" becomes "Ana painted that".

`rules/person.py` does this for one parsed clause; here sentences of any shape come, so what would
not read right is left alone and said with the speaker in front ("Ana: we both love it").
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re

from reverie.models.rules.person import conjugate
from reverie.models.rules.vocab import ADVERBS, BASES, GERUNDS, PARTICIPLES, PASTS
from reverie.models.salient.words import ELIDED_NOT, ELIDED_STATES

_AUXILIARY = {
    "'m": "is", "'re": "is", "'ve": "has", "'ll": "will", "am": "is", "are": "is",
    "were": "was", "have": "has", "do": "does", "don't": "doesn't", "dont": "doesn't",
    "haven't": "hasn't", "weren't": "wasn't", "aren't": "isn't", "wanna": "wants to",
    "gotta": "has to", "gonna": "is gonna",
}  # fmt: skip
_ADVERB = rf"(?:{ADVERBS}|never|no longer|not|almost|still|last|\w+ly)"
_FIRST = re.compile(
    r"(?<![\w'.-])(?:(?P<joined>I|we)(?P<clitic>'m|'re|'ve|'ll|'d)(?![\w'])"
    r"|(?P<slang>im|ive)(?=\s)"
    rf"|(?P<subject>I|we)(?P<adverbs>(?:\s+{_ADVERB})*)\s+(?P<verb>[a-z][a-z'-]*)"
    r"|(?P<own>my|our|mine|ours)(?![\w'-])"
    r"|(?P<self>myself|ourselves)(?![\w'-])"
    r"|(?P<object>me|us|I|we)(?![\w'-]))",
    re.IGNORECASE,
)
_NOT_PRONOUN = frozenset({"US", "Us", "ME", "Mine"})
_LINKS = frozenset("and or in at of with to for".split())
# Said of several people together: naming the speaker alone would be wrong.
_TOGETHER = re.compile(
    r"\b(?:we|us|our)\b.*\b(?:both|each other|one another|together|as a (?:team|family|couple|group))\b|\bboth of us\b"
    r"|\bwe(?:'re|'ve)? (?:all|both)\b|\b(?:two|three|four|all|some|most) of us\b|\blet's\b",
    re.IGNORECASE,
)
_FINITE_AFTER_GERUND = re.compile(
    r"\b(?:is|was|are|were|can|could|has|have|had|will|would|makes?|made|helps?|helped|takes?|took|brings?|brought|gives?|gave|means?|feels?|felt|reminds?|seems?|looks?|sounds?|keeps?)\b"
)
_GERUND_LEAD = re.compile(
    r"(?P<adverb>(?:(?:still|just|also|currently|recently|now|really|always|been) )*)(?P<verb>\w+ing)\b"
)
_WITH_ANOTHER = re.compile(r"(?:(?:[Tt]he|[Mm]y) )?[\w'-]+(?: [A-Z][\w'-]+)? and ")
_STATE = re.compile(
    r"(?:(?:so|really|super|very|pretty|quite|still) )*(?:excited|happy|glad|proud|grateful|thankful|thrilled|nervous|worried|keen|ready|lucky|stoked|sad|busy|sick|tired|afraid|scared|allergic|interested|passionate|determined|hooked|obsessed|due|off)\b"
)


def in_third(sentence: str, name: str) -> str:
    """Return an English sentence as told about its speaker; never empty for a sentence with words.

    The first mention is the name, later possessives are "their". A sentence without a first
    person, or of several people together, has the name in front: "Ana: the shop opens at nine".

    Args:
        sentence: cleaned, without its greeting, at most a few hundred characters.
        name: how the speaker is called.
    """
    body = re.sub(r"\bI (?:myself|personally)\b", "I", _with_subject(sentence))
    if _TOGETHER.search(body):
        return f"{name}: {body}"
    mentions = 0

    def swap(match: re.Match[str]) -> str:
        nonlocal mentions
        whole = match.group()
        if whole in _NOT_PRONOUN or (match["object"] and _is_roman(sentence, whole)):
            return whole
        mentions += 1
        if match["joined"] or match["slang"]:
            clitic = (match["clitic"] or f"'{match['slang'][1:]}").lower()
            after = re.match(r"\s+(?P<w>\w+)", body[match.end() :])
            said = _would(after["w"] if after else "") if clitic == "'d" else _AUXILIARY[clitic]
            return f"{name} {said}"
        if match["subject"] and _WITH_ANOTHER.fullmatch(body[: match.start()]):
            return f"{name}{match['adverbs']} {match['verb']}"  # "Dairy and Ana don't get along"
        if match["subject"]:
            return f"{name}{match['adverbs']} {_verb(match['verb'])}"
        if match["own"]:
            return f"{name}'s" if mentions == 1 else "their"
        return "themselves" if match["self"] else name

    told = _FIRST.sub(swap, body)
    if not mentions:
        return f"{name}: {body}"
    told = _without_echo(told, name)
    return told[:1].upper() + told[1:]


def _would(following: str) -> str:
    """Return what "'d" stands for before a word."""
    word = following.lower()
    return "had" if word in PARTICIPLES and word not in BASES else "would"


def _is_roman(sentence: str, whole: str) -> bool:
    """Whether a lone I counts, as in "World War I"."""
    return whole == "I" and re.search(r"[A-Z]\w+ I\b(?! )", sentence) is not None


def _verb(verb: str) -> str:
    low = verb.lower()
    if low in _AUXILIARY:
        return _AUXILIARY[low]
    if low in _LINKS or (low in PARTICIPLES and low not in BASES):
        return verb
    return conjugate(verb)


def _with_subject(sentence: str) -> str:
    """Give a sentence that leaves its "I" out its subject back: "Just got a dog", "Been busy"."""
    words = sentence.split(" ", 1)
    first = words[0].lower().strip(",")
    rest = words[1] if len(words) > 1 else ""
    low = sentence[:1].lower() + sentence[1:]
    if first in {"gonna", "been", "gotta"} and not rest.startswith("be "):
        lead = {"gonna": "I'm", "been": "I've", "gotta": "I"}[first]
        return f"{lead} {low}"
    if ELIDED_NOT.match(low):
        return f"I {low}"
    if re.match(r"can't (?:wait|stand|believe)\b", low):
        return f"I {low}"
    gerund = _GERUND_LEAD.match(low)
    if (
        gerund
        and not re.search(r", (?:I|we)\b", low)  # "Seeing them, I knew"
        and (gerund["verb"] in GERUNDS or gerund["adverb"])
        and not _FINITE_AFTER_GERUND.search(
            re.split(r"[;–—]| - |, (?:and|but|so|it|which)\b", low, maxsplit=1)[0]
        )
    ):
        return f"I've {low}" if gerund["adverb"].startswith("been") else f"I'm {low}"
    if _STATE.match(low):
        return f"I'm {low}"
    bare = re.sub(rf"^(?:{_ADVERB} )+", "", low)
    verb = bare.split(" ", 1)[0].strip(",.!").lower()
    past = (verb in PASTS and PASTS[verb] != verb) or verb in {"quit", "put"}
    if (
        past
        and verb not in {"was", "were", "let"}
        and not re.match(r"\S+ (?:by|of|is|was)\b", bare)
    ):
        return f"I {low}"
    if first in ELIDED_STATES and not re.match(r"(?:is|was|you|it|to)\b", rest):
        return f"I {low}"
    return sentence


def _without_echo(told: str, name: str) -> str:
    """Drop the repeated name of "Ana went and Ana saw", where nobody else came between."""
    again = re.compile(rf"(,? (?:and|but|then)) {re.escape(name)} (?=[a-z])")
    match = again.search(told)
    if match is None or not told.startswith(f"{name} "):
        return told
    between = told[len(name) : match.start()]
    if re.search(r",|\b(?:and|but|because|when|that|which|who|if|while|so)\b", between):
        return told
    return told[: match.start()] + match[1] + told[match.end() - 1 :]
