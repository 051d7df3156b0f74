"""Embeddings by llama.cpp, through its C interface.

The high-level `Llama` class is not used: it reserves one output row per possible sequence (245 MB
for a vocabulary of 250,000) and gives vectors back as Python lists. Measured traps that this file
steers round: one context used by two threads aborts the process, so a lock is held per batch; a
thread count of zero means all cores, whose spin-waiting takes a busy machine from 70 to 1 texts a
second; a damaged file can abort the process, so headers are read first. The interpreter lock is
free while llama.cpp works.
"""

from __future__ import annotations

import ctypes
import os
import threading
import unicodedata
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeAlias

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read by OpenMP when llama_cpp loads it

import llama_cpp
import numpy as np

from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    ModelDamagedError,
    ModelFailedError,
)
from reverie.models.cross_encoder import (
    MAX_PAIR_TOKENS,
    CrossAdapter,
    Head,
    PairTokens,
    lay_out,
    read_head,
    reads,
)
from reverie.models.digest import file_digest
from reverie.models.gguf_header import GgufHeader, read_header
from reverie.models.prompts import pair_text
from reverie.models.protocol import EmbedderInfo, Float32, TextRole

Tokens: TypeAlias = list[int]

_MIN_TOKENS = 8  # special tokens and prefix leave little of fewer
_MAX_SEQUENCES = 16  # texts per batch; each costs one row of the vocabulary in memory
_SPARE_BYTES = 64 << 20  # output buffer that may stay between calls
_CHARS_PER_TOKEN = 64  # no more of a text is read than this many times max_tokens
_POOLINGS = (
    llama_cpp.LLAMA_POOLING_TYPE_MEAN,
    llama_cpp.LLAMA_POOLING_TYPE_CLS,
    llama_cpp.LLAMA_POOLING_TYPE_LAST,
)
_ERROR_LEVEL = 4  # of enum ggml_log_level

_last_errors: deque[str] = deque(maxlen=8)


def _keep_errors(level: int, text: bytes, _user_data: object) -> None:
    if level == _ERROR_LEVEL:
        _last_errors.append(text.decode("utf-8", "replace").strip())


_log_callback = llama_cpp.llama_log_callback(_keep_errors)  # llama.cpp keeps a bare pointer to it


def hush_llama() -> None:
    """Send llama.cpp's log lines nowhere; errors are kept for `llama_errors`."""
    llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))


def llama_errors() -> str:
    """Return and forget the last error lines of llama.cpp, joined by "; "."""
    lines = [line for line in _last_errors if line]
    _last_errors.clear()
    return "; ".join(lines) or "llama.cpp gave no reason"


