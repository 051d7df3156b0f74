"""The plain things of an English sentence: the lantern, oat milk, two rabbits, penicillin.

A noun counts where it is the head of its phrase and either known (`thing_words`) or what somebody
buys, sells, steals, wears. "Car park", "phone number" and "tastes like soap" name no car, phone or
soap; nor does a cup of tea name a cup.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Iterator

from stop_words import get_stop_words

from reverie.memory_graph.drafts import EntityDraft
from reverie.models.rules.cues import QUOTED
from reverie.models.rules.english_build import entity_heads
from reverie.models.rules.phrases import SHORT, forms
from reverie.models.rules.thing_words import NO_THINGS, TYPES, UNSURE
from reverie.models.rules.vocab import ADVERBS, ANY_VERB, COMMON, GERUNDS

MAX_THINGS = 12  # of one sentence

_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
_DETERMINERS = frozenset(
    """a an the my our your his her their its this that these those some any no every each another
    two three four five six seven eight nine ten dozen several many few both one's own""".split()
)
_CLITICS = frozenset("it's let's that's he's she's there's here's what's who's".split())
_EATING = frozenset("have eat eats eating no of to any with and or like love hate avoid".split())
# What may stand behind the head of a phrase though it is no function word.
_BEHIND = (
    frozenset(get_stop_words("en"))
    | frozenset(ADVERBS.split("|"))
    | ANY_VERB
    | frozenset(GERUNDS)
    | frozenset(
        """yesterday today tonight tomorrow last next ago back away instead anymore too though
        either right daily weekly twice every near inside outside without within across along
        behind upon onto via per like unless until till except plus called named lately everywhere
        please lol btw tho rn atm whenever anyway imo tbh fyi gave got ill""".split()
    )
)
# Verbs that are nouns behind a noun: "phone call", "boat ride".
_NOUN_VERBS = frozenset(
    """number numbers part parts case cases call calls name names book books design guide program run ride fight hunt train work drive
    walk play charge show trade sale guard plant care fire heads""".split()
)
_MEASURES = frozenset(
    """cup bottle box bowl glass bag flask barrel jar basket crate pot picture painting portrait
    drawing package can tin jug vial bucket mug pan shot ring deck list set pack map""".split()
)
_MODIFIERS = frozenset(
    """silver golden gold iron bronze copper brass wooden leather steel stone crystal enchanted cursed
    magic electric acoustic bass grand folding signet war rocking coffee silk ivory""".split()
)
_IDIOMS = re.compile(
    r"over the moon|piece of cake|(?:not|n't) (?:\w+ )*(?:my|his|her|their) cup of tea|on the table"
    r"|spill(?:ed|s)? the beans|out of the box|in a nutshell|\bbrings? to the table|to the bone"
    r"|ring(?:s|ing)? a bell|bats? an eye|for the birds|hold(?:s|ing)? water|on the same page"
    r"|(?:under|over) the (?:weather|hill)|(?:last|final) straw|big fish|in the same boat"
    r"|\b(?:tastes?|looks?|feels?|works?|smells?|sounds?|acts?|sleeps?|eats?|swims?)(?:ed|t)? like"
    r" (?:an? |the )?[\w-]+(?: [\w-]+)?",
    re.IGNORECASE,
)
_DEALT = re.compile(
    rf"\b{forms('buy', 'sell', 'steal', 'borrow', 'lend', 'adopt', 'forge', 'craft', 'collect', 'wear', 'own', 'drive', 'ride', 'plant', 'bake', 'brew', 'knit', 'sew', 'build', 'kill', 'hunt', 'gather', 'seek')}"
    rf" (?!(?:to|it|me|him|them|you|us|up|out|home|around|off|back|over|in|on|at|for|by|with)\b){SHORT}"
)
_LETTER = re.compile(r" [A-K]\d{0,2}\b")
_LACKED = re.compile(rf"\b(?:no more|(?:ran|run|running|runs|is|are|was|were) out of) {SHORT}")
_KEPT_SHOP = re.compile(rf"\b{forms('run', 'open', 'manage')} (?=(?:an?|the|my|our) ){SHORT}")


