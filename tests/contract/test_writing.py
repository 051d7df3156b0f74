"""What can be written, and what became of it: the same on every backend."""

from __future__ import annotations

import pytest
from support import DAY, START, Factory, Home, shown

from reverie import EntityDraft, TurnDraft, errors
from reverie.memory_graph.drafts import MemoryDraft

# -- add --------------------------------------------------------------------------------


def test_turns_of_every_form_are_stored_in_order(home: Home) -> None:
    ana = home.user()
    added = ana.add(
        [
            "I keep bees.",
            {"text": "我住在柏林。", "id": "zh-1", "time": "2023-01-02"},
            {"role": "assistant", "content": "How many hives?"},
            {"role": "user", "name": "Bo", "content": "She has three hives."},
            TurnDraft("Noted.", session="s2", speaker="小明", role="friend", metadata={"n": 1}),
        ],
        wait=True,
    )
    items = [ana.get(i) for i in added.ids]
    assert [i.text for i in items] == [
        "I keep bees.",
        "我住在柏林。",
        "How many hives?",
        "She has three hives.",
        "Noted.",
    ]
    assert [i.speaker for i in items] == ["user", "user", "assistant", "Bo", "小明"]
    assert [i.session for i in items] == ["default"] * 4 + ["s2"]
    assert [i.role for i in items] == ["user", "user", "assistant", "user", "friend"]
    assert items[1].at == 1_672_617_600.0
    assert items[0].at == START
    assert items[1].external_id == "zh-1"
    assert items[4].metadata == {"n": 1}
    assert {i.status for i in items} == {"extracted"}
    assert ana.get("zh-1").id == added.ids[1]
    assert {e.name for e in ana.entities()} >= {"Bo", "小明", "assistant"}


def test_a_turn_of_a_known_external_id_is_stored_once(home: Home) -> None:
    ana = home.user()
    first = ana.add({"text": "我养了一只猫。", "id": "x"}, wait=True)
    again = ana.add(
        [{"text": "我养了一只猫。", "id": "x"}, {"text": "她叫咪咪。", "id": "y"}], wait=True
    )
    assert again.ids[0] == first.ids[0]
    assert ana.stats().messages == 2
    with pytest.raises(errors.InvalidValueError, match="another text"):
        ana.add([{"text": "new", "id": "z"}, {"text": "另一句话。", "id": "x"}])
    with pytest.raises(errors.InvalidValueError, match="another text"):
        ana.add([{"text": "new", "id": "z"}, {"text": "other", "id": "z"}])
    assert ana.stats().messages == 2


def test_memories_are_found_in_turns_in_the_background(home: Home) -> None:
    ana, li = home.user(), home.user("李雷")
    assert ana.add("I live in Berlin.").kept == []
    li.add("我住在上海。")
    home.rt.drain(30)
    for user, city in ((ana, "Berlin"), (li, "上海")):
        assert user.stats().pending == 0
        (found,) = user.list(filters={"slot": "user|lives_in"}).items
        assert city in found.text
        assert found.sources == ("t1",)
        assert found.session == "default"
        assert user.get("t1").status == "extracted"


def test_a_changed_fact_replaces_the_old_one(home: Home) -> None:
    ana = home.user()
    ana.add("I love coffee.", wait=True)
    home.clock.advance(DAY)
    (kept,) = ana.add("I hate coffee.", wait=True).kept
    assert kept.op == "UPDATE"
    (old, new) = ana.history(kept.memory_id)
    assert (old.status, new.status) == ("superseded", "active")
    assert old.retired_at == START + DAY
    assert [i.id for i in ana.list().items] == [new.id]
    assert [i.id for i in ana.list(as_of=START).items] == [old.id]


def test_without_inference_turns_make_no_memories(home: Home) -> None:
    ana = home.user()
    added = ana.add(["I live in Berlin.", "我喜欢茶。"], infer=False, wait=True)
    assert added.kept == []
    assert ana.stats().memories == 0
    assert ana.get(added.ids[0]).status == "skipped"
    assert ana.search("Berlin")[0].id == added.ids[0]


