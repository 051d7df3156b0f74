"""How users stand to others: moves, decay, history, parting, the door; in English and Chinese."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from support import DAY, START, Factory, Guard, fact, writer

import reverie
from reverie import Dimension, Profile, Runtime
from reverie.memory_graph import events, nodes as n, relationships as r
from reverie.memory_graph.apply import apply
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import EntityDraft, RelationDraft
from reverie.memory_graph.errors import InvalidIdError, InvalidValueError, UnknownMemoryError
from reverie.memory_graph.events import decode_event, encode_event
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.memory_graph.state import UserMemory
from reverie.vault import new_mask_key

Case = tuple[int, int, float, float]  # other, dimension, what is added, days later
OTHERS = ["Bo", "小明", "the Mill"]
KINDS = {
    "trust": Dimension(half_life_s=DAY),
    "怕": Dimension(low=0.0, high=10.0, rest=2.0, half_life_s=3 * DAY),
    "debt": Dimension(low=None, high=None),
}
moves = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 2),
        st.floats(-50, 50, allow_nan=False),
        st.floats(-2, 30, allow_nan=False),
    ),
    max_size=60,
)


@pytest.fixture
def rt(factory: Factory) -> Runtime:
    return factory(background=False)


def value(memory: UserMemory, other: str, name: str, at: float) -> float | None:
    found = r.standings(memory, "ana", at, other=other, dimension=name)
    return found[0].value if found else None


# -- the graph ---------------------------------------------------------------------------


@given(moves)
def test_values_are_what_the_formula_says_and_replay_gives_the_same(cases: list[Case]) -> None:
    memory, journal = UserMemory(), []
    expected: dict[tuple[str, str], tuple[float, float]] = {}
    now = START
    for other_at, kind_at, by, later in cases:
        now += later * DAY
        other, name = OTHERS[other_at], list(KINDS)[kind_at]
        kind = KINDS[name]
        w = writer(now, memory)
        r.move(w, other, {name: by}, KINDS)
        journal += w.events
        was, at = expected.get((other, name), (kind.rest, now))
        if kind.half_life_s is not None and now > at:
            was = kind.rest + (was - kind.rest) * 2 ** (-(now - at) / kind.half_life_s)
        low = -math.inf if kind.low is None else kind.low
        high = math.inf if kind.high is None else kind.high
        expected[other, name] = (min(high, max(low, was + by)), max(at, now))
    assert check_memory(memory) == []
    for (other, name), (wanted, at) in expected.items():
        assert value(memory, other, name, at) == pytest.approx(wanted)
        kind = KINDS[name]
        if kind.half_life_s is not None:
            half = kind.rest + (wanted - kind.rest) / 2
            assert value(memory, other, name, at + kind.half_life_s) == pytest.approx(half)
            assert value(memory, other, name, at + 1e12) == pytest.approx(kind.rest)
        else:
            assert value(memory, other, name, at + 1e12) == pytest.approx(wanted)
    copy = UserMemory()  # knows nothing of KINDS
    for event in journal:
        apply(copy, decode_event(encode_event(event)))
    assert state_digest(copy) == state_digest(memory)
    loaded = decode_snapshot(encode_snapshot(memory))
    assert state_digest(loaded) == state_digest(memory)
    assert list(loaded.bonds) == list(memory.bonds)


@given(moves, st.floats(-3, 400, allow_nan=False))
def test_the_past_reads_as_it_did_as_far_as_the_history_goes(
    cases: list[Case], days: float
) -> None:
    memory, then = UserMemory(), START + days * DAY
    seen: dict[tuple[str, str], float] = {}
    now = START
    for other_at, kind_at, by, later in cases:
        now += abs(later) * DAY
        other, name = OTHERS[other_at], list(KINDS)[kind_at]
        r.move(writer(now, memory), other, {name: by}, KINDS)
        if now <= then:
            seen[other, name] = value(memory, other, name, then)  # type: ignore[assignment]
    for bond in memory.bonds.values():
        assert len(bond.moves) <= r.MAX_MOVES
    for (other, name), wanted in seen.items():
        entity = memory.graph.entity_named(other)
        assert entity is not None
        bond = memory.bonds[entity.id]
        kept = [m for m in bond.moves if m.dimension == name and m.at <= then]
        if kept or bond.dimensions[name].at <= then:
            (found,) = r.standings(memory, "ana", now, other=other, dimension=name, at=then)
            assert found.value == pytest.approx(wanted)
    begun = {(one.other, one.dimension) for one in r.standings(memory, "ana", now, at=then)}
    whole = {memory.display(e) for e, bond in memory.bonds.items() if not bond.dropped}
    assert {pair for pair in begun if pair[0] in whole} <= seen.keys()


def test_a_move_from_the_past_adds_without_going_back_in_time() -> None:
    memory = UserMemory()
    r.move(writer(START, memory), "Bo", {"trust": 0.5}, {})
    r.move(writer(START, memory), "Bo", {"trust": 0.1}, {}, moved_at=START - 9 * DAY)
    assert value(memory, "bo", "trust", START) == pytest.approx(0.6)
    assert [m.at for m in r.history(memory, "BO")] == [START, START]
    assert value(memory, "bo", "trust", START - DAY) == pytest.approx(0.6)  # the clock was put back


def test_what_a_dimension_is_is_remembered() -> None:
    memory = UserMemory()
    r.move(writer(START, memory), "Bo", {"忠诚": 3.0}, {"忠诚": Dimension(0.0, 10.0, 5.0, DAY)})
    assert r.move(writer(START, memory), "小明", {"忠诚": 1.0}, {}) == {"忠诚": 6.0}
    with pytest.raises(InvalidValueError, match="honour"):
        r.move(writer(START, memory), "Bo", {"honour": 1.0}, {})
    # A declaration changes what it is from the next move on.
    narrow = Dimension(0.0, 7.0, 5.0, None)
    assert r.move(writer(START, memory), "Bo", {"忠诚": 0.0}, {"忠诚": narrow}) == {"忠诚": 7.0}
    assert value(memory, "Bo", "忠诚", START + 9 * DAY) == 7.0


def test_a_profile_says_where_values_rest() -> None:
    memory = UserMemory()
    profile = Profile(rest={"trust": -0.2, "fear": -9.0})
    writer(START, memory).emit(events.ProfileSet(at=START, profile=profile))
    assert r.towards(memory, "Bo", {}, START)["trust"] == -0.2
    assert r.towards(memory, "Bo", {}, START)["fear"] == 0.0
    assert r.move(writer(START, memory), "Bo", {"trust": 0.1}, {}) == {"trust": -0.1}
    own = {"trust": Dimension(rest=0.5)}
    assert r.move(writer(START, memory), "小明", {"trust": 0.1}, own) == {"trust": 0.6}


@pytest.mark.parametrize(
    ("deltas", "source"),
    [({"trust": 0.1}, "m9"), ({"nobody": 1.0}, None), ({"debt": 1.7e308}, None)],
)
def test_what_is_refused_changes_nothing(deltas: dict[str, float], source: str | None) -> None:
    memory = UserMemory()
    r.move(writer(START, memory), "Bo", {"debt": 1.7e308}, {})
    before = state_digest(memory)
    made = writer(START, memory)
    with pytest.raises((InvalidValueError, UnknownMemoryError)):
        r.move(made, "Bo", {"trust": 0.1} | deltas, {}, source=source)
    assert not made.is_changed
    assert state_digest(memory) == before


def test_parting_leaves_nothing_that_leads_there() -> None:
    made = writer()
    made.remember(fact("Bo met Cy.", entities=(EntityDraft("Bo"), EntityDraft("Cy"))))
    without = state_digest(made.memory)
    made.relate(RelationDraft("$user", "knows", "Bo"), None)
    made.relate(RelationDraft("Bo", "hates", "Cy"), "m1")
    made.relate(RelationDraft("Bo", "hates", "Bo"), None)
    r.move(made, "Bo", {"trust": 0.5, "debt": 3.0}, {}, reason="met", source="m1")
    r.move(made, "only a name", {"fear": 0.5}, {})
    assert r.untie(made, "nobody") == r.Untied()
    assert r.untie(made, "BO") == r.Untied(2, 3, 1)
    assert r.untie(made, "BO") == r.Untied()
    assert r.untie(made, "only a name") == r.Untied(1, 0, 0)
    memory = made.memory
    assert check_memory(memory) == []
    assert not memory.bonds
    assert not memory.graph.relations
    assert memory.graph.entity_named("only a name") is None  # nothing else led to it
    assert memory.graph.entity_named("Bo") is not None  # it is remembered still
    assert [kind for _, _, e in memory.graph.edges() if (kind := e.kind) == n.RELATED_TO] == []
    assert state_digest(memory) != without  # the co-occurrence is gone
    loaded = decode_snapshot(encode_snapshot(memory))
    assert state_digest(loaded) == state_digest(memory)
    assert b"only a name" not in encode_snapshot(memory)
    copy = UserMemory()
    for event in made.events:
        apply(copy, decode_event(encode_event(event)))
    assert state_digest(copy) == state_digest(memory)
    # Met again, it begins anew; ids are not given twice.
    again = writer(START + DAY, memory)
    r.move(again, "only a name", {"fear": 0.1}, {})
    again.relate(RelationDraft("Bo", "hates", "Cy"), None)
    assert memory.graph.entity_named("only a name").id == "e4"  # type: ignore[union-attr]
    assert list(memory.graph.relations) == ["r4"]
    assert check_memory(memory) == []
    assert state_digest(decode_snapshot(encode_snapshot(memory))) == state_digest(memory)


PLANTED: dict[str, Callable[[UserMemory], object]] = {
    "which is no entity": lambda m: m.bonds.update(m1=m.bonds["e1"]),
    "has no dimension": lambda m: m.bonds["e1"].moves.clear(),
    "out of its range": lambda m: setattr(m.bonds["e1"].dimensions["trust"], "value", 2.0),
    "not what its last move left": lambda m: setattr(m.bonds["e1"].dimensions["trust"], "at", 0.0),
    "are not in order": lambda m: m.bonds["e1"].moves.reverse(),
    "which it has not": lambda m: m.bonds["e1"].dimensions.pop("trust"),
    "which does not exist": lambda m: m.bonds["e1"].moves.append(
        n.Move(START + DAY, "debt", 0.0, 1.0, 1.0, source="m9")
    ),
}


@pytest.mark.parametrize("line", PLANTED)
def test_the_checker_finds_what_is_planted(line: str) -> None:
    made = writer()
    made.remember(fact("Bo."))
    r.move(made, "Bo", {"trust": 0.5}, {}, source="m1")
    later = writer(START + DAY, made.memory)
    r.move(later, "Bo", {"debt": 1.0}, {})
    assert check_memory(made.memory) == []
    PLANTED[line](made.memory)
    assert any(line in found for found in check_memory(made.memory))


# -- the door ----------------------------------------------------------------------------


def test_as_an_author_uses_it(rt: Runtime, factory: Factory) -> None:
    world = rt.world("town")
    world.declare(loyalty=Dimension(0, 10, 5, DAY))
    ana, bo, ming = (world.user(name) for name in ("ana", "bo", "小明"))
    seen = ana.observe("Bo stole the amulet. 他偷了护身符。", participants=["Bo"])
    moved = ana.relationships.move(
        "bo", trust=-0.5, debt=30, loyalty=2, reason="他偷了东西", memory_id=seen.memory_id
    )
    assert moved == {"trust": -0.5, "debt": 30.0, "loyalty": 7.0}
    bo.relationships.move("ana", {"trust": 0.6}, fear=0.3)
    ming.relationships.move("bo", trust=0.4)
    ming.relationships.move("ana", trust=0.2, debt=5)
    assert [(x.other, x.value) for x in ming.relationships.list("trust", at_least=0.3)] == [
        ("bo", 0.4)
    ]
    owes = [(x.owner, x.other.casefold(), x.value) for x in world.relationships("debt", 1)]
    assert owes == [("ana", "bo", 30.0), ("小明", "ana", 5.0)]
    assert [x.owner for x in world.relationships("trust", towards="ana")] == ["bo", "小明"]
    assert [x.owner for x in ana.relationships.towards("trust", at_least=0.3)] == ["bo"]
    assert ana.relationships.of("stranger") == {
        "trust": 0.0,
        "affinity": 0.0,
        "fear": 0.0,
        "debt": 0.0,
        "loyalty": 5.0,
    }
    (first, *_) = ana.relationships.history("bo")
    assert (first.dimension, first.by, first.reason, first.memory_id) == (
        "trust",
        -0.5,
        "他偷了东西",
        "m1",
    )
    factory.clock.advance(90 * DAY)
    assert ana.relationships.of("bo")["trust"] == pytest.approx(-0.25)
    assert ana.relationships.of("bo")["debt"] == 30.0
    assert ana.relationships.of("bo", at=START)["trust"] == pytest.approx(-0.5)
    assert ana.relationships.list(at=START - 1) == []
    assert [x.dimension for x in ana.neighbors("Bo").relationships] == ["debt", "loyalty", "trust"]
    assert {x.other for x in ana.neighbors().relationships} == {"Bo"}
    digest = ana.digest()
    rt.close()
    again = factory(background=False)
    assert again.user("ana", "town").digest() == digest
    # What has moved is known without a declaration.
    assert again.user("ana", "town").relationships.move("小明", loyalty=1)["loyalty"] == 6.0


def test_one_line_in_a_prompt_within_the_budget(rt: Runtime) -> None:
    ana = rt.user("ana")
    ana.observe("Bo stole the amulet.", participants=["Bo"])
    ana.observe("小明卖了一匹马。", participants=["小明"])
    ana.relationships.move("Bo", trust=-0.5, debt=30)
    ana.relationships.move("小明", affinity=0.254)
    block = ana.context("What did Bo do?")
    assert block.text.startswith("Relationships:\n- Bo: debt 30, trust -0.5\nEvents:\n- Bo stole")
    assert "小明: affinity 0.25" in ana.context("小明是谁？").text
    assert "Relationships" not in ana.context("What about the horse?").text
    for budget in range(1, 60):
        small = ana.context("What did Bo do?", budget_tokens=budget)
        assert small.tokens <= budget
        assert ("Bo: debt" in small.text) or small.left_out
    early = ana.context("What did Bo do?", as_of=START - 1)
    assert "Relationships" not in early.text


def test_save_slots_and_forgetting(rt: Runtime) -> None:
    world = rt.world("save")
    ana = world.user("ana")
    ana.relationships.move("Bo", trust=0.5, reason="Bo saved her life 救命")
    world.checkpoint("day 1")
    ana.relationships.move("Bo", trust=-0.9)
    other = world.fork("day 1", "what if")
    assert other.user("ana").relationships.of("Bo")["trust"] == 0.5
    world.rewind("day 1")
    assert ana.relationships.of("Bo")["trust"] == 0.5
    assert len(ana.relationships.history("Bo")) == 1
    other.user("ana").forget()
    assert ana.forget().clean
    assert ana.relationships.list() == []


def test_a_repeated_request_moves_once(rt: Runtime) -> None:
    ana = rt.user("ana")
    for _ in range(3):
        assert ana.relationships.move("Bo", trust=0.25, request_id="r1") == {"trust": 0.25}
    assert ana.relationships.of("Bo")["trust"] == 0.25


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.move("Bo"),
        lambda x: x.move("Bo", trust=math.nan),
        lambda x: x.move("Bo", trust=True),
        lambda x: x.move("Bo", trust="much"),
        lambda x: x.move("Bo", debt=10**400),
        lambda x: x.move("Bo", honour=1),
        lambda x: x.move("Bo", {"not a name": 1}),
        lambda x: x.move("Bo", {"x" * 65: 1}),
        lambda x: x.move("Bo", 0.5),
        lambda x: x.move("user", trust=1),
        lambda x: x.move("ANA", trust=1),
        lambda x: x.move("Bo", honour=1, dimensions={"honour": Dimension(1.0, 1.0)}),
        lambda x: x.move("Bo", honour=1, dimensions={"honour": Dimension(0.0, 1.0, 2.0)}),
        lambda x: x.move("Bo", honour=1, dimensions={"honour": Dimension(half_life_s=0.0)}),
        lambda x: x.move("Bo", honour=1, dimensions={"honour": Dimension(low=math.inf)}),
        lambda x: x.move("Bo", honour=1, dimensions={"honour": 3}),
        lambda x: x.list("not a name"),
        lambda x: x.list(at_least="high"),
    ],
)
def test_bad_input_is_refused(rt: Runtime, call: Callable[[object], object]) -> None:
    guard = Guard(rt)
    guard.refuses(InvalidValueError, lambda: call(guard.user.relationships))
    guard.refuses(InvalidIdError, lambda: guard.user.relationships.move(" ", trust=1))
    guard.goes_on()


def test_names_and_reasons_are_masked(factory: Factory) -> None:
    rt = factory(mask=("person", "email"), mask_key=new_mask_key(), background=False)
    ana = rt.user("ana")
    ana.relationships.move("Ines Moreau", trust=0.5, reason="Ines Moreau wrote to i@x.org")
    (one,) = ana.relationships.list()
    assert one.other == "[PERSON_1]"
    assert ana.unmask(one.other) == "Ines Moreau"
    assert ana.relationships.of("ines moreau")["trust"] == 0.5
    assert [x.owner for x in rt.world().relationships(towards="Ines Moreau")] == ["ana"]
    (move,) = ana.relationships.history("Ines Moreau")
    assert move.reason == "[PERSON_1] wrote to [EMAIL_1]"
    assert "[PERSON_1]: trust 0.5" in ana.context("How is Ines Moreau?").text
    rt.flush()
    for path in (factory.folder / "data").rglob("*"):
        assert not path.is_file() or b"Moreau" not in path.read_bytes(), path
    assert ana.relationships.remove("Ines Moreau").dimensions == 1


def test_the_async_twin(tmp_path: Path) -> None:
    async def use() -> None:
        opened = reverie.open_async(tmp_path, embedder="standin", background=False)
        async with await opened as rt:
            ana = rt.user("ana")
            await ana.relationships.move("Bo", trust=0.5)
            assert (await ana.relationships.of("Bo"))["trust"] == pytest.approx(0.5)
            assert len(await ana.relationships.list("trust")) == 1
            assert (await ana.relationships.remove("Bo")).dimensions == 1

    asyncio.run(use())
