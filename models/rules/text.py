"""Text helpers that both languages share: bounds, sentences, and keys for comparing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

import Stemmer

T = TypeVar("T")

MAX_SCAN_CHARS = 4_000  # of one turn; the rest is never looked at
MAX_CLAUSE_CHARS = 300  # a longer run without a stop is no statement worth parsing
MAX_CLAUSES = 120  # of one turn

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")
_NEW_NAME = re.compile(r"\bNew (?=[A-Z])|\bnew (?=moon\b)")
_GO = re.compile(r"(?<=[a-z] )Go\b")  # a language, or a game
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u3000": " "})
_ABBREVIATION = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|e\.g|i\.e|etc|No|[A-Z])$")
_STOP = re.compile(r"([.!?。！？…\n]+)")
# A Latin word (C++, C#), one character of another script, or a symbol that `fold` has kept.
_WORD = re.compile(r"[a-z0-9]+(?:[+#]+|'[a-z]+)?|[^\W\d_a-z]|[^\w\s'@+#]", re.UNICODE)
_STEMMER = Stemmer.Stemmer("english")

# Words that carry no difference between two statements about the same thing.
_EMPTY = frozenset(
    """a an the and or of in on at to for with by from as is are was were be been has have had do
    does did user user's own owns my their his her its that this it very really so also too
    just now currently some any named called name into over go goes going gets get got come comes
    sit sits new there again own's""".split(),
)
_SYNONYMS = {
    "kids": "child", "kid": "child", "children": "child", "planes": "flight", "plane": "flight",
    "airplane": "flight", "bicycle": "bike", "automobile": "car", "weekends": "weekend",
    "movies": "film", "movie": "film", "northern": "north", "southern": "south", "mum": "mother",
    "eastern": "east", "western": "west", "mom": "mother", "dad": "father", "color": "colour",
    "puppy": "dog", "kitten": "cat", "favorite": "favourite", "guards": "guard", "zero": "0",
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirty": "30",
    "twenty": "20", "forty": "40", "fifty": "50",
}  # fmt: skip
_HAN_SYNONYMS = (
    ("早晨", "早上"),
    ("夜里", "晚上"),
    ("夜晚", "晚上"),
    ("家乡", "老家"),
    ("快乐", "高兴"),
)
_HAN_DIGITS = str.maketrans("一二两三四五六七八九", "1223456789")


def is_chinese(text: str) -> bool:
    """Return whether Han characters are at least a third of the letters of `text`."""
    han = len(_HAN.findall(text))
    return han > 0 and han * 3 >= len(_LETTER.findall(text))


def clean(text: str) -> str:
    """Return the part of `text` that is scanned, with plain quotes, character for character."""
    return text[:MAX_SCAN_CHARS].translate(_QUOTES)


def sentences(text: str) -> list[str]:
    """Split cleaned text into sentences, each with its closing mark.

    A full stop inside a number, after an initial or a title, or inside an address ends nothing.
    """
    parts: list[str] = []
    current = ""
    end = 0
    pieces = _STOP.split(text)
    for body, mark in zip(pieces[0::2], [*pieces[1::2], ""], strict=False):
        current += body
        end += len(body) + len(mark)
        following = text[end : end + 1]
        inner = mark == "." and (
            following not in {"", " ", "\n", '"', "'"} or _ABBREVIATION.search(current[-6:])
        )
        current += mark
        if not inner:
            parts.append(current)
            current = ""
    parts.append(current)
    return [part.strip() for part in parts if part.strip()]


_KEPT = "'@+#"  # C++ and C# are not C
_REMEMBERED = 4096  # texts, for each function
_SHORT_CHARS = 300
_forgetting: list[Callable[[], None]] = []


def _is_symbol(char: str) -> bool:
    return char > "\x7f" and unicodedata.category(char) in {"So", "Sc", "Sm"}  # emoji, currencies


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Keep what a pure function of a text returns, for short texts: a statement is compared with
    many others, and each of them with many."""
    cached = lru_cache(maxsize=_REMEMBERED)(function)
    _forgetting.append(cached.cache_clear)

    @wraps(function)
    def call(text: str) -> T:
        return cached(text) if len(text) <= _SHORT_CHARS else function(text)

    return call


def forget_texts() -> None:
    """Lose what `remembered` functions kept."""
    for forget in _forgetting:
        forget()


@remembered
def fold(text: str) -> str:
    """Return `text` compatibility-normalised, casefolded, punctuation gone, spaces single.

    Symbols stay: who loves one emoji need not love another."""
    folded = unicodedata.normalize("NFKC", text[:MAX_SCAN_CHARS]).casefold().translate(_QUOTES)
    kept = (c if c.isalnum() or c in _KEPT or _is_symbol(c) else " " for c in folded)
    return " ".join("".join(kept).split())


@lru_cache(maxsize=8192)
def key_words(text: str) -> frozenset[str]:
    """Return what `text` is about: stems of its content words, single Han characters.

    Two objects with equal key words are the same thing for conflict rules ("a peanut" and
    "peanuts").
    """
    words = set()
    for word, common in _HAN_SYNONYMS:
        text = text.replace(word, common)
    text = _NEW_NAME.sub("new", text)  # New York is not York
    if _GO.search(text):
        words.add("golang")
    for word in _WORD.findall(fold(text)):
        bare = word.removesuffix("'s")
        if _HAN.match(bare):
            words.add(bare.translate(_HAN_DIGITS))
        elif bare not in _EMPTY and word not in _EMPTY:
            words.add(_STEMMER.stemWord(_SYNONYMS.get(bare, bare)))
    return frozenset(words)


@remembered
def numbers(text: str) -> frozenset[str]:
    """Return the numbers that `text` names, digits and small number words alike."""
    found = {
        re.sub(r"[.:]00$", "", number)  # 8:00 is 8
        for number in re.findall(r"\d+(?:[.:]\d+)*", text[:MAX_SCAN_CHARS])
    }
    for word in fold(text).split():
        value = _SYNONYMS.get(word, "")
        if value.isdigit() and value != "1":
            found.add(value)
    if re.search("[点个]半", text):
        found.add("半")
    found.update(
        digit.translate(_HAN_DIGITS)
        for digit in re.findall(r"([二两三四五六七八九])(?=[个只条岁月号日点年位])", text)
    )
    return frozenset(found)
