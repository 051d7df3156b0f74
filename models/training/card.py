"""Thresholds and figures of a trained adapter, as JSON beside it.

The thresholds are chosen on validation cases alone; test and held-out ones are only measured.
All of it runs through llama.cpp, on the files that are shipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from reverie.models.catalog import default_folder, model_path
from reverie.models.cross_encoder import CrossAdapter, mixed
from reverie.models.decide_model import PAIR_ADAPTER
from reverie.models.digest import file_digest
from reverie.models.prompts import PAIR_CHOICES, pair_prompt, parse_spans, span_grammar, span_prompt
from reverie.models.protocol import CrossEncoder, LanguageModel
from reverie.models.training.deciding import (
    NEARNESS,
    Crossed,
    CrossMemo,
    Memo,
    choose_thresholds,
    decide_cases,
    with_usual_memories,
)
from reverie.models.training.decisions import USUAL_SEED, cases
from reverie.models.training.lexicon import Language, Split
from reverie.models.training.pairs import LABELS, Label, Pair, pairs
from reverie.models.training.spans import SpanCase, spans

SEED = 5
PAIRS: dict[Split, int] = {
    "validation": 400,
    "test": 250,
    "heldout": 250,
    "unseen": 250,
    "late": 250,
}
TURNS: dict[Split, int] = {"validation": 0, "test": 150}
CASES: dict[Split, int] = {
    "validation": 400,
    "test": 240,
    "heldout": 240,
    "unseen": 240,
    "late": 240,
}
CASE_SEEDS: dict[Split, int] = {"validation": 31}  # others were looked at while rules were written
# Of the cross-encoders beside the language model, out of .3, .5 and .7 by the validation cases: the
# multilingual embedder has read more Chinese than the language model.
CROSS_SHARES: dict[Language, float] = {"en": 0.5, "zh": 0.7}
# What their training is written in.
SCRIPTS: dict[Language, tuple[str, ...]] = {"en": ("LATIN",), "zh": ("LATIN", "CJK")}
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


def ask(
    model: LanguageModel,
    asked: Sequence[Pair],
    adapter: str | None,
    crossed: Crossed | None = None,
) -> list[list[float]]:
    """Return the probabilities of `LABELS` for each pair."""
    rows: list[list[float]] = []
    for start in range(0, len(asked), _BATCH):
        prompts = [pair_prompt(p.old, p.new) for p in asked[start : start + _BATCH]]
        rows += model.choose(prompts, PAIR_CHOICES, adapter=adapter)
    if crossed is None:
        return rows
    both: list[list[float]] = []
    for pair, row in zip(asked, rows, strict=True):
        (other,) = crossed.encoders[pair.language].weigh_pairs([(pair.old, pair.new)])
        share = crossed.shares[pair.language]
        both += [list(row)] if other is None else mixed([row], [other], share)
    return both


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


class CaseFigures(msgspec.Struct, frozen=True):
    """Cases decided by the rules and then the classifier, with the embedders of each language."""

    cases: int
    right: int  # operation and memory
    harmful: int


def pair_card(
    model: LanguageModel, adapter: str | None, folder: Path, crossed: Crossed | None = None
) -> dict[str, object]:
    """Return thresholds and figures of the pair task.

    Args:
        model: opened with the adapter.
        adapter: its name; None measures the bare model.
        folder: where the embedders lie.
        crossed: what weighs the pairs besides; None for the model alone.
    """
    asked = {split: list(pairs(split, count, seed=SEED)) for split, count in PAIRS.items()}
    rows = {split: ask(model, found, adapter, crossed) for split, found in asked.items()}
    memo = cast("LanguageModel", Memo(model, adapter))
    found = {
        split: with_usual_memories(
            cases(split, count, seed=CASE_SEEDS.get(split, USUAL_SEED)), folder
        )
        for split, count in CASES.items()
    }
    thresholds = choose_thresholds(memo, found["validation"], crossed)
    figures = {split: measure(asked[split], rows[split], thresholds) for split in asked}
    decided = {
        split: CaseFigures(len(listed), *decide_cases(memo, listed, thresholds, crossed))
        for split, listed in found.items()
    }
    return {"thresholds": thresholds, "cases": decided, "figures": figures}


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
        if task == "pair":
            found = pair_card(opened, task, default_folder())
        else:
            found = span_card(opened, task)
    finally:
        opened.close()
    card = {
        "task": task,
        "base": model.name,
        "base_digest": file_digest(model),
        "settings": settings,
        **found,
    }
    _write(adapter.with_suffix(".json"), card)
    report(f"{task}: {msgspec.json.encode(found['figures']).decode()[:600]}")


def write_cross_card(
    folder: Path,
    model: Path,
    adapter: Path,
    settings: Sequence[msgspec.Struct],
    report: Callable[[str], None],
) -> None:
    """Measure the cross-encoders of a folder with the pair adapter and write `cross.json`.

    Args:
        folder: holds `NAME.gguf` and `NAME.npz` for each embedder of `NEARNESS`.
        model: the language model, a GGUF file.
        adapter: its pair adapter.
        settings: what the cross-encoders were made with.
        report: called with the figures.
    """
    from reverie.models.llama import LlamaEmbedder
    from reverie.models.llama_language import LlamaLanguageModel

    paths = {lang: model_path(near.embedder, default_folder()) for lang, near in NEARNESS.items()}
    encoders: dict[Language, CrossEncoder] = {}
    for lang, near in NEARNESS.items():
        names = (folder / f"{near.embedder}.gguf", folder / f"{near.embedder}.npz")
        files = CrossAdapter(*names, scripts=SCRIPTS[lang])
        encoders[lang] = CrossMemo(LlamaEmbedder(paths[lang], cross=files))
    opened = LlamaLanguageModel(model, context_tokens=1024, adapters={PAIR_ADAPTER: adapter})
    try:
        found = pair_card(opened, PAIR_ADAPTER, default_folder(), Crossed(encoders, CROSS_SHARES))
        alone = {}
        for split, count in PAIRS.items():
            asked = list(pairs(split, count, seed=SEED))
            rows = ask(opened, asked, PAIR_ADAPTER, Crossed(encoders, dict.fromkeys(encoders, 1.0)))
            alone[split] = measure(asked, rows, {})
    finally:
        opened.close()
    bases = {near.embedder: file_digest(paths[lang]) for lang, near in NEARNESS.items()}
    card = {
        "task": "cross",
        "bases": bases,
        "language_model": model.name,
        "shares": {near.embedder: CROSS_SHARES[lang] for lang, near in NEARNESS.items()},
        "scripts": {near.embedder: SCRIPTS[lang] for lang, near in NEARNESS.items()},
        "settings": settings,
        **found,
        "alone": alone,
    }
    _write(folder / "cross.json", card)
    report(f"cross: {msgspec.json.encode(found['cases']).decode()}")


def _write(path: Path, card: dict[str, object]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=1) + b"\n")
