"""Cross-encoders: an embedder reads a known and a new statement at once, with a LoRA adapter.

Its states are averaged over either statement and a small network tells from both means how the new
one stands to the known. The form of the head, of two means u and v: u, v, |u - v|, u * v, as in
"Sentence-BERT" (Reimers and Gurevych 2019), here of states that have seen the other statement.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import structlog

from reverie.memory_graph.errors import ConfigError, ModelDamagedError, ModelFailedError
from reverie.models.adapters import CROSS_FOLDER
from reverie.models.prompts import PAIR_CHOICES
from reverie.models.protocol import Float32
from reverie.models.thresholds import PairThresholds

MAX_STATEMENT_TOKENS = 64  # longer statements are cut, in training too
MAX_PAIR_TOKENS = 2 * MAX_STATEMENT_TOKENS + 4  # with what is around them
log = structlog.get_logger(__name__)
_EPSILON = 1e-5  # of the normalisation of the means
_CARD = "cross.json"


class CrossAdapter(NamedTuple):
    """The files that make an embedder a cross-encoder."""

    lora: Path
    head: Path
    share: float = 1.0  # of its word beside a language model's
    scripts: tuple[str, ...] = ("LATIN", "CJK")  # that it has learned to read; see `reads`


class PairTokens(NamedTuple):
    """Two statements as one sequence; `first` and `second` are the places of their tokens."""

    ids: list[int]
    first: slice
    second: slice

    @property
    def is_cut(self) -> bool:
        """Whether a statement fills its room, so that more of it may have been cut."""
        return any(p.stop - p.start >= MAX_STATEMENT_TOKENS for p in (self.first, self.second))


def lay_out(
    old: Sequence[int], new: Sequence[int], around: Sequence[int], *, twice: bool
) -> PairTokens:
    """Return begin, old, end, new, end.

    Args:
        old: tokens of the known statement, cut at `MAX_STATEMENT_TOKENS`.
        new: those of the new one, likewise.
        around: the tokens that begin and end a sequence.
        twice: put two end tokens between the statements, as XLM-R was made with.
    """
    begin, end = around[:1], around[-1:]
    old, new = old[:MAX_STATEMENT_TOKENS], new[:MAX_STATEMENT_TOKENS]
    between = [*end, *end] if twice else [*end]
    start = len(begin) + len(old) + len(between)
    return PairTokens(
        [*begin, *old, *between, *new, *end],
        slice(len(begin), len(begin) + len(old)),
        slice(start, start + len(new)),
    )


def reads(text: str, scripts: Sequence[str]) -> bool:
    """Return whether all letters of `text` are of some scripts, by the first words of their names
    in Unicode, such as "LATIN" or "CJK"."""
    letters = {char for char in text if char.isalpha()}
    return all(unicodedata.name(char, "").partition(" ")[0] in scripts for char in letters)


class Head(msgspec.Struct, frozen=True):
    """Two linear layers with a GELU between them, float32."""

    hidden: Float32  # (width, 4 * dim)
    hidden_bias: Float32
    out: Float32  # (choices, width)
    out_bias: Float32

    def weigh(self, rows: Float32, laid: PairTokens) -> list[float]:
        """Return the probabilities of the choices.

        Args:
            rows: the states of the tokens, float32 (tokens, dim).
            laid: which of them belong to either statement; one without tokens counts as zeros.

        Raises:
            ModelFailedError: the states do not fit the head, or are not finite.
        """
        if 4 * rows.shape[1] != self.hidden.shape[1]:
            msg = f"a head for {self.hidden.shape[1] // 4} dimensions got {rows.shape[1]}"
            raise ModelFailedError(msg)
        u, v = (_normed(rows[places]) for places in (laid.first, laid.second))
        features = np.concatenate([u, v, np.abs(u - v), u * v])
        inner = self.hidden @ features + self.hidden_bias
        scores = (self.out @ _gelu(inner) + self.out_bias).astype(np.float64)
        powers = np.exp(scores - scores.max())
        shares: list[float] = (powers / powers.sum()).tolist()
        if not np.isfinite(powers).all():
            msg = "the cross-encoder returned a number that is not finite"
            raise ModelFailedError(msg)
        return shares


def _normed(rows: Float32) -> Float32:
    """Return the mean of rows with mean 0 and variance 1."""
    if not len(rows):
        return np.zeros(rows.shape[1], np.float32)
    mean = rows.mean(0)
    centred = mean - mean.mean()
    normed: Float32 = centred / np.sqrt((centred * centred).mean() + _EPSILON)
    return normed


def _gelu(x: Float32) -> Float32:
    """Gaussian error linear units, x * Phi(x) (Hendrycks and Gimpel 2016)."""
    phi = [0.5 * (1.0 + math.erf(value / math.sqrt(2.0))) for value in x.tolist()]
    return x * np.array(phi, np.float32)


def read_head(path: Path) -> Head:
    """Return the head that lies in a `.npz` file.

    Raises:
        ModelDamagedError: it cannot be read, or its arrays do not fit one another.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            head = Head(
                **{name: arrays[name].astype(np.float32) for name in Head.__struct_fields__}
            )
        fits = (
            head.hidden.ndim == head.out.ndim == 2  # noqa: PLR2004 - matrices
            and head.hidden.shape[0] == head.hidden_bias.size == head.out.shape[1]
            and head.out.shape[0] == head.out_bias.size == len(PAIR_CHOICES)
            and all(np.isfinite(getattr(head, name)).all() for name in Head.__struct_fields__)
        )
    except Exception as exc:  # a damaged archive raises whatever its bytes lead to
        msg = f"the head {path} cannot be read: {exc}"
        raise ModelDamagedError(msg, path=str(path)).because(exc) from exc
    if not fits:
        msg = f"the arrays of the head {path} do not fit one another, or are not finite"
        raise ModelDamagedError(msg, path=str(path))
    return head


