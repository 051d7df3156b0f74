"""Settings of a runtime. Entry points read files and the environment; everything else is handed
a `Config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from reverie.memory_graph.errors import ConfigError
from reverie.models.protocol import Decider, Embedder, Extractor

AUTO = "auto"


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, with their defaults.

    Attributes:
        embedder: for new worlds: "minilm", "multilingual", "standin", the path of a GGUF file, an
            object of the `Embedder` protocol, or "auto" (minilm when it was pulled, else the
            stand-in, which needs no download).
        models_folder: where pulled models lie; None is the user's cache folder.
        extractor: "layered" (rules, then each sentence that says something, and the language model
            if there is one), "rules" or "salient" (one of these alone), "off", or an object of the
            `Extractor` protocol.
        decider: "rules" (then the language model, if there is one, for what they leave open), or
            an object of the `Decider` protocol.
        min_importance: below it, a statement of a turn makes no memory, 0 to 1; what was asked for
            ("remember that ...") and what replaces a memory always does. 0 keeps all.
        language_model: "smollm2", the path of a GGUF file that was trained to follow instructions,
            or an object of the `LanguageModel` protocol; None goes without. It runs in a process
            of its own.
        language_adapters: paths of LoRA adapters by name ("pair", "span"); "smollm2" brings those
            that are shipped.
        language_context: tokens of a prompt with its answer.
        language_threads: cores that one call may use.
        language_hosts: 0 runs it beside this process; N starts N Ray actors for it (with `actors`).
        language_timeout_s: how long one call may take.
        model_calls: that one user may cost, all together and over all runs, until
            `Runtime.reset_usage`; None is no limit.
        model_tokens: likewise, read and written tokens.
        summaries: "extractive" (central sentences), "written" (by the language model, if it is
            large enough), "off", or an object of the `Summariser` protocol. They are made after
            extraction, in the background as that is.
        summary_every: new turns of a session after which it is summarised anew.
        summary_idle_s: seconds without a turn after which a session has ended.
        reflect_at: importance (0 to 1 for each new memory) gathered since a user's last reflection
            from which on the next is due, and made with the summaries; None is never, unless the
            user's profile says so. Games that count importance from 1 to 10 often take 150, which
            is 15 here.
        background: extract in a background thread; without it, only `wait=True` and `drain` do.
        partitions: of a new data folder (fixed once it exists).
        byte_budget: estimated bytes of resident users over all shards.
        exact_limit: vectors of one user up to which search is exact.
        threads: threads of an embedding model.
        model_hosts: 0 embeds in this process; N starts N Ray actors for it (with `actors`).
        max_text_bytes: of one turn or memory.
        max_waiting: calls that may wait for a shard before `OverloadedError`.
        retry_s: how long a call to a Ray actor (a shard, a model host) is repeated while it
            restarts.
        drain_s: how long the program may take from SIGTERM to its end, with `closing_on_sigterm`.
        mask: what is masked before anything is stored: some of "email", "phone", "card", "id",
            "person". Needs `open(mask_key=...)` and the extra "mask"; see docs/privacy.md. Once
            on, it stays on for the data folder.
        trace: keep the raw parts of each extraction and search under `traces/`.
    """

    embedder: Any = AUTO
    models_folder: Path | None = None
    extractor: Any = "layered"
    decider: Any = "rules"
    min_importance: float = 0.0
    language_model: Any = None
    language_adapters: dict[str, str] = {}
    language_context: int = 2048
    language_threads: int = 1
    language_hosts: int = 0
    language_timeout_s: float = 120.0
    model_calls: int | None = None
    model_tokens: int | None = None
    summaries: Any = "extractive"
    summary_every: int = 40
    summary_idle_s: float = 6 * 3600.0
    reflect_at: float | None = None
    background: bool = True
    partitions: int = 16
    byte_budget: int = 2 * 1024**3
    exact_limit: int = 4000
    threads: int = 1
    model_hosts: int = 0
    max_text_bytes: int = 1024 * 1024
    max_waiting: int = 4096
    retry_s: float = 60.0
    drain_s: float = 10.0
    mask: tuple[str, ...] = ()
    trace: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range with a ConfigError."""
        for name in ("partitions", "byte_budget", "threads", "max_text_bytes", "max_waiting"):
            _at_least(self, name, 1)
        for name in ("summary_every", "language_context", "language_threads"):
            _at_least(self, name, 1)
        for name in ("exact_limit", "model_hosts", "retry_s", "drain_s", "summary_idle_s"):
            _at_least(self, name, 0)
        for name in ("language_hosts", "language_timeout_s"):
            _at_least(self, name, 0)
        _at_least(self, "min_importance", 0)
        if self.min_importance > 1:
            msg = f"min_importance must be within 0 to 1, not {self.min_importance!r}"
            raise ConfigError(msg, setting="min_importance")
        if self.reflect_at is not None:
            _at_least(self, "reflect_at", 1e-3)
        for name in ("model_calls", "model_tokens"):
            if getattr(self, name) is not None:
                _at_least(self, name, 0)
        words_of = {
            "extractor": ("layered", "rules", "salient", "off"),
            "decider": ("rules",),
            "summaries": ("extractive", "written", "off"),
        }
        for name, words in words_of.items():
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                msg = f"{name} must be one of {', '.join(words)} or an object, not {value!r}"
                raise ConfigError(msg, setting=name)
        if isinstance(self.embedder, str) and not self.embedder.strip():
            msg = "embedder is empty; name a model, a GGUF file, 'standin' or 'auto'"
            raise ConfigError(msg, setting="embedder")


def _at_least(config: Config, name: str, least: float) -> None:
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        msg = f"{name} must be a number of at least {least:g}, not {value!r}"
        raise ConfigError(msg, setting=name)


def make_config(base: Config | None, settings: dict[str, Any]) -> Config:
    """Return `base` (or the defaults) with some settings replaced.

    Raises:
        ConfigError: an unknown setting, or a value out of range.
    """
    config = Config() if base is None else base
    if unknown := sorted(set(settings) - set(Config.__struct_fields__)):
        known = ", ".join(Config.__struct_fields__)
        msg = f"unknown settings: {', '.join(unknown)}; known: {known}"
        raise ConfigError(msg, settings=unknown)
    return msgspec.structs.replace(config, **settings) if settings else config


__all__ = ["AUTO", "Config", "Decider", "Embedder", "Extractor", "make_config"]
