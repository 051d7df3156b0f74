"""From which probability on an answer about a pair is followed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reverie.memory_graph.errors import ConfigError


class PairThresholds(msgspec.Struct, frozen=True):
    """From which probability on an answer of the pair classifier is followed, 0 to 1.

    `lead`: by how much the log-odds of an UPDATE or DELETE of one memory must lead over those of
    any other: 0.9999 is far surer than 0.97.
    The defaults are strict; the JSON beside the adapter holds what was calibrated.
    """

    same: float = 0.9
    replaced: float = 0.95
    ended: float = 0.95
    lead: float = 0.0

    def of(self, choice: str) -> float:
        """Return the threshold of one of `PAIR_CHOICES`; what is unrelated needs none."""
        return {" same": self.same, " replaced": self.replaced, " ended": self.ended}.get(
            choice, 0.0
        )

    def require_in_range(self, source: str) -> None:
        """Raise ConfigError for a probability that is not within 0 to 1 or a lead below 0."""
        shares = (self.same, self.replaced, self.ended)
        if not all(0.0 <= share <= 1.0 for share in shares) or not self.lead >= 0.0:
            msg = f"a threshold in {source} is not within 0 to 1, or its lead is below 0"
            raise ConfigError(msg, setting="adapters")


class _Card(msgspec.Struct, frozen=True):
    """What is read of the JSON beside an adapter; its other fields are for people."""

    thresholds: PairThresholds = PairThresholds()


def read_thresholds(adapter: Path) -> PairThresholds:
    """Return the thresholds that lie beside an adapter (`pair.gguf`, `pair.json`).

    Raises:
        ConfigError: the file cannot be read, or holds a probability that is not within 0 to 1, or
            a lead below 0.
    """
    card = adapter.with_suffix(".json")
    try:
        found = msgspec.json.decode(card.read_bytes(), type=_Card).thresholds
    except (OSError, msgspec.DecodeError) as exc:
        msg = f"the card of the adapter {adapter.name} cannot be read: {exc}"
        raise ConfigError(msg, setting="adapters").because(exc) from exc
    found.require_in_range(card.name)
    return found