class CrossCard(msgspec.Struct, frozen=True):
    """What is read of `cross.json`; its other fields are for people.

    Attributes:
        bases: SHA-256 of the embedders' files, by their names in the catalogue.
        shares: of the cross-encoders in the mean of the log-probabilities, by the same names; the
            rest is the language model's.
        scripts: that they have learned to read, likewise; see `reads`.
        thresholds: of both together.
    """

    bases: dict[str, str]
    shares: dict[str, float]
    scripts: dict[str, tuple[str, ...]]
    thresholds: PairThresholds


def read_cross_card(folder: Path = CROSS_FOLDER) -> CrossCard:
    """Return the card of the cross-encoders in a folder.

    Raises:
        ConfigError: it cannot be read, or a share is missing or not within 0 to 1.
    """
    try:
        card = msgspec.json.decode((folder / _CARD).read_bytes(), type=CrossCard)
    except (OSError, msgspec.DecodeError) as exc:
        msg = f"the card {_CARD} of the cross-encoders cannot be read: {exc}"
        raise ConfigError(msg, setting="adapters").because(exc) from exc
    if not all(0.0 < card.shares.get(name, 0.0) <= 1.0 for name in card.bases):
        msg = f"a share in {_CARD} is missing or not within 0 to 1"
        raise ConfigError(msg, setting="adapters")
    card.thresholds.require_in_range(_CARD)
    return card


def cross_adapter(digest: str, folder: Path = CROSS_FOLDER) -> CrossAdapter | None:
    """Return the adapter for the embedder whose file has a SHA-256, or None.

    An embedder works without it, too: where the card or a file of the adapter cannot be read, that
    is logged and the answer is None.
    """
    try:
        card = read_cross_card(folder)
    except ConfigError as exc:
        log.warning("cross-encoders are not used", error=str(exc))
        return None
    for name, base in card.bases.items():
        if base == digest:
            files = (folder / f"{name}.gguf", folder / f"{name}.npz")
            if all(file.is_file() for file in files):
                return CrossAdapter(*files, card.shares[name], card.scripts.get(name, ()))
            log.warning("a cross-encoder is not whole, and not used", name=name, at=str(folder))
    return None


def mixed(
    rows: Sequence[Sequence[float]], others: Sequence[Sequence[float]], share: float
) -> list[list[float]]:
    """Return the means of log-probabilities as probabilities; `share` is that of `others`."""
    one, two = (np.log(np.maximum(np.array(r, np.float64), 1e-6)) for r in (rows, others))
    powers = np.exp((1.0 - share) * one + share * two)
    shares: list[list[float]] = (powers / powers.sum(1, keepdims=True)).tolist()
    return shares
