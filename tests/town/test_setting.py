"""The town as it is written down: complete, refused when it is not, and the same at any size."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.errors import ConfigError
from reverie.town.crowd import with_people
from reverie.town.schedule import HOURS, Schedule, clock_text, day_and_hour
from reverie.town.script import Script, distorted
from reverie.town.setting import PLAYER, Claim, load_setting, said
from reverie.town.streams import stream

SALTMERE = load_setting()
DAYS = 7


def test_saltmere_has_25_people_with_all_that_makes_a_life() -> None:
    people = SALTMERE.people
    assert len(people) == 25
    for name, person in people.items():
        assert person.job, name
        assert person.goal, name
        assert person.friends, name
        assert name not in {*person.friends, *person.feuds}
    assert sum(bool(person.feuds) for person in people.values()) >= 15
    chinese = [name for name, person in people.items() if person.languages[0] == "zh"]
    assert len(chinese) >= 4
    assert all(people[name].zh for name in chinese)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('home = "bakers_row"', 'home = "nowhere"', "no place 'nowhere'"),
        ('routine = "tea"', 'routine = "coffee"', "no routine 'coffee'"),
        ('feuds = ["Tom Reed"]', 'feuds = ["Tim Reed"]', "no person 'Tim Reed'"),
        ('job = "baker"', 'jop = "baker"', "jop"),
        ('6 = ["home"]', '26 = ["home"]', "no hour '26'"),
        ('deed = "theft"', 'deed = "heist"', "no deed 'heist'"),
        ("[places.chapel]", "[places.chapel", "cannot be read"),
    ],
)
def test_a_slip_in_the_file_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = files("reverie.town").joinpath("town.toml").read_text("utf-8")
    assert old in text
    path = tmp_path / "town.toml"
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(ConfigError, match=words):
        load_setting(path)


def test_everything_can_be_said_in_both_languages() -> None:
    for name, deed in SALTMERE.deeds.items():
        for thing in range(max(1, len(deed.things))):
            claim = Claim(name, "market", PLAYER, "Lin Yue", thing)
            english, chinese = (said(SALTMERE, claim, language) for language in ("en", "zh"))
            assert "{" not in english + chinese
            assert english.isascii()
            assert any("\u4e00" <= char <= "\u9fff" for char in chinese)


def test_the_planted_theft_is_seen_by_one_or_two_of_any_town() -> None:
    for people in (8, 25):
        setting = with_people(SALTMERE, people, 1)
        for seed in range(20):
            where = Schedule(setting, seed).places(15)
            found = Script(setting, seed, pace=0.5).happenings(15, where)
            theft = next(happening for happening in found if happening.planted == "amulet")
            assert 1 <= len(theft.witnesses) <= 2
            unseen = Script(setting, seed, pace=0.5, unseen=frozenset({"amulet"}))
            again = unseen.happenings(15, Schedule(setting, seed).places(15))
            assert [h.text for h in again] == [h.text for h in found]
            assert again[0].witnesses == ()


@given(st.integers(2, 700), st.integers(0, 5))
def test_a_town_of_any_size_is_whole_and_the_same_again(count: int, seed: int) -> None:
    setting = with_people(SALTMERE, count, seed)
    assert len(setting.people) == count
    assert list(setting.people)[:25] == list(SALTMERE.people)[:count]
    for person in setting.people.values():
        assert {person.home, person.work} <= set(setting.places)
        assert set(person.friends) | set(person.feuds) <= set(setting.people)
        assert person.routine in setting.routines
    assert with_people(SALTMERE, count, seed) == setting


def test_a_town_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        with_people(SALTMERE, 1, 1)


def test_everybody_is_in_one_place_and_sleeps_at_night() -> None:
    setting = with_people(SALTMERE, 300, 3)
    schedule = Schedule(setting, 3)
    for tick in range(2 * HOURS):
        where = schedule.places(tick)
        names = [name for there in where.values() for name in there]
        assert len(names) == len(set(names))
        assert set(where) <= set(setting.places)
        _, hour = day_and_hour(tick)
        if hour in {1, 2, 3}:
            assert names == []
        if 10 <= hour <= 17:
            assert set(names) == set(setting.people)
        assert schedule.places(tick) == where


@given(st.integers(0, 2**32))
def test_a_distortion_changes_one_thing_and_says_which(number: int) -> None:
    draw = stream(number, "distort")
    deed = draw.choice(list(SALTMERE.deeds))
    a, b, speaker = draw.sample(list(SALTMERE.people), 3)
    things = SALTMERE.deeds[deed].things
    claim = Claim(deed, "market", a, b, draw.randrange(len(things)) if things else 0)
    new, change = distorted(SALTMERE, claim, speaker, draw)
    fields = [
        name for name in claim.__struct_fields__ if getattr(new, name) != getattr(claim, name)
    ]
    assert len(fields) == bool(change)
    if change:
        assert "became" in change
        assert said(SALTMERE, new, "zh") != said(SALTMERE, claim, "zh")


def test_streams_are_named() -> None:
    first = stream(1, "talk", 5).random()
    assert stream(1, "talk", 5).random() == first
    assert len({stream(1, "talk", 6).random(), stream(2, "talk", 5).random(), first}) == 3
    assert stream(1, "a", "b").random() != stream(1, "ab").random()
    assert first == 0.48362297649459474  # in every process, on every machine


def test_the_clock_of_the_town() -> None:
    assert clock_text(0.0) == "day 1, 00:00"
    assert clock_text(86_400.0 + 9 * 3600.0 + 60) == "day 2, 09:01"
