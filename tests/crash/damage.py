"""Damage on disk, of every kind and at every place: the right state, or an error that says where.

    python tests/crash/damage.py 300000

Makes a small data folder with a bit of everything, and then, for each state of damage, a copy of it
in which one thing is wrong:

- a byte of the partition, its log, the catalog or another file is changed, or a file is cut there;
- rows of a table are changed, removed, repeated or given to another user, by plain SQL.

Each copy is opened, and everything is read: users, states, checkpoints, waiting turns, answers of
earlier requests, searches through an index file. What comes must be exactly what was there, or an
error that names the file, or the user and the sequence. Where a log lost its end, an earlier state
would be the one that SQLite takes for whole; it must be refused, too.

Of the states that were refused, some are repaired. Then the folder must be sound and be written on,
users of whom nothing was told must be as they were, and the others as they once were.

With COUNT at least the number of states that there are (told as "places"), each place is damaged;
fewer are spread evenly.
"""

from __future__ import annotations

import faulthandler
import logging
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import structlog

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # when run as a script

from crash import report
from crash.damaged import (
    DIM,
    KEYS,
    LOG,
    OPTIONS,
    START,
    Files,
    Original,
    Place,
    View,
    count_bytes,
    places,
    small_pages,
)

import reverie
from reverie.actors.recovery import repair
from reverie.memory_graph.drafts import MemoryDraft
from reverie.memory_graph.errors import (
    DataFolderError,
    JournalDamagedError,
    ReverieError,
    StorageError,
)
from reverie.memory_graph.ids import Key
from reverie.memory_graph.store import Repaired, branches, rebuild, seal
from reverie.memory_graph.store.schema import RowHash
from reverie.models.standin import HashEmbedder

Bug: TypeAlias = Literal[
    "no-checksums", "any-snapshot", "no-seal", "no-witness", "repair-drops-users"
]

REPAIR_EVERY = 25  # refused states of bytes; those of rows all, from `MANY` states on
MANY, FEW_EVERY = 2_000, 4
SEARCH_EVERY = 20  # states
STUCK_S = 60.0


# -- judging -----------------------------------------------------------------------------


