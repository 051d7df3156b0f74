"""The training loop: lower layers once, then only the upper ones; resumable, seeded.

A folder holds `TASK.hidden.pt` (what the lower layers give for each example) and `TASK.state.pt`
(LoRA, optimiser, step). A run that was ended goes on from them; with other settings or data it
refuses to.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import torch
from torch.nn import functional

from reverie.memory_graph.errors import ConfigError
from reverie.models.training.network import Network

_SAVE_EVERY_STEPS = 50
_PAD = 0


class Example(msgspec.Struct, frozen=True):
    """Token ids and what must follow some of them: after position p comes token t."""

    ids: tuple[int, ...]
    answers: tuple[tuple[int, int], ...]


class Settings(msgspec.Struct, frozen=True):
    """What a run is made with; all of it is written beside the adapter."""

    task: str
    examples: int
    rank: int = 16
    alpha: float = 32.0
    layers: int = 10  # with LoRA, from the top
    epochs: int = 2
    batch: int = 16
    rate: float = 1e-3
    smoothing: float = 0.05
    seed: int = 7
    choices: tuple[int, ...] = ()  # tokens that the answers are among; empty: those of the batch
    stop: int = 0  # ends after so many steps of the schedule; 0 for its end


Report = Callable[[str], None]


def train(
    network: Network, examples: Sequence[Example], settings: Settings, folder: Path, report: Report
) -> None:
    """Train the LoRA matrices of `network` in place.

    Args:
        network: with LoRA in its upper layers.
        examples: in any order; the order of a run depends on the seed alone.
        settings: of the run.
        folder: for the state of the run; made when missing.
        report: called with a line now and then.

    Raises:
        ConfigError: the folder holds a run with other settings or examples.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = _mark(examples, settings)
    hidden = _lower_states(network, examples, folder / f"{settings.task}.hidden.pt", mark, report)
    parameters = list(network.lora.values())
    optimiser = torch.optim.AdamW(parameters, lr=settings.rate, weight_decay=0.01)
    state = folder / f"{settings.task}.state.pt"
    done = _resume(state, mark, network, optimiser)
    order = [
        b
        for e in range(settings.epochs)
        for b in batches(examples, settings.batch, settings.seed, e)
    ]
    shown = 0.0
    end = settings.stop or len(order)
    for step, batch in enumerate(order[:end]):
        if step < done:
            continue
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * schedule(step, len(order))
        loss = _loss(network, [examples[i] for i in batch], [hidden[i] for i in batch], settings)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        shown = float(loss.detach()) if not shown else 0.95 * shown + 0.05 * float(loss.detach())
        if (step + 1) % _SAVE_EVERY_STEPS == 0 or step + 1 == end:
            report(f"{settings.task}: step {step + 1} of {end}, loss {shown:.3f}")
            save(state, {"mark": mark, "step": step + 1, "lora": network.lora,
                          "optimiser": optimiser.state_dict()})  # fmt: skip


def _mark(examples: Sequence[Example], settings: Settings) -> str:
    fields = msgspec.structs.asdict(settings)
    del fields["stop"]  # a run may be prolonged
    return digest_of(fields, examples)


def digest_of(fields: object, examples: Sequence[object]) -> str:
    """Return what a run is known by: a digest of its settings and examples."""
    digest = hashlib.sha256(msgspec.json.encode(fields))
    digest.update(msgspec.json.encode(list(examples)))
    return digest.hexdigest()


