"""From turns to memories: what is decided, refused, stale, failed, and what a crash leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import DIM, START, Always, Factory, Gate, Sentences, fact, opened, writer

import reverie
from reverie import errors
from reverie.actors import commands as c
from reverie.actors.ingest import BATCH_TURNS
from reverie.actors.settled import SettledTurns
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import Decision, Kept, Known, MemoryDraft, TurnDraft, TurnOutcome
from reverie.memory_graph.ids import Key
from reverie.memory_graph.nodes import Memory, Message
from reverie.memory_graph.state import UserMemory
from reverie.models.protocol import Extraction, Float32, TextRole, Turn
from reverie.models.standin import HashEmbedder
from reverie.results import AddResult

# -- outcomes on a state ----------------------------------------------------------------


def settled(
    decisions: Sequence[Decision], texts: Sequence[str], memory: UserMemory | None = None
) -> tuple[list[tuple[str, str, str | None, bool]], UserMemory]:
    """Let one turn give `texts`; return (operation, memory, target, refused?) for each."""
    made = writer(START, memory)
    (turn,) = made.turns([TurnDraft("said")], pending=True)
    outcome = TurnOutcome(
        turn, memories=tuple(fact(t, sources=(turn,)) for t in texts), decisions=tuple(decisions)
    )
    kept = made.outcomes([outcome])
    assert check_memory(made.memory) == []
    return [(k.op, k.memory_id, k.target, k.refused is not None) for k in kept], made.memory


def test_decisions_are_carried_out() -> None:
    _, memory = settled([Decision("ADD")], ["I love tea."])
    kept, _ = settled([Decision("NOOP", "m1")], ["I do love tea."], memory)
    assert kept == [("NOOP", "m1", None, False)]
    kept, _ = settled([Decision("UPDATE", "m1")], ["I hate tea."], memory)
    assert kept == [("UPDATE", "m2", "m1", False)]
    kept, _ = settled([Decision("DELETE", "m2")], ["I do not hate tea any more."], memory)
    assert kept == [("DELETE", "m2", "m2", False)]
    node = memory.graph.node("m2")
    assert isinstance(node, Memory)
    assert (node.status, node.retired_why) == ("superseded", "I do not hate tea any more.")


@pytest.mark.parametrize("op", ["UPDATE", "DELETE", "NOOP"])
@pytest.mark.parametrize("target", ["m9", "t1", "u", "m1", "#7", None])
def test_a_target_that_is_no_active_memory_is_refused_and_the_draft_kept(
    op: str, target: str | None
) -> None:
    _, memory = settled([Decision("ADD")], ["Old."])
    writer(START, memory).retire("m1", "expired", "")
    kept, _ = settled([Decision(op, target)], ["我喜欢茶。"], memory)  # type: ignore[arg-type]
    assert kept == [("ADD", "m2", None, True)]


def test_decisions_about_drafts_of_the_same_batch() -> None:
    kept, memory = settled(
        [
            Decision("ADD"),
            Decision("UPDATE", "#0"),
            Decision("NOOP", "#1"),
            Decision("DELETE", "#1"),
        ],
        ["I live in Oslo.", "I live in Rome.", "I live in Rome!!", "I live nowhere."],
    )
    assert kept == [
        ("ADD", "m1", None, False),
        ("UPDATE", "m2", "m1", False),
        ("NOOP", "m2", None, False),
        ("DELETE", "m2", "m2", False),
    ]
    assert {m.status for m in memory.graph.nodes(Memory) if isinstance(m, Memory)} == {"superseded"}


def test_twins_in_one_batch_are_kept_once() -> None:
    kept, memory = settled([Decision("ADD")] * 3, ["I sing.", "i SING.", "I sing!"])
    assert [k[:2] for k in kept] == [("ADD", "m1"), ("NOOP", "m1"), ("ADD", "m2")]
    assert len(memory.graph.statements) == 2


def test_a_turn_is_settled_once_and_places_are_kept() -> None:
    made = writer()
    first, second = made.turns([TurnDraft("a"), TurnDraft("b")], pending=True)

    def outcome(turn: str, text: str, decision: Decision) -> TurnOutcome:
        return TurnOutcome(turn, memories=(fact(text),), decisions=(decision,))

    made.outcomes([outcome(first, "From a.", Decision("ADD"))])
    kept = made.outcomes(
        [
            outcome(first, "From a, again.", Decision("ADD")),
            outcome(second, "From b.", Decision("UPDATE", "#0")),
        ]
    )
    assert [k.op for k in kept] == ["NOOP", "ADD"]
    assert kept[0].refused == "turn settled already"
    assert kept[1].refused is not None
    assert len(list(made.graph.nodes(Memory))) == 2
    assert made.outcomes([TurnOutcome("t99")]) == []


def test_a_skipped_or_spoilt_turn_keeps_its_names_only() -> None:
    made = writer()
    (turn,) = made.turns([TurnDraft("a")], pending=True)
    made.outcomes([TurnOutcome(turn, "quarantined", memories=(fact("x"),), decisions=())])
    node = made.graph.node(turn)
    assert isinstance(node, Message)
    assert node.status == "quarantined"
    assert list(made.graph.nodes(Memory)) == []


# -- the ingestor -----------------------------------------------------------------------


def test_refused_decisions_are_counted(tmp_path: Path) -> None:
    deciders = Always(Decision("UPDATE", "m4711"))
    with opened(tmp_path / "data", extractor=Sentences(), decider=deciders) as rt:
        kept = rt.user("ana").add(["One.", "二。"], wait=True).kept
        assert [k.op for k in kept] == ["ADD", "ADD"]
        assert rt.ingestor.counts.refused == 2
        assert rt.ingestor.counts.memories == 2
        assert rt.ingestor.counts.turns == 2


class Sees:
    """A decider that notes what it is offered, and replaces the nearest draft of the batch."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        self.seen.append([k.id for k in known])
        if known and "again" in draft.text:
            return Decision("UPDATE", known[0].id)
        return Decision("ADD")


