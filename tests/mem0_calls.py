"""Call sequences for mem0 and for the facade, and what is compared of their answers.

Runs under any Python with numpy, also beside mem0 where reverie is not installed: see
mem0_facade/record.py.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

DIM = 32
SEED = 20261130
COUNTS = {"2-qdrant": 150, "2-faiss": 75, "1-qdrant": 150}

TEXTS = [
    "I moved to Oslo last spring",
    "My dog is called Rex",
    "I like green tea in the morning",
    "The deploy failed because the disk was full",
    "She plays the cello on Sundays",
    "Our office is near the river",
    "我住在杭州",
    "她喜欢喝龙井茶",
    "The meeting with 李雷 is on Friday",
    "I like green tea in the morning!",
]
QUESTIONS = ["Where do I live? Oslo", "tea in the morning", "dog Rex", "喝茶 龙井", "disk full"]
USERS, AGENTS, RUNS = ["u1", "u2", "李雷"], ["a1", "a2"], ["r1", "r2"]
METADATA: list[dict[str, Any] | None] = [
    None,
    None,
    {"topic": "food"},
    {"topic": "work", "n": 3},
    {"n": 7, "tags": ["a", "b"]},
    {"nested": {"x": 1}, "flag": True},
    {"主题": "茶", "owner": "me"},
    {"due": "2026-05-01T10:00:00Z", "n": -1},
    {"nothing": None, "topic": "home"},
]
FILTERS: list[dict[str, Any]] = [
    {"topic": "food"},
    {"topic": ["food", "work"]},
    {"n": 3},
    {"flag": True},
    {"主题": "茶"},
    {"role": "assistant"},
    {"owner": "me"},
]
ADVANCED: list[dict[str, Any]] = [
    {"topic": {"eq": "work"}},
    {"topic": {"ne": "work"}},
    {"n": {"gt": 1}},
    {"n": {"gte": 3, "lt": 7}},
    {"n": {"lte": 3}},
    {"topic": {"in": ["food", "home"]}},
    {"topic": {"nin": ["food", "home"]}},
    {"tags": {"eq": "a"}},
    {"tags": {"in": ["b", "z"]}},
    {"data": {"contains": "tea"}},
    {"topic": {"contains": "food"}},
    {"topic": "*"},
    {"nested.x": 1},
    {"due": {"gte": "2026-01-01", "lt": "2027-01-01"}},
    {"created_at": {"gt": "2020-01-01T00:00:00+00:00"}},
    {"AND": [{"topic": "work"}, {"n": {"gt": 1}}]},
    {"OR": [{"topic": "food"}, {"n": 7}]},
    {"NOT": [{"topic": "food"}]},
    {"NOT": [{"topic": "food"}, {"n": 3}]},
    {"OR": [{"topic": "food"}, {"topic": "home"}], "n": {"gt": 0}},
    {"AND": [{"topic": {"ne": "food"}}, {"n": {"gte": 3}}], "NOT": [{"flag": True}]},
    {"nothing": {"ne": 1}},
    {"topic": {"like": "f"}},
    {"OR": []},
    {"NOT": {"topic": "food"}},
    {"AND": {"topic": "food"}},
]
UNKNOWN = "11111111-2222-4333-8444-555555555555"

Call = list[Any]  # method, positional arguments, keyword arguments; {"$id": n} is the n-th id


def vector(text: str) -> list[float]:
    """Return a unit vector: the sum of fixed random signs of the words and Chinese characters."""
    total = np.zeros(DIM)
    for word in re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text.lower()):
        bits = hashlib.blake2b(word.encode(), digest_size=DIM // 8).digest()
        total += np.unpackbits(np.frombuffer(bits, np.uint8)).astype(float) * 2 - 1
    norm = float(np.linalg.norm(total))
    if not norm:
        total[0] = norm = 1.0
    return [float(x) for x in (total / norm).astype(np.float32)]


class Embedder:
    """An embedder as mem0 wants it, with these vectors."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return vector(text)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [vector(text) for text in texts]


