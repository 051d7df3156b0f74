"""The facade beyond mem0's own answers: flows of its README, what differs, and safety."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import reverie
from reverie.mem0 import (
    AsyncMemory,
    ConfigurationError,
    Memory,
    MemoryConfig,
    MemoryNotFoundError,
    ValidationError,
)
from reverie.mem0.config import read_config
from reverie.mem0.ids import derived
from reverie.memory_graph.errors import InvalidMetadataError

UNKNOWN = "11111111-2222-4333-8444-555555555555"


def opened(folder: Path, **own: Any) -> Memory:
    return Memory(**{"data": folder / "data", "embedder": "standin", "partitions": 2, **own})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with opened(tmp_path) as made:
        yield made


def keep(memory: Memory, text: str, **options: Any) -> str:
    found: str = memory.add(text, infer=False, **options)["results"][0]["id"]
    return found


def texts(answer: dict[str, Any]) -> list[str]:
    return [item["memory"] for item in answer["results"]]


# -- scripts that were written for mem0 ---------------------------------------------------

SCRIPT = """
from mem0 import Memory

memory = Memory()
prompts = []

def chat(message, user_id="default_user"):
    found = SEARCH
    lines = "\\n".join(f"- {entry['memory']}" for entry in found["results"])
    prompts.append(f"Answer with these memories:\\n{lines}")
    messages = [{"role": "system", "content": prompts[-1]}, {"role": "user", "content": message}]
    messages.append({"role": "assistant", "content": "I see."})
    memory.add(messages, user_id=user_id)

