"""Decisions by a language model, for what the rules leave open.

`PairDecider` asks a small model with a trained adapter how the new statement stands to each of the
nearest memories; an answer counts from a probability on that was chosen so that a wrong UPDATE or
DELETE is rare. `ChatDecider` lets a larger model choose an operation and one of the numbers of the
memories it is shown, held to a grammar that allows nothing else.

Both see only memories that the rules do not know to be left alone (`rules/apart.py`), and texts of
memories and statements only as data; whatever they say, an answer is one of the given memories.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft, Operation
from reverie.memory_graph.errors import ModelFailedError
from reverie.models.chat_prompts import (
    ChatDecision,
    decision_grammar,
    decision_messages,
    for_model,
    prompt_tokens,
)
from reverie.models.cross_encoder import mixed
from reverie.models.prompts import PAIR_CHOICES, pair_prompt
from reverie.models.protocol import ChatMessage, CrossEncoder, LanguageModel
from reverie.models.rules.apart import apart, is_command, is_loose, says_more
from reverie.models.rules.compare import differs_in_mood
from reverie.models.rules.decide import AMBIGUOUS
from reverie.models.rules.endings import stays
from reverie.models.rules.reading import Said, is_unsaid, read
from reverie.models.rules.sides import contrary, opposed
from reverie.models.thresholds import PairThresholds

PAIR_ADAPTER = "pair"
MAX_PAIRS = 2  # of one decision; the memory that is meant is nearly always the first
MAX_OFFERED = 10
SURE_OF_ENDS = 0.99  # from which probability on an end and another statement may be the same
DECISION_TOKENS = 24  # of a larger model's answer
_OPERATIONS: dict[str, Operation] = {
    " same": "NOOP",
    " replaced": "UPDATE",
    " ended": "DELETE",
    " unrelated": "ADD",
}
# Measured on generated cases: the memory that was meant was nearer in all of them, most of the
# others were not.
FLOOR = 0.4
MULTILINGUAL_FLOOR = 0.91
ADD = Decision("ADD", reason="nothing that the model knows to change")


class _Fit(NamedTuple):
    """One memory, and what the classifier says of it."""

    item: Known
    choice: str
    share: float


def offered(draft: MemoryDraft, known: Sequence[Known], *, floor: float, limit: int) -> list[Known]:
    """Return the memories that a model is shown: those that the statement may concern.

    Args:
        draft: the new statement.
        known: its nearest memories.
        floor: cosine below which a memory of another slot is not shown.
        limit: at most so many, of the same slot first, then the nearest.
    """
    if is_command(draft.text):
        return []
    new = read(draft.text, draft.slot, draft.polarity)
    near: list[tuple[bool, float, Known]] = []
    for item in known:
        old = read(item.text, item.slot)
        same_slot = new.slot is not None and new.slot == old.slot and not is_loose(new)
        if (same_slot or item.similarity >= floor) and not apart(new, old):
            near.append((same_slot, item.similarity, item))
    near.sort(key=lambda found: (-found[0], -found[1]))
    return [item for *_, item in near[:limit]]


class PairDecider:
    """Asks, memory by memory, whether the new statement repeats, replaces or ends it.

    Args:
        model: opened with an adapter named "pair".
        thresholds: of the adapter alone.
        floor: cosine below which a memory is not asked about; a property of the embedder
            (`FLOOR` for MiniLM, `MULTILINGUAL_FLOOR` for multilingual-e5-small).
        cross: weighs the same pairs, but those that it cannot read; None for the model alone.
        share: of `cross` in the mean of their log-probabilities, 0 to 1.
        both: thresholds of what both say together; None for those of the adapter.
    """

    def __init__(
        self,
        model: LanguageModel,
        thresholds: PairThresholds,
        *,
        floor: float = FLOOR,
        cross: CrossEncoder | None = None,
        share: float = 0.5,
        both: PairThresholds | None = None,
    ) -> None:
        self._model = model
        self._cross = cross
        self._share = share
        self._both = both or thresholds
        self._thresholds = thresholds
        self._floor = floor

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return what the classifier is sure of, else ADD. One call of the model, or none.

        Raises:
            ModelFailedError: the model gave no probabilities, or raised.
            ModelUnavailableError, ModelTimeoutError, BudgetExceededError: as `LanguageModel`.
        """
        near = offered(draft, known, floor=self._floor, limit=MAX_PAIRS)
        if not near:
            return ADD
        prompts = [pair_prompt(item.text, draft.text) for item in near]
        rows = self._model.choose(prompts, PAIR_CHOICES, adapter=PAIR_ADAPTER)
        if len(rows) != len(near) or any(len(row) != len(PAIR_CHOICES) for row in rows):
            msg = "the pair classifier did not answer every question"
            raise ModelFailedError(msg)
        others: list[list[float] | None] = [None] * len(near)
        if self._cross is not None:
            others = self._cross.weigh_pairs([(item.text, draft.text) for item in near])
        new = read(draft.text, draft.slot, draft.polarity)
        fits = []
        for item, row, other in zip(near, rows, others, strict=True):
            said = row if other is None else mixed([row], [other], self._share)[0]
            thresholds = self._thresholds if other is None else self._both
            share, choice = max(zip(said, PAIR_CHOICES, strict=True))
            if choice != " unrelated" and share >= thresholds.of(choice):
                fits.append(_Fit(item, choice, share))
        return self._chosen(new, fits)

    def _chosen(self, new: Said, fits: list[_Fit]) -> Decision:
        """A repetition first: what is known already changes nothing. Then the surest change."""
        for fit in sorted(fits, key=lambda f: -f.share):
            if fit.choice == " same" and not _says_other(new, fit.item, fit.share):
                return Decision("NOOP", fit.item.id, f"the model: same ({fit.share:.2f})")
        changes = sorted(
            (f for f in fits if f.choice != " same" and not _is_over(new, f)),
            key=lambda f: -f.share,
        )
        if not changes:
            return ADD
        if len(changes) > 1 and _odds(changes[0]) - _odds(changes[1]) < self._thresholds.lead:
            return Decision("ADD", reason=AMBIGUOUS)
        best = changes[0]
        word = best.choice.strip()
        return Decision(
            _OPERATIONS[best.choice], best.item.id, f"the model: {word} ({best.share:.2f})"
        )


