"""Make e5_reference.npz: vectors of reference_texts.json by torch, from the weights of the GGUF.

Needs a virtual environment of its own:
`pip install torch==2.13.0 transformers tokenizers gguf`, then

    python make_e5_reference.py multilingual-e5-small.q4_0.gguf

The 4-bit weights are dequantised to float32, and the token ids come from another implementation of
the Unigram tokenizer and of its normaliser, so that both are checked independently of llama.cpp.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertModel

MAX_TOKENS = 256
BEGIN, END, UNKNOWN = 0, 2, 3
PREFIX = "passage: "
LAYERS = 12
OUTER = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
INNER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def load_tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    """Build the tokenizer from the pieces and scores of the file."""
    pieces, scores = (reader.fields[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores"))
    vocabulary = [
        (bytes(pieces.parts[piece]).decode(), float(scores.parts[score][0]))
        for piece, score in zip(pieces.data, scores.data, strict=True)
    ]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer


def load_model(reader: gguf.GGUFReader) -> BertModel:
    """Build the model from the dequantised weights."""
    tensors = {
        tensor.name: torch.tensor(
            np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        )
        for tensor in reader.tensors
    }
    names = OUTER | {
        f"encoder.layer.{layer}.{ours}": f"blk.{layer}.{theirs}"
        for layer in range(LAYERS)
        for ours, theirs in INNER.items()
    }
    weights = {
        f"{ours}.{part}": tensors[f"{theirs}.{part}"]
        for ours, theirs in names.items()
        for part in ("weight", "bias")
        if f"{theirs}.{part}" in tensors
    }
    vocabulary, hidden = tensors["token_embd.weight"].shape
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=LAYERS,
        num_attention_heads=12,
        intermediate_size=1536,
        max_position_embeddings=512,
        layer_norm_eps=1e-12,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict(weights)
    return model


def main(model_file: Path) -> None:
    """Write vectors as float32, (texts, 384), the tokens per text, and all token ids in a row."""
    here = Path(__file__).parent
    groups = json.loads((here / "reference_texts.json").read_text("utf-8"))
    reader = gguf.GGUFReader(model_file)
    tokenizer, model = load_tokenizer(reader), load_model(reader)
    rows, counts, all_ids = [], [], []
    with torch.no_grad():
        for text in [text for group in groups.values() for text in group]:
            inner = tokenizer.encode(PREFIX + text, add_special_tokens=False).ids
            ids = [BEGIN, *inner[: MAX_TOKENS - 2], END]
            mean = model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(dim=0)
            rows.append((mean / mean.norm()).numpy())
            counts.append(len(ids))
            all_ids += ids
    np.savez_compressed(
        here / "e5_reference.npz",
        vectors=np.array(rows, np.float32),
        tokens=np.array(counts, np.int32),
        ids=np.array(all_ids, np.int32),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