def test_drafts_meet_what_is_stored_and_the_earlier_ones_of_the_batch(tmp_path: Path) -> None:
    decider = Sees()
    with opened(tmp_path / "data", extractor=Sentences(), decider=decider) as rt:
        ana = rt.user("ana")
        ana.remember("I live in Oslo.")
        kept = ana.add(
            ["I sing well.", "I sing well again.", "I sing well once again."], wait=True
        ).kept
        assert [k.op for k in kept] == ["ADD", "UPDATE", "UPDATE"]
        assert [k.target for k in kept] == [None, "m2", "m3"]
        assert decider.seen[0] == ["m1"]
        assert set(decider.seen[1]) == {"m1", "#0"}
        assert set(decider.seen[2]) == {"m1", "#1"}  # the first is gone
        assert [i.text for i in ana.list().items] == ["I live in Oslo.", "I sing well once again."]
        assert rt.ingestor.counts.refused == 0


class Notes(Sentences):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[list[str], list[str]]] = []

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        self.given.append(([t.text for t in turns], [t.text for t in history]))
        return super().extract(turns, history)


def test_turns_come_in_order_in_batches_with_their_history(tmp_path: Path) -> None:
    notes = Notes()
    with opened(tmp_path / "data", extractor=notes, background=False) as rt:
        ana = rt.user("ana")
        texts = [f"第{i}句" for i in range(BATCH_TURNS + 5)]
        ana.add(texts)
        ana.add("elsewhere", session="other")
        rt.drain()
        assert notes.given[0] == (texts[:BATCH_TURNS], [])
        assert notes.given[1] == (
            [*texts[BATCH_TURNS:], "elsewhere"],
            texts[BATCH_TURNS - 10 : BATCH_TURNS],
        )
        assert rt.stats().pending == 0


class OneBad(Sentences):
    """Cites a turn that does not exist, when told to."""

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        found = super().extract(turns, history)
        return [
            Extraction(e.turn_id, (MemoryDraft("bad", sources=("t999",)),))
            if "bad" in t.text
            else e
            for t, e in zip(turns, found, strict=True)
        ]


def test_an_outcome_that_cannot_be_applied_is_the_fault_of_its_turn(tmp_path: Path) -> None:
    with opened(tmp_path / "data", extractor=OneBad()) as rt:
        ana = rt.user("ana")
        ana.add(["good one", "a bad one", "好的"])
        rt.drain(30)
        stats = ana.stats()
        assert (stats.memories, stats.quarantined, stats.pending) == (2, 1, 0)
        (away,) = rt.quarantined()
        assert away.turn_ids == ["t2"]
        assert "UnknownMemoryError" in away.errors[0]
        assert rt.ingestor.counts.failed == 2


