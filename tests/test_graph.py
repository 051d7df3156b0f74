"""The graph keeps its structure; events change it in one way only."""

from __future__ import annotations

import networkx as nx
import pytest
from support import DAY, START, fact, vector, writer

from reverie.memory_graph import events, nodes, relationships
from reverie.memory_graph.apply import apply
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import (
    Decision,
    EntityDraft,
    MemoryDraft,
    RelationDraft,
    TurnDraft,
    TurnOutcome,
)
from reverie.memory_graph.errors import InvariantError
from reverie.memory_graph.events import decode_event, encode_event
from reverie.memory_graph.graph import MemoryGraph, number
from reverie.memory_graph.nodes import Edge, Entity, Memory, Message, Relation, Session, Topic
from reverie.memory_graph.profile import Profile
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.memory_graph.state import UserMemory


def people(*names: str) -> tuple[EntityDraft, ...]:
    return tuple(EntityDraft(name, "person") for name in names)


# -- structure --------------------------------------------------------------------------


def test_ids_are_given_in_order() -> None:
    graph = MemoryGraph()
    assert graph.next_id("m") == "m1"
    assert graph.next_id("m", 2) == "m3"
    graph.add(Topic("k1", "work", 0.0))
    for bad in ("k1", "k3", "k", "kx", "k01", ""):
        with pytest.raises(InvariantError):
            graph.add(Topic(bad, "work", 0.0))
    graph.add(Topic("k2", "play", 0.0))
    assert number(graph.next_id("k")) == 3
    assert len(graph) == 3
    assert "k2" in graph
    assert "k9" not in graph
    assert graph.node("k9") is None


def test_edges_need_both_ends_once() -> None:
    graph = MemoryGraph()
    graph.add(Entity("e1", "Bo", "person", 0.0, 0.0))
    graph.link("u", "e1", Relation("r1", "knows", 1.0, 0.0, 0.0))
    graph.link("u", "e1", Relation("r2", "knows", 1.0, 0.0, 0.0))  # two stints
    wrong: list[tuple[str, str, Edge | Relation]] = [
        ("u", "e9", Edge(nodes.SENT_BY, 1.0, 0.0)),
        ("e9", "u", Edge(nodes.SENT_BY, 1.0, 0.0)),
        ("u", "e1", Relation("r2", "knows", 1.0, 0.0, 0.0)),
        ("u", "e1", Relation("r7", "knows", 1.0, 0.0, 0.0)),
    ]
    for tail, head, edge in wrong:
        with pytest.raises(InvariantError):
            graph.link(tail, head, edge)
    assert graph.relation("r1").predicate == "knows"
    with pytest.raises(InvariantError):
        graph.relation("r9")
    with pytest.raises(InvariantError):
        graph.get("e1", Session)


def test_networkx_reads_it_like_any_graph() -> None:
    made = writer()
    made.remember(fact("Ana met Bo in 巴黎.", entities=people("Ana", "Bo", "巴黎")))
    made.relate(RelationDraft("Ana", "knows", "Bo"), None)
    graph = made.graph.nx
    assert graph.nodes["m1"]["text"] == "Ana met Bo in 巴黎."
    assert graph.nodes["e3"].get("name") == "巴黎"
    assert graph.nodes["e3"].get("no such field") is None
    assert dict(graph.nodes["e1"])["type"] == "person"
    assert nx.shortest_path(graph.to_undirected(as_view=True), "m1", "e2") == ["m1", "e2"]
    assert graph.size(weight="weight") == pytest.approx(7.0)
    assert nx.number_weakly_connected_components(graph) == 2  # the owner is alone
    with pytest.raises(TypeError):
        del graph.nodes["e1"]["name"]
    graph.nodes["e1"]["type"] = "thing"
    assert made.graph.get("e1", Entity).type == "thing"


