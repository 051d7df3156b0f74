"""Which English sentences say something, cut down to the clauses that do."""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import math
import re

import msgspec

from reverie.memory_graph.text import terms
from reverie.models.rules.text import numbers
from reverie.models.rules.things import type_of
from reverie.models.rules.vocab import BASES, GERUNDS, KIN, PASTS, PETS
from reverie.models.salient.words import (
    ABOUT_TALK,
    ELIDED_NOT,
    ELIDED_STATES,
    ENGLISH_FUNCTION,
    FOREIGN_FUNCTION,
    LIGHT,
    OPENERS,
)

# Points of a sentence; weights of a logistic regression on LoCoMo's development half (does the
# sentence hold words of an answer), rounded. Among people, who say much, "words" is the price: of
# two sentences that tell as much the shorter one is kept first. A question of a person ("answer")
# makes what is said next worth more than its words show.
THRESHOLD = -2.35  # among people
ALONE = -2.6  # of a speaker whom no other person answers, about themselves: less is small talk
ALONE_OTHER = -2.48  # and about anything else
GOES_ON = 0.5  # less for what is said of the thing of the sentence before
MEAN_WORDS = 9  # of a sentence; the price of one where nobody else is
_WEIGHTS = {
    "bias": -2.1, "words": -0.5, "answer": 0.6, "content": 0.24, "name": 1.5, "number": 0.52, "date": 0.71, "first": 0.21,
    "own": 0.0, "you": -0.73, "you_first": -0.6, "past": 0.46, "quote": 0.4, "such_as": 0.13,
    "praise": -0.23, "pronoun": -0.25, "empty": -1.5, "asked": 0.6, "modal": -0.5, "limit": 0.6,
}  # fmt: skip
MAX_CONTENT = 12
MIN_FOREIGN = 2  # function words of another language, for a sentence to be in it

