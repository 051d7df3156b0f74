"""Models are somebody else's code: whatever they make, the journal can be read again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import DAY, START, Factory

import reverie
from reverie import errors
from reverie.actors import commands as c
from reverie.actors.lane import Lane
from reverie.memory_graph.drafts import MemoryDraft, checked
from reverie.models.protocol import Extraction, Turn

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
