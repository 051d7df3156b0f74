"""What was said to hold without a date gives way to a change of the days before; what tells of a
time that is over replaces nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import opened, writer

from reverie.clock import SimulatedClock
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import Decision, MemoryDraft, TurnDraft
from reverie.models.protocol import Turn
from reverie.models.rules import RulesExtractor
from reverie.models.rules.dates import leading_date
from reverie.models.rules.standing import held_when_said

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
HOUR_S, DAY_S = 3600.0, 86_400.0

CHANGES = [
    ("I live in Oslo.", "I moved to Bergen last week."),
    ("I live in Oslo.", "Last week I moved to Bergen."),
    ("I live in Oslo.", "Yesterday, I moved to Bergen."),
    ("I live in Oslo.", "I moved to Bergen last month."),
    ("I live in Oslo.", "I've lived in Bergen since 2019."),
    ("I work at Acme.", "I started working at Globex two weeks ago."),
    ("I work at Acme.", "Since last week I work at Globex."),
    ("我住在上海。", "我上周搬到了北京。"),
    ("我住在上海。", "上个月我搬到了北京。"),
    ("我住在上海。", "我前天搬到北京了。"),
]
PASTS = [
    ("I live in Oslo.", "I lived in Bergen in 2019."),
    ("I live in Oslo.", "In 2019 I lived in Bergen."),
    ("I live in Oslo.", "In 2019, I lived in Bergen."),
    ("I live in Oslo.", "I lived in Bergen for years."),
    ("I live in Oslo.", "I moved to Bergen in 2019."),
    ("I work at Acme.", "I worked at Globex in 2019."),
    ("I work as a nurse.", "I was a teacher in 2019."),
    ("我住在上海。", "2019年我住在北京。"),
    ("我住在上海。", "我以前住在北京。"),
    ("我住在上海。", "我2019年搬到了北京。"),
    ("我在腾讯工作。", "我2019年在阿里巴巴工作。"),
]


@pytest.mark.parametrize("gap_s", [0.0, HOUR_S])
@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_recent_change_replaces_what_was_only_said(
    tmp_path: Path, old: str, new: str, gap_s: float
) -> None:
    clock = SimulatedClock(NOW)
    with opened(tmp_path / "data", embedder="standin", clock=clock) as rt:
        ana = rt.user("ana")
        (first,) = ana.add(old, wait=True).kept
        clock.advance(gap_s)
        (second,) = ana.add(new, wait=True).kept
        assert (second.op, second.target) == ("UPDATE", first.memory_id)
        (left,) = ana.list().items
        assert left.id == second.memory_id
        assert left.valid_from is not None
        assert left.valid_from < NOW
        assert len({r.tail for r in ana.neighbors("user").relations}) == 1


@pytest.mark.parametrize(("old", "new"), CHANGES[::7])
def test_so_it_is_with_what_another_speaker_says(tmp_path: Path, old: str, new: str) -> None:
    with opened(tmp_path / "data", embedder="standin", clock=SimulatedClock(NOW)) as rt:
        turns = [{"text": text, "speaker": "安娜"} for text in (old, new)]
        _, second = (rt.user("ana").add(turn, wait=True).kept for turn in turns)
        assert [k.op for k in second] == ["UPDATE"]


@pytest.mark.parametrize(("old", "new"), PASTS)
def test_a_time_that_is_over_stays_history(tmp_path: Path, old: str, new: str) -> None:
    with opened(tmp_path / "data", embedder="standin", clock=SimulatedClock(NOW)) as rt:
        ana = rt.user("ana")
        ana.add(old, wait=True)
        kept = ana.add(new, wait=True).kept
        assert {k.op for k in kept} == {"ADD"}
        assert ana.get("m1").status == "active"
        late = ana.get("m2")
        assert late.valid_to is not None
        assert late.valid_to <= NOW
        (now,) = ana.search(old, valid_at=NOW, types=["memory"], limit=1)
        assert now.id == "m1"
        held = [r for r in ana.neighbors("user").relations if r.valid_to is None]
        assert [r.source for r in held] == ["m1"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I moved to Oslo in November.", "I moved to Bergen in October."),
        ("我11月搬到了上海。", "我10月搬到了北京。"),
    ],
)
def test_of_two_stated_dates_the_later_one_holds(tmp_path: Path, old: str, new: str) -> None:
    with opened(tmp_path / "data", embedder="standin", clock=SimulatedClock(NOW)) as rt:
        ana = rt.user("ana")
        ana.add(old, wait=True)
        assert [k.op for k in ana.add(new, wait=True).kept] == ["ADD"]
        assert [item.id for item in ana.list().items] == ["m1"]


def test_what_was_said_long_ago_is_older_however_late_it_is_learned(tmp_path: Path) -> None:
    with opened(tmp_path / "data", embedder="standin", clock=SimulatedClock(NOW)) as rt:
        ana = rt.user("ana")
        ana.add("I live in Oslo.", wait=True)
        ana.add("I moved to Bergen last week.", at=NOW - 900 * DAY_S, wait=True)
        assert [item.id for item in ana.list().items] == ["m1"]


def stored(held_at: float | None, valid_from: float = NOW, said_at: float = NOW) -> str:
    """Store a memory said and valid as given, and one of the week before; return what was done."""
    made = writer(NOW)
    first, second = made.turns(
        [TurnDraft("a", said_at=said_at), TurnDraft("b", said_at=NOW)], pending=False
    )
    old = made.remember(MemoryDraft("old", valid_from=valid_from, sources=(first,)))
    new = MemoryDraft("new", valid_from=NOW - 7 * DAY_S, held_at=held_at, sources=(second,))
    kept = made.decided(new, Decision("UPDATE", old), [])
    assert check_memory(made.memory) == []
    return kept.op


def test_only_a_stated_date_makes_another_statement_older() -> None:
    assert stored(NOW) == "UPDATE"
    assert stored(None) == "ADD"  # it may have been over by then
    assert stored(NOW - DAY_S) == "ADD"  # it held, but before the other was said
    assert stored(NOW, valid_from=NOW - DAY_S) == "ADD"  # the other one names its date


@pytest.mark.parametrize(
    ("text", "days", "held"),
    [
        ("User moved to Bergen", 7, True),
        ("User moved to Bergen", 400, False),
        ("User has lived in Bergen since 2019", 2000, True),
        ("User lived in Bergen", 7, False),
        ("User no longer lives in Bergen", 7, False),
        ("User is moving to Bergen", -7, False),
        ("Rain fell", 7, False),
        ("用户搬到了北京", 7, True),
        ("用户搬到了北京", 400, False),
        ("用户一直住在北京", 2000, True),
        ("用户住在北京", 7, False),
        ("安娜上周搬到上海了", 7, True),
        ("安娜没有搬到上海", 7, False),
        ("安娜要搬到上海了", 7, False),
        ("", 0, False),
    ],
)
def test_what_held_when_it_was_said(text: str, days: float, *, held: bool) -> None:
    assert held_when_said(text, NOW - days * DAY_S, NOW) == held


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Since last week I live here", "Since last week"),
        ("On May 3, we met", "On May 3"),
        ("Back in 2019 I sang", "Back in 2019"),
        ("Two weeks ago I left", "Two weeks ago"),
        ("I left two weeks ago", ""),
        ("Mayors met in May", ""),
        ("", ""),
    ],
)
def test_a_date_in_front(text: str, date: str) -> None:
    assert leading_date(text) == date


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Last week, I moved to Bergen and I love it.", "User moved to Bergen last week"),
        ("On Friday I met Tom.", "User met Tom on Friday"),
        ("On Fridays I play tennis.", "User plays tennis on Fridays"),
        ("Last week's move to Bergen was hard.", None),
        ("Yesterday was fun.", None),
    ],
)
def test_a_date_in_front_goes_behind_what_it_dates(said: str, told: str | None) -> None:
    (found,) = RulesExtractor().extract([Turn("t1", "user", "user", said, NOW)], [])
    texts = [draft.text for draft in found.memories]
    assert (texts[:1] == [told]) if told else not any("week" in text for text in texts)
    assert all(d.slot is None or d.slot.startswith("user|") for d in found.memories)
