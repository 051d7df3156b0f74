"""What the damage suite damages: a small folder, everything that is read of it, and every place."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import apsw
import msgspec
from crash import ops, writer

import reverie
from reverie.actors import commands as c
from reverie.actors.residents import ShardSettings, build_state
from reverie.actors.shard import Shard, open_shard
from reverie.memory_graph.apply import apply
from reverie.memory_graph.events import decode_event
from reverie.memory_graph.ids import Key
from reverie.memory_graph.snapshot import state_digest
from reverie.memory_graph.state import UserMemory, as_bytes
from reverie.memory_graph.store import DataFolder, Loaded, Transaction, UserImage, salvage
from reverie.models.standin import HashEmbedder

Files: TypeAlias = dict[str, bytes]
Damage: TypeAlias = Callable[[], Files | None]  # None: there was nothing to damage

DIM = 8
PAGE_BYTES = 1024  # of the files to damage: a quarter of the usual, so that fewer are empty
INDEXED = 16  # vectors from which an index file is used
START = 1_700_000_000.0
PARTITION, LOG = "partitions/p0000.db", "partitions/p0000.db-wal"
CATALOG, CATALOG_LOG = "catalog.db", "catalog.db-wal"
WITNESS = "partitions/p0000.commits"
OPTIONS: dict[str, Any] = {
    "partitions": 1,
    "background": False,
    "exact_limit": INDEXED,
    "extractor": "rules",
    "summaries": "off",
}
SETTINGS = ShardSettings(exact_limit=INDEXED)
KEYS = [Key(w, u) for w, u in (("town", "ana"), ("town", "小明"), ("港口", "ana"), ("港口", "bo"))]


class Place(NamedTuple):
    """One state of damage, and how it is made."""

    name: str
    make: Damage


class View(msgspec.Struct, frozen=True):
    """Everything that can be read, as plain values. A user that is refused is not in `digests`."""

    users: list[tuple[str, str]]
    digests: dict[Key, str]
    pinned: dict[str, str]
    waiting: list[tuple[str, list[str]]]
    aside: list[tuple[str, str]]
    answers: dict[str, bytes]
    hits: list[str]
    catalog: tuple[Any, ...]


# -- the folder that is damaged ----------------------------------------------------------


class Histories:
    """Writes down every event of every user, and so every state that a history leads through.

    Attributes:
        known: every digest that each user ever had, event by event.
    """

    def __init__(self) -> None:
        self.known: dict[Key, set[str]] = {}
        self._states: dict[Key, list[bytes]] = {}
        self._saved: dict[tuple[str, str], dict[Key, list[bytes]]] = {}

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Write down what transactions of this process do meanwhile."""
        append, rewind, pin = Transaction.append, Transaction.rewind, Transaction.pin
        this = self

        def recorded_append(txn: Transaction, key: Key, events: list[bytes]) -> int:
            this._states.setdefault(key, []).extend(events)
            return append(txn, key, events)

        def recorded_pin(txn: Transaction, world: str, tag: str, *, operation: str) -> int:
            here = {k: list(v) for k, v in this._states.items() if k.world == world}
            this._saved[world, tag] = here
            return pin(txn, world, tag, operation=operation)

        def recorded_rewind(txn: Transaction, world: str, tag: str, *, operation: str) -> int:
            this._note()
            this._states |= {k: list(v) for k, v in this._saved[world, tag].items()}
            return rewind(txn, world, tag, operation=operation)

        Transaction.append = recorded_append  # type: ignore[assignment, method-assign]
        Transaction.pin = recorded_pin  # type: ignore[assignment, method-assign]
        Transaction.rewind = recorded_rewind  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            Transaction.append = append  # type: ignore[method-assign]
            Transaction.pin = pin  # type: ignore[method-assign]
            Transaction.rewind = rewind  # type: ignore[method-assign]
            self._note()

    def _note(self) -> None:
        """Note every state that the events of each user lead through."""
        for key, events in self._states.items():
            memory = UserMemory(exact_limit=INDEXED)
            for event in events:
                apply(memory, decode_event(event))
                self.known.setdefault(key, set()).add(state_digest(memory))


