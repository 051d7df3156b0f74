"""Extraction by a language model, behind the same protocol as the rules.

`SpanReader` is for a small model with the adapter "span": it marks runs of words of the turn
(`prompts.py`), and cannot write anything else. `ChatReader` is for models that follow
instructions: JSON held to a grammar (`chat_prompts.py`), each item of which must stand on its
source (`grounding.py`) or is dropped and counted. `open_model_extractor` chooses by size.

Both see the running summary (a first turn of history of role "system" by "summary"), the last
turns and one new turn, as data. What does not fit the context is cut: the summary first, then the
oldest turn, then the turn itself. A turn costs at most two calls; a second answer that is no answer
is a `ModelFailedError`, after which the ingestor tries the turn once more and then quarantines it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec
import structlog

from reverie.memory_graph.errors import (
    BudgetExceededError,
    InvalidValueError,
    ModelFailedError,
)
from reverie.models.chat_claims import ChatContext, extraction_of
from reverie.models.chat_prompts import (
    EXTRACTION_TOKENS,
    MAX_MEMORIES,
    ChatExtraction,
    Language,
    Line,
    Talk,
    extraction_grammar,
    extraction_messages,
    for_model,
    prompt_tokens,
    shorter,
)
from reverie.models.prompts import SpanFact, parse_spans, span_grammar, span_prompt
from reverie.models.protocol import (
    ChatMessage,
    Completion,
    Extraction,
    LanguageModel,
    Turn,
)
from reverie.models.recalled import split_summary
from reverie.models.rules.claims import USER_LABELS
from reverie.models.rules.extract import is_machine
from reverie.models.rules.names import merged
from reverie.models.rules.text import MAX_SCAN_CHARS, clean, fold, is_chinese, sentences
from reverie.models.span_claims import draft_of_span

log = structlog.get_logger(__name__)

SPAN_ADAPTER = "span"
CHAT_PARAMETERS = 800_000_000  # fewer cannot be prompted into this work
HISTORY = 10  # turns before a new one that are shown
MAX_LINE_CHARS = 800  # of an earlier turn, and of the summary
SPAN_TOKENS = 120  # of an answer of four lines
MAX_CALLS = 2  # a turn: one, and one more after an answer that is none
_MIN_CHARS = 40  # of a turn: a context without room for that is too small

Way: TypeAlias = Literal["auto", "span", "chat"]


class ExtractionCounts(msgspec.Struct):
    """What became of the turns since the start."""

    turns: int = 0
    passed: int = 0  # without a call: nothing said, or only asked
    calls: int = 0
    retries: int = 0
    memories: int = 0
    dropped: int = 0  # items that did not stand on their source
    trimmed: int = 0  # turns of which some history did not fit the context
    over_budget: int = 0  # turns that were passed because the user's budget was spent


class Work(msgspec.Struct, frozen=True):
    """One turn to read: what went before it, and how its speaker is called."""

    turn: Turn
    text: str
    label: str
    earlier: tuple[Line, ...]
    summary: str
    language: Language


def open_model_extractor(model: LanguageModel, way: Way = "auto") -> ModelExtractor:
    """Return the extractor that fits a model.

    Args:
        model: opened; for the small one with its adapter "span".
        way: "auto" takes "chat" from 0.8 billion parameters on, or where the file does not tell.
    """
    if way == "auto":
        count = model.info.parameters
        way = "chat" if count == 0 or count >= CHAT_PARAMETERS else "span"
    return ModelExtractor(model, ChatReader(model) if way == "chat" else SpanReader(model))


class Reader(Protocol):
    """How one model is asked about one turn."""

    def read(self, work: Work, attempt: int) -> Found | None:
        """Ask once; None where the answer is none. `attempt` counts from 0."""
        ...


class Found(msgspec.Struct, frozen=True):
    """What an answer gave, how many of its items were dropped, and whether history was cut."""

    extraction: Extraction
    dropped: int = 0
    trimmed: bool = False


class ModelExtractor:
    """An `Extractor` that asks a language model about every turn that may hold something.

    Safe to call from several threads, as its model is. A user without budget left is passed over
    and counted: the other layers still keep what he said.
    """

    def __init__(self, model: LanguageModel, reader: Reader) -> None:
        self.counts = ExtractionCounts()
        self._model = model
        self._reader = reader
        self._lock = threading.Lock()

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return one `Extraction` per turn of `turns`, in order.

        Args:
            turns: the new turns, oldest first; each is read with those before it.
            history: turns before them, oldest first; a first one of role "system" by "summary"
                is the running summary.

        Raises:
            ModelFailedError: two answers about a turn were none.
            ModelUnavailableError, ModelTimeoutError: as `LanguageModel`.
        """
        summary, before = split_summary(history)
        found = []
        for turn in turns:
            found.append(self._one(turn, before[-HISTORY:], summary))
            before.append(turn)
        return found

    def _one(self, turn: Turn, before: Sequence[Turn], summary: str) -> Extraction:
        self._count(turns=1)
        work = _work(turn, before, summary)
        if work is None:
            self._count(passed=1)
            return Extraction(turn.id)
        try:
            found = self._ask(work)
        except BudgetExceededError:
            self._count(over_budget=1)
            return Extraction(turn.id)
        self._count(
            memories=len(found.extraction.memories),
            dropped=found.dropped,
            trimmed=int(found.trimmed),
        )
        return found.extraction

    def _ask(self, work: Work) -> Found:
        reason = "no answer of the form that was asked for"
        for attempt in range(MAX_CALLS):
            self._count(calls=1, retries=min(attempt, 1))
            try:
                if (found := self._reader.read(work, attempt)) is not None:
                    return found
            except ModelFailedError as exc:
                reason = str(exc)
        msg = f"the model failed {MAX_CALLS} times on one turn: {reason}"
        raise ModelFailedError(msg, turn=work.turn.id)

    def _count(self, **more: int) -> None:
        with self._lock:
            for field, value in more.items():
                setattr(self.counts, field, getattr(self.counts, field) + value)


