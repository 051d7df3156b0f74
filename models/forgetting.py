"""What the models keep of people's texts in memory, and how to lose it."""

from __future__ import annotations

from reverie.models import rules, salient
from reverie.models.grammar import check_grammar


def clear_caches() -> None:
    """Forget every text that was met: after an erasure none may linger in a cache."""
    rules.clear_caches()
    salient.clear_caches()
    check_grammar.cache_clear()  # a grammar of spans holds the words of its turn
