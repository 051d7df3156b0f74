"""A language model in llama.cpp: tokens in, logits out, what was computed before kept.

A prompt that begins like the one before is read from where they part; the beginnings of a few
others are set aside as bytes, so that two kinds of prompts, or two adapters, may alternate.

Answers must not depend on what was asked before. Weights of 4 bits make that hard: their products
round the activations to 8 bits, so that a difference in the last digit grows to half a logit. So
every prompt stands at the first cells of the context, its end is always read in one piece of some
tokens (a single token is computed by other code, which rounds otherwise), an answer is never taken
for a beginning, and flash attention is off, whose rounding depends on the size of the piece. Then
what was read from a kept beginning was bit for bit what was read anew, on x86; other processors
may differ, and only a `clear` before each call promises it.

Not safe for threads by itself.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from reverie.memory_graph.errors import ConfigError, ModelDamagedError, ModelFailedError
from reverie.models.gguf_header import read_header
from reverie.models.llama import Tokens, hush_llama, llama_errors  # before llama_cpp: see there
from reverie.models.protocol import Float32

import llama_cpp  # isort: skip

SIDE_BY_SIDE = 16  # prompts that are computed together; each costs a row of the vocabulary
BATCH_TOKENS = 512
MAX_ASIDE = 4  # prompts set aside
MAX_ASIDE_BYTES = 64 << 20  # of all of them; 150 tokens of the default model are 3.5 MB
_MIN_SHARED = 16  # tokens; a shorter beginning is sooner read than fetched
_MIN_PIECE = 8  # tokens of a prompt that are read together at its end
_MAIN = 0  # the sequence that prompts are read into; those side by side are 1, 2, ...


class _Aside(msgspec.Struct, frozen=True):
    """A prompt that was read, and llama.cpp's state after it."""

    tokens: Tokens
    adapter: str | None
    state: bytes