def test_a_turn_that_fails_is_not_told_the_news_of_its_namesake(tmp_path: Path) -> None:
    """After a rewind a new turn may have the id of an old one."""
    with opened(tmp_path / "data", extractor=OneBad(), background=False) as rt:
        ana = rt.user("安娜")
        ana.remember("Before.")
        rt.checkpoint("a")
        old = ana.add("good one", wait=True)
        assert [k.op for k in old.kept] == ["ADD"]
        rt.rewind("a")
        new = ana.add("a bad one", wait=True)
        assert new.ids == old.ids
        assert new.kept == []


def test_a_failure_begun_before_a_rewind_is_not_counted(tmp_path: Path) -> None:
    gate = Gate()
    with opened(tmp_path / "data", extractor=gate) as rt:
        ana = rt.user("ana")
        ana.add("boom")
        rt.checkpoint("a")
        assert gate.entered.wait(30)
        rt.rewind("a")
        gate.inner.booms = 1
        gate.go.set()
        rt.drain(30)
        assert rt.ingestor.counts.stale == 1
        assert rt.ingestor.counts.failed == 1
        assert ana.stats().quarantined == 0
        assert ana.stats().memories == 1


def test_a_late_failure_does_not_disturb_a_caller_that_waits(tmp_path: Path) -> None:
    gate = Gate()
    gate.inner.booms = 1
    with opened(tmp_path / "data", extractor=gate, background=False) as rt:
        ana = rt.user("ana")
        ana.remember("Before.")
        rt.checkpoint("a")
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(ana.add("boom", wait=True)))
        thread.start()
        assert gate.entered.wait(30)
        rt.rewind("a")
        gate.go.set()
        thread.join(30)
        assert len(results) == 1
        assert ana.list().total == 1


def test_waiting_has_an_end(tmp_path: Path) -> None:
    gate = Gate()
    with opened(tmp_path / "data", extractor=gate) as rt:
        rt.user("ana").add("slow")
        with pytest.raises(errors.WaitTimeoutError):
            rt.drain(0.05)
        gate.go.set()
        rt.drain(30)
        assert rt.user("ana").stats().memories == 1


class Flaky(HashEmbedder):
    """An embedder that cannot be reached for a while."""

    down = False

    def embed(self, texts: Sequence[str], role: TextRole) -> Float32:
        if self.down:
            msg = "away"
            raise errors.ShardUnavailableError(msg)
        return super().embed(texts, role)


def test_work_is_postponed_while_something_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.actors.ingest.RETRY_S", 0.05)
    embedder = Flaky(DIM)
    with opened(tmp_path / "data", extractor=Sentences(), embedder=embedder) as rt:
        ana = rt.user("ana")
        embedder.down = True
        ana.add("I wait. 我等。")
        with pytest.raises(errors.ShardUnavailableError):
            rt.drain(30)
        assert rt.quarantined() == []
        assert ana.stats().pending == 1
        embedder.down = False
        for _ in range(200):  # it comes back by itself
            if not ana.stats().pending:
                break
            threading.Event().wait(0.02)
        rt.drain(30)
        assert ana.stats().memories == 1


class Unreadable(HashEmbedder):
    """Knows no Chinese."""

    def unknown_share(self, text: str) -> float:
        return 1.0


def test_texts_that_the_embedder_cannot_read_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder=Unreadable(DIM)) as rt:
        rt.user("ana").add(["我喜欢茶。", "I love tea.", "我住在上海。"], wait=True)
        assert rt.ingestor.counts.unreadable == 2


def test_an_extractor_that_is_off(tmp_path: Path) -> None:
    with opened(tmp_path / "data", extractor="off") as rt:
        rt.user("ana").add("I love tea.", wait=True)
        stats = rt.user("ana").stats()
        assert (stats.memories, stats.pending, stats.messages, stats.vectors) == (0, 0, 1, 1)


# -- crashes ----------------------------------------------------------------------------

DIES = """
import os, sys
from pathlib import Path
import reverie
from reverie.actors import ingest
from reverie.models.standin import HashEmbedder
from support import Sentences, START, DIM

step = ingest.Ingestor._settle
def settle(self, *args):
    if sys.argv[2] == "after":
        step(self, *args)
    os._exit(9)
ingest.Ingestor._settle = settle
rt = reverie.open(sys.argv[1], embedder=HashEmbedder(DIM), extractor=Sentences(), partitions=4,
                  background=False, clock=reverie.SimulatedClock(START))
rt.user("ana").add(["I keep bees.", "我养蜜蜂。"], request_id="r", wait=True)
"""


