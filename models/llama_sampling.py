"""The most likely token that a grammar allows."""

from __future__ import annotations

import ctypes
from typing import Self

import numpy as np

from reverie.memory_graph.errors import InvalidValueError, ModelFailedError
from reverie.models.grammar import check_grammar
from reverie.models.llama import llama_errors  # before llama_cpp: see there
from reverie.models.llama_decoder import Decoder
from reverie.models.protocol import Float32

import llama_cpp  # isort: skip

_FEW = (64, 1024, 8192)  # how many of the likeliest are tried before the whole vocabulary
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Grammar:
    """A grammar that is being followed; free it by leaving its `with` block."""

    def __init__(self, decoder: Decoder, text: str) -> None:
        """Check and compile.

        Raises:
            InvalidValueError: it cannot be used.
        """
        check_grammar(text)
        self._sampler = decoder.grammar_sampler(text)
        if not self._sampler:
            msg = f"llama.cpp refuses the grammar: {llama_errors()}"
            raise InvalidValueError(msg)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sampler:
            llama_cpp.llama_sampler_free(self._sampler)
            self._sampler = None

    def best(self, logits: Float32) -> int:
        """Return the allowed token of the highest logit.

        Trying the whole vocabulary costs more than a small model's own work, and the most likely
        tokens are mostly allowed: so they are asked about first, with the same result.

        Raises:
            ModelFailedError: no token is allowed.
        """
        top = np.array([logits.argmax()])
        if (found := self._allowed(top, logits)) is not None:
            return found
        for few in _FEW:
            if few < len(logits):
                likely = np.argpartition(logits, -few)[-few:]
                if (found := self._allowed(likely, logits)) is not None:
                    return found
        found = self._allowed(np.arange(len(logits)), logits)
        if found is None:
            msg = "the grammar leaves no token to go on with"
            raise ModelFailedError(msg)
        return found

    def _allowed(self, ids: np.ndarray, logits: Float32) -> int | None:
        """Return the best of the tokens `ids` that the grammar allows."""
        candidates = np.zeros(len(ids), _CANDIDATE)
        candidates["id"] = ids
        candidates["logit"] = logits[ids]
        pointer = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(pointer, len(ids), -1, False)  # noqa: FBT003
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        best = int(candidates["logit"].argmax())
        return int(candidates["id"][best]) if np.isfinite(candidates["logit"][best]) else None

    def accept(self, token: int) -> None:
        """Move on by a token that `best` returned; any other would end the process."""
        llama_cpp.llama_sampler_accept(self._sampler, token)
