"""A language model by llama.cpp, in this process.

Traps that this file and `llama_decoder.py` steer round, each of which ends the process or spoils
answers in silence: one context used by two threads (a lock is held for a whole call); a grammar
that the sampler cannot follow (it is checked first, and no token is accepted that was not allowed);
logits of all positions, which cost context x vocabulary x 4 bytes (only the last are asked for);
what one adapter has computed, taken for another's; and a special token spelt out in somebody's
text, which would be read as the end of the message (text is read as text).

A fault of llama.cpp still ends the process: `host.py` runs this class in a process of its own.
"""

from __future__ import annotations

import codecs
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    ModelFailedError,
)
from reverie.models.digest import file_digest
from reverie.models.gguf_header import read_header
from reverie.models.language import Weighed
from reverie.models.llama import Tokens
from reverie.models.llama_chat import ChatTemplate, Piece
from reverie.models.llama_decoder import Decoder
from reverie.models.llama_sampling import Grammar
from reverie.models.protocol import ChatMessage, Completion, Float32, LanguageModelInfo

MIN_CONTEXT_TOKENS = 64
MAX_STOPS = 16
MAX_PROMPTS = 256  # of one `choose`
MAX_CHOICES = 64
_MAX_CHARS_PER_TOKEN = 64  # a longer prompt cannot fit and is not even split into tokens


