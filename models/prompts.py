"""Prompts and answer forms of the small model's two tasks; training and use both read them here.

A trained adapter knows these words and no others: whoever changes one trains again.

Pairs: how a new statement stands to a known one, answered by the first token of a choice.
Spans: what a turn states, answered by up to four lines `subject | relation | span` or `none`.
The subject is a speaker or a run of words of the turn, the span is a run of at most four words
(six of Chinese, Japanese or Korean), so that nothing can be invented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from reverie.models.grammar_json import literal

# -- pairs ------------------------------------------------------------------------------

# In the order in which the rest of reverie counts them; each begins with a token of its own.
PAIR_CHOICES = (" same", " replaced", " ended", " unrelated")
MAX_PAIR_CHARS = 300  # of one statement; longer ones are cut in both training and use


def pair_prompt(old: str, new: str) -> str:
    """Return the question how `new` stands to `old`; the answer is one of `PAIR_CHOICES`.

    " same": says nothing else. " replaced": takes the place of the old statement. " ended": says
    that the old one no longer holds, and puts nothing in its place. " unrelated": both hold.
    """
    return f"Old: {pair_text(old)}\nNew: {pair_text(new)}\nRelation:"


def pair_text(text: str) -> str:
    """Return a statement as it is read in a pair: on one line, cut at `MAX_PAIR_CHARS`."""
    return " ".join(text.split())[:MAX_PAIR_CHARS]


# -- spans ------------------------------------------------------------------------------

# Predicates of models/rules/claims.py, relatives by their own names, so that slots agree.
RELATIONS = (
    "name", "age", "birthday", "lives_in", "born_in", "works_at", "works_as", "studies_at",
    "studies", "likes", "dislikes", "prefers", "favourite", "diet", "allergic_to",
    "has_condition", "partner", "manager", "mother", "father", "sister", "brother", "daughter",
    "son", "friend", "colleague", "has_pet", "has", "speaks", "plays", "learning", "does",
    "training_for", "wants", "needs", "plans", "met", "visited", "gave", "found", "event",
)  # fmt: skip
NOT = "not "  # before a relation that is denied or over: "User | not has_pet | a dog"
NONE = "none"
MAX_LINES = 4
MAX_WORDS = 4
MAX_HAN = 6
MAX_TURN_CHARS = 600  # of a turn; the adapter saw nothing longer
MAX_HISTORY = 2  # turns before it; the small model gains nothing from more
_HISTORY_CHARS = 200
_ANSWER = "Facts:\n"

# A character of a script without spaces, or a word with what may stand inside one.
_UNIT = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
    r"|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+"
    r"(?:[.,:'’@&/+#_-]+[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)*[+#%]*"
)
_HAN_START = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


class SpanFact(NamedTuple):
    """One line of an answer. `holds` is False where the statement is denied or over."""

    subject: str
    relation: str
    span: str
    holds: bool = True


def span_prompt(turn_text: str, speaker: str, history: Sequence[tuple[str, str]] = ()) -> str:
    """Return the question what a turn states.

    Args:
        turn_text: the turn.
        speaker: its speaker as the answer's subject names them ("User", "用户", "Torvin").
        history: (speaker, text) of turns before it, oldest first; the last two are shown.
    """
    lines = [f"{who}: {_cut(text, _HISTORY_CHARS)}" for who, text in history[-MAX_HISTORY:]]
    lines.append(f"{speaker}: {_cut(turn_text, MAX_TURN_CHARS)}")
    return "\n".join(lines) + "\n" + _ANSWER


def format_spans(facts: Sequence[SpanFact]) -> str:
    """Return the answer that states `facts`, as the adapter is taught to write it."""
    lines = [
        f"{fact.subject} | {'' if fact.holds else NOT}{fact.relation} | {fact.span}"
        for fact in facts[:MAX_LINES]
    ]
    return "\n".join(lines) or NONE


def parse_spans(
    answer: str, turn_text: str, speakers: Sequence[str]
) -> tuple[tuple[SpanFact, ...], int]:
    """Return the lines of an answer that stand on the turn, and how many do not.

    Dropped and counted: lines of another form, unknown relations, subjects that are neither one
    of `speakers` nor words of the turn, spans that are no run of its words. Repeats are dropped
    and not counted.
    """
    runs = frozenset(word_runs(turn_text))
    found: list[SpanFact] = []
    dropped = 0
    for line in answer.strip().split("\n"):
        parts = [part.strip() for part in line.split("|")]
        if parts in ([NONE], [""]):
            continue
        if len(parts) != len(SpanFact._fields) - 1:
            dropped += 1
            continue
        subject, relation, span = parts
        holds = not relation.startswith(NOT)
        fact = SpanFact(subject, relation.removeprefix(NOT), span, holds)
        if (
            fact.relation not in RELATIONS
            or span not in runs
            or (subject not in speakers and subject not in runs)
            or len(found) >= MAX_LINES
        ):
            dropped += 1
        elif fact not in found:
            found.append(fact)
    return tuple(found), dropped


def word_runs(turn_text: str) -> list[str]:
    """Return every run of words of a turn that an answer may name, in their order."""
    text, units = _units(turn_text)
    return [
        text[units[first][0] : units[last][1]]
        for first in range(len(units))
        for last in range(first, _reach(text, units, first) + 1)
    ]


def span_grammar(turn_text: str, speakers: Sequence[str]) -> str:
    """Return GBNF, root rule `root`, that allows exactly the answers grounded in a turn.

    Its size grows with the words of the turn (at most `MAX_TURN_CHARS`), not with their runs:
    each word is a rule that may go on to the next.
    """
    text, units = _units(turn_text)
    who = [literal(name) for name in dict.fromkeys(speakers)]
    relations = " | ".join(map(literal, RELATIONS))
    if not units:
        return f'root ::= "{NONE}"\n'
    rules = [
        f'root ::= "{NONE}" | line ("\\n" line){{0,{MAX_LINES - 1}}}',
        f'line ::= subject " | " ("{NOT}")? relation " | " run',
        f"subject ::= {' | '.join([*who, 'run'])}",
        f"relation ::= {relations}",
        "run ::= " + " | ".join(f"w{first}" for first in range(len(units))),
    ]
    for first in range(len(units)):
        reach = _reach(text, units, first)
        rule = ""
        for last in range(reach, first - 1, -1):
            start = units[first][0] if last == first else units[last - 1][1]
            word = literal(text[start : units[last][1]])
            rule = f"{word} ({rule})?" if rule else word
        rules.append(f"w{first} ::= {rule}")
    return "\n".join(rules) + "\n"


def _cut(text: str, limit: int) -> str:
    return " ".join(text.split())[:limit]


def _units(turn_text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text as the prompt shows it, and the start and end of each of its words."""
    text = _cut(turn_text, MAX_TURN_CHARS)
    return text, [match.span() for match in _UNIT.finditer(text)]


def _reach(text: str, units: Sequence[tuple[int, int]], first: int) -> int:
    """The last word that a run from `first` may hold: none lies beyond punctuation."""
    han = bool(_HAN_START.match(text, units[first][0]))
    last = first
    limit = first + (MAX_HAN if han else MAX_WORDS) - 1
    while last < min(limit, len(units) - 1):
        if text[units[last][1] : units[last + 1][0]] not in {"", " "}:
            break
        last += 1
    return last
