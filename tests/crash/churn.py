"""Passivation churn: many users, of whom few are in memory; each keeps all that it was told.

    python tests/crash/churn.py 100000

20,000 users (fewer in a short run), and a byte budget for about 5% of them. Users that are drawn at
random, some more often than others, are told things and asked; each has a twin, a plain value with
its texts and with how often each was read. Readings are what passivation could lose: they are
applied at once and journaled later. Now and then, and at the end, the folder is opened anew, and
every user must have the same digest as before and equal its twin.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import report, writer

import reverie
from reverie.actors.residents import Resident, Residents
from reverie.memory_graph.events import Event, encode_event
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Partition, Transaction
from reverie.models.standin import HashEmbedder

USERS = 20_000
RESIDENT_SHARE = 0.05
OPERATIONS_PER_USER = 5  # in a short run, fewer users, so that each is met again
WORLDS = ("town", "港口")
CHUNK = 500  # users in one bulk call
AT_ONCE = 16  # users in one step
REOPENINGS = 3
HOT_SHARE = 0.5  # of the operations are of HOT users, which mostly stay in memory
HOT_USERS = 0.02
LEAST_BUDGET = 200_000  # bytes: some users must fit


class Twin:
    """What one user should hold: text -> how often a search returned it."""

    __slots__ = ("ids", "reads", "told")

    def __init__(self) -> None:
        self.reads: dict[str, int] = {}
        self.ids: dict[str, str] = {}  # text -> memory id
        self.told = 0


class Churn:
    """Random access to many users; see the module's text."""

    def __init__(self, options: report.Options, row: report.Row) -> None:
        self.options = options
        self.row = row
        self.random = random.Random(options.seed)
        self.clock = reverie.SimulatedClock(1_700_000_000.0)
        self.folder = options.work / "data"
        count = min(USERS, max(200, options.count // OPERATIONS_PER_USER))
        self.keys = [Key(WORLDS[i % len(WORLDS)], f"user-{i:05d}") for i in range(count)]
        self.hot = self.keys[: max(2, int(count * HOT_USERS))]
        self.twins = {key: Twin() for key in self.keys}
        self.budget = 1 << 30
        self.asked = self.activated = self.passivated = self.missed = self.most_bytes = 0

    def run(self) -> None:
        """Found the users, churn, and compare."""
        self._found()
        steps = max(1, self.options.count // REOPENINGS)
        with self._counted():
            while self.row.count < self.options.count and self.row.is_clean:
                stop = min(self.row.count + steps, self.options.count)
                with self._open() as runtime:
                    while self.row.count < stop and self.row.is_clean:
                        self._step(runtime)
                    sample = self.random.sample(self.keys, min(len(self.keys), 2_000))
                    digests = {key: self._user(runtime, key).digest() for key in sample}
                with self._open() as runtime:
                    for key, digest in digests.items():
                        if self._user(runtime, key).digest() != digest:
                            self._wrong(f"{key} has another digest after the reopening")
        with self._open() as runtime:
            for key in self.keys:
                self._audit(runtime, key)
            for line in runtime.check():
                self._wrong(line)
        self.row.figures = {
            "users": len(self.keys),
            "budget in bytes": self.budget,
            "most resident bytes": self.most_bytes,
            "activations": self.activated,
            "passivations": self.passivated,
            "hit ratio": round(1 - self.missed / max(1, self.asked), 3),
        }

    def _found(self) -> None:
        """Tell every user something, and choose the budget by what they take."""
        with self._open() as runtime:
            for start in range(0, len(self.keys), CHUNK):
                part = self.keys[start : start + CHUNK]
                for world in WORLDS:
                    self._tell(runtime, world, [k for k in part if k.world == world])
            stats = runtime.stats().shards[0]
            share = stats.resident_bytes / max(1, stats.resident_users)
        # Users grow while they are told more: what is taken at the end would be about twice this.
        self.budget = max(LEAST_BUDGET, int(2 * share * len(self.keys) * RESIDENT_SHARE))

    def _open(self) -> reverie.Runtime:
        return reverie.open(
            self.folder,
            clock=self.clock,
            embedder=HashEmbedder(writer.DIM),
            partitions=8,
            byte_budget=self.budget,
            extractor="off",
            background=False,
        )

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count what goes in and out of memory."""
        activate, drop = Residents._activate, Residents._passivate

        def _activate(residents: Residents, *args: Any) -> Resident:
            self.activated += 1
            return activate(residents, *args)

        def _passivate(residents: Residents, partition: Partition, keys: Sequence[Key]) -> None:
            self.passivated += len(keys)
            drop(residents, partition, keys)

        with (
            patch.object(Residents, "_activate", _activate),
            patch.object(Residents, "_passivate", _passivate),
        ):
            yield

    def _step(self, runtime: reverie.Runtime) -> None:
        self.clock.advance(1.0)
        before = self.activated
        world = self.random.choice(WORLDS)
        keys = dict.fromkeys(self._draw() for _ in range(AT_ONCE))
        here = [key for key in keys if key.world == world]
        roll = self.random.random()
        if roll < 0.3:
            self._tell(runtime, world, here)
        elif roll < 0.75:
            self._ask(runtime, world, here)
        else:
            for key in here:
                self._change(runtime, key)
        self.asked += len(here)
        self.missed += self.activated - before
        self.row.count += len(here)
        self.options.advance(len(here))
        backend: Any = runtime._router.backend
        size_bytes = backend.shard.residents.size_bytes
        self.most_bytes = max(self.most_bytes, size_bytes)
        if size_bytes > self.budget:
            self._wrong(f"{size_bytes:,} bytes in memory, over the budget of {self.budget:,}")

    def _draw(self) -> Key:
        return self.random.choice(self.hot if self.random.random() < HOT_SHARE else self.keys)

    def _tell(self, runtime: reverie.Runtime, world: str, keys: Sequence[Key]) -> None:
        told: dict[str, list[str | reverie.MemoryDraft]] = {}
        for key in keys:
            told[key.user_id] = [self._text(key) for _ in range(self.random.randint(1, 3))]
        for user_id, kept in runtime.remember_many(told, world=world).items():
            twin = self.twins[Key(world, user_id)]
            for text, one in zip(told[user_id], kept, strict=True):
                twin.reads[str(text)], twin.ids[str(text)] = 0, one.memory_id or ""
                self.row.acknowledged += 1

    def _ask(self, runtime: reverie.Runtime, world: str, keys: Sequence[Key]) -> None:
        """Ask, and note which texts were read."""
        asked = [
            (key.user_id, f"Who sold lantern {self.random.randint(1, 9)}? 灯笼") for key in keys
        ]
        for key, hits in zip(
            keys, runtime.search_many(asked, world=world, limit=3, types="memory"), strict=True
        ):
            twin = self.twins[key]
            for hit in hits:
                if hit.text not in twin.reads:
                    self._wrong(f"{key} was never told {hit.text!r}")
                elif hit.hits != twin.reads[hit.text]:
                    self._lost(f"{key}: {hit.text!r} read {twin.reads[hit.text]}x, not {hit.hits}x")
                else:
                    twin.reads[hit.text] += 1

    def _change(self, runtime: reverie.Runtime, key: Key) -> None:
        """Give a text up for another, which is the one that counts then."""
        user, twin = self._user(runtime, key), self.twins[key]
        old = self.random.choice(list(twin.reads)) if twin.reads else None
        text = self._text(key)
        if old is None or self.random.random() < 0.5:
            kept = user.observe(text, participants=["Smith 铁匠"])
            twin.ids[text] = kept.memory_id or ""
        else:
            twin.ids[text] = user.update(twin.ids.pop(old), text).id
            del twin.reads[old]
        twin.reads[text] = 0
        self.row.acknowledged += 1

    def _audit(self, runtime: reverie.Runtime, key: Key) -> None:
        twin = self.twins[key]
        items = self._user(runtime, key).list(limit=10_000).items
        found = {item.text: (item.id, item.hits) for item in items}
        if len(items) != len(found):
            self.row.duplicated += 1
            self._note(f"duplicated: {key} holds a text twice")
        for text, reads in twin.reads.items():
            if found.pop(text, None) != (twin.ids[text], reads):
                self._lost(f"{key}: {text!r} is not there, or was not read {reads} times")
        for text in found:
            self._wrong(f"{key} was never told {text!r}, or gave it up")

    def _user(self, runtime: reverie.Runtime, key: Key) -> reverie.User:
        return runtime.user(key.user_id, key.world)

    def _text(self, key: Key) -> str:
        twin = self.twins[key]
        twin.told += 1
        if twin.told % 3:
            return f"{key.user_id} saw the smith sell lantern {twin.told} to the captain."
        return f"{key.user_id} 看见铁匠把第{twin.told}盏灯笼卖给了船长。"

    def _note(self, line: str) -> None:
        if len(self.row.findings) < report.SHOWN:
            self.row.findings.append(line)

    def _wrong(self, line: str) -> None:
        self.row.wrong += 1
        self._note(f"wrong: {line}")

    def _lost(self, line: str) -> None:
        self.row.lost += 1
        self._note(f"lost: {line}")


# -- planted bugs, which the suite must find ---------------------------------------------


def _lose_touches(residents: Residents, partition: Partition, keys: Sequence[Key]) -> None:
    """Let users go as they are."""
    for key in keys:
        residents.drop(key)


_held: dict[Key, list[bytes]] = {}


def _append_late(
    txn: Transaction, key: Key, resident: Resident, fresh: Sequence[Event] = ()
) -> None:
    """Journal what a write has applied with the next write of its user, from its second on."""
    rows = [encode_event(event) for event in (*resident.touches, *fresh)]
    resident.touches.clear()
    ready, _held[key] = _held.get(key, []), rows
    if resident.tail_bytes == 0 or ready:
        if not ready:
            ready, _held[key] = rows, []
        txn.append(key, ready)
        resident.tail_bytes += sum(map(len, ready))


_drop = Residents.drop


def _drop_dirty(residents: Residents, key: Key) -> None:
    """Lose what is held back of a user that leaves memory."""
    _held.pop(key, None)
    _drop(residents, key)


BUGS = ("touches-lost", "unjournaled-tail", "no-budget")


@contextmanager
def planted(bug: str | None) -> Iterator[None]:
    """Break the product within the block."""
    _held.clear()
    if bug == "touches-lost":
        with patch.object(Residents, "_passivate", _lose_touches):
            yield
    elif bug == "unjournaled-tail":
        with (
            patch.object(Residents, "append", staticmethod(_append_late)),
            patch.object(Residents, "drop", _drop_dirty),
        ):
            yield
    elif bug == "no-budget":
        with patch.object(Residents, "make_room", lambda _: None):
            yield
    else:
        yield


def run(options: report.Options) -> report.Row:
    """Do `options.count` operations."""
    writer.quiet()
    row = report.Row("passivation churn", "operations")
    churn = Churn(options, row)
    with planted(options.bug):
        try:
            churn.run()
        except (reverie.ReverieError, msgspec.MsgspecError) as exc:
            churn._wrong(f"an operation failed: {exc!r}")
    return row


if __name__ == "__main__":
    sys.exit(report.command_line(run, what="passivation churn", bugs=BUGS))
