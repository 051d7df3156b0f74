"""The row of one user: where its history stands now, and how large it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reverie.memory_graph.errors import InvariantError
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store.schema import RowHash

if TYPE_CHECKING:
    from reverie.memory_graph.store.sqlite import Database

_COLUMNS = (
    "uid, world, user_id, generation, head, live, tail_bytes, snapshot_bytes, origin FROM users"
)


class User(NamedTuple):
    """A row of the table `users`."""

    uid: int
    world: str
    user_id: str
    generation: int
    head: int
    live: int
    tail_bytes: int
    snapshot_bytes: int
    origin: str | None

    @property
    def key(self) -> Key:
        """Whose row it is."""
        return Key(self.world, self.user_id)

    @property
    def checksum(self) -> bytes:
        """What vouches for the row."""
        return RowHash(self.key).user(self.uid, self.generation, self.head, self.live, self.origin)

    @property
    def next_generation(self) -> int:
        """The generation of the events that are written next."""
        return self.generation if self.live else self.generation + 1


def find_user(db: Database, key: Key) -> User | None:
    """Return the row of `key`, live or not."""
    row = db.row(f"SELECT {_COLUMNS} WHERE world = ? AND user_id = ?", key)
    return None if row is None else User(*row)


def user_of(db: Database, uid: int) -> User | None:
    """Return the row of number `uid`, live or not."""
    row = db.row(f"SELECT {_COLUMNS} WHERE uid = ?", (uid,))
    return None if row is None else User(*row)


def users_of(db: Database, world: str | None = None) -> list[User]:
    """Return the rows of a world, or all of them, live or not, in the order of their ids."""
    if world is None:
        rows = db.rows(f"SELECT {_COLUMNS} ORDER BY world, user_id")
    else:
        rows = db.rows(f"SELECT {_COLUMNS} WHERE world = ? ORDER BY user_id", (world,))
    return [User(*row) for row in rows]


def live_user(db: Database, key: Key) -> User:
    """Return the row of a user that must be there.

    Raises:
        InvariantError: no such user, or it is absent since a rewind.
    """
    user = find_user(db, key)
    if user is None or not user.live:
        msg = f"user {key.user_id!r} of world {key.world!r} has no history"
        raise InvariantError(msg, world=key.world, user_id=key.user_id)
    return user


def fresh_generation(db: Database) -> int:
    """Return the generation in which a user without a row begins."""
    (floor,) = db.only_row("SELECT floor FROM owner")
    return int(floor) + 1


def known_user(db: Database, key: Key) -> User:
    """Return the row of `key`; make one that is not live when there is none."""
    user = find_user(db, key)
    if user is not None:
        return user
    ((uid, floor),) = db.rows(
        "SELECT COALESCE(MAX(uid), 0) + 1, (SELECT floor FROM owner) FROM users"
    )
    user = User(uid, key.world, key.user_id, floor, 0, 0, 0, 0, None)
    db.rows(
        "INSERT INTO users (uid, world, user_id, generation, checksum) VALUES (?, ?, ?, ?, ?)",
        (uid, *key, floor, user.checksum),
    )
    db.rows("INSERT INTO names VALUES (?, ?, ?, ?)", (uid, *key, RowHash(key).name(uid)))
    return user


def move(db: Database, user: User) -> None:
    """Store where `user` stands now; its sizes are left as they are."""
    db.rows(
        "UPDATE users SET generation = ?, head = ?, live = ?, origin = ?, checksum = ? "
        "WHERE uid = ?",
        (user.generation, user.head, user.live, user.origin, user.checksum, user.uid),
    )


def add_generation(db: Database, user: User, base_generation: int | None, base_seq: int) -> None:
    """Let the generation in which `user` stands begin at a position of another one, or nowhere."""
    checksum = RowHash(user.key).generation(user.generation, base_generation, base_seq)
    db.rows(
        "INSERT INTO generations VALUES (?, ?, ?, ?, ?)",
        (user.uid, user.generation, base_generation, base_seq, checksum),
    )


def begin_history(db: Database, key: Key, *, origin: str | None = None) -> User:
    """Make `key` live with an empty history, in a generation that it never had."""
    user = known_user(db, key)
    user = user._replace(
        generation=user.generation + 1,
        head=0,
        live=1,
        tail_bytes=0,
        snapshot_bytes=0,
        origin=origin,
    )
    add_generation(db, user, None, 0)
    db.rows("UPDATE users SET tail_bytes = 0, snapshot_bytes = 0 WHERE uid = ?", (user.uid,))
    move(db, user)
    return user
