"""Data folders of every format are opened by this version; those of newer ones are refused.

The folders were made by `tests/data/make_upgrade_fixture.py`, each by the version of its time.
"""

from __future__ import annotations

import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from support import START

import reverie
from reverie import SimulatedClock, errors
from reverie.actors.residents import INDEX_FORMAT
from reverie.memory_graph import events, snapshot
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.store.catalog import CATALOG_VERSION
from reverie.memory_graph.store.schema import PARTITION_SCHEMA, PARTITION_VERSION
from reverie.models.standin import HashEmbedder

FIXTURES = sorted((Path(__file__).parents[1] / "data").glob("upgrade_*.tar.xz"))
DIM = 8


def open_(folder: Path, **settings: Any) -> reverie.Runtime:
    settings = {"embedder": HashEmbedder(DIM), "background": False, **settings}
    return reverie.open(folder, clock=SimulatedClock(START + 1e6), **settings)


def unpacked(archive: Path, to: Path) -> tuple[Path, dict[str, Any]]:
    with tarfile.open(archive) as packed:
        packed.extractall(to, filter="data")
    return to / "data", msgspec.json.decode((to / "expected.json").read_bytes())


@pytest.fixture
def latest(tmp_path: Path) -> Path:
    return unpacked(FIXTURES[-1], tmp_path)[0]


def change(path: Path, statement: str) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute(statement).fetchall()
    connection.close()


def digests(rt: reverie.Runtime) -> dict[str, str]:
    return {f"{w}/{u}": rt.user(u, w).digest() for w in rt.worlds() for u in rt.users(w)}


def test_there_is_a_folder_of_each_format() -> None:
    """When a format changes, the folder of the one before is kept, and one of the new is made."""
    assert [path.name for path in FIXTURES] == [
        f"upgrade_{number}.tar.xz" for number in range(1, PARTITION_VERSION + 1)
    ]
    assert (CATALOG_VERSION, events.JOURNAL_FORMAT, snapshot.SNAPSHOT_FORMAT) == (2, 1, 1)
    assert INDEX_FORMAT == 1
    assert sum(path.stat().st_size for path in FIXTURES) < 300_000


@pytest.mark.parametrize("archive", FIXTURES, ids=lambda path: path.name)
def test_an_older_folder_is_opened_read_and_written_on(archive: Path, tmp_path: Path) -> None:
    folder, expected = unpacked(archive, tmp_path)
    with open_(folder) as rt:
        assert rt.check() == []
        assert digests(rt) == expected["digests"]
        assert {w: [t.tag for t in rt.checkpoints(w)] for w in rt.worlds()} == expected[
            "checkpoints"
        ]
        stats = rt.stats()
        assert (stats.pending, stats.quarantined) == (
            expected["pending"],
            expected["quarantined"],
        )
    with open_(folder, partitions=9) as rt:  # it is migrated by now
        assert digests(rt) == expected["digests"]
        ana = rt.user("Ana", "town")
        again = rt.user("Ana", "港口").remember(  # the answer to the request is kept
            "Ana keeps bees. Ana养蜂。",
            tags=["bees"],
            metadata={"hive": 3},
            entities=[reverie.EntityDraft("Bo", "person", ("Robert",)), ("李娜", "person")],
            topics=["animals", "动物"],
            request_id="bees of Ana",
        )
        assert (again.op, again.memory_id) == ("ADD", "m3")
        assert digests(rt) == expected["digests"]
        assert ana.search("Who keeps bees?")[0].text == "Ana keeps bees. Ana养蜂。"
        assert ana.neighbors("李娜", include_retired=True).relations
        assert ana.remember("It goes on. 继续。").op == "ADD"
        rt.drain()
        assert rt.stats().pending == 0
        assert rt.fork("before the storm", "again", world="town") == 2
        assert rt.rewind("before the storm", world="town") == 2
        rt.flush()
        assert rt.check() == []
        now = digests(rt)
    with open_(folder) as rt:
        assert digests(rt) == now
        assert rt.check() == []


def test_an_older_folder_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    folder, _ = unpacked(FIXTURES[0], tmp_path)
    open_(folder).close()
    for path in sorted((folder / "partitions").glob("p*.db")):
        with apsw.Connection(str(path)) as connection:
            found = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema") if sql]
            assert sorted(found) == sorted(PARTITION_SCHEMA)
            assert connection.pragma("user_version") == PARTITION_VERSION
        connection.close()


