"""From text to the terms that the word index counts; and the key under which a name is known.

Pure functions of their arguments, for any script:
- words of Latin, Cyrillic, Arabic, Greek, Armenian, Devanagari and Tamil letters are stemmed
  (Snowball) in the language of their script; Latin ones in the language that is asked for;
- Chinese, Japanese, Korean, Thai and other scripts that put no space between words give
  overlapping pairs of characters; Chinese characters count singly too, for most are words;
- "O'Brien", "Jean-Luc" and "[PERSON_1]" give the whole (obrien, jeanluc, person1) and those of
  their parts that are longer than a character, "3.5" stays one term.

Function words are dropped: the English and Chinese ones that are listed here, and the short ones
of the `stop-words` package for other languages. Its long words, and its English list, hold what
memories are about ("work", "home", "personne", "empleo"); BM25 weighs common words down anyway.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import Stemmer
from stop_words import safe_get_stop_words

from reverie.memory_graph.errors import InvalidValueError

DEFAULT_LANGUAGE = "english"
LANGUAGES = frozenset(Stemmer.algorithms()) | {"none"}  # "none": Latin words are not stemmed

_CACHE_WORDS = 32_768  # about 5 MB when full
_CACHE_NAMES = 8_192
_CACHE_CHARACTERS = 20_000
_MAX_TERM = 64  # characters; longer "words" are encoded data, and are cut here
_MAX_STOP_WORD = 4  # characters, for lists other than ours

_ENGLISH_STOP_WORDS = frozenset(
    "a an the and or but nor if so than then of to in on at by for with from into onto as about "
    "is are was were be been being am do does did doing done has have had having "
    "i you he she it we they me him her us them my your his its our their mine yours hers ours "
    "theirs myself yourself himself herself itself ourselves themselves "
    "this that these those there here what which who whom whose when where why how "
    "will would can could shall should may might must not no yes just very too also "
    "im ive id ill youre youve youd youll hes shes weve wed theyre theyve theyd theyll "
    "isnt arent wasnt werent dont doesnt didnt hasnt havent hadnt wont wouldnt cant cannot couldnt "
    "shouldnt mustnt aint thats whats whos theres heres lets".split()
)
_HAN_STOP = frozenset(
    "的了着過过是在有和與与及或也都就而但被把我你您他她它們们這这那哪吗嗎呢吧啊呀么麼个個之其于於"
)

# -- characters --------------------------------------------------------------------------

# One letter stands for each class of characters, so that words can be found by a plain regular
# expression over the classes: `re` knows no scripts, and its \w splits at combining marks.
_SCRIPT_CLASSES = {
    "LATIN": "l",
    "CYRILLIC": "c",
    "GREEK": "g",
    "ARABIC": "a",
    "ARMENIAN": "h",
    "DEVANAGARI": "n",
    "TAMIL": "t",
    "CJK": "J",
    "IDEOGRAPHIC": "J",
    "HIRAGANA": "K",
    "KATAKANA": "K",
    "KATAKANA-HIRAGANA": "K",
    "BOPOMOFO": "K",
    "HANGUL": "H",
    "THAI": "T",
    "LAO": "T",
    "KHMER": "T",
    "MYANMAR": "T",
    "TIBETAN": "T",
}
_SCRIPT_NAMES = {
    "l": "latin",
    "c": "cyrillic",
    "g": "greek",
    "a": "arabic",
    "h": "armenian",
    "n": "devanagari",
    "t": "tamil",
    "J": "han",
    "K": "kana",
    "H": "hangul",
    "T": "unspaced",
    "o": "other",
}
_LETTER = "[lcgahnto]m*"
_PATTERN = re.compile(
    r"(?P<number>d+(?:[.,:]d+)+)"
    r"|(?P<acronym>l(?:\.l)+(?![ld]))"
    rf"|(?P<word>(?:{_LETTER}|d)+(?:['\-_](?:{_LETTER}|d)+)*)"
    r"|(?P<run>(?:[JKHT]m*)+)"
    r"|(?P<symbol>s)"
)
_UNIT = re.compile(r"[JKHT]m*")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")  # 1,000,000.5
_CLITIC = re.compile(r"(?:'(?:s|ll|re|ve|d|m))$")


class _Classes(dict[int, str]):
    """Code point -> class letter, filled as characters are met and bounded."""

    def __missing__(self, code: int) -> str:
        value = _class_of(chr(code))
        if len(self) < _CACHE_CHARACTERS:
            self[code] = value
        return value


class _Cleaned(dict[int, str | None]):
    """Code point -> what stands for it in normalised text, filled as characters are met."""

    def __missing__(self, code: int) -> str | None:
        value = _clean(chr(code))
        if len(self) < _CACHE_CHARACTERS:
            self[code] = value
        return value


def _class_of(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] == "L" or category == "Nl":
        return _SCRIPT_CLASSES.get(unicodedata.name(char, "").split(" ")[0], "o")
    if category[0] == "M":
        return "m"
    if category == "Nd":
        return "d"
    if category == "So":
        return "s"
    return char if char in "'-_.,:" else " "


def _clean(char: str) -> str | None:
    if char in "\u2018\u2019\u201b\u02bc\u02b9\u0060\u00b4\u2032":  # as people type it
        return "'"
    if char in "\u2010\u2011":
        return "-"
    if char in "\u0451\u0401":  # Russian is mostly written with the plain letter for yo
        return "\u0435" if char == "\u0451" else "\u0415"
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.digit(char))
    if category == "Cf" or char == "\u0640" or "\ufe00" <= char <= "\ufe0f":
        return None  # joiners, direction marks, soft hyphens, Arabic stretching, emoji style
    return char


_CLASSES = _Classes()
_CLEANED = _Cleaned()


def _cleaned(text: str) -> str:
    if text.isascii():
        return text.replace("`", "'")
    return unicodedata.normalize("NFKC", text).translate(_CLEANED)


def normalise(text: str) -> str:
    """Return `text` in the one spelling that is compared.

    NFKC, casefolded; typographic apostrophes and hyphens made plain, digits of every script made
    ASCII, invisible characters removed. Accents stay: `terms` folds them where that is safe.
    """
    if text.isascii():
        return text.lower().replace("`", "'")
    return unicodedata.normalize("NFKC", _cleaned(text).casefold())


def scripts(text: str) -> dict[str, float]:
    """Return the share, 0 to 1, of each script among the letters of `text`; empty without any.

    Names: latin, cyrillic, greek, arabic, armenian, devanagari, tamil, han, kana, hangul, unspaced
    (Thai, Lao, Khmer, Myanmar, Tibetan), other.
    """
    counts = Counter(c for c in normalise(text).translate(_CLASSES) if c in _SCRIPT_NAMES)
    total = sum(counts.values())
    return {_SCRIPT_NAMES[letter]: count / total for letter, count in sorted(counts.items())}


# -- names -------------------------------------------------------------------------------

_ARTICLE = re.compile(r"(?:[Tt]he|THE|an?)\s+(?=\S)")


@lru_cache(maxsize=_CACHE_NAMES)  # a search asks for the key of every phrase of its question
def name_key(name: str) -> str:
    """Return the key of an entity's name: equal keys are the same name, nothing else is.

    Normalised, white space collapsed, punctuation around it removed, and a leading English article
    dropped. "A" and "An" are dropped in lower case only: "An Nguyen" and "A Coruna" are names.
    A name of punctuation alone is its own key, so that no name has an empty one.
    """
    bare = _stripped(" ".join(_cleaned(name).split()))
    bare = _ARTICLE.sub("", bare, count=1) if _ARTICLE.match(bare) else bare
    return normalise(_stripped(bare)) or normalise(" ".join(name.split()))


def _stripped(name: str) -> str:
    start, end = 0, len(name)
    while start < end and _is_outer(name[start]):
        start += 1
    while end > start and _is_outer(name[end - 1]) and name[end - 1] != "#":  # C#
        end -= 1
    return name[start:end]


def _is_outer(char: str) -> bool:
    return char.isspace() or unicodedata.category(char)[0] == "P"


# -- terms -------------------------------------------------------------------------------


def terms(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Return the terms of `text`, in order, repeated as often as they occur.

    Args:
        text: any text; without words (emoji apart) it has no terms.
        language: of the Latin words (or of the script it is written in): one of `LANGUAGES`.

    Raises:
        InvalidValueError: no such language.
    """
    _check_language(language)
    return [term for term, _, _ in _pieces(normalise(text), language)]


