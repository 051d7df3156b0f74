"""The whole state of one user in one answer, for an export that is of one moment.

The command is part of the union in commands.py; how a shard carries it out stands here too.
"""

from __future__ import annotations

import msgspec

from reverie.actors.bases import Read
from reverie.memory_graph.audit import AuditLine, lines
from reverie.memory_graph.snapshot import encode_snapshot
from reverie.memory_graph.state import UserMemory


class Whole(Read, frozen=True, kw_only=True, tag="whole"):
    """Answer: `WholeUser`."""


class WholeUser(msgspec.Struct, frozen=True):
    """A user at one moment: `state` is a snapshot, empty when there is no such user; `audit` tells
    what became of memories that no longer answer."""

    generation: int
    state: bytes
    audit: list[AuditLine]


def whole(memory: UserMemory, command: Whole, generation: int) -> WholeUser:
    """Carry out `Whole`."""
    if memory.seq == 0:
        return WholeUser(generation, b"", [])
    return WholeUser(generation, encode_snapshot(memory), lines(memory, command.now))
