"""What a language model is opened with, and how: in this process or, safer, in one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import msgspec

from reverie.memory_graph.errors import ConfigError, ModelDamagedError
from reverie.models.catalog import CATALOG, default_folder, model_path, pull_command
from reverie.models.digest import file_digest
from reverie.models.protocol import ChatMessage, LanguageModel

DEFAULT_CALL_TIMEOUT_S = 120.0
DEFAULT_RETRY_S = 60.0


class LanguageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to open a language model; it travels to other processes.

    Attributes:
        model: a name of the catalogue, or the path of a GGUF file.
        folder: where pulled models lie; None is the user's cache folder.
        adapters: paths of LoRA adapters, by the names under which calls ask for them.
        context_tokens: room for a prompt and its answer.
        threads: cores that one call may use.
        reuse: read a prompt from where it parts from an earlier one.
        quick: use a copy of a small model that is computed quicker, made beside it at first
            (`llama_requantize.py`).
        call_timeout_s: how long one call may run; then its process is killed.
        retry_s: how long a call waits for a host that died and is being started again.
        start_timeout_s: how long a host may take to load the model.
        max_waiting: calls that may wait for one host.
    """

    model: str = "smollm2"
    folder: str | None = None
    adapters: dict[str, str] = {}
    context_tokens: int = 2048
    threads: int = 1
    reuse: bool = True
    quick: bool = True
    call_timeout_s: float = DEFAULT_CALL_TIMEOUT_S
    retry_s: float = DEFAULT_RETRY_S
    start_timeout_s: float = 300.0
    max_waiting: int = 256

    def __post_init__(self) -> None:
        """Refuse values out of range with a ConfigError."""
        times = (self.call_timeout_s, self.start_timeout_s)
        if not all(0 < time < float("inf") for time in times) or not self.retry_s >= 0:
            msg = "call_timeout_s and start_timeout_s must be over 0, retry_s 0 or more, seconds"
            raise ConfigError(msg, setting="call_timeout_s")
        if self.max_waiting < 1:
            msg = f"max_waiting must be 1 or more, not {self.max_waiting}"
            raise ConfigError(msg, setting="max_waiting")

    @property
    def models_folder(self) -> Path:
        """Where pulled models lie."""
        return Path(self.folder) if self.folder is not None else default_folder()


class Weighed(msgspec.Struct, frozen=True):
    """What `choose` gives, and how many tokens the prompts had."""

    rows: list[list[float]]
    prompt_tokens: int


@runtime_checkable
class HostedModel(LanguageModel, Protocol):
    """A `LanguageModel` that also tells what a call costs; all of reverie's own are."""

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        """Do as `choose`, and tell how many tokens the prompts had."""
        ...

    def count_prompt(self, prompt: str | Sequence[ChatMessage]) -> int:
        """Return how many tokens a prompt has, the template's and special tokens counted.

        Raises:
            InvalidValueError: it does not fit the context, or the template refuses it.
        """
        ...

    def clear(self) -> None:
        """Forget what is kept of earlier prompts, people's texts among them."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_in_process(settings: LanguageSettings) -> HostedModel:
    """Return the model, loaded into this process, which a fault of llama.cpp would end.

    Raises:
        ConfigError: an unknown name, an argument out of range, or no language model.
        ModelMissingError: a file is not there; the message says how to get it.
        ModelDamagedError: the file does not have the pinned checksum, or cannot be loaded.
    """
    from reverie.models.llama_language import LlamaLanguageModel  # loads llama.cpp
    from reverie.models.llama_requantize import quick_copy

    folder = settings.models_folder
    path = model_path(settings.model, folder)
    entry = CATALOG.get(settings.model)
    if entry is not None and (digest := file_digest(path)) != entry.sha256:
        again = pull_command(settings.model)
        msg = f"model {settings.model!r} at {path} is damaged; fetch it again with: {again}"
        raise ModelDamagedError(msg, model=entry.name, expected=entry.sha256, actual=digest)
    return LlamaLanguageModel(
        quick_copy(path) if settings.quick else path,
        context_tokens=settings.context_tokens,
        threads=settings.threads,
        adapters={name: model_path(file, folder) for name, file in settings.adapters.items()},
        reuse=settings.reuse,
    )