def test_more_turns_than_one_command_takes(home: Home) -> None:
    ana = home.user()
    added = ana.add([f"第{i}句 line {i}" for i in range(300)], infer=False)
    assert added.ids == [f"t{i}" for i in range(1, 301)]
    assert ana.list(types="message").total == 300


def test_nothing_to_add_makes_no_user(home: Home) -> None:
    assert home.user("nobody").add([]).ids == []
    assert "nobody" not in home.rt.users(home.world)


# -- remember, observe, relate ----------------------------------------------------------


def test_what_is_remembered_is_kept_verbatim_and_once(home: Home) -> None:
    ana = home.user()
    text = "保险箱密码是 4711。 The safe code is 4711!"
    first = ana.remember(
        text,
        kind="event",
        importance=0.9,
        confidence=0.8,
        valid_from="2023-05-01",
        valid_to="2023-06-01",
        pinned=True,
        tags=["secret", "密码"],
        topics=["safety"],
        entities=["Safe", ("柏林", "place")],
        metadata={"level": 3},
    )
    assert first.op == "ADD"
    item = ana.get(first.memory_id)
    assert item.text == text
    assert (item.kind, item.importance, item.confidence, item.pinned) == ("event", 0.9, 0.8, True)
    assert item.tags == ("secret", "密码")
    assert item.topics == ("safety",)
    assert item.entities == ("Safe", "柏林")
    assert item.metadata == {"level": 3}
    assert item.at == item.valid_from == 1_682_899_200.0
    again = ana.remember(text.upper())
    assert (again.op, again.memory_id) == ("NOOP", first.memory_id)
    assert ana.stats().memories == 1


def test_word_order_makes_another_memory(home: Home) -> None:
    ana = home.user()  # the stand-in gives all of these the same vector
    texts = ["a b c", "a c b", "b a c", "b c a", "c a b", "c b a"]
    assert [ana.remember(t).op for t in texts] == ["ADD"] * 6
    assert [ana.remember(t).op for t in texts] == ["NOOP"] * 6


def test_a_twin_whose_time_is_over_is_kept_again_once(home: Home) -> None:
    ana = home.user()
    first = ana.remember("The bridge is closed.", ttl_s=60)
    home.clock.advance(61)
    second = ana.remember("The bridge is closed.")
    assert second.op == "ADD"
    assert ana.remember("the bridge is closed.").memory_id == second.memory_id
    assert [i.id for i in ana.list().items] == [second.memory_id]
    assert ana.delete(second.memory_id)
    third = ana.remember("The bridge is closed.")
    assert third.op == "ADD"
    assert third.memory_id not in {first.memory_id, second.memory_id}


def test_replacing(home: Home) -> None:
    ana = home.user()
    old = [ana.remember(t).memory_id for t in ("I am 30.", "我三十岁。")]
    home.clock.advance(DAY)
    kept = ana.remember("I am 31.", replaces=old)
    assert (kept.op, kept.target) == ("UPDATE", old[0])
    assert [i.id for i in ana.history(kept.memory_id)] == [*old, kept.memory_id]
    digest = ana.digest()
    with pytest.raises(errors.InvalidValueError, match="ended already"):
        ana.remember("I am 32.", replaces=old[0])
    with pytest.raises(errors.UnknownMemoryError):
        ana.remember("I am 32.", replaces="m99")
    with pytest.raises(errors.UnknownMemoryError):
        ana.remember("I am 32.", sources=["t99"])
    assert ana.digest() == digest
    assert ana.get(old[0]).retired_at == START + DAY


