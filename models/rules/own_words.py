"""What of a turn is the speaker's own: not text to work on, lines of a story, or a quoted riddle.

"Translate this: I live in Rome", "who said 'I came, I saw'?" and "write a story where she says: my
mother was a witch" tell nothing about the one who asks.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re

from reverie.models.rules.chinese_own import before_material

_LEAD = r"(?:(?:please|pls|can you|could you|would you|will you|help me(?: to)?|i need you to|i want you to|now|ok(?:ay)?|hey|and|just|let's|try to|how (?:do|would|can) (?:i|you))[, ]+)*"
_ON_TEXT = r"(?:translate|summari[sz]e|rewrite|rephrase|reword|paraphrase|proofread|spell-?check|punctuate|polish|shorten)"
# These have text for their object only where it is named.
_ON_ANYTHING = r"(?:correct|edit|fix|check|improve|analy[sz]e|explain|continue|complete|convert|say|put|turn|make)"
_TEXT = r"(?:(?:the following|sentences?|paragraph|text|passage|poem|lyrics?|verse|phrase|e-?mail|letter|message|caption|excerpt|quote|line|story|essay|grammar|spelling|sound|tweet|haiku|headline|bullet points|limerick|rhyme|slogan|(?:more |less )?(?:formal|polite|concise|shorter|natural|casual|professional|friendlier|simpler))\b|(?-i:in(?:to)? [A-Z]))"
_TASK = re.compile(
    rf"{_LEAD}(?:{_ON_TEXT}\b|{_ON_ANYTHING}\b[^.!?:\n]{{0,60}}\b{_TEXT})", re.IGNORECASE
)
_GIVEN = re.compile(
    rf"(?:^|(?<=[.!?\n]))\s*{_TASK.pattern}[^.!?:\n]{{0,60}}(?::|\?? ?\n|\?:| [-–—] )",
    re.IGNORECASE,
)
_INVENTED = re.compile(
    rf"(?:^|(?<=[.!?\n]))\s*{_LEAD}(?:write|compose|draft|create|make up|tell|give|generate|continue|invent|begin|start)\b[^.!?:\n]{{0,60}}\b(?:story|tale|poem|scene|song|dialogue|monologue|speech|lyrics|haiku|limerick|sonnet|novel|fanfic|chapter|backstory|sketch|joke|riddle|letter|e-?mail|diary|blog|post|tweet|essay|bio)\b[^.!?:\n]*(?P<colon>:)?",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]{0,1500}(?:\"|$)|(?<![\w'])'[^'\n]{12,400}'(?!\w)")
_SENTENCE = re.compile(
    r"(?<![\w'])(?:I|I'm|I've|my|we|our|you|your|he|she|they|it|is|am|are|was|were|have|has|had|will|do|did|does|can)(?![\w])",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\?|\b(?:who (?:said|wrote|sang)|which (?:book|film|novel|song|play|poem)|what does|means?\b|(?:how|where) (?:do|would|is)|translat|grammar|spelling|is (?:it|this) correct)",
    re.IGNORECASE,
)
_GUESS = re.compile(
    r"\bguess who(?P<did>(?:'s| is| has| just)? [^?!.\n]{3,80})[?!.]+\s*(?:(?:it'?s |it was )?(?:me|us|moi|yours truly)|this (?:guy|girl|one))\b[!. ]*",
    re.IGNORECASE,
)
_HAN = re.compile("[\u4e00-\u9fff]")
MIN_QUOTED_WORDS = 4  # fewer are a title or a word


def own_words(text: str) -> str:
    """Return a turn's text without what its speaker hands over, asks about in quotes, or orders.

    "Guess who got a dog? Me!" becomes "I got a dog. ".

    Args:
        text: cleaned; plain quotes.
    """
    text = _GUESS.sub(_guessed, before_material(text) if _HAN.search(text) else text)
    if given := _GIVEN.search(text):
        text = text[: given.start()]
    text = _INVENTED.sub(lambda m: "\x00" if m["colon"] else "", text).split("\x00", 1)[0]
    around = _QUOTED.sub(lambda m: " " if _is_speech(m.group()) else m.group(), text)
    if around != text and (_ASKED.search(around) or _TASK.match(around.strip())):
        text = _QUOTED.sub(lambda m: " " if _is_speech(m.group()) else m.group(), text)
    return text


def _guessed(match: re.Match[str]) -> str:
    did = match["did"]
    for short, full in (("'s ", "'m "), (" is ", "'m "), (" has ", " have ")):
        if did.lower().startswith(short):
            did = full + did[len(short) :]
    return f"I{did}. "


def _is_speech(quoted: str) -> bool:
    """Whether a quotation is a sentence, not a title."""
    return len(quoted.split()) >= MIN_QUOTED_WORDS and bool(_SENTENCE.search(quoted))