def real_memory(config: dict[str, Any]) -> Any:
    """Return a `Memory` of mem0 itself, with these vectors and without a language model."""
    main = import_module("mem0.memory.main")
    main.EmbedderFactory.create = staticmethod(lambda *_: Embedder())
    main.LlmFactory.create = staticmethod(lambda *_: object())
    return main.Memory.from_config(config)


# -- making sequences -------------------------------------------------------------------


def sequences(kind: str) -> list[list[Call]]:
    """Return the sequences of a kind of COUNTS, the same each time."""
    version, store = kind.split("-")
    rng = random.Random(f"{SEED}/{kind}")
    return [_sequence(rng, int(version), store) for _ in range(COUNTS[kind])]


def _sequence(rng: random.Random, version: int, store: str) -> list[Call]:
    calls: list[Call] = [_add(rng, version, store) for _ in range(rng.randint(2, 5))]
    makers = [_add, _get, _get_all, _search, _update, _delete, _history, _delete_all, _wrong]
    weights = [3, 2, 4, 5, 3, 2, 3, 1, 2]
    for _ in range(rng.randint(5, 9)):
        (maker,) = rng.choices(makers, weights)
        calls.append(maker(rng, version, store))
    if rng.random() < 0.08:
        calls.append(["reset", [], {}])
        calls.append(_add(rng, version, store))
    calls.append(_get_all(rng, version, store))
    return calls


def _ids(rng: random.Random, version: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.random() < 0.75:
        found["user_id"] = rng.choice(USERS)
    if rng.random() < 0.35:
        found["agent_id"] = rng.choice(AGENTS)
    if rng.random() < 0.25:
        found["run_id"] = rng.choice(RUNS)
    if version == 2 and rng.random() < 0.08:
        found["user_id"] = rng.choice([7, " u1 "])
    return found or {"user_id": "u1"}


def _add(rng: random.Random, version: int, store: str) -> Call:
    text = rng.choice(TEXTS)
    kind = rng.randrange(4)
    messages: Any = text
    if kind == 1:
        messages = {"role": "user", "content": text, "name": rng.choice(["ann", "李雷"])}
    elif kind > 1:
        messages = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": text},
            {"role": "assistant", "content": rng.choice(TEXTS), "name": "bot"},
        ][rng.randrange(2) :]
    options = {**_ids(rng, version), "infer": False}
    metadata = rng.choice(METADATA)
    if metadata is not None:
        options["metadata"] = metadata
    if version == 2 and rng.random() < 0.15:
        options["expiration_date"] = rng.choice(["2020-02-02", "2999-01-01"])
    if version == 2 and rng.random() < 0.05:
        options["metadata"] = {"user_id": "evil", "topic": "food"}
    if rng.random() < 0.06:
        options["metadata"] = {"created_at": "2024-05-05T10:00:00+00:00", "hash": "x", "id": 5}
    if version == 2 and rng.random() < 0.08:
        parts = [{"type": "text", "text": text}, {"type": "text", "text": "and more"}]
        messages = [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "content": rng.choice(TEXTS)},
        ]
    return ["add", [messages], options]


def _some_id(rng: random.Random) -> Any:
    return {"$id": rng.randrange(12)}


def _get(rng: random.Random, version: int, store: str) -> Call:
    return ["get", [_some_id(rng)], {}]


def _history(rng: random.Random, version: int, store: str) -> Call:
    return ["history", [_some_id(rng)], {}]


def _delete(rng: random.Random, version: int, store: str) -> Call:
    return ["delete", [_some_id(rng)], {}]


def _delete_all(rng: random.Random, version: int, store: str) -> Call:
    return ["delete_all", [], _ids(rng, version)]


