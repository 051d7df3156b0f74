"""A tiny BERT with random weights, in the layouts that the converters read."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

HIDDEN, WIDE, LAYERS, HEADS, POSITIONS = 32, 64, 2, 4, 64
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), "hello", "world", "."]


def bert_tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights under the names of BERT, float32."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
    }
    for layer in range(LAYERS):
        stem = f"encoder.layer.{layer}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{stem}attention.{part}.weight"] = (HIDDEN, HIDDEN)
            shapes[f"{stem}attention.{part}.bias"] = (HIDDEN,)
        shapes[f"{stem}intermediate.dense.weight"] = (WIDE, HIDDEN)
        shapes[f"{stem}intermediate.dense.bias"] = (WIDE,)
        shapes[f"{stem}output.dense.weight"] = (HIDDEN, WIDE)
        shapes[f"{stem}output.dense.bias"] = (HIDDEN,)
    tensors = {name: rng.normal(0, 0.3, shape) for name, shape in shapes.items()}
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        norms += [
            f"encoder.layer.{layer}.{part}.LayerNorm" for part in ("attention.output", "output")
        ]
    for norm in norms:
        tensors[f"{norm}.weight"], tensors[f"{norm}.bias"] = np.ones(HIDDEN), np.zeros(HIDDEN)
    tensors["pooler.dense.weight"] = np.zeros((HIDDEN, HIDDEN))  # is left out
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


def write_bert(folder: Path, tensors: dict[str, np.ndarray] | None = None) -> Path:
    """Write config.json, vocab.txt and model.safetensors; return `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "hidden_size": HIDDEN,
        "intermediate_size": WIDE,
        "num_attention_heads": HEADS,
        "layer_norm_eps": 1e-12,
        "type_vocab_size": 2,
        "vocab_size": len(VOCABULARY),
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in (tensors or bert_tensors()).items():
        header[name] = {
            "dtype": "F32",
            "shape": tensor.shape,
            "data_offsets": [len(body), len(body) + tensor.nbytes],
        }
        body += tensor.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    return folder
