"""How the small model's adapters are made: generated data, training on a CPU, export, figures.

    python -m reverie.models.training --out FOLDER [--task pair|span|cross|all]

needs the extra `training` (torch, tokenizers). `cases(split)` gives generated test cases without
it. Read `lexicon.py` and the TOML files (what data is made of), `pairs.py`, `spans.py` and
`decisions.py` (the data), `recipes.py` (the settings), `network.py` and `loop.py` (the training),
`encoder.py` and `cross.py` (the cross-encoders), `deciding.py` (thresholds), `card.py` (figures).
"""

from reverie.models.training.decisions import Case, cases
from reverie.models.training.lexicon import SPLITS, Split
from reverie.models.training.pairs import LABELS, Pair, pairs
from reverie.models.training.spans import SpanCase, spans

__all__ = ["LABELS", "SPLITS", "Case", "Pair", "SpanCase", "Split", "cases", "pairs", "spans"]
