"""Requests that a client may repeat: what identifies one, and the answer that it got before."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from reverie.actors import commands as c
from reverie.memory_graph.errors import RequestReusedError, StaleGenerationError
from reverie.memory_graph.ids import Key, key_hash
from reverie.memory_graph.store import Transaction


def fingerprint(command: c.Write) -> bytes:
    """Return what identifies a request: everything but its time and its vectors, and what is known
    of who joins a group, which may differ when the same request is made again."""
    if isinstance(command, c.Witness) and command.said:
        return _hashed(command.said)
    fields = msgspec.to_builtins(command)
    for name in ("at", "embedder", "dim", "vector", "vectors", "anew"):
        fields.pop(name, None)
    for draft in (fields.get("draft", {}), *fields.get("turns", ())):
        draft.pop("vector", None)
    return _hashed(fields)


def _hashed(fields: object) -> bytes:
    return blake2b(msgspec.msgpack.encode(fields, order="deterministic"), digest_size=16).digest()


def scope(command: c.Write) -> str:
    """Return what request ids are stored with: two users may choose the same one."""
    return _scope(command.key)


def _scope(key: Key) -> str:
    return f"{key_hash(key).hex()}:"


def mark_of(key: Key, request_id: str, said: str) -> c.Mark:
    """Return what a write that a user was told by is known by; see `Witness.said`."""
    return c.Mark(f"{_scope(key)}{request_id}", _hashed(said))


def result_of(txn: Transaction, command: c.Write, print_: bytes) -> bytes | None:
    """Return the result of an earlier request of the same id, or None.

    Raises:
        RequestReusedError, StaleGenerationError: as `Transaction.result_of`.
    """
    prefix = scope(command)
    try:
        return txn.result_of(f"{prefix}{command.request_id}", print_)
    except (RequestReusedError, StaleGenerationError) as exc:
        msg = exc.message.replace(prefix, "")
        raise type(exc)(msg, request_id=command.request_id) from None
