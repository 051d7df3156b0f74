"""What can be asked of a shard as a whole; part of the union in commands.py."""

from __future__ import annotations

import msgspec

PAGE_BYTES = 8 * 1024 * 1024  # of the images in one answer, unless one of them is larger


class ListUsers(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="users"):
    """Answer: list of (world, user id) that this shard owns, sorted. With `partial`, without
    those of partitions that are damaged or gone, which otherwise fail the command."""

    world: str | None = None
    partial: bool = False


class ListPending(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="pending"):
    """Answer: list of `PendingUser`; with `quarantined`, those in quarantine instead. With
    `partial`, without those of partitions that are damaged or gone."""

    world: str | None = None
    quarantined: bool = False
    limit: int = 1000
    partial: bool = False


class Slot(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="slot"):
    """Pin, rewind or unpin a world's users in this shard, or erase those that the operation
    imported. Idempotent per `operation`. Answer: number of users."""

    action: str  # "pin", "rewind", "unpin", "unfork"
    world: str
    tag: str
    operation: str


class ExportSlot(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="export"):
    """Answer: `ImagePage` of a pinned world's users in this shard, from that after `after` in
    partition number `partition` on; about `max_bytes` of them, with `digests` also those of their
    states."""

    world: str
    tag: str
    partition: int = 0
    after: str = ""
    max_bytes: int = PAGE_BYTES
    digests: bool = False


class Positions(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="positions"):
    """Answer: list of (user id, generation, seq), where each user of a world in this shard stood
    under a tag, or stands now if it is None; equal ones are of the same state."""

    world: str
    tag: str | None = None


class Scrub(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="scrub"):
    """Finish an erasure whose rows are gone: remove the files `name`*, leave no copy in the
    partition. Answer: bool, False from a shard that does not own the partition."""

    partition: int
    name: str


class CheckShard(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="check_shard"):
    """Answer: list of problems in this shard's files."""


class Flush(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="c", tag="flush"):
    """Journal pending touches; with `snapshot`, also snapshot users with a long tail. Answer:
    `ShardStats`."""

    snapshot: bool = False