chat("I moved to Bergen last year and my dog is called Rex.")
chat("我最喜欢的食物是饺子。")
chat("What is the name of my dog called Rex?")
"""
SEARCHES = {
    "1.x": "memory.search(query=message, user_id=user_id, limit=3)",
    "2.x": 'memory.search(query=message, filters={"user_id": user_id}, top_k=3)',
}


@pytest.mark.parametrize("version", SEARCHES)
def test_a_script_with_only_its_import_changed(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-models"))
    script = SCRIPT.replace("SEARCH", SEARCHES[version])
    names: dict[str, Any] = {}
    exec(script.replace("from mem0 import", "from reverie.mem0 import"), names)  # noqa: S102
    assert "Rex" in names["prompts"][2]
    kept = names["memory"].get_all(user_id="default_user")["results"]
    assert {"Rex", "饺子", "Bergen"} <= {
        word for word in ("Rex", "饺子", "Bergen") for item in kept if word in item["memory"]
    }
    assert not any("Answer with" in item["memory"] for item in kept)
    names["memory"].close()


def chat_of_1(memory: Any) -> list[str]:
    """The loop of the README of 1.x: recall, answer, remember."""
    said = ["I moved to Bergen last year.", "我最喜欢的食物是饺子。", "Where do I live?"]
    prompts = []
    for line in said:
        related = memory.search(query=line, user_id="alice", limit=3)
        prompts.append("\n".join(f"- {entry['memory']}" for entry in related["results"]))
        turns = [{"role": "user", "content": line}, {"role": "assistant", "content": "I see."}]
        memory.add(turns, user_id="alice")
    return prompts


def test_the_flow_of_1(memory: Memory) -> None:
    prompts = chat_of_1(memory)
    assert prompts[0] == ""
    assert "Bergen" in prompts[2]
    assert any("饺子" in text for text in texts(memory.get_all(user_id="alice")))
    first = memory.get_all(user_id="alice")["results"][0]
    assert memory.update(first["id"], "Lives in Oslo") == {
        "message": "Memory updated successfully!"
    }
    assert [row["event"] for row in memory.history(first["id"])] == ["ADD", "UPDATE"]
    assert memory.delete(first["id"]) == {"message": "Memory deleted successfully!"}
    assert memory.delete_all(user_id="alice") == {"message": "Memories deleted successfully!"}
    assert memory.get_all(user_id="alice") == {"results": []}


def test_the_flow_of_2(memory: Memory) -> None:
    made = memory.add("I moved to Bergen last year.", user_id="alice", metadata={"from": "chat"})
    assert [row["event"] for row in made["results"]] == ["ADD"]
    changed = memory.add("I moved to Oslo.", user_id="alice")["results"]
    assert [row["event"] for row in changed] == ["UPDATE"]
    assert changed[0]["id"] == made["results"][0]["id"]
    assert "Bergen" in changed[0]["previous_memory"]
    found = memory.search("Who moved to which city?", filters={"user_id": "alice"}, top_k=3)
    assert "Oslo" in found["results"][0]["memory"]
    assert found["results"][0]["metadata"] == {"from": "chat"}
    assert len(memory.history(changed[0]["id"])) == 2


def test_the_flow_with_coroutines(tmp_path: Path) -> None:
    async def run() -> dict[str, Any]:
        own: dict[str, Any] = {"data": tmp_path / "data", "embedder": "standin"}
        async with await AsyncMemory.from_config({}, **own) as memory:
            await asyncio.gather(
                *(memory.add(f"Fact {i}", user_id="ana", infer=False) for i in range(8))
            )
            found: dict[str, Any] = await memory.get_all(filters={"user_id": "ana"})
            return found

    assert sorted(texts(asyncio.run(run()))) == [f"Fact {i}" for i in range(8)]


def test_both_calls_are_told_apart(memory: Memory) -> None:
    for i in range(25):
        keep(memory, f"Fact {i}", user_id="ana", expiration_date="2020-01-01" if i < 2 else None)
    assert len(memory.get_all(user_id="ana")["results"]) == 25  # 1.x knows no expiry
    assert len(memory.get_all(filters={"user_id": "ana"})["results"]) == 20
    assert len(memory.get_all(filters={"user_id": "ana"}, top_k=50)["results"]) == 23
    with (
        opened(memory.plan.data.parent, version=2) as strict,
        pytest.raises(ValueError, match="user_id"),
    ):
        strict.get_all(user_id="ana")


# -- what differs on purpose (docs/mem0.md) -------------------------------------------------


def test_every_condition_holds(memory: Memory) -> None:
    for topic in ("food", "work", "home"):
        keep(memory, f"About {topic}", user_id="ana", metadata={"topic": topic, "n": 1})
    both = {"AND": [{"topic": {"ne": "food"}}, {"topic": {"ne": "work"}}]}
    wanted = {"user_id": "ana", **both}
    assert texts(memory.search("about", filters=wanted)) == ["About home"]
    assert texts(memory.get_all(filters=wanted)) == ["About home"]
    mixed = {"user_id": "ana", "topic": {"in": ["food", "home"], "ne": "food"}, "n": {"eq": 1}}
    assert texts(memory.get_all(filters=mixed)) == ["About home"]
    nested = {"user_id": "ana", "OR": [{"AND": [{"topic": "food"}, {"n": 1}]}, {"NOT": [{"n": 1}]}]}
    assert texts(memory.get_all(filters=nested)) == ["About food"]


def test_parts_of_words_are_contained(memory: Memory) -> None:
    keep(memory, "A teapot from 景德镇", user_id="ana")
    for operator, part in (("contains", "tea"), ("icontains", "TEAP"), ("contains", "德镇")):
        found = memory.get_all(filters={"user_id": "ana", "data": {operator: part}})
        assert texts(found) == ["A teapot from 景德镇"]
    found = memory.get_all(filters={"user_id": "ana", "data": {"contains": "TEA"}})
    assert texts(found) == []


def test_metadata_says_nothing_of_the_owner(tmp_path: Path) -> None:
    with opened(tmp_path, version=1) as memory:
        made = keep(memory, "Mine", agent_id="a", metadata={"user_id": "eve", "run_id": "r"})
        assert memory.get_all(user_id="eve") == {"results": []}
        memory.update(made, "Still mine", metadata={"agent_id": "b", "user_id": "eve"})
        assert memory.get_all(user_id="eve") == {"results": []}
        assert texts(memory.get_all(agent_id="a")) == ["Still mine"]


def test_all_of_many_are_deleted(memory: Memory) -> None:
    memory.add(
        [{"role": "user", "content": f"Fact {i}"} for i in range(150)], user_id="ana", infer=False
    )
    keep(memory, "Another's", user_id="ana2")
    memory.delete_all(user_id="ana")
    assert memory.get_all(filters={"user_id": "ana"}, top_k=1000) == {"results": []}
    assert texts(memory.get_all(filters={"user_id": "ana2"})) == ["Another's"]


def test_a_star_alone_is_refused(memory: Memory) -> None:
    keep(memory, "Secret", user_id="ana", agent_id="a")
    for filters in ({"user_id": "*"}, {"agent_id": "*"}, {"user_id": "*", "agent_id": "a"}):
        with pytest.raises(ValidationError, match="all_users"):
            memory.search("secret", filters=filters)
    assert texts(memory.get_all(filters={"user_id": "ana", "agent_id": "*"})) == ["Secret"]
    with opened(memory.plan.data.parent, all_users=True) as every:
        assert texts(every.get_all(filters={"user_id": "*"})) == ["Secret"]


def test_what_cannot_be_kept_is_refused_or_left_out(memory: Memory) -> None:
    assert memory.add("  ", user_id="ana", infer=False) == {"results": []}
    for metadata in ({"x": float("nan")}, {"x": b"y"}, {"x": "y" * 20_000}):
        with pytest.raises(InvalidMetadataError):
            memory.add("x", user_id="ana", metadata=metadata, infer=False)
    for user in ("u" * 600, "a\x00b", "\ud800"):
        with pytest.raises(ValueError):  # noqa: PT011 (of several kinds)
            memory.add("x", user_id=user, infer=False)
    with pytest.raises(ValidationError) as caught:
        memory.add(["x"], user_id="ana")
    assert caught.value.error_code == "VALIDATION_003"
    assert memory.get_all(filters={"user_id": "ana"}) == {"results": []}


@pytest.mark.parametrize(
    "filters",
    [
        {"n": {"like": 1}},
        {"n": {}},
        {"n": {"in": 5}},
        {"n": {"gt": "x"}},
        {"n": {"gt": None}},
        {"n": {"gt": float("nan")}},
        {"n": {"contains": 5}},
        {"AND": 5},
        {"OR": []},
        {"NOT": {"n": 1}},
        {"OR": [5]},
        {"AND": [{f"k{i}": 1 for i in range(300)}]},
    ],
)
def test_malformed_filters(memory: Memory, filters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        memory.search("x", filters={"user_id": "ana", **filters})
    deep: dict[str, Any] = {"n": 1}
    for _ in range(40):
        deep = {"AND": [deep]}
    with pytest.raises(ValidationError, match="levels"):
        memory.get_all(filters={"user_id": "ana", **deep})


# -- whose a memory is ----------------------------------------------------------------------


def test_scopes(memory: Memory) -> None:
    keep(memory, "both", user_id="ana", agent_id="a", run_id="r")
    keep(memory, "user", user_id="ana")
    keep(memory, "agent", agent_id="a")
    keep(memory, "run", run_id="r")
    keep(memory, "other", user_id="李雷", agent_id="a")

    def found(**filters: str) -> set[str]:
        return set(texts(memory.get_all(filters=filters)))

    assert found(user_id="ana") == {"both", "user"}
    assert found(agent_id="a") == {"both", "agent", "other"}
    assert found(run_id="r") == {"both", "run"}
    assert found(agent_id="a", run_id="r") == {"both"}
    assert found(user_id="李雷", run_id="r") == set()
    assert set(texts(memory.search("agent", filters={"agent_id": "a"}, threshold=0.0))) <= {
        "both",
        "agent",
        "other",
    }
    memory.delete_all(agent_id="a")
    assert found(user_id="ana") == {"user"}


def test_names_that_reverie_uses_itself(memory: Memory) -> None:
    keep(memory, "of the agent", agent_id="a")
    keep(memory, "of somebody", user_id="mem0:agent:a")
    keep(memory, "of a player", user_id="group:guild")
    assert texts(memory.get_all(filters={"agent_id": "a"})) == ["of the agent"]
    assert texts(memory.get_all(filters={"user_id": "mem0:agent:a"})) == ["of somebody"]
    assert texts(memory.get_all(filters={"user_id": "group:guild"})) == ["of a player"]
    assert memory.store.rt.world("mem0").groups() == []


def test_what_other_doors_have_written_is_seen(memory: Memory) -> None:
    ana = memory.store.rt.user("ana", world="mem0")
    kept = ana.remember("Ana plays the cello.", metadata={"agent_id": "a"})
    ana.add("I moved to Oslo.", wait=True)
    found = memory.get_all(filters={"user_id": "ana"})["results"]
    assert {item["user_id"] for item in found} == {"ana"}
    assert "Ana plays the cello." in [item["memory"] for item in found]
    assert texts(memory.get_all(filters={"agent_id": "a"})) == ["Ana plays the cello."]
    memory.update(found[0]["id"], "Ana plays the viola.")
    assert memory.get(found[0]["id"])["memory"] == "Ana plays the viola."  # type: ignore[index]
    assert ana.history(kept.memory_id)[-1].text == "Ana plays the viola."


def test_a_memory_is_in_its_scope_before_it_is_marked(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(memory.store), "mark", crash)
    with pytest.raises(KeyboardInterrupt):
        memory.add("I moved to Oslo.", user_id="ana", agent_id="a", metadata={"topic": "home"})
    monkeypatch.undo()
    (item,) = memory.get_all(filters={"agent_id": "a", "topic": "home"})["results"]
    assert "Oslo" in item["memory"]
    assert item["metadata"] == {"topic": "home"}
    assert "role" not in item


# -- ids, history, and one folder -------------------------------------------------------------


def test_ids_outlast_changes_and_openings(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        made = keep(memory, "one", user_id="ana")
        keep(memory, "two", user_id="ana")
        memory.update(made, "three", metadata={"a": 1})
    assert derived(made) is not None
    with opened(tmp_path) as memory:
        assert memory.get(made)["memory"] == "three"  # type: ignore[index]
        memory.update(made, metadata={"b": 2})
        assert memory.get(made)["metadata"] == {"a": 1, "b": 2}  # type: ignore[index]
        rows = memory.history(made)
        assert [row["new_memory"] for row in rows] == ["one", "three", "three"]
        assert len({row["id"] for row in rows}) == 3
        assert rows == memory.history(made)
        memory.reset()
        again = keep(memory, "uno", user_id="ana")
        assert again != made
        assert memory.get(made) is None
        assert memory.history(made) == []


@pytest.mark.parametrize("unknown", [UNKNOWN, "", "m1", "../../etc/passwd", None, 5, "\ud800"])
def test_unknown_ids(memory: Memory, unknown: Any) -> None:
    keep(memory, "one", user_id="ana")
    assert memory.get(unknown) is None
    assert memory.history(unknown) == []
    with pytest.raises(MemoryNotFoundError):
        memory.update(unknown, "x")
    with pytest.raises(ValueError, match="not found"):
        memory.delete(unknown)


def test_an_id_with_one_digit_changed_is_unknown(memory: Memory) -> None:
    made = keep(memory, "one", user_id="ana")
    for place, digit in enumerate(made):
        if digit != "-":
            other = made[:place] + ("0" if digit != "0" else "1") + made[place + 1 :]
            assert memory.get(other) is None


def test_changes_at_once_are_all_in_the_history(memory: Memory) -> None:
    made = keep(memory, "0", user_id="ana")
    workers = [
        threading.Thread(target=lambda i=i: [memory.update(made, f"{i}-{k}") for k in range(5)])
        for i in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rows = memory.history(made)
    assert len(rows) == 21
    assert [row["old_memory"] for row in rows[1:]] == [row["new_memory"] for row in rows[:-1]]
    assert len(memory.get_all(filters={"user_id": "ana"})["results"]) == 1


def test_one_folder_for_several(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as two:
        made = keep(one, "shared", user_id="ana")
        assert two.get(made)["memory"] == "shared"  # type: ignore[index]
        one.close()
        one.close()
        assert two.get(made) is not None
    with reverie.open(tmp_path / "data", embedder="standin") as rt:
        assert rt.check() == []
    with opened(tmp_path, world="elsewhere") as other:
        assert other.get(made) is None


def test_a_masked_folder(tmp_path: Path) -> None:
    own: dict[str, Any] = {"mask": ("email", "person"), "mask_key": reverie.new_mask_key()}
    with opened(tmp_path, **own) as memory:
        made = keep(memory, "Write to ines@example.org", user_id="ana", agent_id="bo@example.org")
        keep(memory, "Another's", user_id="ana", agent_id="cy@example.org")
        (item,) = memory.get_all(filters={"agent_id": "bo@example.org"})["results"]
        assert item["id"] == made
        assert "example.org" not in str({**item, "agent_id": ""})
        found = memory.search("write to", user_id="ana", agent_id="bo@example.org")["results"]
        assert [one["id"] for one in found] == [made]
        memory.update(made, "Call ines@example.org")
        assert memory.get(made)["memory"].startswith("Call ")  # type: ignore[index]
        memory.delete_all(agent_id="bo@example.org")
        assert texts(memory.get_all(user_id="ana")) == ["Another's"]


# -- ranking, relations, errors, configuration --------------------------------------------------


def test_ranking_of_reverie(tmp_path: Path) -> None:
    with opened(tmp_path, ranking="reverie") as memory:
        for text in ("Rex is the dog of Ana.", "The disk was full.", "龙井茶很好喝"):
            keep(memory, text, user_id="ana")
        found = memory.search("What is the dog called?", filters={"user_id": "ana"}, explain=True)
        best = found["results"][0]
        assert best["memory"] == "Rex is the dog of Ana."
        scores = [item["score"] for item in found["results"]]
        assert scores == sorted(scores, reverse=True)
        assert best["score_details"]["parts"]
        assert best["score_details"]["semantic_score"] >= 0.1


def test_relations_of_1(tmp_path: Path) -> None:
    config = {"graph_store": {"provider": "kuzu", "config": {"db": ":memory:"}}}
    with Memory(config, data=tmp_path / "data", embedder="standin", version=1) as memory:
        made = memory.add("I work at Siemens. My sister is called Clara.", user_id="ana")
        assert made["relations"]["deleted_entities"] == []
        triples = [one for (one,) in made["relations"]["added_entities"]]
        assert {"source", "relationship", "target"} == set(triples[0])
        assert any("Siemens" in (t["source"], t["target"]) for t in triples)
        assert any("ana" in (t["source"], t["target"]) for t in triples)
        listed = memory.get_all(user_id="ana")["relations"]
        assert sorted(map(str, listed)) == sorted(map(str, triples))
        found = memory.search("Where does ana work?", user_id="ana")["relations"]
        assert {"source", "relationship", "destination"} == set(found[0])
        assert memory.get_all(user_id="ana", agent_id="x")["relations"] == []
        plain = memory.add("x", user_id="ana", infer=False)["relations"]
        assert plain == {"deleted_entities": [], "added_entities": []}


def test_errors_cross_processes() -> None:
    error = ValidationError("什么?", "VALIDATION_001", {"a": 1}, "Do this.")
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), back.error_code, back.details) == (type(error), "VALIDATION_001", {"a": 1})
    assert "VALIDATION_001" in repr(back)
    assert isinstance(back, ValueError)


def test_the_configuration(tmp_path: Path) -> None:
    gguf = tmp_path / "m.gguf"
    config = {
        "llm": {"provider": "openai", "config": {"model": "x", "api_key": "sk-secret"}},
        "embedder": {"provider": "llama", "config": {"model": str(gguf)}},
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": str(tmp_path / "q"), "collection_name": "c", "on_disk": True},
        },
        "custom_instructions": "Be brief.",
        "version": "v1.1",
    }
    with structlog.testing.capture_logs() as logs:
        plan = read_config(MemoryConfig(**config))
    (line,) = logs
    assert line["names"] == list(plan.unused)
    assert "sk-secret" not in str(logs)
    assert set(plan.unused) == {
        "llm.provider",
        "llm.model",
        "llm.api_key",
        "vector_store.on_disk",
        "custom_instructions",
    }
    assert (plan.data, plan.world, plan.version) == (tmp_path / "q", "c", None)
    assert plan.settings == {"embedder": str(gguf)}
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "meta.json").write_text("{}")
    assert read_config(config).data == tmp_path / "q.reverie"
    own = read_config({**config, "reverie": {"data": "d", "world": "w", "version": "1.1"}})
    assert (own.data, own.world, own.version) == (Path("d"), "w", 1)


@pytest.mark.parametrize(
    "config",
    [5, {"vector_store": 5}, {"reverie": {"version": 3}}, {"reverie": {"ranking": "best"}}],
)
def test_a_wrong_configuration(config: Any) -> None:
    with pytest.raises(ConfigurationError):
        read_config(config)


def test_an_unknown_setting(tmp_path: Path) -> None:
    with pytest.raises(reverie.errors.ConfigError, match="colour"):
        opened(tmp_path, colour="red")
    opened(tmp_path).close()  # nothing is left open


def test_without_a_folder_it_is_in_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert read_config().data.parts[-2:] == ("reverie", "mem0")
    monkeypatch.setenv("REVERIE_DATA", str(tmp_path))
    assert read_config().data == tmp_path


def test_adds_at_once_mark_each_their_own_memories(memory: Memory) -> None:
    """What one agent was told does not come up as another's."""
    told: dict[str, list[str]] = {}
    towns = {f"agent{number}": f"Town{number}" for number in range(8)}

    def add(agent: str, town: str) -> None:
        told[agent] = texts(memory.add(f"I like {town} a lot.", user_id="安娜", agent_id=agent))

    threads = [threading.Thread(target=add, args=pair) for pair in towns.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for agent, town in towns.items():
        assert told[agent] == [f"User likes {town} a lot"]
        assert texts(memory.get_all(user_id="安娜", agent_id=agent)) == told[agent]
