"""The ways of deciding that benchmarks/conflicts.py compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import ConfigError, ModelFailedError, ModelTimeoutError
from reverie.models.adapters import shipped
from reverie.models.cross_encoder import read_cross_card
from reverie.models.decide_layers import LayeredDecider
from reverie.models.decide_model import PAIR_ADAPTER, ChatDecider, PairDecider
from reverie.models.extract_model import CHAT_PARAMETERS
from reverie.models.language import HostedModel, LanguageSettings, open_in_process
from reverie.models.protocol import CrossEncoder, Decider
from reverie.models.thresholds import read_thresholds
from reverie.models.usage import Meter, MeteredLanguageModel, Usage


class Scale(msgspec.Struct, frozen=True):
    """Cosines of one embedder: below `floor` unrelated, from `near` on the same statement."""

    floor: float
    changed: float  # from here to `near`, the cosine method calls it another value
    near: float


class Cosine:
    """The naive way: near is a repeat, fairly near is a change, the rest is new."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:  # noqa: ARG002
        """Return the decision by the nearest memory's cosine alone."""
        top = max(known, key=lambda item: item.similarity, default=None)
        if top is None or top.similarity < self._scale.changed:
            return Decision("ADD")
        return Decision("NOOP" if top.similarity >= self._scale.near else "UPDATE", top.id)


class Alone:
    """A model's decider by itself; an answer that is none counts as ADD."""

    def __init__(self, model: Decider) -> None:
        self._model = model

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return what the model says."""
        try:
            return self._model.decide(draft, known)
        except (ModelFailedError, ModelTimeoutError):
            return Decision("ADD", reason="the model failed")


class Method:
    """A named decider per language, and the model that it asks."""

    def __init__(
        self, name: str, deciders: Mapping[str, Decider], model: MeteredLanguageModel | None = None
    ) -> None:
        self.name = name
        self._deciders = deciders
        self._meter = model.meter if model else Meter()

    def decide(self, lang: str, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return what the language's decider says."""
        return self._deciders[lang].decide(draft, known)

    def spent(self) -> Usage:
        """Return what the model has cost so far."""
        return self._meter.total()


def adapters_in(folder: Path | None) -> dict[str, Path]:
    """Return the adapters of a folder by name (`pair.gguf` is "pair"); None is the package's.

    Raises:
        ConfigError: the folder that was named is not there.
    """
    if folder is not None and not folder.is_dir():
        msg = f"no folder of adapters at {folder}"
        raise ConfigError(msg, setting="adapters")
    if folder is None:
        return shipped()
    return {path.stem: path for path in sorted(folder.glob("*.gguf"))}


def model_methods(
    model: str,
    folder: Path,
    adapters: Path | None,
    rules: Mapping[str, Decider],
    scales: Mapping[str, Scale],
    crosses: Mapping[str, CrossEncoder],
) -> tuple[list[Method], HostedModel]:
    """Return the methods with a model, which is opened in this process, and the model.

    A model of under 0.8 billion parameters decides by its pair adapter, a larger one by a prompt.
    Where the embedders of all languages weigh pairs, too, and the adapter is the one that ships,
    the last method has their word beside the model's, which is the default path.

    Raises:
        ConfigError: a small model without a pair adapter.
        ModelMissingError, ModelDamagedError: as `open_in_process`.
    """
    found = adapters_in(adapters)
    settings = LanguageSettings(
        model=model,
        folder=str(folder),
        adapters={PAIR_ADAPTER: str(found[PAIR_ADAPTER])} if PAIR_ADAPTER in found else {},
    )
    opened = open_in_process(settings)
    counted = MeteredLanguageModel(opened, Meter())
    makers: dict[str, Decider] = {}
    small = 0 < opened.info.parameters < CHAT_PARAMETERS
    if small and PAIR_ADAPTER not in found:
        opened.close()
        msg = f"model {model} is small and has no adapter {PAIR_ADAPTER}.gguf: name --adapters"
        raise ConfigError(msg, setting="adapters")
    for lang, scale in scales.items():
        makers[lang] = (
            PairDecider(counted, read_thresholds(found[PAIR_ADAPTER]), floor=scale.floor)
            if small
            else ChatDecider(counted, floor=scale.floor)
        )
    layered = {lang: LayeredDecider(rules[lang], makers[lang]) for lang in scales}
    alone = {lang: Alone(makers[lang]) for lang in scales}
    methods = [Method("rules + model", layered, counted), Method("model", alone, counted)]
    if small and adapters is None and set(crosses) == set(scales):
        thresholds = read_cross_card().thresholds
        both: dict[str, Decider] = {
            lang: LayeredDecider(
                rules[lang],
                PairDecider(
                    counted,
                    read_thresholds(found[PAIR_ADAPTER]),
                    floor=scale.floor,
                    cross=crosses[lang],
                    share=crosses[lang].pair_share(),
                    both=thresholds,
                ),
            )
            for lang, scale in scales.items()
        }
        methods.append(Method("rules + model + embedder", both, counted))
    return methods, opened
