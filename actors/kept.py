"""Answers to requests that are more than one write of one user: a save slot, an erasure, a burial.

They are kept beside the answers to writes, but under no user, and so outlive an erasure: what is
kept holds hashes instead of names, and the answers are such as name nobody.
"""

from __future__ import annotations

import msgspec

from reverie.actors.bases import Command
from reverie.memory_graph.store import Partition


class Mark(msgspec.Struct, frozen=True):
    """What identifies a request: a hash of its id and of where that counts, and a hash of what the
    request says."""

    request: str
    print: bytes

    def of_rows(self) -> Mark:
        """Return the mark of that part of a request which erases the rows of its user."""
        return Mark(f"{self.request}-rows", self.print)


class Answered(Command, frozen=True, kw_only=True, tag="answered"):
    """Answer: what was kept for a request, or None. `world` and `user_id` say in which partition;
    there need not be such a user. RequestReusedError: it was another request."""

    mark: Mark


class KeepAnswer(Command, frozen=True, kw_only=True, tag="keep_answer"):
    """Keep the answer to a request. Answer: bool, False if one was kept before, which stays."""

    mark: Mark
    answer: bytes


def answered(partition: Partition, command: Answered) -> bytes | None:
    """Carry out `Answered`; a transaction that changes nothing, so that only the owner answers."""
    with partition.write() as txn:
        return txn.result_of(command.mark.request, command.mark.print)


def keep_answer(partition: Partition, command: KeepAnswer) -> bool:
    """Carry out `KeepAnswer`."""
    mark = command.mark
    with partition.write() as txn:
        if txn.result_of(mark.request, mark.print) is not None:
            return False
        txn.keep_result(mark.request, None, mark.print, command.answer)
    return True
