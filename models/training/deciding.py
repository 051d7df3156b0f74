"""Cases decided as in use, by rules, embedders and classifier; the thresholds that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from reverie.memory_graph.drafts import Known, MemoryDraft
from reverie.models.decide_layers import LayeredDecider
from reverie.models.decide_model import FLOOR, MULTILINGUAL_FLOOR, PairDecider
from reverie.models.embedders import open_embedder
from reverie.models.protocol import CrossEncoder, Embedder, LanguageModel
from reverie.models.rules import RulesDecider
from reverie.models.thresholds import PairThresholds
from reverie.models.training.decisions import Case
from reverie.models.training.lexicon import Language

# Of the cases that thresholds are chosen by, all of kinds that were not trained.
HARMFUL_SHARE = 1 / 80
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


class CrossMemo:
    """A cross-encoder whose answers are kept, as those of `Memo`."""

    def __init__(self, cross: CrossEncoder) -> None:
        self._cross = cross
        self._rows: dict[tuple[str, str], list[float] | None] = {}

    def pair_share(self) -> float:
        """Return that of the cross-encoder."""
        return self._cross.pair_share()

    def weigh_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        """Return what the cross-encoder said of each pair."""
        new = [pair for pair in pairs if pair not in self._rows]
        self._rows.update(zip(new, self._cross.weigh_pairs(new), strict=True))
        return [self._rows[pair] for pair in pairs]


class Crossed(NamedTuple):
    """The cross-encoder of each language, and its share in what is said; see `PairDecider`."""

    encoders: Mapping[Language, CrossEncoder]
    shares: Mapping[Language, float]


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
        found.append(Asked(case, known))
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
    model: LanguageModel,
    asked: Sequence[Asked],
    thresholds: dict[str, float],
    crossed: Crossed | None = None,
) -> tuple[int, int]:
    """Return how many cases the rules and then the classifier get right, and how many do harm.

    Harm is an UPDATE or DELETE of what should have stayed.
    """
    follow = PairThresholds(**thresholds)
    deciders = {
        lang: LayeredDecider(
            RulesDecider(near_duplicate=near.near_duplicate),
            PairDecider(
                model,
                follow,
                floor=near.floor,
                cross=crossed.encoders[lang] if crossed else None,
                share=crossed.shares[lang] if crossed else 0.0,
            ),
        )
        for lang, near in NEARNESS.items()
    }
    right = harmful = 0
    for case, known in asked:
        said = deciders[case.lang].decide(MemoryDraft(case.candidate), known)
        target = None if case.target is None else str(case.target)
        right += said.op == case.op and said.target == target
        harmful += said.op in {"UPDATE", "DELETE"} and not (
            case.op in {"UPDATE", "DELETE"} and said.target == target
        )
    return right, harmful


def choose_thresholds(
    model: LanguageModel, asked: Sequence[Asked], crossed: Crossed | None = None
) -> dict[str, float]:
    """Return the thresholds with the most cases right, where one that does harm takes away
    another, among those that rarely do.

    Of equal ones those with more cases right, then the strictest. When all do more harm than
    `HARMFUL_SHARE`, nothing that changes a memory is followed.
    """
    best_so_far = {"same": SAME, "replaced": 1.0, "ended": 1.0, "lead": LEAD}
    most = (-len(asked), 0)
    for replaced, ended in product(GRID, GRID):
        tried = {**best_so_far, "replaced": replaced, "ended": ended}
        right, harmful = decide_cases(model, asked, tried, crossed)
        worth = (right - harmful, right)
        if harmful <= HARMFUL_SHARE * len(asked) and worth >= most:
            most, best_so_far = worth, tried
    return best_so_far