def things(sentence: str) -> list[EntityDraft]:
    """Return the plain things of one English sentence in order of appearance, without names.

    Args:
        sentence: cleaned text. What stands in quotes in it is not looked at.
    """
    text = _IDIOMS.sub(lambda m: "\x00" * len(m.group()), QUOTED.sub(" \x00 ", sentence))
    dealt = (*_DEALT.finditer(text), *_KEPT_SHOP.finditer(text), *_LACKED.finditer(text))
    found = list(_known(text)) + [
        (match.start("o"), EntityDraft(head, "thing"))
        for match in dealt
        for head in entity_heads(match["o"].replace("\x00", ""))
        if head.islower() and not set(head.split()) & NO_THINGS
    ]
    return [draft for _, draft in sorted(found, key=lambda pair: pair[0])][:MAX_THINGS]


def type_of(noun: str) -> str:
    """Return the type of a known plain thing, singular or plural; "" for any other word."""
    return TYPES.get(_singular(noun), "")


def may_name(word: str) -> bool:
    """Return whether a capitalised word at the front of an answer names something by itself."""
    low = word.lower()
    return (
        low not in COMMON
        and low not in _BEHIND
        and low not in NO_THINGS
        and not low.endswith(("ly", "ing"))
        and len(low) > 2  # noqa: PLR2004 - "Ok"
    )


def _is_sure(noun: str) -> bool:
    return bool(type_of(noun)) and _singular(noun) not in UNSURE


def _known(text: str) -> Iterator[tuple[int, EntityDraft]]:
    words = list(_WORD.finditer(text))
    for i, match in enumerate(words):
        low = match.group().lower().removesuffix("'s")
        start = match.start()
        end = match.end() - (2 if match.group().lower().endswith("'s") else 0)
        pair = f"{words[i - 1].group().lower()} {low}" if i else ""
        joined = i > 0 and text[words[i - 1].end() : start] == " "
        kind = TYPES.get(pair, "") or TYPES.get(_singular(pair), "") if joined else ""
        if kind:
            start = words[i - 1].start()
        elif not (kind := type_of(low)) or not _counts(text, words, i):
            continue
        if not _is_head(text, words, i):
            continue
        before = words[i - 1].group().lower() if joined else ""
        if start == match.start() and (
            before in _MODIFIERS or _is_sure(before) or (low == "allergy" and type_of(before))
        ):
            start = words[i - 1].start()
        if low == "vitamin" and (letter := _LETTER.match(text, end)):
            end = letter.end()
        yield start, EntityDraft(text[start:end], kind)


def _counts(text: str, words: list[re.Match[str]], i: int) -> bool:
    """Whether a word stands there as a noun, and not as part of a name."""
    word = words[i].group().removesuffix("'s")
    before = text[: words[i].start()].rstrip()
    first = not before or before[-1] in '.!?:"(\x00'
    if word[0].isupper() and not first and word.isalpha() and not word.isupper():
        return False  # "Winter Palace", "Old Mill Lane"
    if _singular(word.lower()) not in UNSURE:
        return True
    near = [w.group().lower() for w in words[max(0, i - 3) : i]]
    if near and near[-1] in _EATING and word.lower() != _singular(word.lower()):
        return True  # "I can't have nuts"
    return any(w in _DETERMINERS or (w.endswith("'s") and w not in _CLITICS) for w in near)


def _is_head(text: str, words: list[re.Match[str]], i: int) -> bool:
    if i + 1 >= len(words) or words[i].group().lower().endswith("'s"):
        return True
    following = words[i + 1]
    gap = text[words[i].end() : following.start()]
    if gap != " ":
        return True
    word, low = following.group(), following.group().lower()
    if low == "of" and _singular(words[i].group().lower()) in _MEASURES:
        return False
    if word[0].isupper():
        return True  # "my dog Rex"
    bare = low.split("'")[0]
    return (
        bare in _BEHIND or low.endswith(("ly", "ed")) or low[0].isdigit()
    ) and low not in _NOUN_VERBS


def _singular(noun: str) -> str:
    """Return the form of a noun that the word lists hold, or the noun."""
    if noun in TYPES or noun in NO_THINGS:
        return noun
    for end, put in (("ies", "y"), ("ves", "f"), ("es", ""), ("s", "")):
        if noun.endswith(end) and (short := noun[: -len(end)] + put) in TYPES:
            return short
    return {"mice": "mouse", "geese": "goose", "knives": "knife"}.get(noun, noun)
