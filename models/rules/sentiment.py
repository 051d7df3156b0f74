"""How a text feels, -1 to 1, by lexicons of our own, in English and Chinese.

The values of its words are summed: a degree word before one scales it, a negation before it turns
it round and weakens it, what stands after "but" counts more than what stands before. The sum s is
brought into bounds as s / sqrt(s * s + 15), as Hutto and Gilbert do (VADER, ICWSM 2014). Texts in
other scripts are 0. The published lexicon libraries were looked at and left: vaderSentiment has
had no release since 2020 and depends on an HTTP client, TextBlob downloads its corpora, and
neither reads Chinese.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

import Stemmer

from reverie.models.rules.sentiment_words import (
    CHINESE,
    CHINESE_DEGREES,
    CHINESE_NEGATIONS,
    CHINESE_PLAIN,
    ENGLISH,
    ENGLISH_DEGREES,
    ENGLISH_NEGATIONS,
    ENGLISH_PLAIN,
)
from reverie.models.rules.text import clean, is_chinese

NEGATED = -0.6  # "not great" is bad, but less so than "awful"
NORMALISER = 15.0
BEFORE_BUT, AFTER_BUT = 0.5, 1.5
REACH_WORDS = 3  # how far before a word its negation and its degree stand
REACH_HAN = 5  # characters

_WORD = re.compile(r"[a-z]+(?:-[a-z]+)?|[,.;:!?]")
_STEMMER = Stemmer.Stemmer("english")
_BUT = re.compile(r"\b(?:but|however|yet|although|though)\b")
_ZH_BUT = re.compile("但是|但|不过|可是|然而|却")
_ZH_STOP = re.compile("[，,。.！!？?；;、\\s]")
_ZH_TO_DEATH = re.compile(
    "(?<=[\u4e00-\u9fff])(?:死了|死我了|坏了|极了|得不得了|得不行)(?![\u4e00-\u9fff])"
)
_ZH_TO_DEATH_OF = frozenset(
    "心兴乐动爱欢好吃慕累困烦"
)  # the last character of what is strengthened so
_ZH_QUERY = re.compile("是不是|好不好|喜不喜欢|爱不爱|好吗")
_LONGEST_HAN = max(map(len, {*CHINESE, *CHINESE_PLAIN}))
_SUBJECTS = frozenset("i we you they he she really also do did does to always would".split())
_PHRASES = (  # whose words do not feel as they do alone
    (re.compile(r"\bkind of\b|\bsort of\b|\ba bit\b|\ba little\b"), " slightly "),
    (re.compile(r"\bcan(?:no|')t stand\b|\bfed up\b|\bsick of\b|\bput off by\b"), " loathe "),
    (re.compile(r"\bcan(?:no|')t wait\b|\blook(?:s|ing|ed)? forward\b"), " excited "),
    (re.compile(r"\bno (?:problem|worries|doubt|longer)\b|\bnot only\b"), " "),
    (re.compile(r"\bno longer\b|\bnot .{0,12}any ?more\b"), " not "),
    (re.compile(r"\bpassed away\b|\blaid off\b|\bbroke up\b|\bbroken into\b"), " devastated "),
    (re.compile(r"\b(?:so|very) much\b|\ba lot\b"), " "),
    (re.compile(r"\bpretty (?=[a-z]+ly\b|good|bad|nice|great|sad|happy|tired)"), " really "),
    (re.compile(r"\bfeel(?:s|ing)? like\b|\blooks? like\b|\bwould like\b|\bfree time\b"), " "),
    (re.compile(r"\bused to (?=love|like|enjoy|adore)"), " not "),
    (re.compile(r"\bhard(?:ly)? working\b|\bwork(?:s|ing|ed)? hard\b"), " "),
)


def sentiment(text: str) -> float:
    """Return how a text feels, -1 (bad) to 1 (good), 0 where nothing is felt or nothing is read.

    A pure function; scans at most 4,000 characters.
    """
    scanned = clean(text)
    total = _chinese(scanned) if is_chinese(scanned) else _english(scanned.casefold())
    return round(total / math.sqrt(total * total + NORMALISER), 2) if total else 0.0


def _english(text: str) -> float:
    for pattern, instead in _PHRASES:
        text = pattern.sub(instead, text)
    parts = _BUT.split(text)
    weights = _weights(len(parts))
    total = sum(w * _clause(part) for w, part in zip(weights, parts, strict=True))
    return total * (1 + 0.1 * min(text.count("!"), 3))


def _weights(parts: int) -> list[float]:
    return [1.0] if parts == 1 else [*[BEFORE_BUT] * (parts - 1), AFTER_BUT]


def _clause(text: str) -> float:
    words = _WORD.findall(text.replace("'", ""))
    total = 0.0
    for i, word in enumerate(words):
        value = _value(word)
        if not value or (word == "like" and (i == 0 or words[i - 1] not in _liking())):
            continue
        start = max(0, i - REACH_WORDS)
        before = words[start:i]
        for j in range(len(before) - 1, -1, -1):
            if before[j] in ",.;:!?":  # another phrase
                before = before[j + 1 :]
                break
        for other in before:
            value *= ENGLISH_DEGREES.get(other, 1.0)
        if sum(other in ENGLISH_NEGATIONS for other in before) % 2:
            value *= NEGATED
        total += value
    return total


@lru_cache(maxsize=1)
def _liking() -> frozenset[str]:
    return _SUBJECTS | ENGLISH_NEGATIONS | ENGLISH_DEGREES.keys()


@lru_cache(maxsize=1)
def _stems() -> dict[str, float]:
    return {_STEMMER.stemWord(word): value for word, value in ENGLISH.items()}


def _value(word: str) -> float:
    if word in ENGLISH_NEGATIONS or word in ENGLISH_DEGREES or word in ENGLISH_PLAIN:
        return 0.0
    found = ENGLISH.get(word)
    return _stems().get(_STEMMER.stemWord(word), 0.0) if found is None else found


def _chinese(text: str) -> float:
    text = _ZH_TO_DEATH.sub(_strengthened, _ZH_QUERY.sub("", text))
    parts = _ZH_BUT.split(text)
    weights = _weights(len(parts))
    return sum(
        w * sum(map(_han, _ZH_STOP.split(part))) for w, part in zip(weights, parts, strict=True)
    )


def _strengthened(match: re.Match[str]) -> str:
    """Drop 死了 after what it only strengthens (开心死了), not after who died (狗死了)."""
    before = match.string[match.start() - 1]
    return "" if before in _ZH_TO_DEATH_OF else match.group()


def _han(clause: str) -> float:
    """Sum the longest words that are known, from the left."""
    total, i, last = 0.0, 0, 0
    while i < len(clause):
        for size in range(min(_LONGEST_HAN, len(clause) - i), 0, -1):
            word = clause[i : i + size]
            if word in CHINESE_PLAIN:
                i, last = i + size, i + size
                break
            if (value := CHINESE.get(word)) is not None:
                before = clause[max(last, i - REACH_HAN) : i]
                if _is_degree(clause, i, word):
                    i += size
                    break
                total += value * _scale(before)
                i, last = i + size, i + size
                break
        else:
            i += 1
    return total


def _is_degree(clause: str, at: int, word: str) -> bool:
    """Whether 好 only strengthens what follows: 好难过."""
    return word == "好" and any(clause.startswith(w, at + 1) for w in CHINESE if w != "好")


def _scale(before: str) -> float:
    scale = max((v for w, v in CHINESE_DEGREES.items() if w in before and v > 1), default=1.0)
    scale *= min((v for w, v in CHINESE_DEGREES.items() if w in before and v < 1), default=1.0)
    rest, negations = before, 0
    for word in CHINESE_DEGREES:  # 特别 holds 别, which alone is "do not"
        if word not in CHINESE_NEGATIONS:
            rest = rest.replace(word, " ")
    for word in CHINESE_NEGATIONS:
        negations += rest.count(word)
        rest = rest.replace(word, " ")
    return scale * NEGATED if negations % 2 else scale
