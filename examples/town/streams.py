"""Random numbers that a seed and a name decide: one stream for each purpose and tick.

A stream is made anew from its name whenever it is needed, so that a run that is resumed, or that
branches off, draws what the uninterrupted one would have drawn, and one purpose never shifts the
numbers of another.
"""

from __future__ import annotations

import random
from hashlib import blake2b


def stream(seed: int, *names: str | int) -> random.Random:
    """Return the stream of a purpose, such as `stream(1, "gossip", 42)`; the same in every process
    (Python's own `hash` is not)."""
    text = "\x1f".join(map(str, (seed, *names)))
    digest = blake2b(text.encode(), digest_size=8).digest()
    return random.Random(int.from_bytes(digest, "little"))
