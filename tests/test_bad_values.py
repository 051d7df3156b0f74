"""Bools that are none, sets where order counts, numbers beyond a float: a typed error each, as in
test_bad_input.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import Guard, opened

from reverie import EntityDraft, MemoryDraft, errors


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with opened(tmp_path / "data", background=False, partitions=1) as rt:
        found = Guard(rt)
        yield found
        found.goes_on()


# -- bools, sets, cursors ------------------------------------------------------------------

TAKES_BOOL: dict[str, Callable[[Guard, Any], object]] = {
    "pinned": lambda g, x: g.user.remember("hi", pinned=x),
    "pinned of a draft": lambda g, x: g.rt.remember_many({"ana": [MemoryDraft("hi", pinned=x)]}),
    "pinned of an event": lambda g, x: g.rt.world().observe("hi", witnesses=["ana"], pinned=x),
    "pinned of an update": lambda g, x: g.user.update("m1", pinned=x),
    "again": lambda g, x: g.user.remember("hi", again=x),
    "include_archived": lambda g, x: g.user.search("hi", include_archived=x),
    "include_retired": lambda g, x: g.user.list(include_retired=x),
    "again of many": lambda g, x: g.rt.remember_many({"ana": ["hi"]}, again=x),
    "infer of many": lambda g, x: g.rt.add_many({"ana": ["hi"]}, infer=x),
    "infer": lambda g, x: g.user.add("hi", infer=x),
    "functional": lambda g, x: g.user.relate("a", "b", "c", functional=x),
    "ended": lambda g, x: g.user.relate("a", "b", "c", ended=x),
    "history": lambda g, x: g.rt.world().group("行会").join("bo", history=x),
    "forget": lambda g, x: g.rt.world().group("guild").leave("bo", forget=x),
    "memories": lambda g, x: g.rt.world().bury("bo", memories=x),
}


@pytest.mark.parametrize("place", TAKES_BOOL)
def test_bools_that_are_none(guard: Guard, place: str) -> None:
    bools: list[Any] = ["no", "否", "", 0, 1, 1.0, None, [], 10**5000]
    for bad in bools:
        guard.refuses(errors.InvalidValueError, lambda: TAKES_BOOL[place](guard, bad))  # noqa: B023


TAKES_ORDER: dict[str, Callable[[Guard, Any], object]] = {
    "tags": lambda g, x: g.user.remember("hi", tags=x),
    "topics": lambda g, x: g.user.remember("hi", topics=x),
    "sources": lambda g, x: g.user.remember("hi", sources=x),
    "entities": lambda g, x: g.user.remember("hi", entities=x),
    "aliases": lambda g, x: g.user.remember("hi", entities=[EntityDraft("Bo", aliases=x)]),
    "participants": lambda g, x: g.user.observe("hi", participants=x),
    "messages": lambda g, x: g.user.add(x),
    "memories": lambda g, x: g.rt.remember_many({"ana": x}),
}


@pytest.mark.parametrize("place", TAKES_ORDER)
def test_sets_have_no_order(guard: Guard, place: str) -> None:
    names = {"Rolf": 1, "玩家": 2}
    unordered: list[Any] = [{*names}, frozenset(names), names.keys(), names.values()]
    for bad in unordered:
        guard.refuses(errors.InvalidValueError, lambda: TAKES_ORDER[place](guard, bad))  # noqa: B023


def test_cursors_of_an_audit_that_were_not_given(guard: Guard) -> None:
    for bad in (
        "nan|1|2",
        "1|nan|2",
        "1|inf|2",
        "1|1|2",
        "yes|1.0|2",
        "1|1.0|٢",
        "1|1.0",
        "1|1.0|2|",
    ):
        guard.refuses(errors.InvalidLimitError, lambda: guard.user.audit(cursor=bad))  # noqa: B023
    assert guard.user.audit(cursor="1|1.0|2").lines == []


@pytest.mark.parametrize("huge", [10**400, -(10**400), 10**5000], ids=["400", "-400", "5000"])
def test_numbers_that_are_too_large(guard: Guard, huge: int) -> None:
    user = guard.user
    for call in (
        lambda: user.remember("hi", importance=huge),
        lambda: user.observe("hi", sentiment=huge),
        lambda: user.relationships.move("bo", trust=huge),
        lambda: user.relationships.list(at_least=huge),
        lambda: user.search("hi", limit=huge),
        lambda: user.remember("hi", ttl_s=huge),
        lambda: user.observe("hi", at=huge),
    ):
        with pytest.raises(errors.InputError):
            call()
