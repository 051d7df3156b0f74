"""Puts what was salvaged of a damaged partition into a new one: every row that vouches for itself.

- A user whose rows all verify is copied as it is.
- Any other is restored to the longest history that verifies, from any of its snapshots, and stands
  in a new generation there, as after a rewind.
- A checkpoint is restored in the same way, at or before its own moment.

Everything that is not as it was is told, by user and sequence.
"""

from __future__ import annotations

import base64
import operator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from reverie.memory_graph.errors import JournalDamagedError, ReverieError
from reverie.memory_graph.ids import Key, check_key
from reverie.memory_graph.store import outbox, slots
from reverie.memory_graph.store.branches import END, Segment, Snapshot, measure, prune
from reverie.memory_graph.store.check import check_user
from reverie.memory_graph.store.records import Loaded
from reverie.memory_graph.store.schema import SEALED, RowHash, result_hash
from reverie.memory_graph.store.users import User, add_generation, move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    from reverie.memory_graph.store.records import Built, OutboxTurn
    from reverie.memory_graph.store.salvage import Row, Salvaged
    from reverie.memory_graph.store.sqlite import Database

    # Builds a state, and tells of it. Raises JournalDamagedError when it cannot be built.
    Build: TypeAlias = Callable[[Key, Loaded], Built]
    Tag: TypeAlias = tuple[str, str]  # world, tag

MAX_TRIES = 100_000  # positions that are tried for a row that does not verify
UID_COLUMN = {"users": 0, "generations": 0, "outbox": 1, "pins": 2}


class Loss(msgspec.Struct, frozen=True):
    """Something that is not as it was. Of a whole file, `user_id` is empty; where no events are
    concerned, `first_seq` is 0. Where nobody knows how many there were, `last_seq` is 0."""

    file: str
    what: str
    world: str = ""
    user_id: str = ""
    first_seq: int = 0
    last_seq: int = 0

    @property
    def line(self) -> str:
        """All of it in words."""
        who = f" user {self.user_id!r} of {self.world!r}:" if self.user_id else ""
        last = f" to {self.last_seq}" if self.last_seq else " on"
        return f"{self.file}:{who} {self.what}" + (
            f" (events {self.first_seq}{last})" if self.first_seq else ""
        )


class Stand(NamedTuple):
    """A position that can be restored, the rows that it is built from, and the turns that wait."""

    generation: int
    seq: int
    snapshot: tuple[int, int] | None  # (generation, seq)
    events: list[tuple[int, int]]
    turns: list[OutboxTurn]


class History:
    """The rows of one user that verify."""

    def __init__(self, key: Key, uid: int) -> None:
        self.key = key
        self.uid = uid
        self.user: User | None = None  # where it stands, when its row verifies
        self.bases: dict[int, tuple[int | None, int]] = {}
        self.events: dict[tuple[int, int], bytes] = {}
        self.snapshots: dict[tuple[int, int], Snapshot] = {}
        self.pins: list[tuple[str, int, int, bytes]] = []  # tag, generation, seq, outbox

    @property
    def generations(self) -> list[int]:
        """The generations that are known of, newest first."""
        stood = set() if self.user is None else {self.user.generation}
        rows = {g for g, _ in [*self.events, *self.snapshots]}
        return sorted(stood | rows | self.bases.keys(), reverse=True)

    def path(self, generation: int, seq: int) -> list[Segment]:
        """Return the segments from a position back to the beginning, or to where it is lost."""
        found: list[Segment] = []
        known = set(self.generations)
        here: int | None = generation
        while here is not None and here in known:
            # Where a branch begins is not known when its row is damaged: nothing before it is.
            base, lo = self.bases.get(here, (None, 0))
            found.append(Segment(here, min(lo, seq), seq))
            if base is None or base >= here:
                break
            here, seq = base, min(lo, seq)
        return found

    def best(self, generation: int, seq: int, build: Build) -> Stand | None:
        """Return the newest position on the way to (generation, seq) that can be restored."""
        path = self.path(generation, seq)
        of = {s: p.generation for p in path for s in range(p.lo + 1, p.hi + 1)}
        starts: list[tuple[int, int] | None] = [
            (g, s)
            for g, s in self.snapshots
            for p in path
            if p.generation == g and p.lo <= s <= p.hi
        ]
        reached: list[tuple[int, int, tuple[int, int] | None]] = []
        for snapshot in [*starts, None]:
            start = at = 0 if snapshot is None else snapshot[1]
            while at < seq and (of.get(at + 1), at + 1) in self.events:
                at += 1
            if at:
                reached.append((at, start, snapshot))
        for at, start, snapshot in sorted(reached, key=lambda r: r[:2], reverse=True):
            events = [(of[s], s) for s in range(start + 1, at + 1)]
            last = events[-1][0] if events else (snapshot or (0, 0))[0]
            with suppress(JournalDamagedError):  # it verifies, and yet cannot be applied
                turns = build(self.key, self._loaded(last, at, snapshot, events)).turns
                return Stand(last, at, snapshot, events, turns)
        return None

    def _loaded(
        self,
        generation: int,
        seq: int,
        place: tuple[int, int] | None,
        events: list[tuple[int, int]],
    ) -> Loaded:
        snapshot = None if place is None else self.snapshots[place]
        return Loaded(
            generation=generation,
            seq=seq,
            embedder=None if snapshot is None else snapshot.embedder,
            snapshot=None if snapshot is None else snapshot.state,
            snapshot_seq=0 if snapshot is None else snapshot.seq,
            snapshot_format=None if snapshot is None else snapshot.format,
            tail=[(s, self.events[g, s]) for g, s in events],
            warnings=[],
        )