def test_around_gives_the_newest_neighbours_of_a_hub() -> None:
    made = writer()
    for i in range(30):
        made.remember(fact(f"Ana did {i}.", entities=people("Ana")))
    near = [other for other, _ in made.graph.around("e1", 5)]
    assert near == ["m30", "m29", "m28", "m27", "m26"]
    assert made.graph.degree("e1") == 30


# -- names ------------------------------------------------------------------------------


def test_names_merge_when_they_are_equal_and_only_then() -> None:
    made = writer()
    same = ["Zoë", "zoë", " ZOË ", "\u201cZoe\u0308\u201d"]
    assert {made.entity(EntityDraft(name), START) for name in same} == {"e1"}
    others = ["Zoe", "Zoë B", "柏林", "伯林", "!!!", "???", "C#", "C"]
    assert len({made.entity(EntityDraft(name), START) for name in others}) == len(others)
    assert made.graph.entity_named("ＺＯË") is not None
    assert check_memory(made.memory) == []


def test_aliases_lead_to_one_entity_and_are_never_taken_over() -> None:
    made = writer()
    bo = made.entity(EntityDraft("Robert", aliases=("Bo", "小博")), START)
    assert made.entity(EntityDraft("bo", "person"), START) == bo
    assert made.entity(EntityDraft("Bobby", aliases=("Robert",)), START) == bo
    al = made.entity(EntityDraft("Al", aliases=("Bo", "Ally")), START)
    assert al == bo  # named as before by its alias: nobody else can be meant
    entity = made.graph.get(bo, Entity)
    assert entity.type == "person"
    assert set(entity.aliases) == {"Bo", "小博", "Bobby", "Al", "Ally"}
    copy = decode_snapshot(encode_snapshot(made.memory))
    assert copy.graph.names == made.graph.names


def test_slots_and_statements_hold_the_active_ones() -> None:
    made = writer()
    ids = [made.remember(fact(f"I live in {c}.", slot="user|lives_in")) for c in ("A", "B", "C")]
    assert made.graph.slots == {"user|lives_in": ids}
    made.retire(ids[1], "expired", "")
    made.retire(ids[0], "archived", "")
    assert made.graph.slots == {"user|lives_in": [ids[2]]}
    made.restore(ids[0], "")
    assert made.graph.slots == {"user|lives_in": [ids[0], ids[2]]}
    assert [m.id for m in made.graph.saying("i live in a.")] == [ids[0]]
    assert made.graph.saying("I live in B.") == []
    twin = made.remember(fact("I live in A."))
    assert [m.id for m in made.graph.saying("I live in A.")] == [ids[0], twin]
    for memory_id in (*ids, twin):
        made.retire(memory_id, "expired", "")
    assert made.graph.slots == {}
    assert made.graph.statements == {}


# -- events -----------------------------------------------------------------------------


def test_a_conversation_is_a_chain_per_session() -> None:
    made = writer()
    drafts = [TurnDraft(f"turn {i}", session=("a", "b")[i % 2], speaker="Bo") for i in range(6)]
    ids = made.turns(drafts, pending=True)
    chain = []
    here: str | None = ids[-1]
    while here is not None:
        chain.append(here)
        here = next((head for head, _ in made.graph.out(here, nodes.PREVIOUS)), None)
    assert chain == [ids[5], ids[3], ids[1]]
    session = made.graph.get(made.graph.sessions["b"], Session)
    assert (session.messages, session.last_message) == (3, ids[5])
    assert [s for s, _ in made.graph.into("s1", nodes.PARTICIPATED_IN)] == ["e1"]


