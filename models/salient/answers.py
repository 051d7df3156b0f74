"""Short answers take their meaning from the question ("Where do you live?" - "Lisbon.").

A question of a known form and its answer become a full sentence in the first person ("I live in
Lisbon"), which every layer then reads. Another short answer keeps its question beside it. Where
anything is unclear (more than one question, a third speaker between), nothing is completed.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from reverie.models.protocol import Turn
from reverie.models.rules import cues
from reverie.models.rules.text import clean, is_chinese, sentences
from reverie.models.rules.vocab import BASES, PASTS, TALK_VERBS
from reverie.models.salient import chinese, chinese_answers

MAX_ANSWER_WORDS = 9
MAX_QUESTION_WORDS = 14
MAX_ANSWER_CHARS = 20  # of a Chinese one

_PAST_OF = {base: past for past, base in reversed(PASTS.items())} | {
    "go": "went", "do": "did", "get": "got", "be": "was",
}  # fmt: skip
_YES = re.compile(
    r"(?:yes|yeah|yep|yup|yea|sure|of course|i do|i am|i have|indeed|right|correct|exactly|absolutely|definitely)\b[,.! ]*",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:no longer|not any ?more|not now|not these days|no|nope|nah|not really|i don't|i'm not|never)\b[,.! ]*",
    re.IGNORECASE,
)
_AND_MORE = re.compile(
    r"(?P<said>[A-Za-z' ]{2,16}?)(?:[,.!;]|\s+[-–—])\s+(?P<rest>(?P<word>[A-Za-z']+)\b.*)"
)
_SUBJECTS = frozenset("i i'm i've we we're we've my our he she they it's".split())
_WHEN_WHERE = frozenset("in at on since for last from with near about until every".split())
_BARE_IT = re.compile(r"\b(?:it|that|this|them|those)\b", re.IGNORECASE)
_FINITE = re.compile(
    r"\b(?:I|we|it|that|this|they|he|she|you)(?:'\w+)?\b|\b(?:is|are|was|were|am|has|have|had|'s)\b",
    re.IGNORECASE,
)
_TO = re.compile(
    r"^(?:to|in|at|from|as|on|for|just|about|around|it's|its|that's)\s+", re.IGNORECASE
)

# (question, statement); {a} is the answer without its preposition. The first that fits is taken.
_FRAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), made)
    for pattern, made in (
        (r"(?:what(?:'s| is| was)|and|may i (?:have|ask|know)|can i (?:have|get)) your (?P<x>[\w' -]{2,40})", "My {x} is {a}"),
        (r"when(?:'s| is) your (?P<x>[\w' -]{2,40})", "My {x} is {a}"),
        (r"(?:who(?:'s| is)) your (?P<x>[\w' -]{2,40})", "My {x} is {a}"),
        (r"(?:what(?:'s| is) the name of|what do you call) your (?P<x>[\w' -]{2,30})", "My {x}'s name is {a}"),
        (r"where (?:do you live|are you (?:living|based|staying)|do you stay)(?: now| these days| at the moment| currently)?", "I live in {a}"),
        (r"where (?:are|do) you (?:come )?from(?: originally)?", "I'm from {a}"),
        (r"where did you grow up", "I grew up in {a}"),
        (r"where (?:do you work|are you working)(?: now| these days)?", "I work at {a}"),
        (r"where (?:do you study|are you studying|do you go to (?:school|college|university))", "I study at {a}"),
        (r"where did you (?:go|travel|fly)(?P<x> (?:on|for|last|this|in|over|during) [\w' ]{2,30})?", "I went to {a}{x}"),
        (r"where (?:did you move|have you moved)(?: to)?", "I moved to {a}"),
        (r"where are you (?:going|travelling|traveling|headed|heading)(?: to)?(?P<x> (?:on|for|next|this|in|over) [\w' ]{2,30})?", "I'm going to {a}{x}"),
        (r"what (?:do you do|kind of work do you do|is it you do)(?: for (?:a living|work))?", "I work as {a}"),
        (r"how old are you(?: now)?", "I'm {a} years old"),
        (r"how many (?P<x>[\w -]{2,24}?) (?:do you have|have you got|do you own)", "I have {a} {x}"),
        (r"what (?:kind of |type of |sort of )?(?:pets?|animals?|dogs?|cats?|car|bike|instruments?) (?:do you have|have you got|do you own)", "I have {a}"),
        (r"what (?:kind of |type of )?(?:car|bike) do you drive", "I drive {a}"),
        (r"what (?:kind of |type of )?instruments? do you play", "I play {a}"),
        (r"(?:do you (?:have|own|keep)|have you got|got)(?: any| an?)? (?:pets?|animals|kids?|children|siblings|brothers (?:or|and) sisters|hobbies)(?: at home)?", "I have {a}"),
        (r"(?:what|which)(?: (?:book|show|series|film|game|language|instrument)s?)? are you (?P<x>reading|watching|playing|learning|studying|listening to|drinking|eating|using|driving|wearing|growing)(?: (?:at the moment|right now|now|these days|currently|lately|tonight|today))?", "I'm {x} {a}"),
        (r"(?:what|which) languages? do you speak", "I speak {a}"),
        (r"(?:what are you allergic to|are you allergic to anything|do you have any (?:food )?allergies|any (?:food )?allergies)", "I'm allergic to {a}"),
        (r"what (?:are|were) you (?:studying|majoring in)|what do you study", "I study {a}"),
        (r"how long have you (?P<x>(?:been|lived|worked|had|known|played)[\w' ]{0,40})", "I've {x} for {a}"),
    )
)  # fmt: skip
_WHEN = re.compile(r"when did you (?P<verb>\w+)(?P<x>[\w' ]{0,40})", re.IGNORECASE)
_POLAR = re.compile(
    r"(?P<aux>do|are|have|did|were|can) you (?:guys )?(?:(?:also|still|ever|really|actually) )?(?P<verb>\w+)(?P<x>[\w' -]{0,50})",
    re.IGNORECASE,
)
_UNSURE = TALK_VERBS | frozenset(
    """ready sure ok okay there free kidding serious joking excited familiar aware mind any remember
    enjoy going coming interested looking talking doing""".split()
)

# "Shall I go on?" is about the talk, not about the one who answers.
_OFFER = re.compile(
    r"\b(?:me|shall i|should i|can i|may i|could i|want to (?:hear|know|see|talk)|ready|continue|another|else)\b|要不要|需要我|我(?:继续|帮|来|给)|继续吗",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:thanks|thank you|thx|wow|hey|hi|hello|aw+|congrats|great|good|cool|awesome|nice|sure|haha\w*|oh)\b|谢谢|你好|哈哈|嗨",
    re.IGNORECASE,
)


_ADVICE = re.compile(
    r"\b(?:advice|tips?|suggest\w*|recommend\w*|pointers|(?:what|how|where|which|who) (?:\w+ )?(?:should|can|could|would you|do) (?:i|we)\b|how to|any (?:ideas?|thoughts|tricks))|建议|推荐|技巧|窍门|秘诀|怎么办|(?:我|咱们|我们)?(?:该|应该|要|得)(?:怎么|如何|注意|准备|做)|(?:怎么|如何)(?:做|才|开始|准备|选)|有什么(?:办法|方法|好办法|要注意)",
    re.IGNORECASE,
)


class Answer(msgspec.Struct, frozen=True):
    """A short answer and what it means.

    `statement` is a full sentence in the first person, or "" where only the words of the question
    tell; `fragment` is the sentence of the turn that it stands for.
    """

    question: str
    question_id: str
    fragment: str
    statement: str = ""


def answer_of(turn: Turn, before: Sequence[Turn]) -> Answer | None:
    """Return the short answer that a turn begins with, or None.

    Args:
        turn: the turn.
        before: the turns before it, oldest first; the last of them must be another speaker's and
            end with a question. A Chinese sentence about "her" or "him" may also stand after a turn
            that names one person.
    """
    answer = _asked(turn, before)
    if answer is None or not answer.statement:
        return _about_her(turn, before) or answer
    return answer


def _about_her(turn: Turn, before: Sequence[Turn]) -> Answer | None:
    said = sentences(clean(turn.text))
    if not said or not is_chinese(said[0]):
        return None
    me = turn.speaker.casefold()
    found = chinese_answers.about_her(
        said[0].strip("。！!，,~～ "), [(clean(t.text), t.speaker.casefold() == me) for t in before]
    )
    if found is None or not chinese.worth_keeping(found[1], is_answer=True):
        return None
    place, statement = found
    return Answer(clean(before[place].text), before[place].id, said[0], statement)


def _asked(turn: Turn, before: Sequence[Turn]) -> Answer | None:
    if not before or before[-1].speaker.casefold() == turn.speaker.casefold():
        return None
    asked = [s for s in sentences(clean(before[-1].text)) if not s.startswith("[")]
    said = [s for s in sentences(clean(turn.text)) if not (s.startswith("[") or _is_polite(s))]
    if not asked or not said or not _is_question(asked[-1]):
        return None
    if len(asked) > 1 and _is_question(asked[-2]):
        return None  # which of them is answered cannot be told
    question = _bare_question(asked[-1])
    if _OFFER.search(question):
        return None
    fragment = said[0]
    if is_chinese(fragment):
        return _chinese(question, fragment, before[-1].id)
    words = fragment.split()
    if (
        len(words) > MAX_ANSWER_WORDS
        or len(question.split()) > MAX_QUESTION_WORDS
        or "?" in fragment
    ):
        return None
    statement = _polar(question, fragment) or _framed(question, fragment)
    return Answer(question, before[-1].id, fragment, statement)


def completed(turn: Turn, answer: Answer) -> Turn:
    """Return the turn with its short answer written out, for a layer that reads one turn alone."""
    if not answer.statement:
        return turn
    text = clean(turn.text).replace(
        answer.fragment, answer.statement + ("。" if is_chinese(answer.statement) else "."), 1
    )
    return msgspec.structs.replace(turn, text=text)


def asks(turn: Turn, *, at_end: bool = True) -> bool:
    """Return whether a turn ends with a question; without `at_end`, one remark may follow it."""
    said = [s for s in sentences(clean(turn.text)) if not s.startswith("[")]
    return any(_is_question(s) for s in said[-1 if at_end else -2 :])


def seeks_advice(turn: Turn) -> bool:
    """Return whether a question of a turn asks what one should do."""
    said = sentences(clean(turn.text))
    return any(_is_question(s) and _ADVICE.search(s) for s in said)


def is_fragment(sentence: str) -> bool:
    """Return whether a sentence has no subject and verb of its own."""
    if is_chinese(sentence):
        return len(sentence) <= MAX_ANSWER_CHARS and not re.search("[我他她它]|是|有", sentence)
    bare = cues.without_lead(sentence)
    words = re.findall(r"[a-z']+", bare.lower())
    if not words or len(words) > MAX_ANSWER_WORDS or _FINITE.search(bare):
        return False
    return not (words[0] in PASTS or words[0] in BASES or words[0].endswith("ing"))


def _is_polite(sentence: str) -> bool:
    """Whether a sentence only thanks, praises or greets: the answer may come after it."""
    return bool(_POLITE.match(sentence)) and len(sentence.split()) <= 4  # noqa: PLR2004 - with a name


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"' ").endswith(("?", "？", "吗", "呢"))


def _bare_question(sentence: str) -> str:
    bare = cues.without_lead(sentence.strip())
    bare = re.split(r"(?<=[a-z]), (?=what|where|when|who|how|do|are|have|did)", bare)[-1]
    return bare.strip(" ?？!！\"'")


def _framed(question: str, fragment: str) -> str:
    value = _TO.sub("", _YES.sub("", _TO.sub("", fragment.strip(" .!\"'"))).strip(" ,")).strip(
        " .!"
    )
    value = re.sub(r"^(?:the )?one[,:;] (?=an? |my |the )", "", value, flags=re.IGNORECASE)
    if not value or _FINITE.search(value) or _NO.match(fragment) or _UNSAID.match(value):
        return ""
    for pattern, made in _FRAMES:
        if found := pattern.fullmatch(question):
            more = found.groupdict().get("x") or ""
            value = re.sub(r"\s*(?:years? old|already)$", "", value, flags=re.IGNORECASE)
            return re.sub(r"\byour\b", "my", _filled(made, value, more))
    if (found := _WHEN.fullmatch(question)) and found["verb"].lower() in _PAST_OF:
        value = fragment.strip(" .!\"'")
        rest = re.sub(r"\byour\b", "my", found["x"])
        return f"I {_PAST_OF[found['verb'].lower()]}{rest} {value[:1].lower()}{value[1:]}"
    return ""


def _filled(made: str, value: str, more: str) -> str:
    """Put an answer into a statement; what follows its first comma comes at the end."""
    if made == "I work as {a}" and re.match(r"(?:an? |the )", value, re.IGNORECASE):
        made = "I'm {a}"
    first, second = value.split(" ", 1)[0], value.split(" ", 1)[1:]
    common = made.startswith(("I work as", "I'm a", "I have", "I'm allergic")) and first.istitle()
    if first.strip(",") in _ARTICLES or (common and not any(w.istitle() for w in second)):
        value = value[:1].lower() + value[1:]
    if made.endswith("{x}") and "," in value:
        value, _, rest = value.partition(",")
        return f"{made.format(a=value, x=more)},{rest}"
    return made.format(a=value, x=more)


_ARTICLES = frozenset({"A", "An", "The", "Two", "Three", "Four", "One", "Just", "Last", "About"})
_UNSAID = re.compile(
    r"(?:nothing|none|nowhere|no one|nobody|not |never|dunno|idk|guess|maybe|secret|why|good|great|fine|ok)\b",
    re.IGNORECASE,
)


def _polar_and_more(question: str, said: str, rest: str, word: str) -> str:
    """Return what a yes or no says and what follows it: "No, I sold it", "Yes, since March"."""
    told = _polar(question, said)
    if not told or _BARE_IT.search(told):
        return ""
    if word in _SUBJECTS:
        return f"{told}. {rest[:1].upper()}{rest[1:]}"
    return f"{told} {rest}" if word in _WHEN_WHERE else ""


def _polar(question: str, fragment: str) -> str:
    """Return what a bare yes or no says to "do you ...", or ""."""
    more = _AND_MORE.fullmatch(fragment.strip(" .!"))
    if more and (_YES.fullmatch(more["said"]) or _NO.fullmatch(more["said"])):
        return _polar_and_more(question, more["said"], more["rest"], more["word"].lower())
    yes, no = _YES.fullmatch(fragment), _NO.fullmatch(fragment)
    found = _POLAR.fullmatch(question) if yes or no else None
    if found is None or found["verb"].lower() in _UNSURE or re.search(r"\b(?:me|or)\b", found["x"]):
        return ""
    verb, aux = found["verb"].lower(), found["aux"].lower()
    rest = re.sub(r"\byour\b", "my", found["x"])
    rest = re.sub(r"^ (?:any|a)\b", " any" if no else " a", rest) if aux in {"do", "have"} else rest
    if yes and rest.startswith(" a ") and rest.endswith("s"):
        rest = rest[2:]
    if aux == "did":
        return f"I {_PAST_OF[verb]}{rest}" if yes and verb in _PAST_OF else ""
    if aux == "do":
        return f"I {verb}{rest}" if yes else f"I don't {verb}{rest}"
    begins = {"are": ("I'm", "I'm not"), "have": ("I've", "I haven't"), "were": ("I was", "I wasn't"),
            "can": ("I can", "I can't")}[aux]  # fmt: skip
    over = (
        " any more"
        if no and aux == "are" and re.match(r"are you still\b", question, re.IGNORECASE)
        else ""
    )
    return f"{begins[0] if yes else begins[1]} {verb}{rest}{over}"


def _chinese(question: str, fragment: str, question_id: str) -> Answer | None:
    statement = chinese_answers.statement_of(question, fragment)
    return None if statement is None else Answer(question, question_id, fragment, statement)
