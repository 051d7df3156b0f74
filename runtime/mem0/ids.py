"""Ids as mem0's callers see them: UUIDs that stay the same when a memory is changed.

The id of a memory that the facade has made is derived, and looked up without a table: a UUID of
version 8 that holds the number of the memory's first version (36 bits), a hash of world and owner
(62 bits), and a check over that version's text and time (24 bits), so that an id from before a
reset names nothing.
"""

from __future__ import annotations

import uuid
from hashlib import blake2b
from typing import NamedTuple

from reverie.memory_graph.ids import Key, key_hash
from reverie.memory_graph.views import Item

_NUMBER_BITS, _OWNER_BITS, _CHECK_BITS = 36, 62, 24
_VERSION = 8


class Derived(NamedTuple):
    """What a derived id holds."""

    number: int
    owner: int
    check: int


def owner_hash(world: str, owner: str) -> int:
    """Return the hash, 62 bits, that stands for a user of reverie in ids."""
    return int.from_bytes(key_hash(Key(world, owner))[8:]) >> 2


def check_of(item: Item) -> int:
    """Return the check over the first version of a memory."""
    seen = f"{item.recorded_at!r}\n{item.text}".encode()
    return int.from_bytes(blake2b(seen, digest_size=3).digest())


def derive(world: str, owner: str, first: Item) -> str:
    """Return the id of the memory whose first version is `first`."""
    number = int(first.id.removeprefix("m")) & ((1 << _NUMBER_BITS) - 1)
    bits = (number << (_OWNER_BITS + _CHECK_BITS)) | (owner_hash(world, owner) << _CHECK_BITS)
    bits |= check_of(first)
    # 48 bits, the version, 12 bits, the variant, 62 bits (RFC 9562)
    high, middle, low = bits >> 74, (bits >> 62) & 0xFFF, bits & ((1 << 62) - 1)
    return str(uuid.UUID(int=(high << 80) | (_VERSION << 76) | (middle << 64) | (2 << 62) | low))


def derived(public_id: object) -> Derived | None:
    """Return what an id holds, None for one that was not derived here."""
    try:
        value = uuid.UUID(str(public_id)).int
    except ValueError:
        return None
    if (value >> 76) & 0xF != _VERSION or (value >> 62) & 3 != 2:  # noqa: PLR2004 (RFC 9562)
        return None
    bits = ((value >> 80) << 74) | (((value >> 64) & 0xFFF) << 62) | (value & ((1 << 62) - 1))
    check = bits & ((1 << _CHECK_BITS) - 1)
    owner = (bits >> _CHECK_BITS) & ((1 << _OWNER_BITS) - 1)
    return Derived(bits >> (_OWNER_BITS + _CHECK_BITS), owner, check)


def row_id(public_id: str, number: int) -> str:
    """Return the id of the n-th row of a memory's history."""
    seed = blake2b(f"{public_id}/{number}".encode(), digest_size=16).digest()
    return str(uuid.UUID(bytes=seed, version=4))
