"""From lines of the span adapter to statements: third-person text, slot, relation, entities.

A line of a plain relation becomes a sentence of that relation, which the rules' own parser reads,
so that slots and relations are those of the rules. A line of a loose one (an event, a plan) keeps
the clause of the turn that it stands in.
"""

from __future__ import annotations

import re

import msgspec

from reverie.memory_graph.drafts import MemoryDraft
from reverie.models.prompts import SpanFact
from reverie.models.protocol import Turn
from reverie.models.rules import chinese, chinese_frame, english
from reverie.models.rules.claims import KIN_PREDICATES, PREDICATES, Claim
from reverie.models.rules.clauses import split_clauses
from reverie.models.rules.english_build import with_article
from reverie.models.rules.extract import draft_of
from reverie.models.rules.person import to_third
from reverie.models.rules.text import MAX_CLAUSE_CHARS, clean, is_chinese, sentences

CONFIDENCE = 0.6  # of what the small model found and no rule did

_LOOSE = frozenset({"event", "plans", "does", "gave", "found", "wants", "needs"})
_DENIED = frozenset({"likes", "allergic_to", "skilled_in", "speaks"})
_BEGUN = frozenset({"event", "gave", "found", "met", "visited"})  # said of the past
# relation -> (what holds, what is denied or over); {s} subject, {o} span
_ENGLISH: dict[str, tuple[str, str]] = {
    "name": ("{s}'s name is {o}", "{s}'s name is not {o}"),
    "age": ("{s} is {o} years old", "{s} is not {o} years old"),
    "birthday": ("{s}'s birthday is {o}", "{s}'s birthday is not {o}"),
    "lives_in": ("{s} lives in {o}", "{s} no longer lives in {o}"),
    "born_in": ("{s} was born in {o}", "{s} was not born in {o}"),
    "works_at": ("{s} works at {o}", "{s} no longer works at {o}"),
    "works_as": ("{s} works as {a}", "{s} no longer works as {a}"),
    "studies_at": ("{s} studies at {o}", "{s} no longer studies at {o}"),
    "studies": ("{s} studies {o}", "{s} no longer studies {o}"),
    "likes": ("{s} likes {o}", "{s} doesn't like {o}"),
    "dislikes": ("{s} dislikes {o}", "{s} no longer dislikes {o}"),
    "prefers": ("{s} prefers {o}", "{s} doesn't prefer {o}"),
    "favourite": ("{s}'s favourite is {o}", "{s}'s favourite is not {o}"),
    "diet": ("{s} is {o}", "{s} is no longer {o}"),
    "allergic_to": ("{s} is allergic to {o}", "{s} is not allergic to {o}"),
    "has_condition": ("{s} has {o}", "{s} no longer has {o}"),
    "partner": ("{s}'s partner is {o}", "{s} broke up with {o}"),
    "manager": ("{s}'s manager is {o}", "{s}'s manager is no longer {o}"),
    "has_pet": ("{s} has {a}", "{s} no longer has {a}"),
    "has": ("{s} has {a}", "{s} no longer has {a}"),
    "speaks": ("{s} speaks {o}", "{s} doesn't speak {o}"),
    "plays": ("{s} plays {o}", "{s} no longer plays {o}"),
    "learning": ("{s} is learning {o}", "{s} is no longer learning {o}"),
    "training_for": ("{s} is training for {o}", "{s} cancelled {o}"),
    "met": ("{s} met {o}", "{s} didn't meet {o}"),
    "visited": ("{s} visited {o}", "{s} didn't visit {o}"),
}
_CHINESE: dict[str, tuple[str, str]] = {
    "name": ("{s}的名字是{o}", "{s}的名字不是{o}"),
    "age": ("{s}今年{o}", "{s}不是{o}"),
    "birthday": ("{s}的生日是{o}", "{s}的生日不是{o}"),
    "lives_in": ("{s}住在{o}", "{s}不再住在{o}"),
    "born_in": ("{s}出生在{o}", "{s}不是{o}人"),
    "works_at": ("{s}在{o}工作", "{s}不再在{o}工作"),
    "works_as": ("{s}是{o}", "{s}不再是{o}"),
    "studies_at": ("{s}在{o}上学", "{s}不再在{o}上学"),
    "studies": ("{s}主修{o}", "{s}不再主修{o}"),
    "likes": ("{s}喜欢{o}", "{s}不喜欢{o}"),
    "dislikes": ("{s}讨厌{o}", "{s}不再讨厌{o}"),
    "prefers": ("{s}更喜欢{o}", "{s}不再更喜欢{o}"),
    "favourite": ("{s}最喜欢{o}", "{s}不再最喜欢{o}"),
    "diet": ("{s}{o}", "{s}不再{o}"),
    "allergic_to": ("{s}对{o}过敏", "{s}对{o}不过敏"),
    "has_condition": ("{s}有{o}", "{s}不再有{o}"),
    "partner": ("{s}的伴侣是{o}", "{s}和{o}分手了"),
    "manager": ("{s}的老板是{o}", "{s}的老板不再是{o}"),
    "has_pet": ("{s}养了{o}", "{s}不再养{o}"),
    "has": ("{s}有{o}", "{s}没有{o}了"),
    "speaks": ("{s}会说{o}", "{s}不会说{o}"),
    "plays": ("{s}会{o}", "{s}不再{o}"),
    "learning": ("{s}在学{o}", "{s}不再学{o}"),
    "training_for": ("{s}在准备{o}", "{s}取消了{o}"),
    "met": ("{s}认识了{o}", "{s}没有认识{o}"),
    "visited": ("{s}去了{o}", "{s}没有去{o}"),
}
_KIN_ENGLISH = ("{s} has a {k} named {o}", "{s} has no {k} named {o}")
_KIN_CHINESE = {
    "mother": "妈妈", "father": "爸爸", "sister": "姐妹", "brother": "兄弟", "daughter": "女儿",
    "son": "儿子", "friend": "朋友", "colleague": "同事",
}  # fmt: skip
_FIRST = re.compile(r"(?:I|me|we|us|myself|im|I'm|ive|I've)", re.IGNORECASE)
_POSSESSED = re.compile(r"(?:my|our) (?P<rest>.+)", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"(?:he|she|it|they|him|her|them|you|your|yours|this|that|these|those|there|who|what|one"
    r"|[他她它你您这那谁]们?)(?: .*)?",
    re.IGNORECASE,
)
_FIRST_HAN = re.compile("(?:我们家|我们|咱们|本人|俺|我)(?P<rest>.*)")
_DETERMINED = re.compile(
    r"(?:an?|the|two|three|four|five|six|\d+|some|my|our|their|his|her|no|many|several)\b"
    r"|.*(?:[^s]s|ese|ch)$",
    re.IGNORECASE,
)


