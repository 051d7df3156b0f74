"""An adapter as a file that llama.cpp loads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from numpy.typing import NDArray


def write_adapter(
    path: Path,
    matrices: Mapping[str, NDArray[np.float32]],
    *,
    alpha: float,
    name: str,
    architecture: str = "llama",
) -> None:
    """Write LoRA matrices as a GGUF adapter in 16 bits; a file of that name is replaced.

    Args:
        path: of the file.
        matrices: by "blk.N.X.weight.lora_a" (rank, columns) and ".lora_b" (rows, rank), float32.
        alpha: llama.cpp scales the product by alpha / rank.
        name: what it is, for people.
        architecture: of the model that it is for.
    """
    partial = path.with_suffix(".partial")
    writer = GGUFWriter(partial, architecture)
    writer.add_type("adapter")
    writer.add_name(name)
    writer.add_license("Apache-2.0")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for key in sorted(matrices):
        writer.add_tensor(key, np.ascontiguousarray(matrices[key].astype(np.float16)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, path)  # noqa: PTH105 - says that the old file goes