def _update(rng: random.Random, version: int, store: str) -> Call:
    text, metadata = rng.choice(TEXTS), rng.choice(METADATA)
    if version == 1:
        options = {} if metadata is None else {"metadata": metadata}
        return ["update", [_some_id(rng), text], options]
    match rng.randrange(5):
        case 0:
            return ["update", [_some_id(rng)], {"metadata": metadata}]
        case 1:
            date = rng.choice([None, "2020-02-02", "2999-01-01"])
            return ["update", [_some_id(rng)], {"expiration_date": date}]
        case 2:
            return ["update", [_some_id(rng)], {"data": text, "metadata": metadata}]
        case _:
            return ["update", [_some_id(rng)], {"text": text}]


def _query(rng: random.Random, version: int, store: str) -> dict[str, Any]:
    filters: dict[str, Any] = {}
    if rng.random() < 0.5:
        pool = FILTERS if store == "faiss" or rng.random() < 0.3 else ADVANCED
        filters = dict(rng.choice(pool))
    if version == 2:
        options: dict[str, Any] = {"filters": {**_ids(rng, version), **filters}}
        if rng.random() < 0.3:
            options["show_expired"] = True
        if rng.random() < 0.3:
            options["top_k"] = rng.choice([1, 2, 3, 50])
        return options
    options = _ids(rng, version)
    if filters:
        options["filters"] = filters
    if rng.random() < 0.3:
        options["limit"] = rng.choice([1, 2, 3, 50])
    return options


def _get_all(rng: random.Random, version: int, store: str) -> Call:
    return ["get_all", [], _query(rng, version, store)]


def _search(rng: random.Random, version: int, store: str) -> Call:
    options = _query(rng, version, store)
    if rng.random() < 0.3:
        options["threshold"] = rng.choice([0.0, 0.25, 0.5])
    if version == 2 and rng.random() < 0.2:
        options["explain"] = True
    return ["search", [rng.choice(QUESTIONS)], options]


_WRONG: dict[int, list[Call]] = {
    0: [
        ["add", ["x"], {"infer": False}],
        ["add", ["x"], {"user_id": "u1", "infer": False, "memory_type": "semantic"}],
        ["add", [5], {"user_id": "u1", "infer": False}],
        ["get", [UNKNOWN], {}],
        ["history", [UNKNOWN], {}],
        ["update", [UNKNOWN, "x"], {}],
        ["delete", [UNKNOWN], {}],
        ["delete_all", [], {}],
        ["search", ["x"], {}],
        ["get_all", [], {}],
    ],
    1: [["search", ["x"], {"filters": {"topic": "food"}}]],
    2: [
        ["search", ["x"], {"user_id": "u1"}],
        ["get_all", [], {"user_id": "u1"}],
        ["search", ["x"], {"filters": {"topic": "food"}}],
        ["search", ["x"], {"filters": {"user_id": "u 1"}}],
        ["search", [" "], {"filters": {"user_id": "u1"}}],
        ["search", ["x"], {"filters": {"user_id": "u1"}, "top_k": -1}],
        ["search", ["x"], {"filters": {"user_id": "u1"}, "threshold": 1.5}],
        ["search", ["x"], {"filters": {"user_id": "u1"}, "reference_date": "2026-01-01"}],
        ["get_all", [], {"filters": {"user_id": "u1"}, "top_k": "3"}],
        ["get_all", [], {"filters": {"agent_id": "  "}}],
        ["add", ["x"], {"user_id": "a b", "infer": False}],
        ["add", ["x"], {"user_id": "u1", "infer": False, "expiration_date": "soon"}],
        ["add", ["x"], {"user_id": "u1", "infer": False, "timestamp": 1}],
        ["update", [{"$id": 0}], {}],
        ["delete_all", [], {"user_id": " "}],
    ],
}


def _wrong(rng: random.Random, version: int, store: str) -> Call:
    return rng.choice(_WRONG[0] + _WRONG[version])


# -- running them, and what is compared ---------------------------------------------------


