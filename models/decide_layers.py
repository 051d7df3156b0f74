"""The rules first, then the model for what they leave open."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec
import structlog

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import (
    BudgetExceededError,
    InvalidValueError,
    ModelFailedError,
    ModelTimeoutError,
)
from reverie.models.protocol import Decider
from reverie.models.rules.decide import AMBIGUOUS

log = structlog.get_logger(__name__)


class DecisionCounts(msgspec.Struct):
    """What became of decisions since the start."""

    decided: int = 0
    asked: int = 0  # of them, how often the model was asked
    changed: int = 0  # and said something else than ADD
    refused: int = 0  # and named a memory that was not offered
    failed: int = 0  # and failed or was too late: the word of the rules stood
    over_budget: int = 0  # and the budget was spent: the word of the rules stood


class LayeredDecider:
    """Slot rules and duplicate checks, then a model where they say ADD for want of knowledge.

    What the rules recognise stands. What fits several memories alike stands too: a model that
    picks one of them guesses. Where the model fails, answers late or its budget is spent, the word
    of the rules stands and is counted; where it cannot be reached now, that is for the caller to
    wait for.

    Args:
        rules: asked first, always.
        model: asked second; None for none.
    """

    def __init__(self, rules: Decider, model: Decider | None = None) -> None:
        self.counts = DecisionCounts()
        self._rules = rules
        self._model = model
        self._lock = threading.Lock()

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return the decision for `draft`; see the class.

        Raises:
            ModelUnavailableError: the model is being started again; ask once more later.
            ClosedError: the model was closed.
        """
        word = self._rules.decide(draft, known)
        self._count("decided")
        if self._model is None or not known or word.op != "ADD" or word.reason == AMBIGUOUS:
            return word
        self._count("asked")
        try:
            said = self._model.decide(draft, known)
        except BudgetExceededError:
            self._count("over_budget")
            return word
        except (ModelFailedError, ModelTimeoutError, InvalidValueError) as exc:
            self._count("failed")
            log.warning("the model made no decision; the rules' word stands", error=str(exc))
            return word
        if said.op == "ADD":
            return word
        if all(item.id != said.target for item in known):
            self._count("refused")
            return word
        self._count("changed")
        return said

    def _count(self, field: str) -> None:
        with self._lock:
            setattr(self.counts, field, getattr(self.counts, field) + 1)
