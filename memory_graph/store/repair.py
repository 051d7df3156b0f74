"""`reverie check --repair`: saves all that is whole of a damaged data folder.

What is sound is left alone, and what is damaged is never changed: a new file is built of the rows
that vouch for themselves (salvage.py, rebuild.py) and takes the place of the old one (replace.py),
which is kept under `damaged/<number>/`, with `lost.jsonl`, the events that were whole and could not
be applied. Everything that is not as it was is told, by user and sequence.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from reverie.memory_graph.errors import (
    DataFolderError,
    JournalDamagedError,
    ReverieError,
    StorageFailedError,
)
from reverie.memory_graph.ids import Key, partition_of
from reverie.memory_graph.store import replace, salvage as pages
from reverie.memory_graph.store.catalog import (
    MAX_PARTITIONS,
    SCHEMA,
    SEALED as CATALOG_SEALED,
    Catalog,
    World,
)
from reverie.memory_graph.store.check import check
from reverie.memory_graph.store.folder import CATALOG, hold
from reverie.memory_graph.store.partition import Partition
from reverie.memory_graph.store.rebuild import Loss, Rebuild
from reverie.memory_graph.store.schema import (
    PARTITION_ID,
    PARTITION_SCHEMA,
    PARTITION_VERSION,
    SEALED,
)
from reverie.memory_graph.store.seal import Witness
from reverie.memory_graph.store.sqlite import closed_on_error, open_database

if TYPE_CHECKING:
    from pathlib import Path

    from reverie.memory_graph.store.rebuild import Build, Tag
    from reverie.memory_graph.store.salvage import Salvaged


UNKNOWN_SPEC = "object"  # of a world: the runtime takes any embedder that has the right id


class Repaired(msgspec.Struct):
    """What came of a repair.

    Attributes:
        files: those that were built anew.
        kept_in: where the damaged ones are now; empty when there were none.
        losses: everything that is not as it was.
        problems: what could not be repaired; such a file is left as it was.
    """

    files: list[str] = []
    kept_in: str = ""
    losses: list[Loss] = []
    problems: list[str] = []


def repair_folder(path: Path, build: Build) -> Repaired:
    """Repair a data folder that nobody has open.

    Args:
        path: the folder.
        build: builds a state and tells of it; raises JournalDamagedError when it cannot be built
            from what it is given.

    Raises:
        DataFolderLockedError: somebody has it open.
        DataFolderError: no data folder, or of a newer version.
        StorageError: a file cannot be read or written; what was repaired before it is in place.
    """
    with hold(path):
        replace.finish(path)
        return _Folder(path, build).repair()


class _Folder:
    """A locked folder while it is repaired."""

    def __init__(self, path: Path, build: Build) -> None:
        self._path = path
        self._build = build
        self._number = 0
        self._done = Repaired()
        self._tags: list[set[Tag]] = []  # of each partition
        self._worlds: set[str] = set()
        self._embedders: dict[str, tuple[str, int]] = {}  # of each world, by its states

    def repair(self) -> Repaired:
        catalog, error = self._catalog()
        salvaged = None
        if catalog is None:
            salvaged, _ = pages.salvage(self._path / CATALOG, pages.CATALOG_TABLES, CATALOG_SEALED)
            count = self._count(salvaged)
            tags = {(w, t) for w, t, _ in salvaged.rows["tags"]}
            tags = tags if "tags" in salvaged.whole else set()
        else:
            count = catalog.partitions
            tags = {(t.world, t.tag) for w in self._named(catalog) for t in catalog.tags(w)}
            catalog.close()
        for index in range(count):
            self._partition(index, tags)
        if salvaged is not None and error is not None:
            self._rebuild_catalog(salvaged, count, error)
        if self._number:
            self._done.kept_in = str(replace.kept_in(self._path, self._number))
            replace.finish(self._path)
        return self._done

    def _lose(self, file: str, what: str) -> None:
        self._done.losses.append(Loss(file, what))

    def _place(self) -> int:
        if not self._number:
            self._number = replace.new_place(self._path)
        return self._number

    # -- partitions ----------------------------------------------------------------------

    def _partition(self, index: int, tags: set[Tag]) -> None:
        path = self._path / "partitions" / f"p{index:04d}.db"
        problems, error = self._problems(path, index)
        if not problems:
            return
        best, others = pages.salvage(path, pages.PARTITION_TABLES, SEALED)
        if reason := _hands_off(best, index, error):
            self._done.problems.append(f"{path.name}: {reason}")
            return
        seen = Witness(path).read()
        target = replace.built_in(self._path, self._place()) / path.name
        db = open_database(
            target,
            application_id=PARTITION_ID,
            version=PARTITION_VERSION,
            schema=PARTITION_SCHEMA,
            migrations={},
        )
        rebuild = Rebuild(db, path.name, self._build)
        with closed_on_error(db):
            with db.write():
                db.keep_seal(SEALED, commits=max(best.commits, seen))
                rebuild.fill(best, others, index, tags)
            left = check(db)
        db.close()
        if left:
            self._done.problems += [f"{path.name}: {line}" for line in [*problems, *left]]
            return
        self._keep_aside(rebuild.kept_aside)
        replace.put_in_place(self._path, path, self._number)
        self._done.files.append(path.name)
        if best.commits and best.commits < seen:
            what = f"its last {seen - best.commits:,} transactions are gone, of users unknown"
            self._lose(path.name, what)
        elif not any(best.rows.values()):
            self._lose(path.name, "everything in it is gone")
        self._done.losses += rebuild.losses
        self._problems(path, index)  # what it holds now, for the catalog

    def _problems(self, path: Path, index: int) -> tuple[list[str], ReverieError | None]:
        """Return what is wrong with a partition; notes its tags and worlds."""
        try:
            partition = Partition.open(path, index=index, owner="repair", create=False)
        except (StorageFailedError, DataFolderError) as exc:
            return [exc.message], exc
        try:
            return self._problems_of(partition), None
        except StorageFailedError as exc:
            return [exc.message], exc
        finally:
            with suppress(StorageFailedError):
                partition.close()

    def _problems_of(self, partition: Partition) -> list[str]:
        found = partition.check()
        if found:
            return found
        worlds = partition.worlds()
        self._worlds.update(worlds)
        self._tags.append(partition.all_tags())
        for world in worlds:
            for user_id in partition.users(world):
                key = Key(world, user_id)
                try:
                    loaded = partition.load(key)
                    if loaded is not None:
                        built = self._build(key, loaded)
                        if built.embedder is not None:
                            self._embedders[world] = (built.embedder, built.dim)
                except JournalDamagedError as exc:
                    found.append(exc.message)
        return found

    def _keep_aside(self, lines: list[bytes]) -> None:
        if lines:
            with (replace.kept_in(self._path, self._number) / "lost.jsonl").open("ab") as file:
                file.writelines(line + b"\n" for line in lines)

    # -- the catalog ---------------------------------------------------------------------

    def _catalog(self) -> tuple[Catalog | None, ReverieError | None]:
        path = self._path / CATALOG
        try:
            if not path.is_file():
                msg = f"{path} is gone"
                raise StorageFailedError(msg, path=str(path))  # noqa: TRY301 (as other damage)
            return Catalog.open(path, partitions=1, create=False), None
        except StorageFailedError as exc:
            return None, exc
        except DataFolderError as exc:
            best, _ = pages.salvage(path, pages.CATALOG_TABLES, CATALOG_SEALED)
            if "supported" in exc.details and not _is_ours(best, SCHEMA, CATALOG_SEALED):
                raise
            return None, exc

    @staticmethod
    def _named(catalog: Catalog) -> list[str]:
        return [world.name for world in catalog.worlds()]

    def _count(self, salvaged: Salvaged) -> int:
        """Return how many partitions the folder has: what its users' places prove.

        Raises:
            DataFolderError: nothing tells it for sure.
        """
        rows = [row[1] for row in salvaged.rows["folder"]]
        if "folder" in salvaged.whole and len(rows) == 1:
            return int(rows[0])
        files = {int(p.stem[1:]): p for p in (self._path / "partitions").glob("p*.db")}
        places: list[tuple[Key, int]] = []
        for index, path in files.items():
            best, _ = pages.salvage(path, pages.PARTITION_TABLES, SEALED)
            places += [(Key(row[1], row[2]), index) for row in best.rows["names"]]
        least = max(files, default=0) + 1
        fitting = [
            n
            for n in [*rows, *range(least, MAX_PARTITIONS + 1)]
            if least <= n <= MAX_PARTITIONS and all(partition_of(k, n) == i for k, i in places)
        ]
        if not files or not fitting or not places:
            msg = f"{self._path}: how many partitions it has cannot be told any more"
            raise DataFolderError(msg, path=str(self._path))
        return int(fitting[0])

    def _rebuild_catalog(self, salvaged: Salvaged, count: int, error: ReverieError) -> None:
        path = self._path / CATALOG
        target = replace.built_in(self._path, self._place()) / CATALOG
        catalog = Catalog.open(target, partitions=count)
        try:
            for world in self._known_worlds(salvaged):
                catalog.add_world(world)
            made = {(w, t): at for w, t, at in salvaged.rows["tags"]}
            everywhere = set.intersection(*self._tags) if self._tags else set()
            for tag in sorted(made if "tags" in salvaged.whole else everywhere):
                catalog.add_tag(*tag, made.get(tag, 0.0))
            if "intents" in salvaged.whole:
                for _, operation, kind, payload in salvaged.rows["intents"]:
                    catalog.begin_intent(operation, kind, payload)
        finally:
            catalog.close()
        replace.put_in_place(self._path, path, self._number)
        self._done.files.append(CATALOG)
        self._lose(CATALOG, f"was built anew: {error.message}")
        missing = [name for name in CATALOG_SEALED if name not in salvaged.whole]
        if missing:
            self._lose(CATALOG, f"not all rows were whole in: {', '.join(missing)}")

    def _known_worlds(self, salvaged: Salvaged) -> list[World]:
        """Return the worlds; of unproven rows, those that the states of their users prove."""
        rows = [World(*row) for row in salvaged.rows["worlds"]]
        if "worlds" in salvaged.whole:
            return rows
        found: dict[str, World] = {}
        for world in rows:
            if self._embedders.get(world.name) == (world.embedder, world.dim):
                found[world.name] = world
        for name in sorted(self._worlds - found.keys()):
            embedder, dim = self._embedders.get(name, ("", 0))
            if embedder:
                found[name] = World(name, embedder, dim, UNKNOWN_SPEC, 0.0)
            self._lose(CATALOG, f"world {name!r} has to be told its embedder again: {embedder}")
        return list(found.values())


def _is_ours(best: Salvaged, schema: tuple[str, ...], sealed: tuple[str, ...]) -> bool:
    """Whether tables and rows are those of this format, whatever the header says."""
    found = {row[4] for row in best.rows["sqlite_schema"]} - {None}
    return found == set(schema) and best.whole == set(sealed)


def _hands_off(best: Salvaged, index: int, error: ReverieError | None) -> str:
    """Return why a file must not be replaced, "" when it may be."""
    details: dict[str, Any] = {} if error is None else error.details
    if "supported" in details and not _is_ours(best, PARTITION_SCHEMA, SEALED):
        return str(error)
    numbers = {row[3] for row in best.rows["owner"]}
    if "owner" in best.whole and numbers != {index}:
        return f"it is partition {numbers}; put the files back in their places"
    tables = {row[1] for row in best.rows["sqlite_schema"]}
    if "users" in tables and "seal" not in tables and "names" not in tables:
        return "it is damaged and has format 1, which cannot be repaired: restore it from a backup"
    return ""
