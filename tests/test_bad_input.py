"""Bad arguments: a typed error each, and nothing lost or half-written.

Every call of this file is checked the same way: the error has a class of ours, no state changed,
the checker finds nothing, and the next good call works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import DIM, START, Guard, opened

import reverie
from reverie import (
    Config,
    EntityDraft,
    MemoryDraft,
    SimulatedClock,
    TurnDraft,
    User,
    errors,
)
from reverie.models.standin import HashEmbedder


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with opened(tmp_path / "data", background=False, partitions=1) as rt:
        found = Guard(rt)
        yield found
        found.goes_on()


# -- ids --------------------------------------------------------------------------------

BAD_IDS: list[Any] = [
    "",
    " ",
    "\t\n",
    "\u3000",
    "x" * 513,
    "柏" * 171,
    "x" * 10_000_000,
    "a\0b",
    "a\x1fb",
    "\x7f",
    "\ud800",
    7,
    True,
    1.5,
    b"ana",
    ["ana"],
    object(),
]

TAKES_ID: dict[str, Callable[[Guard, Any], object]] = {
    "user": lambda g, x: g.rt.user(x),
    "world": lambda g, x: g.rt.user("ana", x),
    "create_world": lambda g, x: g.rt.create_world(x),
    "users": lambda g, x: g.rt.users(x),
    "session": lambda g, x: g.user.add("hi", session=x),
    "message session": lambda g, x: g.user.add({"text": "hi", "session": x}),
    "message id": lambda g, x: g.user.add({"text": "hi", "id": x}),
    "speaker": lambda g, x: g.user.add({"text": "hi", "speaker": x}),
    "name": lambda g, x: g.user.add({"text": "hi", "name": x}),
    "role": lambda g, x: g.user.add({"text": "hi", "role": x}),
    "draft": lambda g, x: g.user.add(TurnDraft("hi", external_id=x)),
    "request_id": lambda g, x: g.user.add("hi", request_id=x),
    "request_id of remember": lambda g, x: g.user.remember("hi", request_id=x),
    "tag": lambda g, x: g.user.remember("hi", tags=[x]),
    "topic": lambda g, x: g.user.remember("hi", topics=[x]),
    "source": lambda g, x: g.user.remember("hi", sources=[x]),
    "entity": lambda g, x: g.user.remember("hi", entities=[x]),
    "alias": lambda g, x: g.user.remember("hi", entities=[EntityDraft("Bo", aliases=(x,))]),
    "slot": lambda g, x: g.rt.remember_many({"ana": [MemoryDraft("hi", slot=x)]}),
    "participant": lambda g, x: g.user.observe("hi", participants=[x]),
    "place": lambda g, x: g.user.observe("hi", place=x),
    "told_by": lambda g, x: g.user.observe("hi", told_by=x),
    "head": lambda g, x: g.user.relate(x, "knows", "Bo"),
    "predicate": lambda g, x: g.user.relate("Bo", x, "Bo"),
    "tail": lambda g, x: g.user.relate("Bo", "knows", x),
    "update": lambda g, x: g.user.update(x, "new"),
    "delete": lambda g, x: g.user.delete(x),
    "archive": lambda g, x: g.user.archive(x),
    "restore": lambda g, x: g.user.restore(x),
    "get": lambda g, x: g.user.get(x),
    "history": lambda g, x: g.user.history(x),
    "cursor": lambda g, x: g.user.list(cursor=x),
    "entities": lambda g, x: g.user.entities(x),
    "neighbors": lambda g, x: g.user.neighbors(x),
    "checkpoint": lambda g, x: g.rt.checkpoint(x),
    "rewind": lambda g, x: g.rt.rewind(x),
    "fork": lambda g, x: g.rt.fork("a", x),
    "drop": lambda g, x: g.rt.drop_checkpoint(x),
    "retry": lambda g, x: g.rt.retry_quarantined(x),
    "many": lambda g, x: g.rt.search_many([(x, "hi")]),
    "many worlds": lambda g, x: g.rt.remember_many({"ana": ["hi"]}, world=x),
}
MAY_BE_A_PAIR = {"entity"}  # a list of one is refused as a pair, by another class


@pytest.mark.parametrize("place", TAKES_ID)
def test_ids_that_cannot_be(guard: Guard, place: str) -> None:
    guard.rt.checkpoint("a")
    for bad in BAD_IDS:
        message = guard.refuses(errors.InvalidIdError, lambda: TAKES_ID[place](guard, bad))  # noqa: B023
        assert len(message) < 500


ODD_IDS = [
    "../../etc/passwd",
    "..",
    ".",
    "/",
    "C:\\con",
    "a/b",
    "'; DROP TABLE users; --",
    "%s %d {x}",
    "🐉",
    "👩‍👩‍👧",
    "שלום",
    "\u202eabc",
    "e\u0301",
    "\u00e9",
    "Ana",
    "ana ",
    "李雷",
    "x" * 512,
    "u",
    "m1",
    "default",
    "-1",
    "None",
]


def test_odd_ids_are_only_names(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        for i, name in enumerate(ODD_IDS):
            user = rt.user(name, world=name)
            kept = user.remember(f"我是第{i}个", tags=[name], request_id=name)
            assert kept.memory_id == "m1"
            user.add({"text": "hi", "id": name, "session": name, "speaker": name}, infer=False)
            assert user.get("m1").text == f"我是第{i}个"
            assert user.list(filters={"session": name}, types="message").total == 1
            assert [h.id for h in user.search("第个", filters={"tags": name})] == ["m1"]
        assert rt.worlds() == sorted(ODD_IDS)
        assert {rt.users(name)[0] for name in ODD_IDS} == set(ODD_IDS)
        rt.checkpoint("../tag", "..")
        assert rt.fork("../tag", "../fork", "..") == 1
        assert rt.user("..", "..").forget().erased.existed
        assert rt.check() == []
    assert [p.name for p in tmp_path.iterdir()] == ["data"]
    names = {p.name for p in (tmp_path / "data").rglob("*") if p.is_file()}
    assert all(name.isascii() and "etc" not in name for name in names)


def test_a_name_of_invisible_characters_only(guard: Guard) -> None:
    for call in (
        lambda: guard.user.relate("\u200b", "knows", "Bo"),
        lambda: guard.user.add({"text": "hi", "speaker": "\u2060"}),
        lambda: guard.user.remember("hi", entities=["\u200d"]),
    ):
        guard.refuses(errors.InvalidIdError, call)
    assert guard.user.relate("!!!", "is_not", "???") == "r1"  # but a name of punctuation is one
    assert {e.name for e in guard.user.entities()} == {"!!!", "???"}


# -- texts ------------------------------------------------------------------------------

TAKES_TEXT: dict[str, Callable[[Guard, Any], object]] = {
    "add": lambda g, x: g.user.add({"text": x}),
    "content": lambda g, x: g.user.add([{"text": "fine"}, {"role": "user", "content": x}]),
    "add draft": lambda g, x: g.user.add(TurnDraft(x)),
    "remember": lambda g, x: g.user.remember(x),
    "observe": lambda g, x: g.user.observe(x),
    "update": lambda g, x: g.user.update("m1", x),
    "reason": lambda g, x: g.user.delete("m1", reason=x),
    "search": lambda g, x: g.user.search(x),
    "context": lambda g, x: g.user.context(x),
    "add_many": lambda g, x: g.rt.add_many({"ana": [{"text": x}]}),
    "remember_many": lambda g, x: g.rt.remember_many({"ana": ["fine", MemoryDraft(x)]}),
    "search_many": lambda g, x: g.rt.search_many([("ana", x)]),
}


@pytest.mark.parametrize("place", TAKES_TEXT)
def test_texts_that_cannot_be(guard: Guard, place: str) -> None:
    bad: list[Any] = ["", " \n\t", "\u3000", "a\0b", "\udfff", "x" * 10_000_000, "柏" * 400_000]
    bad += [b"bytes", 7, ["text"]]
    bad += [] if place == "update" else [None]
    for text in bad:
        message = guard.refuses(errors.InvalidTextError, lambda: TAKES_TEXT[place](guard, text))  # noqa: B023
        assert len(message) < 500


def test_the_longest_text(guard: Guard) -> None:
    text = "我" * (1024 * 1024 // 3)
    assert guard.user.remember(text).op == "ADD"
    assert guard.user.remember(text).op == "NOOP"
    assert guard.user.search("我" * 300)
    guard.user.context("我", budget_tokens=50)
    assert guard.user.add(text, infer=False).ids == ["t2"]


@pytest.mark.parametrize(
    "given",
    [
        7,
        None,
        b"bytes",
        [7],
        [["nested"]],
        {"text": "hi", "user_id": "eve"},
        {"text": "hi", "world": "w"},
        {"text": "hi", 7: 8},
    ],
)
def test_messages_that_are_none(guard: Guard, given: Any) -> None:
    guard.refuses(errors.InvalidValueError, lambda: guard.user.add(given))
    guard.refuses(errors.InvalidValueError, lambda: guard.rt.add_many({"ana": given}))


def test_texts_of_every_script_survive(guard: Guard) -> None:
    texts = [
        "e\u0301",
        "🏳️‍🌈",
        "שלום עולם",
        "ไทย",
        "한국어",
        "日本語です",
        "\u202eabc",
        "a\u200bb",
        "ß ſ ﬁ İ",
    ]
    for text in texts:
        kept = guard.user.remember(text)
        assert guard.user.get(kept.memory_id).text == text
        guard.user.search(text)
        guard.user.context(text)


# -- times, numbers, words ----------------------------------------------------------------

BAD_TIMES: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    True,
    "",
    "yesterday",
    "2023-13-01",
    "20230101",
    1_700_000_000_000,
    10**400,
    b"2023",
    [1],
]

TAKES_TIME: dict[str, Callable[[Guard, Any], object]] = {
    "add": lambda g, x: g.user.add("hi", at=x),
    "message": lambda g, x: g.user.add({"text": "hi", "time": x}),
    "draft": lambda g, x: g.user.add(TurnDraft("hi", said_at=x)),
    "valid_from": lambda g, x: g.user.remember("hi", valid_from=x),
    "valid_to": lambda g, x: g.user.remember("hi", valid_to=x),
    "observe": lambda g, x: g.user.observe("hi", at=x),
    "relate": lambda g, x: g.user.relate("a", "b", "c", valid_to=x),
    "as_of": lambda g, x: g.user.search("hi", as_of=x),
    "valid_at": lambda g, x: g.user.list(valid_at=x),
    "neighbors": lambda g, x: g.user.neighbors(as_of=x),
}


@pytest.mark.parametrize("place", TAKES_TIME)
def test_times_that_cannot_be(guard: Guard, place: str) -> None:
    for bad in BAD_TIMES:
        guard.refuses(errors.InvalidTimeError, lambda: TAKES_TIME[place](guard, bad))  # noqa: B023


def test_times_of_every_form(guard: Guard) -> None:
    same = [1672531200, 1672531200.0, "1672531200", "2023-01-01", "2023-01-01T00:00:00Z"]
    same = [*same, datetime(2023, 1, 1, tzinfo=UTC)]
    for i, at in enumerate(same):
        kept = guard.user.observe(f"event {i}", at=at)
        assert guard.user.get(kept.memory_id).at == 1672531200.0


def test_a_statement_cannot_end_before_it_begins(guard: Guard) -> None:
    guard.refuses(
        errors.InvalidTimeError, lambda: guard.user.remember("hi", valid_from=2, valid_to=1)
    )


def test_a_clock_that_tells_no_time(tmp_path: Path) -> None:
    class Broken:
        at: Any = START

        def now(self) -> float:
            return self.at  # type: ignore[no-any-return]

    clock = Broken()
    with opened(tmp_path / "data", clock=clock) as rt:
        guard = Guard(rt)
        for bad in (math.nan, math.inf, "now", None):
            clock.at = bad
            with pytest.raises(errors.InvalidTimeError, match="clock"):
                guard.user.remember("hi")
        clock.at = START
        guard.goes_on()
    with pytest.raises(errors.InvalidTimeError):
        SimulatedClock(math.nan)
    with pytest.raises(errors.InvalidTimeError):
        SimulatedClock().advance(-1)


BAD_LIMITS: list[Any] = [0, -1, True, False, 1.0, "5", None, 10**9, math.nan, [5]]

TAKES_LIMIT: dict[str, Callable[[Guard, Any], object]] = {
    "search": lambda g, x: g.user.search("bees", limit=x),
    "list": lambda g, x: g.user.list(limit=x),
    "entities": lambda g, x: g.user.entities(limit=x),
    "neighbors": lambda g, x: g.user.neighbors(limit=x),
    "budget": lambda g, x: g.user.context("bees", budget_tokens=x),
    "context": lambda g, x: g.user.context("bees", limit=x),
    "search_many": lambda g, x: g.rt.search_many([("ana", "bees")], limit=x),
}


@pytest.mark.parametrize("place", TAKES_LIMIT)
def test_limits_that_cannot_be(guard: Guard, place: str) -> None:
    for bad in BAD_LIMITS:
        guard.refuses(errors.InvalidLimitError, lambda: TAKES_LIMIT[place](guard, bad))  # noqa: B023


@pytest.mark.parametrize(
    "call",
    [
        lambda u: u.remember("hi", kind="opinion"),
        lambda u: u.remember("hi", kind=None),
        lambda u: u.remember("hi", kind=["fact"]),
        lambda u: u.remember("hi", confidence=1.1),
        lambda u: u.remember("hi", confidence=-0.1),
        lambda u: u.remember("hi", confidence=math.nan),
        lambda u: u.remember("hi", confidence="high"),
        lambda u: u.remember("hi", importance=True),
        lambda u: u.observe("hi", sentiment=-2),
        lambda u: u.remember("hi", tags="tag"),
        lambda u: u.remember("hi", tags=7),
        lambda u: u.remember("hi", tags=[str(i) for i in range(65)]),
        lambda u: u.remember("hi", topics="abc"),
        lambda u: u.remember("hi", topics=None),
        lambda u: u.remember("hi", sources="t1"),
        lambda u: u.remember("hi", replaces=7),
        lambda u: u.remember("hi", entities="Bo"),
        lambda u: u.remember("hi", entities=[("Bo", "alien")]),
        lambda u: u.remember("hi", entities=[EntityDraft("Bo", aliases="abc")]),  # type: ignore[arg-type]
        lambda u: u.observe("hi", participants="Bo"),
        lambda u: u.relate("a", "b", "c", head_type="alien"),
        lambda u: u.relate("a", "b", "c", confidence=2),
        lambda u: u.update("m1"),
        lambda u: u.update("m1", importance=7),
        lambda u: u.search("hi", types="memories"),
        lambda u: u.search("hi", types=[]),
        lambda u: u.search("hi", types=7),
    ],
)
def test_words_and_numbers_out_of_range(guard: Guard, call: Callable[[User], object]) -> None:
    guard.refuses(errors.InvalidValueError, lambda: call(guard.user))


def test_times_to_live(guard: Guard) -> None:
    wrong: list[Any] = [0, -1, math.nan, math.inf, True, "1", 10**400]
    for bad in wrong:
        guard.refuses(errors.InvalidTimeError, lambda: guard.user.remember("hi", ttl_s=bad))  # noqa: B023


def test_memories_that_are_none(guard: Guard) -> None:
    wrong: list[Any] = [["fine", 7], ["fine", {"text": "hi"}], ["fine", None], "one text"]
    for bad in wrong:
        guard.refuses(errors.InvalidValueError, lambda: guard.rt.remember_many({"ana": bad}))  # noqa: B023


# -- metadata and filters -----------------------------------------------------------------


def deep(levels: int, leaf: object = 1) -> object:
    """Return a mapping nested so many levels deep."""
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


BAD_METADATA: list[Any] = [
    {"user_id": "eve"},
    {"User_ID": "eve"},
    {"world": "w"},
    {"OWNER": 1},
    "text",
    7,
    ["a"],
    {7: "x"},
    {"a": {7: "x"}},
    {"a": object()},
    {"a": {1, 2}},
    {"a": b"bytes"},
    {"a": math.nan},
    {"a": [math.inf]},
    {"a": 2**70},
    {"a": -(2**64)},
    {"a": "\ud800"},
    {"\ud800": 1},
    {"a": "x" * 17_000},
    deep(40),
    deep(100_000),
    {"a": datetime(2023, 1, 1, tzinfo=UTC)},
]


def test_metadata_that_cannot_be(guard: Guard) -> None:
    for bad in BAD_METADATA:
        for call in (
            lambda: guard.user.add({"text": "hi", "metadata": bad}),  # noqa: B023
            lambda: guard.user.remember("hi", metadata=bad),  # noqa: B023
            lambda: guard.user.observe("hi", metadata=bad),  # noqa: B023
            lambda: guard.user.update("m1", metadata=bad),  # noqa: B023
        ):
            message = guard.refuses(errors.InvalidMetadataError, call)
            assert len(message) < 500


def test_metadata_comes_back_as_it_was(guard: Guard) -> None:
    given = {
        "a": [1, 2.5, None, True, {"b": "柏"}],
        "n": 2**63 - 1,
        "m": -(2**63),
        "": "x",
        "c": [],
    }
    kept = guard.user.remember("hi", metadata=given)
    assert guard.user.get(kept.memory_id).metadata == given
    assert guard.user.get(guard.user.remember("ho", metadata={}).memory_id).metadata is None
    assert guard.user.remember("he", metadata=deep(14)).op == "ADD"  # type: ignore[arg-type]


BAD_FILTERS: list[Any] = [
    "kind",
    7,
    ["kind"],
    {"colour": "red"},
    {"user_id": "eve"},
    {"world": "w"},
    {7: 8},
    {"kind": {"like": "fact"}},
    {"kind": {}},
    {"kind": {"$eq": "fact"}},
    {"kind": {"in": "fact"}},
    {"kind": {"exists": 1}},
    {"at": {"gt": None}},
    {"at": {"gt": [1]}},
    {"at": {"gt": math.nan}},
    {"at": {"lt": math.inf}},
    {"OR": []},
    {"AND": {"kind": "fact"}},
    {"AND": ["kind"]},
    {"NOT": "kind"},
    {"NOT": []},
    {"and": []},
    {"kind": object()},
    {"metadata.a": {"eq": object()}},
    {"metadata.a": b"x"},
    {"metadata.a": 2**70},
    {"text": "\ud800"},
    {"AND": [{"kind": "fact"}] * 300},
]


def test_filters_that_cannot_be(guard: Guard) -> None:
    nested: Any = {"kind": "fact"}
    for _ in range(5000):
        nested = {"NOT": nested}
    for bad in [*BAD_FILTERS, nested]:
        for call in (
            lambda: guard.user.search("bees", filters=bad),  # noqa: B023
            lambda: guard.user.list(filters=bad),  # noqa: B023
            lambda: guard.user.context("bees", filters=bad),  # noqa: B023
        ):
            guard.refuses(errors.FilterError, call)


# -- settings -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"colour": "red"},
        {"actors": 0, "error": errors.InvalidLimitError},
        {"actors": 1.5, "error": errors.InvalidLimitError},
        {"address": "auto"},
        {"model_hosts": 1},
        {"partitions": 0},
        {"partitions": 5000},
        {"byte_budget": 0},
        {"extractor": "magic"},
        {"decider": "magic"},
        {"embedder": " "},
        {"threads": True},
        {"max_waiting": math.nan},
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, settings: dict[str, Any]) -> None:
    kind = settings.pop("error", errors.ConfigError)
    with pytest.raises(kind):
        reverie.open(tmp_path / "data", **settings)
    with opened(tmp_path / "data") as rt:
        Guard(rt).goes_on()


def test_an_unknown_embedder(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder="no-such-model") as rt:
        with pytest.raises(errors.ReverieError):
            rt.user("ana").remember("hi")
        assert rt.users() == []


def test_defaults_are_one_config(tmp_path: Path) -> None:
    config = Config(embedder="standin", partitions=1, max_text_bytes=100)
    with opened(tmp_path / "data", config=config, embedder=HashEmbedder(DIM)) as rt:
        guard = Guard(rt)
        guard.refuses(errors.InvalidTextError, lambda: guard.user.remember("x" * 101))
        guard.goes_on()
