"""The salient sentence: what a speaker says, each sentence that says something, in third person.

Triples alone lose most of what people say. Here nothing is parsed: questions, greetings, thanks,
requests and reactions are dropped, what is left is shortened by its empty clauses, put into the
third person with the speaker's name and kept, in its own language.
"""

# ruff: noqa: E501 - a pattern reads better whole than broken
from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from reverie.memory_graph.drafts import EntityDraft, MemoryDraft
from reverie.memory_graph.nodes import MemoryKind
from reverie.memory_graph.text import terms
from reverie.models.protocol import Extraction, Turn
from reverie.models.recalled import split_summary
from reverie.models.rules import cues
from reverie.models.rules.apart import is_command
from reverie.models.rules.chinese_things import named as chinese_named
from reverie.models.rules.claims import USER_LABELS
from reverie.models.rules.dates import find_date
from reverie.models.rules.deeds import deeds
from reverie.models.rules.extract import MACHINES, NARRATORS, is_unnamed
from reverie.models.rules.importance import EXPLICIT, importance_of_text
from reverie.models.rules.names import english_names, merged, titles
from reverie.models.rules.own_words import own_words
from reverie.models.rules.sentiment import sentiment
from reverie.models.rules.text import clean, fold, is_chinese, sentences
from reverie.models.rules.things import may_name, things
from reverie.models.rules.vocab import PASTS
from reverie.models.salient import chinese, english, refer
from reverie.models.salient.answers import Answer, answer_of, asks, is_fragment, seeks_advice
from reverie.models.salient.voice import in_third

TAG = "salient"
CONFIDENCE = 0.7
PLAIN = 0.4  # importance of a sentence that was found worth keeping, before what weighs is added
MAX_SOURCE_CHARS = 4_000  # of the turn before, whose thing "it" may be
MAX_SENTENCES = 60  # of one turn
MAX_SENTENCE_CHARS = 600  # a longer run without a stop is pasted data
MAX_MEMORIES = 30  # of one turn
MAX_JOINED_WORDS = 45  # of one memory made of neighbouring sentences
MIN_DATA_CHARS = 12  # a shorter sentence is never taken for code
MIN_PROSE = 0.75  # share of letters, digits and spaces; below it is code or a table

_SILENT_ROLES = frozenset({"assistant", "system", "tool", "function"})
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_NOTE = re.compile(r"\[(?P<kind>[a-z][a-z ]{2,30}): (?P<text>[^\]\[]{3,400})\]\s*", re.IGNORECASE)
_PICTURE = re.compile(
    r"^(?:an? |the )?(?:close[- ]?up )?(?:photo(?:graph|graphy)?|picture|pic|image|shot|screenshot) (?:of |that |showing )(?:an? |the )?",
    re.IGNORECASE,
)
_MATERIAL = re.compile(
    r"(?:translate|summari[sz]e|rewrite|proofread|fix|edit|correct|explain|paraphrase|improve|review|analy[sz]e|debug)\b",
    re.IGNORECASE,
)
_MATERIAL_ZH = re.compile("翻译|总结|润色|改写|修改|解释|校对|分析|概括|缩写|扩写")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FOLLOWS = re.compile(
    r"(?:it|they|he|she|this|that|these|those|his|her|their|its|then|there)(?:'\w+)?\b|(?:他|她|它|这|那|后来|然后)",
    re.IGNORECASE,
)
_LIKES = re.compile(
    r"\b(?:loves?|likes?|hates?|enjoys?|prefers?|adores?|dislikes?|favou?rites?|fave|can't stand|fan of|into|keen on|obsessed|passionate about|interested in)\b|喜欢|讨厌|最爱|爱吃|爱喝|爱看|热爱|偏爱|受不了|感兴趣",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:will|going to|gonna|'ll|plans? to|planning|hopes? to|next|tomorrow|upcoming|soon|looking forward|can't wait|signed up)\b"
    r"|\b(?:moved|rescheduled|postponed|pushed|delayed|shifted|due)\b.* (?:to|until|till|by|on) |要|将|打算|计划|准备|明天|下周|下个月|明年",
    re.IGNORECASE,
)
_AGAIN = re.compile(
    r"\b(?:every|each|always|usually|often|since|on \w+days|birthday|anniversary)\b|每|一直|经常|生日",
    re.IGNORECASE,
)
_OPEN_QUESTION = re.compile(r"(?:what|which|who|where|when|how)\b", re.IGNORECASE)
_NAMED = re.compile(r"[A-Z][\w'-]{2}|\d")
_ANSWER_NAME = re.compile(
    r"(?P<name>(?P<first>[A-Z][\w'-]+)(?: [A-Z][\w'-]+)*)(?=$|[,.;:!]| (?:and|for|by|in|at|with|again)\b)"
)
_STANDS = re.compile(r"\b(?:is|are|has|have|does|lives|works)\b", re.IGNORECASE)


