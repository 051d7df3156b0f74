"""The tokenizer of a GGUF file without llama.cpp, so that training depends on files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Tokenizer:
    """Byte-level BPE as the SmolLM2 files hold it; a test compares it with llama.cpp.

    Raises:
        ModelDamagedError: the file names another kind of tokenizer.
    """

    def __init__(self, path: Path) -> None:
        import tokenizers
        from gguf import GGUFReader

        from reverie.memory_graph.errors import ModelDamagedError

        fields = GGUFReader(path).fields

        def value(name: str) -> Any:
            return fields[f"tokenizer.ggml.{name}"].contents()

        if value("model") != "gpt2" or value("pre") != "smollm":
            msg = f"{path} has a tokenizer {value('model')}/{value('pre')}, not gpt2/smollm"
            raise ModelDamagedError(msg, path=str(path))
        vocabulary = {token: i for i, token in enumerate(value("tokens"))}
        merges = [tuple(merge.split(" ")) for merge in value("merges")]
        self._bpe = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
        self._bpe.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [
                tokenizers.pre_tokenizers.Digits(individual_digits=True),
                tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        self.end: int = value("eos_token_id")

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without special tokens."""
        ids: list[int] = self._bpe.encode(text).ids
        return ids