class _Native:
    """Owns the C objects; `free` may be called twice. Not safe for threads by itself."""

    def __init__(self, path: Path, *, threads: int, width_tokens: int, flash: bool) -> None:
        hush_llama()
        llama_cpp.llama_backend_init()
        model_params = llama_cpp.llama_model_default_params()
        model_params.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), model_params)
        if not self._model:
            msg = f"llama.cpp cannot load {path}: {llama_errors()}"
            raise ModelDamagedError(msg, path=str(path))
        self._path = path
        self._context: int | None = None
        self._cross_context: int | None = None
        self._widest_cross_run = 0
        self._lora: Any = None  # freed with the model
        self._width_tokens = width_tokens
        self._params = self._context_params(threads=threads, flash=flash)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.vocab_size: int = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self.ends_with_special = bool(
            llama_cpp.llama_vocab_get_add_eos(self._vocab)
            or llama_cpp.llama_vocab_get_add_sep(self._vocab)
        )
        self._batch = llama_cpp.llama_batch_init(max(width_tokens, MAX_PAIR_TOKENS), 0, 1)
        self._open_context()

    def _context_params(self, *, threads: int, flash: bool) -> llama_cpp.llama_context_params:
        params: llama_cpp.llama_context_params = llama_cpp.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = self._width_tokens
        params.n_seq_max = min(_MAX_SEQUENCES, self._width_tokens)  # above n_ubatch it aborts
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.kv_unified = True
        params.no_perf = True
        params.flash_attn_type = (
            llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
            if flash
            else llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        return params

    def _open_context(self) -> None:
        self._widest_run = 0
        self._context = llama_cpp.llama_init_from_model(self._model, self._params)
        if not self._context:
            self.free()
            msg = f"llama.cpp cannot use {self._path} for embeddings: {llama_errors()}"
            raise ModelDamagedError(msg, path=str(self._path))

    def tokenize(self, text: str, *, special: bool) -> Tokens:
        """Return token ids; `special` adds those that begin and end a sequence. Text that looks
        like a special token is read as text."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            tokens = (llama_cpp.llama_token * room)()
            parse_special = False
            count = llama_cpp.llama_tokenize(
                self._vocab, data, len(data), tokens, room, special, parse_special
            )
            if count >= 0:
                return list(tokens[:count])
            room = -count  # normalisation made the text longer

    def run(self, group: Sequence[Tokens], dim: int) -> Float32:
        """Return the pooled rows of the sequences, (len(group), dim), not normalised."""
        size = self._fill(group)
        self._widest_run = max(self._widest_run, size)
        memory = llama_cpp.llama_get_memory(self._context)
        if memory:  # a causal model
            llama_cpp.llama_memory_clear(memory, True)  # noqa: FBT003 - a C function
            status = llama_cpp.llama_decode(self._context, self._batch)
        else:
            status = llama_cpp.llama_encode(self._context, self._batch)
        self._require_done(status)
        get = llama_cpp.llama_get_embeddings_seq
        return self._rows((get(self._context, i) for i in range(len(group))), len(group), dim)

    def run_tokens(self, tokens: Tokens, dim: int, adapter: Path) -> Float32:
        """Return the row of each token, (len(tokens), dim), computed with a LoRA adapter; the
        adapter of the first call is that of all."""
        if self._cross_context is None:
            self._open_cross_context(adapter)
        size = self._fill([tokens])
        self._widest_cross_run = max(self._widest_cross_run, size)
        self._require_done(llama_cpp.llama_encode(self._cross_context, self._batch))
        get = llama_cpp.llama_get_embeddings_ith
        return self._rows((get(self._cross_context, i) for i in range(size)), size, dim)

    def _fill(self, group: Sequence[Tokens]) -> int:
        """Put sequences into the batch, and ask for a row of each token; return their number."""
        batch, at = self._batch, 0
        for sequence, tokens in enumerate(group):
            for position, token in enumerate(tokens):
                batch.token[at] = token
                batch.pos[at] = position
                batch.n_seq_id[at] = 1
                batch.seq_id[at][0] = sequence
                batch.logits[at] = 1
                at += 1
        batch.n_tokens = at
        return at

    def _require_done(self, status: int) -> None:
        if status != 0:
            msg = f"llama.cpp failed with status {status} on {self._path}: {llama_errors()}"
            raise ModelFailedError(msg, path=str(self._path))

    def _rows(self, pointers: Iterable[Any], count: int, dim: int) -> Float32:
        """Copy `count` vectors out of llama.cpp, float32 (count, dim)."""
        rows = np.empty((count, dim), np.float32)
        for row, pointer in zip(rows, pointers, strict=True):
            if not pointer:
                msg = f"llama.cpp returned no vector for {self._path}: {llama_errors()}"
                raise ModelFailedError(msg, path=str(self._path))
            row[:] = np.ctypeslib.as_array(pointer, (dim,))
        return rows

    def _open_cross_context(self, adapter: Path) -> None:
        """Open a second context on the same weights, with an adapter."""
        self._widest_cross_run = 0
        params = self._context_params(threads=self._params.n_threads, flash=False)
        params.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_NONE
        params.n_seq_max = 1
        # Two statements and what is around them; less room costs less memory.
        params.n_ctx = params.n_batch = params.n_ubatch = MAX_PAIR_TOKENS
        if self._lora is None:
            _require_lora(adapter)
            self._lora = llama_cpp.llama_adapter_lora_init(self._model, os.fsencode(adapter))
        context = llama_cpp.llama_init_from_model(self._model, params) if self._lora else None
        if not context:
            msg = f"llama.cpp cannot use {adapter} on {self._path}: {llama_errors()}"
            raise ModelFailedError(msg, path=str(adapter))
        pointers = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(self._lora)
        scales = (ctypes.c_float * 1)(1.0)
        if llama_cpp.llama_set_adapters_lora(context, pointers, 1, scales) != 0:
            llama_cpp.llama_free(context)
            msg = f"llama.cpp does not take {adapter} on {self._path}: {llama_errors()}"
            raise ModelFailedError(msg, path=str(adapter))
        self._cross_context = context

    def shrink(self) -> None:
        """Give back the output buffers when they have grown large.

        llama.cpp keeps a row of the vocabulary for each token of the widest batch so far and
        never shrinks it; a new context costs milliseconds.
        """
        if self._widest_run * self.vocab_size * 4 > _SPARE_BYTES:
            llama_cpp.llama_free(self._context)
            self._open_context()
        if self._cross_context and self._widest_cross_run * self.vocab_size * 4 > _SPARE_BYTES:
            llama_cpp.llama_free(self._cross_context)
            self._cross_context = None  # the next call opens it

    def free(self) -> None:
        """Free everything."""
        if self._cross_context:
            llama_cpp.llama_free(self._cross_context)
            self._cross_context = None
        if self._context:
            llama_cpp.llama_free(self._context)
            self._context = None
        if self._model:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_model_free(self._model)
            self._model = None


class LlamaEmbedder:
    """An `Embedder` for any GGUF embedding model that pools by mean, first or last token."""

    def __init__(
        self,
        path: Path,
        *,
        threads: int = 1,
        max_tokens: int = 256,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_tokens: int = 128,
        cross: CrossAdapter | None = None,
    ) -> None:
        """Load the model; nothing is left behind when that fails.

        Args:
            path: a GGUF file.
            threads: cores that one call may use.
            max_tokens: longer texts are cut there, special tokens counted; at most what the
                model was made for.
            query_prefix: put before every text of role "query".
            passage_prefix: put before every text of role "passage".
            cross: the adapter with which pairs are weighed; loaded when it is first needed.
            batch_tokens: short texts share a batch of up to this many tokens, which is a quarter
                to a half faster. A vector then depends on its neighbours in the batch in the last
                digits (cosine over .9999). 0 runs each text alone: bit for bit the same vector
                whatever else is embedded.

        Raises:
            ModelDamagedError: the file is damaged, or llama.cpp cannot load it.
            ConfigError: it is no embedding model, or an argument is out of range.
        """
        if threads < 1 or batch_tokens < 0:
            msg = f"threads must be 1 or more and batch_tokens 0 or more: {threads}, {batch_tokens}"
            raise ConfigError(msg)
        header = read_header(path)
        context_tokens = header.integer("*.context_length") or 0
        if not _MIN_TOKENS <= max_tokens <= context_tokens:
            msg = (
                f"max_tokens must be {_MIN_TOKENS} to {context_tokens} for {path}, not {max_tokens}"
            )
            raise ConfigError(msg, path=str(path))
        dim = _embedding_dim(header, path)
        self._info = EmbedderInfo(
            _identity(header, file_digest(path), query_prefix, passage_prefix), dim, max_tokens
        )
        self._prefixes: dict[str, str] = {"query": query_prefix, "passage": passage_prefix}
        self._unknown_id = header.integer("tokenizer.ggml.unknown_token_id")
        self._is_wordpiece = header.values.get("tokenizer.ggml.model") == "bert"
        self._batch_tokens = batch_tokens
        self._cross = cross
        self._head: Head | None = None  # read when it is first needed
        self._lock = threading.Lock()
        self._closed = False
        # Flash attention pays from about 100 tokens a batch, and costs a fifth below.
        self._native = _Native(
            path,
            threads=threads,
            width_tokens=max(max_tokens, batch_tokens),
            flash=batch_tokens > 0,
        )
        self._finalizer = weakref.finalize(self, self._native.free)
        self._finalizer.atexit = False  # at exit a thread may still be inside llama.cpp

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return self._info

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        """Return unit rows, C-contiguous float32 of shape (len(texts), dim).

        Raises:
            InvalidValueError: an unknown role.
            ModelFailedError: llama.cpp failed; nothing is left half done.
            ClosedError: the embedder was closed.
        """
        prefix = self._prefixes.get(role)
        if prefix is None:
            msg = f"role must be query or passage, not {role!r}"
            raise InvalidValueError(msg, role=str(role))
        rows = np.empty((len(texts), self._info.dim), np.float32)
        with self._lock:
            tokens = [self._tokens_of(prefix + text) for text in texts]
        for group in self._groups(tokens):
            with self._lock:  # per batch, so that a short call need not wait for a long one
                rows[group] = self._open().run([tokens[i] for i in group], self._info.dim)
        with self._lock:
            self._open().shrink()
        return _unit(rows)

    def pair_share(self) -> float:
        """Return the share of its word beside a language model's; 0 without an adapter."""
        return self._cross.share if self._cross else 0.0

    def weigh_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        """Return the probabilities of `PAIR_CHOICES` for known and new statements; None for a pair
        in another script than the adapter has learned, or longer than it reads.

        Each pair runs alone, so that its answer depends on nothing else.

        Raises:
            ConfigError: it was opened without an adapter for that.
            ModelFailedError: llama.cpp failed, or a file of the adapter is damaged.
            ClosedError: the embedder was closed.
        """
        cross = self._cross
        if cross is None:
            msg = f"the embedder {self._info.id} has no adapter that weighs pairs"
            raise ConfigError(msg)
        head = self._head or self._read_head(cross)
        found: list[list[float] | None] = []
        for old, new in pairs:
            laid = self.pair_tokens(old, new) if reads(old + new, cross.scripts) else None
            if laid is None or laid.is_cut:
                found.append(None)
                continue
            with self._lock:
                rows = self._open().run_tokens(laid.ids, self._info.dim, cross.lora)
            found.append(head.weigh(rows, laid))
        with self._lock:
            self._open().shrink()
        return found

    def _read_head(self, cross: CrossAdapter) -> Head:
        try:
            self._head = read_head(cross.head)
        except ModelDamagedError as exc:  # the embedder itself is whole
            raise ModelFailedError(exc.message) from exc
        return self._head

    def pair_tokens(self, old: str, new: str) -> PairTokens:
        """Return both statements as one sequence, as it is read by `weigh_pairs`."""
        with self._lock:
            read = self._open().tokenize
            known, fresh = (
                read(self._prepare(pair_text(text)), special=False) for text in (old, new)
            )
            around = read("", special=True)  # begin and end
        return lay_out(known, fresh, around, twice=not self._is_wordpiece)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens `text` has, without prefix and special tokens.

        Raises:
            ClosedError: the embedder was closed.
        """
        with self._lock:
            return len(self._open().tokenize(self._prepare(text), special=False))

    def unknown_share(self, text: str) -> float:
        """Return the share of tokens, 0 to 1, that the vocabulary does not know; 0 for none.

        Raises:
            ClosedError: the embedder was closed.
        """
        with self._lock:
            tokens = self._open().tokenize(self._prepare(text), special=False)
        if not tokens or self._unknown_id is None:
            return 0.0
        return tokens.count(self._unknown_id) / len(tokens)

    def close(self) -> None:
        """Free the model; a batch that is running ends first."""
        with self._lock:
            self._closed = True
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _Native:
        if self._closed:
            msg = f"the embedder {self._info.id} was closed"
            raise ClosedError(msg)
        return self._native

    def _prepare(self, text: str) -> str:
        """Return `text` as the tokenizer wants it.

        BERT's normaliser decomposes characters and drops their marks. llama.cpp does so for
        Latin only; without this, Korean and Hindi are read as other tokens than in training.
        """
        if not self._is_wordpiece or text.isascii():
            return text
        parts = unicodedata.normalize("NFD", text)
        return "".join(char for char in parts if unicodedata.category(char) != "Mn")

    def _tokens_of(self, text: str) -> Tokens:
        limit = self._info.max_tokens
        text = self._prepare(text[: limit * _CHARS_PER_TOKEN])
        tokens = self._open().tokenize(text, special=True)
        if len(tokens) <= limit:
            return tokens or [0]  # a model without special tokens gives an empty text none
        if self._native.ends_with_special:
            return [*tokens[: limit - 1], tokens[-1]]
        return tokens[:limit]

    def _groups(self, tokens: Sequence[Tokens]) -> list[list[int]]:
        """Return indices of `tokens`, shortest first, cut into batches."""
        groups: list[list[int]] = []
        total = 0
        for index in sorted(range(len(tokens)), key=lambda i: len(tokens[i])):
            size = len(tokens[index])
            fits = total + size <= self._batch_tokens
            if groups and fits and len(groups[-1]) < _MAX_SEQUENCES:
                groups[-1].append(index)
                total += size
            else:
                groups.append([index])
                total = size
        return groups


def _require_lora(path: Path) -> None:
    """Look at an adapter before llama.cpp does, which may abort on a damaged one.

    Raises:
        ModelFailedError: it is damaged, or none for a BERT.
    """
    try:
        header = read_header(path)
    except (ModelDamagedError, OSError) as exc:
        msg = f"the adapter {path} cannot be read: {exc}"
        raise ModelFailedError(msg, path=str(path)) from exc
    if header.values.get("adapter.type") != "lora" or header.architecture != "bert":
        msg = f"{path} is no LoRA adapter for an embedder"
        raise ModelFailedError(msg, path=str(path))


def _embedding_dim(header: GgufHeader, path: Path) -> int:
    pooling = header.integer("*.pooling_type")
    dim = header.integer("*.embedding_length")
    if pooling not in _POOLINGS or dim is None:
        msg = (
            f"{path} ({header.name}, architecture {header.architecture}) is no embedding model: "
            f"it names {'no' if pooling is None else 'an unfit'} way to pool tokens into a vector"
        )
        raise ConfigError(msg, path=str(path))
    return dim


def _identity(header: GgufHeader, digest: str, query_prefix: str, passage_prefix: str) -> str:
    identity = f"{header.name}:{header.file_type}:{digest[:12]}"
    if not query_prefix and not passage_prefix:
        return identity
    both = f"{len(query_prefix)}:{query_prefix}{passage_prefix}".encode("utf-8", "replace")
    return f"{identity}:p{blake2b(both, digest_size=4).hexdigest()}"


def _unit(rows: Float32) -> Float32:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        msg = "the model returned a vector without direction (zero or not finite)"
        raise ModelFailedError(msg)
    unit: Float32 = (rows / norms[:, None]).astype(np.float32)
    return unit