class _Sized(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


def batches(examples: Sequence[_Sized], size: int, seed: int, epoch: int) -> list[list[int]]:
    """Return batches of similar length, so that little is padded, in a shuffled order."""
    rng = random.Random(f"{seed} {epoch}")  # noqa: S311 - seeded on purpose
    order = list(range(len(examples)))
    rng.shuffle(order)
    pool = size * 32
    found = []
    for start in range(0, len(order), pool):
        part = sorted(order[start : start + pool], key=lambda i: len(examples[i].ids))
        found += [part[i : i + size] for i in range(0, len(part), size)]
    rng.shuffle(found)
    return found


def schedule(step: int, steps: int, *, warm: int = 0, least: float = 0.05) -> float:
    """Return the share of the rate at a step: it rises for `warm` steps (0: a twentieth of all),
    then falls to `least` along a cosine."""
    warm = warm or max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return least + (1 - least) * 0.5 * (
        1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))
    )


def padded(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return rows of different lengths as one tensor, filled up on the right."""
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=_PAD)


def _lower_states(
    network: Network, examples: Sequence[Example], path: Path, mark: str, report: Report
) -> list[torch.Tensor]:
    if (saved := load_state(path, mark)) is not None:
        states: list[torch.Tensor] = saved["states"]
        return states
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].ids))
    found: list[torch.Tensor] = [torch.empty(0)] * len(examples)
    size = 32
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        ids = padded([torch.tensor(examples[i].ids) for i in rows])
        with torch.no_grad():
            states_of = network.run(network.embed(ids), network.lower())
        for row, i in enumerate(rows):
            found[i] = states_of[row, : len(examples[i].ids)].to(torch.bfloat16).clone()
        if start // size % 25 == 0:
            report(f"lower layers: {start} of {len(order)} examples")
    save(path, {"mark": mark, "states": found})
    return found


def _loss(
    network: Network,
    examples: Sequence[Example],
    hidden: Sequence[torch.Tensor],
    settings: Settings,
) -> torch.Tensor:
    states = network.run(padded([h.float() for h in hidden]), network.upper())
    rows = [row for row, e in enumerate(examples) for _ in e.answers]
    at = [position for e in examples for position, _ in e.answers]
    wanted = [token for e in examples for _, token in e.answers]
    tokens = settings.choices or sorted({t for e in examples for t in e.ids} | set(wanted))
    place = {token: i for i, token in enumerate(tokens)}
    scores = network.logits(states[rows, at], tokens)
    target = torch.tensor([place[token] for token in wanted])
    return functional.cross_entropy(scores, target, label_smoothing=settings.smoothing)


def scores(network: Network, examples: Sequence[Example], tokens: Sequence[int]) -> torch.Tensor:
    """Return the scores of `tokens` after the last id of each example, (examples, tokens)."""
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].ids))
    result = torch.zeros(len(examples), len(tokens))
    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        ids = padded([torch.tensor(examples[i].ids) for i in rows])
        with torch.no_grad():
            states = network.run(network.embed(ids), [*network.lower(), *network.upper()])
            last = [len(examples[i].ids) - 1 for i in rows]
            result[rows] = network.logits(states[range(len(rows)), last], tokens)
    return result


def load_state(path: Path, mark: str) -> dict[str, Any] | None:
    """Return what `save` wrote, None where there is nothing.

    Raises:
        ConfigError: it belongs to another run than `mark`, the digest of settings and examples.
    """
    if not path.exists():
        return None
    saved: dict[str, Any] = torch.load(path, weights_only=True)
    if saved["mark"] != mark:
        msg = f"{path} belongs to a run with other settings; choose another folder"
        raise ConfigError(msg, path=str(path))
    return saved


def _resume(path: Path, mark: str, network: Network, optimiser: Any) -> int:
    saved = load_state(path, mark)
    if saved is None:
        return 0
    with torch.no_grad():
        for name, values in saved["lora"].items():
            network.lora[name].copy_(values)
    optimiser.load_state_dict(saved["optimiser"])
    step: int = saved["step"]
    return step


def save(path: Path, value: dict[str, Any]) -> None:
    """Write beside and rename: a run that is ended while it saves loses nothing."""
    partial = path.with_suffix(".partial")
    torch.save(value, partial)
    os.replace(partial, path)  # noqa: PTH105 - says that the old file goes
