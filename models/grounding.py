"""Whether what a model wrote stands on its source: names, numbers, words and script.

A model that invents, translates, or repeats its examples writes names, numbers or words that the
source does not hold. Such an item is dropped and counted, never mended.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from reverie.models.rules.apart import is_command
from reverie.models.rules.changes import is_denied
from reverie.models.rules.claims import USER_LABELS
from reverie.models.rules.names import chinese_names
from reverie.models.rules.text import fold, is_chinese, key_words, numbers, sentences
from reverie.models.rules.vocab import COMMON

MAX_SOURCE_CHARS = 20_000  # turn, history and speakers together; more is never a prompt
MIN_SHARED = 0.3  # of a statement's content words: fewer is another text, or a translation
MIN_SHARED_HAN = 0.5  # of its Han characters, which repeat sooner by chance

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_DIGITS = re.compile(r"\d+(?:[.:,/]\d+)*")
_HAN_NUMBER = re.compile(
    r"[零〇一二两三四五六七八九十百千万亿]{2,}"
    r"|[零〇一二两三四五六七八九十](?=[个只条岁月号日点年位天周公块元斤米层楼次本人名台辆])"
)
# A number with what it counts: "2 cats", 两只.
_COUNTED = re.compile(
    r"(?<![\w.,:])(?P<n>\d+(?:[.:,]\d+)*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|twenty|thirty|forty|fifty)[ -](?P<what>[^\W\d_]+)"
    r"|(?P<han>[\d零〇一二两三四五六七八九十百千万]+)(?P<of>[个只条岁月号日点年位天周公块元斤米层楼次本名台辆])",
    re.IGNORECASE,
)
_SCRIPTS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "CYRILLIC", "ARABIC", "GREEK",
            "HEBREW", "THAI", "DEVANAGARI")  # fmt: skip
_JAPANESE = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}  # written together with Han characters


class Source:
    """What a statement may stand on: the turn first, then what went before and who spoke.

    Args:
        turn: text of the turn that is read.
        before: texts of the turns before it, the summary too.
        speakers: names of all who speak.
        summary: what of `before` is memory's own text: it explains the turn, but a statement that
            only says what a sentence of it says was not said now.
    """

    def __init__(
        self,
        turn: str,
        before: Sequence[str] = (),
        speakers: Sequence[str] = (),
        summary: str = "",
    ) -> None:
        self.turn = turn
        self.text = "\n".join([turn, *speakers, *before])[:MAX_SOURCE_CHARS]
        self._folded = f" {fold_all(self.text)} "
        self._plain = self.text.casefold()
        self._numbers = numbers(self.text) | frozenset(_DIGITS.findall(self.text))
        self._words = key_words_all(self.text)
        self._counted = counted(self.text)
        self._turn_words = key_words_all(turn)
        self._script = script_of(turn)
        self._known = [(key_words(s) - _LABELS, is_denied(s)) for s in sentences(summary)]

    def fault(self, statement: str) -> str:
        """Return what a statement says that the source does not, or "" where it is grounded."""
        if is_command(statement):
            return "a command"
        if (script := script_of(statement)) and self._script and script != self._script:
            return f"written in {script.lower()} letters"
        if missing := self._numbers_missing(statement) or self._names_missing(statement):
            return f"{missing} is not in the source"
        words = key_words(statement) - _LABELS
        if not words & self._turn_words:
            return "nothing of the turn"
        if not words <= self._turn_words and self._is_known(words, denied=is_denied(statement)):
            return "memory's own text"
        least = MIN_SHARED_HAN if is_chinese(statement) else MIN_SHARED
        if len(words & self._words) < least * len(words):
            return "words of another text"
        return ""

    def spelling(self, name: str) -> str:
        """Return a name as the source spells it, or "" where it does not hold it."""
        name = " ".join(name.split())
        if not name or not any(c.isalnum() for c in name):
            return ""
        edge = r"(?<![^\W_])" if not is_chinese(name) else ""
        close = r"(?![^\W_])" if not is_chinese(name) else ""
        found = re.search(edge + re.escape(name) + close, self.text, re.IGNORECASE)
        return found.group() if found else ""

    def _is_known(self, words: frozenset[str], *, denied: bool) -> bool:
        return any(words <= known and denied == was for known, was in self._known)

    def _numbers_missing(self, statement: str) -> str:
        for what, found in counted(statement).items():
            if self._counted.get(what) and not found <= self._counted[what]:
                return f"{min(found - self._counted[what])} {what}"
        for digits in _DIGITS.finditer(statement):
            if digits.group() not in self._numbers:
                return digits.group()
        for number in numbers(statement) - self._numbers:
            return number
        for match in _HAN_NUMBER.finditer(statement):
            if match.group() not in self.text:
                return match.group()
        return ""

    def _names_missing(self, statement: str) -> str:
        for match in _WORD.finditer(statement):
            word = match.group()
            if not any(c.isupper() for c in word) or word in USER_LABELS:
                continue
            bare: str = re.sub(r"['’]s?$", "", word)
            begins = match.start() == 0
            if begins and bare.casefold() in COMMON and bare[1:].islower():
                continue
            if bare != "User" and f" {fold(bare)} " not in self._folded:
                return bare
        if is_chinese(statement):
            for entity in chinese_names(statement):
                if entity.name.casefold() not in self._plain:
                    return entity.name
        return ""


_LABELS = key_words("User 用户")


def counted(text: str) -> dict[str, frozenset[str]]:
    """Return the numbers of a text by what they count, as stems and Chinese measure words."""
    found: dict[str, frozenset[str]] = {}
    for match in _COUNTED.finditer(text):
        number = match["n"] or match["han"]
        whats = key_words(match["what"]) if match["what"] else {match["of"]}
        value = frozenset(key_words(number)) if match["n"] else {number.replace("两", "二")}
        for what in whats:
            found[what] = found.get(what, frozenset()) | value
    return found


def fold_all(text: str) -> str:
    """Return `text` folded (see `rules.text.fold`), a possessive's "'s" cut off."""
    return re.sub(r"'s\b", "", " ".join(fold(line) for line in text.split("\n")))


def key_words_all(text: str) -> frozenset[str]:
    """Return the key words of every line of a text."""
    found: frozenset[str] = frozenset()
    for line in text.split("\n"):
        found |= key_words(line)
    return found


def script_of(text: str) -> str:
    """Return the script that most letters of `text` are of, a word counting once; "" for none.

    The labels of the owner ("User", "用户") do not count.
    """
    for label in USER_LABELS:
        text = text.replace(label, " ")
    counts: Counter[str] = Counter()
    for word in re.findall(r"[^\W\d_]+", text[:MAX_SOURCE_CHARS]):
        scripts = [_script(char) for char in word]
        for script in set(scripts):
            # A Latin word is as much as a Han character or two.
            counts[script] += scripts.count(script) if script == "CJK" else 2
    counts.pop("", None)
    return max(counts, key=lambda script: counts[script]) if counts else ""


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    name = unicodedata.name(char, "")
    found = next((script for script in _SCRIPTS if name.startswith(script)), "")
    return _JAPANESE.get(found, found)
