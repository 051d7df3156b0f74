"""LoRA adapters, made by `reverie.models.training`: here for the default language model, in
`cross/` for the usual embedders.

`MODEL_CARD.md` tells what they were made of and how well they do; the JSON beside each holds its
thresholds and figures.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
CROSS_FOLDER = FOLDER / "cross"


def shipped() -> dict[str, Path]:
    """Return the adapters of this package by the names under which calls ask for them."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.gguf"))}
