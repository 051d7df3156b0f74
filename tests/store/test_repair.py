"""`repair`: what is whole is saved, what is not is told, and nothing is made worse."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from crash.damaged import Histories
from hypothesis import HealthCheck, given, settings, strategies as st
from support import DIM, PARTITIONS, START

import reverie
from reverie import SimulatedClock, errors
from reverie.actors import recovery
from reverie.memory_graph.ids import Key, partition_of
from reverie.memory_graph.store import Partition, Repaired, repair, sync_folder
from reverie.memory_graph.store.schema import PARTITION_SCHEMA
from reverie.mind import OBJECT
from reverie.models.standin import HashEmbedder

USERS = [("ana", "town"), ("小明", "town"), ("ana", "港口"), ("bo", "港口"), ("李娜", "港口")]
Digests = dict[tuple[str, str], str]


def open_(folder: Path) -> reverie.Runtime:
    return reverie.open(
        folder,
        embedder=HashEmbedder(DIM),
        partitions=PARTITIONS,
        background=False,
        clock=SimulatedClock(START + 100.0),
    )


def digests(folder: Path) -> Digests:
    with open_(folder) as rt:
        assert rt.check() == []
        return {(user, world): rt.user(user, world).digest() for user, world in USERS}


class Made:
    """A folder, the digest of each user now, and every one that it had before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        histories = Histories()
        with histories.recorded(), open_(folder) as rt:
            for turn in range(3):
                for key in USERS:
                    for text in ("A lantern.", "一盏灯笼。"):
                        rt.user(*key).add(f"{text} {turn}", infer=False, request_id=f"{text}{turn}")
                if turn == 0:
                    rt.checkpoint("early", world="town")
                if turn == 1:
                    rt.flush()
                    rt.rewind("early", world="town")
        self.digests = digests(folder)
        self.known = {key: histories.known[Key(key[1], key[0])] | {""} for key in USERS}

    def copy(self, to: Path) -> Path:
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.folder, to)
        return to


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made") / "data")


@pytest.fixture
def folder(made: Made, tmp_path: Path) -> Path:
    return made.copy(tmp_path / "data")


def file_of(user: str, world: str) -> str:
    return f"p{partition_of(Key(world, user), PARTITIONS):04d}.db"


def change(path: Path, *statements: str) -> None:
    with apsw.Connection(str(path)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()
        assert connection.total_changes()
    connection.close()


def uid_of(path: Path, user: str, world: str) -> int:
    with apsw.Connection(str(path)) as connection:
        ((uid,),) = connection.execute(
            "SELECT uid FROM users WHERE world = ? AND user_id = ?", (world, user)
        )
    connection.close()
    return int(uid)


def test_a_sound_folder_is_left_alone(made: Made, folder: Path) -> None:
    assert reverie.repair(folder) == Repaired()
    assert not (folder / "damaged").exists()
    assert digests(folder) == made.digests


def test_a_user_is_rolled_back_to_before_the_damage(made: Made, folder: Path) -> None:
    user, world = "bo", "港口"
    path = folder / "partitions" / file_of(user, world)
    uid = uid_of(path, user, world)
    with open_(folder) as rt:
        head = rt.user(user, world).stats().seq
    change(path, f"UPDATE journal SET payload = x'00' WHERE uid = {uid} AND seq = {head - 1}")  # noqa: S608
    done = reverie.repair(str(folder))
    assert (done.files, done.problems) == ([path.name], [])
    (loss,) = done.losses
    assert (loss.world, loss.user_id) == (world, user)
    assert (loss.first_seq, loss.last_seq) == (head - 1, head)
    assert f"user 'bo' of '港口': lost" in loss.line  # noqa: F541
    kept = Path(done.kept_in)
    assert {p.name for p in kept.iterdir()} >= {path.name, "lost.jsonl"}
    (line,) = (kept / "lost.jsonl").read_text("utf-8").splitlines()
    assert (json.loads(line)["user_id"], json.loads(line)["seq"]) == (user, head)
    now = digests(folder)
    assert now.pop((user, world)) in made.known[user, world]
    assert now == {key: d for key, d in made.digests.items() if key != (user, world)}
    with open_(folder) as rt:
        with pytest.raises(errors.StaleGenerationError):  # the answer may be of what is lost
            rt.user(user, world).add("A lantern. 2", infer=False, request_id="A lantern.2")
        assert rt.user(user, world).remember("It goes on. 继续。").op == "ADD"
        assert rt.check() == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM users",
        "DELETE FROM names",
        "UPDATE users SET head = head - 1, generation = generation",
        "UPDATE users SET user_id = user_id || 'x'",
        "UPDATE generations SET base_seq = base_seq + 1",
        "UPDATE pins SET seq = seq - 1",
        "DELETE FROM outbox",
        "DELETE FROM owner",
        "DELETE FROM seal",
        "UPDATE journal SET checksum = CAST(substr(checksum, 1, 7) || x'00' AS BLOB)",
        "UPDATE users SET checksum = x'0000000000000000'",
    ],
)
def test_rows_that_say_where_users_stand_cost_nobody_anything(
    made: Made, folder: Path, statement: str
) -> None:
    for path in sorted((folder / "partitions").glob("p*.db")):
        with apsw.Connection(str(path)) as connection:
            connection.execute(statement).fetchall()
        connection.close()
    done = reverie.repair(folder)
    assert done.problems == []
    assert digests(folder) == made.digests


