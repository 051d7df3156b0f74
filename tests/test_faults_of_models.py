"""Models are somebody else's code: whatever they make, the journal can be read again."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import DAY, DIM, START, Factory

import reverie
from reverie import errors
from reverie.actors import commands as c
from reverie.actors.lane import Lane
from reverie.memory_graph.drafts import MemoryDraft, checked
from reverie.models.protocol import Extraction, Float32, TextRole, Turn
from reverie.models.standin import HashEmbedder

BAD = {
    "kind": MemoryDraft("x", kind="note"),  # type: ignore[arg-type]
    "importance": MemoryDraft("x", importance="0.9"),  # type: ignore[arg-type]
    "share": MemoryDraft("x", confidence=1.5),
    "time": MemoryDraft("x", valid_from=float("nan")),
    "blank": MemoryDraft("  "),
    "tags": MemoryDraft("x", tags=(1,)),  # type: ignore[arg-type]
}


class Careless:
    """An extractor that makes of each turn the draft that it names."""

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        return [Extraction(t.id, (BAD.get(t.text, MemoryDraft(t.text)),)) for t in turns]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_draft_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidValueError):
        checked(BAD[name])


def test_bad_drafts_are_their_turns_fault_and_nobody_elses(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(extractor=Careless())
    ana = rt.user("ana")
    ana.add(["柏林很大。", *BAD, "Oslo is far."], wait=True)
    assert {i.text for i in ana.list().items} == {"柏林很大。", "Oslo is far."}
    (away,) = rt.quarantined()
    assert len(away.turn_ids) == len(BAD)
    kept = ana.digest()
    rt.close()
    assert factory().user("ana").digest() == kept
    factory.finish()


def test_an_interrupt_in_a_write_leaves_memory_and_disk_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = Factory(tmp_path, None)
    rt = factory()
    ana = rt.user("ana")
    ana.remember("before")
    kept = ana.digest()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reverie.actors.writes.Outbox.apply", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ana.remember("lost")
    assert ana.digest() == kept
    ana.remember("after")
    assert [i.text for i in ana.list().items] == ["before", "after"]
    factory.finish()


def test_an_interrupted_leader_leaves_the_lane_free() -> None:
    began, go_on = threading.Event(), threading.Event()

    def transport(batch: Sequence[c.AnyCommand]) -> list[object]:
        began.set()
        if not go_on.wait(5):
            raise AssertionError
        if len(batch) == 1 and batch[0] == c.ListUsers("stop"):
            raise KeyboardInterrupt
        return ["ok"] * len(batch)

    lane = Lane(transport)
    failed: list[BaseException] = []

    def lead() -> None:
        try:
            lane.call([c.ListUsers("stop")])
        except KeyboardInterrupt as exc:
            failed.append(exc)

    thread = threading.Thread(target=lead)
    thread.start()
    began.wait(5)
    go_on.set()
    thread.join(5)
    assert failed
    assert lane.call([c.ListUsers()]) == ["ok"]
    lane.close()


def test_a_memory_whose_time_is_over_is_no_reason_to_keep_nothing(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(extractor="rules")
    ana = rt.user("ana")
    ana.remember("User lives in Oslo", ttl_s=DAY)
    factory.clock.set(START + 2 * DAY)
    ana.add("I live in Oslo.", wait=True)
    assert [h.text for h in ana.search("Where do I live?", types="memory")] == [
        "User lives in Oslo"
    ]
    factory.finish()


def test_what_a_reader_does_to_metadata_stays_with_the_reader(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    ana = factory().user("ana")
    kept = ana.remember("x", metadata={"a": {"b": 1}})
    digest = ana.digest()
    item = ana.get(kept.memory_id)
    assert item.metadata is not None
    item.metadata["a"]["b"] = 2
    assert ana.digest() == digest
    factory.finish()


def test_a_question_makes_no_world(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory()
    assert rt.user("ana", "later").search("anything") == []
    assert rt.user("ana", "later").context("anything").text == ""
    assert rt.worlds() == []
    rt.user("ana").remember("x")
    rt.checkpoint("start")
    assert rt.fork("start", "later") == 1
    factory.finish()


def test_a_misspelt_option_is_refused(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory()
    with pytest.raises(TypeError):
        rt.search_many([("ana", "x")], filter={"kind": "fact"})  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        rt.user("ana").context("x", filter={"kind": "fact"})  # type: ignore[call-arg]
    factory.finish()


def test_a_relation_does_not_end_before_it_begins(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    ana: reverie.User = factory().user("ana")
    with pytest.raises(errors.InvalidTimeError):
        ana.relate("Ana", "works_at", "Lab", valid_from=10, valid_to=5)
    factory.finish()


def test_a_filter_sees_what_the_item_shows(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    ana = factory().user("ana")
    old = ana.remember("Ana lives in Berlin.")
    factory.clock.advance(DAY)
    ana.remember("Ana lives in Oslo.", replaces=old.memory_id)
    (hit,) = ana.search("Ana", as_of=START + 1, filters={"status": "active"})
    assert (hit.text, hit.status) == ("Ana lives in Berlin.", "active")
    assert ana.search("Ana", as_of=START + 1, filters={"status": "superseded"}) == []
    factory.finish()


@pytest.mark.parametrize("together", [True, False])
def test_what_held_earlier_does_not_replace_what_holds_now(tmp_path: Path, together: bool) -> None:  # noqa: FBT001
    factory = Factory(tmp_path, None)
    ana = factory(extractor="rules").user("ana")
    turns = [
        {"text": "I live in Oslo.", "at": START},
        {"text": "I live in Berlin.", "at": START - 300 * DAY},
    ]
    for part in [turns] if together else [[turn] for turn in turns]:
        ana.add(part, wait=True)

    def lives(**moment: float) -> set[str]:
        hits = ana.search("Where do I live?", types="memory", **moment)  # type: ignore[arg-type]
        return {hit.text for hit in hits}

    assert lives() == {"User lives in Oslo"}
    assert lives(valid_at=START + DAY) == {"User lives in Oslo"}
    assert lives(valid_at=START - DAY) == {"User lives in Berlin"}
    assert {r.tail for r in ana.neighbors().relations} == {"Oslo"}
    factory.finish()


def test_what_was_replaced_comes_last_and_says_so(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    ana = factory(extractor="rules").user("ana")
    ana.add("My favourite colour is blue.", wait=True)
    factory.clock.advance(DAY)
    ana.add("My favourite colour is green.", wait=True)
    hits = ana.search("What is my favourite colour?")
    assert "blue" in hits[-1].text
    block = ana.context("What is my favourite colour?").text
    assert block.index("green") < block.index("blue")
    assert "replaced later" in block[block.index("blue") :]
    assert "blue" not in ana.context("What is my favourite colour?", budget_tokens=24).text
    factory.finish()


def test_symbols_are_not_the_same_thing(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    ana = factory(extractor="rules").user("ana")
    for text in ["I love pizza.", "I love 🍕.", "I love 🎸.", "I love C++.", "I love C."]:
        ana.add(text, wait=True)
    assert ana.stats().active == 5
    factory.finish()


def test_a_large_context_is_made_in_one_pass(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    ana = factory().user("ana")
    ana.add([f"line {i} about bees" for i in range(1500)], infer=False)
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return len(text.split())

    block = ana.context("bees", limit=1500, budget_tokens=10_000_000, count_tokens=count)
    assert len(block.hits) == 1500
    assert counted < 4 * len(block.text)
    factory.finish()


class Crooked(HashEmbedder):
    """An embedder that returns what it is told to."""

    answer: object = None

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    "answer",
    [None, [[1.0]], np.zeros((2, DIM)), np.full((1, DIM), np.nan), ValueError("no"), "text"],
)
def test_what_an_embedder_does_wrong_is_a_typed_error(tmp_path: Path, answer: object) -> None:
    factory = Factory(tmp_path, None)
    embedder = Crooked(DIM)
    embedder.answer = answer
    rt = factory(embedder=embedder)
    with pytest.raises(errors.ModelFailedError):
        rt.user("ana").remember("x")
    assert rt.users() == []
    factory.finish()


def test_an_object_that_is_no_embedder_is_named(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(embedder=object())
    with pytest.raises(errors.ConfigError, match="no embedder"):
        rt.user("ana").remember("x")
    factory.finish()


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_lost_partition_is_noticed(tmp_path: Path, how: str) -> None:
    factory = Factory(tmp_path, None)
    factory().user("ana").remember("x")
    factory.finish()
    path = tmp_path / "data" / "partitions" / "p0001.db"
    path.unlink() if how == "deleted" else path.write_bytes(b"")
    rt = factory()
    (line,) = rt.check()
    assert "p0001.db" in line
    there, gone = 0, 0
    for i in range(20):
        try:
            rt.user(f"u{i}").remember("The others go on. 其他人照常。")
            there += 1
        except errors.StorageFailedError as error:
            assert "p0001.db" in error.message  # noqa: PT017 (in one of many)
            gone += 1
    assert min(there, gone) > 0
    with pytest.raises(errors.StorageFailedError, match=r"p0001\.db"):
        rt.users()  # a list without some of them would be wrong
    rt.close()
    assert not path.exists() or not path.stat().st_size


def test_a_lost_catalog_is_noticed(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    factory().user("ana").remember("x")
    factory.finish()
    (tmp_path / "data" / "catalog.db").unlink()
    with pytest.raises(errors.DataFolderError, match=r"catalog\.db"):
        factory()


def test_logs_do_not_go_to_standard_output(tmp_path: Path) -> None:
    program = (
        "import reverie, sys\n"
        "class Bad:\n"
        "    def extract(self, turns, history): raise ValueError('no')\n"
        "with reverie.open(sys.argv[1], embedder='standin', extractor=Bad()) as rt:\n"
        "    rt.user('ana').add('hello', wait=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "data"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert "no" in done.stderr


def test_a_shared_text_is_explained_in_the_receipt(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory()
    for i in range(8):
        rt.user(f"user{i}").observe("The amulet was stolen by the player.")
    receipt = rt.user("user0").forget()
    assert receipt.clean, receipt.erased.found
    assert receipt.erased.shared == 1
    factory.finish()
