"""Read and check the header of a GGUF file before llama.cpp sees it.

llama.cpp aborts the whole process on some damaged files, and gguf's own reader needs 15 s for a
vocabulary of 250,000 pieces. This one walks the header once, keeps the plain values, and requires
every tensor to lie inside the file. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import TypeAlias

import gguf
import msgspec

from reverie.memory_graph.errors import ModelDamagedError

Value: TypeAlias = int | float | bool | str

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))  # for struct
_MAX_DIMENSIONS = 4
_U64 = struct.Struct("<Q")


class GgufHeader(msgspec.Struct, frozen=True):
    """The plain values of a GGUF file; of arrays (the vocabulary) only the length is kept."""

    values: dict[str, Value]
    array_lengths: dict[str, int]

    @property
    def architecture(self) -> str:
        """The name of the architecture, for example "bert" or "llama"."""
        return str(self.values["general.architecture"])

    def integer(self, key: str) -> int | None:
        """Return the integer at `key`, or None; a leading "*." stands for the architecture."""
        value = self.values.get(key.replace("*", self.architecture, 1))
        return value if isinstance(value, int) else None

    @property
    def name(self) -> str:
        """The name of the model in lower case without spaces, or its architecture."""
        name = str(self.values.get("general.name") or self.architecture)
        return "-".join(name.lower().replace("/", " ").replace(":", " ").split())

    @property
    def file_type(self) -> str:
        """How the weights are stored, for example "f16" or "q4_0"."""
        number = self.integer("general.file_type")
        names = {kind.value: kind.name for kind in gguf.LlamaFileType}
        label = names.get(number, "unknown") if number is not None else "unknown"
        return label.removeprefix("ALL_").removeprefix("MOSTLY_").lower()


class _Walker:
    """Takes values off the mapped file; every read is bounded by its length."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def skip(self, count: int) -> int:
        """Move on by `count` bytes; return where they begin."""
        begin = self.at
        if count > len(self.data) - begin:
            msg = f"it ends inside its header, at {len(self.data):,} bytes"
            raise ValueError(msg)
        self.at = begin + count
        return begin

    def u64(self) -> int:
        return int(_U64.unpack_from(self.data, self.skip(8))[0])

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def take(self, count: int) -> bytes:
        begin = self.skip(count)
        return self.data[begin : self.at]

    def text(self) -> str:
        return self.take(self.u64()).decode("utf-8", "replace")

    def value(self, kind: int) -> Value:
        """Take a string or number."""
        if kind == _STRING:
            return self.text()
        layout = "<" + _SCALARS[kind]
        value: Value = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value

    def skip_array(self, *, distinct: bool = False) -> int:
        """Step over an array; return its length. `distinct`: refuse equal strings."""
        inner, count = self.u32(), self.u64()
        if inner == _STRING:
            seen: set[bytes] = set()
            for number in range(count):
                text = self.take(self.u64())
                if distinct:
                    seen.add(text)
                    if len(seen) == number:
                        msg = f"its vocabulary has {text!r} twice"
                        raise ValueError(msg)
        else:
            self.skip(count * struct.calcsize("<" + _SCALARS[inner]))
        return count


def read_header(path: Path) -> GgufHeader:
    """Return the header of the GGUF file at `path`.

    Raises:
        ModelDamagedError: not a GGUF file, cut short, or a value that cannot be.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            header = _walk(_Walker(data))
    except (ValueError, KeyError, struct.error) as error:
        reason = f"unknown value type {error}" if isinstance(error, KeyError) else str(error)
        msg = f"{path} is not a usable GGUF model: {reason}"
        raise ModelDamagedError(msg, path=str(path)) from error
    return header


def _walk(walker: _Walker) -> GgufHeader:
    if walker.take(4) != _MAGIC:
        msg = "it does not begin with GGUF"
        raise ValueError(msg)
    version = walker.u32()
    if version not in _VERSIONS:
        msg = f"it has format version {version}; {' and '.join(map(str, _VERSIONS))} are known"
        raise ValueError(msg)
    tensors, pairs = walker.u64(), walker.u64()
    header = GgufHeader({}, {})
    for _ in range(pairs):
        key, kind = walker.text(), walker.u32()
        if kind == _ARRAY:
            is_vocabulary = key == "tokenizer.ggml.tokens"  # llama.cpp aborts on a double
            header.array_lengths[key] = walker.skip_array(distinct=is_vocabulary)
        else:
            header.values[key] = walker.value(kind)
    if "general.architecture" not in header.values:
        msg = "it names no architecture"
        raise ValueError(msg)
    end = max((_tensor_end(walker) for _ in range(tensors)), default=0)
    alignment = header.integer("general.alignment") or 32
    needed = -(-walker.at // alignment) * alignment + end
    if not tensors or needed > len(walker.data):
        msg = f"it has {len(walker.data):,} bytes, but its tensors need {needed:,}"
        raise ValueError(msg)
    _check_shape(header)
    _check_special_tokens(header)
    return header


def _tensor_end(walker: _Walker) -> int:
    """Take one tensor's entry; return where its data ends, from the start of the data section."""
    name = walker.text()
    dimensions = walker.u32()
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        msg = f"tensor {name!r} has {dimensions} dimensions"
        raise ValueError(msg)
    elements = math.prod(walker.u64() for _ in range(dimensions))
    kind, offset = walker.u32(), walker.u64()
    block, block_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    return offset + elements // block * block_bytes


def _check_shape(header: GgufHeader) -> None:
    """Refuse sizes by which llama.cpp would divide or allocate without looking."""
    sizes = {}
    for key in ("block_count", "embedding_length", "attention.head_count", "context_length"):
        size = header.integer(f"*.{key}")
        if size is not None and not 0 < size < 1 << 24:
            msg = f"{key} is {size}"
            raise ValueError(msg)
        sizes[key] = size
    width, heads = sizes["embedding_length"], sizes["attention.head_count"]
    if width and heads and width % heads:
        msg = f"an embedding of {width} does not divide into {heads} heads"
        raise ValueError(msg)


def _check_special_tokens(header: GgufHeader) -> None:
    """Refuse special tokens outside the vocabulary; llama.cpp takes them as array indices."""
    count = header.array_lengths.get("tokenizer.ggml.tokens", 0)
    for key, value in header.values.items():
        is_id = key.startswith("tokenizer.ggml.") and key.endswith("_token_id")
        if is_id and not (isinstance(value, int) and 0 <= value < count):
            msg = f"{key} is {value!r}, but the vocabulary has {count:,} tokens"
            raise ValueError(msg)
    if header.values.get("tokenizer.ggml.model") == "bert":  # whose default ids are of one model
        for name in ("bos", "seperator", "unknown"):  # spelt so in the format
            if f"tokenizer.ggml.{name}_token_id" not in header.values:
                msg = f"it names no {name} token"
                raise ValueError(msg)