def test_observed_events_carry_people_place_and_teller(home: Home) -> None:
    ana = home.user("守卫")
    seen = ana.observe("A dragon burned the mill.", participants=["Smaug"], place="Dale")
    heard = ana.observe(
        "村长丢了钥匙。", told_by="小红", participants=["村长"], at="2023-02-01", sentiment=-0.5
    )
    a, b = ana.get(seen.memory_id), ana.get(heard.memory_id)
    assert (a.kind, a.provenance, a.told_by, a.at) == ("event", "witnessed", None, START)
    assert (b.provenance, b.told_by, b.at) == ("told", "小红", 1_675_209_600.0)
    assert set(a.entities) == {"Smaug", "Dale"}
    (place,) = ana.entities("dale")
    assert place.type == "place"


def test_relations_hold_one_by_one_or_one_at_a_time(home: Home) -> None:
    ana = home.user()
    first = ana.relate("user", "knows", "Bo", tail_type="person")
    assert ana.relate("user", "knows", "bo") == first
    assert ana.relate("user", "knows", "小明") not in {None, first}
    oslo = ana.relate("user", "lives_in", "Oslo", functional=True)
    home.clock.advance(DAY)
    rome = ana.relate("user", "lives_in", "罗马", functional=True)
    live = {r.id: (r.predicate, r.tail) for r in ana.neighbors().relations}
    assert live[rome or ""] == ("lives_in", "罗马")
    assert oslo not in live
    assert len(live) == 3
    past = {r.id: r for r in ana.neighbors(as_of=START).relations}
    assert past[oslo or ""].tail == "Oslo"
    assert ana.relate("user", "lives_in", "罗马", ended=True) is None
    assert rome not in {r.id for r in ana.neighbors().relations}
    assert rome in {r.id for r in ana.neighbors(include_retired=True).relations}


def test_two_stints_are_two_relations(home: Home) -> None:
    ana = home.user()
    first = ana.relate("Bo", "works_at", "工厂", valid_from=100, valid_to=200)
    assert ana.relate("Bo", "works_at", "工厂", valid_from=100, valid_to=200) == first
    second = ana.relate("Bo", "works_at", "工厂", valid_from=300.0)
    assert ana.relate("Bo", "works_at", "工厂") == second
    assert ana.relate("Bo", "works_at", "工厂", valid_from=210.0, valid_to=220.0) not in {
        first,
        second,
    }
    at = {t: {r.id for r in ana.neighbors("Bo", valid_at=t).relations} for t in (150, 250, 350)}
    assert at == {150: {first}, 250: set(), 350: {second}}


def test_a_relation_never_ends_before_it_began(home: Home) -> None:
    ana = home.user()
    ana.relate("Bo", "lives_in", "Oslo", valid_from=2000.0, functional=True)
    ana.relate("Bo", "lives_in", "Rome", valid_from=1000.0, functional=True)
    for relation in ana.neighbors("Bo", include_retired=True).relations:
        assert relation.valid_to is None or relation.valid_to >= (relation.valid_from or 0.0)


# -- update, delete, archive, restore ---------------------------------------------------


def test_attributes_change_in_place_and_texts_by_replacement(home: Home) -> None:
    ana = home.user()
    turn = ana.add("My cat is Tom, 我的猫。", infer=False, session="pets").ids[0]
    old = ana.remember(
        "My cat is Tom.", sources=[turn], topics=["pets"], tags=["a"], entities=["Tom"]
    ).memory_id
    edited = ana.update(old, importance=1, tags=["b", "c"], metadata={"k": [1, None]}, ttl_s=DAY)
    assert (edited.id, edited.importance, edited.tags) == (old, 1.0, ("b", "c"))
    assert edited.metadata == {"k": [1, None]}
    home.clock.advance(1)
    new = ana.update(old, "My cat is called Tom. 猫叫汤姆。", pinned=True, ttl_s=None)
    assert new.id != old
    assert new.pinned
    assert (new.tags, new.topics, new.sources) == (("b", "c"), ("pets",), (turn,))
    assert new.entities == ("Tom",)
    assert ana.list(filters={"session": "pets"}).total == 1
    assert [i.status for i in ana.history(new.id)] == ["superseded", "active"]
    assert ana.update(new.id, new.text).id == new.id
    with pytest.raises(errors.InvalidValueError, match="superseded"):
        ana.update(old, "Another text.")
    with pytest.raises(errors.InvalidValueError, match="nothing to change"):
        ana.update(new.id)
    with pytest.raises(errors.UnknownMemoryError):
        ana.update("m99", importance=0.1)


