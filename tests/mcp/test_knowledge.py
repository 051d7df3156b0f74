"""The knowledge graph in the shapes of the official server-memory, and its file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support import Factory

import reverie
from reverie import Runtime, errors
from reverie.tools import Tools
from reverie.tools.knowledge import Knowledge
from reverie.tools.server_memory_file import Imported, read

ENTITIES: list[dict[str, Any]] = [
    {"name": "Ana Ruiz", "entityType": "person", "observations": ["sells honey", "sells honey"]},
    {"name": "ana ruiz", "entityType": "Ship ⛵", "observations": ["built in 1911"]},
    {"name": "李明", "entityType": "人物", "observations": ["喜欢乌龙茶", "住在成都", "喜欢猫"]},
    {"name": "user", "entityType": "default", "observations": ["asks in the evening"]},
    {"name": "$user", "entityType": "odd", "observations": ["no owner of any graph"]},
    {"name": "  two  spaces ", "entityType": "", "observations": []},
    {"name": "a\nb\tc", "entityType": "线\n", "observations": ["line one\nline two", "   "]},
    {"name": "../../x'; DROP TABLE memories; --", "entityType": "person", "observations": [""]},
    {"name": "...", "entityType": "...", "observations": ["🐝" * 40]},
    {"name": "长" * 700, "entityType": "long", "observations": ["sells honey"]},
]
RELATIONS = [
    {"from": "Ana Ruiz", "to": "李明", "relationType": "认识"},
    {"from": "李明", "to": "Ana Ruiz", "relationType": "learns Spanish from"},
    {"from": "user", "to": "$user", "relationType": "IS NOT"},
    {"from": "Ana Ruiz", "to": "ana ruiz", "relationType": "owns"},
    {"from": "a\nb\tc", "to": "长" * 700, "relationType": "x\ny"},
    {"from": "nobody", "to": "李明", "relationType": "dangles"},
    {"from": "...", "to": "...", "relationType": "..."},
]


def lines() -> list[str]:
    """The lines of such a file."""
    entities = [json.dumps({"type": "entity"} | e, ensure_ascii=False) for e in ENTITIES]
    return [*entities, *(json.dumps({"type": "relation"} | r) for r in RELATIONS)]


def bound(rt: Runtime, user: str = "ana") -> Tools:
    return Tools(rt, user=user, families=["server-memory"], answer_tokens=100_000)


def take(rt: Runtime, file: Path, **options: Any) -> Imported:
    return read(Knowledge(rt, rt.user("ana")), file, **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    return path


def test_a_file_is_taken_in_whole_and_reads_back_equal(rt: Runtime, file: Path) -> None:
    done = take(rt, file)
    assert (done.lines, done.bad) == (len(ENTITIES) + len(RELATIONS), 0)
    counts = done.added
    assert (counts.entities, counts.relations, counts.known) == (len(ENTITIES), len(RELATIONS), 0)
    assert bound(rt).call("read_graph") == {"entities": ENTITIES, "relations": RELATIONS}


def test_the_same_file_again_adds_nothing(rt: Runtime, file: Path) -> None:
    take(rt, file)
    digest = rt.user("ana").digest()
    again = take(rt, file).added
    assert (again.entities, again.observations, again.relations) == (0, 0, 0)
    assert rt.user("ana").digest() == digest
    with file.open("a", encoding="utf-8") as more:
        more.write(json.dumps({"type": "entity"} | ENTITIES[2] | {"observations": ["新"]}))
    take(rt, file)
    (found,) = bound(rt).call("open_nodes", {"names": ["李明"]})["entities"]
    assert found["observations"] == [*ENTITIES[2]["observations"], "新"]


def test_an_import_that_was_stopped_goes_on(
    rt: Runtime, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = rt.remember_many
    left = [3]

    def failing(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            msg = "no space left"
            raise errors.StorageFullError(msg)
        return keep(*args, **options)

    monkeypatch.setattr("reverie.tools.knowledge.MAX_WRITTEN", 5)
    monkeypatch.setattr(rt, "remember_many", failing)
    with pytest.raises(errors.StorageFullError):
        take(rt, file)
    assert take(rt, file).added.known > 0
    assert bound(rt).call("read_graph") == {"entities": ENTITIES, "relations": RELATIONS}


def test_bad_lines_are_told_by_number_and_the_others_are_kept(rt: Runtime, tmp_path: Path) -> None:
    bad = {
        2: '{"type": "entity", "name": "x"',
        4: '{"type": "entity", "name": 7, "entityType": "t", "observations": []}',
        5: '{"type": "person", "name": "x"}',
        6: "[]",
        8: json.dumps(
            {"type": "entity", "name": "n" * 20_000, "entityType": "", "observations": []}
        ),
        9: '{"type": "entity", "name": "\\ud800", "entityType": "t", "observations": []}',
        10: json.dumps({"type": "entity", "name": "z", "entityType": "", "observations": ["\0"]}),
        11: "[" * 10_000,
    }
    good = iter(lines())
    count = len(lines()) + len(bad)
    text = [bad[n] if n in bad else next(good) for n in range(1, count + 1)]
    text[2] = f"\n{text[2]}"  # an empty line is none that is bad
    path = tmp_path / "odd.jsonl"
    path.write_text("\ufeff" + "\n".join(text), encoding="utf-8")
    done = take(rt, path)
    assert [one.line for one in done.bad_lines] == [n + (n > 2) for n in bad]
    assert all(one.why and len(one.why) <= 300 for one in done.bad_lines)
    assert bound(rt).call("read_graph") == {"entities": ENTITIES, "relations": RELATIONS}


def test_a_bad_line_can_stop_it(rt: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join([*lines()[:3], "{", *lines()[3:]]), encoding="utf-8")
    with pytest.raises(errors.InvalidTextError) as caught:
        take(rt, path, stop=True)
    assert caught.value.details == {"line": 4}
    assert bound(rt).call("read_graph")["entities"] == ENTITIES[:3]


def test_it_is_part_of_the_graph_and_of_every_search(rt: Runtime, file: Path) -> None:
    take(rt, file)
    user = rt.user("ana")
    near = user.neighbors("李明")
    assert near.entity is not None
    triples = {(r.head, r.predicate, r.tail) for r in near.relations}
    assert ("Ana Ruiz", "认识", "李明") in triples
    assert user.search("谁喜欢乌龙茶？", limit=1)[0].text == "喜欢乌龙茶"
    assert "李明" in user.search("谁喜欢乌龙茶？", limit=1)[0].entities
    assert user.neighbors("Ana Ruiz").entity.type == "person"  # type: ignore[union-attr]
    bound(rt).call("delete_relations", {"relations": RELATIONS[:1]})
    triples = {(r.head, r.predicate, r.tail) for r in user.neighbors("李明").relations}
    assert ("Ana Ruiz", "认识", "李明") not in triples
    assert not any(relation.head == "user" for relation in user.neighbors().relations)


def test_relations_and_observations_need_their_entities(rt: Runtime) -> None:
    tools = bound(rt)
    tools.call("create_entities", {"entities": ENTITIES[:1]})
    digest = rt.user("ana").digest()
    one = {"from": "Ana Ruiz", "to": "Nobody", "relationType": "knows"}
    assert tools.call("create_relations", {"relations": [one]})["error"] == "UnknownMemoryError"
    added = [
        {"entityName": "Ana Ruiz", "contents": ["new"]},
        {"entityName": "x", "contents": ["y"]},
    ]
    assert tools.call("add_observations", {"observations": added})["error"] == "UnknownMemoryError"
    bad = [ENTITIES[2], ENTITIES[2] | {"name": "n" * 20_000}]
    assert tools.call("create_entities", {"entities": bad})["error"] == "InvalidMetadataError"
    assert rt.user("ana").digest() == digest


def test_a_changed_observation_is_shown_changed_and_a_forgotten_one_not(rt: Runtime) -> None:
    tools = Tools(rt, user="ana", families=["reverie", "server-memory"])
    tools.call("create_entities", {"entities": ENTITIES[2:3]})
    hit = tools.call("search_memory", {"query": "住在成都", "limit": 1})["results"][0]
    tools.call("update_memory", {"memory_id": hit["id"], "text": "住在重庆"})
    hit = tools.call("search_memory", {"query": "喜欢猫", "limit": 1})["results"][0]
    tools.call("forget", {"memory_id": hit["id"]})
    assert tools.call("read_graph")["entities"][0]["observations"] == ["喜欢乌龙茶", "住在重庆"]


def test_in_a_masked_folder_names_are_found_and_shown_as_placeholders(
    tmp_path: Path, file: Path
) -> None:
    factory = Factory(tmp_path / "masked", actors=None)
    rt = factory(background=False, mask=("email", "person"), mask_key=reverie.new_mask_key())
    tools = bound(rt)
    people = [
        {"name": name, "entityType": "person", "observations": [f"write to {name[:2]}@example.org"]}
        for name in ("Ines Moreau", "Zhang Weimin", "赵敏敏", "Oyelaran")
    ]
    for expected in (people, []):
        assert tools.call("create_entities", {"entities": people}) == {"entities": expected}
    knows = [{"from": "Oyelaran", "to": "赵敏敏", "relationType": "knows"}]
    for new in (knows, []):
        assert tools.call("create_relations", {"relations": knows}) == {"relations": new}
    whole = tools.call("read_graph")
    assert len(whole["entities"]) == 4
    for secret in ("Moreau", "Weimin", "赵敏敏", "Oyelaran", "example.org"):
        assert secret not in json.dumps(whole, ensure_ascii=False)
    (found,) = tools.call("open_nodes", {"names": ["赵敏敏"]})["entities"]
    assert found["observations"][0].startswith("write to [EMAIL_")
    tools.call("delete_entities", {"entityNames": ["Oyelaran"]})
    left = tools.call("read_graph")
    assert (len(left["entities"]), left["relations"]) == (3, [])
    take(rt, file)
    before = tools.call("read_graph")
    assert take(rt, file).added.entities == 0
    assert tools.call("read_graph") == before
    factory.finish()


# -- against a trivial twin -------------------------------------------------------------------

NAMES = ("Ana", "ana", "李明", "two words", "user")
_names = st.sampled_from(NAMES)
_texts = st.lists(st.sampled_from(["likes tea", "Likes tea", "喜欢茶", " ", "x"]), max_size=3)
_relation = st.fixed_dictionaries(
    {"from": _names, "to": _names, "relationType": st.sampled_from(["knows", "认识"])}
)
_entity = st.fixed_dictionaries(
    {"name": _names, "entityType": st.sampled_from(["person", "Ship", ""]), "observations": _texts}
)
_calls = st.one_of(
    st.tuples(
        st.just("create_entities"),
        st.fixed_dictionaries({"entities": st.lists(_entity, max_size=3)}),
    ),
    st.tuples(
        st.sampled_from(["create_relations", "delete_relations"]),
        st.fixed_dictionaries({"relations": st.lists(_relation, max_size=3)}),
    ),
    st.tuples(
        st.just("add_observations"),
        st.fixed_dictionaries(
            {
                "observations": st.lists(
                    st.fixed_dictionaries({"entityName": _names, "contents": _texts}), max_size=2
                )
            }
        ),
    ),
    st.tuples(
        st.just("delete_entities"),
        st.fixed_dictionaries({"entityNames": st.lists(_names, max_size=2)}),
    ),
    st.tuples(
        st.just("delete_observations"),
        st.fixed_dictionaries(
            {
                "deletions": st.lists(
                    st.fixed_dictionaries({"entityName": _names, "observations": _texts}),
                    max_size=2,
                )
            }
        ),
    ),
)


class Twin:
    """The same graph as plain lists. An operation that fails changes nothing."""

    def __init__(self) -> None:
        self.entities: dict[str, dict[str, Any]] = {}
        self.relations: list[dict[str, str]] = []

    def call(self, name: str, given: dict[str, Any]) -> bool:
        """Carry a call out; False when it fails."""
        return bool(getattr(self, name)(**given))

    def create_entities(self, entities: list[dict[str, Any]]) -> bool:
        for one in entities:
            copy = one | {"observations": list(one["observations"])}
            self.entities.setdefault(one["name"], copy)
        return True

    def create_relations(self, relations: list[dict[str, str]]) -> bool:
        if any(r[end] not in self.entities for r in relations for end in ("from", "to")):
            return False
        self.relations += [
            r for i, r in enumerate(relations) if r not in self.relations and r not in relations[:i]
        ]
        return True

    def add_observations(self, observations: list[dict[str, Any]]) -> bool:
        if any(one["entityName"] not in self.entities for one in observations):
            return False
        for one in observations:
            known = self.entities[one["entityName"]]["observations"]
            known += [t for t in dict.fromkeys(one["contents"]) if t not in known]
        return True

    def delete_entities(self, entityNames: list[str]) -> bool:  # noqa: N803 (their name)
        for name in entityNames:
            if self.entities.pop(name, None) is not None:
                self.relations = [r for r in self.relations if name not in {r["from"], r["to"]}]
        return True

    def delete_observations(self, deletions: list[dict[str, Any]]) -> bool:
        for one in deletions:
            if found := self.entities.get(one["entityName"]):
                kept = [t for t in found["observations"] if t not in one["observations"]]
                found["observations"] = kept
        return True

    def delete_relations(self, relations: list[dict[str, str]]) -> bool:
        self.relations = [r for r in self.relations if r not in relations]
        return True


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A runtime for many examples, each of a user of its own."""
    factory = Factory(tmp_path_factory.mktemp("twin"), actors=None)
    yield factory(background=False)
    factory.finish()


_count = [0]


@settings(max_examples=60)
@given(st.lists(_calls, max_size=12))
def test_any_calls_do_what_they_do_to_a_trivial_twin(
    shared: Runtime, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    _count[0] += 1
    tools, twin = bound(shared, f"user-{_count[0]}"), Twin()
    for name, given_ in calls:
        assert ("error" not in tools.call(name, given_)) == twin.call(name, given_), name
        graph = tools.call("read_graph")
        assert graph["entities"] == list(twin.entities.values())
        assert graph["relations"] == twin.relations
    for name in NAMES:
        held = [
            e
            for e in twin.entities.values()
            if name.lower() in json.dumps(list(e.values()), ensure_ascii=False).lower()
        ]
        found = tools.call("search_nodes", {"query": name})
        assert found["entities"] == held
        names = {entity["name"] for entity in held}
        assert found["relations"] == [r for r in twin.relations if {r["from"], r["to"]} & names]
