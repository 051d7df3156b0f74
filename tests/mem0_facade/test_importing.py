"""`reverie import mem0`: stores that mem0 has written, exported items, and hostile ones."""

from __future__ import annotations

import hashlib
import json
import pickle
import sqlite3
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import reverie
from reverie import Runtime
from reverie.cli.app import app
from reverie.mem0 import Memory
from reverie.mem0.importing import BATCH, Report, import_mem0
from reverie.mem0.importing.pickles import load, plain
from reverie.mem0.store import Store
from reverie.memory_graph.errors import ConfigError, InvalidTextError, InvalidValueError

PACKED = Path(__file__).resolve().parents[1] / "data" / "mem0_stores.tar.xz"
STORES = ["1/qdrant", "2/qdrant", "2/faiss", "2/chroma"]


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path / "stores", filter="data")
    return tmp_path / "stores"


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    with reverie.open(
        tmp_path / "data", embedder="standin", partitions=2, background=False
    ) as made:
        yield made
        assert made.check() == []


def facade(rt: Runtime) -> Memory:
    """A facade on an open runtime; it is not closed."""
    made = Memory.__new__(Memory)
    from reverie.mem0.config import read_config

    made.plan, made.version = read_config(data=rt.path), None
    made.store = Store(rt, "mem0")
    return made


def sums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def of(memory: Memory, **filters: Any) -> dict[str, dict[str, Any]]:
    found = memory.get_all(filters=filters, top_k=1000)["results"]
    return {item["memory"]: item for item in found}


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_mem0(rt: Runtime, stores: Path, name: str) -> None:
    before = sums(stores)
    report = import_mem0(rt, stores / name)
    assert (report.read, report.new, report.versions, report.gone) == (4, 4, 2, 1)
    assert report.skipped == []
    memory = facade(rt)
    home = of(memory, user_id="ana")["I live in Rome"]
    assert home["metadata"] == ({"n": 3, "topic": "home"} if name[0] == "2" else None)
    tea = of(memory, user_id="李雷", agent_id="guide")["她喜欢喝龙井茶"]
    assert tea["metadata"] == {"主题": "茶"}
    assert set(of(memory, run_id="r1")) == {"Runs end at noon"}
    assert set(of(memory, agent_id="guide")) == {"她喜欢喝龙井茶", "I answer in short sentences"}
    assert of(memory, agent_id="guide")["I answer in short sentences"]["metadata"] == {
        "flag": True,
        "owner": "me",
    }
    rows = memory.history(home["id"])
    texts = ["I live in Bergen", "I live in Oslo", "I live in Rome"]
    assert [row["new_memory"] for row in rows] == texts
    with sqlite3.connect(f"file:{stores / name / 'history.db'}?mode=ro", uri=True) as db:
        theirs = list(
            db.execute(
                "select updated_at from history where memory_id = ? order by rowid", (home["id"],)
            )
        )
    assert [row["updated_at"] for row in rows] == [at for (at,) in theirs]
    assert home["created_at"] == rows[0]["created_at"] < home["updated_at"]
    assert memory.get(home["id"]) is not None
    memory.update(home["id"], "I live in Paris")
    assert len(memory.history(home["id"])) == 4

    digest = rt.user("ana", "mem0").digest()
    again = import_mem0(rt, stores / name)
    assert (again.new, again.known, again.versions, again.skipped) == (0, 4, 0, [])
    assert rt.user("ana", "mem0").digest() == digest
    memory.delete(home["id"])
    import_mem0(rt, stores / name)
    assert memory.get(home["id"]) is None, "what was deleted here stays deleted"
    assert sums(stores) == before


ITEMS: list[Any] = [
    {
        "id": "x-1",
        "memory": "Likes tea",
        "user_id": "ana",
        "created_at": "2024-05-01T01:00:00-07:00",
    },
    {
        "id": "x-2",
        "memory": "喜欢喝茶",
        "agent_id": "a",
        "metadata": {"topic": "茶"},
        "score": None,
    },
    {"id": 3, "memory": "No owner"},
    {"id": "x-4", "memory": "  ", "user_id": "ana"},
    {"memory": "No id", "user_id": "ana"},
    {"id": "x-1", "memory": "Twice", "user_id": "eve"},
    "no item",
    {"id": "x-8", "memory": "Bad\ud800", "user_id": "ana"},
    {"id": "x-9", "memory": "Big", "user_id": "ana", "metadata": {"x": "y" * 20_000}},
    {"id": "x-10", "memory": "Long", "user_id": "u" * 600},
    {"id": "x-11", "data": "From elsewhere", "user_id": 7, "metadata": None},
    {"id": "x-12", "memory": "Odd", "user_id": "ana", "metadata": ["x"]},
]
BAD = [3, 4, 5, 6, 7, 8, 9, 10, 12]