class LlamaLanguageModel:
    """A `LanguageModel` for any GGUF that continues text."""

    def __init__(
        self,
        path: Path,
        *,
        context_tokens: int = 2048,
        threads: int = 1,
        adapters: Mapping[str, Path] | None = None,
        reuse: bool = True,
    ) -> None:
        """Load the model and its adapters; nothing is left behind when that fails.

        Args:
            path: a GGUF file.
            context_tokens: room for a prompt and its answer; no more than the model was made for
                is used.
            threads: cores that one call may use.
            adapters: LoRA adapters by the names under which calls ask for them.
            reuse: read a prompt from where it parts from an earlier one. False forgets everything
                before each call; see `llama_decoder.py` for what that may change.

        Raises:
            ModelDamagedError: a file is damaged, or llama.cpp cannot load it.
            ConfigError: it is no language model, an adapter is for another model, or an argument
                is out of range.
        """
        if threads < 1 or context_tokens < MIN_CONTEXT_TOKENS:
            msg = (
                f"threads must be 1 or more and context_tokens {MIN_CONTEXT_TOKENS} or more: "
                f"{threads}, {context_tokens}"
            )
            raise ConfigError(msg)
        header = read_header(path)
        most = header.integer("*.context_length") or context_tokens
        context_tokens = min(context_tokens, most)
        adapters = dict(adapters or {})
        self._reuse = reuse
        self._lock = threading.Lock()
        self._closed = False
        self._adapters = frozenset(adapters)
        self._decoder = Decoder(path, adapters, context_tokens=context_tokens, threads=threads)
        self._finalizer = weakref.finalize(self, self._decoder.free)
        self._finalizer.atexit = False  # at exit a thread may still be inside llama.cpp
        self._template, self._no_template = self._read_template(
            header.values.get("tokenizer.chat_template")
        )
        digests = [f"{name}:{file_digest(file)[:8]}" for name, file in sorted(adapters.items())]
        self._info = LanguageModelInfo(
            "+".join([f"{header.name}:{header.file_type}:{file_digest(path)[:12]}", *digests]),
            context_tokens,
            self._decoder.parameters,
            self._template is not None,
        )

    def _read_template(self, source: object) -> tuple[ChatTemplate | None, str]:
        """Return the template, or None and why there is none: text can be continued without."""
        if not isinstance(source, str):
            return None, "the file holds no chat template"
        begin, end = self._decoder.special_texts()
        try:
            return ChatTemplate(source, begin=begin, end=end), ""
        except InvalidValueError as exc:
            return None, exc.message

    @property
    def info(self) -> LanguageModelInfo:
        """Identity and bounds; the id names the adapters too."""
        return self._info

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Return the most likely continuation; see `LanguageModel.complete`.

        A special token spelt out in a prompt of text, or in a message, is read as text.

        Raises:
            InvalidValueError: the prompt is empty or does not fit with `max_tokens`, the grammar
                cannot be used, no such adapter, a stop that is empty, or messages for a model that
                has no chat template or whose template refuses them.
            ModelFailedError: llama.cpp failed.
            ClosedError: the model was closed.
        """
        if len(stop) > MAX_STOPS or not all(stop):
            msg = f"stop must be at most {MAX_STOPS} texts, none of them empty"
            raise InvalidValueError(msg)
        if max_tokens < 1:
            msg = f"max_tokens must be 1 or more, not {max_tokens}"
            raise InvalidValueError(msg)
        self._require_adapter(adapter)
        with self._held() as decoder:
            tokens = self._prompt_tokens(prompt, max_tokens)
            if grammar is None:
                answer = self._answer(decoder, tokens, max_tokens, stop, None, adapter)
            else:
                with Grammar(decoder, grammar) as held:
                    answer = self._answer(decoder, tokens, max_tokens, stop, held, adapter)
        return answer

    def _answer(
        self,
        decoder: Decoder,
        tokens: Tokens,
        max_tokens: int,
        stop: Sequence[str],
        grammar: Grammar | None,
        adapter: str | None,
    ) -> Completion:
        text, written, is_whole = _Text(stop), 0, False
        logits = decoder.read(tokens, adapter)
        while True:
            token = _best(logits, grammar)
            if decoder.is_end(token):
                is_whole = True
                break
            written += 1
            if grammar is not None:
                grammar.accept(token)
            if text.add(decoder.piece(token)):
                is_whole = True
                break
            if written == max_tokens:
                break
            if self._closed:
                raise self._closed_error()
            logits = decoder.add(token)
        return Completion(text.value, len(tokens), written, is_whole)

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Return the probability of each choice after each prompt; see `LanguageModel.choose`.

        Raises:
            InvalidValueError, ModelFailedError, ClosedError: as `complete`; also when two choices
                begin with the same token.
        """
        return self.weigh(prompts, choices, adapter=adapter).rows

    def weigh(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> Weighed:
        """Do as `choose`, and tell how many tokens the prompts had."""
        if not 2 <= len(choices) <= MAX_CHOICES or len(prompts) > MAX_PROMPTS:  # noqa: PLR2004
            msg = f"choose takes 2 to {MAX_CHOICES} choices and at most {MAX_PROMPTS} prompts"
            raise InvalidValueError(msg)
        self._require_adapter(adapter)
        with self._held() as decoder:
            tokens = [self._prompt_tokens(prompt, 0) for prompt in prompts]
            columns = _columns(decoder, prompts, choices)
            if not tokens:
                return Weighed([], 0)
            logits = decoder.weigh(tokens, columns, adapter)
        return Weighed(_softmax(logits).tolist(), sum(map(len, tokens)))

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has, without special tokens; raises ClosedError."""
        with self._lock:
            self._require_open()
            return len(self._decoder.tokenize(text, begins=False))

    def count_prompt(self, prompt: str | Sequence[ChatMessage]) -> int:
        """Return how many tokens a prompt has, the template's and special tokens counted.

        Raises:
            InvalidValueError: it does not fit the context, or as `complete`.
            ClosedError: the model was closed.
        """
        with self._lock:
            self._require_open()
            return len(self._prompt_tokens(prompt, 0))

    def clear(self) -> None:
        """Forget what is kept of earlier prompts; raises ClosedError."""
        with self._lock:
            self._require_open()
            self._decoder.clear()

    def close(self) -> None:
        """Free the model; a call that is running ends first, soon."""
        self._closed = True
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _held(self) -> Iterator[Decoder]:
        """Hold the model for one call."""
        with self._lock:
            self._require_open()
            if not self._reuse:
                self._decoder.clear()
            yield self._decoder

    def _require_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> ClosedError:
        return ClosedError(f"the language model {self._info.id} was closed")

    def _require_adapter(self, adapter: str | None) -> None:
        if adapter is not None and adapter not in self._adapters:
            known = ", ".join(sorted(self._adapters)) or "none"
            msg = f"no adapter is named {adapter!r}; loaded: {known}"
            raise InvalidValueError(msg, adapter=adapter)

    def _prompt_tokens(self, prompt: str | Sequence[ChatMessage], spare: int) -> Tokens:
        """Return the tokens of a prompt that fits the context with `spare` more."""
        room = self._info.context_tokens - spare
        parts = [prompt] if isinstance(prompt, str) else [m.content for m in prompt]
        characters = sum(map(len, parts))
        if characters > max(0, room) * _MAX_CHARS_PER_TOKEN:
            raise self._unfit(characters, "characters", spare)
        if isinstance(prompt, str):
            tokens = self._decoder.tokenize(prompt, begins=True)
        else:
            tokens = self._chat_tokens(prompt)
        if len(tokens) > room:
            raise self._unfit(len(tokens), "tokens", spare)
        if not tokens:
            msg = "the prompt is empty"
            raise InvalidValueError(msg)
        return tokens

    def _unfit(self, size: int, unit: str, spare: int) -> InvalidValueError:
        room = self._info.context_tokens
        msg = (
            f"a prompt of {size:,} {unit} and an answer of {spare} tokens do not fit a context of "
            f"{room:,} tokens"
        )
        return InvalidValueError(msg, context_tokens=room)

    def _chat_tokens(self, messages: Sequence[ChatMessage]) -> Tokens:
        if self._template is None:
            msg = f"{self._no_template}; give {self._info.id} a prompt of text"
            raise InvalidValueError(msg)
        pieces = self._template.render(messages)
        if all(map(self._is_plain, pieces)):
            whole = "".join(piece.text for piece in pieces)
            tokens = self._decoder.tokenize(whole, begins=False, is_template=True)
        else:  # in parts, which may split words at the seams in another way
            tokens = [
                token
                for piece in pieces
                for token in self._decoder.tokenize(
                    piece.text, begins=False, is_template=piece.is_template
                )
            ]
        begin = self._decoder.begin_token
        return tokens if begin is None or tokens[:1] == [begin] else [begin, *tokens]

    def _is_plain(self, piece: Piece) -> bool:
        """Return whether a text holds nothing that could be taken for a special token."""
        if piece.is_template:
            return True
        read = self._decoder.tokenize
        as_text = read(piece.text, begins=False)
        return as_text == read(piece.text, begins=False, is_template=True)


class _Text:
    """The answer so far, as text; characters may be cut between tokens."""

    def __init__(self, stop: Sequence[str]) -> None:
        self.value = ""
        self._stop = stop
        self._longest = max(map(len, stop), default=0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> bool:
        """Add a token's bytes; return whether a stop was met, before which the text ends."""
        begin = max(0, len(self.value) - self._longest + 1)
        self.value += self._decoder.decode(data)
        found = [at for stop in self._stop if (at := self.value.find(stop, begin)) >= 0]
        if found:
            self.value = self.value[: min(found)]
        return bool(found)


def _best(logits: Float32, grammar: Grammar | None) -> int:
    token = int(logits.argmax())
    if not np.isfinite(logits[token]):
        msg = "the model returned a number that is not finite"
        raise ModelFailedError(msg)
    return token if grammar is None else grammar.best(logits)


def _columns(decoder: Decoder, prompts: Sequence[str], choices: Sequence[str]) -> list[list[int]]:
    """Return for each prompt the first token of each choice, as it is after that prompt."""
    known: dict[str, list[int]] = {}
    for prompt in prompts:
        tail = prompt[-16:]
        if tail not in known:
            known[tail] = [_first_token(decoder, tail, choice) for choice in choices]
            if len(set(known[tail])) < len(choices):
                msg = "two choices begin with the same token"
                raise InvalidValueError(msg, choices=list(choices))
    return [known[prompt[-16:]] for prompt in prompts]


def _first_token(decoder: Decoder, before: str, choice: str) -> int:
    """Return the token that `choice` begins with after `before`. Some vocabularies put a blank
    before every text, so a choice on its own would not begin as it does in its place."""
    start = decoder.tokenize(before, begins=False)
    whole = decoder.tokenize(before + choice, begins=False)
    if len(whole) > len(start) and whole[: len(start)] == start:
        return whole[len(start)]
    if not (alone := decoder.tokenize(choice, begins=False)):
        msg = "a choice is empty"
        raise InvalidValueError(msg)
    return alone[0]


def _softmax(logits: Float32) -> np.ndarray:
    wide = logits.astype(np.float64)
    if not np.isfinite(wide).all():
        msg = "the model returned a number that is not finite"
        raise ModelFailedError(msg)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return shares
