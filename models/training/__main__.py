"""`python -m reverie.models.training --out FOLDER`: data, training, export, figures."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from msgspec.structs import replace

from reverie.models.adapters import shipped
from reverie.models.catalog import default_folder, model_path
from reverie.models.training import recipes
from reverie.models.training.deciding import NEARNESS
from reverie.models.training.export import write_adapter
from reverie.models.training.loop import Report
from reverie.models.training.tokens import Tokenizer

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    """Train what was asked for; a run that was ended goes on."""
    parser = argparse.ArgumentParser(prog="python -m reverie.models.training", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for all that is made")
    parser.add_argument("--task", choices=(*recipes.TASKS, "cross", "all"), default="all")
    parser.add_argument("--model", type=Path, help="the GGUF file to train for")
    parser.add_argument("--examples", type=int, help="fewer, for a trial")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model = given.model or default_folder() / MODEL_FILE
    if given.task != "span":
        for near in NEARNESS.values():
            model_path(near.embedder, default_folder())  # missing: better now than at the end
    started = time.monotonic()

    def report(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - started:6.0f} s  {line}\n")
        sys.stderr.flush()

    for task in recipes.TASKS:
        if given.task not in {task, "all"}:
            continue
        settings = recipes.RECIPES[task]
        if given.examples:
            settings = replace(settings, examples=given.examples)
        if task == "pair":
            choices = recipes.pair_choices(Tokenizer(model))
            settings = replace(settings, choices=choices)
        network = recipes.run(settings, model, given.out, report)
        matrices = {name: values.detach().numpy() for name, values in network.lora.items()}
        adapter = given.out / f"{task}.gguf"
        write_adapter(adapter, matrices, alpha=settings.alpha, name=f"reverie {task} adapter")
        report(f"wrote {adapter}")
        from reverie.models.training.card import write_card

        write_card(task, model, adapter, settings, report)
    if given.task in {"cross", "all"}:
        _cross(given.out, model, given.examples, report)


def _cross(out: Path, model: Path, examples: int | None, report: Report) -> None:
    """Train the cross-encoders and measure them beside the pair adapter: the one that was just
    trained, else the one that ships."""
    from reverie.models.training.card import write_cross_card
    from reverie.models.training.cross import SETTINGS, train_cross, write_cross

    used = [replace(s, examples=examples) if examples else s for s in SETTINGS]
    for settings in used:
        path = model_path(settings.embedder, default_folder())
        write_cross(train_cross(settings, path, out, report), settings.embedder, out)
    own = out / "pair.gguf"
    write_cross_card(out, model, own if own.exists() else shipped()["pair"], used, report)


if __name__ == "__main__":
    main()
