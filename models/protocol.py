"""What the rest of reverie expects of a model: embed, extract, decide.

Each is a small protocol so that a layer (rules, a language model, a stand-in) can be used alone
or put before another. Implementations are pure functions of their arguments and weights: times
come in, nothing reads a clock, and the same call gives the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph.drafts import Decision, EntityDraft, Known, MemoryDraft

Float32: TypeAlias = NDArray[np.float32]
TextRole: TypeAlias = Literal["query", "passage"]

ENTITY_TYPES = (
    "person",
    "place",
    "organization",
    "animal",
    "date",
    "food",
    "work",  # a book, film, song, game
    "event",
    "concept",
    "thing",
)


class EmbedderInfo(msgspec.Struct, frozen=True):
    """Identity of an embedder. Vectors of two embedders never mix: `id` keys them.

    `id` is made of the model's name, a digest of its weights and its prefixes, for example
    "all-minilm-l6-v2:f16:53aa51172d14"; two files with equal weights have equal ids.
    """

    id: str
    dim: int
    max_tokens: int = 256


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to call from several threads."""

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        ...

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return a C-contiguous float32 array of shape (len(texts), dim), rows of norm 1.

        A text longer than `info.max_tokens` is cut there. An empty text gives a valid unit
        vector too.

        Raises:
            ModelFailedError: the model raised.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has for this model, without special tokens."""
        ...

    def unknown_share(self, text: str) -> float:
        """Return the share of tokens, 0 to 1, that the vocabulary does not know."""
        ...

    def close(self) -> None:
        """Free the model. Further calls raise `ClosedError`."""
        ...


@runtime_checkable
class CrossEncoder(Protocol):
    """Reads two statements at once; an embedder may be one as well."""

    def pair_share(self) -> float:
        """Return the share of its word beside a language model's, 0 to 1; 0 for none: it has no
        adapter that weighs pairs."""
        ...

    def weigh_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        """Return for each known statement and new one the probabilities of `PAIR_CHOICES`
        (models/prompts.py): how the new one stands to the known. None for a pair that it has not
        learned to read: in a script that its training lacked, or longer than it reads.

        Raises:
            ConfigError: it has no adapter for that.
            ModelFailedError: the model raised.
        """
        ...


class Turn(msgspec.Struct, frozen=True):
    """A turn as an extractor sees it. `speaker` is "user" for the owner of the graph."""

    id: str
    speaker: str
    role: str
    text: str
    said_at: float


class Extraction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one turn gave: statements to keep and all names it mentions.

    `memories[i].sources` holds the ids of the turns that support it (its own at least).
    """

    turn_id: str
    memories: tuple[MemoryDraft, ...] = ()
    entities: tuple[EntityDraft, ...] = ()


class Extractor(Protocol):
    """Finds what is worth keeping in new turns."""

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        """Return one `Extraction` per turn of `turns`, in order.

        Args:
            turns: the new turns, oldest first.
            history: up to 10 turns before them, oldest first, for context only. The running
                summary of the user may go before them (`recalled.is_summary`).
        """
        ...


class Decider(Protocol):
    """Decides what a new memory does to the old ones."""

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        """Return the decision for `draft` given its nearest active memories.

        UPDATE, DELETE and NOOP name an id out of `known`; the caller refuses and counts any
        other. ADD keeps the draft beside the others; UPDATE keeps it and supersedes the target;
        DELETE supersedes the target and keeps nothing new (its history tells why); NOOP keeps
        nothing new.
        """
        ...


class ChatMessage(msgspec.Struct, frozen=True):
    """A message of a prompt, for the chat template that the model's file holds."""

    role: Literal["system", "user", "assistant"]
    content: str


class LanguageModelInfo(msgspec.Struct, frozen=True):
    """Identity and bounds of a language model. `id` holds a digest of its weights."""

    id: str
    context_tokens: int
    parameters: int  # how many weights; 0 when the file does not tell
    has_chat_template: bool


class Completion(msgspec.Struct, frozen=True):
    """What a language model wrote. `is_whole` is False when it was cut at `max_tokens`."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    is_whole: bool


class LanguageModel(Protocol):
    """Writes text, and weighs answers. Safe to call from several threads: one call at a time runs.

    Every method raises `ModelUnavailableError` when the model cannot be reached now (its process
    died and is being started again), `ModelFailedError` when it failed on this call,
    `ModelTimeoutError` when it took too long, `BudgetExceededError` when the user's budget is
    spent, and `ClosedError` after `close`.
    """

    @property
    def info(self) -> LanguageModelInfo:
        """Identity and bounds."""
        ...

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Return the most likely continuation (greedy, so that the same call gives the same).

        Args:
            prompt: text as it is, or messages for the chat template. It must fit the context with
                `max_tokens`: InvalidValueError.
            max_tokens: of the answer, at most.
            grammar: GBNF that the answer is held to, root rule `root`; a damaged one is refused
                with InvalidValueError before it reaches the sampler.
            stop: the answer ends before the first of these.
            adapter: name of a LoRA adapter that the model was opened with; None for none.
        """
        ...

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Return for each prompt the probability of each choice as what comes next, by the choice's
        first token; softmax over the choices alone, so each row sums to 1.

        Raises:
            InvalidValueError: two choices begin with the same token, or a prompt is too long.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has for this model, without special tokens."""
        ...

    def close(self) -> None:
        """Free the model. Further calls raise `ClosedError`."""
        ...
