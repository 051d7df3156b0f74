"""What people of the town know, against the script's own book."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from town_played import SMALL, Played

from reverie.memory_graph.errors import DataFolderError, UnknownCheckpointError
from reverie.town import Outcome, Plan, run
from reverie.town.evening import STORY, how, who_knows
from reverie.town.ledger import Telling
from reverie.town.record import Knower, read_save
from reverie.town.truth import Truth, compare


def test_nobody_knows_what_he_cannot_know(played: Played) -> None:
    truth = played.truth
    assert truth.holds, truth
    assert truth.people == 8
    assert truth.memories > 100
    assert truth.hearsay > 5
    assert truth.asked > 400


def test_an_event_that_nobody_saw_is_nowhere(played: Played) -> None:
    ledger = played.outcome.play.book.ledger
    chest = ledger.planted("buried-chest")
    assert chest is not None
    assert chest.witnesses == ()
    assert not ledger.of(chest.id)
    assert "buried-chest" not in {e for events in ledger.chains().values() for e in events}


def test_the_town_tells_who_knows_and_from_whom(played: Played) -> None:
    outcome = played.outcome
    story = outcome.play.book.ledger.happenings[STORY]
    first, last = outcome.play.record.days[0].knowers, outcome.play.record.days[-1].knowers
    assert {k.name for k in last if not k.heard} == set(story.witnesses)
    assert {k.name for k in first} <= {k.name for k in last}
    heard = [knower for knower in last if knower.heard]
    assert heard
    chains = outcome.play.book.ledger.chains()
    for knower in heard:
        assert knower.heard in chains[knower.name][STORY]
        assert knower.heard[0] in story.witnesses
        assert knower.confidence < 1
        assert knower.text
    assert how(last[0]) == "saw it"
    two = Knower("C", "x", ("A", "B"))
    assert how(two) == "from B, who had it from A"


def test_what_is_told_to_a_chinese_is_told_in_chinese(played: Played) -> None:
    told = [
        telling
        for telling in played.outcome.play.book.ledger.tellings
        if telling.listener == "Chen Wei"
    ]
    assert told
    for telling in told:
        assert telling.speaker == "Lin Yue"  # nobody else of the eight speaks his language
        assert not telling.text.isascii()


def test_had_nobody_seen_it_nobody_would_know(played: Played) -> None:
    outcome = played.outcome
    assert outcome.other is not None
    assert outcome.other.record.days[-1].knowers == ()
    assert outcome.other.book.ledger.happenings[STORY].witnesses == ()
    assert not outcome.other.book.ledger.of(STORY)
    mine, other = (o.record.days[-1].trust for o in (outcome.play, outcome.other))
    witness = outcome.play.book.ledger.happenings[STORY].witnesses[0]
    assert mine[witness] < -0.2 < other.get(witness, 0.0)


def test_memories_fade_and_are_rekindled(played: Played) -> None:
    traces = played.outcome.play.record.traces
    assert STORY in {trace.event for trace in traces}
    for trace in traces:
        for (_, before, hits, _), (_, after, more, _) in zip(
            trace.points, trace.points[1:], strict=False
        ):
            assert after > before if more > hits else after <= before
    assert any(trace.points[-1][2] > trace.points[0][2] for trace in traces)
    assert any(b[1] < a[1] for t in traces for a, b in zip(t.points, t.points[1:], strict=False))


# -- the comparison can fail -------------------------------------------------------------------


def _spoilt(tmp_path: Path, spoil: str) -> Truth:
    """Play a short town, put one thing wrong, and compare."""
    found: list[Truth] = []

    def finish(outcome: Outcome) -> None:
        play = outcome.play
        story = play.book.ledger.happenings[STORY]
        stranger = next(name for name in play.setting.people if not play.book.knows(STORY, name))
        match spoil:
            case "unknown" | "leaked":
                play.world.observe(story.text, witnesses=[stranger], event_id=STORY)
            case "unchained":
                knower = who_knows(play, STORY)[0]
                memory = next(
                    k.memory_id for k in play.world.who_knows(STORY) if k.user_id == knower.name
                )
                play.world.tell(knower.name, stranger, memory)
                telling = Telling(
                    event=STORY,
                    tick=40,
                    speaker="Old Wat",
                    listener=stranger,
                    claim=story.claim,
                    text=story.text,
                    heard=("Nobody", "Old Wat"),
                )
                play.book.told(telling)
            case "unkept":
                telling = Telling(
                    event=STORY,
                    tick=40,
                    speaker="Old Wat",
                    listener=stranger,
                    claim=story.claim,
                    text=story.text,
                    heard=("Old Wat",),
                )
                play.book.told(telling)
            case _:
                raise AssertionError(spoil)
        found.append(compare(play, ask=None if spoil == "leaked" else 0))

    plan = msgspec.structs.replace(SMALL, folder=tmp_path / "t", days=1, npcs=6, what_if=False)
    run(plan, at_end=finish)
    return found[0]


@pytest.mark.parametrize("spoil", ["unknown", "unchained", "unkept", "leaked"])
def test_the_comparison_finds(tmp_path: Path, spoil: str) -> None:
    truth = _spoilt(tmp_path, spoil)
    assert getattr(truth, spoil)
    assert not truth.holds


# -- saving and going on -----------------------------------------------------------------------


def test_a_resumed_town_ends_as_the_uninterrupted_one(played: Played, tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, folder=tmp_path / "t", what_if=False)
    whole = run(msgspec.structs.replace(plan, save_day=1))
    assert whole.digests == played.outcome.digests
    ledger = whole.play.book.ledger
    resumed = run(msgspec.structs.replace(plan, resume=True, save_day=1))
    assert resumed.digests == whole.digests
    assert resumed.play.book.ledger == ledger
    assert [day.knowers for day in resumed.play.record.days] == [
        day.knowers for day in whole.play.record.days
    ]
    longer = run(msgspec.structs.replace(plan, resume=True, days=3))
    assert longer.digests != whole.digests
    assert len(longer.play.record.days) == 3


def test_another_seed_is_another_town(played: Played, tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, folder=tmp_path / "t", seed=2, days=1, what_if=False)
    other = run(plan)
    assert set(other.digests) == set(played.outcome.digests)
    assert not set(other.digests.values()) & set(played.outcome.digests.values())


def test_a_town_is_not_played_over(tmp_path: Path) -> None:
    plan = Plan(folder=tmp_path / "t", days=1, npcs=2, what_if=False)
    with pytest.raises(DataFolderError, match="no town to go on with"):
        run(msgspec.structs.replace(plan, resume=True))
    run(plan)
    with pytest.raises(DataFolderError, match="--resume"):
        run(plan)
    with pytest.raises(UnknownCheckpointError, match="there are: 1"):
        run(msgspec.structs.replace(plan, resume=True, save_day=5))
    save = tmp_path / "t" / "day-1.json"
    assert read_save(save).tick == 24
    save.write_bytes(save.read_bytes()[:-20])
    with pytest.raises(DataFolderError, match="cannot be read"):
        run(msgspec.structs.replace(plan, resume=True, days=2))
    save.write_bytes(b"{}")
    with pytest.raises(DataFolderError, match="cannot be read"):
        run(msgspec.structs.replace(plan, resume=True, days=2))
