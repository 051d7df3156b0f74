"""How the shipped adapters are made: the size of the data, the seeds, the settings of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reverie.models.prompts import PAIR_CHOICES, format_spans, pair_prompt, span_prompt
from reverie.models.training.loop import Example, Report, Settings, train
from reverie.models.training.network import Network
from reverie.models.training.pairs import LABELS, Pair, pairs
from reverie.models.training.spans import SpanCase, spans
from reverie.models.training.tokens import Tokenizer

TASKS = ("pair", "span")
DATA_SEED = 1
CHINESE_SHARE = 0.45  # of the pairs; it takes more tokens to say a thing
RECIPES = {
    "pair": Settings(
        "pair", 36000, layers=12, rank=16, batch=16, rate=1e-3, epochs=2, smoothing=0.0
    ),
    "span": Settings("span", 2400, layers=10, rank=16, batch=8, rate=8e-4, epochs=1, smoothing=0.0),
}


def pair_example(pair: Pair, tokenizer: Tokenizer, choices: tuple[int, ...]) -> Example:
    """Return the question of a pair with its answer."""
    ids = tuple(tokenizer.encode(pair_prompt(pair.old, pair.new)))
    return Example(ids, ((len(ids) - 1, choices[LABELS.index(pair.label)]),))


def span_example(case: SpanCase, tokenizer: Tokenizer) -> Example:
    """Return a turn with its answer, the end of the answer included."""
    prompt = tokenizer.encode(span_prompt(case.text, case.speaker, case.history))
    answer = [*tokenizer.encode(format_spans(case.facts)), tokenizer.end]
    start = len(prompt) - 1
    return Example(
        (*prompt, *answer[:-1]), tuple((start + i, token) for i, token in enumerate(answer))
    )


def pair_choices(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the first tokens of `PAIR_CHOICES`."""
    return tuple(tokenizer.encode(choice)[0] for choice in PAIR_CHOICES)


def examples(settings: Settings, tokenizer: Tokenizer) -> Iterator[Example]:
    """Yield the examples of a run."""
    if settings.task == "pair":
        for pair in pairs("train", settings.examples, seed=DATA_SEED, chinese_share=CHINESE_SHARE):
            yield pair_example(pair, tokenizer, settings.choices)
    else:
        for case in spans("train", settings.examples, seed=DATA_SEED):
            yield span_example(case, tokenizer)


def run(settings: Settings, model: Path, folder: Path, report: Report) -> Network:
    """Train one adapter, or go on where an earlier run of the same settings ended.

    Raises:
        ConfigError: the folder holds a run with other settings.
        ModelDamagedError: the model has another tokenizer.
    """
    tokenizer = Tokenizer(model)
    network = Network(
        model, rank=settings.rank, alpha=settings.alpha, first=-settings.layers, seed=settings.seed
    )
    data = list(examples(settings, tokenizer))
    report(f"{settings.task}: {len(data)} examples, {sum(len(e.ids) for e in data)} tokens")
    train(network, data, settings, folder, report)
    return network