class SpanReader:
    """Asks the small model, with its adapter and the grammar of the turn's own words."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def read(self, work: Work, attempt: int) -> Found | None:
        """Ask; the second time without history, or the same call would get the same answer."""
        history = [] if attempt else [(line.speaker, line.text) for line in work.earlier]
        text = work.text

        def prompt() -> str:
            return span_prompt(text, work.label, history)

        limit = self._model.info.context_tokens - SPAN_TOKENS
        trimmed = False
        while self._model.count_tokens(prompt()) + 1 > limit:
            trimmed = True
            if history:
                history.pop(0)
            else:
                text = _halved(text)
        answer = self._model.complete(
            prompt(),
            max_tokens=SPAN_TOKENS,
            grammar=span_grammar(text, (work.label,)),
            stop=("\n\n",),
            adapter=SPAN_ADAPTER,
        )
        facts, dropped = parse_spans(_whole_lines(answer), text, (work.label,))
        if dropped and not facts:
            return None
        return self._found(work, facts, dropped, trimmed=trimmed)

    @staticmethod
    def _found(work: Work, facts: Sequence[SpanFact], dropped: int, *, trimmed: bool) -> Found:
        drafts = []
        seen = set()
        for fact in facts:
            draft = draft_of_span(fact, work.turn, work.label)
            if draft is None:
                dropped += 1
            elif fold(draft.text) not in seen:
                seen.add(fold(draft.text))
                drafts.append(draft)
        named = [entity for draft in drafts for entity in draft.entities]
        entities = merged(named, f"{work.turn.text}\n{work.turn.speaker}")
        return Found(Extraction(work.turn.id, tuple(drafts), entities), dropped, trimmed)


class ChatReader:
    """Asks a model that follows instructions, and keeps of its answer what stands on the source."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def read(self, work: Work, attempt: int) -> Found | None:
        """Ask; the second time for a shorter answer."""
        talk, messages, trimmed = self._fitted(work)
        if attempt:
            messages = shorter(messages, work.language)
        answer = self._model.complete(
            for_model(self._model, messages),
            max_tokens=EXTRACTION_TOKENS,
            grammar=extraction_grammar(2 if attempt else MAX_MEMORIES),
        )
        try:
            said = msgspec.json.decode(answer.text.strip(), type=ChatExtraction)
        except (msgspec.DecodeError, RecursionError):
            return None
        context = ChatContext(
            work.turn,
            work.label,
            (talk.summary, *(line.text for line in talk.earlier)),
            tuple(line.speaker for line in talk.earlier),
            talk.summary,
        )
        extraction, dropped = extraction_of(said, context)
        return Found(extraction, dropped, trimmed)

    def _fitted(self, work: Work) -> tuple[Talk, list[ChatMessage], bool]:
        """The prompt that fits: without the summary, the oldest turns, then the examples."""
        room = self._model.info.context_tokens - EXTRACTION_TOKENS
        earlier, summary, text = list(work.earlier), work.summary, work.text
        shots, trimmed = True, False
        while True:
            talk = Talk(Line(work.label, text), tuple(earlier), summary)
            messages = extraction_messages(talk, work.language, shots=shots)
            # The request for a shorter answer must fit as well.
            if prompt_tokens(self._model, shorter(messages, work.language)) <= room:
                return talk, messages, trimmed
            trimmed = True
            if summary:
                summary = summary[: len(summary) // 2] if len(summary) > _MIN_CHARS else ""
            elif earlier:
                earlier.pop(0)
            elif shots:
                shots = False
            else:
                text = _halved(text)


def _halved(text: str) -> str:
    if len(text) < 2 * _MIN_CHARS:
        msg = "the context of the language model has no room for a turn"
        raise InvalidValueError(msg)
    return text[: len(text) // 2]


def _whole_lines(answer: Completion) -> str:
    """Drop a last line that was cut off."""
    if answer.is_whole:
        return answer.text
    return answer.text.rpartition("\n")[0]


def _work(turn: Turn, before: Sequence[Turn], summary: str) -> Work | None:
    """What to ask about a turn, or None where there is nothing to ask."""
    text = clean(turn.text).strip()
    speaker = clean(turn.speaker).strip()[:80]
    if is_machine(turn) or not speaker or not _may_state(text):
        return None
    han = is_chinese(text)
    return Work(
        turn,
        text[:MAX_SCAN_CHARS],
        _label(speaker, han=han),
        tuple(_line(t, han=han) for t in before if t.text.strip()),
        " ".join(clean(summary).split())[:MAX_LINE_CHARS],
        "zh" if han else "en",
    )


def _label(speaker: str, *, han: bool) -> str:
    return USER_LABELS[han] if speaker.casefold() == "user" else speaker


def _line(turn: Turn, *, han: bool) -> Line:
    text = " ".join(clean(turn.text).split())[:MAX_LINE_CHARS]
    return Line(_label(clean(turn.speaker).strip()[:80] or turn.role, han=han), text)


def _may_state(text: str) -> bool:
    """Whether a turn has a sentence that is no question and more than a word long."""
    for sentence in sentences(text):
        bare = sentence.rstrip("\"'”’) ")
        if bare.endswith(("?", "？")):
            continue
        words = fold(bare).split()
        if len(words) > 1 or (is_chinese(bare) and len(bare) > 3):  # noqa: PLR2004 - "好的。"
            return True
    return False
