"""The extractors that benchmarks/extraction.py compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from reverie.models.extract_model import SPAN_ADAPTER, open_model_extractor
from reverie.models.language import LanguageSettings, open_in_process
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import (
    ChatMessage,
    Completion,
    Extractor,
    LanguageModel,
    LanguageModelInfo,
)
from reverie.models.rules import RulesExtractor
from reverie.models.salient import SalientExtractor

LAYERED = "rules + salient"


class CountedModel:
    """A language model that counts its calls and tokens."""

    def __init__(self, inner: LanguageModel) -> None:
        self.calls = 0
        self.tokens = 0
        self._inner = inner

    @property
    def info(self) -> LanguageModelInfo:
        """Identity and bounds."""
        return self._inner.info

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Complete, and count."""
        made = self._inner.complete(
            prompt, max_tokens=max_tokens, grammar=grammar, stop=stop, adapter=adapter
        )
        self.calls += 1
        self.tokens += made.prompt_tokens + made.completion_tokens
        return made

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Choose, and count the prompts."""
        self.calls += len(prompts)
        self.tokens += sum(map(self._inner.count_tokens, prompts))
        return self._inner.choose(prompts, choices, adapter=adapter)

    def count_tokens(self, text: str) -> int:
        """Return what the inner model counts."""
        return self._inner.count_tokens(text)

    def close(self) -> None:
        """Free the inner model."""
        self._inner.close()


class Method(msgspec.Struct, frozen=True):
    """A named extractor, and the model that it asks."""

    name: str
    extractor: Extractor
    model: CountedModel | None = None

    def spent(self) -> tuple[int, int]:
        """Return how many calls and tokens it has cost so far."""
        return (self.model.calls, self.model.tokens) if self.model else (0, 0)


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
    counted = CountedModel(open_in_process(settings))
    try:
        alone = open_model_extractor(counted, "auto" if adapter else "chat")
        methods.append(Method("model", alone, counted))
        methods.append(Method(f"{LAYERED} + model", LayeredExtractor(alone), counted))
        yield methods
    finally:
        counted.close()