def query_terms(text: str, language: str = DEFAULT_LANGUAGE) -> list[tuple[str, str]]:
    """Return `(term, surface)` of each term of `text`: what is matched, and how it was written.

    The surface keeps the capitals of the text: ("live", "Living"). Raises as `terms` does.
    """
    _check_language(language)
    return list(_query_terms(text, language))


@lru_cache(maxsize=1024)  # one question is often asked of many users
def _query_terms(text: str, language: str) -> tuple[tuple[str, str], ...]:
    shown, folded = _cleaned(text), normalise(text)
    shown = shown if len(shown) == len(folded) else folded  # casefolding may lengthen: ß, ss
    return tuple((term, shown[start:end]) for term, start, end in _pieces(folded, language))


_UNSPACED = frozenset("JKHT")  # classes of characters that are written without spaces


def join_surfaces(surfaces: list[str]) -> list[str]:
    """Return surfaces for people: once each, and neighbouring pairs of characters made whole.

    ["喜欢", "欢猫", "猫", "Oslo", "Oslo"] gives ["喜欢猫", "Oslo"].
    """
    joined: list[str] = []
    for surface in surfaces:
        unspaced = not surface.isascii() and surface.translate(_CLASSES)[:1] in _UNSPACED
        if unspaced and len(surface) > 1 and joined and joined[-1][-1] == surface[0]:
            joined[-1] += surface[1:]
        elif not any(surface == known or (unspaced and surface in known) for known in joined):
            joined.append(surface)
    return joined