def test_a_file_without_header_and_root_pages_is_read_page_by_page(
    made: Made, folder: Path
) -> None:
    for path in sorted((folder / "partitions").glob("p*.db")):
        path.write_bytes(b"\xa5" * 4096 + path.read_bytes()[4096:])
    done = reverie.repair(folder)
    assert len(done.files) == PARTITIONS
    assert done.losses == []
    assert digests(folder) == made.digests


def test_a_lost_file_loses_its_users_and_no_others(made: Made, folder: Path) -> None:
    name = file_of("ana", "town")
    (folder / "partitions" / name).unlink()
    done = reverie.repair(folder)
    assert f"{name}: everything in it is gone" in [loss.line for loss in done.losses]
    now = digests(folder)
    for key in USERS:
        assert now[key] == ("" if file_of(*key) == name else made.digests[key])


def test_what_a_damaged_frame_hides_is_found_behind_it(folder: Path, tmp_path: Path) -> None:
    """SQLite ends a log at the first damaged frame; acknowledged writes may follow it."""
    with open_(folder) as rt:
        for number in range(3):
            for key in USERS:
                rt.user(*key).remember(f"Later {number}. 后来。")
        found = {key: rt.user(*key).digest() for key in USERS}
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        (copy / "OWNER.json").unlink()
    for log in (copy / "partitions").glob("*-wal"):
        data = bytearray(log.read_bytes())
        if len(data) > 3 * 4120:
            data[32 + 4120 + 16] ^= 1  # the checksum of the second frame
        log.write_bytes(data)
    with open_(copy) as rt:
        assert any("transactions of" in line for line in rt.check())
    done = reverie.repair(copy)
    assert done.losses == []
    assert digests(copy) == found


def test_files_in_each_others_place_are_left_alone(folder: Path) -> None:
    first, second = (folder / "partitions" / f"p000{i}.db" for i in range(2))
    data = first.read_bytes(), second.read_bytes()
    first.write_bytes(data[1])
    second.write_bytes(data[0])
    done = reverie.repair(folder)
    assert done.files == []
    assert len(done.problems) == 2
    assert all("put the files back in their places" in line for line in done.problems)


def test_a_newer_format_is_left_alone(folder: Path) -> None:
    path = folder / "partitions" / "p0001.db"
    change(path, "CREATE TABLE more (x)", "INSERT INTO more VALUES (1)", "PRAGMA user_version = 9")
    (problem,) = reverie.repair(folder).problems
    assert "written by a newer version" in problem
    change(folder / "catalog.db", "CREATE TABLE more (x)", "INSERT INTO more VALUES (1)")
    with apsw.Connection(str(folder / "catalog.db")) as connection:
        connection.execute("PRAGMA user_version = 9").fetchall()
    connection.close()
    with pytest.raises(errors.DataFolderError, match="newer version"):
        reverie.repair(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xa5" * 200 + path.read_bytes()[200:]),
        lambda path: change(path, "DELETE FROM worlds", "UPDATE folder SET partitions = 3"),
        lambda path: change(path, "UPDATE worlds SET embedder = 'x', dim = 1"),
        lambda path: change(path, "DELETE FROM tags"),
    ],
)
def test_a_damaged_catalog_is_built_from_the_partitions(
    made: Made, folder: Path, damage: Callable[[Path], object]
) -> None:
    damage(folder / "catalog.db")
    with pytest.raises(errors.StorageError, match=r"catalog\.db.*check --repair"):
        open_(folder)
    done = reverie.repair(folder)
    assert (done.files, done.problems) == (["catalog.db"], [])
    assert digests(folder) == made.digests
    with open_(folder) as rt:
        assert rt.worlds() == ["town", "港口"]
        assert [tag.tag for tag in rt.checkpoints("town")] == ["early"]
        for key in USERS:
            assert rt.user(*key).remember("It goes on. 继续。").op == "ADD"
        assert rt.rewind("early", world="town") == 2
        assert rt.check() == []


