"""Triples of what somebody does, from a told sentence: (Ana, adopt, rabbits).

The verbs are a closed list, said in their base form; the head is the clause's subject, the tail the
first name or plain thing behind the verb. What is denied, over, wished or still to come gives none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reverie.memory_graph.drafts import OWNER, EntityDraft, RelationDraft
from reverie.models.rules.apart import is_unreal
from reverie.models.rules.claims import DEEDS, USER_LABELS
from reverie.models.rules.clauses import split_clauses
from reverie.models.rules.cues import QUOTED, REPORTED
from reverie.models.rules.phrases import PERSON, frame_of
from reverie.models.rules.text import sentences
from reverie.models.rules.things import type_of
from reverie.models.rules.vocab import ADVERBS, BASES, GERUNDS, PARTICIPLES, PASTS, THIRDS

CONFIDENCE = 0.6  # as of what the rules match loosely
MAX_WORDS_BETWEEN = 7  # of a verb and its tail

# Verbs whose relation has another name, with what must follow; the first that fits is taken.
_NAMED = (
    ("works_at", re.compile(r"work\w*\b.*\b(?:at|for) ")),
    ("gave", re.compile(r"give ")),
    ("found", re.compile(r"find ")),
    ("met", re.compile(r"meet ")),
    ("visited", re.compile(r"visit ")),
    ("uses", re.compile(r"use ")),
    ("needs", re.compile(r"need ")),
    ("plays", re.compile(r"play ")),
    ("eats", re.compile(r"eat ")),
    ("drinks", re.compile(r"drink ")),
)
_NAMES = re.compile(r" [A-Z][\w'-]+")
_TWO_TAILS = frozenset("give sell lend send hand promise bring trade deliver return owe".split())
# Verbs whose tail may stand behind a preposition: "started at Monzo".
_TO = frozenset(
    """start work swear volunteer fly go train fight serve move study sign swap switch upgrade trade
    compete turn propose""".split()
)
_PREPOSITION = re.compile(
    r"\b(?:in|on|at|to|from|with|for|by|near|over|during|about|into|before|after|because|than|like|without)\b"
)
_PHRASAL = (("pick", "up", "buy"), ("give", "back", "return"), ("send", "back", "return"))
_NOT_PHRASAL = re.compile(r"(?:rid of|up\b(?! (?:an?|the|some) )|over\b|off\b|along\b|used to)")
_DOES = re.compile(
    rf"(?P<who>[Tt]he player|{PERSON}) (?:(?:{ADVERBS}) )*(?P<verb>[a-z]+ed) (?P<rest>.+)"
)
_DISTRUSTS = re.compile(r"\b(?:never|don't|do not|doesn't|can't) trust (?P<rest>.+)", re.IGNORECASE)
_HERE_BACK = re.compile(
    r"\bhere(?:'s| is| are) (?:your|the|his|her|their) (?P<rest>.+?) back\b", re.IGNORECASE
)


class _Clause(NamedTuple):
    head: str
    lemma: str
    rest: str  # behind the verb


def deeds(told: str, label: str, known: Sequence[EntityDraft]) -> tuple[RelationDraft, ...]:
    """Return the triples of a told English sentence, each once.

    Args:
        told: in the third person, for example "Ana adopted two rabbits and sold the car".
        label: its speaker as called there; "" for a narrator.
        known: the names and things of the sentence; no other may be a tail.
    """
    found: dict[tuple[str, str, str], RelationDraft] = {}
    names = frozenset(draft.name.casefold() for draft in known)
    for sentence in sentences(QUOTED.sub(" ", told)):
        if REPORTED.search(sentence):
            continue
        for text in _clauses(sentence, label):
            unreal = is_unreal(_NAMES.sub(" X", text))  # "Hope House" is no hope
            clause = None if unreal else _clause(text.rstrip(" .!"), label, names)
            if clause is None:
                continue
            predicate = _predicate(clause)
            tails = _tails(clause, known)
            for tail in tails:
                key = (clause.head, predicate, tail)
                found[key] = RelationDraft(*key, confidence=CONFIDENCE)
    return tuple(found.values())


def _clauses(sentence: str, label: str) -> list[str]:
    """Split a told sentence, also where its speaker is named again: "Ana sold it, Ana got ..."."""
    bare = sentence.removeprefix(f"{label}: ")
    if not label:
        return split_clauses(bare)
    parts = re.split(rf"(?:,|,?\s+(?:and|but|so))\s+(?={re.escape(label)} )", bare)
    return [clause for part in parts if part for clause in split_clauses(part)]


def _clause(text: str, label: str, names: frozenset[str]) -> _Clause | None:
    mine = OWNER if label in USER_LABELS else label
    if label and (wary := _DISTRUSTS.search(text)):
        return _Clause(mine, "distrust", wary["rest"])
    if label and (back := _HERE_BACK.match(text)):
        return _Clause(mine, "return", back["rest"])
    frame = frame_of(text, label or "\x00")
    if frame is None:
        plain = _DOES.match(text)
        if plain is None:
            return None
        subject, word, rest = plain["who"], plain["verb"], plain["rest"]
    elif frame.negated or frame.ended or frame.future or not frame.core:
        return None
    else:
        subject = frame.name or frame.subject
        word, _, rest = frame.core.partition(" ")
        if frame.noun and not frame.name:
            # "Ana's car is a Fiat Panda"
            is_one = (
                word in {"is", "was"} and frame.owner == label and type_of(frame.noun.split()[-1])
            )
            return _Clause(mine, "has", rest) if is_one else None
    lemma = _lemma(word.lower())
    for verb, particle, meant in _PHRASAL:
        if lemma == verb and re.search(rf"\b{particle}\b", " ".join(rest.split()[:5])):
            lemma = meant
            rest = re.sub(rf"^{particle} ", "", rest)
            break
    if lemma not in DEEDS or _NOT_PHRASAL.match(rest):
        return None
    head = re.sub(r"^[Tt]he ", "", subject)
    if subject in USER_LABELS:
        head = OWNER
    elif subject != label and head.casefold() not in {"player", *names}:
        return None
    return _Clause(head, lemma, rest)


def _lemma(word: str) -> str:
    for table in (PASTS, THIRDS, PARTICIPLES, GERUNDS):
        if word in table:
            return table[word]
    for end in ("ed", "d", "ing", "s"):
        if word.endswith(end) and (base := word.removesuffix(end)) in DEEDS | {"pick"}:
            return base
    return word if word in BASES else ""


def _predicate(clause: _Clause) -> str:
    said = f"{clause.lemma} {clause.rest}"
    return next((name for name, pattern in _NAMED if pattern.match(said)), clause.lemma)


def _tails(clause: _Clause, known: Sequence[EntityDraft]) -> list[str]:
    at: list[tuple[int, str]] = []
    for draft in known:
        place = re.search(
            rf"(?<!\w){re.escape(draft.name)}(?!\w)(?!'s \w)", clause.rest, re.IGNORECASE
        )
        if place and draft.name != clause.head:
            at.append((place.start(), draft.name))
    at.sort()
    near = [(p, n) for p, n in at if len(clause.rest[:p].split()) <= MAX_WORDS_BETWEEN]
    if not near:
        return []
    between = clause.rest[: near[0][0]]
    if clause.lemma not in _TO and _PREPOSITION.search(between):
        return []
    return [name for _, name in near][: 2 if clause.lemma in _TWO_TAILS else 1]