_OPENER = re.compile(
    rf"(?:{OPENERS})(?:[,!.:;…~-]+\s*|\s+[-–—]+\s+)|(?:and|but|so|plus|oh|well|yeah|yep|also|hey|hi|because|actually|honestly|frankly|unfortunately|sadly|luckily|fortunately|apparently|anyway|wow|omg|u+r?gh|argh|lmao|mm+|hmm+|lol|haha+|aw+|ooh|aye|ah|um+|uh|phew|yay|yikes|oops|tbh|ngl)\s+(?=[\w'])",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(
    r"(?:(?:i(?:'ve| have)? )?(?:just |really )?(?:wanted|want|have|had|gotta|got) to (?:let you know|tell you|share(?: with you)?|say|mention)|i (?:should|must) (?:tell you|mention)"
    r"|let me tell you|i'm (?:so |really )?(?:happy|excited|proud|pleased|glad) to (?:say|announce|share|report)|did i (?:tell you|mention))(?: that|,)? (?=(?:I|I'm|I've|we|we're|we've|my|our)\b)",
    re.IGNORECASE,
)
_FOR_YOU = re.compile(
    r"(?:just )?(?:so you know|for (?:your info(?:rmation)?|context|reference|the record|what it's worth)|heads up|(?:ok )?(?:quick |small |big )?(?:update|news)|long story short|(?:can|could) you (?:note|remember|remind me)|remind me)(?: that)?[,:!]?\s+(?=(?:I|I'm|I've|my|we|we're|we've|our|the|[A-Z]\w+)\b)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hey|hi|hello|thanks|thank you|thx|congrats|congratulations|wow|yeah|yes|yep|sure|cool|great|sorry|welcome|bye|dear|good (?:morning|evening|afternoon|night)|nice|absolutely|definitely|totally|exactly|no)(?: there| again| so much| a lot)?,? (?P<name>[A-Z]\w*(?: [A-Z]\w*)?)(?:[,!.:;-]+\s*|$)",
    re.IGNORECASE,
)
# "Hey Sam" and "Yes, Sam" call somebody; "Definitely Blade Runner" names what was asked for.
_AGREED_TITLE = re.compile(
    r"(?i:yeah|yes|yep|sure|absolutely|definitely|totally|no) [A-Z]\w* [A-Z]"
)
_TAIL = re.compile(
    r"(?:[,\s]+(?:you know|right|lol|haha\w*|for sure|though|tho|honestly|as well|really|of course|too|i guess|i think|as always|no doubt|thanks|please|by the way|btw|you know what i mean))+(?=[.!\s]*$)",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"(?:do|does|did|is|are|can|could|would|will|should|have|has|was|were|may|shall|am)(?:n't)? (?:you|i|we|it|he|she|they|the|this|that|there|these|those|my|your|anyone|someone|me)\b|(?:what|why|how|when|where|who|whose|which)(?:'s|'re|'d)? (?:do|does|did|is|are|can|could|would|will|should|have|has|was|were) (?:you|i|we|it|he|she|they|the|this|that|your|my)\b|who (?:doesn't|wouldn't|can't|couldn't|knows|knew)\b|what (?:kind|type|sort|else|about)\b|how (?:many|much|long|about|come|old)\b|what's|how's|where's|who's|any (?:idea|tips|advice|suggestions|thoughts|recommendations)\b",
    re.IGNORECASE,
)
_UNREAL = re.compile(
    r"(?:if (?:i|we) (?:were|was|had|lived|could|ruled|became|won)\b|imagine\b|suppose\b|supposing\b|pretend\b|what if\b|let's (?:say|pretend|imagine)\b|hypothetically\b|in another life\b|for example[,:]|e\.g\.|roleplay\b|you are (?:now |a |an )|act as\b|as an ai\b|once upon a time)",
    re.IGNORECASE,
)
_PLEASE = re.compile(
    r"(?:please|kindly|pls|plz|let's|lets|let me|don't|do not|never mind|nevermind|no need|feel free|make sure|help me|show me|tell me|give me|i(?:'d| would) (?:like|love|need) (?:you|some help|help|your|to (?:know|ask|hear))|i (?:need|want) (?:you|help|your|some help|advice|an? (?:list|summary|explanation|recipe|poem|essay|script|function|plan|few|quick))|can't you|you (?:should|could|must|need to|have to|gotta|can)|we (?:should|could|must)|i(?:'m| am) (?:wondering|looking for (?:help|advice|ideas|tips))|i (?:see|get it|got it)(?=[,.!;]|$)|i (?:was )?(?:wonder|have a question|wanted to ask|just wanted to (?:say|ask|check)|don't (?:know|get|understand)|can't remember|forgot|guess|suppose))\b",
    re.IGNORECASE,
)
# Orders that steer the talk itself, also where advice was asked for.
_TALK_ORDER = re.compile(
    r"(?:please|kindly|let me|let's|lets|(?:tell|show|give|help|send|trust|excuse) me|let us|never mind|nevermind|no need|feel free|(?:check|try) (?:it|this|that|these|them) out|take a look|come on|hold on|hang on|keep (?:it|me|us)\b|stay tuned|good luck|go for it|believe me|look at|i(?:'d| would) (?:love|like) (?:to (?:know|ask|hear)|your)|i (?:see|get it|got it)(?=[,.!;]|$))",
    re.IGNORECASE,
)
_ORDER_TO_DO = re.compile(r"do (?:your|the|this|that)\b[^?]*$", re.IGNORECASE)  # "Do your research"
_BARE_TALK = re.compile(ABOUT_TALK, re.IGNORECASE | re.DOTALL)
# "It was great to see the children play" tells what was lived; "It was great to see you" is talk.
_LIVED = re.compile(
    r"it was (?:\w+ ){1,3}(?:to (?:hear|see|meet|know|talk)|hearing|seeing|meeting|talking) (?!(?:you|your|that|it|this|about|how|up|from you|to you|with you)\b)\w",
    re.IGNORECASE,
)
# "Check out my new studio" shows something; what is shown is what is said.
_SHOWN = re.compile(
    r"^(?:(?:just |looky here,? )?(?:come |go )?(?:look at|check out|take a look at|have a look at|check|see)) (?=(?:my|our|this|these|some of my) \w)",
    re.IGNORECASE,
)
_VERB_AFTER_NOUN = re.compile(
    r"\S+ (?:\w+ )?(?:is|was|are|were|has|had|can|will|makes?|made|helps?|gives?|brings?|takes?|means|went|got|became|feels?|starts?|in|of|at|on|for|with|and)\b"
)
_CUT = re.compile(
    r"\s+[-–—]+\s*|\s*[–—]\s*|-{2,}\s*|;\s+|,? (?:and|but|so|because|'?cause|cuz|since|plus|though|although) (?=(?:it|that|this|they|I|we|you|he|she|please|don't|let's|can you|could you)(?:'s|'re|'m|'ve|'ll)?\b)|, (?=(?:which|it(?:'s)?|that's|so|I'm|you)\b)|, (?=and it\b)"
)
_PAIR = re.compile(r"(?:(?:my|our|the) )?[A-Z]?[\w'-]+(?: [A-Z][\w'-]+)?")
_INTENSE = re.compile(
    r"\b(?:really|super|totally|definitely|truly|absolutely|literally|actually|basically|honestly|very) (?=[a-z])(?!much\b)"
)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w&'-]*[a-z0-9A-Z]\b")
_DATE = re.compile(
    r"\b(?:yesterday|last|next|ago|weeks?|months?|years?|weekend|today|tonight|tomorrow|mon|tues|wednes|thurs|fri|satur|sun)(?:day)?s?\b|\b(?:recently|lately|january|february|march|april|june|july|august|september|october|november|december|spring|summer|autumn|winter|birthday|christmas)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\b(?:I|we|im|ive)\b", re.IGNORECASE)
_OWN = re.compile(r"\b(?:my|our|me|us|mine|ours)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|ya|y'all|yourself)\b", re.IGNORECASE)
_PRONOUN = re.compile(
    r"(?:it|that|this|they|these|those|he|she|his|her|their|its)\b", re.IGNORECASE
)
_MODAL = re.compile(r"\b(?:will|can|could|should|would|might)\b|'ll\b", re.IGNORECASE)
# What somebody cannot have or does not do holds for long, however few its words.
_LIMIT = re.compile(
    r"\b(?:I|we) (?:can't|cannot|can not|don't|do not|never|won't|mustn't|shouldn't) (?:\w+ )?(?:have|eat|drink|wear|use|take|do|drive|fly|swim|smoke|stand|tolerate|digest|read|write|cook|sing|dance|hear|speak|sleep|walk|trust|ride)\b"
    r"|\b(?:don't|doesn't|never) (?:really |quite )?(?:get along|get on|agree with (?:me|us))\b",
    re.IGNORECASE,
)
_OWED = re.compile(r"\bowes? (?:me|us|you|him|her|them) (?!one\b|an?\b)\w", re.IGNORECASE)
_GONE = re.compile(
    r"\b(?:my|our) (?:\w+ )?[\w-]+(?:'s| is| are| was| were| has| got| have)+(?: been)? (?:gone|stolen|missing|broken|dead|lost|nicked|destroyed|ruined)\b",
    re.IGNORECASE,
)
_NONE_OF = re.compile(r"(?:still |and |but |also )?no (?P<thing>[a-z-]+)(?= |$)", re.IGNORECASE)
# What is said of one's family or pets to a machine is no small talk, however short.
_FAMILY = re.compile(
    rf"\b(?:my|our) (?:[\w-]+ ){{0,2}}(?:{'|'.join(sorted({*KIN, *PETS}, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
# "Stop calling me Jonathan" and "call me Jo" tell a name, though they are orders.
_NAMING = re.compile(
    r"\b(?:call(?:s|ed|ing)?|know) (?:me|us) (?!(?:back|at|on|later|when|if|tomorrow|an?|in|crazy|old|mad)\b)\w"
)
_PRAISE = re.compile(
    r"(?:thanks|thank|wow|great|congrats|congratulations|sounds|glad|good|cool|awesome|that's|that is|can't wait|keep|hope|hoping|happy (?:for|to)|so (?:happy|glad|proud|cool|great)|appreciate|what a|love (?:that|your|the|this|how)|looking forward|excited)\b",
    re.IGNORECASE,
)
_SUCH_AS = re.compile(r"\b(?:like|such as|including)\b|\w+, [\w ]+,? and \w+")


class Talk(msgspec.Struct, frozen=True):
    """Among whom a sentence is said, and after what.

    `others` are the names of those who are talked to, casefolded; `ignored` the terms of all
    speakers' names. `among_people` says that one of them is a person; `is_asked` that the turn
    before asked something, `is_answer` that a person did, `is_advice` that they asked for advice.
    """

    others: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    among_people: bool = False
    is_asked: bool = False
    is_answer: bool = False
    is_advice: bool = False


def is_english(sentence: str) -> bool:
    """Return whether a sentence in Latin letters is more English than another language."""
    words = re.findall(r"[^\W\d_]+(?:'[a-z]+)?", sentence.casefold())
    foreign = sum(word in FOREIGN_FUNCTION for word in words)
    english = sum(word in ENGLISH_FUNCTION for word in words)
    return foreign < MIN_FOREIGN or english > foreign


def strip_openers(sentence: str, others: frozenset[str]) -> str:
    """Cut what only answers, greets or links off the front, and what only addresses off the end.

    Args:
        sentence: one sentence.
        others: names of the people who are talked to, casefolded.
    """
    text = sentence.strip(" ,-–—\"'*#>•~")
    for _ in range(6):
        before = text
        greeting = _GREETING.match(text)
        if (
            greeting
            and greeting["name"][:1].isupper()
            and not _is_content(greeting["name"])
            and not (
                _AGREED_TITLE.match(text) and not _addresses(greeting["name"].split()[0], others)
            )
        ):
            text = text[greeting.end() :]
        elif opener := _OPENER.match(text) or _ANNOUNCED.match(text) or _FOR_YOU.match(text):
            text = text[opener.end() :]
        first = re.match(r"(?P<name>[A-Z]\w*)(?:[,!:]+\s*|\s+[-–—]\s+)", text)
        if first and (_addresses(first["name"], others) or _is_called(first["name"], text)):
            text = text[first.end() :]
        text = text.strip(' ,-–—"*')
        if text == before:
            break
    text = _TAIL.sub("", text)
    last = re.search(r",?\s+(?P<name>[A-Z]\w*)(?=[.!\s]*$)", text)
    if last and _addresses(last["name"], others) and ("," in last.group() or last.start() == 0):
        text = text[: last.start()] + text[last.end() :]
    return text.strip(" ,")


def _is_content(name: str) -> bool:
    return name.lower() in {"i", "i'm", "i've", "my", "we", "the"}


def _is_called(name: str, text: str) -> bool:
    """Whether a name at the front is called to do something: "Torvin, take this"."""
    after = re.match(r"[A-Z]\w+, (?P<verb>[a-z]+)\b", text)
    if after is None or name.lower() in _NO_CALL:
        return False
    verb = after["verb"]
    return verb in {"you", "your", "please", "let"} or (
        verb in BASES and verb not in PASTS and verb not in ELIDED_STATES
    )


_NO_CALL = frozenset("today yesterday tomorrow sometimes usually often lately recently".split())


def _addresses(name: str, others: frozenset[str]) -> bool:
    """Whether a name is one of the others', or short for it ("Mel" for Melanie)."""
    low = name.casefold()
    return low in others or (len(low) > 2 and any(o.startswith(low) for o in others))  # noqa: PLR2004 - a short form


def is_request(text: str) -> bool:
    """Return whether a sentence without its openers asks for something or orders it."""
    if ELIDED_NOT.match(text) or _NAMING.search(text):
        return False
    if _PLEASE.match(text) or _UNREAL.match(text):
        return True
    first = re.match(r"[A-Za-z']+", text)
    verb = first.group().lower() if first else ""
    return (
        (verb in BASES or verb in _ORDERS)
        and verb not in ELIDED_STATES
        and not (verb in PASTS or verb in GERUNDS)
        and not _VERB_AFTER_NOUN.match(text)
    ) or verb in _ORDERS


def asks_for(text: str, talk: Talk) -> bool:
    """Return whether a sentence without its openers asks for something where it is said."""
    return bool(_TALK_ORDER.match(text)) if talk.is_advice else is_request(text)


_ORDERS = frozenset(
    """let tell explain translate rewrite summarize summarise write list give show help remind check
    look take keep go come stay try put do don't ask add remove fix generate create describe compare
    calculate convert find search recommend suggest use run print return continue proceed stop start
    hold hang ignore enjoy relax believe trust imagine consider note listen wait""".split()
)


def statement_before_question(sentence: str) -> str:
    """Return what a question is about where it is said first ("I got a dog, any tips?"), or ""."""
    cut = re.search(
        rf"(?:[,;:–—]| - |\.\.\.)\s*(?:(?:and|but|so|right|hey|i mean)[,\s]+)?(?:{_QUESTION.pattern}|right\?|you know\?|eh\?|huh\?|ok\?)",
        sentence,
        re.IGNORECASE,
    )
    if cut is None:
        return ""
    head = sentence[: cut.start()].strip()
    return head if len(head.split()) > 3 and not _QUESTION.match(head) else ""  # noqa: PLR2004 - a few words


def content_of(text: str, ignored: frozenset[str]) -> list[str]:
    """Return the terms of a text that carry content."""
    return [term for term in terms(text) if term not in LIGHT and term not in ignored]


def says_nothing(text: str, talk: Talk) -> bool:
    """Return whether each clause of a text, without openers, is talk about the talk or a request:
    "not sure yet, give me a sec"."""
    clauses = [clause.strip() for clause in re.split(r"[,;]\s+|\s+[-–—]+\s+", text)]
    return all(_is_talk(clause) or asks_for(clause, talk) for clause in clauses if clause)


def _is_talk(text: str) -> bool:
    return bool(_BARE_TALK.fullmatch(text)) and not _LIVED.match(text)


def trimmed(text: str, ignored: frozenset[str], *, is_advice: bool = False) -> str:
    """Return a sentence without the clauses that carry no content, or only ask for something.

    Args:
        text: the sentence without its openers.
        ignored: terms of the speakers' names.
        is_advice: whether advice was asked for; orders in it are kept.
    """
    at, kept, lead = 0, "", ""
    for cut in [*_CUT.finditer(text), None]:
        clause = text[at : cut.start() if cut else len(text)]
        if cut and not at and _PAIR.fullmatch(clause) and cut.group().strip() == "and":
            continue  # "Dairy and I don't get along" has one subject
        asks = bool(kept) and not is_advice and is_request(clause)
        if asks:
            pass  # "..., so please suggest nothing with satay"
        elif (
            (kept and re.match(r"(?:he|she)\b", clause))
            or content_of(clause, ignored)
            or numbers(clause)
        ):
            if not kept:
                lead = re.sub(r"^\W*(?:and|but|so|which)\b\W*", "", lead)
            kept += (lead if kept else "") + clause
        if cut is None:
            break
        lead = cut.group() if kept else ""
        at = cut.end()
    return _INTENSE.sub("", kept).strip(" ,-–—;")


def features(text: str, talk: Talk, *, is_open: bool) -> dict[str, float]:
    """Return what the points of a sentence are made of.

    Args:
        text: the sentence, trimmed.
        talk: among whom it is said.
        is_open: whether the sentence begins as praise or reaction did before it was cut.
    """
    ignored = talk.ignored
    content = content_of(text, ignored)
    names = [n for n in _NAME.findall(text) if not n.startswith(("I'", "I ")) and n != "I"]
    named = any(set(terms(name)) - ignored for name in names)
    owed = bool(_OWED.search(text))
    without = _NONE_OF.match(text)
    lasts = (
        owed
        or bool(_GONE.search(text))
        or bool(_LIMIT.search(text))
        or (without is not None and bool(type_of(without["thing"].lower())))
        or (not talk.among_people and bool(_FAMILY.search(text)))
    )
    return {
        "bias": 1.0,
        "words": math.log(max(1, len(text.split()) if talk.among_people else MEAN_WORDS)),
        "answer": float(talk.is_answer and not is_open),
        "content": float(min(len(content), MAX_CONTENT)),
        "name": float(named),
        "number": float(bool(numbers(text))),
        "date": float(bool(_DATE.search(text))),
        "first": float(bool(_FIRST.search(text))),
        "own": float(bool(_OWN.search(text))),
        "you": float(not owed and bool(_YOU.search(text))),
        "you_first": float(not owed and bool(_YOU.match(text))),
        "past": float(any(w in PASTS or w.endswith("ed") for w in text.lower().split())),
        "quote": float('"' in text),
        "such_as": float(bool(_SUCH_AS.search(text))),
        "praise": float(is_open),
        "pronoun": float(bool(_PRONOUN.match(text))),
        "empty": float(not content),
        "asked": float(talk.is_asked),
        "limit": float(lasts),
        "modal": float(not lasts and bool(_MODAL.search(text))),
    }


def points(found: dict[str, float]) -> float:
    """Return how much speaks for keeping a sentence; from a threshold on it is kept."""
    return sum(_WEIGHTS[name] * value for name, value in found.items())


def is_weighty(text: str, ignored: frozenset[str]) -> bool:
    """Return whether a sentence, without openers, has enough content to be kept."""
    found = features(text, Talk(ignored=ignored), is_open=bool(_PRAISE.match(text)))
    return _is_enough(found) and points(found) >= ALONE_OTHER


def _is_enough(found: dict[str, float]) -> bool:
    """Whether there is more than one bare word: a name, a number, a time, or who it is about."""
    held = ("first", "own", "name", "number", "date", "answer", "limit")
    return found["content"] > 1 or (found["content"] == 1 and any(found[h] for h in held))


def worth_keeping(sentence: str, talk: Talk, *, goes_on: bool = False) -> str:
    """Return what is worth keeping of an English sentence, in its own person, or "".

    Args:
        sentence: one sentence with its closing mark.
        talk: among whom it is said. After a person's question less content is enough, and after
            one for advice what reads as an order is the advice.
        goes_on: whether the sentence before it was kept: to a machine, what is said of "it" then
            needs less.
    """
    body = sentence.strip()
    if "?" in body[-3:]:
        body = statement_before_question(body)
    text = strip_openers(body, talk.others)
    if talk.among_people:
        text = _SHOWN.sub("", text)
    if not text or (_QUESTION.match(text) and not _ORDER_TO_DO.match(text)):
        return ""
    if _is_talk(text) or says_nothing(text, talk) or asks_for(text, talk):
        return ""
    is_open = bool(_PRAISE.match(text))
    text = trimmed(text, talk.ignored, is_advice=talk.is_advice).rstrip(".!… ")
    found = features(text, talk, is_open=is_open)
    own = bool(found["first"] or found["own"])
    alone = ALONE if own else ALONE_OTHER
    least = THRESHOLD if talk.among_people else alone
    if goes_on and not talk.among_people and _PRONOUN.match(text):
        least -= GOES_ON
    return text if text and _is_enough(found) and points(found) >= least else ""