@contextmanager
def small_pages() -> Iterator[None]:
    """Make and repair files in the block with pages of `PAGE_BYTES`, so that each byte can be
    tried. (The usual size is for tests/store/test_repair.py.)"""

    def choose(connection: apsw.Connection) -> None:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}").fetchall()

    usual, salvage.PAGE_BYTES = salvage.PAGE_BYTES, PAGE_BYTES
    apsw.connection_hooks.append(choose)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(choose)
        salvage.PAGE_BYTES = usual


class Original:
    """The files of a sound folder, closed and as a killed process leaves it, and what is in them.

    Attributes:
        closed, killed: the files.
        view, killed_view: what is read from them.
        known: every digest that each user ever had, event by event.
        acknowledged: how many writes there were.
    """

    def __init__(self, work: Path) -> None:
        histories = Histories()
        self.known = histories.known
        self.acknowledged = 0
        folder = work / "original"
        clock = reverie.SimulatedClock(START)
        options = {**OPTIONS, "clock": clock, "extractor": Notes(), "decider": writer.AddAll()}
        with histories.recorded():
            with reverie.open(folder, embedder=HashEmbedder(DIM), **options) as runtime:
                self._fill(runtime, clock)
            self.closed = read_files(folder)
            with reverie.open(folder, embedder=HashEmbedder(DIM), **options) as runtime:
                self._write_on(runtime)
                self.killed = read_files(folder)
                self.killed.pop("OWNER.json", None)
        self.index = next(name for name in self.closed if name.endswith(".hnsw"))
        self.stage = Stage(work)
        self.view = self.stage.look(self.closed)
        self.killed_view = self.stage.look(self.killed)
        assert self.view.digests.keys() == self.killed_view.digests.keys() == set(KEYS)
        assert self.view.hits
        assert self.view.pinned
        assert self.killed[LOG]

    def _fill(self, runtime: reverie.Runtime, clock: reverie.SimulatedClock) -> None:
        for number, key in enumerate(KEYS):
            user = runtime.user(key.user_id, key.world)
            user.remember(f"{key} keeps bees. 养蜂。", tags=["bees"], request_id=f"bees {number}")
            user.relate("$user", "lives_in", "Oslo", functional=True, request_id=f"home {number}")
            user.add([f"Line {number}. 第{number}句。"], wait=True, request_id=f"line {number}")
            self.acknowledged += 3
        for i in range(INDEXED + 4):
            runtime.user("ana", "town").remember(f"Fact {i} of the town. 镇上的事。")
        runtime.user("bo", "港口").add(["boom 砰"], wait=True)
        runtime.flush()
        runtime.checkpoint("早", world="港口")
        runtime.checkpoint("early", world="town")
        for key in KEYS:
            runtime.user(key.user_id, key.world).remember("The storm came. 暴风雨来了。")
            clock.advance(60.0)
        runtime.rewind("early", world="town")
        runtime.user("小明", "town").remember("No storm after all. 没有暴风雨。")
        runtime.user("ana", "港口").add(["It waits. 等着。"], request_id="waits")
        runtime.flush()
        for key in KEYS:
            text = f"More of {key.user_id} in {key.world}. 更多。"
            runtime.user(key.user_id, key.world).remember(text, request_id=f"more {key}")
        self.acknowledged += INDEXED + 4 + 1 + 3 + len(KEYS) * 2 + 2

    def _write_on(self, runtime: reverie.Runtime) -> None:
        runtime.checkpoint("late", world="town")
        for key in (KEYS[1], KEYS[2]):
            user = runtime.user(key.user_id, key.world)
            user.remember("Later. 后来。", request_id=f"later {key}")
        self.acknowledged += 1 + 2


class Notes(ops.NoteTaker):
    """Makes a memory of each turn, and fails at "boom"."""

    def extract(self, turns: Any, history: Any) -> Any:
        if any("boom" in turn.text for turn in turns):
            msg = "boom"
            raise RuntimeError(msg)
        return super().extract(turns, history)


