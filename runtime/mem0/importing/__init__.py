"""A store of mem0 into a data folder: `reverie import mem0`.

Memories keep their ids, so that a program finds under `reverie.mem0` what it has stored elsewhere;
their times; and with a history.db what they said before. Run again, it adds nothing twice and goes
on where it was stopped: what is there is told by the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from reverie.fields import parse_time
from reverie.mem0 import relations
from reverie.mem0.adding import without_core
from reverie.mem0.exceptions import ValidationError
from reverie.mem0.importing.changes import Change, Changes, beside, read_changes
from reverie.mem0.importing.graph import Triple, read_graph
from reverie.mem0.importing.rows import Bad, Row
from reverie.mem0.importing.stores import Source, find
from reverie.mem0.payload import CREATED, ID, UPDATED, encode
from reverie.mem0.scope import IDS, Scope, make_scope
from reverie.mem0.store import Entry, Record, Store
from reverie.memory_graph.errors import InputError, InvalidTimeError
from reverie.memory_graph.text import name_key
from reverie.runtime import Runtime

BATCH = 200  # memories that are stored together
Progress = Callable[[int, int], None]  # done, of how many


class Skipped(msgspec.Struct, frozen=True):
    """An entry that was left out: of which source, its place there (from 1), and why."""

    source: str
    number: int
    why: str


class Report(msgspec.Struct):
    """What an import did.

    Attributes:
        sources: what was read.
        read: entries, of which
        new: were stored now,
        known: were there already, and the rest is in `skipped`.
        versions: earlier texts of memories, out of the history.
        relations: of the graph, that were new.
        gone: memories that were deleted in mem0: their history names no owner, and stays out.
    """

    sources: list[str] = []
    read: int = 0
    new: int = 0
    known: int = 0
    versions: int = 0
    relations: int = 0
    gone: int = 0
    skipped: list[Skipped] = []


class _Plan(msgspec.Struct):
    """A memory on its way: whose it is, its texts, and the version that was stored last."""

    row: Row
    scope: Scope
    texts: list[Change]
    last: str | None = None  # id of that version
    stored: int = 0


def import_mem0(
    runtime: Runtime,
    source: Path,
    *,
    world: str = "mem0",
    collection: str | None = None,
    history: Path | None = None,
    graph: Path | None = None,
    user_id: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read a store of mem0 into a world.

    Args:
        runtime: of the data folder.
        source: a folder of Qdrant, FAISS or Chroma, or a JSON file of exported items.
        world: where to; the facade looks in "mem0" by default.
        collection: only this one of the store.
        history: the history.db; by default one in the source's folder or beside it.
        graph: a Kuzu file of 1.x.
        user_id: whose memories are those that name nobody; they are skipped by default.
        progress: told after each batch.

    Raises:
        InvalidValueError: nothing of mem0 is there, or a file cannot be read.
        ConfigError: a graph without the extra that reads it.
    """
    sources = find(source, collection)
    place = beside(source) if history is None else history
    changes = Changes({}, set()) if place is None else read_changes(place)
    triples = [] if graph is None else list(read_graph(graph))
    report = Report(sources=[one.kind for one in sources])
    importer = _Importer(Store(runtime, world), changes, user_id, report)
    total = sum(one.total for one in sources)
    for one in sources:
        for _ in importer.memories(one):
            if progress is not None:
                progress(report.read, total)
    if graph is not None:
        importer.relations(triples, graph.name)
    report.gone = len(changes.deleted - importer.seen)
    return report