def test_deleting_ends_and_restoring_undoes(home: Home) -> None:
    ana = home.user()
    kept = ana.remember("我会弹钢琴。").memory_id
    home.clock.advance(DAY)
    assert ana.delete(kept, reason="错了")
    assert not ana.delete(kept)
    assert not ana.archive(kept)
    gone = ana.get(kept)
    assert (gone.status, gone.retired_why, gone.retired_at) == ("expired", "错了", START + DAY)
    assert ana.search("钢琴") == []
    assert [h.id for h in ana.search("钢琴", include_retired=True)] == [kept]
    home.clock.advance(DAY)
    back = ana.restore(kept)
    assert (back.status, back.retired_at, back.valid_to) == ("active", None, None)
    assert [h.id for h in ana.search("钢琴")] == [kept]
    with pytest.raises(errors.NothingToUndoError):
        ana.restore(kept)
    for call in (ana.delete, ana.archive, ana.restore, ana.history):
        with pytest.raises(errors.UnknownMemoryError):
            call("m77")


def test_archived_memories_answer_when_they_are_asked_for(home: Home) -> None:
    ana = home.user()
    kept = ana.remember("The lake froze.", valid_to="2030-01-01").memory_id
    assert ana.archive(kept)
    assert not ana.archive(kept)
    assert ana.list().total == 0
    assert ana.search("lake") == []
    assert [h.id for h in ana.search("lake", include_archived=True)] == [kept]
    back = ana.restore(kept)
    assert back.valid_to == 1_893_456_000.0
    assert ana.archive(kept)
    assert ana.delete(kept)  # put away first, ended then


def test_restoring_retires_all_that_came_after(home: Home) -> None:
    ana = home.user()
    ids = [ana.remember("I love tea.").memory_id]
    for text in ("I hate tea.", "I adore tea."):
        home.clock.advance(DAY)
        ids.append(ana.remember(text, replaces=ids[-1]).memory_id)
    home.clock.advance(DAY)
    ana.restore(ids[0])
    assert [i.status for i in ana.history(ids[0])] == ["active", "superseded", "superseded"]
    assert [i.id for i in ana.list().items] == [ids[0]]
    ana.restore(ids[1])
    assert [i.status for i in ana.history(ids[0])] == ["superseded", "active", "superseded"]


def test_relations_end_and_return_with_their_memory(home: Home) -> None:
    ana = home.user()
    (kept,) = ana.add("I work at Siemens.", wait=True).kept
    assert [r.tail for r in ana.neighbors().relations] == ["Siemens"]
    home.clock.advance(DAY)
    ana.delete(kept.memory_id)
    assert ana.neighbors().relations == []
    ana.restore(kept.memory_id)
    assert [r.tail for r in ana.neighbors().relations] == ["Siemens"]


# -- many -------------------------------------------------------------------------------


def test_many_users_at_once(home: Home) -> None:
    rt, world = home.rt, home.world
    names = [f"npc{i}" for i in range(12)] + ["阿强", "🐉"]
    added = rt.add_many(
        {n: ["I live in Oslo.", f"我叫{n}。"] for n in names}, world=world, wait=True
    )
    assert list(added) == names
    for name in names:
        assert added[name].ids == ["t1", "t2"]
        assert added[name].kept
        assert home.user(name).stats().pending == 0
    assert rt.users(world) == sorted(names)
    with pytest.raises(errors.InvalidTextError):
        rt.add_many({"new": "fine", "newer": ""}, world=world)
    assert "new" not in rt.users(world)
    assert rt.add_many({}, world=world) == {}
    quiet = rt.add_many({"npc0": "No memory of this."}, world=world, infer=False)
    assert quiet["npc0"].ids == ["t3"]


