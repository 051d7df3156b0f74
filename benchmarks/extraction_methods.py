"""The extractors that benchmarks/extraction.py compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from reverie.models.extract_model import SPAN_ADAPTER, open_model_extractor
from reverie.models.language import LanguageSettings, open_in_process
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Extractor
from reverie.models.rules import RulesExtractor
from reverie.models.salient import SalientExtractor
from reverie.models.usage import Meter, MeteredLanguageModel, Usage

LAYERED = "rules + salient"


class Method(msgspec.Struct, frozen=True):
    """A named extractor, and the model that it asks."""

    name: str
    extractor: Extractor
    model: MeteredLanguageModel | None = None

    def spent(self) -> Usage:
        """Return what the model has cost so far."""
        return self.model.meter.total() if self.model else Usage()


@contextmanager
def methods_of(
    model: str | None, models: Path | None, adapter: Path | None
) -> Iterator[list[Method]]:
    """Open the methods; with `model`, also that model alone and in layers.

    Args:
        model: a name of the catalogue or the path of a GGUF file; None for none.
        models: folder of pulled models; None is the user's cache folder.
        adapter: a LoRA file for the span reader; without it, the model is prompted.
    """
    methods = [
        Method("rules", RulesExtractor()),
        Method("salient", SalientExtractor()),
        Method(LAYERED, LayeredExtractor()),
    ]
    if model is None:
        yield methods
        return
    settings = LanguageSettings(
        model=model,
        folder=str(models) if models else None,
        adapters={SPAN_ADAPTER: str(adapter)} if adapter else {},
    )
    counted = MeteredLanguageModel(open_in_process(settings), Meter())
    try:
        alone = open_model_extractor(counted, "auto" if adapter else "chat")
        methods.append(Method("model", alone, counted))
        methods.append(Method(f"{LAYERED} + model", LayeredExtractor(alone), counted))
        yield methods
    finally:
        counted.close()