class _Importer:
    def __init__(self, store: Store, changes: Changes, user_id: str | None, report: Report) -> None:
        self.store = store
        self.changes = changes
        self.user_id = user_id
        self.report = report
        self.seen: set[str] = set()

    def memories(self, source: Source) -> Iterator[None]:
        """Store what a source holds; yields after each batch."""
        rows = source.read()
        while batch := list(islice(rows, BATCH)):
            plans = [plan for one in batch if (plan := self._plan(one, source.kind)) is not None]
            self._store(plans)
            self.report.read += len(batch)
            yield

    def _skip(self, source: str, number: int, why: str) -> None:
        self.report.skipped.append(Skipped(source, number, why))

    def _plan(self, one: Row | Bad, source: str) -> _Plan | None:
        if isinstance(one, Bad):
            self._skip(source, one.number, one.why)
            return None
        if one.id in self.seen:
            self._skip(source, one.number, f"the id {one.id} has come before")
            return None
        self.seen.add(one.id)
        ids = {name: one.payload.get(name) for name in IDS}
        if not any(ids.values()):
            ids["user_id"] = self.user_id
        try:
            scope = make_scope(ids, strict=False)
            plan = _Plan(one, scope, self._texts(one))
            for text in plan.texts:
                self.store.check(self._entry(plan, text))
        except (InputError, ValidationError) as exc:
            self._skip(source, one.number, exc.message)
            return None
        return self._known(plan)

    def _texts(self, one: Row) -> list[Change]:
        payload = one.payload
        at = payload.get("updated_at") or payload.get("created_at")
        now = Change(payload["data"], at if isinstance(at, str) else None)
        texts = list(self.changes.texts.get(one.id, ()))
        if texts and texts[-1].text == now.text:
            texts[-1] = now
        else:
            texts.append(now)
        return texts

    def _known(self, plan: _Plan) -> _Plan | None:
        """Return a plan with what is stored of it already, None when that is all."""
        found = self.store.versions(plan.row.id)
        if found is not None:
            _, items = found
            plan.stored, plan.last = len(items), items[-1].id
            if plan.stored >= len(plan.texts) or items[-1].status != "active":
                self.report.known += 1
                return None
        return plan

    def _entry(self, plan: _Plan, text: Change) -> Entry:
        payload = plan.row.payload
        created = _utc(payload.get("created_at")) or _utc(plan.texts[0].at)
        since = _utc(text.at) or created
        marks: dict[str, Any] = {ID: plan.row.id}
        if created is not None:
            marks |= {CREATED: created, UPDATED: since}
        own = {k: v for k, v in without_core(payload).items() if k not in IDS}
        is_first = text is plan.texts[0]
        return Entry(
            plan.scope.owner,
            text.text,
            encode(own | plan.scope.ids(), marks),
            plan.last,
            None,
            _seconds(created if is_first else since),
        )

    def _store(self, plans: Sequence[_Plan]) -> None:
        """Store the versions of some memories, the first of all, then the second, and so on."""
        self.report.new += sum(plan.stored == 0 for plan in plans)
        firsts: list[Record] = []
        while left := [plan for plan in plans if plan.stored < len(plan.texts)]:
            entries = [self._entry(plan, plan.texts[plan.stored]) for plan in left]
            records = self.store.keep(entries)
            firsts += [r for plan, r in zip(left, records, strict=True) if plan.stored == 0]
            for plan, record in zip(left, records, strict=True):
                plan.last = record.item.id
                self.report.versions += plan.stored > 0
                plan.stored += 1
        self.store.note_imported(firsts)

    def relations(self, triples: Sequence[Triple], source: str) -> None:
        """Store the relations that are not there yet."""
        known: dict[str, set[tuple[str, str, str]]] = {}
        for triple in triples:
            ids = {"user_id": triple.user_id, "agent_id": triple.agent_id, "run_id": triple.run_id}
            try:
                scope = make_scope(ids, strict=False)
                head, tail = (_name(end, scope) for end in (triple.source, triple.target))
                owner = scope.owner
                if owner not in known:
                    there = relations.of_owner(self.store, owner, ended=True)
                    known[owner] = {_key(r.head, r.predicate, r.tail) for r in there}
                key = _key(head, triple.relationship, tail)
                if key in known[owner]:
                    continue
                user = self.store.user(owner)
                user.relate(head, triple.relationship, tail, valid_from=triple.since)
                known[owner].add(key)
                self.report.relations += 1
            except (InputError, ValidationError) as exc:
                self._skip(source, triple.number, exc.message)


def _name(end: str, scope: Scope) -> str:
    """Return a name of mem0's graph, which holds low lines for spaces; the owner is "user"."""
    if scope.user_id is not None and name_key(end) in {
        name_key(scope.user_id),
        name_key(scope.user_id.lower().replace(" ", "_")),
    }:
        return "user"
    return end.replace("_", " ")


def _key(head: str, predicate: str, tail: str) -> tuple[str, str, str]:
    return (name_key(head), name_key(predicate), name_key(tail))


def _utc(value: object) -> str | None:
    """Return a stored time in UTC, None for what is none. mem0 before 2 wrote the time of one zone
    with its offset; times without an offset stay as they are."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.astimezone(UTC).isoformat() if found.tzinfo is not None else value


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else parse_time(value)
    except InvalidTimeError:
        return None


__all__ = ["Report", "Skipped", "import_mem0"]