@pytest.mark.parametrize("form", ["list", "results", "lines"])
def test_exported_items(rt: Runtime, tmp_path: Path, form: str) -> None:
    path = tmp_path / ("items.jsonl" if form == "lines" else "items.json")
    if form == "lines":
        text = "\n".join(json.dumps(item) for item in ITEMS)
    else:
        text = json.dumps(ITEMS if form == "list" else {"results": ITEMS})
    path.write_text(text.replace('"Bad\\ud800"', '"Bad\\u0000"'))
    report = import_mem0(rt, path)
    assert [one.number for one in report.skipped] == BAD
    assert all(one.why for one in report.skipped)
    assert report.new == 3
    memory = facade(rt)
    item = memory.get("x-1")
    assert item is not None
    assert item["created_at"] == "2024-05-01T08:00:00+00:00"
    assert rt.user("ana", "mem0").list().items[0].at == 1714550400.0
    assert set(of(memory, user_id="7")) == {"From elsewhere"}
    assert of(memory, agent_id="a")["喜欢喝茶"]["metadata"] == {"topic": "茶"}
    with_owner = import_mem0(rt, path, user_id="someone")
    assert with_owner.new == 1
    assert set(of(memory, user_id="someone")) == {"No owner"}


def test_it_goes_on_where_it_was_stopped(
    rt: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, count = tmp_path / "items.json", 2 * BATCH + 50
    items = [{"id": f"i{n}", "memory": f"Fact {n}", "user_id": f"u{n % 5}"} for n in range(count)]
    path.write_text(json.dumps(items))

    def stop(done: int, total: int) -> None:
        assert total == count
        if done >= BATCH:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_mem0(rt, path, progress=stop)
    keep = Store.keep

    def half(self: Store, entries: list[Any]) -> Any:  # a batch of which only a part is stored
        keep(self, entries[: len(entries) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "keep", half)
    with pytest.raises(KeyboardInterrupt):
        import_mem0(rt, path)
    monkeypatch.undo()
    report = import_mem0(rt, path)
    assert (report.known, report.new) == (BATCH + BATCH // 2, count - BATCH - BATCH // 2)
    stored = [i.text for n in range(5) for i in rt.user(f"u{n}", "mem0").list(limit=1000).items]
    assert sorted(stored) == sorted(f"Fact {n}" for n in range(count))


def test_a_chain_that_was_cut_is_finished(
    rt: Runtime, stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, calls = Store.keep, []

    def once(self: Store, entries: list[Any]) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return keep(self, entries)

    monkeypatch.setattr(Store, "keep", once)
    with pytest.raises(KeyboardInterrupt):
        import_mem0(rt, stores / "2/faiss")
    assert set(of(facade(rt), user_id="ana")) == {"I live in Bergen"}
    monkeypatch.undo()
    report = import_mem0(rt, stores / "2/faiss")
    assert (report.new, report.known, report.versions) == (0, 3, 2)
    assert set(of(facade(rt), user_id="ana")) == {"I live in Rome"}


# -- what must not be trusted -------------------------------------------------------------------


class Bomb:
    """A pickle of it runs a program when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize(
    "hostile",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbuiltins\ngetattr\n(cbuiltins\nset\nS'__class__'\ntR.",
        b"csubprocess\nPopen\n(S'true'\ntR.",
        b"cqdrant_client.http.models.models\nPointStruct\n(S'x'\ntRcos\nsystem\n(S'true'\ntR.",
        b"Pid\n.",
        b"",
        b"\x80\x05",
        b"(" * 1000,
        pickle.dumps({"a": 1})[:-3],
    ],
)
def test_hostile_pickles(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="pickle"):
        load(hostile)


def test_stubs_do_nothing() -> None:
    made = load(b"cqdrant_client.x\nsystem\n(S'touch /tmp/never'\ntR.")
    assert made.state == {}
    with pytest.raises(ValueError, match="Stub"):
        plain({"x": [made]})


def test_a_bomb_in_a_store_is_an_entry_that_is_skipped(
    rt: Runtime, stores: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "exploded"
    with sqlite3.connect(stores / "2/qdrant/collection/memories/storage.sqlite") as db:
        db.execute("insert into points values ('bomb', ?)", (pickle.dumps(Bomb(marker)),))
        db.execute("insert into points values ('text', 'no blob')")
    report = import_mem0(rt, stores / "2/qdrant")
    assert [one.number for one in report.skipped] == [5, 6]
    assert "pickle" in report.skipped[0].why
    assert report.new == 4
    index = stores / "2/faiss/memories.json"
    documents = json.loads(index.read_text())["docstore"]
    index.unlink()
    index.with_suffix(".pkl").write_bytes(pickle.dumps((documents, {0: "x"})))  # as of 1.0
    assert import_mem0(rt, stores / "2/faiss").new == 4
    index.with_suffix(".pkl").write_bytes(pickle.dumps((Bomb(marker), {})))
    with pytest.raises(InvalidValueError, match="pickle"):
        import_mem0(rt, stores / "2/faiss")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items.json", b"{"),
        ("items.json", b'{"other": []}'),
        ("items.json", b"5"),
        ("items.txt", b"[]"),
        ("memories.faiss", b"x"),
        ("chroma.sqlite3", b"no database"),
        ("chroma.sqlite3", b""),
        ("collection/memories/storage.sqlite", b"SQLite format 3\x00" + b"x" * 500),
    ],
)
def test_what_is_no_store(rt: Runtime, tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / "source" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    source = path if path.suffix in {".json", ".txt"} else tmp_path / "source"
    with pytest.raises(InvalidValueError):
        import_mem0(rt, source)
    with pytest.raises(InvalidValueError, match="no history"):
        import_mem0(rt, _items(tmp_path), history=_database(tmp_path))


@pytest.mark.parametrize("name", ["items.json", "items.jsonl"])
def test_a_file_that_says_that_it_is_no_utf_8_is_told_so(
    rt: Runtime, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes('[{"memory": "喜欢茶"}]'.encode("utf-16"))
    with pytest.raises(InvalidTextError, match=f"{name}: its text is UTF-16"):
        import_mem0(rt, path)


def _items(folder: Path) -> Path:
    path = folder / "good.json"
    path.write_text("[]")
    return path


def _database(folder: Path) -> Path:
    path = folder / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("create table if not exists notes (x)")
    return path


# -- the graph of 1.x, and the command line ------------------------------------------------------


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph with the tables of mem0 1.0.11."""
    kuzu = pytest.importorskip("kuzu")
    path = tmp_path / "graph.kuzu"
    db = kuzu.Connection(kuzu.Database(str(path)))
    db.execute(
        "create node table Entity(id serial primary key, user_id string, agent_id string,"
        " run_id string, name string, mentions int64, created timestamp, embedding float[])"
    )
    db.execute(
        "create rel table CONNECTED_TO(from Entity to Entity, name string, mentions int64,"
        " created timestamp, updated timestamp)"
    )
    triples = [
        ("ana", "ana", "likes", "green_tea"),
        ("ana", "rex", "dog_of", "ana"),
        ("李雷", "李雷", "住在", "杭州"),
        ("ana", "", "knows", "tom"),
        ("", "x", "knows", "y"),
    ]
    for user, head, predicate, tail in triples:
        for name in (head, tail):
            db.execute("merge (n:Entity {user_id: $u, name: $n})", {"u": user, "n": name})
        db.execute(
            "match (a:Entity {user_id: $u, name: $a}), (b:Entity {user_id: $u, name: $b})"
            " create (a)-[:CONNECTED_TO {name: $r, created: timestamp('2024-05-01 08:00:00')}]->"
            "(b)",
            {"u": user, "a": head, "b": tail, "r": predicate},
        )
    return path


def test_the_graph_of_1(rt: Runtime, graph: Path, tmp_path: Path) -> None:
    report = import_mem0(rt, _items(tmp_path), graph=graph)
    assert report.relations == 3
    assert [one.number for one in report.skipped] == [4, 5]
    relations = rt.user("ana", "mem0").neighbors("user").relations
    assert {(r.head, r.predicate, r.tail) for r in relations} == {
        ("user", "likes", "green tea"),
        ("rex", "dog_of", "user"),
    }
    assert {r.valid_from for r in relations} == {1714550400.0}
    (place,) = rt.user("李雷", "mem0").neighbors("杭州").relations
    assert place.predicate == "住在"
    again = import_mem0(rt, _items(tmp_path), graph=graph)
    assert again.relations == 0


def test_without_the_package_for_the_graph(
    rt: Runtime, graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kuzu", None)
    with pytest.raises(ConfigError, match=r"reverie\[mem0\]"):
        import_mem0(rt, _items(tmp_path), graph=graph)
    monkeypatch.undo()
    broken = tmp_path / "broken.kuzu"
    broken.write_bytes(b"x" * 5000)
    with pytest.raises(InvalidValueError, match="no graph"):
        import_mem0(rt, _items(tmp_path), graph=broken)


def test_the_command(stores: Path, tmp_path: Path) -> None:
    def run(*words: object) -> Any:
        return CliRunner().invoke(app, ["import", "mem0", *map(str, words)])

    data = tmp_path / "brought"
    done = run(stores / "2/qdrant", data, "--embedder", "standin", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["report"]["new"] == 4
    with Memory(data=data, embedder="standin") as memory:
        assert set(of(memory, user_id="ana")) == {"I live in Rome"}
    shown = run(stores / "2/qdrant", data, "--embedder", "standin")
    assert "known already" in shown.stdout
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(ITEMS[:4]).replace("ana", "ana"))
    skipped = run(bad, "--data", data, "--embedder", "standin")
    assert "2 entries skipped" in skipped.stdout
    assert "entry 3" in skipped.stdout
    wrong = run(tmp_path, data)
    assert wrong.exit_code == 1
    assert "no store of mem0" in wrong.output


def test_a_report_counts_everything(rt: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    path.write_text(json.dumps([i for i in ITEMS if i is not ITEMS[7]]))
    report: Report = import_mem0(rt, path)
    assert report.read == report.new + report.known + len(report.skipped)
