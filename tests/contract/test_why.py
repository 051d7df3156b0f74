"""Why something did or did not come up: the same on every backend, in English and Chinese."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support import DAY, DIM, START, Factory, Home

from reverie import EntityDraft, Explanation, MemoryDraft, errors, open_async
from reverie.memory_graph.search import NEAR, POOL
from reverie.models.standin import HashEmbedder


def sums_up(told: Explanation) -> bool:
    return told.score == pytest.approx(sum(told.parts.values()), abs=1e-9)


def test_what_comes_up_has_its_rank_and_reasons(home: Home) -> None:
    ana = home.user()
    ana.remember("The mill burned down.")
    tea = ana.remember("安娜喜欢喝绿茶。", entities=["安娜"]).memory_id
    for question, word in (("谁喜欢绿茶？", "绿茶"), ("安娜 tea", "安娜")):
        told = ana.why(question, tea)
        (hit, *_) = ana.search(question)
        assert (told.verdict, told.item_id, told.rank, hit.id) == ("shown", tea, 1, tea)
        assert told.candidates == 2
        assert told.parts == pytest.approx(hit.parts)
        assert sums_up(told)
        assert told.reasons[0] == "rank 1 of 2 that were scored"
        assert any(word in line for line in told.reasons)
        assert told.item is not None
        assert told.item.text == "安娜喜欢喝绿茶。"


def test_what_is_outranked_is_told_by_whom_and_in_what(home: Home) -> None:
    ana = home.user()
    for text in ("Bo keeps bees.", "Bo sells honey of his bees.", "The mill is old.", "磨坊很旧。"):
        ana.remember(text)
    for question, lost_to, item in (("Who keeps bees?", "m1", "m3"), ("磨坊旧吗？", "m4", "m2")):
        told = ana.why(question, item, limit=1)
        hits = ana.search(question, limit=10)
        assert told.verdict == "outranked"
        assert told.rank == [hit.id for hit in hits].index(item) + 1
        assert [hit.id for hit in told.ahead] == [lost_to]
        last = told.ahead[-1]
        assert told.score is not None
        assert sums_up(told)
        gap = sum(last.parts.get(s, 0) - told.parts.get(s, 0) for s in {*last.parts, *told.parts})
        assert gap == pytest.approx(last.score - told.score)
        assert list(told.lost.values()) == sorted(told.lost.values(), reverse=True)
        for signal, value in told.lost.items():
            behind = last.parts.get(signal, 0.0) - told.parts.get(signal, 0.0)
            assert value == pytest.approx(behind)
        assert "words" in told.lost
        assert f"{told.rank} of 4 that were scored, 1 were shown" in told.reasons[0]
        assert lost_to in told.reasons[1]


def test_the_rank_is_the_place_among_the_hits(home: Home) -> None:
    ana = home.user()
    for i in range(12):
        ana.remember(f"Bee number {i} flies. 第{i}只蜜蜂。", importance=i / 12)
    for question in ("Which bee flies?", "哪只蜜蜂？"):
        hits = ana.search(question, limit=12)
        for place, hit in enumerate(hits, 1):
            told = ana.why(question, hit.id, limit=5)
            assert (told.rank, told.verdict) == (place, "shown" if place <= 5 else "outranked")
            assert len(told.ahead) == (0 if place <= 5 else 5)
            assert sums_up(told)


def test_unknown_ids(home: Home) -> None:
    ana = home.user()
    ana.remember("Ana lives in Oslo.", entities=["Ana"])
    for unknown in ("m99", "e1", "user", "没有"):
        told = ana.why("Where does Ana live?", unknown)
        assert (told.verdict, told.item, told.rank) == ("unknown", None, None)
        assert unknown in told.reasons[0]
    assert home.user("nobody").why("安娜住在哪里？", "m1").verdict == "unknown"
    with pytest.raises(errors.InvalidIdError):
        ana.why("Where?", "")
    with pytest.raises(TypeError):
        ana.why("Where?", "m1", limits=3)  # type: ignore[call-arg]


def test_a_turn_is_known_by_the_id_that_it_came_with(home: Home) -> None:
    ana = home.user()
    ana.add({"text": "I live in Oslo. 我住在奥斯陆。", "id": "a1"}, infer=False)
    told = ana.why("我住在哪里？", "a1")
    assert (told.verdict, told.item_id) == ("shown", "t1")


def kept_out(home: Home) -> list[tuple[str, dict[str, Any], tuple[str, ...], str]]:
    """Make one memory for each way to be left out; return (id, options, by what, told)."""
    ana = home.user()
    turn = ana.add("Ana lives in Berlin. 住在柏林", infer=False, at=START).ids[0]
    berlin = ana.remember("Ana lives in Berlin.", valid_from=START).memory_id
    home.clock.advance(DAY)
    oslo = ana.remember("Ana lives in Oslo.", replaces=berlin).memory_id
    gone = ana.remember("安娜住在上海。").memory_id
    ana.delete(gone, reason="错了")
    away = ana.remember("Ana lives near the mill.").memory_id
    ana.archive(away)
    brief = ana.remember("Ana lives in a tent.", ttl_s=60).memory_id
    home.clock.advance(DAY)
    named = {"AND": [{"kind": "fact"}, {"OR": [{"kind": "event"}, {"tags": "住"}]}]}
    return [
        (turn, {"types": "memory"}, ("type",), "it is a message; asked for were only: memory"),
        (oslo, {"types": ["message", "summary"]}, ("type",), "message, summary"),
        (berlin, {}, ("retired",), f"replaced by {oslo}"),
        (berlin, {"valid_at": START + 1.9 * DAY}, ("valid_at",), "held no more"),
        (berlin, {"valid_at": START - 1}, ("valid_at",), "not hold yet"),
        (turn, {"valid_at": START - 1}, ("valid_at",), "said after"),
        (oslo, {"as_of": START}, ("as_of",), "recorded after"),
        (gone, {}, ("retired",), "错了"),
        (away, {}, ("archived",), "include_archived"),
        (brief, {}, ("ttl",), "time to live"),
        (oslo, {"filters": named}, ("filter",), '{"OR":[{"kind":"event"},{"tags":"住"}]}'),
        (
            berlin,
            {"filters": {"kind": "event"}, "types": "message"},
            ("type", "retired", "filter"),
            "",
        ),
    ]


def test_what_is_kept_out_is_told_by_what(home: Home) -> None:
    ana = home.user()
    for item, options, by, line in kept_out(home):
        for question in ("Where does Ana live?", "安娜住在哪里？"):
            told = ana.why(question, item, **options)
            assert (told.verdict, told.filtered_by) == ("filtered", by), (item, options)
            assert any(line in reason for reason in told.reasons), told.reasons
            assert (told.rank, told.score) == (None, None)
            assert item not in {hit.id for hit in ana.search(question, limit=50, **options)}


def test_what_is_let_in_again_comes_up(home: Home) -> None:
    ana = home.user()
    kept_out(home)
    for options in (
        {"include_retired": True, "include_archived": True},
        {"as_of": START + DAY / 2},
    ):
        told = ana.why("Where does Ana live?", "m1", limit=50, **options)
        assert told.verdict == "shown"
        assert told.item is not None
        assert told.item.status == ("active" if "as_of" in options else "superseded")


def test_what_is_no_candidate_is_told_what_it_lacks(home: Home) -> None:
    ana = home.user()
    bees = [MemoryDraft(f"Bees, bees: {i} bees.") for i in range(POOL + NEAR + 10)]
    home.rt.remember_many(
        {"ana": [*bees, MemoryDraft("采石场是灰色的。"), MemoryDraft("Crow bees")]},
        world=home.world,
    )
    bo, quarry, crow = "m1", f"m{len(bees) + 1}", f"m{len(bees) + 2}"
    told = ana.why("bees bees", quarry, limit=1)
    assert told.verdict == "not_a_candidate"
    assert (told.rank, told.score, told.parts, told.shares) == (None, None, {}, ())
    assert told.cosine is not None
    assert told.cosine_taken is not None
    assert told.cosine < told.cosine_taken
    assert "it shares no words with the question" in told.reasons
    assert "the question names nobody and nothing that is known" in told.reasons
    nearness = f"by meaning it is at {told.cosine:.2f}, the last that was taken at"
    assert any(line.startswith(nearness) for line in told.reasons)
    worded = ana.why("bees", crow, limit=1)
    assert (worded.verdict, worded.shares) == ("not_a_candidate", ("bees",))
    assert "it shares the words bees, but others match better" in worded.reasons
    assert ana.why("灰色的采石场", quarry, limit=1).verdict == "shown"
    assert ana.why("灰色的采石场", bo, limit=1).verdict in {"outranked", "not_a_candidate"}


def test_nobody_that_is_named(home: Home) -> None:
    ana = home.user()
    drafts = [
        MemoryDraft(f"小红养了{i}只猫。", entities=(EntityDraft("小红"),))
        for i in range(POOL + NEAR + 10)
    ]
    home.rt.remember_many({"ana": [*drafts, MemoryDraft("The quarry is grey.")]}, world=home.world)
    told = ana.why("小红养了什么？", f"m{len(drafts) + 1}", limit=1)
    assert told.verdict == "not_a_candidate"
    assert "it has nothing to do with what the question names: 小红" in told.reasons


def test_asking_why_leaves_no_trace(home: Home) -> None:
    ana = home.user()
    kept = ana.remember("Ana likes tea. 喜欢茶")
    digest = ana.digest()
    assert ana.why("tea", kept.memory_id).verdict == "shown"
    assert ana.digest() == digest
    assert ana.get(kept.memory_id).hits == 0


def test_the_async_twin(runtime_factory: Factory) -> None:
    async def main() -> None:
        settings: dict[str, Any] = {"embedder": HashEmbedder(DIM), "actors": runtime_factory.actors}
        path = runtime_factory.folder / "async"
        async with await open_async(path, clock=runtime_factory.clock, **settings) as rt:
            ana = rt.user("ana")
            kept = await ana.remember("我住在柏林。")
            told = await ana.why("我住在哪里？", kept.memory_id, limit=3)
            assert (told.verdict, told.limit) == ("shown", 3)

    asyncio.run(main())


def test_what_a_group_knows_is_explained_to_its_members(home: Home) -> None:
    world = home.rt.world(home.world)
    ana, guild = world.user("安娜"), world.group("行会")
    guild.observe("The guild bought the old mill.")  # before she joins: not hers
    guild.join("安娜")
    ana.remember("磨坊很旧。")
    seen = guild.observe("行会要烧磨坊。", witnesses=["bo"])
    for text in ("The guild keeps bees.", "The guild sells honey of its bees."):
        guild.observe(text)
    question = "行会要对磨坊做什么？"
    for hit in ana.search(question, limit=10):
        told = ana.why(question, hit.id, limit=10)
        assert (told.verdict, told.item_id) == ("shown", hit.id)
        assert told.item is not None
        assert (told.item.text, told.item.group) == (hit.text, hit.group)
        assert sums_up(told)
    first = ana.search(question, limit=1)[0]
    assert first.id == "group:行会/m2"
    own = ana.why(question, "m1", limit=1)  # alone, she would be shown it
    assert (own.verdict, [hit.id for hit in own.ahead]) == ("outranked", [first.id])
    assert own.reasons[1].startswith(f"the last of them, {first.id}, is ")
    asked = "Who sells honey of bees?"
    shown = ana.search(asked, limit=1)[0].id
    behind = ana.why(asked, "group:行会/m3", limit=1)
    assert (behind.verdict, [hit.id for hit in behind.ahead]) == ("outranked", [shown])
    assert (shown, behind.item_id) == ("group:行会/m4", "group:行会/m3")
    assert shown in behind.reasons[1]
    for who, item in (("安娜", "group:行会/m1"), ("bo", first.id), ("安娜", "group:none/m1")):
        told = world.user(who).why(question, item, include_retired=True)
        assert (told.verdict, told.item, told.item_id) == ("unknown", None, item)
    # of an event that she also saw herself, her own memory stands for both
    world.observe("行会要烧磨坊。", witnesses=["安娜"], event_id=seen.event_id)
    double = ana.why(question, first.id, limit=10)
    assert (double.verdict, double.reasons[1]) == ("outranked", "the same is shown as m2")
    with pytest.raises(errors.UnknownMemoryError, match="a memory of a group"):
        ana.relationships.move("bo", fear=0.2, memory_id=first.id)
    assert ana.relationships.move("bo", fear=0.2, memory_id="m2")["fear"] > 0
