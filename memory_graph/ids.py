"""Names: worlds, users and the ids a caller may choose, checked once at the door.

An id is any Unicode text that UTF-8 can encode, 1 to 512 bytes, not only white space, without
control characters. Ids are compared byte for byte (no case folding, no normalisation): "Ann" and
"ann" are two users. They are keys of tables and never become a path, a query or a command.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import NamedTuple

from reverie.memory_graph.errors import InvalidIdError

MAX_ID_BYTES = 512
DEFAULT_WORLD = "default"


class Key(NamedTuple):
    """The partition key: who owns one memory graph."""

    world: str
    user_id: str


def check_id(value: object, what: str) -> str:
    """Return `value` if it is a usable id.

    Args:
        value: what the caller passed.
        what: the argument's name, for the message ("user_id", "world", "session").

    Raises:
        InvalidIdError: not a string; empty or blank; over 512 bytes of UTF-8; a control
            character (NUL among them) or a lone surrogate.
    """
    if not isinstance(value, str):
        msg = f"{what} must be a string, not {type(value).__name__}"
        raise InvalidIdError(msg, what=what)
    if not value or value.isspace():
        msg = f"{what} is empty; pass 1 to {MAX_ID_BYTES} bytes of text"
        raise InvalidIdError(msg, what=what)
    if len(value) > MAX_ID_BYTES:  # before encoding: a 10 MB id costs nothing
        msg = f"{what} has {len(value):,} characters; at most {MAX_ID_BYTES} bytes are allowed"
        raise InvalidIdError(msg, what=what)
    try:
        size_bytes = len(value.encode())
    except UnicodeEncodeError:
        msg = f"{what} holds a lone surrogate, which is no character; decode the input properly"
        raise InvalidIdError(msg, what=what) from None
    if size_bytes > MAX_ID_BYTES:
        msg = f"{what} has {size_bytes:,} bytes of UTF-8; at most {MAX_ID_BYTES} are allowed"
        raise InvalidIdError(msg, what=what)
    if not value.isprintable() and any(unicodedata.category(c) == "Cc" for c in value):
        msg = f"{what} holds a control character; use printable text"
        raise InvalidIdError(msg, what=what)
    return value


def check_key(world: object, user_id: object) -> Key:
    """Return the checked `Key`; raises `InvalidIdError` as `check_id` does."""
    return Key(check_id(world, "world"), check_id(user_id, "user_id"))


def key_hash(key: Key) -> bytes:
    """Return 16 bytes that stand for `key` in file names; lengths are hashed in, so that
    ("a", "bc") and ("ab", "c") differ."""
    world, user = key.world.encode(), key.user_id.encode()
    return blake2b(len(world).to_bytes(4, "big") + world + user, digest_size=16).digest()


def partition_of(key: Key, partitions: int) -> int:
    """Return the partition, 0 to `partitions` - 1, that owns `key`; the same in every process."""
    return int.from_bytes(key_hash(key)[:8], "big") % partitions