def test_remembering_for_many_users(home: Home) -> None:
    rt, world = home.rt, home.world
    facts = ["The king is dead.", "国王死了。", "The king is dead."]
    draft = MemoryDraft(
        "Long live the king.", entities=(EntityDraft("King", "person"),), tags=("a",)
    )
    kept = rt.remember_many({f"u{i}": [*facts, draft] for i in range(5)}, world=world)
    for user, results in kept.items():
        assert [k.op for k in results] == ["ADD", "ADD", "NOOP", "ADD"]
        assert results[2].memory_id == results[0].memory_id
        assert home.user(user).get(results[3].memory_id).tags == ("a",)
    assert rt.remember_many({}, world=world) == {}


def test_a_large_batch_is_cut_and_kept_in_order(home: Home) -> None:
    texts = [f"fact number {i}" for i in range(700)]
    kept = home.rt.remember_many({"ana": texts}, world=home.world)["ana"]
    assert [k.memory_id for k in kept] == [f"m{i}" for i in range(1, 701)]
    assert [i.text for i in home.user().list(limit=1000).items] == texts


# -- request ids ------------------------------------------------------------------------


def test_a_request_is_carried_out_once(home: Home) -> None:
    ana = home.user()
    for _ in range(2):
        assert ana.add(["hello there", "你好"], request_id="r1", infer=False).ids == ["t1", "t2"]
        assert ana.remember("Water boils.", request_id="r2").op == "ADD"
        assert ana.observe("It rained.", request_id="r3").op == "ADD"
        assert ana.relate("Bo", "owns", "Boat", request_id="r4") == "r1"
        home.clock.advance(1)
    for _ in range(2):
        assert ana.update("m1", "Water boils at 100.", request_id="r5").id == "m3"
        assert ana.delete("m2", request_id="r6")
        assert ana.restore("m2", request_id="r7").status == "active"
        assert ana.archive("m2", request_id="r8")
        home.clock.advance(1)
    stats = ana.stats()
    assert (stats.messages, stats.memories, stats.relations) == (2, 3, 1)


def test_a_request_id_of_another_request_is_refused(home: Home) -> None:
    ana, bo = home.user(), home.user("bo")
    ana.remember("Water boils.", request_id="请求 1")
    digest = ana.digest()
    for call in (
        lambda: ana.remember("Water freezes.", request_id="请求 1"),
        lambda: ana.relate("a", "b", "c", request_id="请求 1"),
    ):
        with pytest.raises(errors.RequestReusedError, match=r"'请求 1' was used before") as caught:
            call()
        assert caught.value.request_id == "请求 1"  # type: ignore[attr-defined]
    assert ana.digest() == digest
    for i in range(20):  # other users choose their own ids, wherever they live
        assert home.user(f"u{i}").remember("Water boils.", request_id="请求 1").op == "ADD"
    assert bo.digest() == ""


def test_a_refused_request_may_be_repeated(home: Home) -> None:
    ana = home.user()
    with pytest.raises(errors.UnknownMemoryError):
        ana.remember("The door is open.", replaces="m1", request_id="r")
    assert ana.digest() == ""
    assert ana.remember("The door is open.", request_id="r").op == "ADD"


def test_results_of_both_backends_are_the_same(runtime_factory: Factory) -> None:
    """The sequence of calls above, by digest: see also test_reopening.py."""
    rt = runtime_factory(extractor="rules")
    ana = rt.user("ana")
    ana.add(["I live in Berlin.", "我喜欢茶。"], wait=True)
    ana.remember("x")
    ana.search("Berlin")
    other = Factory(runtime_factory.folder, None)
    twin = other("twin", extractor="rules")
    bo = twin.user("ana")
    bo.add(["I live in Berlin.", "我喜欢茶。"], wait=True)
    bo.remember("x")
    bo.search("Berlin")
    assert ana.digest() == bo.digest()
    assert shown(ana.search("Berlin")) == shown(bo.search("Berlin"))
    other.finish()
