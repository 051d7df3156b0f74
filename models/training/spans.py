"""Turns and what they state, made from `turns_*.toml`, for the span task."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from reverie.models.prompts import MAX_LINES, SpanFact, word_runs
from reverie.models.training.lexicon import Language, Split, Value, load, values

_IDLE = 0.2  # share of turns that state nothing
_LED = 0.3  # share that begins with something that does not matter
_CLOSED = 0.25  # and that ends so
_TOLD = 0.35  # share with a turn before it
_TWO = 0.35  # share of two statements
_ARTICLE = re.compile(r"(?:an?|the) (?=\S)", re.IGNORECASE)
_FACT = re.compile(r"(?P<subject>\S+) \| (?P<denied>not )?(?P<relation>\w+) \| (?P<span>\S+)")


class Clause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ways to state, or to deny, one relation."""

    relation: str
    values: str
    say: tuple[str, ...]
    denied: tuple[str, ...] = msgspec.field(name="not", default=())


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of several facts."""

    say: str
    facts: tuple[str, ...]
    words: dict[str, str]


class Bank(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a language's turns are made of."""

    open: tuple[str, ...]
    close: tuple[str, ...]
    join: tuple[str, ...]
    idle: tuple[str, ...]
    clause: tuple[Clause, ...]
    pattern: tuple[Pattern, ...]


class SpanCase(NamedTuple):
    """A turn, its speaker and history as the prompt names them, and what it states."""

    speaker: str
    text: str
    history: tuple[tuple[str, str], ...]
    facts: tuple[SpanFact, ...]
    language: Language


Said = tuple[str, list[SpanFact]]


@cache
def bank(language: Language) -> Bank:
    """Return the templates of a language."""
    return msgspec.convert(load(f"turns_{language}.toml"), Bank)


def spans(
    split: Split, count: int, *, seed: int, chinese_share: float = 0.35
) -> Iterator[SpanCase]:
    """Yield `count` different turns of a split; the same arguments give the same turns.

    Statements are divided between the splits by their words; every fourth sentence of a relation
    with four or more is kept from training.
    """
    rng = random.Random(f"spans {split} {seed}")  # noqa: S311 - seeded on purpose
    seen: set[str] = set()
    while len(seen) < count:
        language: Language = "zh" if rng.random() < chinese_share else "en"
        case = _case(language, split, rng)
        if case is not None and case.text not in seen:
            seen.add(case.text)
            yield case


def _case(language: Language, split: Split, rng: random.Random) -> SpanCase | None:
    found = bank(language)
    zh = language == "zh"
    if rng.random() < 0.6:  # noqa: PLR2004 - most turns are the user's
        speaker = "用户" if zh else "User"
    else:
        speaker = rng.choice(values(language, rng.choice(("game", "first")), split))[0]
    if rng.random() < _IDLE:
        text, facts = rng.choice(found.idle), list[SpanFact]()
        if rng.random() < 0.4:  # noqa: PLR2004 - or the list would soon be used up
            text = f"{text}{'' if zh else ' '}{rng.choice(found.idle)}"
    else:
        text, facts = _statements(found, language, split, speaker, rng)
        if rng.random() < _LED:
            lead = rng.choice(found.open)
            text = f"{lead}{'' if zh else ' '}{text if zh or lead[-1] == ',' else _upper(text)}"
        elif not zh and rng.random() < 0.8:  # noqa: PLR2004 - some write carelessly
            text = _upper(text)
        text += rng.choice(("。", "。", "！", "")) if zh else rng.choice((".", ".", "!", ""))
        if rng.random() < _CLOSED:
            text = f"{text}{'' if zh else ' '}{rng.choice(found.close)}"
    history: tuple[tuple[str, str], ...] = ()
    if rng.random() < _TOLD:
        other = rng.choice(("助手", "守卫") if zh else ("assistant", "assistant", "Guard"))
        history = ((other, rng.choice(found.idle)),)
    runs = word_runs(text)
    if len(facts) > MAX_LINES or any(f.span not in runs for f in facts):
        return None
    return SpanCase(speaker, text, history, tuple(facts), language)


def _statements(
    found: Bank, language: Language, split: Split, speaker: str, rng: random.Random
) -> Said:
    text, facts = _one(found, language, split, speaker, rng)
    if rng.random() < _TWO:
        more, others = _one(found, language, split, speaker, rng)
        link = rng.choice(found.join)
        text = f"{text}{link}{_upper(more) if link.endswith('. ') else more}"
        facts += [fact for fact in others if fact not in facts]
    return text, facts


def _one(found: Bank, language: Language, split: Split, speaker: str, rng: random.Random) -> Said:
    """One sentence and its facts; no two words of a sentence are the same."""
    while True:
        text, facts, words = _drawn(found, language, split, rng)
        chosen = {name: rng.choice(ways) for name, ways in words.items()}
        if len(set(chosen.values())) == len(chosen):
            break
    for name, word in chosen.items():
        text = text.replace(f"{{{name}}}", word)
    return text, [_fact(fact, chosen, speaker) for fact in facts]


def _drawn(
    found: Bank, language: Language, split: Split, rng: random.Random
) -> tuple[str, tuple[str, ...], dict[str, Value]]:
    """A template, its facts, and a word for each of its fields."""
    if rng.random() < 0.35:  # noqa: PLR2004 - a third of several facts
        pattern = rng.choice(found.pattern)
        words = {name: rng.choice(values(language, w, split)) for name, w in pattern.words.items()}
        return pattern.say, pattern.facts, words
    clause = rng.choice(found.clause)
    denied = bool(clause.denied) and rng.random() < 0.35  # noqa: PLR2004
    text = rng.choice(_ways(clause.denied if denied else clause.say, split))
    facts = (f"{{S}} | {'not ' if denied else ''}{clause.relation} | {{v}}",)
    return text, facts, {"v": rng.choice(values(language, clause.values, split))}


def _ways(templates: tuple[str, ...], split: Split) -> tuple[str, ...]:
    if len(templates) < 4:  # noqa: PLR2004 - too few to keep one back
        return templates
    return templates[:-1] if split == "train" else templates


def _fact(line: str, words: dict[str, str], speaker: str) -> SpanFact:
    match = _FACT.fullmatch(line)
    if match is None:
        msg = f"not `subject | relation | span`: {line}"
        raise ValueError(msg)

    def word(field: str) -> str:
        name = match[field].strip("{}")
        return speaker if name == "S" else _ARTICLE.sub("", words[name], count=1)

    return SpanFact(word("subject"), match["relation"], word("span"), not match["denied"])


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
