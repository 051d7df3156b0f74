"""Reflection: when it is due, about whom, what it is made of, and when it is taken back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_language import FakeLanguageModel
from hypothesis import given, strategies as st
from support import DAY, START, Factory, fact, writer

from reverie import Profile, Runtime, User
from reverie.memory_graph import events, nodes as n, reflection as r
from reverie.memory_graph.apply import apply
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import EntityDraft
from reverie.memory_graph.errors import ConfigError
from reverie.memory_graph.events import decode_event, encode_event
from reverie.memory_graph.material import Material
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.summaries import SummaryPolicy, due, material
from reverie.memory_graph.write import Writer
from reverie.models.protocol import LanguageModelInfo
from reverie.models.summarise import CentralSentences, WrittenSummaries

NAMES = ["Bo", "Cy", "小明", "磨坊", "Di"]
ONLY = SummaryPolicy(kinds="insights")


def saw(memory: UserMemory, text: str, *names: str, at: float = START, **fields: Any) -> str:
    """Keep an event; return its id."""
    entities = tuple(map(EntityDraft, names))
    draft = fact(text, kind="event", valid_from=at, entities=entities, **fields)
    return writer(at, memory).remember(draft)


def quarrels(count: int = 8, **fields: Any) -> UserMemory:
    memory = UserMemory()
    for i in range(count):
        other = "Cy" if i % 4 else "小明"
        text = f"Bo quarrelled with {other} about field {i}."
        saw(memory, text, "Bo", other, at=START + i * DAY, importance=0.5, **fields)
    return memory


def make(memory: UserMemory, at: float = START + 30 * DAY) -> list[str]:
    """Make the insights that are due as the background does; return their ids."""
    made: list[str] = []
    while (subject := next(due(memory, at, ONLY), None)) is not None:
        given_ = material(memory, subject, at)
        if given_ is None:
            break
        made.append(keep(writer(at, memory), given_))
    return made


def keep(made: Writer, given_: Material) -> str:
    text = CentralSentences().summarise(given_).text
    return made.summarise(
        text,
        given_.focus or n.USER_NODE,
        [source.id for source in given_.sources],
        from_at=given_.from_at,
        to_at=given_.to_at,
        vector=None,
        covers=given_.covers,
        order=given_.order,
        focus=given_.focus or None,
    )


def reflected(memory: UserMemory, *, at: float = START + 30 * DAY) -> list[str]:
    r.begin(writer(at, memory), None, force=True)
    return make(memory, at)


def insight(memory: UserMemory, node_id: str) -> n.Summary:
    found = memory.graph.node(node_id)
    assert isinstance(found, n.Summary)
    return found


# -- when, and about whom ----------------------------------------------------------------


def test_it_is_due_when_enough_was_gathered() -> None:
    memory = quarrels(8)  # of 0.5 each
    assert not r.is_due(memory, None)
    assert not r.is_due(memory, 4.01)
    assert r.is_due(memory, 4.0)
    assert r.begin(writer(START, memory), 4.01) == ()
    assert r.begin(writer(START, memory), 4.0) == ("e1", "e3")  # Bo, then Cy
    assert r.gathered(memory) == 0
    assert r.begin(writer(START, memory), 4.0) == ()
    assert r.begin(writer(START, memory), None, force=True) == ()  # nothing was gathered
    saw(memory, "Bo sang.", "Bo", importance=1.0)
    assert r.gathered(memory) == 1.0
    saw(memory, "Bo danced.", "Bo", importance=1.0, ttl_s=DAY)  # is not to last
    assert r.gathered(memory) == 1.0


def test_a_profile_goes_before_the_settings() -> None:
    memory = quarrels(8)
    made = writer(START, memory)
    made.emit(events.ProfileSet(at=START, profile=Profile(reflect_at=2.0)))
    assert r.is_due(memory, None)
    made.emit(events.ProfileSet(at=START, profile=Profile(reflect_at=9.0)))
    assert not r.is_due(memory, 1.0)


def test_the_foci_are_those_of_most_decayed_importance() -> None:
    memory = UserMemory()
    for i in range(4):
        saw(memory, f"Long ago {i} Bo sang.", "Bo", importance=0.9, at=START)
        saw(memory, f"Now {i} 小明 sang.", "小明", importance=0.6, at=START + 90 * DAY)
        saw(memory, f"Once {i} the Mill and 小明 met.", "磨坊", "小明", at=START + 90 * DAY)
    saw(memory, "Di won everything.", "Di", importance=1.0, at=START + 90 * DAY)  # once only
    names = [memory.display(e) for e in r.choose_foci(memory, START + 90 * DAY)]
    assert names == ["小明", "磨坊", "Bo"]


def test_who_comes_up_with_a_focus_always_is_no_focus_of_its_own() -> None:
    memory = UserMemory()
    for i in range(5):
        saw(memory, f"Bo and Cy ate at {i}.", "Bo", "Cy")
    assert [memory.display(e) for e in r.choose_foci(memory, START)] == ["Bo"]


# -- of what -----------------------------------------------------------------------------


def test_an_insight_cites_what_it_was_made_of() -> None:
    memory = quarrels(8, sentiment=-0.6)
    first, second, *more = reflected(memory)
    assert more == []  # two are too few for one about all
    about_bo = insight(memory, first)
    assert (about_bo.order, about_bo.focus, about_bo.of) == (2, "e1", "e1")
    sources = [s for s, _ in memory.graph.out(first, n.DERIVED_FROM)]
    assert sorted(sources) == [f"m{i}" for i in range(1, 9)]
    assert about_bo.text.startswith(
        "Bo and Cy come up together in 6 of 8 memories. "
        "8 of 8 memories of Bo are unpleasant ones.\n"
    )
    assert "小明 come up" not in about_bo.text  # twice is no rule
    assert insight(memory, second).focus == "e3"
    assert check_memory(memory) == []


def test_in_chinese() -> None:
    memory = UserMemory()
    for i in range(5):
        saw(
            memory,
            f"小明和小红在磨坊吵架，第{i}次。",
            "小明",
            "小红",
            provenance="told",
            told_by="阿德",
        )
    (made,) = reflected(memory)
    assert insight(memory, made).text.startswith(
        "5条关于小明的记忆里，有5条也提到小红。5条关于小明的记忆里，有5条是阿德说的。\n2023年"
    )


def test_of_one_event_one_memory_counts() -> None:
    memory = UserMemory()
    for i in range(3):
        saw(memory, f"Bo and Cy fought {i}.", "Bo", "Cy", event=f"x{i}")
        saw(memory, f"Di said that Bo and Cy fought {i}.", "Bo", "Cy", event=f"x{i}")
    (made,) = reflected(memory)
    assert "in 3 of 3 memories" in insight(memory, made).text
    assert len(list(memory.graph.out(made, n.DERIVED_FROM))) == 3


def test_insights_about_all_are_made_of_insights() -> None:
    memory = UserMemory()
    for i in range(12):
        saw(memory, f"{NAMES[i % 3]} baked bread number {i}.", NAMES[i % 3])
    *about, whole = reflected(memory)
    assert len(about) == 3
    found = insight(memory, whole)
    assert (found.order, found.focus, found.of) == (3, None, "u")
    assert [s for s, _ in memory.graph.out(whole, n.DERIVED_FROM)] == about
    assert memory.graph.summaries == {"e1": "y1", "e2": "y2", "e3": "y3", "u#3": "y4"}
    assert check_memory(memory) == []
    loaded = decode_snapshot(encode_snapshot(memory))
    assert state_digest(loaded) == state_digest(memory)
    assert loaded.graph.summaries == memory.graph.summaries


# -- when it is taken back ---------------------------------------------------------------


PUT_AWAY: dict[str, Callable[[Writer], object]] = {
    "archived": lambda w: w.retire("m4", "archived", ""),
    "deleted": lambda w: w.retire("m4", "expired", ""),
    "is to end": lambda w: w.edit(events.MemoryEdited(at=w.at, id="m4", ttl_s=DAY)),
}


@pytest.mark.parametrize("how", PUT_AWAY)
def test_what_was_put_away_answers_in_no_insight(how: str) -> None:
    memory = UserMemory()
    for i in range(15):
        saw(memory, f"{NAMES[i % 3]} hid coin number {i + 1}.", NAMES[i % 3])
    *_, whole = reflected(memory)
    # The insight that m4 is in is replaced, so that the one about all cites a retired one only.
    again = writer(START + 31 * DAY, memory)
    given_ = material(memory, "e1", START + 31 * DAY)
    assert given_ is not None
    newer = keep(again, given_)
    assert insight(memory, whole).stale
    assert check_memory(memory) == []
    PUT_AWAY[how](again)
    assert insight(memory, newer).retired_at is not None
    assert insight(memory, whole).retired_at is not None
    assert check_memory(memory) == []
    make(memory)
    assert check_memory(memory) == []
    live = [s for s in memory.graph.nodes(n.Summary) if s.retired_at is None]  # type: ignore[union-attr]
    assert len(live) == 4
    assert not any("coin number 4." in s.text for s in live)  # type: ignore[union-attr]


def test_what_was_replaced_is_told_anew() -> None:
    memory = quarrels(6)
    (first, *_) = reflected(memory)
    writer(START + 31 * DAY, memory).remember(
        fact("Bo and Cy made peace.", entities=(EntityDraft("Bo"), EntityDraft("Cy"))), ("m2",)
    )
    assert insight(memory, first).stale
    assert insight(memory, first).retired_at is None
    make(memory)
    newest = insight(memory, memory.graph.summaries["e1"])
    assert "m2" not in [s for s, _ in memory.graph.out(newest.id, n.DERIVED_FROM)]
    assert check_memory(memory) == []
    writer(START + 32 * DAY, memory).restore("m2", "")  # what had replaced it ends
    assert newest.stale
    assert check_memory(memory) == []


steps = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=8, max_size=40
)


@given(steps)
def test_whatever_is_done_figures_are_true_and_replay_gives_the_same(
    done: list[tuple[int, int, int]],
) -> None:
    memory, journal = UserMemory(), []
    for now, (what, a, b) in enumerate(done):
        w = writer(START + now * DAY, memory)
        some = f"m{1 + a}"
        match what:
            case 0 | 1 | 2 | 3:
                names = tuple({NAMES[a % 3], NAMES[b % 4]})
                draft = fact(
                    f"{' and '.join(sorted(names))} number {now}.",
                    entities=tuple(map(EntityDraft, sorted(names))),
                    importance=b / 9,
                    sentiment=(a - 4) / 5,
                    provenance="told" if a % 2 else "witnessed",
                    told_by="阿德" if a % 2 else None,
                )
                w.remember(draft)
            case 4 if some in memory.graph:
                w.retire(some, "archived" if b % 2 else "expired", "")
            case 5 if some in memory.graph and memory.graph.get(some, n.Memory).status != "active":
                w.restore(some, "")
            case 6:
                r.begin(w, 2.0, force=b % 2 == 0)
                while (subject := next(due(memory, w.at, ONLY), None)) is not None:
                    given_ = material(memory, subject, w.at)
                    if given_ is None:
                        break
                    keep(w, given_)
            case _:
                pass
        journal += w.events
        assert check_memory(memory) == []
    for node in memory.graph.nodes(n.Summary):
        assert isinstance(node, n.Summary)
        if node.retired_at is None and node.order == r.INSIGHT:
            _check_figures(memory, node)
    copy = UserMemory()
    for event in journal:
        apply(copy, decode_event(encode_event(event)))
    assert state_digest(copy) == state_digest(memory)
    assert state_digest(decode_snapshot(encode_snapshot(memory))) == state_digest(memory)


def _check_figures(memory: UserMemory, node: n.Summary) -> None:
    """Assert that what an insight counts can be counted in what it cites."""
    cited = [memory.graph.get(s, n.Memory) for s, _ in memory.graph.out(node.id, n.DERIVED_FROM)]
    assert node.focus is not None
    for one in cited:
        assert memory.graph.edge(one.id, node.focus, n.CONTAINS_ENTITY) is not None
    for name, count, total in re.findall(
        r"and (\S+) come up together in (\d+) of (\d+)", node.text
    ):
        entity = memory.graph.entity_named(name)
        assert entity is not None
        found = [m for m in cited if memory.graph.edge(m.id, entity.id, n.CONTAINS_ENTITY)]
        assert (len(found), len(cited)) == (int(count), int(total))
    for count, total, mood in re.findall(
        r"(\d+) of (\d+) memories of \S+ are (\w+) ones", node.text
    ):
        sign = 1 if mood == "pleasant" else -1
        found = [m for m in cited if sign * m.sentiment >= r.STRONG]
        assert (len(found), len(cited)) == (int(count), int(total))
    for count, total, by in re.findall(
        r"(\d+) of (\d+) memories of \S+ were told by (\S+)\.", node.text
    ):
        found = [m for m in cited if m.told_by == by]
        assert (len(found), len(cited)) == (int(count), int(total))


PLANTED: dict[str, Callable[[UserMemory], object]] = {
    "has read up to memory 99": lambda m: setattr(m.graph.node("u"), "reflected", 99),
    "an insight is due about m1": lambda m: setattr(m.graph.node("u"), "foci", ("m1",)),
    "summary y1 of order 2 is of e1, about None": lambda m: setattr(
        m.graph.node("y1"), "focus", None
    ),
    "which is of no lower order": lambda m: setattr(m.graph.node("y4"), "order", 1),
    "which was retired": lambda m: setattr(m.graph.node("y1"), "retired_at", START),
}


@pytest.mark.parametrize("line", PLANTED)
def test_the_checker_finds_what_is_planted(line: str) -> None:
    memory = UserMemory()
    for i in range(12):
        saw(memory, f"{NAMES[i % 3]} baked bread number {i}.", NAMES[i % 3])
    reflected(memory)
    assert check_memory(memory) == []
    PLANTED[line](memory)
    assert any(line in found for found in check_memory(memory))


# -- by a language model -------------------------------------------------------------------


def test_a_model_concludes_from_what_stands_there() -> None:
    memory = quarrels(8)
    r.begin(writer(START, memory), None, force=True)
    given_ = material(memory, "e1", START)
    assert given_ is not None
    said = "Bo quarrels with Cy about fields in 6 of 8 memories. Zed is angry."
    model = FakeLanguageModel(lambda _: said)
    small = WrittenSummaries(model).summarise(given_)  # its size is not known
    assert small.text.startswith("Bo and Cy come up together in 6 of 8 memories.\n")
    model.info = LanguageModelInfo("large", 4096, 10**9, has_chat_template=True)
    made = WrittenSummaries(model).summarise(given_)
    assert made.is_written
    assert made.text == "Bo quarrels with Cy about fields in 6 of 8 memories."
    (asked,) = model.calls
    assert "these notes about Bo show together" in asked
    assert "- Bo and Cy come up together in 6 of 8 memories." in asked


# -- the whole -----------------------------------------------------------------------------


def lived(user: User, count: int = 9) -> None:
    for i in range(count):
        other = "Cy" if i % 3 else "小明"
        user.observe(
            f"Bo quarrelled with {other} about field {i}. 又吵了。",
            participants=["Bo", other],
            importance=0.5,
        )


def test_reflect_of_a_user(factory: Factory) -> None:
    rt = factory(background=False)
    ana = rt.user("ana")
    assert ana.reflect(force=True) == []
    lived(ana)
    assert ana.reflect() == []  # 4.5 of 15
    made = ana.reflect(force=True)
    first = ana.get(made[0])
    assert (first.order, first.about, len(first.sources)) == (2, "entity Bo", 9)
    assert ana.reflect(force=True) == []
    reasons = {h.about: h.reasons[0] for h in ana.search("What is it with Bo?", types="summary")}
    assert reasons == {
        "entity Bo": "insight about Bo from 9 memories",
        "entity Cy": "insight about Cy from 6 memories",
        "entity 小明": "insight about 小明 from 3 memories",
        "user": "insight from 3 insights",
    }
    ana.delete("m3")
    assert all("m3" not in ana.get(h.id).sources for h in ana.search("Bo", types="summary"))
    digest, items = ana.digest(), ana.list(types="summary").items
    rt.flush()
    rt.close()
    again = factory(background=False)
    assert again.user("ana").digest() == digest
    assert again.user("ana").list(types="summary").items == items


def test_reflect_of_a_world_never_tells_what_others_know(factory: Factory) -> None:
    rt = factory(background=False)
    world = rt.world("town")
    lived(world.user("ana"))
    for i in range(9):
        world.user("小明").observe(f"Di sold horse {i}.", participants=["Di"], importance=0.5)
    assert world.reflect() == {}
    made = world.reflect(force=True)
    assert made.keys() == {"ana", "小明"}
    for name, ids in made.items():
        user = world.user(name)
        texts = {item.id: item.text for item in user.list(types=None).items}
        for one in ids:
            assert all(source in texts for source in user.get(one).sources)
            assert ("Di" in texts[one]) == (name == "小明")
    assert rt.check() == []


def test_in_the_background_when_it_is_due(factory: Factory) -> None:
    rt = factory(reflect_at=4.0)
    ana, bo = rt.user("ana"), rt.user("bo")
    lived(ana)
    lived(bo, 3)
    _wait(rt, lambda: any(item.order == 2 for item in ana.list(types="summary").items))
    rt.drain(20)
    assert bo.list(types="summary").items == []
    bo.set_profile(Profile(reflect_at=1.0))
    lived(bo, 6)
    _wait(rt, lambda: any(item.order == 2 for item in bo.list(types="summary").items))
    rt.drain(20)


def _wait(rt: Runtime, is_done: Callable[[], bool]) -> None:
    for _ in range(400):
        if is_done():
            return
        time.sleep(0.05)
    pytest.fail("nothing was made in the background")


def test_with_extraction_and_a_rewind(factory: Factory) -> None:
    rt = factory(background=False, reflect_at=2.0)
    ana = rt.user("ana")
    ana.add("I love tea.", wait=True)
    rt.checkpoint("before")
    before = ana.digest()
    lived(ana)
    ana.add("I live in Oslo.", wait=True)  # what is due is made after the extraction
    assert any(item.order == 2 for item in ana.list(types="summary").items)
    rt.rewind("before")
    assert ana.digest() == before
    assert not any(item.order > 1 for item in ana.list(types="summary").items)


def test_bad_settings_are_refused(factory: Factory) -> None:
    with pytest.raises(ConfigError, match="reflect_at"):
        factory(reflect_at=0)