def clear_caches() -> None:
    """Forget every word that was met: after an erasure none may linger in a cache."""
    _word_terms.cache_clear()
    _query_terms.cache_clear()
    name_key.cache_clear()


def _check_language(language: str) -> None:
    if language not in LANGUAGES:
        choice = ", ".join(sorted(LANGUAGES))
        msg = f"no stemmer for the language {language!r}; choose one of: {choice}"
        raise InvalidValueError(msg, language=language)


def _pieces(text: str, language: str) -> Iterator[tuple[str, int, int]]:
    """Yield (term, start, end) for normalised text."""
    classes = text.translate(_CLASSES)
    for match in _PATTERN.finditer(classes):
        start, end = match.span()
        kind = match.lastgroup
        if kind == "word":
            for term in _word_terms(text[start:end], classes[start], language):
                yield term, start, end
        elif kind == "run":
            yield from _run_pieces(text, classes, start, end)
        elif kind == "number":
            number = text[start:end]
            yield number.replace(",", "") if _GROUPED.fullmatch(number) else number, start, end
        elif kind == "acronym":
            yield text[start:end].replace(".", ""), start, end
        else:
            yield text[start:end], start, end


def _run_pieces(text: str, classes: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield pairs of neighbouring characters, then the Chinese ones singly.

    Singles let a question about 猫 find 我喜欢猫. Pairs and singles of function characters are
    dropped. A lone kana, hangul or Thai character counts too.
    """
    units = [match.span() for match in _UNIT.finditer(classes, start, end)]
    for (a, middle), (_, b) in pairwise(units):
        if not (text[a:middle] in _HAN_STOP and text[middle:b] in _HAN_STOP):
            yield text[a:b], a, b
    for a, b in units:
        if (classes[a] == "J" or len(units) == 1) and text[a:b] not in _HAN_STOP:
            yield text[a:b], a, b


# -- words -------------------------------------------------------------------------------

_SCRIPT_LANGUAGES = {
    "c": "russian",
    "a": "arabic",
    "g": "greek",
    "h": "armenian",
    "n": "hindi",
    "t": "tamil",
}
_LANGUAGE_SCRIPTS = {
    "russian": "c",
    "arabic": "a",
    "persian": "a",
    "greek": "g",
    "armenian": "h",
    "hindi": "n",
    "nepali": "n",
    "tamil": "t",
    "yiddish": "o",
}


@lru_cache(maxsize=_CACHE_WORDS)
def _word_terms(word: str, script: str, language: str) -> tuple[str, ...]:
    """Return the terms of one normalised word; it may hold apostrophes, hyphens and underscores."""
    spoken = _language_of(script, language)
    word = word[:_MAX_TERM]
    if spoken == "english":
        word = _CLITIC.sub("", word)
    whole = word.replace("'", "").replace("-", "").replace("_", "")
    stop = _stop_words(spoken)
    if not whole or whole in stop:
        return ()
    if whole == word:
        return (_stemmed(word, script, spoken),)
    parts = [p for p in re.split(r"['_-]", word) if len(p) > 1 and p not in stop]
    if whole.isdecimal():  # a date or a telephone number: its parts say it all
        return tuple(parts)
    return tuple(_stemmed(p, script, spoken) for p in (whole, *parts))


def _language_of(script: str, language: str) -> str:
    """Return the language of a word of `script` in a text said to be in `language`."""
    own = _LANGUAGE_SCRIPTS.get(language, "l")
    if script == own:
        return language
    return DEFAULT_LANGUAGE if script in "ld" else _SCRIPT_LANGUAGES.get(script, "none")


def _stemmed(word: str, script: str, language: str) -> str:
    # English stems know no accents, other languages' stemmers need them.
    if language == "english":
        word = _without_accents(word)
    # A new stemmer for each word (1 us, and the result is cached): it writes to a buffer of its own
    # and must not be used by two threads at once. 0: without a second cache.
    stem: str = word if language == "none" else Stemmer.Stemmer(language, 0).stemWord(word)
    return _without_accents(stem) if script in "lgao" else stem


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    # Only true accents and points: the vowel signs of Indic scripts have combining class 0.
    split = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in split if not unicodedata.combining(c)))


@lru_cache(maxsize=64)
def _stop_words(language: str) -> frozenset[str]:
    """Return the function words of `language`; a list is read once, as a module is imported."""
    if language == "english":
        return _ENGLISH_STOP_WORDS
    words = (normalise(word) for word in safe_get_stop_words(language))
    return frozenset(word for word in words if len(word) <= _MAX_STOP_WORD)
