"""The tables of a partition file, and the checksums of their rows.

Every row that says something of a user vouches for itself: its checksum goes over the user's name,
too, so that a row which was moved to another user does not verify. That no row is missing, or there
twice, is vouched for by the seal of the file (seal.py).

A user's history is a tree. A generation is one branch of it: a list of events that begins where
its base (another generation, at a seq) ends. Rewinding starts a new branch; nothing moves.
`(generation, seq)` is therefore a position in the tree, and seqs run from 1 along any path.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from reverie.memory_graph.store.seal import SEAL_SCHEMA

if TYPE_CHECKING:
    from reverie.memory_graph.ids import Key

PARTITION_ID = 0x52455650  # "REVP"
PARTITION_VERSION = 2

PARTITION_SCHEMA = (
    # `floor` is the highest generation that any erased user had: new users begin above it, so a
    # late outcome for an erased user is stale, and no trace of who was erased is needed.
    """CREATE TABLE owner (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        epoch INTEGER NOT NULL,
        owner TEXT NOT NULL,
        partition INTEGER NOT NULL,
        floor INTEGER NOT NULL DEFAULT 0,
        journal_format INTEGER NOT NULL DEFAULT 1) STRICT""",
    # A user that is not live was created after the checkpoint to which its world was rewound, or
    # has only the results of requests. `origin` is the operation that imported it. The checksum
    # goes over generation, head, live and origin.
    """CREATE TABLE users (
        uid INTEGER PRIMARY KEY,
        world TEXT NOT NULL,
        user_id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        head INTEGER NOT NULL DEFAULT 0,
        live INTEGER NOT NULL DEFAULT 0,
        tail_bytes INTEGER NOT NULL DEFAULT 0,
        snapshot_bytes INTEGER NOT NULL DEFAULT 0,
        origin TEXT,
        checksum BLOB NOT NULL,
        UNIQUE (world, user_id)) STRICT""",
    # Who each number is, once more and on other pages: a user's rows verify only under its name.
    """CREATE TABLE names (
        uid INTEGER PRIMARY KEY,
        world TEXT NOT NULL,
        user_id TEXT NOT NULL,
        checksum BLOB NOT NULL) STRICT""",
    """CREATE TABLE generations (
        uid INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        base_generation INTEGER,
        base_seq INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (uid, generation)) STRICT, WITHOUT ROWID""",
    # Rows with vectors are about 2 KB. As a table with a row number they are appended to one page
    # after another; clustered by key (WITHOUT ROWID) they took 2.2 times the space, and half
    # as many a second were written.
    """CREATE TABLE journal (
        uid INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (uid, generation, seq)) STRICT""",
    """CREATE TABLE snapshots (
        uid INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        embedder TEXT NOT NULL,
        format INTEGER NOT NULL,
        checksum BLOB NOT NULL,
        state BLOB NOT NULL,
        PRIMARY KEY (uid, generation, seq)) STRICT""",
    """CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        request_id TEXT NOT NULL UNIQUE,
        uid INTEGER,
        generation INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        result BLOB NOT NULL,
        checksum BLOB NOT NULL) STRICT""",
    "CREATE INDEX results_of_user ON results (uid)",
    """CREATE TABLE outbox (
        position INTEGER PRIMARY KEY,
        uid INTEGER NOT NULL,
        turn_id TEXT NOT NULL,
        quarantined INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '',
        UNIQUE (uid, turn_id)) STRICT""",
    "CREATE INDEX outbox_pending ON outbox (uid, position) WHERE quarantined = 0",
    """CREATE TABLE tags (
        world TEXT NOT NULL,
        tag TEXT NOT NULL,
        operation TEXT NOT NULL,
        PRIMARY KEY (world, tag)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE pins (
        world TEXT NOT NULL,
        tag TEXT NOT NULL,
        uid INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        outbox BLOB NOT NULL,
        checksum BLOB NOT NULL,
        PRIMARY KEY (world, tag, uid)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX pins_of_user ON pins (uid)",
    # The last rewind of each world, so that one redone after a crash does nothing twice.
    """CREATE TABLE rewinds (
        world TEXT PRIMARY KEY,
        operation TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    SEAL_SCHEMA,
)

# Small tables, which the seal vouches for as a whole at each opening. The rows of the others are
# verified when they are read, and are known to be all there by their numbers.
SEALED = (
    "owner",
    "users",
    "names",
    "generations",
    "results",
    "outbox",
    "tags",
    "pins",
    "rewinds",
)

# Where a user's words can stand.
TEXT_COLUMNS = (
    ("journal", "payload"),
    ("snapshots", "state"),
    ("results", "result"),
    ("users", "CAST(user_id AS BLOB)"),
    ("users", "CAST(world AS BLOB)"),
    ("names", "CAST(user_id AS BLOB)"),
    ("names", "CAST(world AS BLOB)"),
    ("outbox", "CAST(error AS BLOB)"),
)
USER_TABLES = ("journal", "snapshots", "results", "outbox", "pins", "generations", "names")

_encode = msgspec.msgpack.Encoder().encode


class RowHash:
    """Checksums for the rows of one user; every field goes in with its length."""

    def __init__(self, key: Key) -> None:
        """Hash the user's name once, for all of the rows."""
        self._base = blake2b(digest_size=8)
        for name in (key.world.encode(), key.user_id.encode()):
            self._base.update(len(name).to_bytes(4, "big") + name)

    def event(self, generation: int, seq: int, payload: bytes) -> bytes:
        """Return the 8 bytes that vouch for one journal row."""
        return self._of(b"event", generation, seq, payload)

    def snapshot(
        self, generation: int, seq: int, *, embedder: str, fmt: int, state: bytes
    ) -> bytes:
        """Return the 8 bytes that vouch for one snapshot row."""
        name = embedder.encode()
        label = b"snapshot" + fmt.to_bytes(8, "big", signed=True)
        return self._of(label + len(name).to_bytes(4, "big") + name, generation, seq, state)

    def user(self, uid: int, generation: int, head: int, live: int, origin: str | None) -> bytes:
        """Return the 8 bytes that vouch for where a user stands."""
        return self._row("user", uid, generation, head, live, origin)

    def name(self, uid: int) -> bytes:
        """Return the 8 bytes that vouch for whose number it is."""
        return self._row("name", uid)

    def generation(self, generation: int, base_generation: int | None, base_seq: int) -> bytes:
        """Return the 8 bytes that vouch for where a branch begins."""
        return self._row("generation", generation, base_generation, base_seq)

    def pin(self, tag: str, generation: int, seq: int, outbox: bytes) -> bytes:
        """Return the 8 bytes that vouch for where a user stood at a checkpoint."""
        return self._row("pin", tag, generation, seq, outbox)

    def _row(self, *values: str | int | bytes | None) -> bytes:
        digest = self._base.copy()
        digest.update(_encode(values))
        return digest.digest()

    def _of(self, label: bytes, generation: int, seq: int, payload: bytes) -> bytes:
        digest = self._base.copy()
        position = (generation, seq, len(payload))
        digest.update(label + b"".join(n.to_bytes(8, "big", signed=True) for n in position))
        digest.update(payload)
        return digest.digest()


def result_hash(
    request_id: str, uid: int | None, generation: int, fingerprint: bytes, result: bytes
) -> bytes:
    """Return the 8 bytes that vouch for one row of `results`."""
    values = ("result", request_id, uid, generation, fingerprint, result)
    return blake2b(_encode(values), digest_size=8).digest()