def test_nobody_may_have_it_open(folder: Path) -> None:
    with open_(folder), pytest.raises(errors.DataFolderLockedError):
        reverie.repair(folder)
    with pytest.raises(errors.DataFolderError, match="no data folder"):
        reverie.repair(folder / "traces")


class Killed(BaseException):
    """What ends a process."""


@pytest.mark.parametrize("step", range(1, 12))
def test_a_repair_that_is_killed_leaves_the_old_or_the_new(
    made: Made, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    name = file_of("bo", "港口")
    path = folder / "partitions" / name
    change(path, f"DELETE FROM journal WHERE uid = {uid_of(path, 'bo', '港口')} AND seq > 5")  # noqa: S608
    left = [step]

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object) -> object:
            left[0] -= 1
            if not left[0]:
                raise Killed
            return call(*args)

        return run

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counted(Path.replace))
        patch.setattr("reverie.memory_graph.store.replace.sync_folder", counted(sync_folder))
        with suppress(Killed):
            reverie.repair(folder)
    with open_(folder) as rt:
        is_new = rt.check() == []
        assert {(w, u) for u, w in USERS} == {(w, u) for w in rt.worlds() for u in rt.users(w)}
        for key in USERS:
            if key == ("bo", "港口") and not is_new:
                with pytest.raises(errors.JournalDamagedError):
                    rt.user(*key).digest()
            else:
                assert (rt.user(*key).digest() in made.known[key]) or key != ("bo", "港口")
    assert not list(folder.rglob("*.repaired-*"))
    reverie.repair(folder)
    now = digests(folder)
    assert now.pop(("bo", "港口")) in made.known["bo", "港口"] - {""}
    assert now == {key: d for key, d in made.digests.items() if key != ("bo", "港口")}


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_whatever_is_damaged_the_others_are_as_they_were(
    made: Made, tmp_path: Path, seed: int, count: int
) -> None:
    folder = made.copy(tmp_path / "data")
    chance = random.Random(seed)
    path = folder / "partitions" / f"p{chance.randrange(PARTITIONS):04d}.db"
    data = bytearray(path.read_bytes())
    for _ in range(count):  # bytes, or the beginnings of pages
        at = chance.randrange(len(data))
        at = at // 4096 * 4096 + at % 16 if chance.random() < 0.3 else at
        data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data[: len(data) - 4096 * chance.choice((0, 0, 1, 3))])
    done = reverie.repair(folder)
    assert done.problems == []
    told = {(loss.user_id, loss.world) for loss in done.losses}
    is_unsure = any("may be missing" in loss.what for loss in done.losses)
    now = digests(folder)
    for key in USERS:
        if file_of(*key) != path.name or (key not in told and not is_unsure):
            assert now[key] == made.digests[key], done.losses
        assert now[key] in made.known[key]
    with open_(folder) as rt:
        for key in USERS:
            rt.user(*key).remember("It goes on. 继续。")
        assert rt.check() == []
    assert reverie.repair(folder).files == []


def test_the_store_and_the_runtime_agree_on_what_an_unknown_embedder_is_called() -> None:
    assert repair.UNKNOWN_SPEC == OBJECT


def test_the_page_reader_reads_what_sqlite_reads(made: Made) -> None:
    from reverie.memory_graph.store.salvage import PARTITION_TABLES, salvage
    from reverie.memory_graph.store.schema import SEALED

    for path in sorted((made.folder / "partitions").glob("p*.db")):
        best, others = salvage(path, PARTITION_TABLES, SEALED)
        assert best.whole == frozenset(SEALED)
        assert others == []
        partition = Partition.open(path, index=int(path.stem[1:]), owner="test")
        for table in PARTITION_TABLES:
            expected = partition._db.rows(f"SELECT * FROM {table}")  # noqa: S608
            if table not in {"owner", "seal"}:  # the opening has changed them
                assert sorted(map(repr, best.rows[table])) == sorted(map(repr, expected)), table
        partition.close()
    assert len(PARTITION_SCHEMA) > 10
    assert recovery.EXACT