def subject_named(subject: str, label: str) -> str:
    """Return a subject in the third person, or "" where a word alone does not tell who it is."""
    subject = " ".join(subject.split())
    if subject == label:
        return label
    if is_chinese(subject):
        if m := _FIRST_HAN.fullmatch(subject):
            rest = m["rest"].removeprefix("的")
            return f"{label}的{rest}" if rest else label
        return "" if _UNKNOWN.fullmatch(subject) else subject
    if _FIRST.fullmatch(subject):
        return label
    if m := _POSSESSED.fullmatch(subject):
        return f"{label}'s {m['rest']}"
    return "" if _UNKNOWN.fullmatch(subject) else subject


def draft_of_span(fact: SpanFact, turn: Turn, label: str) -> MemoryDraft | None:
    """Return the memory that a line makes, or None where it makes no sentence.

    Args:
        fact: grounded in `turn` (`prompts.parse_spans`).
        turn: the turn.
        label: how its speaker is called in the third person.
    """
    subject = subject_named(fact.subject, label)
    if not subject or not fact.span.strip():
        return None
    han = is_chinese(turn.text)
    if fact.relation in _LOOSE:
        text = _clause(turn.text, fact.span, label, han=han)
    else:
        text = _sentence(fact, subject, han=han)
    if not text:
        return None
    claim = _claim(fact, subject, text, label, han=han)
    draft = draft_of(claim, turn, label)
    return msgspec.structs.replace(draft, confidence=min(draft.confidence, CONFIDENCE))


def _sentence(fact: SpanFact, subject: str, *, han: bool) -> str:
    span = fact.span
    if fact.relation in KIN_PREDICATES:
        if han:
            kin = _KIN_CHINESE.get(fact.relation, "亲人")
            return f"{subject}的{kin}{'叫' if fact.holds else '不叫'}{span}"
        if not span[:1].isupper():
            return f"{subject} has {with_article(fact.relation)}" if fact.holds else ""
        return _KIN_ENGLISH[not fact.holds].format(s=subject, k=fact.relation, o=span)
    forms = (_CHINESE if han else _ENGLISH).get(fact.relation)
    if forms is None:
        return ""
    if fact.relation == "age" and not span.isdigit():
        return forms[not fact.holds].format(s=subject, o=span) if han else f"{subject} is {span}"
    name = span[:1].isupper()
    if not han and fact.relation == "has_pet" and name:
        return f"{subject} {'has' if fact.holds else 'no longer has'} a pet named {span}"
    article = span if name or _DETERMINED.match(span) else with_article(span)
    return forms[not fact.holds].format(s=subject, o=span, a=article)


def _clause(text: str, span: str, label: str, *, han: bool) -> str:
    """The clause of the turn that holds the span, in the third person; no question."""
    for sentence in sentences(clean(text)):
        if span not in sentence or sentence.rstrip().endswith(("?", "？")):
            continue
        parts = re.split("[，,；;]", sentence) if han else split_clauses(sentence.rstrip(".!"))
        for part in parts:
            if span in part and len(part) <= MAX_CLAUSE_CHARS:
                third = chinese_frame.to_third(part, label) if han else to_third(part, label)
                third = third.strip(" ,.!;:，。！；")
                if not third.startswith(label):
                    continue
                return third
    return ""


def _claim(fact: SpanFact, subject: str, text: str, label: str, *, han: bool) -> Claim:
    """The claim as the rules read it, or made from the line where they read something else."""
    predicate, detail = fact.relation, ""
    if predicate in KIN_PREDICATES:
        predicate, detail = "kin", fact.relation
    negative = predicate == "dislikes"
    predicate = "likes" if negative else predicate
    parse = chinese.parse if han else english.parse
    for claim in parse(text, label, loose=True):
        if claim.predicate == predicate and claim.subject == subject:
            return msgspec.structs.replace(claim, text=text)
    if predicate not in PREDICATES:
        predicate = "state"
    denied = predicate in _DENIED  # where "not" says how it is, and does not only end something
    return Claim(
        subject,
        predicate,
        fact.span,
        text,
        polarity=-1 if denied and negative == fact.holds else 1,
        ended=not denied and not fact.holds,
        detail=detail,
        past=predicate in _BEGUN,
        explicit=False,
    )