def test_superseding_ends_the_old_one_when_the_new_one_begins() -> None:
    made = writer()
    old = made.remember(fact("I am 30.", valid_from=START - DAY))
    later = writer(START + 3 * DAY, made.memory)
    new = later.remember(fact("I am 31.", valid_from=START + DAY), (old,))
    node = made.graph.get(old, Memory)
    assert (node.status, node.retired_at, node.valid_to) == (
        "superseded",
        START + 3 * DAY,
        START + DAY,
    )
    assert node.retired_why == f"replaced by {new}"
    older = later.remember(fact("I was 29.", valid_from=START - 9 * DAY), (new,))
    assert made.graph.get(new, Memory).valid_to == START + DAY  # an empty interval
    assert made.graph.edge(older, new, nodes.SUPERSEDES) is not None
    assert check_memory(made.memory) == []


def test_mentions_and_co_occurrence_grow() -> None:
    made = writer()
    made.remember(fact("Bo met Ana.", entities=people("Bo", "Ana")))
    later = writer(START + DAY, made.memory)
    later.remember(fact("Ana met Bo again.", entities=people("Ana", "Bo")))
    assert made.graph.get("e1", Entity).mentions == 2
    assert made.graph.get("e1", Entity).last_seen == START + DAY
    edge = made.graph.edge("e1", "e2", nodes.RELATED_TO)
    assert edge is not None
    assert edge.weight > 1.0
    assert made.graph.edge("e2", "e1", nodes.RELATED_TO) is None
    crowd = people(*(f"P{i}" for i in range(30)))
    made.remember(fact("A crowd.", entities=crowd))
    assert sum(e.kind == nodes.RELATED_TO for _, _, e in made.graph.edges()) == 1 + 28


