"""Extraction and decisions by rules: English and Chinese, no model, microseconds to milliseconds.

`RulesExtractor` and `RulesDecider` implement `Extractor` and `Decider` of `models/protocol.py`.
Read `clauses.py` (what a turn says), `english.py` and `chinese.py` (what a clause claims),
`compare.py` (how two claims stand to each other).
"""

from reverie.models.rules.claims import RELATION_PREDICATES
from reverie.models.rules.decide import RulesDecider
from reverie.models.rules.extract import RulesExtractor
from reverie.models.rules.reading import claims_of
from reverie.models.rules.text import forget_texts, key_words

__all__ = ["RELATION_PREDICATES", "RulesDecider", "RulesExtractor", "clear_caches"]


def clear_caches() -> None:
    """Forget every statement that was read: after an erasure none may linger in a cache."""
    claims_of.cache_clear()
    key_words.cache_clear()
    forget_texts()
