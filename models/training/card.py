"""Threshold and figures of a trained adapter, as JSON beside it.

The thresholds are chosen on validation cases alone; test and held-out pairs are only measured.
All of it runs through llama.cpp, on the files that are shipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from reverie.memory_graph.drafts import Known, MemoryDraft
from reverie.models.decide_layers import LayeredDecider
from reverie.models.decide_model import PairDecider, PairThresholds
from reverie.models.digest import file_digest
from reverie.models.prompts import PAIR_CHOICES, pair_prompt, parse_spans, span_grammar, span_prompt
from reverie.models.protocol import LanguageModel
from reverie.models.rules import RulesDecider
from reverie.models.rules.text import key_words
from reverie.models.training.decisions import Case, cases
from reverie.models.training.lexicon import Split
from reverie.models.training.pairs import LABELS, Label, Pair, pairs
from reverie.models.training.spans import SpanCase, spans

SEED = 5
PAIRS: dict[Split, int] = {"validation": 400, "test": 250, "heldout": 250}
TURNS: dict[Split, int] = {"validation": 0, "test": 150}
HARMFUL_SHARE = 1 / 80  # of the validation cases; half of what may be bad in use
SAME = 0.6  # a wrong repetition loses a statement, but hides none
LEAD = 0.05
_GRID = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
_VALIDATION_CASES = 160
_CLOSEST = 0.8  # a cosine for equal words; the rules take more for a repetition
_BATCH = 64
_ANSWER_TOKENS = 120

Rows = Sequence[Sequence[float]]


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a classifier does on pairs. All but `pairs` are shares, 0 to 1.

    `right`: the likeliest label is the right one. `followed_right`: the label that is followed,
    where an answer below its threshold counts as "unrelated". `harmful`: of all pairs, those where
    "replaced" or "ended" is followed and something else is right. `kept`: of the pairs that change
    something, those whose change is followed.
    """

    pairs: int
    right: float
    followed_right: float
    harmful: float
    kept: float
    by_label: dict[str, float] = {}
    by_language: dict[str, float] = {}
    by_shape: dict[str, float] = {}
    by_kind: dict[str, float] = {}


def ask(model: LanguageModel, asked: Sequence[Pair], adapter: str | None) -> list[list[float]]:
    """Return the probabilities of `LABELS` for each pair."""
    rows: list[list[float]] = []
    for start in range(0, len(asked), _BATCH):
        prompts = [pair_prompt(p.old, p.new) for p in asked[start : start + _BATCH]]
        rows += model.choose(prompts, PAIR_CHOICES, adapter=adapter)
    return rows


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


def decide_cases(
    model: LanguageModel, asked: Sequence[Case], thresholds: dict[str, float]
) -> tuple[int, int]:
    """Return how many cases the rules and then the classifier get right, and how many do harm.

    The memories that share the most words with the new statement are taken for the nearest, so
    that no embedder is needed. Harm is an UPDATE or DELETE of what should have stayed.
    """
    decider = LayeredDecider(
        RulesDecider(), PairDecider(model, PairThresholds(**thresholds), floor=0.0)
    )
    right = harmful = 0
    for case in asked:
        words = key_words(case.candidate)
        known = [
            Known(str(m.id), m.text, similarity=_overlap(words, key_words(m.text)))
            for m in case.memories
        ]
        said = decider.decide(MemoryDraft(case.candidate), known)
        good = said.op == case.op and said.target == (case.target and str(case.target))
        right += good
        harmful += said.op in {"UPDATE", "DELETE"} and not (
            case.op in {"UPDATE", "DELETE"} and said.target == str(case.target)
        )
    return right, harmful