class Decoder:
    """Owns the C objects; `free` may be called twice."""

    def __init__(
        self, path: Path, adapters: Mapping[str, Path], *, context_tokens: int, threads: int
    ) -> None:
        """Load; nothing is left behind when that fails.

        Raises:
            ModelDamagedError: llama.cpp cannot load the model or an adapter.
            ConfigError: the model writes no text, or an adapter is for another one.
        """
        hush_llama()
        llama_cpp.llama_backend_init()
        self._path = path
        self._context: int | None = None
        self._adapters: dict[str, Any] = {}  # pointers
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self._model:
            msg = f"llama.cpp cannot load {path}: {llama_errors()}"
            raise ModelDamagedError(msg, path=str(path))
        self._batch = llama_cpp.llama_batch_init(BATCH_TOKENS, 0, 1)
        try:
            self._open(adapters, context_tokens, threads)
        except BaseException:
            self.free()
            raise

    def _open(self, adapters: Mapping[str, Path], context_tokens: int, threads: int) -> None:
        model = self._model
        for name, path in adapters.items():
            self._adapters[name] = self._load_adapter(path)
        self._context = llama_cpp.llama_init_from_model(
            model, self._context_params(context_tokens, threads)
        )
        if not self._context:
            msg = f"llama.cpp cannot use {self._path} as a language model: {llama_errors()}"
            raise ModelDamagedError(msg, path=str(self._path))
        self._memory = llama_cpp.llama_get_memory(self._context)
        if llama_cpp.llama_model_has_encoder(model) or not self._memory:
            msg = f"{self._path} is no language model: it does not continue a text"
            raise ConfigError(msg, path=str(self._path))
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        self.vocab_size: int = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self.parameters: int = llama_cpp.llama_model_n_params(model)
        self.room_tokens = context_tokens
        # The state of a recurrent model cannot be cut or copied by position.
        self._has_positions = not (
            llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model)
        )
        self._adapter: str | None = None
        self._tokens: Tokens = []  # in the main sequence
        self._prompt_length = 0  # of them; the rest is an answer
        self._aside: list[_Aside] = []  # the one used longest ago first

    @staticmethod
    def _context_params(context_tokens: int, threads: int) -> llama_cpp.llama_context_params:
        params: llama_cpp.llama_context_params = llama_cpp.llama_context_default_params()
        params.n_ctx = context_tokens
        params.n_batch = params.n_ubatch = BATCH_TOKENS
        params.n_seq_max = 1 + SIDE_BY_SIDE
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = True  # else each sequence has but a share of the context
        params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.no_perf = True
        return params

    def _load_adapter(self, path: Path) -> Any:
        header = read_header(path)
        architecture = llama_cpp_text(self._model, b"general.architecture")
        if header.values.get("adapter.type") != "lora" or header.architecture != architecture:
            msg = f"{path} is no LoRA adapter for a model of architecture {architecture}"
            raise ConfigError(msg, path=str(path))
        adapter = llama_cpp.llama_adapter_lora_init(self._model, os.fsencode(path))
        if not adapter:
            msg = f"llama.cpp cannot load the adapter {path}: {llama_errors()}"
            raise ModelDamagedError(msg, path=str(path))
        return adapter

    # -- tokens ------------------------------------------------------------------------

    def tokenize(self, text: str, *, begins: bool, is_template: bool = False) -> Tokens:
        """Return token ids. `begins` adds what the model wants at the beginning of a prompt;
        `is_template` reads special tokens spelt out in `text` as such."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            tokens = (llama_cpp.llama_token * room)()
            count = llama_cpp.llama_tokenize(
                self._vocab, data, len(data), tokens, room, begins, is_template
            )
            if count >= 0:
                return list(tokens[:count])
            room = -count

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token stands for; none for a special token."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = llama_cpp.llama_token_to_piece(
                self._vocab,
                token,
                buffer,
                room,
                0,
                False,  # noqa: FBT003 (a C function)
            )
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def is_end(self, token: int) -> bool:
        """Return whether the token ends an answer."""
        return bool(llama_cpp.llama_vocab_is_eog(self._vocab, token))

    @property
    def begin_token(self) -> int | None:
        """The token that the model wants at the beginning of a prompt, if it wants one."""
        token: int = llama_cpp.llama_vocab_bos(self._vocab)
        return token if llama_cpp.llama_vocab_get_add_bos(self._vocab) and token >= 0 else None

    def special_texts(self) -> tuple[str, str]:
        """Return what the tokens of beginning and end are spelt like; "" for none."""
        ids = (llama_cpp.llama_vocab_bos(self._vocab), llama_cpp.llama_vocab_eos(self._vocab))
        found = [llama_cpp.llama_vocab_get_text(self._vocab, i) if i >= 0 else b"" for i in ids]
        begin, end = ((text or b"").decode("utf-8", "replace") for text in found)
        return begin, end

    def grammar_sampler(self, grammar: str) -> int | None:
        """Return a sampler for a checked grammar, to be freed by the caller; None if refused."""
        found: int | None = llama_cpp.llama_sampler_init_grammar(
            self._vocab, grammar.encode(), b"root"
        )
        return found

    # -- computing ---------------------------------------------------------------------

    def read(self, tokens: Tokens, adapter: str | None) -> Float32:
        """Read a prompt and return the logits of what comes next, (vocab_size,).

        The array is llama.cpp's own, good until the next call of this object. The prompt, and what
        is added to it, must fit `room_tokens`.

        Raises:
            ModelFailedError: llama.cpp failed; all that was kept is given up.
        """
        begin = self._begin(tokens, adapter)
        self._tokens = tokens[:begin]
        for start, end in _pieces(begin, len(tokens)):
            part = tokens[start:end]
            self._fill(0, part, start, _MAIN)
            self._batch.logits[len(part) - 1] = 1
            self._decode(len(part))
            self._tokens += part
        self._prompt_length = len(tokens)
        return self._logits(-1)

    def add(self, token: int) -> Float32:
        """Read one more token after the prompt read last; return the logits as `read` does.

        Raises:
            ModelFailedError: as `read`.
        """
        self._fill(0, [token], len(self._tokens), _MAIN)
        self._batch.logits[0] = 1
        self._decode(1)
        self._tokens.append(token)
        return self._logits(-1)

    def weigh(
        self, prompts: Sequence[Tokens], columns: Sequence[Sequence[int]], adapter: str | None
    ) -> Float32:
        """Return the logits of `columns[i]` after `prompts[i]`, as (len(prompts), len(columns[0])).

        What all prompts begin with is read once, and the rest side by side.

        Raises:
            ModelFailedError: as `read`.
        """
        rows = np.empty((len(prompts), len(columns[0])), np.float32)
        shared = 0
        if len(prompts) > 1 and self._has_positions:
            shared = min(_common(*prompts), *(len(prompt) - 1 for prompt in prompts))
        for group in self._groups(prompts, shared):
            if len(group) == 1:
                rows[group[0]] = self.read(prompts[group[0]], adapter)[list(columns[group[0]])]
            else:
                self._read_shared(prompts[group[0]][:shared], adapter)
                self._weigh_group(group, prompts, columns, rows)
        return rows

    def _groups(self, prompts: Sequence[Tokens], shared: int) -> list[list[int]]:
        """Return indices of prompts in groups whose rests fit one batch, and the context."""
        room = min(BATCH_TOKENS, self.room_tokens - shared)
        groups: list[list[int]] = []
        size = 0
        for index, prompt in enumerate(prompts):
            rest = len(prompt) - shared
            size += rest
            is_open = groups and self._has_positions and len(groups[-1]) < SIDE_BY_SIDE
            if is_open and size <= room:
                groups[-1].append(index)
            else:
                groups.append([index])
                size = rest
        return groups

    def _read_shared(self, tokens: Tokens, adapter: str | None) -> None:
        """Leave exactly `tokens` in the main sequence."""
        if self._tokens == tokens and self._adapter == adapter:
            return
        if tokens:
            self.read(tokens, adapter)
        else:
            self._begin(tokens, adapter)

    def _weigh_group(
        self,
        group: Sequence[int],
        prompts: Sequence[Tokens],
        columns: Sequence[Sequence[int]],
        rows: Float32,
    ) -> None:
        shared, at, last = len(self._tokens), 0, []
        for sequence, index in enumerate(group, _MAIN + 1):
            llama_cpp.llama_memory_seq_cp(self._memory, _MAIN, sequence, 0, shared)
            rest = prompts[index][shared:]
            self._fill(at, rest, shared, sequence)
            at += len(rest)
            self._batch.logits[at - 1] = 1
            last.append(at - 1)
        self._decode(at)
        for index, row in zip(group, last, strict=True):
            rows[index] = self._logits(row)[list(columns[index])]
        for sequence, _ in enumerate(group, _MAIN + 1):
            llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    # -- what is kept ------------------------------------------------------------------

    def clear(self) -> None:
        """Forget every prompt."""
        self._aside.clear()
        self._empty()

    def _empty(self) -> None:
        llama_cpp.llama_memory_clear(self._memory, True)  # noqa: FBT003 (a C function)
        self._tokens, self._prompt_length = [], 0

    def _begin(self, tokens: Tokens, adapter: str | None) -> int:
        """Make the main sequence hold a beginning of `tokens`; return how many of them."""
        most = max(0, len(tokens) - _MIN_PIECE)
        shared = min(most, _common(self._tokens[: self._prompt_length], tokens))
        if adapter != self._adapter or shared < _MIN_SHARED:
            shared = self._exchange(tokens, adapter, most)
            self._use(adapter)
        if shared == 0 or not llama_cpp.llama_memory_seq_rm(self._memory, _MAIN, shared, -1):
            self._empty()
            return 0
        return shared

    def _exchange(self, tokens: Tokens, adapter: str | None, most: int) -> int:
        """Set the prompt read last aside, and fetch one that begins like `tokens`; return how
        many tokens of it can be used."""
        self._set_aside()
        self._empty()
        best, shared = None, 0
        for aside in self._aside:
            common = min(most, _common(aside.tokens, tokens))
            if aside.adapter == adapter and common >= max(shared, _MIN_SHARED):
                best, shared = aside, common
        if best is None:
            return 0
        buffer = (ctypes.c_uint8 * len(best.state)).from_buffer_copy(best.state)
        if not llama_cpp.llama_state_seq_set_data(self._context, buffer, len(buffer), _MAIN):
            self._empty()
            return 0
        self._aside.remove(best)
        self._aside.append(best)
        return shared

    def _set_aside(self) -> None:
        length = self._prompt_length
        if length < 2 * _MIN_SHARED or not self._has_positions:
            return
        tokens = self._tokens[:length]
        same = [a for a in self._aside if a.adapter == self._adapter and a.tokens == tokens]
        llama_cpp.llama_memory_seq_rm(self._memory, _MAIN, length, -1)  # the answer
        size = llama_cpp.llama_state_seq_get_size(self._context, _MAIN)
        if same or not 0 < size <= MAX_ASIDE_BYTES:
            return
        buffer = (ctypes.c_uint8 * size)()
        written = llama_cpp.llama_state_seq_get_data(self._context, buffer, size, _MAIN)
        if not written:
            return
        self._aside.append(_Aside(tokens, self._adapter, bytes(memoryview(buffer)[:written])))
        while (
            len(self._aside) > MAX_ASIDE
            or sum(len(aside.state) for aside in self._aside) > MAX_ASIDE_BYTES
        ):
            del self._aside[0]

    def _use(self, adapter: str | None) -> None:
        if adapter == self._adapter:
            return
        wanted = [] if adapter is None else [self._adapters[adapter]]
        pointers = (llama_cpp.llama_adapter_lora_p_ctypes * len(wanted))(*wanted)
        scales = (ctypes.c_float * len(wanted))(*(1.0 for _ in wanted))
        status = llama_cpp.llama_set_adapters_lora(self._context, pointers, len(wanted), scales)
        if status != 0:
            self._fail(f"it did not take the adapter {adapter!r} (status {status})")
        self._adapter = adapter

    # -- llama.cpp ---------------------------------------------------------------------

    def _fill(self, at: int, tokens: Tokens, position: int, sequence: int) -> None:
        """Write tokens into the batch from `at` on, without asking for logits."""
        batch = self._batch
        for offset, token in enumerate(tokens):
            batch.token[at + offset] = token
            batch.pos[at + offset] = position + offset
            batch.n_seq_id[at + offset] = 1
            batch.seq_id[at + offset][0] = sequence
            batch.logits[at + offset] = 0

    def _decode(self, count: int) -> None:
        self._batch.n_tokens = count
        status = llama_cpp.llama_decode(self._context, self._batch)
        if status != 0:
            self._fail(f"status {status}")

    def _fail(self, reason: str) -> None:
        self.clear()
        msg = f"llama.cpp failed on {self._path}: {reason}: {llama_errors()}"
        raise ModelFailedError(msg, path=str(self._path))

    def _logits(self, row: int) -> Float32:
        pointer = llama_cpp.llama_get_logits_ith(self._context, row)
        if not pointer:
            self._fail("no logits")
        found: Float32 = np.ctypeslib.as_array(pointer, (self.vocab_size,))
        return found

    def free(self) -> None:
        """Free everything; adapters go with their model."""
        if self._context:
            llama_cpp.llama_free(self._context)
            self._context = None
        if self._model:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_model_free(self._model)
            self._model = None


def llama_cpp_text(model: int | None, key: bytes) -> str:
    """Return a value of the model's header as text, "" when it is not there."""
    buffer = ctypes.create_string_buffer(256)
    count = llama_cpp.llama_model_meta_val_str(model, key, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace") if count >= 0 else ""


def _pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a range into pieces of at most a batch, the last one of some tokens, not of one."""
    while end - begin > BATCH_TOKENS:
        stop = min(begin + BATCH_TOKENS, end - _MIN_PIECE)
        yield begin, stop
        begin = stop
    yield begin, end


def _common(first: Tokens, *others: Tokens) -> int:
    """Return how many tokens all of them begin with."""
    shared = min(len(first), *(len(other) for other in others))
    for other in others:
        if first[:shared] != other[:shared]:
            shared = next(i for i in range(shared) if first[i] != other[i])
    return shared
