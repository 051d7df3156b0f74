"""What can be asked, and from when: the same on every backend."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from support import DAY, DIM, START, Factory, Home, shown

from reverie import errors, open_async
from reverie.models.standin import HashEmbedder


def told(home: Home) -> dict[str, str]:
    """Tell a small story over ten days; return names of its memories -> ids."""
    ana = home.user()
    ids: dict[str, str] = {}

    def keep(name: str, text: str, **fields: Any) -> None:
        ids[name] = ana.remember(text, **fields).memory_id
        home.clock.advance(DAY)

    ids["turn"] = ana.add(
        "Bo told me about 茶馆.", infer=False, session="walk", at=START - 5 * DAY
    ).ids[0]
    keep("berlin", "Ana lives in Berlin.", entities=["Ana", ("Berlin", "place")], tags=["home"])
    keep("tea", "安娜喜欢喝绿茶。", kind="preference", importance=0.9, tags=["drink", "茶"])
    keep("fair", "The fair came to town.", kind="event", valid_from=START - 2 * DAY, valid_to=START)
    keep(
        "code", "The code is 4711.", pinned=True, metadata={"level": 3, "by": "Bo"}, confidence=0.5
    )
    keep("walk", "Bo likes walking.", sources=[ids["turn"]], entities=["Bo"], topics=["people"])
    keep("oslo", "Ana lives in Oslo.", replaces=ids["berlin"], entities=["Ana", "Oslo"])
    keep("gone", "The well is dry.")
    ana.delete(ids["gone"])
    keep("away", "The mill is old.")
    ana.archive(ids["away"])
    keep("brief", "The gate is open.", ttl_s=DAY / 2)
    return ids


def names(ids: dict[str, str], items: Any) -> set[str]:
    by_id = {v: k for k, v in ids.items()}
    return {by_id[item.id] for item in items}


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({}, "tea fair code walk oslo turn"),
    ({"type": "message"}, "turn"),
    ({"kind": "preference"}, "tea"),
    ({"kind": ["preference", "event"]}, "tea fair"),
    ({"kind": {"in": ["fact"]}}, "code walk oslo"),
    ({"kind": {"nin": ["fact"]}, "type": "memory"}, "tea fair"),
    ({"kind": {"ne": "fact"}, "type": "memory"}, "tea fair"),
    ({"tags": "茶"}, "tea"),
    ({"tags": {"contains": "drink"}}, "tea"),
    ({"tags": {"eq": ("drink", "茶")}}, "tea"),
    ({"text": {"contains": "code"}}, "code"),
    ({"text": {"icontains": "ANA"}}, "oslo"),
    ({"entities": {"icontains": "bo"}}, "walk"),
    ({"topics": "people"}, "walk"),
    ({"importance": {"gte": 0.9}}, "tea"),
    ({"importance": {"gt": 0.5, "lt": 0.9}}, "fair code walk oslo"),
    ({"confidence": {"lte": 0.5}}, "code"),
    ({"pinned": True}, "code"),
    ({"metadata.level": {"gte": 3}}, "code"),
    ({"metadata.by": "Bo"}, "code"),
    ({"metadata.none": {"exists": True}}, ""),
    ({"metadata.level": {"exists": False}, "type": "memory"}, "tea fair walk oslo"),
    ({"session": "walk"}, "walk turn"),
    ({"speaker": "user"}, "walk turn"),
    ({"at": {"lt": START}}, "fair turn"),
    ({"recorded_at": {"gte": START + 4 * DAY}}, "walk oslo"),
    ({"valid_to": {"exists": True}}, "fair"),
    ({"OR": [{"kind": "event"}, {"pinned": True}]}, "fair code"),
    ({"AND": [{"kind": "fact"}, {"NOT": {"pinned": True}}]}, "walk oslo"),
    ({"NOT": [{"kind": "fact"}, {"kind": "event"}], "type": "memory"}, "tea"),
    ({"NOT": {"OR": [{"type": "message"}, {"NOT": {"kind": "fact"}}]}}, "code walk oslo"),
]


def test_filters(home: Home) -> None:
    ids = told(home)
    ana = home.user()
    for spec, expected in FILTERS:
        found = ana.list(filters=spec, types=None).items
        assert names(ids, found) == set(expected.split()), spec
        hits = ana.search("Ana Bo code fair 绿茶 茶馆", filters=spec)
        assert names(ids, hits) == set(expected.split()), spec


def test_other_moments(home: Home) -> None:
    ids = told(home)
    ana = home.user()

    def at(**moment: Any) -> set[str]:
        found = names(ids, ana.list(**moment).items)
        question = "Ana lives well mill gate code fair walking 绿茶"
        assert names(ids, ana.search(question, types="memory", **moment)) == found
        return found

    now = "tea fair code walk oslo"
    assert at() == set(now.split())
    assert at(include_archived=True) == set(now.split()) | {"away"}
    assert at(include_retired=True) == set(now.split()) | {"berlin", "gone", "brief"}
    assert at(as_of=START - 1) == set()
    assert at(as_of=START) == {"berlin"}
    assert at(as_of=START + 5 * DAY - 1) == set("berlin tea fair code walk".split())
    assert at(as_of=START + 5 * DAY) == set("oslo tea fair code walk".split())
    assert "gone" in at(as_of=START + 6 * DAY)
    assert "gone" not in at(as_of=START + 7 * DAY)
    assert at(as_of=START + 8.4 * DAY) >= {"brief"}
    assert at(valid_at=START - DAY) == {"fair"}
    assert at(valid_at=START) == {"berlin"}
    assert at(valid_at=START + 4.5 * DAY) == set("berlin tea code walk".split())
    assert at(valid_at=START + 5.5 * DAY) == set("oslo tea code walk".split())
    assert at(valid_at="2040-01-01") == set("oslo tea code walk".split())


def test_pages_cover_everything_once(home: Home) -> None:
    ana = home.user()
    for i in range(23):
        ana.remember(f"第{i}件事 thing {i}")
    ana.delete("m3")
    seen: list[str] = []
    cursor = None
    while True:
        page = ana.list(limit=5, cursor=cursor)
        assert page.total == 22
        seen += [i.id for i in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        assert cursor == seen[-1]
    assert seen == [f"m{i}" for i in range(1, 24) if i != 3]
    assert ana.list(limit=22).cursor is None
    with pytest.raises(errors.InvalidLimitError):
        ana.list(cursor="m99")
    assert home.user("nobody").list().total == 0


def test_hits_explain_themselves(home: Home) -> None:
    ids = told(home)
    hits = home.user().search("Where is 绿茶 with Oslo?", types="memory", limit=3)
    assert names(ids, hits[:2]) == {"oslo", "tea"}
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()), abs=1e-4)
        assert hit.reasons
    oslo = next(h for h in hits if h.id == ids["oslo"])
    assert "mentions Oslo" in oslo.reasons
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert home.user("nobody").search("anything") == []


def test_many_searches_equal_single_ones(home: Home) -> None:
    told(home)
    home.user("小明").remember("小明住在上海。")
    asked = [
        ("ana", "Where does Ana live?"),
        ("小明", "小明住在哪里？"),
        ("ana", "绿茶"),
        ("none", "x"),
    ]
    now = home.clock.now()
    many = home.rt.search_many(asked, world=home.world, limit=4, as_of=now)
    single = [home.user(u).search(q, limit=4, as_of=now) for u, q in asked]
    assert [shown(hits) for hits in many] == [shown(hits) for hits in single]
    assert [bool(hits) for hits in many] == [True, True, True, False]
    assert home.rt.search_many([], world=home.world) == []


def test_a_question_that_fails_takes_no_other_with_it(home: Home) -> None:
    told(home)
    good = home.user().search_command("绿茶", {"limit": 1, "types": "memory"})
    bad = msgspec.structs.replace(good, filters={"kind": {"resembles": "fact"}})
    first, refused, last = home.rt._router.call_many([good, bad, good])
    assert isinstance(refused, errors.FilterError)
    assert (
        [hit.text for hit in first]
        == [hit.text for hit in last]
        == [home.user().search("绿茶", limit=1)[0].text]
    )


def test_reading_is_remembered(home: Home) -> None:
    told(home)
    ana = home.user()
    (hit,) = ana.search("绿茶", types="memory", limit=1)
    assert hit.hits == 0
    home.clock.advance(DAY)
    (again,) = ana.search("绿茶", types="memory", limit=1)
    assert again.hits == 1
    ana.search("绿茶", types="memory", limit=1, as_of=START + 5 * DAY)
    assert ana.get(hit.id).hits == 2
    digest = ana.digest()
    ana.get(hit.id)
    ana.list()
    ana.neighbors()
    assert ana.digest() == digest


def test_contexts_keep_their_budget(home: Home) -> None:
    told(home)
    ana = home.user()

    def words(text: str) -> int:
        return len(text.split())

    question = "Ana, Bo, 绿茶, code and fair"
    last = -1
    block = ana.context(question, budget_tokens=1, count_tokens=words)
    for budget in (1, 5, 12, 25, 40, 80, 400):
        block = ana.context(question, budget_tokens=budget, count_tokens=words)
        assert block.tokens == words(block.text) <= budget
        assert len(block.hits) >= last
        last = len(block.hits)
    assert block.left_out == 0
    assert block.text.startswith("Facts:")
    assert "Ana lives in Oslo. (2023-11-19; m6)" in block.text
    assert "安娜喜欢喝绿茶。" in block.text
    assert "from t1" in block.text
    counted = HashEmbedder(DIM).count_tokens(ana.context(question, budget_tokens=60).text)
    assert 0 < counted <= 60
    assert home.user("nobody").context("x").text == ""
    plain = ana.context(question, show_time=lambda at: f"day {int((at - START) // DAY)}")
    assert "(day 5; m6)" in plain.text


def test_contexts_say_things_once(home: Home) -> None:
    ana = home.user()
    ana.add(["I live in Oslo now.", "我不喜欢喝茶。", "I live in Oslo now."], wait=True)
    for question, fact, turn in (
        ("Where do I live?", "User lives in Oslo now", "I live in Oslo"),
        ("我喜欢喝什么？", "用户不喜欢喝茶", "user: 我不"),
    ):
        block = ana.context(question)
        assert block.text.count(fact) == 1
        assert turn not in block.text
        assert "from t" in block.text
        found = {hit.id for hit in ana.search(question, limit=50)}
        assert found > {hit.id for hit in block.hits}
        assert block.left_out == 0


def test_contexts_pass_over_what_is_too_long(home: Home) -> None:
    ana = home.user()
    ana.remember("蜜蜂 " * 400, pinned=True)
    ana.remember("Ana keeps bees. 蜜蜂")
    block = ana.context("蜜蜂 bees", budget_tokens=25)
    assert [hit.id for hit in block.hits] == ["m2"]
    assert block.left_out == 1
    block = ana.context("蜜蜂 bees", budget_tokens=60)
    assert {hit.id for hit in block.hits} == {"m1", "m2"}  # of the long one its beginning
    assert HashEmbedder(DIM).count_tokens(block.text) == block.tokens <= 60


def test_entities_and_neighbours(home: Home) -> None:
    ids = told(home)
    ana = home.user()
    ana.relate("Ana", "married_to", "Bo", head_type="person", tail_type="person")
    found = ana.entities()
    assert found[0].name == "Ana"
    assert found[0].mentions == 2
    assert [e.name for e in ana.entities("ANA")] == ["Ana"]
    assert ana.entities("安娜") == []
    assert len(ana.entities(limit=2)) == 2
    near = ana.neighbors("ana")
    assert near.entity is not None
    assert near.entity.type == "person"  # was "thing" until the relation told
    assert [(r.head, r.predicate, r.tail) for r in near.relations] == [("Ana", "married_to", "Bo")]
    assert {name for name, _ in near.related} == {"Berlin", "Oslo"}
    assert names(ids, near.mentioned_in) == {"oslo"}
    assert names(ids, ana.neighbors("ana", include_retired=True).mentioned_in) == {"oslo", "berlin"}
    assert names(ids, ana.neighbors("ana", as_of=START).mentioned_in) == {"berlin"}
    with pytest.raises(errors.UnknownMemoryError):
        ana.neighbors("Nobody")


def test_counts(home: Home) -> None:
    told(home)
    stats = home.user().stats()
    assert (stats.messages, stats.memories, stats.active) == (1, 9, 6)
    assert (stats.sessions, stats.entities, stats.relations) == (1, 4, 0)
    assert stats.vectors == 10
    assert stats.embedder == HashEmbedder(DIM).info.id
    assert home.user("nobody").stats().seq == 0
    assert home.rt.stats().users >= 1


def test_what_is_not_there(home: Home) -> None:
    ghost = home.user("ghost")
    assert ghost.digest() == ""
    assert ghost.check() == []
    assert ghost.entities() == []
    assert ghost.neighbors().relations == []
    for call in (ghost.get, ghost.history, ghost.delete, ghost.neighbors):
        with pytest.raises(errors.UnknownMemoryError):
            call("m1")
    assert ghost.digest() == ""
    assert "ghost" not in home.rt.users(home.world)


def test_async_twins(runtime_factory: Factory) -> None:
    async def main() -> None:
        settings: dict[str, Any] = {"embedder": HashEmbedder(DIM), "actors": runtime_factory.actors}
        path = runtime_factory.folder / "async"
        async with await open_async(path, clock=runtime_factory.clock, **settings) as rt:
            ana = rt.user("ana")
            added = await ana.add("我住在柏林。", wait=True)
            assert added.ids == ["t1"]
            await asyncio.gather(*(rt.user(f"u{i}").remember("Hi there.") for i in range(20)))
            assert len(await rt.users()) == 21
            assert (await ana.search("柏林"))[0].id in {"m1", "t1"}
            assert (await ana.context("柏林")).tokens > 0
            with pytest.raises(errors.UnknownMemoryError):
                await ana.get("m9")
            assert await rt.check() == []
        await rt.close()
        with pytest.raises(errors.ClosedError):
            await ana.add("late")
        with pytest.raises(errors.ClosedError):
            await rt.users()

    asyncio.run(main())
