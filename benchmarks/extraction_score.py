"""How an extraction is scored against a gold case; the measures are those of extraction.py."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from reverie.memory_graph.drafts import OWNER
from reverie.models.protocol import Extraction
from reverie.models.rules.names import chinese_names
from reverie.models.rules.text import clean, fold, is_chinese, numbers

_OWNER_NAMES = {"user", "用户", "我"}
_LABELS = {"user", "user's"}


class Line(msgspec.Struct, frozen=True):
    """A turn of a case."""

    speaker: str
    text: str


class Fact(msgspec.Struct, frozen=True):
    """A fact: a memory holds it when it has one word of each group of `keys`."""

    text: str
    keys: tuple[tuple[str, ...], ...]


class Name(msgspec.Struct, frozen=True):
    """An entity and its other names."""

    name: str
    alt: tuple[str, ...] = ()


class Triple(msgspec.Struct, frozen=True):
    """What head, relation (stems) and tail may be."""

    h: tuple[str, ...]
    r: tuple[str, ...]
    t: tuple[str, ...]


class Case(msgspec.Struct, frozen=True):
    """One dialogue and what it tells."""

    id: str
    lang: str
    dialogue: tuple[Line, ...]
    facts: tuple[Fact, ...] = ()
    entities: tuple[Name, ...] = ()
    triples: tuple[Triple, ...] = ()


class Overlap(msgspec.Struct):
    """Counts of what is right, found and wanted."""

    right_found: int = 0  # of the found ones
    right_gold: int = 0  # of the wanted ones
    found: int = 0
    gold: int = 0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where nothing is right."""
        if not self.right_found or not self.right_gold:
            return 0.0
        precision, recall = self.right_found / self.found, self.right_gold / self.gold
        return 2 * precision * recall / (precision + recall)


class Score(msgspec.Struct):
    """The sums of a method over cases."""

    cases: int = 0
    turns: int = 0
    facts: int = 0
    facts_found: int = 0
    entities: Overlap = msgspec.field(default_factory=Overlap)
    triples: Overlap = msgspec.field(default_factory=Overlap)
    pairs: Overlap = msgspec.field(default_factory=Overlap)
    empty: int = 0
    fires: int = 0
    ungrounded: int = 0
    memories: int = 0
    calls: int = 0
    tokens: int = 0
    cpu_s: float = 0.0

    @property
    def fact_recall(self) -> float:
        """The share of facts that a memory holds; 1 where there are none."""
        return self.facts_found / self.facts if self.facts else 1.0


def judge(case: Case, found: Sequence[Extraction], score: Score) -> list[str]:
    """Add a case to a score.

    Args:
        case: the gold.
        found: an extraction per turn.
        score: changed.

    Returns:
        What is wrong, for people.
    """
    wrong: list[str] = []
    texts = [draft.text for one in found for draft in one.memories]
    score.cases += 1
    score.memories += len(texts)
    score.facts += len(case.facts)
    for fact in case.facts:
        if any(_holds(text, fact) for text in texts):
            score.facts_found += 1
        else:
            wrong.append(f"no fact: {fact.text}")
    if not case.facts:
        score.empty += 1
        score.fires += bool(texts)
        wrong += [f"kept: {text}" for text in texts]
    source = "\n".join(f"{line.speaker} {line.text}" for line in case.dialogue)
    for text in texts:
        if loose := ungrounded(text, source):
            score.ungrounded += 1
            wrong.append(f"not in the dialogue: {', '.join(sorted(loose))}")
    wrong += _entities(case, found, score.entities)
    _triples(case, found, score)
    return wrong


def _holds(text: str, fact: Fact) -> bool:
    folded = text.casefold()
    return all(any(word.casefold() in folded for word in group) for group in fact.keys)


def ungrounded(text: str, source: str) -> set[str]:
    """Return the names and numbers of a memory that stand nowhere in its source.

    A name is a capitalised word or a Chinese name; case does not count.
    """
    known = clean(source).casefold()
    names = {w.casefold() for w in re.findall(r"[A-Z][\w'-]*[\w]", clean(text))} - _LABELS
    if is_chinese(text):
        names |= {entity.name.casefold() for entity in chinese_names(text)}
    loose = {n for n in names if n not in known and n.removesuffix("'s") not in known}
    digits = set(re.findall(r"\d+(?:[.:,]\d+)*", text))
    loose |= {number for number in digits if number not in known}
    return loose | (numbers(text) - numbers(source))


def _bare(name: str) -> str:
    return re.sub(r"^(?:the|a|an) ", "", fold(name))


def _entities(case: Case, found: Sequence[Extraction], overlap: Overlap) -> list[str]:
    names = {_bare(e.name): e.name for one in found for e in one.entities}
    wanted = [{_bare(n) for n in (gold.name, *gold.alt)} for gold in case.entities]
    every = set().union(*wanted)
    overlap.found += len(names)
    overlap.gold += len(wanted)
    overlap.right_found += sum(name in every for name in names)
    overlap.right_gold += sum(bool(group & names.keys()) for group in wanted)
    missed = [
        g.name for g, group in zip(case.entities, wanted, strict=True) if not group & names.keys()
    ]
    spare = [shown for name, shown in names.items() if name not in every]
    return [f"no entity: {n}" for n in missed] + [f"spare entity: {n}" for n in spare]


def _triples(case: Case, found: Sequence[Extraction], score: Score) -> None:
    made = {
        (_head(r.head), r.predicate.replace("_", " "), _bare(r.tail))
        for one in found
        for draft in one.memories
        for r in draft.relations
    }
    for overlap, with_relation in ((score.triples, True), (score.pairs, False)):
        hits = [
            [_fits(gold, triple, with_relation=with_relation) for triple in made]
            for gold in case.triples
        ]
        overlap.found += len(made)
        overlap.gold += len(case.triples)
        overlap.right_gold += sum(any(row) for row in hits)
        overlap.right_found += sum(any(column) for column in zip(*hits, strict=True))


def _head(head: str) -> str:
    return "user" if head == OWNER else _bare(head)


def _fits(gold: Triple, triple: tuple[str, str, str], *, with_relation: bool) -> bool:
    head, relation, tail = triple
    heads = {_bare(h) for h in gold.h}
    is_head = head in heads or (head == "user" and bool(heads & _OWNER_NAMES))
    is_tail = tail in {_bare(t) for t in gold.t}
    return is_head and is_tail and (not with_relation or any(stem in relation for stem in gold.r))
