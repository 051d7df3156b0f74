"""all-MiniLM-L6-v2 from safetensors to GGUF, with numpy and gguf alone.

Matrices become F16; norms, biases, positions and token types stay F32. Tensor names and the
WordPiece vocabulary follow llama.cpp's "bert" architecture. The output depends on the input only,
so that its digest can be pinned.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph.errors import ModelDamagedError

Float32: TypeAlias = NDArray[np.float32]

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORD_START = "\u2581"  # llama.cpp marks the pieces that begin a word, BERT those that do not

_NAMES = {
    r"embeddings\.word_embeddings": "token_embd",
    r"embeddings\.position_embeddings": "position_embd",
    r"embeddings\.token_type_embeddings": "token_types",
    r"embeddings\.LayerNorm": "token_embd_norm",
    r"encoder\.layer\.(\d+)\.attention\.self\.query": r"blk.\1.attn_q",
    r"encoder\.layer\.(\d+)\.attention\.self\.key": r"blk.\1.attn_k",
    r"encoder\.layer\.(\d+)\.attention\.self\.value": r"blk.\1.attn_v",
    r"encoder\.layer\.(\d+)\.attention\.output\.dense": r"blk.\1.attn_output",
    r"encoder\.layer\.(\d+)\.attention\.output\.LayerNorm": r"blk.\1.attn_output_norm",
    r"encoder\.layer\.(\d+)\.intermediate\.dense": r"blk.\1.ffn_up",
    r"encoder\.layer\.(\d+)\.output\.dense": r"blk.\1.ffn_down",
    r"encoder\.layer\.(\d+)\.output\.LayerNorm": r"blk.\1.layer_output_norm",
}
_KEPT_F32 = {"position_embd.weight", "token_types.weight"}


def convert_minilm(source: Path, target: Path) -> None:
    """Write the GGUF of the BERT model in `source` to `target`.

    Args:
        source: a folder with config.json, vocab.txt and model.safetensors (F32).
        target: the file to write; an existing one is replaced.

    Raises:
        ModelDamagedError: the files do not belong together, or hold something unexpected.
    """
    try:
        config = json.loads((source / "config.json").read_bytes())
        vocabulary = (source / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
        tensors = read_tensors(source / "model.safetensors")
        if len(vocabulary) != config["vocab_size"]:
            msg = f"{source}: vocab.txt has {len(vocabulary)} entries, not {config['vocab_size']}"
            raise ModelDamagedError(msg, path=str(source))
        writer = gguf.GGUFWriter(target, "bert")
        _add_shape(writer, config)
        _add_vocabulary(writer, vocabulary, config["type_vocab_size"])
        _add_tensors(writer, tensors)
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{source} holds no BERT model that can be converted: {error!r}"
        raise ModelDamagedError(msg, path=str(source)) from error
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_tensors(path: Path) -> dict[str, Float32]:
    """Return the tensors that llama.cpp needs, under its names, in the order of the file.

    The format is a little-endian u64, a JSON header of that many bytes, then the data:
    https://github.com/huggingface/safetensors#format

    Raises:
        ValueError: damaged, or a tensor that is not F32.
        KeyError: a tensor that BERT does not have.
    """
    data = np.memmap(path, np.uint8, "r")
    header_bytes = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8 : 8 + header_bytes].tobytes())
    body = data[8 + header_bytes :]
    tensors: dict[str, Float32] = {}
    header.pop("__metadata__", None)
    for source_name, about in header.items():
        name = gguf_name(source_name)
        if name is None:
            continue
        if about["dtype"] != "F32":
            msg = f"tensor {source_name} is {about['dtype']}, not F32"
            raise ValueError(msg)
        begin, end = about["data_offsets"]
        tensors[name] = body[begin:end].view(np.float32).reshape(about["shape"])
    return tensors


def gguf_name(name: str) -> str | None:
    """Return llama.cpp's name for the BERT tensor `name`; None when it is not needed.

    Raises:
        KeyError: an unknown tensor.
    """
    if name.startswith("pooler.") or name.endswith("position_ids"):
        return None
    stem, _, part = name.rpartition(".")
    for pattern, replacement in _NAMES.items():
        match = re.fullmatch(pattern, stem)
        if match and part in {"weight", "bias"}:
            return f"{match.expand(replacement)}.{part}"
    raise KeyError(name)


def _add_shape(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_license("apache-2.0")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(value=False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _add_vocabulary(writer: gguf.GGUFWriter, vocabulary: list[str], token_types: int) -> None:
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([_piece(token) for token in vocabulary])
    writer.add_token_types([_piece_type(token) for token in vocabulary])
    writer.add_token_type_count(token_types)
    pad, unknown, begin, separator, mask = (vocabulary.index(token) for token in _SPECIAL)
    writer.add_bos_token_id(begin)
    writer.add_eos_token_id(separator)
    writer.add_unk_token_id(unknown)
    writer.add_sep_token_id(separator)
    writer.add_pad_token_id(pad)
    writer.add_mask_token_id(mask)
    writer.add_add_bos_token(value=True)
    writer.add_add_eos_token(value=True)


def _piece(token: str) -> str:
    if token in _SPECIAL:
        return token
    return token[2:] if token.startswith("##") else _WORD_START + token


def _piece_type(token: str) -> gguf.TokenType:
    if token == "[UNK]":  # noqa: S105 - a token of a vocabulary
        return gguf.TokenType.UNKNOWN
    return gguf.TokenType.CONTROL if token in _SPECIAL else gguf.TokenType.NORMAL


def _add_tensors(writer: gguf.GGUFWriter, tensors: dict[str, Float32]) -> None:
    for name, tensor in tensors.items():
        is_matrix = tensor.ndim == 2 and name.endswith(".weight") and name not in _KEPT_F32  # noqa: PLR2004
        writer.add_tensor(name, tensor.astype(np.float16) if is_matrix else np.array(tensor))
