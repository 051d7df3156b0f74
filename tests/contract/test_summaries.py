"""Summaries through the public API: the same on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import DAY, START, Factory, Home, Sentences

from reverie import Runtime, User, errors
from reverie.memory_graph.material import Material
from reverie.models.summarise import CentralSentences, Summary

TALK = [f"I planted {i} apple trees in garden {i}." for i in range(1, 6)]
CHINESE = ["我住在上海。", "我喜欢绿茶。", "我养了三只猫。", "我在医院工作。", "我的妹妹叫小红。"]


def summaries(user: User, **look: Any) -> dict[str | None, str]:
    """Return the summaries that hold, by what they are about."""
    return {item.about: item.text for item in user.list(types="summary", **look).items}


def talk(user: User, count: int, session: str = "s", first: int = 0) -> None:
    turns = [{"text": f"I met friend {i} in room {i}.", "session": session} for i in range(count)]
    user.add(turns[first:], wait=True)


class Meanwhile:
    """A summariser during whose work something else happens, once."""

    def __init__(self) -> None:
        self.then: Callable[[], object] | None = None
        self.calls = 0

    def summarise(self, material: Material) -> Summary:
        """Return the central sentences, after what was to happen."""
        self.calls += 1
        if (then := self.then) is not None:
            self.then = None
            then()
        return CentralSentences().summarise(material)


class Broken:
    """A summariser that fails."""

    def summarise(self, material: Material) -> Summary:
        """Raise."""
        msg = "no summary"
        raise RuntimeError(msg)


@pytest.fixture
def eventful(runtime_factory: Factory) -> tuple[Runtime, Meanwhile]:
    happens = Meanwhile()
    rt = runtime_factory(
        summaries=happens, extractor=Sentences(), background=False, summary_every=1000
    )
    return rt, happens


# -- in the background --------------------------------------------------------------------


def test_a_session_is_summarised_in_the_background_after_so_many_turns(
    runtime_factory: Factory,
) -> None:
    rt = runtime_factory(summary_every=6, extractor=Sentences())
    ana = rt.user("ana")
    talk(ana, 5)
    rt.drain(60)
    assert summaries(ana) == {}
    talk(ana, 6, first=5)
    rt.drain(60)
    (item,) = ana.list(types="summary").items
    assert item.about == "session s"
    assert item.text.startswith("14 November 2023: I met friend")
    assert set(item.sources) <= {m.id for m in ana.list().items}
    assert item.at == START
    assert rt.summaries.counts.kept == 1
    assert [h.id for h in ana.search("friend", types="summary")] == [item.id]
    assert "Summaries:\n- 14 November 2023" in ana.context("friend", types="summary").text


def test_a_session_is_summarised_when_another_goes_on(home: Home) -> None:
    ana = home.user()
    talk(ana, 8, "first")
    home.rt.drain(60)
    assert summaries(ana) == {}
    talk(ana, 1, "second")
    home.rt.drain(60)
    assert list(summaries(ana)) == ["session first"]


def test_without_summaries_nothing_is_made_unless_it_is_asked_for(
    runtime_factory: Factory,
) -> None:
    rt = runtime_factory(summaries="off", summary_every=2, extractor=Sentences())
    ana = rt.user("ana")
    talk(ana, 8)
    rt.drain(60)
    assert summaries(ana) == {}
    assert {item.about for item in ana.summarise()} == {"user", "session s"}


def test_a_summariser_that_fails_takes_nothing_with_it(runtime_factory: Factory) -> None:
    rt = runtime_factory(summaries=Broken(), summary_every=2, extractor=Sentences())
    ana = rt.user("ana")
    talk(ana, 4)
    rt.drain(60)
    assert ana.stats().active == 4
    assert ana.summarise() == []
    assert rt.summaries.counts.failed >= 1
    assert ana.get_conversation_summary().text == ""


# -- asked for ----------------------------------------------------------------------------


def test_all_that_were_made_are_returned(runtime_factory: Factory) -> None:
    """Also those that the background would have made."""
    ana = runtime_factory(summary_every=2, background=False, extractor=Sentences()).user("ana")
    ana.add([{"text": f"{t} {s}", "session": s} for s in "abc" for t in TALK])
    made = ana.summarise()
    assert [i.about for i in made] == ["user", "session c", "session b", "session a"]


def test_only_what_has_changed_is_made_anew(home: Home) -> None:
    ana = home.user()
    assert ana.summarise() == []
    ana.add([{"text": t, "session": "en"} for t in TALK], infer=False)
    ana.add([{"text": t, "session": "zh"} for t in CHINESE], infer=False)
    ana.remember("Ana likes tea.", topics=["taste"])
    ana.remember("Ana hates milk.", topics=["taste"])
    assert {i.about for i in ana.summarise()} == {"session en", "session zh", "topic taste", "user"}
    assert ana.summarise() == []
    assert "2023年11月14日：user：我" in summaries(ana)["session zh"]
    ana.add({"text": "我昨天去了北京。", "session": "zh"}, infer=False)
    assert [i.about for i in ana.summarise()] == ["session zh"]
    home.clock.advance(10)
    ana.remember("Ana loves plums.", topics=["taste"])
    assert {i.about for i in ana.summarise()} == {"topic taste", "user"}
    assert len(summaries(ana)) == 4
    assert len(summaries(ana, include_retired=True)) == 4  # by what they are about
    assert ana.list(types="summary", as_of=START).total == 5 - 1  # as it was then
    assert home.rt.check() == []


def test_a_deleted_memory_leaves_its_summaries_at_once(home: Home) -> None:
    ana = home.user()
    code = ana.remember("Ana's code is 4711.", topics=["codes"]).memory_id
    ana.remember("Ana's dog is called Rex.", topics=["codes"])
    ana.remember("安娜的猫叫咪咪。", topics=["codes"])
    ana.summarise()
    assert all("4711" in text for text in summaries(ana).values())
    ana.delete(code)
    assert summaries(ana) == {}
    assert not any("4711" in hit.text for hit in ana.search("4711"))
    again = {item.about: item.text for item in ana.summarise()}
    assert set(again) == {"user", "topic codes"}
    assert all("4711" not in text and "Rex" in text for text in again.values())
    ana.restore(code)
    assert all("4711" in item.text for item in ana.summarise())


def test_a_user_that_is_forgotten_takes_its_summaries_along(home: Home) -> None:
    ana = home.user("soon gone")
    ana.add([f"The secret word number {i} is xyzzy{i}." for i in range(5)], infer=False)
    assert ana.summarise()
    receipt = ana.forget()
    assert receipt.clean
    assert receipt.erased.rows
    assert ana.summarise() == []


def test_of_all_users(home: Home) -> None:
    for name in ("a", "b", "丙"):
        home.user(name).add(TALK, infer=False)
    assert home.rt.summarise(home.world) == 3
    assert home.rt.summarise(home.world) == 0


# -- what happens meanwhile -----------------------------------------------------------------


def test_an_outcome_of_before_a_rewind_is_refused(eventful: tuple[Runtime, Meanwhile]) -> None:
    rt, happens = eventful
    ana = rt.user("ana")
    ana.add(TALK, infer=False)
    rt.checkpoint("begin")
    before = ana.digest()
    happens.then = lambda: rt.rewind("begin")
    assert ana.summarise() == []
    assert (rt.summaries.counts.stale, rt.summaries.counts.kept) == (1, 0)
    assert ana.digest() == before
    assert [item.about for item in ana.summarise()] == ["session default"]


def test_what_was_deleted_meanwhile_is_not_told(eventful: tuple[Runtime, Meanwhile]) -> None:
    rt, happens = eventful
    ana = rt.user("ana")
    code = ana.remember("Ana's code is 4711.").memory_id
    ana.remember("Ana's dog is called Rex.")
    ana.remember("Ana's cat is called Tom.")
    happens.then = lambda: ana.delete(code)
    assert ana.summarise() == []
    assert rt.summaries.counts.stale == 1
    assert summaries(ana) == {}
    (item,) = ana.summarise()
    assert "4711" not in item.text


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_user_that_was_forgotten_meanwhile_stays_forgotten(
    eventful: tuple[Runtime, Meanwhile],
    comes_back: bool,  # noqa: FBT001 (a parameter of the test)
) -> None:
    rt, happens = eventful
    ana = rt.user("ana")
    ana.add(TALK, infer=False)

    def forget() -> None:
        assert ana.forget().clean
        if comes_back:  # with turns of the same ids
            ana.add(CHINESE, infer=False)

    happens.then = forget
    assert ana.summarise() == []
    assert rt.users() == (["ana"] if comes_back else [])
    assert summaries(ana) == {}
    assert ana.search("apple", types="summary") == []


def test_two_at_a_time_keep_one(eventful: tuple[Runtime, Meanwhile]) -> None:
    rt, happens = eventful
    ana = rt.user("ana")
    ana.add(TALK, infer=False)
    happens.then = ana.summarise
    assert ana.summarise() == []
    assert ana.list(types="summary", include_retired=True).total == 1
    assert (rt.summaries.counts.stale, rt.summaries.counts.kept) == (1, 1)


def test_reading_again_calls_no_summariser(runtime_factory: Factory) -> None:
    happens = Meanwhile()
    rt = runtime_factory(summaries=happens)
    ana = rt.user("ana")
    ana.add(TALK, infer=False)
    ana.summarise()
    digest, texts, calls = ana.digest(), summaries(ana), happens.calls
    rt.close()
    again = runtime_factory(summaries=happens)
    assert (again.user("ana").digest(), summaries(again.user("ana"))) == (digest, texts)
    assert happens.calls == calls == 1


# -- of a period or topic -------------------------------------------------------------------


def test_a_conversation_summary_of_the_last_days_and_a_topic(home: Home) -> None:
    ana = home.user()
    ana.add("I failed the maths exam at school.", at=START - 20 * DAY, infer=False)
    ana.add("The school play was a success.", at=START - 2 * DAY, infer=False)
    ana.add("I bought a red bike in Oslo.", at=START - DAY, infer=False)
    ana.remember("Ana's school is in Oslo.", valid_from=START - 3 * DAY, topics=["School"])
    week = ana.get_conversation_summary(last_n_days=7)
    assert (week.from_at, week.to_at, week.messages) == (START - 7 * DAY, START, 2)
    assert "exam" not in week.text
    assert set(week.sources) == {"t2", "t3", "m1"}
    school = ana.get_conversation_summary(topic="school", last_n_days=7)
    assert school.text == "11 November 2023: Ana's school is in Oslo."  # of the topic alone
    play = ana.get_conversation_summary("play", since=START - 7 * DAY)
    assert (play.text, play.messages) == (
        "12 November 2023: user: The school play was a success.",
        1,
    )
    assert ana.get_conversation_summary(last_n_days=0.5).messages == 0
    assert ana.stats().summaries == 0  # none was kept


def test_a_conversation_summary_reads_and_writes_nothing(home: Home) -> None:
    ana = home.user()
    ana.add(CHINESE, infer=False)
    digest = ana.digest()
    found = ana.get_conversation_summary("三只猫", max_tokens=50)
    assert "2023年11月14日：user：我养了三只猫。" in found.text
    assert "t3" in found.sources
    assert ana.digest() == digest
    nobody = home.user("nobody").get_conversation_summary("猫", last_n_days=3)
    assert (nobody.text, nobody.messages, nobody.sources) == ("", 0, ())
    assert "nobody" not in home.rt.users(home.world)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({"last_n_days": 0}, errors.InvalidValueError),
        ({"last_n_days": -1}, errors.InvalidValueError),
        ({"last_n_days": float("nan")}, errors.InvalidValueError),
        ({"last_n_days": 7, "since": START}, errors.InvalidValueError),
        ({"since": "no time"}, errors.InvalidTimeError),
        ({"topic": ""}, errors.InvalidIdError),
        ({"session": "unknown"}, errors.UnknownMemoryError),
        ({"max_tokens": 0}, errors.InvalidLimitError),
        ({"max_tokens": 10**9}, errors.InvalidLimitError),
    ],
)
def test_what_cannot_be_asked(home: Home, asked: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        home.user().get_conversation_summary(**asked)


@pytest.mark.parametrize(
    "setting", [{"summaries": "yes"}, {"summary_every": 0}, {"summary_idle_s": -1}]
)
def test_settings_that_are_refused(runtime_factory: Factory, setting: dict[str, Any]) -> None:
    with pytest.raises(errors.ConfigError, match=next(iter(setting))):
        runtime_factory(**setting)
