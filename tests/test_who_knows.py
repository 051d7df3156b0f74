"""Random lives of a town beside a trivial twin: nobody knows what he neither saw, nor was told, nor
had by a group; and any number of shards gives the same."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from support import DIM, PARTITIONS, START, ShardsBackend

import reverie
import reverie.runtime
from reverie import SimulatedClock, errors
from reverie.models.standin import HashEmbedder
from reverie.world import World

PEOPLE = ["ana", "bo", "小明", "dora", "eve"]
GROUPS = ["guild", "行会"]
# Each speaks of the same things, so that every question might bring up every event.
SAYINGS = ("Event {n}: the player stole the amulet at the mill.", "事件{n}：玩家在磨坊偷了护身符。")
QUESTIONS = ("Who stole the amulet at the mill?", "谁在磨坊偷了护身符？")
TAGS = ("one", "two")


class Step(msgspec.Struct, frozen=True):
    """One thing that is done; what its numbers mean depends on `name`."""

    name: str
    a: int = 0
    b: int = 0
    c: int = 0


class Twin(msgspec.Struct):
    """Who knows which events, told as plainly as can be: numbers of events by owner.

    `stays` are the lists that members have been given, one for each stay.
    """

    owned: dict[str, set[int]] = {}
    groups: dict[str, list[int]] = {}
    shared: dict[tuple[str, str], set[int]] = {}
    members: set[tuple[str, str]] = set()

    def known(self, person: str) -> set[int]:
        """Return what a person can recall."""
        found = set(self.owned.get(person, ()))
        for (who, _), numbers in self.shared.items():
            if who == person:
                found |= numbers
        return found


class Life:
    """A town and its twin, changed together."""

    def __init__(self, town: World) -> None:
        self.town = town
        self.twin = Twin()
        self.saves: dict[str, Twin] = {}
        self.count = 0
        self.answers: list[str] = []

    def do(self, step: Step) -> None:
        """Carry out a step on both."""
        act: Callable[[int, int, int], object] = getattr(self, step.name)
        try:
            self.answers.append(repr(act(step.a, step.b, step.c)))
        except (
            errors.UnknownMemoryError,
            errors.UnknownCheckpointError,
            errors.CheckpointExistsError,
        ) as exc:
            self.answers.append(f"{type(exc).__name__}: {exc}")

    def observe(self, a: int, b: int, c: int) -> object:
        """Something new happens before some people, and perhaps a group."""
        number = self.count = self.count + 1
        seen_by = [p for i, p in enumerate(PEOPLE) if (a + 12 * b) >> i & 1]
        groups = [GROUPS[c % 3 - 1]] if c % 3 else []
        done = self.town.observe_many(
            [
                {
                    "text": SAYINGS[number % 2].format(n=number),
                    "witnesses": seen_by,
                    "groups": groups,
                    "place": f"place {number}",
                    "participants": [f"person {number}"],
                    "event_id": f"event-{number}",
                }
            ]
        )
        for person in seen_by:
            self.twin.owned.setdefault(person, set()).add(number)
        for group in groups:
            self.twin.groups.setdefault(group, []).append(number)
            for person, name in self.twin.members:
                if name == group:
                    self.twin.shared.setdefault((person, group), set()).add(number)
        return done

    def tell(self, a: int, b: int, c: int) -> object:
        """Somebody tells another one of the things he can recall."""
        speaker, listener = PEOPLE[a % 5], PEOPLE[(a + 1 + b % 4) % 5]
        hits = self.town.user(speaker).search(QUESTIONS[b % 2], limit=50)
        if not hits:
            return None
        hit = hits[c % len(hits)]
        kept = self.town.tell(speaker, listener, hit.id)
        number = int((hit.event or "").removeprefix("event-"))
        if kept.op != "NOOP":
            self.twin.owned.setdefault(listener, set()).add(number)
        else:  # he knows it, or had told it himself
            assert number in self.twin.owned.get(listener, set()) or listener in hit.heard
        return kept

    def join(self, a: int, b: int, c: int) -> object:
        """Somebody joins, perhaps with the history."""
        person, group = PEOPLE[a % 5], GROUPS[b % 2]
        joined = self.town.group(group).join(person, history=c % 3 == 0)
        if (person, group) not in self.twin.members:
            assert joined == [person]
            self.twin.members.add((person, group))
            known = self.twin.shared.setdefault((person, group), set())
            if c % 3 == 0:
                known |= set(self.twin.groups.get(group, ()))
        return joined

    def leave(self, a: int, b: int, c: int) -> object:
        """Somebody leaves, perhaps for good."""
        person, group = PEOPLE[a % 5], GROUPS[b % 2]
        left = self.town.group(group).leave(person, forget=c % 3 == 0)
        self.twin.members.discard((person, group))
        if c % 3 == 0:
            self.twin.shared.pop((person, group), None)
        return left

    def erase(self, a: int, _b: int, c: int) -> object:
        """Somebody is erased, now and then."""
        person = PEOPLE[a % 5]
        if c % 4:
            return None
        self.town.user(person).forget()
        self.twin.owned.pop(person, None)
        self.twin.members = {m for m in self.twin.members if m[0] != person}
        self.twin.shared = {k: v for k, v in self.twin.shared.items() if k[0] != person}
        # Save slots lose a user that is erased, though not what groups knew of it.
        for saved in self.saves.values():
            saved.owned.pop(person, None)
        return None

    def checkpoint(self, a: int, _b: int, _c: int) -> object:
        """Save."""
        count = self.town.checkpoint(TAGS[a % 2])
        self.saves[TAGS[a % 2]] = deepcopy(self.twin)
        return count

    def rewind(self, a: int, _b: int, _c: int) -> object:
        """Load."""
        count = self.town.rewind(TAGS[a % 2])
        self.twin = deepcopy(self.saves[TAGS[a % 2]])
        return count

    def compare(self) -> None:
        """Everybody recalls what the twin says, and no way of reading shows more."""
        said = {n: SAYINGS[n % 2].format(n=n) for n in range(1, self.count + 1)}
        for person in PEOPLE:
            user, known = self.town.user(person), self.twin.known(person)
            own = self.twin.owned.get(person, set())
            hits = [
                hit
                for question in QUESTIONS
                for hit in user.search(question, limit=500, include_retired=True)
            ]
            assert {hit.text for hit in hits} == {said[n] for n in known}, person
            items = user.list(types=None, include_retired=True, include_archived=True).items
            assert {item.text for item in items} == {said[n] for n in own}, person
            block = user.context(QUESTIONS[0], budget_tokens=100_000, limit=500).text
            for number, text in said.items():
                assert (text in block) == (number in known), (person, number)
                for name in (f"place {number}", f"person {number}"):
                    assert bool(user.entities(name)) == (number in own), (person, number)
                    try:
                        around = user.neighbors(name)
                    except errors.UnknownMemoryError:
                        assert number not in own
                    else:
                        assert text in [item.text for item in around.mentioned_in]
        for number in said:
            knowers = {k.user_id for k in self.town.who_knows(f"event-{number}")}
            assert knowers == {p for p in PEOPLE if number in self.twin.known(p)}, number


def steps(*, erasing: bool) -> st.SearchStrategy[list[Step]]:
    """Lists of things that happen in a town."""
    names = ["observe"] * 3 + ["tell"] * 3 + ["join"] * 3 + ["leave"]
    names += ["erase"] if erasing else ["checkpoint", "rewind"]
    small = st.integers(0, 11)
    return st.lists(st.builds(Step, st.sampled_from(names), small, small, small), max_size=16)


# Who joins after something that the group knows, who has left, and who is told of it.
LATE = [
    Step("join", 1, 0, 1),
    Step("observe", 4, 0, 1),
    Step("join", 0, 0, 1),
    Step("join", 3, 0, 0),
    Step("leave", 1, 0, 1),
    Step("observe", 4, 0, 1),
    Step("tell", 1, 2, 0),
    Step("checkpoint"),
    Step("leave", 3, 0, 0),
    Step("tell", 4, 0, 0),
    Step("rewind"),
]


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@example(script=LATE)
@given(script=st.one_of(steps(erasing=False), steps(erasing=True)))
def test_nobody_knows_more_than_he_saw_was_told_or_shares(script: list[Step]) -> None:
    seen = []
    for shards in (0, 1, 2, 3):  # 0: inline
        with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
            if shards:
                patch.setattr(
                    reverie.runtime,
                    "InlineBackend",
                    lambda folder, *_, n=shards, **__: ShardsBackend(folder, n),
                )
            clock = SimulatedClock(START)
            with reverie.open(
                Path(name, "data"),
                embedder=HashEmbedder(DIM),
                partitions=PARTITIONS,
                clock=clock,
                background=False,
            ) as rt:
                life = Life(rt.world("town"))
                for step in script:
                    life.do(step)
                    clock.advance(60.0)
                digests = {u: rt.user(u, "town").digest() for u in rt.users("town")}
                seen.append((life.answers, digests))
                if not shards:  # it reads, which is remembered
                    life.compare()
                assert rt.check() == []
    assert seen[0] == seen[1] == seen[2] == seen[3]
