"""A cheap gate: whether a question needs a look into memory at all.

It holds back only what surely needs none: greetings, thanks and small talk, arithmetic, and
requests and questions about the world in general. What it does not know, it lets through: a search
too many costs a millisecond, one too few an answer. It reads nothing but the text, in English
(gate_english.py) and Chinese (gate_chinese.py); anything in another language is let through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from reverie.memory_graph import gate_chinese, gate_english
from reverie.memory_graph.text import normalise

MAX_CHARS = 300  # a longer text says more than these rules read
_HAN = re.compile("[\u3400-\u9fff]")
_OTHER = re.compile("[^\\W\\d_\u3400-\u9fffa-zà-ÿ]")  # letters that are neither Latin nor Chinese


def needs_memory(question: str, names: Iterable[str] = ()) -> bool:
    """Return whether a question may need memory; False only when it surely needs none.

    Args:
        question: what was said, in any language.
        names: of people and things that are known (`EntityView.name`); a question with one of them
            needs memory. Without them, a name is known by its capital letter, and in Chinese only
            by a common form ("小红", "王老师").
    """
    if len(question) > MAX_CHARS:
        return True
    plain = unicodedata.normalize("NFKC", question).replace("\u2019", "'").strip()
    folded = normalise(plain)
    if not any(char.isalnum() for char in folded):
        return False  # punctuation and emoji
    if any(_is_in(normalise(name), folded) for name in names):
        return True
    if _OTHER.search(folded):
        return True
    if _HAN.search(folded):
        return gate_chinese.needs_memory(plain, folded)
    return gate_english.needs_memory(plain, folded)


def _is_in(name: str, text: str) -> bool:
    """Return whether a text has a name; one in a script with spaces stands as whole words."""
    if not name or name not in text:
        return False
    whole = rf"(?<![^\W_]){re.escape(name)}(?![^\W_])"
    return _HAN.search(name) is not None or re.search(whole, text) is not None
