"""Text that came out of memory is not put in again.

What a prompt shows of memory comes back in turns: whole context blocks in a logged prompt, single
lines that somebody quotes. A line of a block (memory_graph/context.py) ends with when it was and
what it comes from, "(2024-05-01; from t4)", and statements name the owner in the third person,
"User lives in Oslo", 用户住在上海, as no owner would. Both are taken out of a turn before models
see it; the turn itself stays as it was said.

The running summary of the user goes before the history of new turns, as a turn of its own
(`is_summary`). It is for language models to understand the turns by, and for nothing else: rules
take neither facts nor questions nor names out of it.

What is not recognised: a quoted statement about somebody else without its end. The decision calls
it a duplicate if it says what is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from reverie.memory_graph.context import HEADINGS
from reverie.models.protocol import Extraction, Extractor, Turn
from reverie.models.rules.text import sentences
from reverie.models.rules.vocab import PASTS, THIRDS

_ID = r"[a-z]{1,3}\d{1,9}"
# "(2024-05-01 to 2024-06-01; told by Tom; from t4, t5; replaced later)"; any clock shows the time.
_END = re.compile(
    rf"\([^;\n]{{1,80}};(?: told by [^;\n]{{1,200}};)? (?:from )?{_ID}(?:, {_ID}){{0,9}}"
    r"(?:; replaced later)?\)[\"'”’」*_]*[.,;。，；]?"
)
_BULLET = re.compile(r"(?:^|(?<=[\s:：\"'“「>]))[-*•] ")
_SPEAKER = re.compile(r"^[\s>*\-•\"'“]*[^\s:：]{1,80}[:：] ")
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|(?=[^\x00-\x7f]))|[:：]\s*")
_HEADING = re.compile(
    rf"^[\s>*#_\"]*(?:{'|'.join(heading for heading, _, _ in HEADINGS)}):[\s*_]*$", re.MULTILINE
)
_VERBS = "|".join(sorted({*THIRDS, *PASTS, "does", "doesn't", "didn't", "can", "can't", "will"}))
_OF_OWNER = re.compile(
    r"^[\s>*\-•\"'“]*"
    r"(?i:(?:you|he|she|they) (?:said|say|told me|wrote|noted)(?: that)?[:,]?\s+[\"'“]?)?"
    r"(?:你(?:说过?|告诉过?我|记得)[:：，]?\s*[\"“]?)?"
    rf"(?:User(?:'s (?:[\w'\-]+ ){{1,4}}(?:is|was|are|were|has|named|\w+(?:s|ed)|{_VERBS})\b"
    rf"| (?:no longer |never |also |now |just )?(?:{_VERBS})\b| took back: )"
    r"|用户(?:的[^，。]{1,8}(?:是|叫|在)|收回：|不?(?:住在|喜欢|讨厌|爱|叫|姓|养了?|有|是|在|对|想|要|会|决定|打算|搬|去|买|从|和|跟|今年|现在|以前)))"
)


SUMMARY, SUMMARY_ROLE = "summary", "system"  # speaker and role of the running summary


def is_summary(turn: Turn) -> bool:
    """Return whether a turn is the running summary of the user: memory's own text."""
    return turn.role == SUMMARY_ROLE and turn.speaker == SUMMARY


def split_summary(history: Sequence[Turn]) -> tuple[str, list[Turn]]:
    """Return the text of the running summary, "" without one, and the turns that were said.

    Args:
        history: oldest first; only its first turn can be the summary.
    """
    if history and is_summary(history[0]):
        return history[0].text, list(history[1:])
    return "", list(history)


def without_recalled(text: str, *, owner: bool = True) -> str:
    """Return a turn's text without what came out of memory; "" when nothing else is left.

    Args:
        text: of a turn.
        owner: whether the owner of the memory said it, who does not call themselves "User".
    """
    if "; " not in text and "User" not in text and "用户" not in text:
        return text  # as nearly all turns
    kept = [_line(line, owner=owner) for line in text.split("\n")]
    if kept == text.split("\n"):
        return text
    said = _HEADING.sub("", "\n".join(kept))
    return said if any(char.isalnum() for char in said) else ""


def extract_said(
    extractor: Extractor, turns: Sequence[Turn], history: Sequence[Turn]
) -> list[Extraction]:
    """Return one extraction per turn, of what was said in it and did not come from memory."""
    fresh = [
        msgspec.structs.replace(t, text=without_recalled(t.text, owner=t.speaker == "user"))
        for t in turns
    ]
    said = [turn for turn in fresh if turn.text.strip() and not is_summary(turn)]
    found = extractor.extract(said, history) if said else []
    by_turn = {turn.id: one for turn, one in zip(said, found, strict=True)}
    return [by_turn.get(turn.id) or Extraction(turn.id) for turn in turns]


def _line(line: str, *, owner: bool) -> str:
    while match := _END.search(line):
        is_turn = "from " not in match[0]
        line = f"{line[: _begin(line[: match.start()], is_turn=is_turn)]} {line[match.end() :]}"
    if not owner or ("User" not in line and "用户" not in line):
        return line
    told = [s for s in sentences(line) if _OF_OWNER.match(s)]
    for sentence in told:
        line = line.replace(sentence, " ", 1)
    return line


def _begin(before: str, *, is_turn: bool) -> int:
    """Return where the statement begins that ends after `before`: at its bullet, a turn at its
    speaker, else after the sentence before it."""
    bullets = [*_BULLET.finditer(before)]
    if bullets:
        return bullets[-1].start()
    if is_turn and _SPEAKER.match(before):
        return 0
    stops = [*_SENTENCE_END.finditer(before.rstrip(" .!?。！？"))]
    return stops[-1].end() if stops else 0
