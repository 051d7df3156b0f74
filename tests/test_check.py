"""The checker finds what is planted: one violation for each line that it can say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
from support import START, Factory, fact, writer

from reverie.memory_graph import check, nodes
from reverie.memory_graph.check import ENDS, check_memory
from reverie.memory_graph.decay import HALF_LIFE_S
from reverie.memory_graph.drafts import EntityDraft, RelationDraft, TurnDraft
from reverie.memory_graph.errors import JournalDamagedError
from reverie.memory_graph.graph import MemoryGraph
from reverie.memory_graph.nodes import Edge, Entity, Memory, Message, Relation, Session, Summary
from reverie.memory_graph.state import UserMemory


def sound() -> UserMemory:
    made = writer()
    turns = [
        TurnDraft("hi", external_id="x"),
        TurnDraft("你好"),
        TurnDraft("Bo here", speaker="Bo"),
    ]
    made.turns(turns, pending=False)
    people = (EntityDraft("Ana"), EntityDraft("Bo"))
    made.remember(fact("Ana is 30.", entities=people, slot="ana|age", sources=("t1",)))
    made.remember(fact("Ana is 31.", entities=people, slot="ana|age", topics=("age",)), ("m1",))
    made.relate(RelationDraft("Ana", "knows", "Bo"), "m2")
    made.summarise("A talk.", "s1", ["t1"], from_at=0.0, to_at=1.0, vector=None)
    return made.memory


def memory_of(state: UserMemory, node_id: str = "m2") -> Memory:
    found = state.graph.node(node_id)
    assert isinstance(found, Memory)
    return found


def session_of(state: UserMemory) -> Session:
    found = state.graph.node("s1")
    assert isinstance(found, Session)
    return found


def message_of(state: UserMemory) -> Message:
    found = state.graph.node("t2")
    assert isinstance(found, Message)
    return found


def cut(graph: MemoryGraph, tail: str, head: str, key: str) -> None:
    graph.nx.remove_edge(tail, head, key)


def edge_of(state: UserMemory) -> Edge | Relation:
    found = state.graph.edge("m2", "e2", nodes.CONTAINS_ENTITY)
    assert found is not None
    return found


def weigh(state: UserMemory, weight: float) -> None:
    edge_of(state).weight = weight


def backwards(state: UserMemory) -> None:
    cut(state.graph, "e1", "e2", nodes.RELATED_TO)
    state.graph.link("e2", "e1", Edge(nodes.RELATED_TO, 1.0, START))


def end_before_it_begins(state: UserMemory) -> None:
    memory_of(state).valid_from, memory_of(state).valid_to = 2.0, 1.0


def stand_beside(state: UserMemory) -> None:
    old = memory_of(state, "m1")
    old.status, old.retired_at = "active", None
    state.graph.activate(old)


def add_a_vector(state: UserMemory) -> None:
    assert state.vectors is not None
    state.vectors.add("m99", b"\0" * 4 * state.vectors.dim)


def summary_of(state: UserMemory, node_id: str = "y1") -> Summary:
    found = state.graph.node(node_id)
    assert isinstance(found, Summary)
    return found


def two_summaries(state: UserMemory) -> None:
    writer(START, state).summarise(
        "Again.", "s1", ["t1", "m2"], from_at=0.0, to_at=1.0, vector=None
    )


def answer_beside(state: UserMemory) -> None:
    two_summaries(state)
    summary_of(state).retired_at = None


def show_what_was_put_away(state: UserMemory) -> None:
    two_summaries(state)
    memory_of(state).status = "archived"


PLANTED: dict[str, tuple[str, Callable[[UserMemory], object]]] = {
    "leaves": (
        "SENT_BY leaves m1",
        lambda s: s.graph.link("m1", "u", Edge(nodes.SENT_BY, 1.0, START)),
    ),
    "enters": (
        "IN_TOPIC enters e1",
        lambda s: s.graph.link("m1", "e1", Edge(nodes.IN_TOPIC, 1.0, START)),
    ),
    "negative weight": ("has weight -1", lambda s: weigh(s, -1.0)),
    "NaN weight": ("has weight nan", lambda s: weigh(s, float("nan"))),
    "heavy": ("has weight 99", lambda s: weigh(s, 99.0)),
    "RELATED_TO": ("not stored smaller id first", backwards),
    "not in its session": (
        "message t2 is not in its session",
        lambda s: cut(s.graph, "t2", "s1", nodes.IN_SESSION),
    ),
    "no sender": ("not exactly one sender", lambda s: cut(s.graph, "t2", "u", nodes.SENT_BY)),
    "external id": (
        "external id 'x' stands for another",
        lambda s: s.graph.externals.update(x="t2"),
    ),
    "count of a session": (
        "session s1 counts 7, holds 3",
        lambda s: setattr(session_of(s), "messages", 7),
    ),
    "chain": (
        "the PREVIOUS chain has 2 of 3",
        lambda s: cut(s.graph, "t2", "t1", nodes.PREVIOUS),
    ),
    "retired_at": (
        "memory m2 is active with retired_at 1.0",
        lambda s: setattr(memory_of(s), "retired_at", 1.0),
    ),
    "status": (
        "memory m2 is superseded with retired_at None",
        lambda s: setattr(memory_of(s), "status", "superseded"),
    ),
    "valid": (
        "valid to before it is valid from",
        end_before_it_begins,
    ),
    "beside": (
        "memory m1 is active beside ['m2']",
        stand_beside,
    ),
    "importance": (
        "importance or confidence out of 0 to 1",
        lambda s: setattr(memory_of(s), "importance", 1.5),
    ),
    "confidence": (
        "importance or confidence out of 0 to 1",
        lambda s: setattr(memory_of(s), "confidence", float("nan")),
    ),
    "not in its slot": ("memory m2 (active) is not in its slot", lambda s: s.graph.slots.clear()),
    "in its slot": (
        "memory m1 (superseded) is in its slot",
        lambda s: s.graph.slots["ana|age"].append("m1"),
    ),
    "name": ("the name 'Ana' does not lead to it", lambda s: s.graph.names.pop("ana")),
    "alias": (
        "the name 'Annie' does not lead to it",
        lambda s: setattr(s.graph.get("e1", Entity), "aliases", ("Annie",)),
    ),
    "name of nobody": (
        "name 'eve' leads to m1, which is no entity",
        lambda s: s.graph.names.update(eve="m1"),
    ),
    "relation": (
        "relation r1 is not between e2 and u",
        lambda s: s.graph.relations.update(r1=("e2", "u")),
    ),
    "source": (
        "relation r1 cites m99",
        lambda s: setattr(s.graph.relation("r1"), "source", "m99"),
    ),
    "not indexed": ("m2 is not in the word index", lambda s: s.words.remove("m2")),
    "indexed twice": (
        "the word index holds 7 texts, the graph 6",
        lambda s: s.words.add("m99", "left over"),
    ),
    "vector": (
        "vector of m99, which is no text",
        add_a_vector,
    ),
    "summary of another": (
        "summary y1 is not of s9 alone",
        lambda s: setattr(summary_of(s), "of", "s9"),
    ),
    "two summaries": ("summary y1 answers beside y2", answer_beside),
    "veiled": ("summary y1 is veiled", lambda s: s.graph.veiled.add("y1")),
    "put away": ("summary y2 shows ['m2'], which were put away", show_what_was_put_away),
    "newest": ("the newest summaries are not", lambda s: s.graph.summaries.clear()),
    "outdated": (
        "outdated are [], should be ['s1']",
        lambda s: setattr(summary_of(s), "stale", True),
    ),
    "counters": ("counters are", lambda s: s.graph.counters.update(m=9)),
}


def test_a_sound_state_is_sound() -> None:
    assert check_memory(sound()) == []
    assert check_memory(UserMemory()) == []


@pytest.mark.parametrize("name", PLANTED)
def test_each_violation_is_found(name: str) -> None:
    expected, plant = PLANTED[name]
    state = sound()
    plant(state)
    found = check_memory(state)
    assert any(expected in line for line in found), found


def test_every_line_of_the_checker_is_covered() -> None:
    """As many violations are planted as the checker has things to say."""
    source = inspect.getsource(check)
    assert source.count("yield ") <= len(PLANTED)
    assert set(ENDS) == set(HALF_LIFE_S)


def test_edges_of_a_message_to_another_session() -> None:
    state = sound()
    message_of(state).session = "s9"
    assert any("not in its session s9" in line for line in check_memory(state))


# -- on disk ----------------------------------------------------------------------------


def test_the_outbox_and_the_turns_agree(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(background=False, partitions=1)
    rt.user("ana").add(["one", "two"])
    assert rt.check() == []
    (partition,) = rt._router.backend.shard.partitions.values()  # type: ignore[attr-defined]

    def change(statement: str) -> None:
        with partition._db.write():
            assert partition._db.change(statement)

    change("DELETE FROM outbox WHERE turn_id = 't1'")
    assert rt.check() == ["default/ana: turn t1 is pending, but not in the outbox"]
    change("INSERT INTO outbox (uid, turn_id) VALUES (1, 't1')")
    rt.drain()
    change("INSERT INTO outbox (uid, turn_id) VALUES (1, 't2')")
    assert rt.check() == ["default/ana: turn t2 is done, but pending in the outbox"]
    change("DELETE FROM outbox")
    factory.finish()


def test_a_damaged_journal_is_told_and_not_raised(tmp_path: Path) -> None:
    factory = Factory(tmp_path, None)
    rt = factory(partitions=1)
    rt.user("ana").remember("Good.")
    rt.user("bo").remember("Good.")
    (partition,) = rt._router.backend.shard.partitions.values()  # type: ignore[attr-defined]
    partition._db.rows("UPDATE journal SET payload = x'00' WHERE uid = 1 AND seq = 2")
    rt.close()
    again = factory()
    found = again.check()
    assert len(found) == 2  # by the file, and by the user
    assert all("'ana'" in line and "event 2 does not verify" in line for line in found)
    with pytest.raises(JournalDamagedError) as caught:
        again.user("ana").search("good")
    assert (caught.value.user_id, caught.value.seq) == ("ana", 2)
    assert again.user("bo").search("good")[0].id == "m1"
    assert again.user("ana").forget().erased.existed  # what cannot be read can be erased
    factory.finish()
