"""Cases decided as in use, by rules, embedders and classifier; the thresholds that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from reverie.memory_graph.drafts import Known, MemoryDraft
from reverie.models.decide_layers import LayeredDecider
from reverie.models.decide_model import FLOOR, MULTILINGUAL_FLOOR, PairDecider, PairThresholds
from reverie.models.embedders import open_embedder
from reverie.models.protocol import Embedder, LanguageModel
from reverie.models.rules import RulesDecider
from reverie.models.training.decisions import Case
from reverie.models.training.lexicon import Language

# Of the cases that thresholds are chosen by, all of kinds that were not trained.
HARMFUL_SHARE = 1 / 40
SAME = 0.6  # a wrong repetition loses a statement, but hides none
LEAD = 1.0  # of log-odds
# A model trained without smoothing is sure of much: the last steps are finer.
GRID = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)


class Nearness(NamedTuple):
    """The usual embedder of a language, and what its cosines mean."""

    embedder: str
    floor: float  # below it a memory is nothing to ask about
    near_duplicate: float  # from it on texts say the same


NEARNESS: dict[Language, Nearness] = {
    "en": Nearness("minilm", FLOOR, 0.9),
    "zh": Nearness("multilingual", MULTILINGUAL_FLOOR, 0.95),
}


class Asked(NamedTuple):
    """A case with its memories as the deciders get them, the nearest first."""

    case: Case
    known: list[Known]
    nearness: Nearness


class Memo:
    """A model whose answers to pairs are kept, so that thresholds can be tried without asking."""

    def __init__(self, model: LanguageModel, adapter: str | None) -> None:
        self.info = model.info
        self._model = model
        self._adapter = adapter
        self._rows: dict[str, list[float]] = {}

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Return what the model said of each prompt; the adapter is that of the memo."""
        new = [prompt for prompt in prompts if prompt not in self._rows]
        if new:
            rows = self._model.choose(new, choices, adapter=self._adapter or adapter)
            self._rows.update(zip(new, rows, strict=True))
        return [self._rows[prompt] for prompt in prompts]


def with_memories(cases: Sequence[Case], embedders: Mapping[Language, Embedder]) -> list[Asked]:
    """Return the cases with the cosines of their memories."""
    found = []
    for case in cases:
        texts = [case.candidate, *(memory.text for memory in case.memories)]
        rows = embedders[case.lang].embed(texts, "passage")
        known = [
            Known(str(memory.id), memory.text, similarity=float(cosine))
            for memory, cosine in zip(case.memories, rows[1:] @ rows[0], strict=True)
        ]
        known.sort(key=lambda item: -item.similarity)
        found.append(Asked(case, known, NEARNESS[case.lang]))
    return found


def with_usual_memories(cases: Sequence[Case], folder: Path) -> list[Asked]:
    """Return the cases as the usual embedders see them.

    Args:
        cases: in any order.
        folder: where pulled models lie.

    Raises:
        ModelMissingError: an embedder is not there.
    """
    embedders = {lang: open_embedder(near.embedder, folder) for lang, near in NEARNESS.items()}
    try:
        return with_memories(cases, embedders)
    finally:
        for embedder in embedders.values():
            embedder.close()


def decide_cases(
    model: LanguageModel, asked: Sequence[Asked], thresholds: dict[str, float]
) -> tuple[int, int]:
    """Return how many cases the rules and then the classifier get right, and how many do harm.

    Harm is an UPDATE or DELETE of what should have stayed.
    """
    follow = PairThresholds(**thresholds)
    deciders = {
        near: LayeredDecider(
            RulesDecider(near_duplicate=near.near_duplicate),
            PairDecider(model, follow, floor=near.floor),
        )
        for near in {item.nearness for item in asked}
    }
    right = harmful = 0
    for case, known, near in asked:
        said = deciders[near].decide(MemoryDraft(case.candidate), known)
        target = None if case.target is None else str(case.target)
        right += said.op == case.op and said.target == target
        harmful += said.op in {"UPDATE", "DELETE"} and not (
            case.op in {"UPDATE", "DELETE"} and said.target == target
        )
    return right, harmful


def choose_thresholds(model: LanguageModel, asked: Sequence[Asked]) -> dict[str, float]:
    """Return the thresholds with the most cases right among those that rarely do harm.

    Of equal ones the strictest. When all do more harm than `HARMFUL_SHARE`, nothing that changes
    a memory is followed.
    """
    chosen = {"same": SAME, "replaced": 1.0, "ended": 1.0, "lead": LEAD}
    best_so_far, most = chosen, -1
    for replaced, ended in product(GRID, GRID):
        tried = {**chosen, "replaced": replaced, "ended": ended}
        right, harmful = decide_cases(model, asked, tried)
        if harmful <= HARMFUL_SHARE * len(asked) and right >= most:
            most, best_so_far = right, tried
    return best_so_far
