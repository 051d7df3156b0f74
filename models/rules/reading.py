"""Statements read back: the claims of a kept text, whoever wrote it."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from reverie.models.rules import chinese, chinese_frame, english
from reverie.models.rules.claims import PREDICATES, USER_LABELS, Claim
from reverie.models.rules.clauses import split_clauses
from reverie.models.rules.person import to_third
from reverie.models.rules.text import (
    MAX_CLAUSE_CHARS,
    MAX_SCAN_CHARS,
    clean,
    is_chinese,
    key_words,
    numbers,
)
from reverie.models.rules.vocab import BASES, PASTS, THIRDS

MAX_HALVES = 3  # further verbs of a statement that are looked at
_NEW = re.compile(
    r"(?<=\w's )(?:new|current|latest) (?=[a-z])|(?<=^The )new (?=[a-z])"
    r"|^新(?=[\u4e00-\u9fff]{2,6}是)"
)
# What says when or whence a statement holds, before or after it; it is no part of its object.
_ASIDE = re.compile(
    r"^(?:据说|听说|据我所知|目前|最近|其实|大家都知道|众所周知|一直以来|这几年来?|近来|眼下|后来|终于"
    r"|从这个月起|前几天|有一次|[^，。不没]{1,6}很久，)[，,]?(?=\w)"
    r"|,? (?:these days|at the moment|right now|nowadays|for good|after all|recently|lately"
    r"|as far as (?:anyone|I|User) knows?|it seems|by all accounts|in fact|as it happens|of course"
    r"|as (?:before|ever|always|usual|people say)|in the end|to everyone's relief|apparently"
    r"|and is (?:very |quite )?(?:proud of|happy with|happy about) it|and has for (?:many )?years)"
    r"(?=[.!]*$)"
)
# A statement that is told only to be denied as a whole: "it is no longer true that ...".
_UNSAID = re.compile(
    r"(?:It (?:is|'s) (?:no longer|not) (?:true|so|the case)(?: any ?more)?,? that"
    r"|It used to be (?:so|true|the case),? but not any ?more,? that) (?P<s>.+)"
    r"|(?P<s2>.+?),? but (?:(?:that|it|this)(?: is|'s) (?:no longer|not) (?:true|so|the case)"
    r"(?: now| any ?more)?|not any ?more)[.!]*"
    r"|(?:以前|原来|过去)?(?P<s3>.+?)[，,]但?(?:现在|如今|已经)*(?:不是这样|不是如此|不再如此|不这样|不)了[。！]*",
    re.IGNORECASE,
)
# A value before what it is the value of.
_TURNED = (
    re.compile(
        r"The (?P<k>\w+(?: \w+)?) that (?P<s>.{1,60}?) (?:likes|loves|enjoys)"
        r" (?:the )?(?:most|best) (?P<is>is|are) (?P<v>.+)"
    ),
    re.compile(
        "(?P<v>[^，。是]{1,12})是(?P<s>.{1,20}?)最(?:喜欢|爱)的(?P<k>[^，。是]{1,8})[。！]?"
    ),
)
# What a statement names only to say that it is over: "five cats instead of three", "从初雪改到".
_FORMER = re.compile(
    r"(?:,? instead of|,? rather than) [^,;.]{1,40}"
    r"|从[^，。]{1,12}?(?=改到|改成|改为|推迟到|提前到)"
)
_RETRACTED = re.compile(r"(?P<who>.{1,80}?)(?: took back: |收回：)")


@lru_cache(maxsize=4096)
def claims_of(text: str) -> tuple[Claim, ...]:
    """Read the claims back out of a kept statement, in either language, any person."""
    text = _NEW.sub("", clean(text)[: MAX_CLAUSE_CHARS * 2])
    text = _ASIDE.sub("", text[: MAX_CLAUSE_CHARS * 2].strip())
    taken_back = _RETRACTED.match(text)
    if taken_back:
        text = text[taken_back.end() :]
    told = told_in(text)
    unsaid, text = told != text, _straight(told)
    if is_chinese(text):
        third = chinese_frame.to_third(text, USER_LABELS[1])
        label = USER_LABELS[1]
        found = chinese.parse(third, label, loose=True)
        rest = third.split("，") if not found else []
        for part in rest:
            found += chinese.parse(part, label, loose=True)
    else:
        found = []
        whole = english.is_couple(text)
        for clause in [text] if whole else split_clauses(text.rstrip(".!")):
            third = to_third(clause, USER_LABELS[0])
            found += english.parse(third[:1].upper() + third[1:], USER_LABELS[0], loose=True)
    if taken_back:
        found = [msgspec.structs.replace(c, ended=True) for c in found]
        found = found or [Claim(taken_back["who"], "retracted", text, text, ended=True)]
    if unsaid:
        found = [msgspec.structs.replace(c, ended=True) for c in found]
    return tuple(found)


def _straight(text: str) -> str:
    """The usual order of what names its value first: "the food that User likes most is rice"."""
    english_way, chinese_way = _TURNED
    if m := english_way.fullmatch(text):
        return f"{m['s']}'s favourite {m['k']} {m['is']} {m['v']}"
    if m := chinese_way.fullmatch(text):
        return f"{m['s']}最喜欢的{m['k']}是{m['v']}"
    return text


def is_unsaid(text: str) -> bool:
    """Return whether a statement is told only to say that it is no longer so."""
    return _UNSAID.fullmatch(text[: MAX_CLAUSE_CHARS * 2]) is not None


def told_in(text: str) -> str:
    """Return what a statement says is no longer so, or all of the statement."""
    match = _UNSAID.fullmatch(text)
    if match is None:
        return text
    told = match["s"] or match["s2"] or match["s3"]
    return told[:1].upper() + told[1:]


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


def readings(text: str, slot: str | None = None, polarity: int = 1) -> list[Said]:
    """Parse a statement into all its claims, the main one first: "had surgery and no longer wears
    glasses" claims two things.

    Args:
        text: the statement.
        slot: as its memory carries it, or None.
        polarity: see `read`.
    """
    main = read(text, slot, polarity)
    rest = [c for c in claims_of(text) if c != main.claim and c.slot != main.slot]
    parts = [main, *(msgspec.structs.replace(main, claim=claim) for claim in rest)]
    for part in _second_halves(text):
        half = read(part)
        parts.append(half)
    return parts


def _second_halves(text: str) -> list[str]:
    """What a second verb says of the same subject, as a statement of its own."""
    text = clean(text)[: MAX_CLAUSE_CHARS * 2].strip()
    if is_chinese(text):
        label = USER_LABELS[1]
        first, *rest = re.split("[，,；;]", text)
        if not first.startswith(label):
            return []
        return [
            label + part for part in rest[:MAX_HALVES] if chinese_frame.begins_without_subject(part)
        ]
    match = re.match(r"(?P<subject>User|[A-Z][\w]+|The \w+) ", text)
    if match is None:
        return []
    halves: list[str] = []
    for found in re.finditer(r",? and (?P<rest>(?:(?:now|also) )?(?P<verb>[a-z]+)\b.*)", text):
        word = found["verb"]
        verb = (
            word in THIRDS
            or re.fullmatch(r"[a-z]{3,}[^s\W]s", word)
            or word in {"is", "was", "has", "does", "doesn", "isn", "no", "never"}
        )
        if len(halves) < MAX_HALVES and (verb or (word in PASTS and word not in BASES)):
            halves.append(f"{match['subject']} {found['rest']}")
    return halves


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
    bare = told_in(_ASIDE.sub("", _FORMER.sub("", text[:MAX_SCAN_CHARS])))
    return Said(text, claim, key_words(bare), numbers(bare))