def _odds(fit: _Fit) -> float:
    """The log-odds of an answer, held to what float32 tells apart."""
    share = min(fit.share, 1.0 - 1e-6)
    return math.log(share / (1.0 - share))


def _says_other(new: Said, item: Known, share: float = 0.0) -> bool:
    """Whether a statement is no repetition of a memory, whatever a model says: it names more, or
    one of them says is over what the other says holds. Ends are told in words that the rules do
    not know, too: where only one of them seems to tell one, a model is believed if it is sure."""
    old = read(item.text, item.slot)
    if says_more(new, old) or opposed(new.text, old.text):
        return True
    unlike = contrary(new.text, old.text) or differs_in_mood(new, old)
    return unlike and share < SURE_OF_ENDS


def _is_over(new: Said, fit: _Fit) -> bool:
    """Whether a memory that a model calls ended is over by its own words."""
    if fit.choice != " ended" or is_unsaid(new.text):
        return False
    return stays(new, read(fit.item.text, fit.item.slot))


class ChatDecider:
    """Lets an instruction-following model choose the operation and the memory.

    Args:
        model: of about a billion parameters or more.
        floor: cosine below which a memory is not shown; a property of the embedder.
    """

    def __init__(self, model: LanguageModel, *, floor: float = FLOOR) -> None:
        self._model = model
        self._floor = floor

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return the model's choice among the memories shown. One call of the model, or none.

        Raises:
            ModelFailedError: the answer is no choice out of those offered, or the model raised.
            ModelUnavailableError, ModelTimeoutError, BudgetExceededError: as `LanguageModel`.
        """
        near = offered(draft, known, floor=self._floor, limit=MAX_OFFERED)
        near, messages = self._fitted(draft.text, near)
        if not near:
            return ADD
        answer = self._model.complete(
            for_model(self._model, messages),
            max_tokens=DECISION_TOKENS,
            grammar=decision_grammar(len(near)),
        )
        choice = _parse(answer.text)
        if choice is None:
            msg = f"the model answered no decision: {answer.text[:80]!r}"
            raise ModelFailedError(msg)
        if choice.op == "ADD":
            return ADD
        shown = {str(number): item for number, item in enumerate(near, 1)}
        item = shown.get(choice.id or "")
        if item is None:
            msg = f"the model named memory {choice.id}, which it was not shown"
            raise ModelFailedError(msg)
        new = read(draft.text, draft.slot, draft.polarity)
        if choice.op == "NOOP" and _says_other(new, item):
            return Decision("ADD", reason="the model calls it known, but it says more")
        return Decision(choice.op, item.id, f"the model: {choice.op.lower()}")

    def _fitted(self, new: str, near: list[Known]) -> tuple[list[Known], list[ChatMessage]]:
        """The memories that the context has room for, the nearest first, and the prompt."""
        limit = self._model.info.context_tokens - DECISION_TOKENS
        messages: list[ChatMessage] = []
        for count in range(len(near), 0, -1):
            messages = decision_messages(new, [item.text for item in near[:count]])
            if prompt_tokens(self._model, messages) <= limit:
                return near[:count], messages
        return [], messages


def _parse(text: str) -> ChatDecision | None:
    held = re.search(r"\{[^{}]*\}", text)
    if held is None:
        return None
    try:
        return msgspec.json.decode(held.group(), type=ChatDecision)
    except msgspec.DecodeError:
        return None