class SalientExtractor:
    """Keeps each sentence of a speaker that says something, in the third person.

    A pure function of its arguments; needs no model, about a millisecond a turn. Drafts carry the
    tag "salient" and no slot. A sentence that leans on the one before it ("It was ...") joins it,
    and so do neighbours in talk among people.
    What cannot be rewritten safely (several people together, other languages and scripts) is kept
    as it stands, with the speaker in front. The names in the result stand in the turn, or in the
    question that it answers, which is then among the sources.
    """

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return one `Extraction` per turn, in order.

        Args:
            turns: the new turns, oldest first.
            history: the turns before them, oldest first: who is talked to, and what was asked.
        """
        _, before = split_summary(history)
        found = []
        for turn in turns:
            found.append(self.extract_one(turn, before, answer_of(turn, before)))
            before.append(turn)
        return found

    def extract_one(self, turn: Turn, before: Sequence[Turn], answer: Answer | None) -> Extraction:
        """Return what one turn gave.

        Args:
            turn: the turn.
            before: the turns before it, oldest first.
            answer: the short answer that it begins with, if it does.
        """
        name = speaker_label(turn)
        if not name:
            return Extraction(turn.id)
        scene = _Scene(turn, name, before[-10:], answer)
        drafts = [scene.draft(said) for said in scene.said()][:MAX_MEMORIES]
        about = [e for d in drafts for e in d.entities if e.name != name or scene.is_about(d.text)]
        return Extraction(turn.id, tuple(drafts), merged([*about, *scene.names()], scene.source))


def speaker_label(turn: Turn) -> str:
    """Return how memories of a turn name its speaker; "" for turns that make no memory."""
    if _is_silent(turn) or not turn.text.strip():
        return ""
    if turn.speaker.strip().casefold() == "user":
        return USER_LABELS[is_chinese(clean(turn.text))]
    return clean(turn.speaker.strip())[:80]


def _is_silent(turn: Turn) -> bool:
    """Whether a turn is of a machine: what it says is nobody's memory."""
    return turn.speaker.strip().casefold() in MACHINES or turn.role in _SILENT_ROLES


class Said(msgspec.Struct):
    """A kept sentence: as told, as it stands in the turn, and whether it leans on the one before."""

    told: str
    original: str
    leans: bool = False
    explicit: bool = False
    sources: tuple[str, ...] = ()
    answers: bool = False  # a bare answer to an open question: "Middlemarch"