def _overlap(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / max(1, len(one | two)) * _CLOSEST


def choose_thresholds(model: LanguageModel, asked: Sequence[Case]) -> dict[str, float]:
    """Return the thresholds with the most cases right among those that rarely do harm.

    When all do more harm than `HARMFUL_SHARE`, nothing that changes a memory is followed.
    """
    chosen = {"same": SAME, "replaced": 1.0, "ended": 1.0, "lead": LEAD}
    best_so_far, most = chosen, -1
    for threshold in _GRID:
        tried = {**chosen, "replaced": threshold, "ended": threshold}
        right, harmful = decide_cases(model, asked, tried)
        if harmful <= HARMFUL_SHARE * len(asked) and right > most:
            most, best_so_far = right, tried
    return best_so_far


def best(row: Sequence[float]) -> Label:
    """Return the likeliest label."""
    return LABELS[max(range(len(LABELS)), key=lambda i: row[i])]


def followed(row: Sequence[float], thresholds: dict[str, float]) -> Label:
    """Return the label that is acted on."""
    label = best(row)
    return label if max(row) >= thresholds.get(label, 0.0) else "unrelated"


def measure(asked: Sequence[Pair], rows: Rows, thresholds: dict[str, float]) -> Figures:
    """Return the figures of answers to pairs."""
    hits: defaultdict[str, defaultdict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    right, good, harmful, kept = 0, 0, 0, []
    for pair, row in zip(asked, rows, strict=True):
        act = followed(row, thresholds)
        right += best(row) == pair.label
        good += act == pair.label
        harmful += act in {"replaced", "ended"} and act != pair.label
        if pair.label in {"replaced", "ended"}:
            kept.append(act == pair.label)
        for field in ("label", "language", "shape", "kind"):
            hits[field][getattr(pair, field)].append(act == pair.label)
    count = len(asked)

    def shares(field: str) -> dict[str, float]:
        return {name: _share(sum(found), len(found)) for name, found in sorted(hits[field].items())}

    return Figures(
        count,
        _share(right, count),
        _share(good, count),
        _share(harmful, count),
        _share(sum(kept), len(kept)),
        *(shares(field) for field in ("label", "language", "shape", "kind")),
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 3) if whole else 0.0


def pair_card(model: LanguageModel, adapter: str | None) -> dict[str, object]:
    """Return thresholds and figures of the pair task; `adapter` None measures the bare model."""
    asked = {split: list(pairs(split, count, seed=SEED)) for split, count in PAIRS.items()}
    rows = {split: ask(model, found, adapter) for split, found in asked.items()}
    validation = cases("validation", _VALIDATION_CASES)
    thresholds = choose_thresholds(cast("LanguageModel", Memo(model, adapter)), validation)
    figures = {split: measure(asked[split], rows[split], thresholds) for split in asked}
    return {"thresholds": thresholds, "figures": figures}


class SpanFigures(msgspec.Struct, frozen=True):
    """Whole lines of answers against those that are right, and turns that state nothing."""

    turns: int
    precision: float
    recall: float
    f1: float
    idle: int
    fires_on_idle: int
    by_language: dict[str, float]  # F1


def answer(model: LanguageModel, case: SpanCase, adapter: str | None) -> str:
    """Return what the model says of a turn, held to its grammar."""
    return model.complete(
        span_prompt(case.text, case.speaker, case.history),
        max_tokens=_ANSWER_TOKENS,
        grammar=span_grammar(case.text, (case.speaker,)),
        stop=("\n\n",),
        adapter=adapter,
    ).text


def measure_spans(asked: Sequence[SpanCase], answers: Sequence[str]) -> SpanFigures:
    """Return the figures of answers to turns."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    idle = fires = 0
    for case, said in zip(asked, answers, strict=True):
        found = set(parse_spans(said, case.text, (case.speaker,))[0])
        wanted = set(case.facts)
        idle += not wanted
        fires += not wanted and bool(found)
        for group in ("all", case.language):
            for i, more in enumerate((len(found & wanted), len(found), len(wanted))):
                sums[group][i] += more
    hit, made, wanted_count = sums["all"]
    return SpanFigures(
        len(asked),
        _share(hit, made),
        _share(hit, wanted_count),
        _f1(sums["all"]),
        idle,
        fires,
        {group: _f1(found) for group, found in sorted(sums.items()) if group != "all"},
    )


def _f1(found: Sequence[int]) -> float:
    return _share(2 * found[0], found[1] + found[2])


def span_card(model: LanguageModel, adapter: str | None) -> dict[str, object]:
    """Return the figures of the span task."""
    asked = list(spans("test", TURNS["test"], seed=SEED))
    figures = measure_spans(asked, [answer(model, case, adapter) for case in asked])
    return {"figures": {"test": figures}}


def write_card(
    task: str, model: Path, adapter: Path, settings: msgspec.Struct, report: Callable[[str], None]
) -> None:
    """Measure an adapter through llama.cpp and write `adapter` with the ending .json."""
    from reverie.models.llama_language import LlamaLanguageModel

    opened = LlamaLanguageModel(model, context_tokens=1024, adapters={task: adapter})
    try:
        found = pair_card(opened, task) if task == "pair" else span_card(opened, task)
    finally:
        opened.close()
    card = {
        "task": task,
        "base": model.name,
        "base_digest": file_digest(model),
        "settings": settings,
        **found,
    }
    text = msgspec.json.format(msgspec.json.encode(card), indent=1)
    adapter.with_suffix(".json").write_bytes(text + b"\n")
    report(f"{task}: {msgspec.json.encode(found['figures']).decode()[:600]}")
