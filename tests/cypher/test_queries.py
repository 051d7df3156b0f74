"""Graph queries as a caller sees them."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import DAY, START, Factory, Home

import reverie
from reverie import errors
from reverie.actors import commands as c
from reverie.cypher import engines as processes
from reverie.graphs import pages
from reverie.memory_graph.projection import EDGES, ENDS, NODES
from reverie.models.masking import KINDS
from reverie.vault import new_mask_key

WHICH_BOOK = """
    MATCH (:User)-[:RELATION {predicate: $colleague}]-(who:Entity),
          (talk:Memory)-[:CONTAINS_ENTITY]->(who),
          (talk)-[:CONTAINS_ENTITY]->(:Entity {name: $subject}),
          (who)-[:RELATION {predicate: $recommends}]->(book:Entity)
    WHERE $from <= talk.valid_from AND talk.valid_from < $to
    RETURN DISTINCT who.name AS who, book.name AS book
"""
OCTOBER = {
    "from": dt.datetime(2023, 10, 1, tzinfo=dt.UTC),
    "to": dt.datetime(2023, 11, 1, tzinfo=dt.UTC),
}


def day(month: int, number: int) -> float:
    return dt.datetime(2023, month, number, tzinfo=dt.UTC).timestamp()


def test_the_book_that_a_colleague_recommended(home: Home) -> None:
    ana = home.user()
    subject = "microservices"
    for who, when in (("Ben", day(10, 12)), ("Carla", day(8, 3)), ("Dora", day(10, 20))):
        ana.remember(
            f"Discussed {subject} with {who}",
            kind="event",
            valid_from=when,
            entities=[(who, "person"), subject],
        )
    ana.remember("Had lunch with Emil", valid_from=day(10, 13), entities=[("Emil", "person")])
    for who, book in (
        ("Ben", "Team Topologies"),
        ("Carla", "Release It!"),
        ("Dora", "Dune"),
        ("Emil", "Emma"),
    ):
        ana.relate(who, "recommends", book, head_type="person")
    for who in ("Ben", "Carla", "Emil"):  # Dora is a neighbour
        ana.relate("user", "works_with", who, tail_type="person")
    found = ana.query(
        WHICH_BOOK,
        {"colleague": "works_with", "recommends": "recommends", "subject": subject, **OCTOBER},
    )
    assert found.columns == ("who", "book")
    assert found.rows == (("Ben", "Team Topologies"),)
    assert not found.truncated


def test_the_same_in_chinese(home: Home) -> None:
    ana = home.user("安娜")
    ana.remember(
        "和李明讨论了微服务",
        kind="event",
        valid_from=day(10, 12),
        entities=[("李明", "person"), "微服务"],
    )
    ana.remember(
        "和王芳讨论了微服务",
        kind="event",
        valid_from=day(7, 1),
        entities=[("王芳", "person"), "微服务"],
    )
    ana.relate("李明", "推荐", "人月神话", head_type="person")
    ana.relate("王芳", "推荐", "三体", head_type="person")
    for who in ("李明", "王芳"):
        ana.relate("user", "同事", who, tail_type="person")
    found = ana.query(
        WHICH_BOOK,
        {"colleague": "同事", "recommends": "推荐", "subject": "微服务", **OCTOBER},
    )
    assert found.dicts() == [{"who": "李明", "book": "人月神话"}]
    shown = ana.query("MATCH (m:Memory) WHERE m.text CONTAINS '李明' RETURN m.text AS `内容`")
    assert shown.dicts() == [{"内容": "和李明讨论了微服务"}]


def test_nodes_edges_and_paths_are_plain_data(home: Home) -> None:
    ana = home.user()
    ana.add([{"text": "Hi.", "id": "x1"}, {"text": "你好。", "speaker": "Bo"}], infer=False)
    ana.remember("Bo sings", entities=["Bo"], tags=["a", "乙"], metadata={"n": [1]}, ttl_s=5 * DAY)
    ana.relationships.move("Bo", trust=0.5)
    (row,) = ana.query("MATCH (m:Memory) RETURN m")
    assert row[0] == {
        "_label": "Memory",
        "id": "m1",
        "text": "Bo sings",
        "kind": "fact",
        "status": "active",
        "recorded_at": START,
        "valid_from": None,
        "valid_to": None,
        "retired_at": None,
        "expires_at": START + 5 * DAY,
        "confidence": 1.0,
        "importance": 0.7,
        "sentiment": 0.0,
        "slot": None,
        "provenance": "witnessed",
        "told_by": None,
        "event": None,
        "pinned": False,
        "tags": ["a", "乙"],
        "metadata": '{"n":[1]}',
        "last_access": None,
        "hits": 0,
    }
    ((path,),) = ana.query("MATCH p = (:User)-[:STANDS_TO]->(:Entity) RETURN p").rows
    assert [n["_label"] for n in path["nodes"]] == ["User", "Entity"]
    assert path["nodes"][0]["name"] == "ana"
    assert path["rels"] == [
        {"_label": "STANDS_TO", "dimension": "trust", "value": 0.5, "rest": 0.0, "moved_at": START}
    ]
    ((message, aliases),) = ana.query(
        "MATCH (b:Message)-[:PREVIOUS]->(a:Message), (b)-[:SENT_BY]->(e:Entity) "
        "RETURN a.external_id, e.aliases"
    ).rows
    assert (message, aliases) == ("x1", [])
    json.dumps(ana.query("MATCH (a)-[r]->(b) RETURN a, r, b").rows)


def test_every_label_and_kind_of_the_schema_can_be_asked_for(home: Home) -> None:
    ana = home.user()
    for label, fields in NODES.items():
        named = ", ".join(f"n.{name} AS {name}" for name in fields)
        assert ana.query(f"MATCH (n:{label}) RETURN {named}").columns == tuple(fields)
    for kind, fields in EDGES.items():
        named = ", ".join(f"r.`{name}` AS `{name}`" for name in fields)
        for tail in ENDS[kind][0]:
            for head in ENDS[kind][1]:
                asked = f"MATCH (:{tail})-[r:{kind}]->(:{head}) RETURN {named}"
                assert ana.query(asked).columns == tuple(fields)


def test_a_user_that_does_not_exist_has_an_empty_graph(home: Home) -> None:
    assert home.user("nobody").query("MATCH (n) RETURN n.id").rows == (("u",),)
    assert home.rt.users() == []


def test_what_is_no_longer_believed_is_there_when_asked_for(home: Home) -> None:
    ana = home.user()
    old = ana.remember("Lives in Berlin").memory_id
    ana.remember("Lives in Oslo", replaces=old)
    away = ana.remember("Likes tea").memory_id
    ana.archive(away)
    ana.relate("Ana", "lives_in", "Berlin")
    ana.relate("Ana", "lives_in", "Berlin", ended=True)
    ask = "MATCH (m:Memory) RETURN m.text AS text ORDER BY text"
    ties = "MATCH ()-[r:RELATION]->() RETURN count(r)"
    assert ana.query(ask).rows == (("Lives in Oslo",),)
    assert ana.query(ties).rows == ((0,),)
    every = ana.query(ask, include_retired=True, include_archived=True)
    assert [text for (text,) in every] == ["Likes tea", "Lives in Berlin", "Lives in Oslo"]
    assert ana.query(ties, include_retired=True).rows == ((1,),)
    replaced = ana.query(
        "MATCH (new:Memory)-[:SUPERSEDES]->(old:Memory) RETURN new.text, old.text, old.status",
        include_retired=True,
    )
    assert replaced.rows == (("Lives in Oslo", "Lives in Berlin", "superseded"),)


def test_a_memory_whose_time_is_over_is_not_there(home: Home) -> None:
    ana = home.user()
    ana.remember("The door is open", ttl_s=10.0)
    count = "MATCH (m:Memory) RETURN count(m)"
    assert ana.query(count).rows == ((1,),)
    home.clock.advance(9.0)
    assert ana.query(count).rows == ((1,),)
    home.clock.advance(2.0)
    assert ana.query(count).rows == ((0,),)
    assert ana.query(count, include_retired=True).rows == ((1,),)


def test_values_decay_until_the_time_of_the_reader(home: Home) -> None:
    ana = home.user()
    ana.relationships.move("wolf", fear=0.8)
    ask = "MATCH (:User)-[r:STANDS_TO {dimension: 'fear'}]->(:Entity {name: 'wolf'}) RETURN r.value"
    assert ana.query(ask).rows == ((0.8,),)
    home.clock.advance(14 * DAY)
    ((value,),) = ana.query(ask).rows
    assert value == pytest.approx(0.4)
    assert value == ana.relationships.of("wolf")["fear"]


# -- parameters and limits ---------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -(2**63), 2.5, "it's \"中文\" \\ `x` $y // --\n; DROP TABLE Memory", " ", "",
     ["a", "b"], [1, 2], {"a": 1, "b": "x"}],
)  # fmt: skip
def test_parameters_are_values(home: Home, value: Any) -> None:
    assert home.user().query("RETURN $x AS x", {"x": value}).rows == ((value,),)


def test_a_datetime_is_passed_as_seconds(home: Home) -> None:
    when = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
    assert home.user().query("RETURN $x", {"x": when}).rows == ((START,),)


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("RETURN $x", None),
        ("RETURN $x", {"y": 1}),
        ("RETURN 1", {"x": 1}),
        ("RETURN $x", {"x": 2**63}),
        ("RETURN $x", {"x": float("nan")}),
        ("RETURN $x", {"x": b"x"}),
        ("RETURN $x", {"x": object()}),
        ("RETURN $x", {"x": "\0"}),
        ("RETURN $x", {"x": "\ud800"}),
        ("RETURN $x", {"x": {1: 2}}),
        ("RETURN $x", {"x": {"a b": 2}}),
        ("RETURN $x", {"x": [[[[[[1]]]]]]}),
        ("RETURN $x", {"x": list(range(2000))}),
        ("RETURN $x", {"x": "x" * 100_000}),
        ("RETURN $x", [("x", 1)]),
        ("RETURN $x", {"x": 1, "x) RETURN 1 //": 2}),
        ("RETURN $x", {"x": 1, 3: 2}),
        ("RETURN 1", dict.fromkeys(map("p{}".format, range(65)), 1)),
    ],
)
def test_bad_parameters(home: Home, query: str, params: Any) -> None:
    with pytest.raises(errors.InputError):
        home.user().query(query, params)
    assert "engines" not in home.rt.graphs.__dict__  # no process was started for it


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"limit": 10_001}, {"limit": True}, {"limit": "3"}, {"timeout_s": 0},
     {"timeout_s": 61}, {"timeout_s": float("nan")}, {"timeout_s": True}, {"timeout_s": "1"}],
)  # fmt: skip
def test_bad_limits(home: Home, options: dict[str, Any]) -> None:
    with pytest.raises(errors.InputError):
        home.user().query("RETURN 1", **options)


def test_rows_are_limited_and_it_is_said(home: Home) -> None:
    ana = home.user()
    ten = ana.query("UNWIND range(1, 10) AS x RETURN x", limit=10)
    assert (len(ten), ten.truncated) == (10, False)
    few = ana.query("UNWIND range(1, 10) AS x RETURN x", limit=9)
    assert (few.rows[-1], few.truncated) == ((9,), True)
    wide = ana.query("UNWIND range(1, 50) AS x RETURN repeat('x', 1000000)", limit=50)
    assert wide.truncated
    assert 1 <= len(wide) < 10


def test_what_the_engine_refuses_is_an_error_of_the_query(home: Home) -> None:
    ana = home.user()
    for bad in (
        "MATCH (n:Nothing) RETURN n",
        "RETURN n",
        "MATCH (n RETURN n",
        "RETURN 1 + 'x' + []",
    ):
        with pytest.raises(errors.QueryError):
            ana.query(bad)
    assert ana.query("RETURN 1").rows == ((1,),)


def test_limit_with_distinct(home: Home) -> None:
    ana = home.user()
    for i in range(6):
        ana.remember(f"Number {i}", kind="fact" if i < 4 else "event")
    asked = "MATCH (m:Memory) RETURN DISTINCT m.kind AS kind ORDER BY kind LIMIT 2"
    assert ana.query(asked).rows == (("event",), ("fact",))


# -- which state, and whose --------------------------------------------------------------


def test_the_process_is_kept_until_something_is_written(home: Home) -> None:
    ana = home.user()
    ana.remember("one")
    count = "MATCH (m:Memory) RETURN count(m)"
    assert ana.query(count).rows == ((1,),)
    (place,) = home.rt.graphs.engines._places.values()
    kept = place.process
    assert kept is not None
    assert ana.query(count).rows == ((1,),)
    assert place.process is kept
    ana.remember("two")
    assert ana.query(count).rows == ((2,),)
    assert place.process is not kept
    assert kept.has_ended


def test_a_rewind_is_another_version(home: Home) -> None:
    ana = home.user()
    ana.remember("one")
    home.rt.checkpoint("before")
    ana.remember("two")
    ask = "MATCH (m:Memory) RETURN m.text ORDER BY m.text"
    assert ana.query(ask).rows == (("one",), ("two",))
    home.rt.rewind("before")
    assert ana.query(ask).rows == (("one",),)
    ana.remember("three")  # the same sequence as "two" had
    assert ana.query(ask).rows == (("one",), ("three",))


def test_users_and_worlds_do_not_see_each_other(home: Home) -> None:
    home.user().remember("mine", entities=["Oslo"])
    home.user("bo").remember("the secret of bo", entities=["Bergen"])
    home.rt.user("ana", "other").remember("the secret of another world")
    every = json.dumps(
        home.user().query("MATCH (n) OPTIONAL MATCH (n)-[r]-(m) RETURN n, r, m").rows
    )
    assert "mine" in every
    assert "secret" not in every
    assert "Bergen" not in every
    theirs = home.user("bo").query("MATCH (m:Memory) RETURN m.text").rows
    assert theirs == (("the secret of bo",),)


def test_forget_ends_the_process(home: Home) -> None:
    ana = home.user()
    ana.remember("a thing to forget")
    ana.query("RETURN 1")
    (place,) = home.rt.graphs.engines._places.values()
    kept = place.process
    assert kept is not None
    ana.forget()
    assert kept.has_ended
    assert not home.rt.graphs.engines._places
    assert ana.query("MATCH (m:Memory) RETURN count(m)").rows == ((0,),)


def test_processes_are_few_and_end_with_the_runtime(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MAX_ENGINES", 2)
    seen = []
    for user in ("a", "b", "c"):
        home.user(user).query("RETURN 1")
        seen.append(next(reversed(home.rt.graphs.engines._places.values())).process)
    assert [p.has_ended for p in seen if p] == [True, False, False]
    monkeypatch.setattr(processes, "MAX_ENGINE_BYTES", 1)
    home.user("c").query("RETURN 1")
    assert [p.has_ended for p in seen if p] == [True, True, False]
    home.rt.close()
    assert [p.has_ended for p in seen if p] == [True, True, True]
    with pytest.raises(errors.ClosedError):
        home.user("c").query("RETURN 1")


def test_when_all_are_busy(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MAX_ENGINES", 1)
    ana = home.user()
    ana.query("RETURN 1")
    (place,) = home.rt.graphs.engines._places.values()
    with place.lock:
        with pytest.raises(errors.OverloadedError):
            home.user("bo").query("RETURN 1")
        with pytest.raises(errors.OverloadedError):
            ana.query("RETURN 1", timeout_s=0.01)
    assert home.user("bo").query("RETURN 1").rows == ((1,),)


def test_many_pages_are_one_graph(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reverie.graphs.PAGE_NODES", 3)
    ana = home.user()
    for i in range(10):
        ana.relate(f"n{i}", "next", f"n{i + 1}")
    path = "MATCH (:Entity {name: 'n0'})-[:RELATION*10..10]->(e:Entity) RETURN e.name"
    assert ana.query(path).rows == (("n10",),)
    monkeypatch.setattr("reverie.graphs.MAX_NODES", 5)
    ana.remember("more")
    with pytest.raises(errors.QueryLimitError):
        ana.query("RETURN 1")


def test_names_in_a_query_are_masked_as_in_the_graph(factory: Factory) -> None:
    rt = factory(background=False, mask=KINDS, mask_key=new_mask_key())
    ana = rt.user("ana")
    ana.remember("Call Ines Moreau", entities=[("Ines Moreau", "person")])
    ask = "MATCH (m:Memory)-[:CONTAINS_ENTITY]->(e:Entity {name: 'Ines Moreau'}) RETURN m.text"
    by_name = "MATCH (m:Memory)-[:CONTAINS_ENTITY]->(e:Entity {name: $who}) RETURN m.text"
    for found in (ana.query(ask), ana.query(by_name, {"who": "Ines Moreau"})):
        ((text,),) = found.rows
        assert "Moreau" not in text
        assert ana.unmask(text) == "Call Ines Moreau"


def test_the_async_twin(factory: Factory) -> None:
    async def ask() -> Any:
        async with await reverie.open_async(
            factory.folder / "later", embedder="standin", background=False
        ) as rt:
            user = rt.user("ana")
            await user.remember("one")
            text = await user.export_graph("json")
            return await user.query("MATCH (m:Memory) RETURN m.text"), text

    found, text = asyncio.run(ask())
    assert found.rows == (("one",),)
    assert '"one"' in text


def test_without_the_extra_it_is_said_what_to_install(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(errors.ConfigError, match=r"reverie\[cypher\]"):
        home.user().query("RETURN 1")


def test_the_documentation_shows_the_schema() -> None:
    page = (Path(__file__).parents[2] / "docs" / "queries.md").read_text("utf-8")
    for label, fields in NODES.items():
        shown = ", ".join(f"`{name}` {kind}" for name, kind in fields.items())
        assert f"| `{label}` | {shown} |" in page
    for kind, fields in EDGES.items():
        tails, heads = (", ".join(f"`{label}`" for label in labels) for labels in ENDS[kind])
        shown = ", ".join(f"`{name}` {of}" for name, of in fields.items())
        assert f"| `{kind}` | {tails} | {heads} | {shown} |" in page


def test_pages_travel_between_processes(home: Home) -> None:
    ana = home.user()
    ana.remember("one", tags=["a"], metadata={"b": 1}, entities=["李明"])
    (page,) = pages(ana)
    sent = msgspec.msgpack.encode(page)
    assert msgspec.msgpack.decode(sent, type=c.ANSWERS[c.Graph]) == page
    (same,) = pages(ana, known=(page.seq, page.generation))
    assert same.is_known
    assert not same.nodes
