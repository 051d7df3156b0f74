"""Converters on tiny synthetic models, read back with the reference reader of gguf."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from tiny_bert import HIDDEN, LAYERS, POSITIONS, VOCABULARY, WIDE, bert_tensors, write_bert

from reverie.memory_graph.errors import ModelDamagedError
from reverie.models.charsmap import build_charsmap, compositions
from reverie.models.convert_e5 import convert_e5
from reverie.models.convert_minilm import convert_minilm, gguf_name
from reverie.models.digest import sha256_of


def tensors_of(path: Path) -> dict[str, gguf.ReaderTensor]:
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


# -- MiniLM -----------------------------------------------------------------------------


def test_minilm_keeps_every_weight(tmp_path: Path) -> None:
    source = bert_tensors()
    convert_minilm(write_bert(tmp_path / "in", source), tmp_path / "out.gguf")
    written = tensors_of(tmp_path / "out.gguf")
    wanted = {gguf_name(name): tensor for name, tensor in source.items() if gguf_name(name)}
    assert set(written) == set(wanted)
    for name, tensor in wanted.items():
        is_half = name == "token_embd.weight" or ("blk" in str(name) and tensor.ndim == 2)
        assert written[str(name)].data.dtype == (np.float16 if is_half else np.float32)
        assert np.array_equal(written[str(name)].data, tensor.astype(written[str(name)].data.dtype))


def test_minilm_is_the_same_each_time(tmp_path: Path) -> None:
    source = write_bert(tmp_path / "in")
    convert_minilm(source, tmp_path / "1.gguf")
    convert_minilm(source, tmp_path / "2.gguf")
    assert sha256_of(tmp_path / "1.gguf") == sha256_of(tmp_path / "2.gguf")


def test_minilm_pieces_are_marked_at_the_start_of_words(tmp_path: Path) -> None:
    convert_minilm(write_bert(tmp_path / "in"), tmp_path / "out.gguf")
    field = gguf.GGUFReader(tmp_path / "out.gguf").fields["tokenizer.ggml.tokens"]
    pieces = [bytes(field.parts[index]).decode() for index in field.data]
    assert pieces[:6] == [*VOCABULARY[:5], "\u2581a"]
    assert pieces[VOCABULARY.index("##a")] == "a"


def test_minilm_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    strange = bert_tensors() | {"decoder.weight": np.zeros((2, 2), np.float32)}
    with pytest.raises(ModelDamagedError, match=r"decoder\.weight"):
        convert_minilm(write_bert(tmp_path / "a", strange), tmp_path / "out.gguf")
    short = write_bert(tmp_path / "b")
    (short / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    with pytest.raises(ModelDamagedError, match=r"vocab\.txt has 2"):
        convert_minilm(short, tmp_path / "out.gguf")
    cut = write_bert(tmp_path / "c")
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-20_000])
    with pytest.raises(ModelDamagedError):
        convert_minilm(cut, tmp_path / "out.gguf")
    assert not (tmp_path / "out.gguf").exists()


# -- e5 ---------------------------------------------------------------------------------

PIECES = [b"<s>", b"<pad>", b"</s>", b"<unk>", "\u2581a".encode(), "\u4f60".encode(), b"<mask>"]


def packed_e5(seed: int = 0) -> tuple[bytes, dict[str, bytes]]:
    """A tiny model in the packed layout, and the data of its tensors."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (len(PIECES) + 2, HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (2, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for part in ("q", "k", "v", "ao", "fi", "fo"):
            rows, columns = {"fi": (WIDE, HIDDEN), "fo": (HIDDEN, WIDE)}.get(part, (HIDDEN, HIDDEN))
            shapes[f"l{layer}.{part}.w"] = (rows, columns)
            shapes[f"l{layer}.{part}.b"] = (rows,)
        for part in ("aln", "oln"):
            shapes[f"l{layer}.{part}.w"] = shapes[f"l{layer}.{part}.b"] = (HIDDEN,)
    data: dict[str, bytes] = {}
    kinds: dict[str, int] = {}
    for name, shape in shapes.items():
        values = rng.normal(0, 1, shape).astype(np.float32)
        kinds[name] = int(len(shape) == 2 and name not in {"emb.pos", "emb.type"})
        if kinds[name]:
            packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q4_0)
            data[name] = packed.tobytes()
        else:
            data[name] = values.tobytes()
    text = b"".join(PIECES)
    ends = np.cumsum([0, *map(len, PIECES)]).astype("<u4")
    head = b"E5S1" + struct.pack(
        "<I7if6i", 1, HIDDEN, LAYERS, 4, WIDE, len(PIECES) + 2, POSITIONS, 2, 1e-12, 32,
        len(PIECES), 0, 2, 1, 3,
    )  # fmt: skip
    head += struct.pack("<Q", len(text)) + ends.tobytes()
    head += np.linspace(0, -5, len(PIECES)).astype("<f4").tobytes() + text
    rule = struct.pack("<IBI", ord("\uff21"), 1, ord("A"))  # a wide letter
    head += struct.pack("<iI", 1, len(rule)) + rule + struct.pack("<i", len(data))
    entry_bytes = sum(2 + len(name) + struct.calcsize("<BIQQ") for name in data)
    table, offset = b"", len(head) + entry_bytes
    for name, raw in data.items():
        table += struct.pack("<H", len(name)) + name.encode()
        table += struct.pack("<BIQQ", kinds[name], int(np.prod(shapes[name])), offset, len(raw))
        offset += len(raw)
    return head + table + b"".join(data.values()), data


