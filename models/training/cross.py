"""How the cross-encoders are made: settings, data, training; resumable and seeded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import torch
from torch.nn import functional

from reverie.models.cross_encoder import PairTokens
from reverie.models.training.encoder import PairEncoder
from reverie.models.training.export import write_adapter
from reverie.models.training.lexicon import Language
from reverie.models.training.loop import Report, batches, digest_of, load_state, save, schedule
from reverie.models.training.pairs import LABELS, pairs

DATA_SEED = 1
CHINESE_SHARE = 0.5
_SAVE_EVERY_STEPS = 200


class CrossSettings(msgspec.Struct, frozen=True):
    """What a cross-encoder is made with; written beside the adapters."""

    embedder: str  # its name in the catalogue
    languages: tuple[Language, ...]
    examples: int = 48000  # pairs that are drawn, of which those of `languages` are used
    epochs: float = 2.5
    batch: int = 16
    rate: float = 5e-4
    warm_steps: int = 200
    rank: int = 32
    alpha: float = 64.0
    seed: int = 7


SETTINGS = (
    CrossSettings("minilm", ("en",), epochs=4.0),
    CrossSettings("multilingual", ("en", "zh")),
)


class CrossExample(NamedTuple):
    """Both statements and the label, as a number of `LABELS`."""

    tokens: PairTokens
    label: int

    @property
    def ids(self) -> Sequence[int]:
        """The tokens, by whose number batches are made."""
        return self.tokens.ids


def cross_examples(settings: CrossSettings, path: Path) -> list[CrossExample]:
    """Return the examples of a run, with the tokens of the embedder at `path`."""
    from reverie.models.llama import LlamaEmbedder  # loads llama.cpp

    embedder = LlamaEmbedder(path)
    try:
        drawn = pairs("wide", settings.examples, seed=DATA_SEED, chinese_share=CHINESE_SHARE)
        return [
            CrossExample(embedder.pair_tokens(pair.old, pair.new), LABELS.index(pair.label))
            for pair in drawn
            if pair.language in settings.languages
        ]
    finally:
        embedder.close()


def train_cross(settings: CrossSettings, path: Path, folder: Path, report: Report) -> PairEncoder:
    """Train one cross-encoder, or go on where an earlier run of the same settings ended.

    Raises:
        ConfigError: the folder holds a run with other settings or examples.
    """
    folder.mkdir(parents=True, exist_ok=True)
    examples = cross_examples(settings, path)
    report(f"{settings.embedder}: {len(examples)} examples")
    encoder = PairEncoder(
        path, rank=settings.rank, alpha=settings.alpha, choices=len(LABELS), seed=settings.seed
    )
    parameters = encoder.parameters()
    optimiser = torch.optim.AdamW(parameters, lr=settings.rate, weight_decay=0.01)
    mark = digest_of(settings, [(example.ids, example.label) for example in examples])
    state = folder / f"{settings.embedder}.state.pt"
    done = _resume(state, mark, encoder, optimiser)
    whole = int(np.ceil(settings.epochs))
    order = [b for e in range(whole) for b in batches(examples, settings.batch, settings.seed, e)]
    order = order[: int(settings.epochs * len(order) / whole)]
    shown = 0.0
    for step, batch in enumerate(order):
        if step < done:
            continue
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * schedule(
                step, len(order), warm=settings.warm_steps, least=0.02
            )
        scores = encoder.scores([examples[i].tokens for i in batch])
        loss = functional.cross_entropy(scores, torch.tensor([examples[i].label for i in batch]))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        shown = 0.98 * shown + 0.02 * float(loss.detach()) if shown else float(loss.detach())
        if (step + 1) % _SAVE_EVERY_STEPS == 0 or step + 1 == len(order):
            report(f"{settings.embedder}: step {step + 1} of {len(order)}, loss {shown:.3f}")
            save(state, {"mark": mark, "step": step + 1, "encoder": encoder.state(),
                         "optimiser": optimiser.state_dict()})  # fmt: skip
    return encoder


def _resume(path: Path, mark: str, encoder: PairEncoder, optimiser: torch.optim.Optimizer) -> int:
    saved = load_state(path, mark)
    if saved is None:
        return 0
    encoder.restore(saved["encoder"])
    optimiser.load_state_dict(saved["optimiser"])
    step: int = saved["step"]
    return step


def write_cross(encoder: PairEncoder, name: str, folder: Path) -> None:
    """Write `NAME.gguf` and `NAME.npz` into a folder; files of those names are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    matrices = {key: values.detach().numpy() for key, values in encoder.lora.items()}
    title = f"reverie cross-encoder of {name}"
    write_adapter(
        folder / f"{name}.gguf", matrices, alpha=encoder.alpha, name=title, architecture="bert"
    )
    np.savez(folder / f"{name}.npz", **encoder.head.arrays())  # type: ignore[arg-type]
