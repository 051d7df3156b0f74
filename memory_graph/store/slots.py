"""Save slots: pin a world, go back to a pin, carry a user into another world.

Each of these is one step of an operation over all partitions that a crash can cut short. The
caller then does every step again under the same operation id; a step that was done does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from reverie.memory_graph.errors import CheckpointExistsError, UnknownCheckpointError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import outbox
from reverie.memory_graph.store.branches import load_position, measure, prune
from reverie.memory_graph.store.records import UserImage
from reverie.memory_graph.store.schema import RowHash
from reverie.memory_graph.store.users import (
    add_generation,
    begin_history,
    find_user,
    move,
    user_of,
    users_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reverie.memory_graph.store.records import Loaded, OutboxTurn
    from reverie.memory_graph.store.sqlite import Database
    from reverie.memory_graph.store.users import User


def pin(db: Database, world: str, tag: str, operation: str) -> int:
    """Note where every live user of `world` stands; no state is copied. Returns how many.

    Raises:
        CheckpointExistsError: another operation made this tag.
    """
    row = db.row("SELECT operation FROM tags WHERE world = ? AND tag = ?", (world, tag))
    if row is not None and row != (operation,):
        msg = f"world {world!r} has a checkpoint {tag!r} already"
        raise CheckpointExistsError(msg, world=world, tag=tag)
    if row is None:
        db.rows("INSERT INTO tags VALUES (?, ?, ?)", (world, tag, operation))
        db.change_many(
            "INSERT INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                pin_row(user, tag, user.generation, user.head, outbox.pack(db, user.uid))
                for user in users_of(db, world)
                if user.live
            ],
        )
    (count,) = db.only_row("SELECT COUNT(*) FROM pins WHERE world = ? AND tag = ?", (world, tag))
    return int(count)


PinRow: TypeAlias = tuple[str, str, int, int, int, bytes, bytes]


def pin_row(user: User, tag: str, generation: int, seq: int, turns: bytes) -> PinRow:
    """Return the row of `pins` that says where `user` stands under `tag`."""
    checksum = RowHash(user.key).pin(tag, generation, seq, turns)
    return user.world, tag, user.uid, generation, seq, turns, checksum


def unpin(db: Database, world: str, tag: str) -> int:
    """Remove a pin and what only it kept. Returns how many users it had, 0 when it is not there."""
    uids = db.rows("DELETE FROM pins WHERE world = ? AND tag = ? RETURNING uid", (world, tag))
    for (uid,) in uids:
        if (user := user_of(db, uid)) is not None:
            prune(db, user)
    db.rows("DELETE FROM tags WHERE world = ? AND tag = ?", (world, tag))
    return len(uids)


def rewind(db: Database, world: str, tag: str, operation: str) -> int:
    """Put every user of `world` back to where it was pinned, each in a new generation.

    A user that was created later becomes absent. Pins stay, also those made after this one.

    Returns:
        How many users the world has now.

    Raises:
        UnknownCheckpointError: no such tag in this world.
    """
    require_tag(db, world, tag)
    pins = {
        uid: (generation, seq, blob)
        for uid, generation, seq, blob in db.rows(
            "SELECT uid, generation, seq, outbox FROM pins WHERE world = ? AND tag = ?",
            (world, tag),
        )
    }
    if db.row("SELECT operation FROM rewinds WHERE world = ?", (world,)) == (operation,):
        return len(pins)
    db.rows("INSERT OR REPLACE INTO rewinds VALUES (?, ?)", (world, operation))
    for user in users_of(db, world):
        if user.uid in pins:
            generation, seq, blob = pins[user.uid]
            _return_to(db, user, generation, seq, outbox.unpack(blob))
        elif user.live:
            _vanish(db, user)
    return len(pins)


def _return_to(
    db: Database, user: User, generation: int, seq: int, turns: list[OutboxTurn]
) -> None:
    user = user._replace(generation=user.generation + 1, head=seq, live=1)
    add_generation(db, user, generation, seq)
    move(db, user)
    outbox.replace(db, user.uid, turns)
    measure(db, user)
    prune(db, user)


def _vanish(db: Database, user: User) -> None:
    user = user._replace(live=0, head=0, origin=None)
    db.rows("UPDATE users SET tail_bytes = 0, snapshot_bytes = 0 WHERE uid = ?", (user.uid,))
    move(db, user)
    outbox.replace(db, user.uid, [])
    prune(db, user)


def require_tag(db: Database, world: str, tag: str) -> None:
    """Raise `UnknownCheckpointError` unless `world` has a checkpoint `tag`."""
    if db.row("SELECT 1 FROM tags WHERE world = ? AND tag = ?", (world, tag)) is None:
        msg = f"world {world!r} has no checkpoint {tag!r}"
        raise UnknownCheckpointError(msg, world=world, tag=tag)


# -- images ------------------------------------------------------------------------------


def export_user(db: Database, key: Key) -> UserImage | None:
    """Return a user as it is now, or None when it is absent."""
    user = find_user(db, key)
    if user is None or not user.live:
        return None
    return _image(db, user, user.generation, user.head, outbox.turns_of(db, user.uid))


def export_pin(db: Database, world: str, tag: str, after: str = "") -> Iterator[UserImage]:
    """Yield the pinned users one by one, in the order of their ids, from that after `after` on; a
    later write to their world does not change them."""
    for user_id, _, _ in positions(db, world, tag):
        if user_id > after and (image := export_pinned(db, Key(world, user_id), tag)) is not None:
            yield image


def export_pinned(db: Database, key: Key, tag: str) -> UserImage | None:
    """Return a user as it was pinned; None for one that was not, or was erased since."""
    with db.read():
        found = _pinned(db, key, tag)
        if found is None:
            return None
        user, generation, seq, blob = found
        return _image(db, user, generation, seq, outbox.unpack(blob))


def load_pinned(db: Database, key: Key, tag: str) -> Loaded | None:
    """Return what the graph of a user is built from as it was pinned; None as `export_pinned`.

    Raises:
        JournalDamagedError: an event up to there is missing or damaged.
    """
    with db.read():
        found = _pinned(db, key, tag)
        return None if found is None else load_position(db, *found[:3])


def _pinned(db: Database, key: Key, tag: str) -> tuple[User, int, int, bytes] | None:
    user = find_user(db, key)
    if user is None:
        return None
    row = db.row(
        "SELECT generation, seq, outbox FROM pins WHERE world = ? AND tag = ? AND uid = ?",
        (key.world, tag, user.uid),
    )
    return None if row is None else (user, *row)


def positions(db: Database, world: str, tag: str | None) -> list[tuple[str, int, int]]:
    """Return (user id, generation, seq) of each user of a world under a tag, or now if it is None,
    in the order of their ids.

    The same history up to the same event has the same position, whatever branch it is seen from:
    where nothing was written since a rewind, it is that of the pin.
    """
    if tag is None:
        rows = db.rows(
            "SELECT user_id, uid, generation, head FROM users WHERE world = ? AND live = 1 "
            "ORDER BY user_id",
            (world,),
        )
    else:
        rows = db.rows(
            "SELECT user_id, uid, pins.generation, seq FROM pins JOIN users USING (uid) "
            "WHERE pins.world = ? AND tag = ? ORDER BY user_id",
            (world, tag),
        )
    bases = {
        (uid, generation): (base_generation, base_seq)
        for uid, generation, base_generation, base_seq in db.rows(
            "SELECT g.uid, g.generation, g.base_generation, g.base_seq FROM generations AS g "
            "JOIN users ON g.uid = users.uid WHERE users.world = ?",
            (world,),
        )
    }
    found = []
    for user_id, uid, present, seq in rows:
        generation = present
        while True:
            base_generation, base_seq = bases.get((uid, generation), (None, 0))
            if base_generation is None or base_seq != seq or base_generation >= generation:
                break
            generation = base_generation
        found.append((user_id, generation, seq))
    return found


def _image(
    db: Database, user: User, generation: int, seq: int, turns: list[OutboxTurn]
) -> UserImage:
    loaded = load_position(db, user, generation, seq)
    return UserImage(
        key=user.key,
        seq=seq,
        embedder=loaded.embedder,
        snapshot=loaded.snapshot,
        snapshot_seq=loaded.snapshot_seq,
        snapshot_format=loaded.snapshot_format,
        tail=loaded.tail,
        pending=turns,
    )


def import_user(db: Database, image: UserImage, world: str, operation: str) -> bool:
    """Make the user of `image` in `world`. Returns False when this operation did so already.

    Raises:
        CheckpointExistsError: a live user of that key exists, and not through this operation.
    """
    key = Key(world, image.key.user_id)
    present = find_user(db, key)
    if present is not None and present.live:
        if present.origin == operation:
            return False
        msg = f"user {key.user_id!r} of world {world!r} exists already"
        raise CheckpointExistsError(msg, world=world, user_id=key.user_id)
    user = begin_history(db, key, origin=operation)._replace(head=image.seq)
    verify = RowHash(key)
    if image.snapshot is not None:
        embedder, fmt = image.embedder or "", image.snapshot_format or 0
        seq, state = image.snapshot_seq, image.snapshot
        checksum = verify.snapshot(user.generation, seq, embedder=embedder, fmt=fmt, state=state)
        db.rows(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)",
            (user.uid, user.generation, seq, embedder, fmt, checksum, state),
        )
    db.change_many(
        "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
        [
            (user.uid, user.generation, seq, verify.event(user.generation, seq, event), event)
            for seq, event in image.tail
        ],
    )
    move(db, user)
    outbox.replace(db, user.uid, image.pending)
    measure(db, user)
    return True
