"""The language model in torch, its weights read from a GGUF file, with LoRA in the upper layers.

The file's order of the rows of q and k is kept, which makes the rotary positions interleaved. Only
right padding is used: with causal attention no position sees what comes after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from torch.nn import functional

TARGETS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class Shape(NamedTuple):
    """Sizes of a Llama model."""

    layers: int
    heads: int
    kv_heads: int
    width: int
    rope_base: float
    epsilon: float


def weights_of(reader: GGUFReader) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each tensor of a file with its name, float32, rows first."""
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape([int(size) for size in reversed(tensor.shape)])
        yield tensor.name, torch.from_numpy(np.ascontiguousarray(values))


class Network:
    """A frozen Llama model whose layers from `first` on carry LoRA matrices A and B.

    Args:
        path: the GGUF file.
        rank: of A and B.
        alpha: the product is scaled by alpha / rank.
        first: the first layer with LoRA, from the top when negative; those below give the same
            states in every step.
        seed: of the start values of A (B starts at zero, so that nothing changes at first).
        fast: multiply in bfloat16, which halves the time where the processor can.
    """

    def __init__(
        self, path: Path, *, rank: int, alpha: float, first: int, seed: int, fast: bool = True
    ) -> None:
        reader = GGUFReader(path)

        def number(name: str) -> Any:
            return reader.fields[f"llama.{name}"].contents()

        self.shape = Shape(
            number("block_count"),
            number("attention.head_count"),
            number("attention.head_count_kv"),
            number("embedding_length"),
            number("rope.freq_base"),
            number("attention.layer_norm_rms_epsilon"),
        )
        self.rank, self.alpha = rank, alpha
        self.first = first if first >= 0 else self.shape.layers + first
        self.dtype = torch.bfloat16 if fast else torch.float32
        self.weights: dict[str, torch.Tensor] = {}
        for name, weight in weights_of(reader):
            is_matrix = weight.dim() > 1 and name != "token_embd.weight"
            self.weights[name] = weight.to(self.dtype) if is_matrix else weight
        self.lora = self._fresh(seed)

    def _fresh(self, seed: int) -> dict[str, torch.Tensor]:
        maker = torch.Generator().manual_seed(seed)
        lora: dict[str, torch.Tensor] = {}
        for layer in range(self.first, self.shape.layers):
            for target in TARGETS:
                name = f"blk.{layer}.{target}.weight"
                rows, columns = self.weights[name].shape
                start = torch.randn(self.rank, columns, generator=maker) / math.sqrt(columns)
                lora[f"{name}.lora_a"] = start.requires_grad_()
                lora[f"{name}.lora_b"] = torch.zeros(rows, self.rank).requires_grad_()
        return lora

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the states before the first layer, float32 (batch, tokens, width)."""
        return self.weights["token_embd.weight"][ids]

    def run(self, states: torch.Tensor, layers: Sequence[int]) -> torch.Tensor:
        """Return the states after `layers`, float32 (batch, tokens, width)."""
        cosine, sine = self._angles(states.shape[1])
        for layer in layers:
            states = states + self._attend(states, layer, cosine, sine)
            normed = self._norm(states, f"blk.{layer}.ffn_norm.weight")
            gate = functional.silu(self._linear(normed, layer, "ffn_gate"))
            up = self._linear(normed, layer, "ffn_up")
            states = states + self._linear(gate * up, layer, "ffn_down")
        return states

    def logits(self, states: torch.Tensor, tokens: Sequence[int] | None = None) -> torch.Tensor:
        """Return float32 scores of `tokens`, all when None, for the last layer's states."""
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        if tokens is not None:
            head = head[torch.tensor(list(tokens))]
        normed = self._norm(states, "output_norm.weight")
        return functional.linear(normed.to(self.dtype), head.to(self.dtype)).float()

    def lower(self) -> range:
        """The layers below the first with LoRA."""
        return range(self.first)

    def upper(self) -> range:
        """The layers with LoRA."""
        return range(self.first, self.shape.layers)

    def _angles(self, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        width = self.shape.width // self.shape.heads
        steps = 1 / (self.shape.rope_base ** (torch.arange(0, width, 2).float() / width))
        angles = torch.arange(tokens).float()[:, None] * steps
        return angles.cos(), angles.sin()

    def _attend(
        self, states: torch.Tensor, layer: int, cosine: torch.Tensor, sine: torch.Tensor
    ) -> torch.Tensor:
        batch, tokens, _ = states.shape
        heads, kv_heads = self.shape.heads, self.shape.kv_heads
        width = self.shape.width // heads
        normed = self._norm(states, f"blk.{layer}.attn_norm.weight")

        def split(name: str, count: int) -> torch.Tensor:
            projected = self._linear(normed, layer, name)
            return projected.view(batch, tokens, count, width).transpose(1, 2)

        def turn(x: torch.Tensor) -> torch.Tensor:
            even, odd = x[..., 0::2], x[..., 1::2]
            both = [even * cosine - odd * sine, even * sine + odd * cosine]
            return torch.stack(both, -1).flatten(-2)

        query, key = turn(split("attn_q", heads)), turn(split("attn_k", kv_heads))
        value = split("attn_v", kv_heads)
        key = key.repeat_interleave(heads // kv_heads, 1)
        value = value.repeat_interleave(heads // kv_heads, 1)
        # In float32: on CPUs the fused attention is far slower in bfloat16.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self._linear(mixed.transpose(1, 2).reshape(batch, tokens, -1), layer, "attn_output")

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.rms_norm(x, (x.shape[-1],), self.weights[name], self.shape.epsilon)

    def _linear(self, x: torch.Tensor, layer: int, target: str) -> torch.Tensor:
        name = f"blk.{layer}.{target}.weight"
        x = x.to(self.dtype)
        y = functional.linear(x, self.weights[name])
        a = self.lora.get(f"{name}.lora_a")
        if a is not None:
            b = self.lora[f"{name}.lora_b"]
            inner = functional.linear(x, a.to(self.dtype))
            y = y + (self.alpha / self.rank) * functional.linear(inner, b.to(self.dtype))
        return y.float()
