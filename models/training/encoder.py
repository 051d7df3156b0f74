"""An embedder in torch, its weights read from a GGUF file, with LoRA and a head for pairs.

Post-norm BERT as llama.cpp computes it: learned positions, one token type, GELU by its tanh form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader
from numpy.typing import NDArray
from torch.nn import functional

from reverie.models.cross_encoder import PairTokens
from reverie.models.training.network import weights_of

TARGETS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down")
HIDDEN = 256  # of the head
_PAD = 1
_EPSILON = 1e-5  # as in cross_encoder.py


class PairHead:
    """The head of `cross_encoder.Head`, to be trained."""

    def __init__(self, dim: int, choices: int) -> None:
        self.hidden = torch.nn.Linear(4 * dim, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, choices)

    def scores(self, features: torch.Tensor) -> torch.Tensor:
        """Return scores of the choices, float32 (batch, choices)."""
        scores: torch.Tensor = self.out(functional.gelu(self.hidden(features)))
        return scores

    def named(self) -> dict[str, torch.Tensor]:
        """Return what is trained, by the names that `read_head` wants."""
        return {
            "hidden": self.hidden.weight,
            "hidden_bias": self.hidden.bias,
            "out": self.out.weight,
            "out_bias": self.out.bias,
        }

    def arrays(self) -> dict[str, NDArray[np.float16]]:
        """Return the weights as they are shipped."""
        return {n: v.detach().numpy().astype(np.float16) for n, v in self.named().items()}


class PairEncoder:
    """A frozen BERT whose layers all carry LoRA matrices A and B, and a head.

    Args:
        path: the GGUF file.
        rank: of A and B.
        alpha: the product is scaled by alpha / rank.
        choices: how many labels the head has.
        seed: of the start values.
        fast: multiply in bfloat16, which is quicker where the processor can.
    """

    def __init__(
        self, path: Path, *, rank: int, alpha: float, choices: int, seed: int, fast: bool = True
    ) -> None:
        reader = GGUFReader(path)

        def number(name: str) -> Any:
            return reader.fields[f"bert.{name}"].contents()

        self.layers: int = number("block_count")
        self.heads: int = number("attention.head_count")
        self.dim: int = number("embedding_length")
        self.epsilon: float = number("attention.layer_norm_epsilon")
        self.rank, self.alpha = rank, alpha
        self.dtype = torch.bfloat16 if fast else torch.float32
        self.weights: dict[str, torch.Tensor] = {}
        for name, weight in weights_of(reader):
            is_matrix = name.startswith("blk.") and weight.dim() > 1
            self.weights[name] = weight.to(self.dtype) if is_matrix else weight
        torch.manual_seed(seed)
        self.lora: dict[str, torch.Tensor] = {}
        for layer in range(self.layers):
            for target in TARGETS:
                name = f"blk.{layer}.{target}.weight"
                rows, columns = self.weights[name].shape
                start = torch.randn(rank, columns) / math.sqrt(columns)
                self.lora[f"{name}.lora_a"] = start.requires_grad_()
                self.lora[f"{name}.lora_b"] = torch.zeros(rows, rank).requires_grad_()
        self.head = PairHead(self.dim, choices)

    def parameters(self) -> list[torch.Tensor]:
        """Return what is trained."""
        return [*self.lora.values(), *self.head.named().values()]

    def state(self) -> dict[str, torch.Tensor]:
        """Return what is trained, by name, to be saved."""
        return {**self.lora, **self.head.named()}

    def restore(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state` gave."""
        with torch.no_grad():
            for name, values in self.state().items():
                values.copy_(state[name])

    def scores(self, pairs: Sequence[PairTokens]) -> torch.Tensor:
        """Return the scores of the choices, float32 (pairs, choices)."""
        width = max(len(pair.ids) for pair in pairs)
        ids = torch.full((len(pairs), width), _PAD)
        used = torch.zeros(len(pairs), width, dtype=torch.bool)
        for row, pair in enumerate(pairs):
            ids[row, : len(pair.ids)] = torch.tensor(pair.ids)
            used[row, : len(pair.ids)] = True
        states = self._run(ids, used)
        means = [
            torch.stack(
                [_mean(row[getattr(pair, which)]) for row, pair in zip(states, pairs, strict=True)]
            )
            for which in ("first", "second")
        ]
        u, v = (functional.layer_norm(mean, (self.dim,), eps=_EPSILON) for mean in means)
        found: torch.Tensor = self.head.scores(torch.cat([u, v, (u - v).abs(), u * v], -1))
        return found

    def _run(self, ids: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
        batch, width = ids.shape
        states = (
            self.weights["token_embd.weight"][ids]
            + self.weights["position_embd.weight"][:width]
            + self.weights["token_types.weight"][0]
        )
        states = self._norm(states, "token_embd_norm")
        mask = used[:, None, None, :]
        for layer in range(self.layers):
            query, key, value = (
                self._linear(states, layer, target)
                .view(batch, width, self.heads, self.dim // self.heads)
                .transpose(1, 2)
                for target in ("attn_q", "attn_k", "attn_v")
            )
            # In float32: on CPUs the fused attention is far slower in bfloat16.
            met = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            met = met.transpose(1, 2).reshape(batch, width, self.dim)
            met = self._linear(met, layer, "attn_output")
            states = self._norm(states + met, f"blk.{layer}.attn_output_norm")
            inner = functional.gelu(self._linear(states, layer, "ffn_up"), approximate="tanh")
            outer = self._linear(inner, layer, "ffn_down")
            states = self._norm(states + outer, f"blk.{layer}.layer_output_norm")
        return states

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, (self.dim,), weight, bias, self.epsilon)

    def _linear(self, x: torch.Tensor, layer: int, target: str) -> torch.Tensor:
        name = f"blk.{layer}.{target}"
        x = x.to(self.dtype)
        a, b = (self.lora[f"{name}.weight.lora_{which}"].to(self.dtype) for which in "ab")
        more = functional.linear(functional.linear(x, a), b)
        y = functional.linear(x, self.weights[f"{name}.weight"]) + self.alpha / self.rank * more
        return y.float() + self.weights[f"{name}.bias"]


def _mean(rows: torch.Tensor) -> torch.Tensor:
    """The mean of rows, zeros for none."""
    return rows.sum(0) / max(1, len(rows))
