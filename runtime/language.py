"""The language model of a runtime, and what works with it: extraction, decisions, summaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reverie.actors.language import open_language_model
from reverie.config import Config
from reverie.memory_graph.errors import ConfigError
from reverie.memory_graph.ids import Key
from reverie.models.adapters import shipped
from reverie.models.cross_encoder import read_cross_card
from reverie.models.decide_layers import LayeredDecider
from reverie.models.decide_model import (
    FLOOR,
    MULTILINGUAL_FLOOR,
    ChatDecider,
    PairDecider,
)
from reverie.models.extract_model import (
    CHAT_PARAMETERS,
    SPAN_ADAPTER,
    ModelExtractor,
    open_model_extractor,
)
from reverie.models.language import LanguageSettings
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import CrossEncoder, Decider, Extraction, Extractor, Turn
from reverie.models.rules import RulesDecider, RulesExtractor
from reverie.models.summarise import CentralSentences, Summariser, WrittenSummaries
from reverie.models.thresholds import read_thresholds
from reverie.models.usage import Budget, Meter, MeteredLanguageModel, UsageRow
from reverie.usage import KeptUsage

ADAPTED = "smollm2"  # the model that the shipped adapters were trained for
PAIR_ADAPTER = "pair"
NEAR_DUPLICATE = {"multilingual": 0.95}  # its cosines of unrelated texts lie in .82-.88
DEFAULT_NEAR_DUPLICATE = 0.9
# Cosine below which a memory is nothing to ask a model about.
FLOORS = {"multilingual": MULTILINGUAL_FLOOR, "standin": 0.2}


def near_duplicate(embedder: str) -> float:
    """Return the cosine from which on texts say the same, for an embedder by its name."""
    return NEAR_DUPLICATE.get(embedder, DEFAULT_NEAR_DUPLICATE)


class NoExtractor:
    """Extracts nothing: turns stay messages."""

    def extract(
        self,
        turns: Sequence[Turn],
        history: Sequence[Turn],  # noqa: ARG002 (the protocol has it)
    ) -> list[Extraction]:
        """Return an empty extraction for each turn."""
        return [Extraction(turn.id) for turn in turns]


class Language:
    """What a runtime says and understands with.

    Attributes:
        meter: what model calls have cost, and the budgets.
        model: None without one.
        extractor: as configured.
        summariser: as configured.
    """

    def __init__(self, config: Config, folder: Path, *, on_ray: bool) -> None:
        """Open the model that is configured; `folder` is where pulled ones lie.

        Raises:
            ConfigError: an unknown name, no language model, or an adapter that is not there.
            ModelMissingError, ModelDamagedError, ModelUnavailableError: as `open_language_model`.
        """
        self.meter = Meter(Budget(calls=config.model_calls, tokens=config.model_tokens))
        self._kept: KeptUsage | None = None
        self._adapters = self._adapters_of(config)
        self._is_own = isinstance(config.language_model, str)
        self.model = self._open(config, folder, on_ray=on_ray)
        self._decider = config.decider
        self.extractor: Extractor = self._extractor(config.extractor)
        self.summariser: Summariser = self._summariser(config.summaries)

    @staticmethod
    def _adapters_of(config: Config) -> dict[str, str]:
        own = shipped() if config.language_model == ADAPTED else {}
        return {name: str(path) for name, path in own.items()} | dict(config.language_adapters)

    def _open(self, config: Config, folder: Path, *, on_ray: bool) -> MeteredLanguageModel | None:
        spec = config.language_model
        if spec is None:
            return None
        if not isinstance(spec, str):
            return MeteredLanguageModel(spec, self.meter)
        settings = LanguageSettings(
            model=spec,
            folder=str(folder),
            adapters=self._adapters,
            context_tokens=config.language_context,
            threads=config.language_threads,
            call_timeout_s=config.language_timeout_s,
            retry_s=config.retry_s,
        )
        hosts = config.language_hosts if on_ray else 0
        return open_language_model(settings, meter=self.meter, ray_hosts=hosts)

    @property
    def _is_small(self) -> bool:
        return self.model is not None and 0 < self.model.info.parameters < CHAT_PARAMETERS

    def _extractor(self, spec: Any) -> Extractor:
        match spec:
            case "off":
                return NoExtractor()
            case "rules":
                return RulesExtractor()
            case "salient":
                return LayeredExtractor(rules=False)
            case "layered":
                return LayeredExtractor(self._model_extractor())
            case _:
                extractor: Extractor = spec
                return extractor

    def _model_extractor(self) -> ModelExtractor | None:
        """Return what asks the model; a small one is no help without its adapter."""
        if self.model is None or (self._is_small and SPAN_ADAPTER not in self._adapters):
            return None
        return open_model_extractor(self.model)

    def _summariser(self, spec: Any) -> Summariser:
        if not isinstance(spec, str):
            summariser: Summariser = spec
            return summariser
        if spec == "written":
            if self.model is None:
                msg = "summaries='written' needs a language_model"
                raise ConfigError(msg, setting="summaries")
            return WrittenSummaries(self.model)
        return CentralSentences()

    def decider(self, embedder: str, cross: CrossEncoder | None = None) -> Decider:
        """Return the decider for a world.

        Args:
            embedder: the name of its embedder.
            cross: the embedder itself, where it may weigh pairs; it was calibrated with the
                adapter that ships, so with another one it is not asked. Nor is one that was
                opened by a path.
        """
        if not isinstance(self._decider, str):
            decider: Decider = self._decider
            return decider
        rules = RulesDecider(near_duplicate=near_duplicate(embedder))
        if self.model is None:
            return rules
        floor = FLOORS.get(embedder, FLOOR)
        if not self._is_small:
            return LayeredDecider(rules, ChatDecider(self.model, floor=floor))
        if PAIR_ADAPTER not in self._adapters:
            return rules
        adapter = Path(self._adapters[PAIR_ADAPTER])
        thresholds = read_thresholds(adapter)
        share = cross.pair_share() if cross and adapter == shipped().get(PAIR_ADAPTER) else 0.0
        # By its name: the floor of an embedder that is named by a path is not known.
        if not share or embedder not in (card := read_cross_card()).bases:
            return LayeredDecider(rules, PairDecider(self.model, thresholds, floor=floor))
        both = PairDecider(
            self.model, thresholds, floor=floor, cross=cross, share=share, both=card.thresholds
        )
        return LayeredDecider(rules, both)

    def keep_usage(self, folder: Path) -> None:
        """Count on from what was counted in earlier runs on a data folder, and keep it there."""
        self._kept = KeptUsage(self.meter, folder)

    def save_usage(self) -> None:
        """Write what was counted until now; it is written at closing anyway."""
        if self._kept is not None:
            self._kept.save()

    def usage(self, world: str | None, user_id: str | None) -> list[UsageRow]:
        """Return the counters of some users, by user and purpose; None is any."""
        return [row for row in self.meter.rows(world) if user_id in {None, row.user_id}]

    def forget(self, key: Key) -> None:
        """Leave nothing of what a user's calls have cost."""
        self.meter.reset(*key)
        if self._kept is not None:
            self._kept.save()

    def clear(self) -> None:
        """Forget what is kept of prompts: after an erasure none may linger in memory."""
        if self.model is not None:
            self.model.clear()

    def close(self) -> None:
        """Free the model that was opened here, also one that is at work: its call raises
        ClosedError. An object that was handed over is left to whoever made it."""
        if self.model is not None and self._is_own:
            self.model.close()
        if self._kept is not None:
            self._kept.save()