def run(memory: Any, calls: Sequence[Call]) -> list[Any]:
    """Run a sequence and return an answer for each call: what it returned or raised, without what
    differs between two runs (ids, times, hashes; their relations stay)."""
    ids: list[str] = []
    return [_one(memory, call, ids) for call in calls]


def _one(memory: Any, call: Call, ids: list[str]) -> Any:
    method, positional, options = call
    try:
        answer = getattr(memory, method)(*(_given(a, ids) for a in positional), **options)
    except Exception as error:  # noqa: BLE001 (what is compared)
        return {"error": _error(error)}
    if method == "add":
        ids += [row["id"] for row in answer["results"]]
    return _plain(answer, {public_id: f"id{n}" for n, public_id in enumerate(ids)})


def _given(value: Any, ids: list[str]) -> Any:
    if isinstance(value, dict) and "$id" in value:
        return ids[value["$id"] % len(ids)] if ids else UNKNOWN
    return value


def _error(error: Exception) -> list[str]:
    code = getattr(error, "error_code", "")
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if "mem0" in type(error).__module__ and code:
        return ["ValidationError", code, *(["ValueError"] if "ValueError" in kinds else [])]
    return ["ValueError"] if "ValueError" in kinds else kinds[:1]


def _plain(answer: Any, names: dict[str, str]) -> Any:
    if isinstance(answer, list):
        return [_plain(one, names) for one in answer]
    if not isinstance(answer, dict):
        return answer
    found: dict[str, Any] = {}
    for key, value in answer.items():
        if key == "id":
            found[key] = names.get(
                value, "row" if "event" in answer and "old_memory" in answer else "?"
            )
        elif key == "memory_id":
            found[key] = names.get(value, "?")
        elif key == "hash":
            text = answer.get("memory", "")
            good = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
            found[key] = "md5 of memory" if value == good else value
        elif key == "created_at":
            found[key] = "a time" if _is_time(value) else value
        elif key == "updated_at":
            later = "later" if str(value) > str(answer.get("created_at")) else "same"
            found[key] = later if _is_time(value) else value
        elif isinstance(value, float):
            found[key] = round(value, 4)
        else:
            found[key] = _plain(value, names)
    return found


def _is_time(value: Any) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", str(value)))


def difference(call: Call, theirs: Any, ours: Any, store: str) -> str | None:
    """Return how two answers to a call differ, None when they are the same.

    What a store leaves open does not count: Qdrant lists in the order of random ids, so of a list
    that its limit cut, only the length is compared; equal scores may come in any order, and where
    the limit cuts through them, which of them came does not count.
    """
    if isinstance(theirs, dict) and "error" in theirs:
        told = ours.get("error", []) if isinstance(ours, dict) else []
        wanted = theirs["error"]
        fits = wanted[0] in told and (len(wanted) == 1 or wanted[1] in told)
        return None if fits else f"{call}\n  theirs {theirs}\n  ours   {ours}"
    a, b = theirs, ours
    if call[0] in {"get_all", "search"} and isinstance(b, dict) and "results" in b:
        a = {**theirs, "results": _settled(call, theirs["results"], store)}
        b = {**ours, "results": _settled(call, ours["results"], store)}
    return None if a == b else f"{call}\n  theirs {a}\n  ours   {b}"


def _settled(call: Call, rows: list[Any], store: str) -> Any:
    options = call[2]
    limit = options.get("top_k", options.get("limit"))
    is_cut = limit is not None and len(rows) == limit
    if call[0] == "get_all":
        if store == "faiss":
            return rows
        return len(rows) if is_cut else sorted(rows, key=lambda row: str(row["id"]))
    ranked = sorted(rows, key=lambda row: (-row["score"], str(row["id"])))
    assert [row["score"] for row in rows] == [row["score"] for row in ranked], "not best first"
    if is_cut and rows:
        last = rows[-1]["score"]
        return [row for row in ranked if row["score"] > last], len(rows)
    return ranked