@pytest.mark.parametrize(("when", "pending"), [("before", 2), ("after", 0)])
def test_a_crash_around_settling_leaves_every_turn_done_once(
    tmp_path: Path, when: str, pending: int
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", DIES, str(tmp_path / "data"), when],
        env={"PYTHONPATH": str(Path(__file__).parent), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert run.returncode == 9
    factory = Factory(tmp_path, None)
    rt = factory(extractor=Sentences(), background=False)
    ana = rt.user("ana")
    assert ana.stats().pending == pending
    assert ana.add(["I keep bees.", "我养蜜蜂。"], request_id="r").ids == ["t1", "t2"]
    rt.drain()
    assert [i.text for i in ana.list().items] == ["I keep bees.", "我养蜜蜂。"]
    stats = ana.stats()
    assert (stats.messages, stats.memories, stats.pending) == (2, 2, 0)
    rt.drain()
    assert ana.stats() == stats
    factory.finish()


def test_a_settle_that_is_sent_twice_is_done_once(tmp_path: Path) -> None:
    """As a client does that lost the answer."""
    with opened(tmp_path / "data", extractor=Sentences(), background=False) as rt:
        ana = rt.user("ana")
        ana.add("I keep bees.")
        command = c.Settle(
            world="default",
            user_id="ana",
            at=START,
            generation=ana.stats().generation,
            outcomes=(TurnOutcome("t1", memories=(fact("Bees."),), decisions=(Decision("ADD"),)),),
        )
        assert [k.op for k in rt.call(command).kept] == ["ADD"]
        digest = ana.digest()
        assert [k.op for k in rt.call(command).kept] == ["NOOP"]
        assert ana.digest() == digest
        assert ana.list().total == 1


# -- who waits is told of his own ------------------------------------------------------


def found_by(rt: reverie.Runtime, kept: Sequence[Kept]) -> list[str]:
    return [rt.user("ana").get(one.memory_id).text for one in kept]


def test_who_waits_is_told_what_became_of_his_own_turns(tmp_path: Path) -> None:
    """Not of those that others have stored meanwhile, which are worked off with them."""
    with opened(tmp_path / "data", background=False) as rt:
        ana = rt.user("ana")
        ana.add(["I live in Rome.", "我喜欢蜂蜜。"], request_id="first")
        own = ana.add("I love tea. 我喜欢喝茶。", wait=True).kept
        assert found_by(rt, own) == ["User loves tea", "用户喜欢喝茶"]
        first = ana.add(["I live in Rome.", "我喜欢蜂蜜。"], request_id="first", wait=True)
        assert found_by(rt, first.kept) == ["User lives in Rome", "用户喜欢蜂蜜"]
        again = ana.add(["I live in Rome.", "我喜欢蜂蜜。"], request_id="first", wait=True)
        assert again == first
        many = {"ana": ["I live in Oslo."], "bo": ["我住在北京。"]}
        ana.add("I have a dog.")
        told = rt.add_many(many, wait=True)
        assert found_by(rt, told["ana"].kept) == ["User lives in Oslo"]
        assert len(told["bo"].kept) == 1


def test_threads_that_wait_at_once_are_each_told_of_their_own(tmp_path: Path) -> None:
    told: dict[str, AddResult] = {}
    with opened(tmp_path / "data") as rt:
        cities = [f"Town{number}" for number in range(12)]

        def add(city: str) -> None:
            told[city] = rt.user("ana").add(f"I like {city} a lot.", wait=True)

        threads = [threading.Thread(target=add, args=(city,)) for city in cities]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for city in cities:
            assert found_by(rt, told[city].kept) == [f"User likes {city} a lot"]


def test_what_became_of_turns_is_noted_within_bounds() -> None:
    notes, ana, bo = SettledTurns(most=3), Key("w", "安娜"), Key("w", "bo")

    def note(key: Key, turn: str, *kept: Kept) -> None:
        drafts = tuple(fact(one.memory_id or "茶") for one in kept)
        notes.note(key, [TurnOutcome(turn, memories=drafts)], kept)

    note(ana, "t1", Kept("ADD", "m1"), Kept("NOOP", "", None, "turn settled already"))
    assert notes.of(ana, ["t1"]) == [Kept("ADD", "m1")]
    assert notes.of(bo, ["t1"]) == []
    note(ana, "t1")  # the id stands for another turn after a rewind
    assert notes.of(ana, ["t1"]) == []
    for turn in ("t2", "t3", "t4"):
        note(bo, turn, Kept("ADD", turn))
    assert notes.of(bo, ["t4", "t2"]) == [Kept("ADD", "t4"), Kept("ADD", "t2")]
    note(bo, "t5", Kept("ADD", "t5"))
    assert notes.of(bo, ["t2"]) == []