class Campaign:
    """Damages the original in one place after the other."""

    def __init__(self, options: report.Options) -> None:
        self.row = report.Row("damage on disk", "states of damage", seed=options.seed)
        self.counts: Counter[str] = Counter()
        self._options = options
        self._original = Original(options.work)
        self.row.acknowledged = self._original.acknowledged

    def run(self) -> None:
        chance = random.Random(self._options.seed)
        by_rows, by_bytes = places(self._original, chance)
        total = count_bytes(self._original)
        wanted = max(1, self._options.count - len(by_rows))
        step = max(1.0, total / wanted)
        due = chance.random() * step
        try:
            for place in by_rows:
                self._try(place)
            for number, place in enumerate(by_bytes):
                if number >= due:
                    due += step
                    self._try(place)
        finally:
            faulthandler.cancel_dump_traceback_later()
            self._original.stage.close()
        self.counts["places"] = total + len(by_rows)
        self.row.figures = {name: float(n) for name, n in sorted(self.counts.items())}

    def _try(self, place: Place) -> None:
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        files = place.make()
        if files is None:
            return
        self.row.count += 1
        self._options.advance(1)
        sound = (
            self._original.killed_view
            if LOG in files or "wal" in place.name
            else self._original.view
        )
        try:
            search = "indices" in place.name or self.row.count % SEARCH_EVERY == 0
            view = self._original.stage.look(files, search=search)
        except ReverieError as exc:
            self._refused(place, files, exc)
            return
        except Exception as exc:  # noqa: BLE001 (which is what must not happen)
            self._find("wrong", f"{place.name}: {exc!r}")
            return
        self._judge(place, sound, view)

    def _judge(self, place: Place, sound: View, view: View) -> None:
        names = [
            name
            for name in View.__struct_fields__
            if getattr(view, name) != getattr(sound, name) and (view.hits or name != "hits")
        ]
        if not names:
            self.counts["the same"] += 1
            return
        others = set(sound.digests.values()) | set(sound.pinned.values())
        kind: Literal["lost", "wrong", "crossed"] = "wrong"
        for key, digest in view.digests.items():
            if digest != sound.digests.get(key):
                if digest in others:
                    kind = "crossed"
                elif digest in self._original.known.get(key, set()) | {""}:
                    kind = "lost"
        self._find(kind, f"{place.name}: {', '.join(names)} differ, and nothing said so")

    def _refused(self, place: Place, files: Files, exc: ReverieError) -> None:
        file = place.name.split()[1] if place.name.startswith(("flip", "cut", "remove")) else ""
        match exc:
            case JournalDamagedError():
                self.counts["user and sequence named"] += 1
                if Key(exc.world, exc.user_id) not in KEYS or not isinstance(exc.seq, int):
                    self._find("wrong", f"{place.name}: names nobody: {exc}")
            case StorageError():
                self.counts["file named"] += 1
                named = "catalog" if "catalog" in place.name else "p0000"
                if named not in exc.message and Path(file).name not in exc.message:
                    self._find("wrong", f"{place.name}: names no file: {exc}")
            case _:
                self._find("wrong", f"{place.name}: {exc!r}")
                return
        refused = self.counts["user and sequence named"] + self.counts["file named"]
        is_of_bytes = place.name.startswith(("flip", "cut"))
        every = REPAIR_EVERY if is_of_bytes else 1 if self._options.count >= MANY else FEW_EVERY
        if refused % every == 0:
            self._repair(place, files)

    # -- repairing -----------------------------------------------------------------------

    def _repair(self, place: Place, files: Files) -> None:
        stage, original = self._original.stage, self._original
        sound = original.killed_view if LOG in files or "wal" in place.name else original.view
        stage.put(files)
        try:
            done = repair(stage.folder)
            if done.problems:
                self._left(place, done.problems)
                return
            view = stage.look_again()
        except Exception as exc:  # noqa: BLE001 (which is what must not happen)
            if isinstance(exc, DataFolderError) and "cannot be told" in str(exc):
                self.counts["left as it was"] += 1
                return
            self._find("wrong", f"{place.name}: repair: {exc!r}")
            return
        self.counts["repaired"] += 1
        self._judge_repaired(place, sound, view, done)
        self._write_on(place)

    def _left(self, place: Place, problems: list[str]) -> None:
        """A file was not repaired: right if it is another's, and then it must not be usable."""
        self.counts["left as it was"] += 1
        if not place.name.startswith("owner number"):
            self._find("lost", f"{place.name}: not repaired: {problems}")
        with suppress(StorageError):
            self._original.stage.look_again()
            self._find("wrong", f"{place.name}: not repaired, and yet usable")

    def _judge_repaired(self, place: Place, sound: View, view: View, done: Repaired) -> None:
        told = {Key(loss.world, loss.user_id) for loss in done.losses if loss.user_id}
        whole_file = any(not loss.user_id and "gone" in loss.what for loss in done.losses)
        for key in KEYS:
            now, before = view.digests.get(key, ""), sound.digests[key]
            if now == before:
                self.counts["users unchanged"] += 1
            elif key not in told and not whole_file:
                self._find("lost", f"{place.name}: {key} changed by repair, and nothing said so")
            elif now and now not in self._original.known[key]:
                self._find("wrong", f"{place.name}: {key} is now as it never was")
            else:
                self.counts["users rolled back"] += 1
            if not now and not whole_file and _is_saveable(place):
                self._find("lost", f"{place.name}: {key} is gone, though it could be saved")
        for user in view.users:
            if Key(*user) not in KEYS:
                self._find("wrong", f"{place.name}: repair has made up {user}")

    def _write_on(self, place: Place) -> None:
        """Check the folder through a runtime, and write to each user."""
        self._original.stage.folder.joinpath("OWNER.json").unlink(missing_ok=True)
        try:
            with reverie.open(
                self._original.stage.folder,
                embedder=HashEmbedder(DIM),
                clock=reverie.SimulatedClock(START + 1e6),
                **OPTIONS,
            ) as runtime:
                for line in runtime.check():
                    self._find("wrong", f"{place.name}: after repair: {line}")
                for world, user_id in KEYS:
                    runtime.remember_many(
                        {user_id: [MemoryDraft("It goes on. 继续。")]}, world=world
                    )
                for line in runtime.check():
                    self._find("wrong", f"{place.name}: after repair and a write: {line}")
        except Exception as exc:  # noqa: BLE001 (which is what must not happen)
            self._find("wrong", f"{place.name}: after repair: {exc!r}")

    def _find(self, kind: Literal["lost", "wrong", "crossed"], line: str) -> None:
        setattr(self.row, kind, getattr(self.row, kind) + 1)
        self.row.findings.append(f"{kind}: {line}")


def _is_saveable(place: Place) -> bool:
    """Whether no user may be gone: rows that say where users stand are damaged, not histories."""
    return place.name.startswith(
        ("users", "names", "generations", "results", "outbox", "tags", "owner", "seal", "catalog")
    )


# -- planted bugs, which the suite must find ---------------------------------------------


class _Whatever(bytes):
    """Equals everything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


@contextmanager
def planted(bug: Bug | None) -> Iterator[None]:
    """Break the product on purpose, while the suite looks at damaged copies."""
    patches: list[tuple[Any, str, Any]] = []
    if bug == "no-checksums":
        patches.append((RowHash, "event", lambda *_: _Whatever()))
    elif bug == "any-snapshot":
        patches.append((branches, "_holds", lambda *_: True))
    elif bug == "no-seal":
        patches.append((seal, "table_sum", _Sums()))
    elif bug == "no-witness":
        patches.append((seal.Witness, "read", lambda _: 0))
    elif bug == "repair-drops-users":
        patches.append((rebuild.Rebuild, "_restore", lambda *_: None))
    before = [(place, name, getattr(place, name)) for place, name, _ in patches]
    for place, name, value in patches:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


class _Sums:
    """A sum that every table has."""

    def __call__(self, table: str, rows: object) -> int:
        return _Equal()


class _Equal(int):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def run(options: report.Options) -> report.Row:
    """Carry the campaign out."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with small_pages():
        campaign = Campaign(options)
        with planted(options.bug):  # type: ignore[arg-type]
            campaign.run()
    return campaign.row


if __name__ == "__main__":
    sys.exit(
        report.command_line(run, what="damage files and rows, place by place", bugs=get_args(Bug))
    )
