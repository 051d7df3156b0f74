"""Nothing that a model sends reaches another world, another user, or further than its role."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import Factory
from tool_calls import CHINESE, ENGLISH, kept

from reverie import Runtime
from reverie.tools import FAMILIES, ROLES, TABLE, Role, Tools

TRIES = 600
OWNERS = (("default", "ana"), ("default", "bo"), ("default", "group:guild"), ("other", "ana"))
WORDS = {owner: f"secret-{i}-秘密" for i, owner in enumerate(OWNERS)}
OPTIONS: dict[str, Any] = {"families": FAMILIES, "characters": True}
# How a call may try to get somewhere else.
ELSEWHERE: tuple[dict[str, Any], ...] = (
    {"user_id": "bo"},
    {"user_id": "group:guild"},
    {"user_id": "other/ana"},
    {"user_id": ["bo"]},
    {"user_id": {"eq": "bo"}},
    {"user_id": "bo\x00"},
    {"user": "bo"},
    {"userId": "bo"},
    {"world": "other"},
    {"world": "other", "user_id": "ana"},
    {"namespace": "other"},
    {"filters": {"NOT": {"text": ""}}},
    {"metadata": {"user_id": "bo"}},
    {},
)
IDS = ("m1", "t1", "group:guild/m1", "guild:m1", "bo/m1", "../m1", "other:m1", "*")


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    """Four owners, each of whom keeps something that only it may read."""
    factory = Factory(tmp_path, actors=None)
    runtime = factory(background=False)
    for world, user_id in OWNERS:
        user = runtime.user(user_id, world)
        user.remember(f"The word is {WORDS[world, user_id]}.", entities=["word"])
        user.add(f"I say {WORDS[world, user_id]}.", wait=True)
        user.relate("word", "opens", "door")
    yield runtime
    factory.finish()


def random_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A call with everything that it may try."""
    name = rng.choice(sorted(TABLE))
    given: dict[str, Any] = json.loads(json.dumps(rng.choice((ENGLISH, CHINESE))[name]))
    if rng.random() < 0.5:
        given |= rng.choice(ELSEWHERE)
    for key in ("memory_id", "cursor", "session", "topic", "name", "other"):
        if key in given or rng.random() < 0.02:
            given[key] = rng.choice((*IDS, "bo", "word", "秘密"))
    if "query" in given:
        given["query"] = rng.choice(("secret word", "秘密", "group:guild", "bo"))
    if "confirm" in given or rng.random() < 0.02:
        given["confirm"] = rng.choice(("ana", "bo", "*"))
    if name == "forget" and rng.random() < 0.5:
        given = {"everything": True, "confirm": rng.choice(("ana", "bo"))}
    return name, given


def crossed(
    rt: Runtime, before: dict[tuple[str, str], bytes], mine: tuple[str, str], answer: Any
) -> list[str]:
    """What of others was told or changed."""
    told = json.dumps(answer, ensure_ascii=False)
    others = [owner for owner in OWNERS if owner != mine]
    found = [f"{owner} is told" for owner in others if WORDS[owner] in told]
    changed = [owner for owner in others if kept(rt, owner[1], owner[0]) != before[owner]]
    return [*found, *(f"{owner} has changed" for owner in changed)]


def test_no_call_crosses_to_another_user_or_world(rt: Runtime) -> None:
    rng = random.Random(7)
    before = {owner: kept(rt, owner[1], owner[0]) for owner in OWNERS}
    allowed = 0
    for number in range(TRIES):
        name, given = random_call(rng)
        answer = Tools(rt, user="ana", role=rng.choice(ROLES), **OPTIONS).call(name, given)
        through = crossed(rt, before, ("default", "ana"), answer)
        assert not through, (number, name, given, through)
        allowed += "error" not in answer
    assert TRIES / 6 < allowed < TRIES  # or nothing was tried


def test_the_check_sees_what_a_wider_binding_lets_through(rt: Runtime) -> None:
    before = {owner: kept(rt, owner[1], owner[0]) for owner in OWNERS}
    wide = Tools(rt, user="ana", role="admin", others=True, **OPTIONS)
    mine = ("default", "ana")
    told = wide.call("search_memory", {"query": "secret word", "user_id": "bo"})
    assert crossed(rt, before, mine, told) == ["('default', 'bo') is told"]
    wide.call("forget", {"everything": True, "confirm": "bo", "user_id": "bo"})
    assert crossed(rt, before, mine, {}) == ["('default', 'bo') has changed"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_goes_as_far_as_it_says_and_no_further(rt: Runtime, role: Role) -> None:
    rng = random.Random(11)
    whole = Tools(rt, user="ana", role="admin", **OPTIONS)
    tried = 0
    for _ in range(TRIES // 2):
        name, given = random_call(rng)
        needed = "admin" if given.get("everything") and name == "forget" else TABLE[name].role
        before = kept(rt, "ana")
        narrow = Tools(rt, user="ana", role=role, **OPTIONS)
        answers = (narrow.call(name, given), whole.call(name, given, role=role))
        if ROLES.index(role) < ROLES.index(needed):
            tried += 1
            assert answers[0]["error"] in {"UnknownTool", "Forbidden"}, (name, given)
            assert answers[1]["error"] == "Forbidden", (name, given)
        if role == "read" or all("error" in answer for answer in answers):
            assert kept(rt, "ana") == before, (name, given)
    assert tried > TRIES / 60 or role == "admin"


def test_others_are_those_that_the_binding_names(rt: Runtime) -> None:
    asked = {"query": "secret word"}
    some = Tools(rt, user="ana", others=["bo", "group:guild"])
    for user_id in ("ana", "bo", "group:guild"):
        told = json.dumps(
            some.call("search_memory", asked | {"user_id": user_id}), ensure_ascii=False
        )
        assert WORDS["default", user_id] in told
    assert some.call("search_memory", asked | {"user_id": "cy"})["error"] == "Forbidden"
    every = Tools(rt, others=True)
    assert every.call("search_memory", asked | {"user_id": "group:guild"})["error"] == "Forbidden"
    assert "error" not in every.call("search_memory", asked | {"user_id": "cy"})


def test_a_tool_that_is_not_allowed_is_not_there(rt: Runtime) -> None:
    tools = Tools(rt, user="ana", role="admin", allowed=["related"])
    assert tools.call("search_memory", {"query": "word"})["error"] == "UnknownTool"
    assert "error" not in tools.call("related", {"name": "word"})