@pytest.mark.parametrize(
    "event",
    [
        events.MessageAdded(
            at=0.0,
            id="t1",
            session="s9",
            speaker="user",
            speaker_node="u",
            role="user",
            text="x",
            said_at=0.0,
        ),
        events.TurnSettled(at=0.0, id="t9", status="extracted"),
        events.MemoryAdded(at=0.0, id="m7", text="x", kind="fact"),
        events.MemoryAdded(at=0.0, id="m2", text="x", kind="fact", sources=("t9",)),
        events.MemoryAdded(at=0.0, id="m2", text="x", kind="fact", entities=("e9",)),
        events.MemoryAdded(at=0.0, id="m2", text="x", kind="fact", supersedes=("m9",)),
        events.MemoryAdded(at=0.0, id="m2", text="x", kind="fact", topics=("m1",)),
        events.MemoryAdded(at=0.0, id="m2", text="x", kind="fact", vector=b"1234"),
        events.MemoryRetired(at=0.0, id="m9", status="expired"),
        events.MemoryRetired(at=0.0, id="m1", status="active"),
        events.MemoryRestored(at=0.0, id="u"),
        events.MemoryEdited(at=0.0, id="t1"),
        events.EntityRenamed(at=0.0, id="e9"),
        events.RelationAdded(at=0.0, id="r1", head="u", predicate="p", tail="e9"),
        events.RelationAdded(at=0.0, id="r5", head="u", predicate="p", tail="u"),
        events.RelationRetired(at=0.0, id="r9"),
        events.SummaryAdded(at=0.0, id="y1", text="x", of="s9", sources=(), from_at=0.0, to_at=0.0),
        events.VectorsSet(at=0.0, embedder="e", dim=2, ids=("m1",), vectors=b"1"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_that_do_not_fit_are_refused(event: events.Event) -> None:
    made = writer()
    made.remember(fact("Something."))
    assert decode_event(encode_event(event)) == event
    with pytest.raises(InvariantError):
        apply(made.memory, event)


def test_every_event_is_encoded_and_replayed() -> None:
    """A life with every kind of event; its journal gives the same state."""
    made = writer()
    turn, spoilt = made.turns([TurnDraft("Ana knows Bo."), TurnDraft("不清楚")], pending=True)
    made.outcomes(
        [
            TurnOutcome(
                turn,
                vector=vector("Ana knows Bo."),
                entities=people("Ana", "Bo"),
                memories=(
                    fact(
                        "Ana knows Bo.",
                        sources=(turn,),
                        topics=("people",),
                        relations=(RelationDraft("Ana", "knows", "Bo"),),
                    ),
                ),
                decisions=(Decision("ADD"),),
            ),
            TurnOutcome(spoilt, "quarantined"),
        ]
    )
    made.entity(EntityDraft("Bo", aliases=("Bobby",)), START)
    later = writer(START + DAY, made.memory)
    new = later.remember(fact("Ana forgot Bo."), ("m1",))
    later.edit(events.MemoryEdited(at=START, id=new, pinned=True))
    later.restore("m1", "")
    later.relate(RelationDraft("Ana", "knows", "Bo", ended=True), None)
    later.summarise("People.", "s1", [turn], from_at=0.0, to_at=1.0, vector=vector("People."))
    later.summarise("People!", "s1", [turn], from_at=0.0, to_at=1.0, vector=vector("People!"))
    relationships.move(later, "Bo", {"trust": 0.5}, {}, reason="he came back", source="m1")
    relationships.untie(later, "Bo")
    later.emit(events.Reflected(at=later.at, covers=1, foci=("e1",)))
    later.emit(events.ProfileSet(at=later.at, profile=Profile(memories=10)))
    later.emit(events.ModelBudgetSpent(at=later.at))
    later.emit(events.GroupJoined(at=later.at, group="guild"))
    later.emit(events.GroupLeft(at=later.at, group="guild"))
    guild = writer()  # the graph of a group is one of its own
    guild.emit(events.GroupFormed(at=START, name="guild"))
    guild.emit(events.MemberJoined(at=START, member="安娜"))
    guild.remember(fact("The guild meets."))
    guild.emit(events.MemberLeft(at=START + DAY, member="安娜"))
    later.touch(["m1"], START + 2 * DAY)
    later.emit(events.VectorsSet(at=START, embedder="e", dim=1, ids=("m1",), vectors=b"\0\0\x80?"))
    journals = {False: made.events + later.events, True: guild.events}
    kinds = {type(event).__name__ for journal in journals.values() for event in journal}
    assert kinds == {k.__name__ for k in events.Event.__args__}
    for is_group, journal in journals.items():
        copy = UserMemory()
        for event in journal:
            apply(copy, decode_event(encode_event(event)))
        assert state_digest(copy) == state_digest((guild if is_group else made).memory)
        assert encode_event(journal[0]) == encode_event(decode_event(encode_event(journal[0])))
        assert check_memory(copy) == []


def test_a_digest_sees_every_change() -> None:
    def life(**changes: object) -> str:
        made = writer()
        fields: dict[str, object] = {"text": "x", "entities": people("Bo"), **changes}
        made.remember(MemoryDraft(**fields))  # type: ignore[arg-type]
        return state_digest(made.memory)

    variants: list[dict[str, object]] = [
        {},
        {"text": "y"},
        {"kind": "event"},
        {"confidence": 0.5},
        {"importance": 0.4},
        {"tags": ("a",)},
        {"metadata": {"a": 1}},
        {"metadata": {"a": "1"}},
        {"valid_from": 0.0},
        {"ttl_s": 1.0},
        {"pinned": True},
        {"entities": people("Al")},
        {"entities": ()},
        {"vector": vector("x")},
        {"vector": vector("y")},
    ]
    assert len({life(**v) for v in variants}) == len(variants)
    assert life() == life()
    # Mappings are in no order.
    assert life(metadata={"a": 1, "b": 2}) == life(metadata={"b": 2, "a": 1})


def test_messages_keep_their_external_ids() -> None:
    made = writer()
    made.turns([TurnDraft("hi", external_id="x")], pending=False)
    copy = decode_snapshot(encode_snapshot(made.memory))
    assert copy.graph.externals == {"x": "t1"}
    assert copy.graph.get("t1", Message).external_id == "x"


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x80", b"\xc0"])
def test_what_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(InvariantError):
        decode_snapshot(data)