class Rebuild:
    """Puts what was salvaged of one partition into a new file, inside one transaction."""

    def __init__(self, db: Database, name: str, build: Build) -> None:
        """`name` is the file's, for what is told."""
        self.losses: list[Loss] = []
        self.kept_aside: list[bytes] = []  # lines of lost.jsonl
        self._db = db
        self._name = name
        self._build = build
        self._by_uid: dict[str, dict[int, list[Row]]] = {}

    def fill(self, best: Salvaged, others: Iterable[Salvaged], index: int, tags: set[Tag]) -> None:
        """Put all that is whole into the new file; `tags` are (world, tag) of the catalog."""
        histories = self._histories(best, others)
        self._owner(best, index, histories)
        known = self._tags(best, tags)
        damaged = [history for history in histories if not self._is_copied(history, best)]
        for history in damaged:
            self._restore(history, best, known)
        self._results(best, {history.uid for history in histories})

    def _lose(self, what: str, key: Key | None = None, first: int = 0, last: int = 0) -> None:
        world, user_id = key or ("", "")
        self.losses.append(Loss(self._name, what, world, user_id, first, last))

    # -- what there is -------------------------------------------------------------------

    def _histories(self, best: Salvaged, others: Iterable[Salvaged]) -> list[History]:
        keys = self._names(best)
        found = {uid: History(key, uid) for uid, key in keys.items()}
        hashes = {uid: RowHash(key) for uid, key in keys.items()}
        for reading in (best, *others):  # what is damaged in one may be whole in another
            for uid, generation, seq, checksum, payload in reading.rows["journal"]:
                if uid in found and _near(checksum, hashes[uid].event(generation, seq, payload)):
                    found[uid].events.setdefault((generation, seq), payload)
            for uid, generation, seq, embedder, fmt, checksum, state in reading.rows["snapshots"]:
                if uid not in found:
                    continue
                right = hashes[uid].snapshot(
                    generation, seq, embedder=embedder, fmt=fmt, state=state
                )
                if _near(checksum, right):
                    snapshot = Snapshot(seq, embedder, fmt, right, state)
                    found[uid].snapshots.setdefault((generation, seq), snapshot)
        for history in found.values():
            self._places(history, best)
        self._tell_of_strangers(best, found)
        return sorted(found.values(), key=lambda history: history.uid)

    def _places(self, history: History, best: Salvaged) -> None:
        """Take in the rows that say where a user stands and stood. One that does not verify may
        have one wrong number, and its checksum can tell which is the right one."""
        verify, uid = RowHash(history.key), history.uid
        numbers = [g for g, _ in [*history.events, *history.snapshots]]
        for _, generation, base, base_seq, checksum in self._of(best, "generations", uid):
            for tried in _tries((generation, base, base_seq), numbers, history):
                here, begins = tried[0] or 0, (tried[1], tried[2] or 0)
                if _near(checksum, verify.generation(here, *begins)):
                    history.bases.setdefault(here, begins)
                    break
        numbers += history.bases
        for row in self._of(best, "users", uid):
            history.user = history.user or _stands(row, history, numbers)
        for world, tag, _, generation, seq, turns, checksum in self._of(best, "pins", uid):
            for tried in _tries((generation, seq), numbers, history):
                place = (tried[0] or 0, tried[1] or 0)
                if _near(checksum, verify.pin(tag, *place, turns)) and world == history.key.world:
                    history.pins.append((tag, *place, turns))
                    break

    def _of(self, best: Salvaged, table: str, uid: int) -> list[Row]:
        """Return the rows of one user."""
        if table not in self._by_uid:
            grouped: dict[int, list[Row]] = {}
            for row in best.rows[table]:
                grouped.setdefault(row[UID_COLUMN[table]], []).append(row)
            self._by_uid[table] = grouped
        return self._by_uid[table].get(uid, [])

    def _names(self, best: Salvaged) -> dict[int, Key]:
        """Return who each number is, from two tables of which each vouches for itself."""
        rows = [(row[0], Key(*row[1:3])) for row in [*best.rows["names"], *best.rows["users"]]]
        sure = {
            uid: Key(world, user_id)
            for uid, world, user_id, checksum in best.rows["names"]
            if _near(checksum, RowHash(Key(world, user_id)).name(uid))
        }
        users = [User(*row[:-1]) for row in best.rows["users"]]
        if "users" in best.whole:
            sure = {user.uid: user.key for user in users}
        for user, row in zip(users, best.rows["users"], strict=True):
            if _near(row[-1], user.checksum):
                sure.setdefault(user.uid, user.key)
        for uid, key in rows:
            if uid not in sure and self._vouched(best, uid, key):
                sure[uid] = key
        return sure

    @staticmethod
    def _vouched(best: Salvaged, uid: int, key: Key) -> bool:
        """Whether an event of a number verifies under a name."""
        with suppress(ReverieError):
            verify = RowHash(check_key(*key))
            return any(
                row[0] == uid and row[3] == verify.event(row[1], row[2], row[4])
                for row in best.rows["journal"]
            )
        return False

    def _tell_of_strangers(self, best: Salvaged, found: dict[int, History]) -> None:
        if {"users", "names"} <= best.whole:
            return
        numbers = {row[0] for row in best.rows["journal"]} | {r[0] for r in best.rows["snapshots"]}
        for uid in sorted(numbers - found.keys()):
            seqs = [row[2] for row in best.rows["journal"] if row[0] == uid] or [0]
            self._lose(f"all of user number {uid}, whose name is gone", None, min(seqs), max(seqs))
        if not best.whole >= {"users"} and not best.whole >= {"names"}:
            self._lose("some users may be missing: neither table of their names is whole")

    # -- what there will be --------------------------------------------------------------

    def _owner(self, best: Salvaged, index: int, histories: list[History]) -> None:
        rows = [row for row in best.rows["owner"] if row[0] == 1]
        epoch, floor = 1, max((g for h in histories for g in h.generations), default=0)
        if len(rows) == 1:
            epoch = rows[0][1] + 1
            if "owner" in best.whole:
                floor = rows[0][4]
        self._db.rows(
            "INSERT INTO owner (id, epoch, owner, partition, floor) VALUES (1, ?, 'repair', ?, ?)",
            (epoch, index, floor),
        )
        if "rewinds" in best.whole:
            self._db.change_many("INSERT INTO rewinds VALUES (?, ?)", best.rows["rewinds"])

    def _tags(self, best: Salvaged, catalog: set[Tag]) -> set[Tag]:
        pinned = {(row[0], row[1]) for row in best.rows["pins"]}
        rows = {
            (world, tag): operation
            for world, tag, operation in best.rows["tags"]
            if "tags" in best.whole or (world, tag) in pinned or (world, tag) in catalog
        }
        if "tags" not in best.whole:
            rows |= {tag: "repair" for tag in catalog if tag not in rows}
        self._db.change_many(
            "INSERT INTO tags VALUES (?, ?, ?)", [(*tag, made) for tag, made in rows.items()]
        )
        return set(rows)

    def _is_copied(self, history: History, best: Salvaged) -> bool:
        whole = {"users", "generations", "pins", "outbox"} <= best.whole
        if whole and history.user is not None and self._copy(history, history.user, best):
            return True
        self._erase(history)
        return False

    def _copy(self, history: History, user: User, best: Salvaged) -> bool:
        """Put a user in as it was; returns False when something of it turns out to be damaged."""
        head = user.head if user.live else END

        def is_there(place: tuple[int, int]) -> bool:  # readings past a transaction have more
            return place[0] < user.generation or (place[0] == user.generation and place[1] <= head)

        self._put(user)
        events = filter(is_there, history.events)
        snapshots = filter(is_there, history.snapshots)
        self._put_rows(history, events, snapshots, history.bases)
        self._db.change_many(
            "INSERT INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)",
            [slots.pin_row(user, *pin) for pin in history.pins],
        )
        self._db.change_many(
            "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?)",
            self._of(best, "outbox", user.uid),
        )
        measure(self._db, user)
        if any(True for _ in check_user(self._db, user)):
            return False
        prune(self._db, user)  # other readings of the file may hold what was dropped since
        if not user.live:
            return True
        stand = history.best(user.generation, user.head, self._build)
        return stand is not None and stand.seq == user.head

    def _restore(self, history: History, best: Salvaged, tags: set[Tag]) -> None:
        """Put a user in as far as its rows verify."""
        known, key = history.user, history.key
        newest = max(history.generations, default=0)
        user = User(history.uid, *key, newest, 0, 0, 0, 0, None)
        stand = None
        if known is None or known.live:
            stand = self._newest(history)
            if stand is None:
                self._lose(
                    "nothing of it can be restored", key, 1, 0 if known is None else known.head
                )
        if stand is not None:
            user = user._replace(
                head=stand.seq, live=1, origin=None if known is None else known.origin
            )
            self._tell(history, stand)
            self._put_stand(history, stand)
            if (
                known is not None
                and stand.seq == known.head
                and self._leads_to(history, known, stand)
            ):
                user = user._replace(generation=known.generation)
                self._put_path(history, known)
            else:
                user = user._replace(generation=newest + 1)
                add_generation(self._db, user, stand.generation, stand.seq)
        self._put(user)
        if stand is not None:
            outbox.replace(self._db, user.uid, stand.turns)
        self._restore_pins(history, user, best, tags)
        measure(self._db, user)
        prune(self._db, user)
        if stand is not None and user.generation <= newest and any(check_user(self._db, user)):
            # The state is whole, but not all that it could be built from.
            user = user._replace(generation=newest + 1)
            add_generation(self._db, user, stand.generation, stand.seq)
            move(self._db, user)
            prune(self._db, user)
            self._lose("requests since the last rewind count as undone", history.key)
        self._keep_aside(history, user)

    def _newest(self, history: History) -> Stand | None:
        """Return the newest position that can be restored: of where the user stood if that is
        known, else of its newest generation; of earlier ones when nothing is left of that."""
        user = history.user
        for generation in history.generations:
            if user is not None and generation > user.generation:
                continue
            head = max(
                [s for g, s in [*history.events, *history.snapshots] if g == generation] or [0]
            )
            if user is not None and generation == user.generation:
                head = user.head
            if (stand := history.best(generation, head, self._build)) is not None:
                return stand
        return None

    @staticmethod
    def _leads_to(history: History, user: User, stand: Stand) -> bool:
        path = history.path(user.generation, user.head)
        return any(p.generation == stand.generation and p.lo <= stand.seq <= p.hi for p in path)

    def _tell(self, history: History, stand: Stand) -> None:
        user = history.user
        if user is None:
            what = "its row is damaged: put at the newest of its events that verify"
            self._lose(what, history.key, stand.seq + 1)
        elif stand.seq < user.head:
            what = "lost, and requests since the last rewind count as undone"
            self._lose(what, history.key, stand.seq + 1, user.head)
        elif not self._leads_to(history, user, stand):
            self._lose("where its last rewind led is damaged: put before it", history.key)

    def _restore_pins(self, history: History, user: User, best: Salvaged, tags: set[Tag]) -> None:
        for tag, generation, seq, turns in history.pins:
            stand = history.best(generation, seq, self._build)
            if (user.world, tag) not in tags or stand is None:
                what = (
                    f"is no more in checkpoint {tag!r}: a rewind to it would leave the user absent"
                )
                self._lose(what, history.key, 1, seq)
                continue
            if stand.seq < seq:
                self._lose(f"checkpoint {tag!r} is older", history.key, stand.seq + 1, seq)
                turns = outbox.pack_turns(stand.turns)  # noqa: PLW2901 (those of the older state)
            self._put_stand(history, stand)
            row = slots.pin_row(user, tag, stand.generation, stand.seq, turns)
            self._db.rows("INSERT INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        kept = {pin[0] for pin in history.pins}
        if "pins" not in best.whole:
            for tag in sorted(tag for world, tag in tags if world == user.world):
                if tag not in kept:
                    what = f"may be missing in checkpoint {tag!r}: a rewind would leave it absent"
                    self._lose(what, history.key)

    # -- rows ----------------------------------------------------------------------------

    def _put(self, user: User) -> None:
        self._db.rows(
            "INSERT INTO users VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?)",
            (*user[:6], user.origin, user.checksum),
        )
        row = (user.uid, *user.key, RowHash(user.key).name(user.uid))
        self._db.rows("INSERT INTO names VALUES (?, ?, ?, ?)", row)

    def _put_rows(
        self,
        history: History,
        events: Iterable[tuple[int, int]],
        snapshots: Iterable[tuple[int, int]],
        generations: Iterable[int],
    ) -> None:
        uid, verify = history.uid, RowHash(history.key)
        self._db.change_many(
            "INSERT OR IGNORE INTO journal VALUES (?, ?, ?, ?, ?)",
            [
                (uid, g, s, verify.event(g, s, history.events[g, s]), history.events[g, s])
                for g, s in sorted(events)
            ],
        )
        self._db.change_many(
            "INSERT OR IGNORE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(uid, g, *history.snapshots[g, s]) for g, s in sorted(snapshots)],
        )
        self._db.change_many(
            "INSERT OR IGNORE INTO generations VALUES (?, ?, ?, ?, ?)",
            [
                (uid, g, *base, verify.generation(g, *base))
                for g in sorted(generations)
                for base in [history.bases.get(g, (None, 0))]
            ],
        )

    def _put_stand(self, history: History, stand: Stand) -> None:
        """Put in what a position is built from, and the branches that lead there."""
        snapshots = [] if stand.snapshot is None else [stand.snapshot]
        branches = {p.generation for p in history.path(stand.generation, stand.seq)}
        self._put_rows(history, stand.events, snapshots, branches)

    def _put_path(self, history: History, user: User) -> None:
        """Put in all that verifies on the way to where a user stands."""
        path = {part.generation: part for part in history.path(user.generation, user.head)}
        events = [(g, s) for g, s in history.events if g in path and path[g].lo < s <= path[g].hi]
        snapshots = [
            (g, s) for g, s in history.snapshots if g in path and path[g].lo <= s <= path[g].hi
        ]
        self._put_rows(history, events, snapshots, path)

    def _erase(self, history: History) -> None:
        for table in ("users", "names", "journal", "snapshots", "generations", "pins", "outbox"):
            self._db.rows(f"DELETE FROM {table} WHERE uid = ?", (history.uid,))  # noqa: S608

    def _keep_aside(self, history: History, user: User) -> None:
        """Note the events that verify and are past where their user stands now."""
        there = set(
            self._db.rows("SELECT generation, seq FROM journal WHERE uid = ?", (history.uid,))
        )
        for (generation, seq), payload in sorted(history.events.items()):
            if (generation, seq) not in there and seq > user.head:
                line: dict[str, Any] = {
                    "file": self._name,
                    "world": user.world,
                    "user_id": user.user_id,
                    "generation": generation,
                    "seq": seq,
                    "event": base64.b64encode(payload).decode(),
                }
                self.kept_aside.append(msgspec.json.encode(line))

    def _results(self, best: Salvaged, uids: set[int]) -> None:
        rows = [
            row
            for row in best.rows["results"]
            if row[6] == result_hash(*row[1:6]) and (row[2] is None or row[2] in uids)
        ]
        self._db.change_many("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        if "results" not in best.whole:
            self._lose("answers of requests are gone: one that is repeated may be done twice")
        missing = [name for name in SEALED if name not in best.whole]
        if missing:
            self._lose(f"not all rows were whole in: {', '.join(missing)}")


def _stands(row: Row, history: History, numbers: Iterable[int]) -> User | None:
    """Return a row of `users` as it verifies under the user's name, with one number put right."""
    user = User(*row[:-1])._replace(world=history.key.world, user_id=history.key.user_id)
    for tried in _tries((user.generation, user.head, user.live), numbers, history):
        generation, head, live = (number or 0 for number in tried)
        user = user._replace(generation=generation, head=head, live=live)
        if _near(row[-1], user.checksum):
            return user
    return None


def _near(found: bytes, right: bytes) -> bool:
    """Whether a checksum is right, but for one damaged byte of its own."""
    return len(found) == len(right) and sum(map(operator.ne, found, right)) <= 1


def _tries(
    row: tuple[int | None, ...], numbers: Iterable[int], history: History
) -> Iterator[tuple[int | None, ...]]:
    """Yield a row of positions as it stands, then with each of its numbers replaced by others."""
    yield row
    most = max([s for _, s in [*history.events, *history.snapshots]] or [0])
    others = [None, *sorted({*numbers, *range(most + 2)})]
    for i in range(len(row)):
        for other in others[: MAX_TRIES // len(row)]:
            yield (*row[:i], other, *row[i + 1 :])