@pytest.mark.parametrize("archive", FIXTURES, ids=lambda path: path.name)
def test_a_migration_that_is_cut_off_is_done_again(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.memory_graph.store.sqlite import Database

    folder, expected = unpacked(archive, tmp_path)
    change_many, left = Database.change_many, [3]

    def cut(db: Database, sql: str, many: Any) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        change_many(db, sql, many)

    with monkeypatch.context() as patch:
        patch.setattr(Database, "change_many", cut)
        with suppress(KeyboardInterrupt):
            open_(folder).close()
    with open_(folder) as rt:
        assert rt.check() == []
        assert digests(rt) == expected["digests"]


# -- newer formats -----------------------------------------------------------------------


def test_a_newer_catalog_is_refused(latest: Path) -> None:
    change(latest / "catalog.db", f"PRAGMA user_version = {CATALOG_VERSION + 1}")
    with pytest.raises(errors.DataFolderError, match="written by a newer version"):
        open_(latest)


def test_newer_partitions_are_refused(latest: Path) -> None:
    first, second = sorted((latest / "partitions").glob("p*.db"))
    change(first, f"PRAGMA user_version = {PARTITION_VERSION + 1}")
    with open_(latest) as rt:  # the users of the other one can be read
        (line,) = rt.check()
        assert "p0000.db was written by a newer version" in line
        with pytest.raises(errors.DataFolderError, match="written by a newer version"):
            rt.users("town")
    change(second, f"PRAGMA user_version = {PARTITION_VERSION + 1}")
    with pytest.raises(errors.DataFolderError, match="written by a newer version"):
        open_(latest)


def test_a_newer_journal_is_refused(latest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reverie.memory_graph.store import partition

    with monkeypatch.context() as patch:
        patch.setattr(partition, "JOURNAL_FORMAT", events.JOURNAL_FORMAT + 1)
        open_(latest).close()
    with pytest.raises(errors.DataFolderError, match="its journal has format 2"):
        open_(latest)


def test_a_newer_snapshot_is_refused(latest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "SNAPSHOT_FORMAT", snapshot.SNAPSHOT_FORMAT + 1)
        with open_(latest) as rt:
            rt.user("Ana", "town").remember("From the future. 来自未来。")
            rt.flush()
    with open_(latest) as rt:
        with pytest.raises(
            errors.DataFolderError, match="a snapshot was written by a newer version"
        ):
            rt.user("Ana", "town").digest()
        assert rt.user("小明", "town").digest()
    with pytest.raises(errors.DataFolderError, match="newer version"):
        reverie.repair(latest)
    assert not (latest / "damaged").exists()


def test_a_newer_snapshot_is_told_by_its_own_number() -> None:
    data = msgspec.msgpack.decode(snapshot.encode_snapshot(UserMemory()))
    data["format"] = snapshot.SNAPSHOT_FORMAT + 1
    with pytest.raises(errors.DataFolderError, match="newer version"):
        snapshot.decode_snapshot(msgspec.msgpack.encode(data))


def test_an_index_of_another_format_is_built_anew(tmp_path: Path) -> None:
    options: dict[str, Any] = {"exact_limit": 8, "partitions": 1}
    with open_(tmp_path, **options) as rt:
        for i in range(12):
            rt.user("ana").remember(f"Fact {i}. 事实{i}。")
        hits = [hit.id for hit in rt.user("ana").search("Fact 3", limit=3)]
    (digest,) = (tmp_path / "indices").glob("*.sum")
    number, _, rest = digest.read_text("ascii").partition(" ")
    assert (number, len(rest)) == (str(INDEX_FORMAT), 32)
    digest.write_text(f"{INDEX_FORMAT + 1} {rest}", "ascii")
    with open_(tmp_path, **options) as rt:
        assert [hit.id for hit in rt.user("ana").search("Fact 3", limit=3)] == hits
        rt.user("ana").remember("One more. 再来一个。")
        rt.flush()
    assert digest.read_text("ascii").startswith(f"{INDEX_FORMAT} ")
