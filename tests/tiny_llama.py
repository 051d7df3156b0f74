"""A tiny llama with random weights, and LoRA adapters for it: llama.cpp loads them in no time."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

HIDDEN, WIDE, LAYERS, HEADS, CONTEXT = 32, 64, 2, 2, 512
SPECIAL = ["<unk>", "<s>", "</s>", "<|turn|>"]
BYTES = [f"<0x{number:02X}>" for number in range(256)]
WORDS = ["▁", *"abcdefghijklmnopqrstuvwxyz", "▁a", "▁the", "▁Oslo", "▁yes", "▁no", "▁maybe"]
VOCABULARY = [*SPECIAL, *BYTES, *WORDS]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|turn|>{{ message['role'] }}: "
    "{{ message['content'] | trim }}\n{% endfor %}{% if add_generation_prompt %}<|turn|>assistant:"
    "{% endif %}"
)

_KINDS = gguf.TokenType


def _header(writer: gguf.GGUFWriter, template: str | None) -> None:
    writer.add_name("Tiny Llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(WIDE)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(VOCABULARY))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(VOCABULARY)
    writer.add_token_scores([0.0] * 260 + [-float(i) for i in range(len(WORDS))])
    kinds = [_KINDS.UNKNOWN, _KINDS.CONTROL, _KINDS.CONTROL, _KINDS.CONTROL]
    kinds += [_KINDS.BYTE] * 256 + [_KINDS.NORMAL] * len(WORDS)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)  # noqa: FBT003 (gguf's)
    if template is not None:
        writer.add_chat_template(template)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_llama(path: Path, *, seed: int = 0, template: str | None = TEMPLATE) -> Path:
    """Write a model; return `path`."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    _header(writer, template)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, rng.normal(0, 0.4, shape).astype(np.float32))

    def add_norm(name: str) -> None:
        writer.add_tensor(name, np.ones(HIDDEN, np.float32))

    add("token_embd.weight", len(VOCABULARY), HIDDEN)
    add("output.weight", len(VOCABULARY), HIDDEN)
    add_norm("output_norm.weight")
    for layer in range(LAYERS):
        stem = f"blk.{layer}."
        add_norm(stem + "attn_norm.weight")
        add_norm(stem + "ffn_norm.weight")
        for part in ("q", "k", "v", "output"):
            add(f"{stem}attn_{part}.weight", HIDDEN, HIDDEN)
        add(stem + "ffn_gate.weight", WIDE, HIDDEN)
        add(stem + "ffn_up.weight", WIDE, HIDDEN)
        add(stem + "ffn_down.weight", HIDDEN, WIDE)
    _finish(writer)
    return path


def write_adapter(
    path: Path, *, seed: int = 1, architecture: str = "llama", width: int = HIDDEN
) -> Path:
    """Write a LoRA adapter of rank 4; return `path`."""
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for layer in range(LAYERS):
        for part in ("q", "v"):
            name = f"blk.{layer}.attn_{part}.weight.lora_"
            writer.add_tensor(name + "a", rng.normal(0, 0.5, (4, width)).astype(np.float32))
            writer.add_tensor(name + "b", rng.normal(0, 0.5, (width, 4)).astype(np.float32))
    _finish(writer)
    return path