def test_e5_copies_blocks_byte_for_byte(tmp_path: Path) -> None:
    packed, data = packed_e5()
    (tmp_path / "in.bin").write_bytes(packed)
    convert_e5(tmp_path / "in.bin", tmp_path / "out.gguf")
    written = tensors_of(tmp_path / "out.gguf")
    assert len(written) == len(data)
    assert written["blk.1.ffn_up.weight"].tensor_type == gguf.GGMLQuantizationType.Q4_0
    assert written["blk.1.ffn_up.weight"].data.tobytes() == data["l1.fi.w"]
    row_bytes = HIDDEN // 32 * 18
    kept = data["emb.word"][: len(PIECES) * row_bytes]  # rows without a piece are dropped
    assert written["token_embd.weight"].data.tobytes() == kept
    assert written["token_embd_norm.bias"].data.tobytes() == data["emb.ln.b"]


def test_e5_refuses_damage(tmp_path: Path) -> None:
    packed, _ = packed_e5()
    source = tmp_path / "in.bin"
    for damaged in (b"E5S2" + packed[4:], packed[:60], packed[:-10], packed[: len(packed) // 20]):
        source.write_bytes(damaged)
        with pytest.raises(ModelDamagedError):
            convert_e5(source, tmp_path / "out.gguf")


# -- the normaliser ---------------------------------------------------------------------


def look_up(charsmap: bytes, text: bytes) -> tuple[int, bytes] | None:
    """Longest match of a Darts-clone trie, as its description has it; (length, replacement)."""
    (size,) = struct.unpack_from("<I", charsmap)
    units = np.frombuffer(charsmap, "<u4", size // 4, 4)
    replacements = charsmap[4 + size :]
    at, best = 0, None
    at ^= int(units[0]) >> 10
    for length, byte in enumerate(text, 1):
        at ^= byte
        unit = int(units[at])
        if unit & 0x8000_00FF != byte:
            break
        at ^= unit >> 10
        if unit >> 8 & 1:
            position = int(units[at]) & 0x7FFF_FFFF
            best = (length, replacements[position : replacements.index(b"\0", position)])
    return best


def test_the_map_finds_each_rule_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    alphabet = [97, 98, 0xE9, 0x4E00, 0x1F600]
    rules: dict[tuple[int, ...], tuple[int, ...]] = {}
    for _ in range(300):
        key = tuple(int(code) for code in rng.choice(alphabet, rng.integers(1, 5)))
        rules[key] = tuple(int(code) for code in rng.choice(alphabet, rng.integers(0, 3)))
    charsmap = build_charsmap(rules)
    for key, value in rules.items():
        text = "".join(map(chr, key))
        assert look_up(charsmap, text.encode()) == (
            len(text.encode()),
            "".join(map(chr, value)).encode(),
        )
    assert look_up(charsmap, b"z") is None


def test_compositions_join_what_was_decomposed() -> None:
    rules = compositions()
    for sequence, composed in (
        ("e\u0301", "\u00e9"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("\uff76\uff9e", "\u30ac"),
    ):
        assert rules[tuple(map(ord, sequence))] == tuple(map(ord, composed))
