"""`User.export`: everything of a user is in it, and nothing is left after an error."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support import DAY, DIM, Factory, Home, Sentences

from reverie import Profile, User
from reverie.actors import commands as c
from reverie.exporting.fields import FIELDS, OPTIONAL
from reverie.exporting.rows import FILES
from reverie.memory_graph import nodes as n
from reverie.memory_graph.audit import AuditLine
from reverie.memory_graph.errors import (
    InvalidValueError,
    MaskKeyMissingError,
    StorageError,
    StorageFullError,
)
from reverie.memory_graph.snapshot import read_snapshot
from reverie.models.masking import KINDS
from reverie.models.usage import Usage
from reverie.vault import new_mask_key

TEXTS = ["I live in Oslo.", "我养了两只猫。", "Ana works at the Oslo Lab."]


@pytest.fixture
def lived(home: Home) -> User:
    """A user with something of every kind."""
    user, clock = home.user("eva"), home.clock
    user.add([{"text": t, "id": f"x{i}"} for i, t in enumerate(TEXTS)], session="one", infer=False)
    user.add("Noted. 记下了。", session="two", infer=False)
    first = user.remember("Ana keeps bees.", tags=["a"], topics=["animals"], entities=["Ana"])
    clock.advance(DAY)
    user.remember("Ana sold the bees.", replaces=first.memory_id, sources=["t3"])
    gone = user.remember("李娜要走了。", kind="event", metadata={"k": [1, "二"]})
    user.delete(gone.memory_id, reason="asked 要求")
    user.archive(user.remember("Put away.").memory_id)
    user.relate("Ana", "works_at", "Oslo Lab", functional=True)
    user.relate("Ana", "works_at", "Bergen Lab", functional=True)
    user.relationships.move("Ana", trust=0.4, reason="help 帮忙")
    user.set_profile(Profile(name="guard", memories=100))
    home.rt.world(home.world).group("bakers").join("eva")
    user.summarise()
    user.search("bees")
    return user


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    with (folder / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def state(user: User) -> Any:
    """What the shard holds of a user."""
    found: c.WholeUser = user._rt.call(c.Whole(**user._read()))
    return read_snapshot(found.state)


# -- nothing is left out ------------------------------------------------------------------


def test_every_kind_of_node_has_its_file_and_every_field_its_place() -> None:
    assert set(FILES) == set(get_args(n.Node))
    elsewhere: dict[type, set[str]] = {n.User: {"id", "profile", "groups"}}
    for kind, name in FILES.items():
        held = set(kind.__struct_fields__) - elsewhere.get(kind, set())
        assert held <= set(FIELDS[name]), kind
    assert set(n.Relation.__struct_fields__) - {"kind"} <= set(FIELDS["relations.jsonl"])
    assert set(n.Edge.__struct_fields__) <= set(FIELDS["links.jsonl"])
    assert set(n.Move.__struct_fields__) <= set(FIELDS["relationship_moves.jsonl"])
    relationship = set(FIELDS["relationships.jsonl"])
    assert set(n.Dimension.__struct_fields__) <= relationship
    assert set(n.Standing.__struct_fields__) <= relationship
    assert {f"moves_{f}" for f in n.Bond.__struct_fields__} & {"moves_dropped"} <= relationship
    assert set(n.Bond.__struct_fields__) == {"dimensions", "moves", "dropped"}
    assert set(AuditLine.__struct_fields__) <= set(FIELDS["audit.jsonl"])
    assert set(Usage.__struct_fields__) <= set(FIELDS["usage.jsonl"])


def test_everything_of_a_user_is_in_it(lived: User, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    manifest = lived.export(folder, vectors=True)
    snapshot, stats = state(lived), lived.stats()
    of = {type(node) for node in snapshot.nodes}
    assert of == set(get_args(n.Node))  # or this test would show little
    for kind, name in FILES.items():
        if kind is not n.User:
            held = [node.id for node in snapshot.nodes if type(node) is kind]
            assert [row["id"] for row in rows(folder, name)] == held
    edges = [(t, h, e.id if isinstance(e, n.Relation) else e.kind) for t, h, e in snapshot.edges]
    links = [(r["tail"], r["head"], r["kind"]) for r in rows(folder, "links.jsonl")]
    relations = [(r["head"], r["tail"], r["id"]) for r in rows(folder, "relations.jsonl")]
    assert sorted(links + relations) == sorted(edges)
    counts = {name: facts.rows for name, facts in manifest.files.items()}
    assert counts["messages.jsonl"] == stats.messages
    assert counts["memories.jsonl"] == stats.memories
    assert counts["entities.jsonl"] == stats.entities
    assert counts["relations.jsonl"] == stats.relations
    assert counts["summaries.jsonl"] == stats.summaries
    assert counts["sessions.jsonl"] == stats.sessions
    assert counts["vectors.jsonl"] == stats.vectors
    assert counts["audit.jsonl"] == lived.audit().total
    assert counts["relationships.jsonl"] == len(lived.relationships.list())
    assert counts["relationship_moves.jsonl"] == len(lived.relationships.history("Ana"))
    assert counts["groups.jsonl"] == 1
    for name in FIELDS:
        assert name in counts, name


def test_what_is_in_the_files_is_what_the_user_is(lived: User, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    lived.export(folder)
    messages = rows(folder, "messages.jsonl")
    assert [m["text"] for m in messages] == [*TEXTS, "Noted. 记下了。"]
    assert [m["session_name"] for m in messages] == ["one"] * 3 + ["two"]
    assert messages[1]["external_id"] == "x1"
    memories = {m["text"]: m for m in rows(folder, "memories.jsonl")}
    old, new = memories["Ana keeps bees."], memories["Ana sold the bees."]
    assert (old["status"], old["superseded_by"], old["tags"]) == ("superseded", [new["id"]], ["a"])
    assert (new["supersedes"], new["sources"], new["status"]) == ([old["id"]], ["t3"], "active")
    assert (old["entities"], old["topics"]) == (["Ana"], ["animals"])
    assert memories["李娜要走了。"]["metadata"] == {"k": [1, "二"]}
    assert memories["李娜要走了。"]["retired_why"] == "asked 要求"
    for memory in memories.values():
        assert memory["valid_from"] == lived.get(memory["id"]).valid_from
    relations = {r["tail_name"]: r for r in rows(folder, "relations.jsonl")}
    assert relations["Oslo Lab"]["retired_at"] is not None
    assert relations["Bergen Lab"]["head_name"] == "Ana"
    (tie,) = rows(folder, "relationships.jsonl")
    assert (tie["other_name"], tie["dimension"], tie["value"]) == ("Ana", "trust", 0.4)
    assert rows(folder, "relationship_moves.jsonl")[0]["reason"] == "help 帮忙"
    assert rows(folder, "groups.jsonl") == [{"group": "bakers", "is_member": True}]
    profile = json.loads((folder / "profile.json").read_text())["profile"]
    assert (profile["name"], profile["memories"]) == ("guard", 100)
    owner = json.loads((folder / "user.json").read_text())
    assert (owner["user_id"], owner["world"]) == (lived.key.user_id, lived.key.world)


@pytest.mark.parametrize("name", ["out", "out.zip", "出.ZIP"])
def test_the_manifest_and_the_readme_tell_the_truth(lived: User, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    returned = lived.export(path, vectors=True)
    if path.is_file():
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            archive.extractall(tmp_path / "in")
        assert path.stat().st_mode & 0o777 == 0o600
        path = tmp_path / "in"
    else:
        assert path.stat().st_mode & 0o777 == 0o700
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest == msgspec.to_builtins(returned)
    assert {p.name for p in path.iterdir()} == {*manifest["files"], "manifest.json"}
    readme = (path / "README.txt").read_text()
    for file, facts in manifest["files"].items():
        data = (path / file).read_bytes()
        assert (len(data), sha256(data).hexdigest()) == (facts["bytes"], facts["sha256"])
        if file.endswith(".jsonl"):
            found = rows(path, file)
            assert len(found) == facts["rows"]
            for row in found:
                assert list(row) == list(FIELDS[file])
        if file in FIELDS:
            assert f"\n{file}\n" in readme
            assert all(f"    {field}: " in readme for field in FIELDS[file])


def test_the_memory_of_a_group_is_exported_by_its_own_name(lived: User, tmp_path: Path) -> None:
    rt, world = lived._rt, lived.key.world
    rt.user("group:bakers", world).export(tmp_path / "out")
    owner = json.loads((tmp_path / "out" / "user.json").read_text())
    assert owner["group"] == "bakers"
    assert list(owner["members"]) == ["eva"]


def test_vectors_are_only_there_when_asked_for(lived: User, tmp_path: Path) -> None:
    lived.export(tmp_path / "without")
    assert not any(p.name.startswith("vectors") for p in (tmp_path / "without").iterdir())
    assert "vectors.jsonl" in OPTIONAL
    lived.export(tmp_path / "with", vectors=True)
    matrix = np.load(tmp_path / "with" / "vectors.npy")
    ids = [row["id"] for row in rows(tmp_path / "with", "vectors.jsonl")]
    assert matrix.shape == (len(ids), DIM)
    assert matrix.dtype == np.float32
    snapshot = state(lived)
    assert (ids, matrix.tobytes()) == (snapshot.vector_ids, snapshot.vectors)


def test_turns_that_wait_or_failed_are_in_it(runtime_factory: Factory, tmp_path: Path) -> None:
    rt = runtime_factory(extractor=Sentences(), background=False)
    user = rt.user("ana")
    user.add("boom", wait=True)
    user.add("It waits. 等着。")
    user.export(tmp_path / "out")
    failed, waiting = rows(tmp_path / "out", "messages.jsonl")
    assert failed["status"] == "quarantined"
    assert "boom" in failed["error"]
    assert (waiting["status"], waiting["error"]) == ("pending", None)


def test_traces_are_in_it(runtime_factory: Factory, tmp_path: Path) -> None:
    rt = runtime_factory(trace=True, background=False)
    user = rt.user("ana")
    user.remember("Ana keeps bees.")
    user.search("bees 蜜蜂")
    rt.user("bo").search("other")
    user.export(tmp_path / "out")
    (row,) = rows(tmp_path / "out", "traces.jsonl")
    assert "蜜蜂" in json.dumps(row, ensure_ascii=False)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.text(min_size=1, max_size=40).filter(lambda t: t.strip()), max_size=5))
def test_any_text_comes_back_as_it_was(
    home: Home, tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    from contextlib import suppress

    from reverie.memory_graph.errors import InvalidTextError

    user = home.rt.user(f"u{next(NUMBERS)}", home.world)
    said = ["begin"]
    user.add("begin", infer=False)
    for text in texts:
        with suppress(InvalidTextError):  # a NUL
            user.add(text, infer=False)
            said.append(text)
    folder = tmp_path_factory.mktemp("texts") / "out"
    user.export(folder)
    assert [row["text"] for row in rows(folder, "messages.jsonl")] == said


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


NUMBERS = _numbers()

# -- masks --------------------------------------------------------------------------------


def test_masked_texts_are_shown_with_the_key_alone(
    runtime_factory: Factory, tmp_path: Path
) -> None:
    key = new_mask_key()
    rt = runtime_factory(mask=KINDS, mask_key=key, background=False)
    user = rt.user("ana")
    user.remember("My sister Ines Moreau lives in Porto.", metadata={"mail": "i@x.org"})
    user.relate("Ines Moreau", "knows", "赵敏敏", head_type="person", tail_type="person")
    assert user.export(tmp_path / "masked").mask == "masked"
    assert user.export(tmp_path / "shown", unmask=True).mask == "unmasked"
    rt.close()
    assert "Moreau" not in "".join(p.read_text() for p in (tmp_path / "masked").iterdir())
    (memory,) = rows(tmp_path / "shown", "memories.jsonl")
    assert memory["text"] == "My sister Ines Moreau lives in Porto."
    assert memory["metadata"] == {"mail": "i@x.org"}
    names = {row["name"] for row in rows(tmp_path / "shown", "entities.jsonl")}
    assert {"Ines Moreau", "赵敏敏"} <= names
    rt = runtime_factory()  # without the key
    with pytest.raises(MaskKeyMissingError):
        rt.user("ana").export(tmp_path / "no", unmask=True)
    assert rt.user("ana").export(tmp_path / "still").mask == "masked"
    assert not (tmp_path / "no").exists()


# -- what cannot be -----------------------------------------------------------------------


def test_a_user_that_is_not_there_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="no user"):
        home.user("nobody").export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_never_replaced(lived: User, tmp_path: Path) -> None:
    taken, empty, file = tmp_path / "taken", tmp_path / "empty", tmp_path / "file.zip"
    for folder in (taken, empty):
        folder.mkdir()
    (taken / "mine.txt").write_text("mine")
    file.write_text("mine")
    for path in (taken, file, taken / "mine.txt"):
        with pytest.raises(InvalidValueError, match="is there already"):
            lived.export(path)
    lived.export(empty)
    assert (taken / "mine.txt").read_text() == file.read_text() == "mine"
    with pytest.raises(StorageError):
        lived.export(tmp_path / "missing" / "out")


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_after_an_error_nothing_is_left(
    lived: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from reverie.exporting import files

    def full(self: files.File, row: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.File, "row", full)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StorageFullError):
        lived.export(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_ids_of_a_user_become_no_path(home: Home, tmp_path: Path) -> None:
    user = home.rt.user("../../etc/passwd", home.world)
    user.remember("x")
    before = sorted(tmp_path.iterdir())
    user.export(tmp_path / "out.zip")
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "out.zip"])