@lru_cache(maxsize=512)
def _name_terms(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(t for name in names for t in (*terms(name), *terms(name[:3])))


def clear_caches() -> None:
    """Forget the names of those who spoke."""
    _name_terms.cache_clear()


class _Scene:
    """One turn being read: who speaks, who is talked to, what was asked."""

    def __init__(
        self, turn: Turn, name: str, before: Sequence[Turn], answer: Answer | None
    ) -> None:
        self.turn, self.name, self.answer, self.before = turn, name, answer, before
        self.text = own_words(_FENCE.sub("\n", clean(turn.text)))
        self.source = f"{turn.text}\n{turn.speaker}" + (f"\n{answer.question}" if answer else "")
        self.narrates = turn.speaker.strip().casefold() in NARRATORS
        self.is_somebody = not self.narrates and name not in USER_LABELS and not is_unnamed(name)
        me = turn.speaker.casefold()
        others = {
            t.speaker.strip() for t in before if t.speaker.casefold() != me and t.role != "system"
        }
        self.people = others - {t.speaker.strip() for t in before if _is_silent(t)}
        last = before[-1] if before else None
        self.last_label = speaker_label(last) if last is not None else ""
        others_called = frozenset(part.casefold() for o in others for part in o.split()[:2])
        # What a person asks is about a life; what a machine asks is mostly about its task.
        heard = last is not None and last.speaker.strip() in self.people
        self.talk = english.Talk(
            others=others_called,
            ignored=_name_terms(tuple(sorted({name, *others} - {"user"}))),
            among_people=bool(self.people),
            is_asked=last is not None and last.speaker.strip() in others and asks(last),
            is_answer=heard and last is not None and asks(last, at_end=False),
            is_advice=heard and last is not None and seeks_advice(last),
        )

    def is_about(self, told: str) -> bool:
        """Whether a told sentence is about its speaker, who may only stand in front: "Ana: ..."."""
        return self.name in told.removeprefix(f"{self.name}: ").removeprefix(f"{self.name}：")

    def said(self) -> list[Said]:
        """Return what is kept, in order; neighbours that belong together are one."""
        kept = self._sentences()
        for note in _NOTE.finditer(self.text):
            kept += self._note(note["kind"], note["text"])
        unique = {fold(said.told): said for said in kept}
        return list(unique.values())

    def _sentences(self) -> list[Said]:
        body = _NOTE.sub("\n", self.text)
        kept: list[Said] = []
        earlier: list[str] = []
        last = -2
        for place, sentence in enumerate(sentences(body)[:MAX_SENTENCES]):
            if _is_material(sentence):
                break
            meant = refer.with_thing(sentence, earlier, self.before, self.last_label)
            earlier.append(sentence)
            found = self._one(meant.text if meant else sentence, goes_on=last == place - 1)
            if found is None:
                continue
            if meant:
                found.sources = (meant.turn_id, *found.sources)
                self._leans_on(self.before[-1])
            # Among people neighbours are about one thing; to an assistant each may change alone.
            near = found.leans or bool(self.people)
            joined = (
                kept
                and near
                and last == place - 1
                and not found.explicit
                and kept[-1].sources == found.sources
            )
            if joined and len(f"{kept[-1].told} {found.told}".split()) <= MAX_JOINED_WORDS:
                kept[-1].told = _join(kept[-1].told, found.told.removeprefix(f"{self.name}: "))
                kept[-1].original += f" {found.original}"
            else:
                kept.append(found)
            last = place
        return kept

    def _one(self, sentence: str, *, goes_on: bool) -> Said | None:
        prose = sum(c.isalnum() or c.isspace() for c in sentence)
        if (
            len(sentence) > MAX_SENTENCE_CHARS
            or (len(sentence) > MIN_DATA_CHARS and prose < MIN_PROSE * len(sentence))
            or sentence.startswith(">")
            or is_command(sentence)
        ):
            return None
        if self.answer and sentence == self.answer.fragment:
            return self._answered(self.answer)
        if _is_other(sentence):
            return self._as_it_stands(sentence)
        han = is_chinese(sentence)
        bare = sentence.strip() if han else english.strip_openers(sentence, self.talk.others)
        if asked := (cues.EXPLICIT_ZH if han else cues.EXPLICIT).match(bare):
            if "?" in sentence or "？" in sentence:
                return None
            return Said(
                self._told(asked["s"].strip(" .!。！，,\"'"), han=han), sentence, explicit=True
            )
        if taken := (cues.RETRACT_ZH if han else cues.RETRACT).match(bare):
            sentence = "" if han else cues.taken_back(taken["s"])[1]
            if not sentence:
                return None
        text = self._worth(sentence, han=han, goes_on=goes_on)
        if not text:
            return None
        leans = bool(_FOLLOWS.match(text)) or (not han and refer.leans(text))
        return Said(text if self.narrates else self._told(text, han=han), text, leans=leans)

    def _told(self, text: str, *, han: bool) -> str:
        if self.narrates:
            return text
        name = USER_LABELS[han] if self.name in USER_LABELS else self.name
        return chinese.in_third(text, name) if han else in_third(text, name)

    def _answered(self, answer: Answer) -> Said | None:
        han = is_chinese(answer.fragment)
        sources = (answer.question_id,)
        if answer.statement:
            return Said(self._told(answer.statement, han=han), answer.statement, sources=sources)
        fragment = answer.fragment.strip(" .!。！")
        if not is_fragment(answer.fragment):
            found = self._worth(answer.fragment, han=han)
            if not found:
                return None
            head, comma, rest = found.partition(", ")
            if han or not (comma and _OPEN_QUESTION.match(answer.question) and is_fragment(head)):
                return Said(self._told(found, han=han), found)
            more = self._told(rest, han=False).removeprefix(f"{self.name}: ")
            told = f'{self.name}, asked "{answer.question}": {head}; {more}'
            return Said(told, found, sources=sources, answers=True)
        if han:
            content = chinese.is_answer(answer.question, fragment)
            told = f"{self.name}被问“{answer.question}”，答：{fragment}"
        else:
            told = f'{self.name}, asked "{answer.question}": {fragment}'
            stripped = english.strip_openers(fragment, self.talk.others)
            ignored = self.talk.ignored
            content = bool(english.content_of(stripped, ignored)) and not (
                english.asks_for(stripped, self.talk) or english.says_nothing(stripped, self.talk)
            )
            if content and not english.content_of(answer.question, ignored):
                return self._answered_about(answer, stripped)  # "Who is it with?"
        return Said(told, answer.fragment, sources=sources, answers=True) if content else None

    def _answered_about(self, answer: Answer, fragment: str) -> Said | None:
        """A name or number that answers a question about what the speaker had said before it."""
        mine = self.before[-2] if len(self.before) > 1 else None
        if mine is None or mine.speaker != self.turn.speaker or not _NAMED.search(fragment):
            return None
        said = [s for s in sentences(clean(mine.text)) if english.worth_keeping(s, self.talk)]
        if not said or len(said[-1].split()) > MAX_JOINED_WORDS // 2:
            return None
        told = f'{self._told(english.worth_keeping(said[-1], self.talk), han=False)}; asked "{answer.question}": {fragment}'
        self._leans_on(mine)
        return Said(told, answer.fragment, sources=(answer.question_id, mine.id), answers=True)

    def _leans_on(self, turn: Turn) -> None:
        """Take what an earlier turn names as known: a told sentence holds words of it."""
        self.source += f"\n{turn.text[:MAX_SOURCE_CHARS]}"

    def _worth(self, sentence: str, *, han: bool, goes_on: bool = False) -> str:
        if han:
            return chinese.worth_keeping(
                sentence, is_answer=self.talk.is_answer, is_advice=self.talk.is_advice
            )
        return english.worth_keeping(sentence, self.talk, goes_on=goes_on)

    def _as_it_stands(self, sentence: str) -> Said | None:
        text = sentence.strip(" ,;.!。！")
        latin = len(_LATIN.findall(text)) * 2 > len(_LETTER.findall(text))
        long = len(text.split()) > 3 if latin else len(text) > 5  # noqa: PLR2004 - a greeting is shorter
        if not long or text[-1:] in "?？؟;" or any(c in text for c in "?？؟¿"):
            return None
        return Said(text if self.narrates else f"{self.name}: {text}", text)

    def _note(self, kind: str, text: str) -> list[Said]:
        bare = _PICTURE.sub("", text.strip())
        bare = re.sub(r"\b(?:an?|the) (?=[a-z])", "", bare)  # a caption reads as well without
        if not english.content_of(bare, self.talk.ignored):
            return []
        what = kind.rsplit(maxsplit=1)[-1].lower()
        return [Said(f"{self.name}'s {what}: {bare}", bare)]

    def names(self) -> list[EntityDraft]:
        """Return the names that the turn mentions."""
        named = list(titles(self.text))
        if is_chinese(self.text):
            return named + chinese_named(self.text)
        for sentence in sentences(self.text):
            named += english_names(sentence)
        return named

    def draft(self, said: Said) -> MemoryDraft:
        """Return the draft of a kept sentence."""
        han = is_chinese(said.told)
        if han:
            named = chinese_named(said.told)
        else:
            named = [*english_names(said.original), *things(said.original)]
            answer = _ANSWER_NAME.match(said.original.strip(" \"'")) if said.answers else None
            if answer and may_name(answer["first"]):
                named.append(EntityDraft(answer["name"], "thing"))
        if self.is_somebody:
            named = [EntityDraft(self.name, "person"), *named]
        entities = merged([*named, *titles(said.original)], self.source)
        past = _is_past(said.told)
        coming = bool(_FUTURE.search(said.told)) or not (past or han)
        date = find_date(said.told, self.turn.said_at, past=not coming, chinese=han)
        kind = _kind(said.told, past=past, dated=date is not None)
        is_dated = date is not None and kind == "event" and not _AGAIN.search(said.told)
        others = [e for e in entities if e.name != self.name]
        return MemoryDraft(
            text=said.told,
            kind=kind,
            confidence=CONFIDENCE,
            importance=EXPLICIT
            if said.explicit
            else importance_of_text(said.told, PLAIN, names=len(others)),
            valid_from=date.start if date and is_dated else None,
            sentiment=sentiment(said.told),
            pinned=said.explicit,
            tags=("explicit", TAG) if said.explicit else (TAG,),
            sources=(self.turn.id, *said.sources),
            entities=entities,
            relations=() if han else deeds(said.told, self.name, others),
        )


def _is_other(sentence: str) -> bool:
    """Whether a sentence is neither English nor Chinese."""
    if _KANA_OR_HANGUL.search(sentence):
        return True
    letters = len(_LETTER.findall(sentence))
    if is_chinese(sentence) or not letters:
        return False
    if len(_LATIN.findall(sentence)) * 2 < letters:
        return True
    return not english.is_english(sentence)


def _is_material(sentence: str) -> bool:
    """Whether what follows is text to work on ("Translate this: ..."), not something said."""
    bare = cues.without_lead(sentence.strip())
    head = re.split("[:：]", sentence, maxsplit=1)[0]
    if is_chinese(head) and head != sentence and _MATERIAL_ZH.search(head):
        return True
    asks = re.match(r"(?:please |can you |could you |help me )*", bare, re.IGNORECASE)
    rest = bare[asks.end() :] if asks else bare
    return bool(_MATERIAL.match(rest)) and (":" in rest or "：" in rest)


def _join(first: str, second: str) -> str:
    mark = "。" if is_chinese(first) else "."
    return f"{first}{mark}{'' if mark == '。' else ' '}{second}"


def _is_past(text: str) -> bool:
    words = text.split()
    return any(w in PASTS or w.endswith("ed") for w in words[:8]) or bool(re.search("了|过", text))


def _kind(text: str, *, past: bool, dated: bool) -> MemoryKind:
    words = text.split()
    if _LIKES.search(text) and not dated:
        return "preference"
    if dated and not _AGAIN.search(text):
        return "event"
    if past and not _STANDS.search(" ".join(words[:4])):
        return "event"
    return "fact"
