"""Building blocks of the English rules: names, objects, verb forms, and the subject of a clause."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from typing import NamedTuple

from reverie.models.rules.vocab import (
    ADVERBS,
    ANY_VERB,
    BASES,
    COMMON,
    GERUNDS,
    MODALS,
    PARTICIPLES,
    PASTS,
    THIRDS,
)

UPPER = "A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f"
_TOKEN = rf"(?:(?:St|Dr|Mr|Mrs|Ms|Prof)\. |[A-Z]\. )?[{UPPER}][\w-]*(?:'(?!s\b)\w+)?"
NAME = rf"{_TOKEN}(?: (?:(?:de|van|von|del|der|la|al|bin|of|of the|and) )?{_TOKEN}){{0,3}}"
PERSON = rf"{_TOKEN}(?: (?:(?:de|van|von|del|der|la|al|bin) )?{_TOKEN}){{0,2}}"
NAMES = rf"{PERSON}(?:(?:, | and |, and | & ){PERSON}){{0,4}}"
POSS = rf"(?:their|his|her|its|my|{_TOKEN}(?: {_TOKEN})?'s)"
DET = rf"(?:an?|the|some|{POSS}|this|these|two|three|\d+)"
_CHAR = r"(?:[^,;.!?()\"]|[.,:](?=\d|\w)|(?<=\bSt)\.|(?<=\b[A-Z])\.(?= [A-Z]))"
_END = r"(?=[,;.!?()\"]|$"
_CLAUSE_WORDS = (
    "because|since|when|which|who|that|if|until|till|after|before|but|while|although|though|so"
    "|anymore|any more|any longer|too|as well|instead|now|again|these days|at the moment|lately"
    "|yesterday|today|tonight|tomorrow|last (?:week|month|year|night|summer|winter|spring)|ever"
)
# An object that may hold prepositions ("sitting by the window") and one that may not.
LONG = rf"(?P<o>{_CHAR}{{1,120}}?){_END}|\s+(?:{_CLAUSE_WORDS})\b)"
SHORT = (
    rf"(?P<o>{_CHAR}{{1,100}}?){_END}|\s+(?:{_CLAUSE_WORDS}|for|with|as|during|by|and|every|each"
    r"|last|next|this|back|ago|early|late|once|twice|in|on|from|to|at|where|right now|just|near"
    r"|over|whenever|about|than|called|named)\b)"
)


def forms(*bases: str) -> str:
    """Return a regex alternation of every form of the verbs `bases`."""
    found: set[str] = set()
    for table in (THIRDS, PASTS, PARTICIPLES, GERUNDS):
        found.update(form for form, base in table.items() if base in bases)
    return "(?:" + "|".join(sorted(found | set(bases), key=len, reverse=True)) + r")\b"


class Frame(NamedTuple):
    """A clause taken apart: "Ana's sister Bea no longer lives in Rome" has the subject
    "Ana's sister Bea", owner "Ana", noun "sister", name "Bea", core "lives in Rome", ended."""

    subject: str
    owner: str
    noun: str
    name: str
    core: str
    negated: bool = False
    ended: bool = False
    past: bool = False
    future: bool = False
    now: bool = False


_ADVERB = re.compile(rf"(?:{ADVERBS}),? ", re.IGNORECASE)
_VERB_LIKE = ANY_VERB | MODALS | {"are", "no", "never", "been", "'s", "were"}
_FINITE = frozenset(THIRDS) | frozenset(PASTS) | MODALS | {"are", "were"}
_POSSESSED = re.compile(rf"(?P<owner>{NAME}|[Tt]he \w+|[Tt]heir|[Hh]is|[Hh]er)'?s? ", re.UNICODE)


def subject_of(clause: str, label: str) -> tuple[str, str, str, str, str] | None:
    """Return (subject, owner, noun, name, rest) of a third-person clause, or None.

    Args:
        clause: for example "User's sister Elena lives in Rome".
        label: the speaker's name, tried first.
    """
    if clause.startswith(label):
        rest = clause[len(label) :]
        if rest.startswith(" "):
            return label, label, "", "", rest.lstrip()
        if rest.startswith("'s "):
            return _possessed(label, rest[3:])
    words = clause.split(" ")
    if clause[:4].lower() in {"the ", "all "} or clause[:2].lower() == "a ":
        for i in range(2, min(len(words), 8)):
            if words[i].lower() in _FINITE:
                subject = " ".join(words[:i])
                return subject, subject, "", "", " ".join(words[i:])
            if words[i - 1].endswith("'s") and words[i].lower() not in _FINITE:
                continue
        return None
    match = re.match(rf"(?P<name>{PERSON})(?P<poss>'s)? ", clause)
    if match is None or match["name"].lower() in COMMON:
        return None
    rest = clause[match.end() :]
    if match["poss"]:
        return _possessed(match["name"], rest)
    first = _ADVERB.sub("", rest).split(" ", 1)[0].lower()
    if first in _FINITE or first == "no":
        return match["name"], match["name"], "", "", rest
    return None


def _possessed(owner: str, rest: str) -> tuple[str, str, str, str, str] | None:
    """Split "best friend Bea, lives in Rome" into noun, name and what follows."""
    words = rest.split(" ")
    noun: list[str] = []
    name: list[str] = []
    for i, word in enumerate(words[:9]):
        bare = word.strip(",")
        low = bare.lower()
        if noun and low in _VERB_LIKE and not (low in BASES and low not in THIRDS and not name):
            break
        if noun and _ADVERB.fullmatch(f"{low} "):
            break
        if (bare[:1].isupper() and noun and low != "i") or (name and low in {"and", "&"}):
            name.append(word)
        elif name:
            break
        elif (word.endswith(",") and noun and not words[i + 1 : i + 2]) or low == "'s" or not bare:
            return None
        else:
            noun.append(bare)
    else:
        i = len(words)
    if not noun:
        return None
    joined = " ".join(name).strip(", ")
    head = " ".join(noun)
    subject = f"{owner}'s {head}" + (f" {joined}" if joined else "")
    return subject, owner, head.lower(), joined, " ".join(words[i:])


_FUTURE = re.compile(
    r"(?:will|shall|'ll|(?:is|was) (?:going to|gonna|planning (?:to|on)|about to|hoping to|set to"
    r"|scheduled to|due to)|plans (?:to|on)|hopes to|intends to|decided to|has decided to"
    r"|gonna|is looking forward to|can't wait to) (?:be )?",
)
_ENDED = re.compile(
    r"(?:(?:is |has |does |was )?no longer|(?:has )?stopped|(?:has )?given up|gave up|used to"
    r"|(?:has )?quit(?= \w+ing\b)|doesn't (?=.* (?:anymore|any more|any longer)\b)"
    r"|does not (?=.* (?:anymore|any more|any longer)\b)|isn't (?=.* (?:anymore|any more|any longer)\b)"
    r"|is not (?=.* (?:anymore|any more|any longer)\b)|can't (?=.* (?:anymore|any more)\b)) ?",
)
_NEGATED = re.compile(
    r"(?:doesn't|does not|didn't|did not|won't|will not|isn't|is not|wasn't|was not|hasn't|has not"
    r"|never|can't|cannot|can not|not|do not|don't|aren't|are not) ",
)
_PERFECT = re.compile(
    r"(?:has|have|had|'s) (?:(?:" + ADVERBS + r") )*(?:been (?=\w+ing )|come to )"
)
_HAS_DONE = re.compile(r"(?:has|have|had) (?:(?:" + ADVERBS + r") )*(?=(?P<p>\w+) )")
_PROGRESSIVE = re.compile(r"(?:is|was|are|were|been) (?:(?:" + ADVERBS + r") )*(?=(?P<g>\w+ing)\b)")
_NO_GERUND = frozenset(
    """interesting amazing boring exciting charming willing missing nothing something king ring string
    spring evening morning surprising confusing annoying being wedding thing""".split(),
)
_COPULA_ADVERB = re.compile(rf"(?P<copula>(?:is|was|are) )(?P<adverb>{ADVERBS}) ")
_STARTED = re.compile(
    r"(?:started|began|has started|has begun|starting|took up|has taken up) (?:to )?(?=\w+ing\b)|(?:started|began|has started|has begun) to |(?:is |was )?trying to (?=(?:learn|lose|become|save)\b)"
)


def frame_of(clause: str, label: str) -> Frame | None:  # noqa: C901 - auxiliaries nest
    """Take a third-person clause apart, or return None where no subject is found."""
    parts = subject_of(clause, label)
    if parts is None:
        return None
    core = parts[4]
    negated = ended = past = future = now = False
    for _ in range(6):
        before = core
        if match := _ADVERB.match(core):
            now = now or match.group().strip(" ,").lower() in {"now", "currently"}
            past = past or match.group().strip(" ,").lower() in {"previously", "formerly", "once"}
            core = core[match.end() :]
        if match := _ENDED.match(core):
            word = match.group()
            copula = word.startswith(("is ", "isn't"))
            core = ("is " if copula else "has " if word.startswith("has no") else "") + core[
                match.end() :
            ]
            ended = True
            past = past or word.startswith("used")
        elif match := _FUTURE.match(core):
            future = True
            core = core[match.end() :]
        elif match := _NEGATED.match(core):
            copula = match.group().startswith(("is", "was", "are"))
            negated = not negated
            core = ("is " if copula else "") + core[match.end() :]
            if copula:
                break
        elif match := _PERFECT.match(core):
            core = core[match.end() :]
        elif (
            (match := _HAS_DONE.match(core))
            and match["p"].lower() in PARTICIPLES
            and match["p"] != "had"
        ):
            core = core[match.end() :]
            core = "is" + core[4:] if core.startswith("been ") else core
        elif (match := _PROGRESSIVE.match(core)) and match["g"].lower() not in _NO_GERUND:
            core = core[match.end() :]
        elif match := _STARTED.match(core):
            core = core[match.end() :]
            now = True
        if match := _COPULA_ADVERB.match(core):
            now = now or match["adverb"].lower() in {"now", "currently"}
            core = match["copula"] + core[match.end() :]
        if core == before:
            break
    first = core.split(" ", 1)[0].lower()
    past = past or (first in PASTS and first not in BASES)
    return Frame(*parts[:4], core.strip(), negated, ended, past, future, now)
