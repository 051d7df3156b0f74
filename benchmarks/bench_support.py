"""What the benchmarks share: a synthetic user, vectors without a model, and how to report."""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from reverie.models.protocol import EmbedderInfo, TextRole

Float32 = NDArray[np.float32]

VOCABULARY = 20_000
WORDS_PER_TEXT = 12
TOPICS = 500
NAMES = ("Ana", "Bo", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hana", "Oslo", "Madrid", "Lima")


class SyntheticEmbedder:
    """Unit vectors that a text alone decides: a topic's centre plus noise, like real embeddings,
    which cluster. Costs about 10 us a text, so that what is measured is not the model."""

    def __init__(self, dim: int = 384) -> None:
        rng = np.random.default_rng(0)
        self._dim = dim
        self._centres = _unit(rng.standard_normal((TOPICS, dim)).astype(np.float32))

    @property
    def info(self) -> EmbedderInfo:
        """Identity and shape of the vectors."""
        return EmbedderInfo("synthetic:1", self._dim)

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:  # noqa: ARG002
        """Return float32 (len(texts), dim), rows of norm 1."""
        rows = np.empty((len(texts), self._dim), np.float32)
        for i, text in enumerate(texts):
            seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
            noise = np.random.Generator(np.random.SFC64(seed))
            rows[i] = self._centres[seed % TOPICS]
            rows[i] += 0.06 * noise.standard_normal(self._dim, np.float32)
        return _unit(rows) if len(texts) else rows

    def count_tokens(self, text: str) -> int:
        """Return the number of words."""
        return len(text.split())

    def unknown_share(self, text: str) -> float:  # noqa: ARG002
        """Return 0: it knows every word."""
        return 0.0

    def close(self) -> None:
        """Do nothing."""


def _unit(rows: Float32) -> Float32:
    unit: Float32 = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def make_texts(count: int, seed: int = 0) -> list[str]:
    """Return texts of a name, twelve words as frequent as in a language (Zipf), and a number."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, VOCABULARY + 1)
    words = rng.choice(VOCABULARY, (count, WORDS_PER_TEXT), p=share / share.sum())
    return [
        f"{NAMES[i % len(NAMES)]} {' '.join(f'w{w}' for w in row)} n{seed}x{i}"
        for i, row in enumerate(words)
    ]


def make_questions(count: int, seed: int = 1) -> list[str]:
    """Return questions of five words and a name."""
    return [" ".join(text.split()[:6]) for text in make_texts(count, seed)]


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes by the wall clock."""
    gc.collect()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def resident_bytes() -> int:
    """Return the resident memory of this process now."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return peak_bytes()


def peak_bytes() -> int:
    """Return the highest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report(title: str, rows: Sequence[tuple[str, str, str, bool | None]]) -> bool:
    """Print (what, measured, bound, kept) rows; return whether every bound is kept."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    table = Table("what", "measured", "bound", "", title=title)
    for what, measured, bound, kept in rows:
        table.add_row(what, measured, bound, {True: "ok", False: "MISSED", None: ""}[kept])
    console = Console(width=110)
    console.print(table)
    console.print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, {cpu}, "
        f"load {os.getloadavg()[0]:.1f}",
        highlight=False,
    )
    return all(kept is not False for *_, kept in rows)