def read_files(folder: Path) -> Files:
    """Return all files below a folder, without what SQLite makes anew."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


# -- looking at a copy -------------------------------------------------------------------


class Stage:
    """A folder in memory where copies are put, one after the other."""

    def __init__(self, work: Path) -> None:
        fast = Path("/dev/shm")  # noqa: S108 (where there is one, it is the fastest)
        self.folder = Path(
            tempfile.mkdtemp(prefix="reverie-damage-", dir=fast if fast.is_dir() else work)
        )
        self.vector = as_bytes(HashEmbedder(DIM).embed(["facts of the town"], "query")[0])
        self._digests: dict[bytes, str] = {}

    def _digest_of(self, image: UserImage) -> str:
        """Return the digest of the state in an image; the same bytes are not built twice."""
        made_of = msgspec.msgpack.encode((image.snapshot, image.tail))
        if made_of not in self._digests:
            loaded = Loaded(
                generation=0,
                seq=image.seq,
                embedder=image.embedder,
                snapshot=image.snapshot,
                snapshot_seq=image.snapshot_seq,
                snapshot_format=image.snapshot_format,
                tail=image.tail,
                warnings=[],
            )
            memory = build_state(image.key, loaded, exact_limit=INDEXED)
            self._digests[made_of] = state_digest(memory)
        turns = [(turn.turn_id, turn.is_quarantined) for turn in image.pending]
        return f"{self._digests[made_of]} {turns}"

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def put(self, files: Files) -> None:
        """Make the folder hold exactly these files."""
        shutil.rmtree(self.folder / "damaged", ignore_errors=True)
        for name in ("partitions", "indices", "traces"):
            (self.folder / name).mkdir(exist_ok=True)
        for path in self.folder.rglob("*"):
            if path.is_file() and str(path.relative_to(self.folder)) not in files:
                path.unlink()
        for name, data in files.items():
            (self.folder / name).write_bytes(data)

    def look(self, files: Files, *, search: bool = True) -> View:
        """Return everything that can be read from files; with `search`, the index is used, too.

        Raises:
            ReverieError: the first refusal.
        """
        self.put(files)
        return self.look_again(search=search)

    def look_again(self, *, search: bool = True) -> View:
        """Return everything that can be read from the folder as it is."""
        with DataFolder.open(self.folder, owner="damage", partitions=1) as folder:
            worlds = folder.catalog.worlds()
            tags = tuple(tag for world in worlds for tag in folder.catalog.tags(world.name))
            catalog = (folder.partitions, tuple(worlds), tags, tuple(folder.catalog.unfinished()))
            shard = open_shard(self.folder, [0], 1, SETTINGS, "damage", create=False)
            try:
                return self._view(shard, catalog, search=search)
            finally:
                shard.close()

    def _view(self, shard: Shard, catalog: tuple[Any, ...], *, search: bool) -> View:
        def ask(command: c.AnyCommand) -> Any:
            (answer,) = shard.execute([command])
            if isinstance(answer, Exception):
                raise answer
            return answer

        users = ask(c.ListUsers())
        digests = {
            Key(w, u): ask(c.Digest(world=w, user_id=u, now=START))
            for w, u in dict.fromkeys([*KEYS, *users])
        }
        (partition,) = shard.partitions.values()
        pinned = {}
        for world, tag in sorted(partition.all_tags()):
            for image in partition.export_pin(world, tag):
                name = f"{world}/{tag}/{image.key.user_id}"
                pinned[name] = self._digest_of(image)
        hits = (
            []
            if not search
            else ask(
                c.Search(
                    world="town",
                    user_id="ana",
                    now=START,
                    text="facts",
                    vector=self.vector,
                    embedder=HashEmbedder(DIM).info.id,
                    touch=False,
                )
            )
        )
        return View(
            users,
            digests,
            pinned,
            sorted((f"{u.world}/{u.user_id}", u.turn_ids) for u in ask(c.ListPending())),
            [(str(turn.key), turn.turn_id) for turn in partition.quarantined()],
            dict(partition._db.rows("SELECT request_id, result FROM results")),
            [hit.id for hit in hits],
            catalog,
        )


# -- damage ------------------------------------------------------------------------------


def places(original: Original, chance: random.Random) -> tuple[list[Place], Iterator[Place]]:
    """Return the damages by SQL, and all those of bytes, spread over all files."""
    return list(rows(original)), bytes_of(original, chance)


SQL: dict[str, str] = {
    "users moved back": "UPDATE users SET head = head - 1 WHERE uid = {uid}",
    "users moved on": "UPDATE users SET head = head + 1 WHERE uid = {uid}",
    "users other generation": "UPDATE users SET generation = generation - 1 WHERE uid = {uid}",
    "users absent": "UPDATE users SET live = 1 - live WHERE uid = {uid}",
    "users renamed": "UPDATE users SET user_id = user_id || 'x' WHERE uid = {uid}",
    "users other world": "UPDATE users SET world = world || 'x' WHERE uid = {uid}",
    "users deleted": "DELETE FROM users WHERE uid = {uid}",
    "users other number": "UPDATE users SET uid = uid + 100 WHERE uid = {uid}",
    "users repeated": "INSERT INTO users SELECT uid + 50, world, user_id || 'x', generation, head, "
    "live, tail_bytes, snapshot_bytes, origin, checksum FROM users WHERE uid = {uid}",
    "names deleted": "DELETE FROM names WHERE uid = {uid}",
    "names renamed": "UPDATE names SET user_id = 'x' WHERE uid = {uid}",
    "generations base": "UPDATE generations SET base_seq = base_seq + 1 WHERE uid = {uid}",
    "generations base generation": "UPDATE generations SET base_generation = 1 WHERE uid = {uid}",
    "generations deleted": "DELETE FROM generations WHERE uid = {uid}",
    "journal flipped": "UPDATE journal SET payload = flipped(payload) WHERE uid = {uid} "
    "AND seq = (SELECT MAX(seq) FROM journal WHERE uid = {uid})",
    "journal cut": "UPDATE journal SET payload = substr(payload, 1, length(payload) - 1) "
    "WHERE uid = {uid} AND seq = (SELECT MAX(seq) FROM journal WHERE uid = {uid})",
    "journal last deleted": "DELETE FROM journal WHERE uid = {uid} "
    "AND seq = (SELECT MAX(seq) FROM journal WHERE uid = {uid})",
    "journal middle deleted": "DELETE FROM journal WHERE uid = {uid} "
    "AND seq = (SELECT MAX(seq) - 1 FROM journal WHERE uid = {uid})",
    "journal deleted": "DELETE FROM journal WHERE uid = {uid}",
    "journal repeated": "INSERT INTO journal SELECT uid, generation, seq + 1, checksum, payload "
    "FROM journal WHERE uid = {uid} AND seq = (SELECT MAX(seq) FROM journal WHERE uid = {uid})",
    "journal swapped": "UPDATE journal SET (payload, checksum) = (SELECT payload, checksum "
    "FROM journal AS o WHERE o.uid = {other} ORDER BY seq DESC LIMIT 1) WHERE uid = {uid} "
    "AND seq = (SELECT MAX(seq) FROM journal WHERE uid = {uid})",
    "journal given away": "UPDATE OR REPLACE journal SET uid = {other} WHERE uid = {uid}",
    "snapshots flipped": "UPDATE snapshots SET state = flipped(state) WHERE uid = {uid} "
    "AND seq = (SELECT MAX(seq) FROM snapshots WHERE uid = {uid})",
    "snapshots all flipped": "UPDATE snapshots SET state = x'00' WHERE uid = {uid}",
    "snapshots deleted": "DELETE FROM snapshots WHERE uid = {uid}",
    "snapshots swapped": "UPDATE snapshots SET (state, checksum) = (SELECT state, checksum "
    "FROM snapshots AS o WHERE o.uid = {other} ORDER BY seq DESC LIMIT 1) WHERE uid = {uid}",
    "snapshots moved": "UPDATE OR REPLACE snapshots SET seq = seq + 1 WHERE uid = {uid}",
    "pins deleted": "DELETE FROM pins WHERE uid = {uid}",
    "pins moved": "UPDATE pins SET seq = seq - 1 WHERE uid = {uid}",
    "pins swapped": "UPDATE OR REPLACE pins SET uid = {other} WHERE uid = {uid}",
    "pins outbox": "UPDATE pins SET outbox = x'90' WHERE uid = {uid}",
    "tags deleted": "DELETE FROM tags",
    "tags renamed": "UPDATE tags SET tag = tag || 'x'",
    "rewinds deleted": "DELETE FROM rewinds",
    "results deleted": "DELETE FROM results WHERE uid = {uid}",
    "results changed": "UPDATE results SET result = x'c0' WHERE uid = {uid}",
    "results swapped": "UPDATE OR REPLACE results SET uid = {other} WHERE uid = {uid}",
    "results renamed": "UPDATE results SET request_id = request_id || 'x' WHERE uid = {uid}",
    "outbox deleted": "DELETE FROM outbox",
    "outbox swapped": "UPDATE OR REPLACE outbox SET uid = {other}",
    "outbox changed": "UPDATE outbox SET quarantined = 1 - quarantined",
    "outbox made up": "INSERT INTO outbox (uid, turn_id) VALUES ({uid}, 't99')",
    "owner deleted": "DELETE FROM owner",
    "owner floor": "UPDATE owner SET floor = floor + 1",
    "owner epoch": "UPDATE owner SET epoch = epoch + 1",
    "owner number": "UPDATE owner SET partition = partition + 1",
    "owner journal format": "UPDATE owner SET journal_format = 9",
    "seal deleted": "DELETE FROM seal",
    "seal commits": "UPDATE seal SET commits = commits - 1",
    "seal sums": "UPDATE seal SET sums = zeroblob(length(sums))",
    "index dropped": "DROP INDEX outbox_pending",
    "table dropped": "DROP TABLE rewinds",
    "column added": "ALTER TABLE tags ADD COLUMN more TEXT",
}
CATALOG_SQL: dict[str, str] = {
    "worlds deleted": "DELETE FROM worlds WHERE name = 'town'",
    "worlds changed": "UPDATE worlds SET embedder = 'x', dim = dim + 1",
    "worlds renamed": "UPDATE worlds SET name = name || 'x'",
    "tags deleted": "DELETE FROM tags",
    "tags changed": "UPDATE tags SET made_at = made_at + 1",
    "folder changed": "UPDATE folder SET partitions = 2",
    "intents made up": "INSERT INTO intents VALUES (1, 'x', 'drop', x'00')",
    "seal deleted": "DELETE FROM seal",
}


def rows(original: Original) -> Iterator[Place]:
    """Yield each damage by SQL, of each user where it is of one."""
    for name, statement in SQL.items():
        for uid in range(1, len(KEYS) + 1) if "{uid}" in statement else [1]:
            sql = statement.format(uid=uid, other=uid % len(KEYS) + 1)
            yield Place(f"{name} ({uid})", _by_sql(original, PARTITION, sql))
    for name, statement in CATALOG_SQL.items():
        yield Place(f"catalog: {name}", _by_sql(original, CATALOG, statement))


def _by_sql(original: Original, file: str, statement: str) -> Damage:
    def make() -> Files | None:
        stage = original.stage
        stage.put(original.closed)
        connection = apsw.Connection(str(stage.folder / file))
        connection.create_scalar_function("flipped", _flipped_in_the_middle, 1)  # type: ignore[arg-type]
        connection.execute(statement).fetchall()
        is_touched = connection.total_changes() or statement.startswith(("DROP", "ALTER"))
        connection.close()
        return read_files(stage.folder) if is_touched else None

    return make


def _flipped_in_the_middle(data: bytes) -> bytes:
    """Change a bit of a text, or else one that is likely to lie in a number of a vector."""
    at = data.find(b"More") + 1 or len(data) * 3 // 4
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def bytes_of(original: Original, chance: random.Random) -> Iterator[Place]:
    """Yield each damage of one byte, and each cut, file by file."""
    for files, names in (
        (original.killed, (LOG, CATALOG_LOG)),
        (original.closed, (PARTITION, CATALOG, *sorted(original.closed.keys()))),
    ):
        for name in dict.fromkeys(names):
            data = files.get(name, b"")
            for at in range(len(data)):
                yield Place(f"flip {name} {at}", _flipped(files, name, at, chance.randrange(8)))
                yield Place(f"cut {name} {at}", _cut(files, name, at))
            yield Place(f"remove {name}", _cut(files, name, None))


def count_bytes(original: Original) -> int:
    """Return how many places `bytes_of` yields."""
    return sum(1 for _ in bytes_of(original, random.Random(0)))


def _flipped(files: Files, name: str, at: int, bit: int) -> Damage:
    def make() -> Files:
        data = bytearray(files[name])
        data[at] ^= 1 << bit
        return {**files, name: bytes(data)}

    return make


def _cut(files: Files, name: str, at: int | None) -> Damage:
    def make() -> Files:
        rest = {other: data for other, data in files.items() if other != name}
        return rest if at is None else {**rest, name: files[name][:at]}

    return make
