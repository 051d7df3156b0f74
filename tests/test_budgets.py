"""Budgets per user: what is archived, in which order, and that nothing is lost silently."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support import DAY, DIM, PARTITIONS, START, ShardsBackend, fact, opened, writer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import budgets

import reverie.runtime
from reverie import Profile, SimulatedClock, User
from reverie.actors.limits import tend, within_budget
from reverie.memory_graph import audit, budget, events, gist
from reverie.memory_graph.apply import apply
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import EntityDraft
from reverie.memory_graph.nodes import Memory
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.summaries import SummaryPolicy, due, material
from reverie.memory_graph.write import Writer
from reverie.models.standin import HashEmbedder


def limited(profile: Profile) -> Writer:
    """Return a writer on a state that has only these limits."""
    made = writer()
    made.emit(events.ProfileSet(at=START, profile=profile))
    return made


def keep(to: Writer, text: str, **fields: Any) -> str:
    """Keep a memory and the budget, as one write of a shard does."""
    kept = to.remember(fact(text, **fields))
    within_budget(to, None)
    return kept


def active(of: Writer) -> list[str]:
    return sorted(m.text for m in budget.active(of.memory))


def lines(of: Writer, now: float = START) -> list[tuple[str, str, str]]:
    return [(line.text, line.became, line.why) for line in audit.lines(of.memory, now)]


# -- weights ---------------------------------------------------------------------------


def test_the_weight_is_as_documented() -> None:
    made = Memory("m1", "x", "fact", START, importance=0.5)
    assert budget.weight(made, START) == 0.5
    assert budget.weight(made, START - DAY) == 0.5  # a clock that goes back
    assert budget.weight(made, START + 30 * DAY) == pytest.approx(0.25)
    made.sentiment, made.hits = -0.8, 4
    assert budget.weight(made, START) == pytest.approx(0.5 + 0.25 * 0.8 + 0.25 * 0.5)
    made.last_access = START + 10 * DAY
    assert budget.weight(made, START + 40 * DAY) == pytest.approx(budget.strength(made) / 2)
    lasting = Memory("m2", "x", "fact", START, importance=1.0)
    assert budget.weight(lasting, START + 60 * DAY) == pytest.approx(0.5)


def test_when_something_is_due_is_known_before() -> None:
    to = limited(Profile(archive_below=0.1, ttl_s={"event": 5 * DAY}))
    assert budget.next_due(to.memory) == float("inf")
    keep(to, "Bo lives in Oslo.", importance=0.4)
    falls = budget.next_due(to.memory)
    half_life = budget.half_life_s(Memory("m1", "x", "fact", START, importance=0.4))
    assert falls == pytest.approx(START + 2 * half_life)
    keep(to, "今天下雨了。", kind="event")
    assert budget.next_due(to.memory) == START + 5 * DAY
    assert budget.fade(Writer(to.memory, falls - 1)) == 0
    later = Writer(to.memory, falls + 1)
    assert budget.fade(later) == 1
    assert budget.expire(later) == 1
    assert budget.next_due(to.memory) == float("inf")
    assert check_memory(to.memory) == []


# -- what goes -------------------------------------------------------------------------


def test_the_least_weighty_is_archived_with_a_line() -> None:
    to = limited(Profile(memories=11))
    keep(to, "Bo coughed.", importance=0.1)
    keep(to, "小明打了个喷嚏。", importance=0.05, pinned=True)
    for i in range(10):
        keep(to, f"Something happened, number {i}.", importance=0.3)
    assert len(active(to)) == 11
    assert lines(to) == [("Bo coughed.", "archived", "budget: 11 memories")]
    assert "小明打了个喷嚏。" in active(to)
    assert check_memory(to.memory) == []


def test_what_is_old_goes_before_what_is_new_and_unread() -> None:
    to = limited(Profile(memories=12))
    for i in range(12):
        to.at = START + i * DAY
        keep(to, f"It rained on day {i}.", importance=0.5)
    to.at = START + 12 * DAY
    to.touch(["m1"], to.at)
    keep(to, "It rained again.", importance=0.5)
    assert [text for text, _, _ in lines(to)] == ["It rained on day 1."]


def test_a_memory_that_weighs_least_goes_in_its_own_write() -> None:
    to = limited(Profile(memories=10))
    for i in range(10):
        keep(to, f"The king said {i}.", importance=0.9)
    keep(to, "A leaf fell.", importance=0.0)
    assert lines(to) == [("A leaf fell.", "archived", "budget: 10 memories")]


def test_the_most_important_go_last() -> None:
    to = limited(Profile(memories=40))
    for i in range(12):
        keep(to, f"The town burned, part {i}.", importance=1.0)
    for i in range(5):
        keep(to, f"Bo was crowned, {i}.", importance=0.95)
    to.at = START + 400 * DAY  # what comes now weighs much more
    for i in range(400):
        keep(to, f"A cart went by, {i}.", importance=0.6)
        assert to.graph.active <= 40
    left = active(to)
    assert sum("burned" in text for text in left) == 12
    to.emit(events.ProfileSet(at=to.at, profile=Profile(memories=10)))
    within_budget(to, None)
    assert len(active(to)) == 10
    assert all("burned" in text for text in active(to))


def test_the_ten_most_important_stay_whatever_their_importance() -> None:
    to = limited(Profile(memories=30))
    for i in range(10):
        keep(to, f"Ana won the race of year {i}.", importance=0.8 + i / 100)
    to.at = START + 500 * DAY
    for i in range(300):
        keep(to, f"A cart went by, {i}.", importance=0.7)
    assert sum("won the race" in text for text in active(to)) == 10


def test_pinned_memories_stay_when_they_alone_exceed_the_budget() -> None:
    to = limited(Profile(memories=3))
    for i in range(5):
        keep(to, f"Vow {i} must be kept.", pinned=True)
    keep(to, "Bo was late.", importance=1.0)
    assert len(active(to)) == 5
    assert lines(to) == [("Bo was late.", "archived", "budget: 3 memories")]
    assert budget.stats(to.memory)[::2] == (5, True)
    assert check_memory(to.memory) == []
    to.edit(events.MemoryEdited(at=START, id="m1", pinned=False))
    within_budget(to, None)
    assert len(active(to)) == 4


def test_bytes_are_those_of_texts_and_vectors() -> None:
    to = limited(Profile(bytes=10 * (4 * DIM + 30)))
    for i in range(30):
        keep(to, f"小红看见了一只鸟，第{i:02}次。")  # 3 bytes a character
    size = budget.active_bytes(to.memory)
    texts = active(to)
    assert size == sum(len(text.encode()) + 4 * DIM for text in texts)
    assert 0 < size <= 10 * (4 * DIM + 30)
    assert {why for _, _, why in lines(to)} == {"budget: 1580 bytes"}
    keep(to, "x" * 5000)  # more than the whole budget
    assert budget.active_bytes(to.memory) <= 1580
    assert len(lines(to)) + len(active(to)) == 31


def test_what_has_outlived_its_time_goes_first() -> None:
    to = limited(Profile(memories=2))
    keep(to, "The soup is hot.", importance=1.0, ttl_s=60.0)
    keep(to, "Bo is a smith.", importance=0.1)
    to.at = START + 60
    keep(to, "Ana is a baker.", importance=0.1)
    assert active(to) == ["Ana is a baker.", "Bo is a smith."]
    assert lines(to) == [("The soup is hot.", "expired", "time to live: 60 s")]
    (line,) = audit.lines(to.memory, to.at)
    assert line.at == START + 60


def test_room_is_made_in_steps() -> None:
    """Or an owner at its budget would look at all it has for each new memory."""
    to = limited(Profile(memories=320))
    looked = []
    for i in range(1000):
        before = len(to.events)
        keep(to, f"Event {i}.", importance=0.5)
        gone = sum(isinstance(e, events.MemoryRetired) for e in to.events[before:])
        if gone:
            looked.append(gone)
        assert to.graph.active <= 320
    assert set(looked) == {11}
    assert len(looked) == pytest.approx(680 / 11, abs=1)


# -- the gist of what has faded ---------------------------------------------------------


def faded(count: int = 15) -> Writer:
    to = limited(Profile(memories=1))
    for i in range(count):
        keep(to, f"Bo sold horse {i} at the market.", entities=(EntityDraft("Bo", "person"),))
    return to


def told(to: Writer) -> str:
    """Keep the gist that is due, as the keeper of summaries does."""
    policy = SummaryPolicy(kinds="faded")
    assert list(due(to.memory, to.at, policy)) == [gist.SUBJECT]
    given_ = material(to.memory, gist.SUBJECT, to.at)
    assert given_ is not None
    text = " ".join(given_.sources[i].text for i in given_.picked)
    ids = [source.id for source in given_.sources]
    return to.summarise(
        text, "u", ids, from_at=given_.from_at, to_at=given_.to_at, vector=None, gist=True
    )


def test_what_faded_is_told_in_a_summary_that_answers() -> None:
    to = faded()
    assert len(to.graph.waiting) == 14
    made = told(to)
    assert not to.graph.waiting
    summary = to.graph.node(made)
    assert summary.retired_at is None  # type: ignore[union-attr]
    assert made not in to.graph.veiled
    became = {(line.became, line.summary) for line in audit.lines(to.memory, START)}
    assert became == {("consolidated", made)}
    assert check_memory(to.memory) == []
    again = decode_snapshot(encode_snapshot(to.memory))
    assert state_digest(again) == state_digest(to.memory)
    assert check_memory(again) == []
    assert not list(due(to.memory, START, SummaryPolicy(kinds="faded")))


@pytest.mark.parametrize("how", ["archive", "delete", "replace", "ttl"])
def test_who_asks_that_something_be_hidden_hides_its_gist(how: str) -> None:
    to = faded()
    made = told(to)
    match how:
        case "archive":  # it is archived already, but nobody had asked for that
            assert to.retire("m3", "archived", "a secret")
        case "delete":
            assert to.retire("m3", "expired", "deleted")
        case "replace":
            to.remember(fact("Bo sold no horse."), ("m3",))
            within_budget(to, None)
        case _:
            to.edit(events.MemoryEdited(at=START, id="m3", ttl_s=DAY))
    assert made in to.graph.veiled
    assert len(to.graph.waiting) == (14 if how == "replace" else 13)  # that makes another fade
    assert check_memory(to.memory) == []
    again = told(to)
    assert "horse 2" not in to.graph.node(again).text  # type: ignore[union-attr]
    assert check_memory(to.memory) == []


def test_restored_memories_are_as_new_and_go_last() -> None:
    to = faded()
    told(to)
    to.restore("m3", "it matters")
    memory = to.graph.get("m3", Memory)
    assert (memory.faded, memory.gist, memory.away_at) == (False, None, None)
    budget.keep_budget(to, {"m3"})
    assert active(to) == ["Bo sold horse 2 at the market."]
    assert check_memory(to.memory) == []


def _uncounted(to: Writer) -> None:
    to.graph.active_bytes += 1


def _unwaited(to: Writer) -> None:
    to.graph.waiting.discard("m2")


def _over(to: Writer) -> None:
    to.remember(fact("One too many."))


def _half_back(to: Writer) -> None:
    to.graph.get("m2", Memory).status = "quarantined"


def _misled(to: Writer) -> None:
    to.graph.get("m2", Memory).gist = "y9"
    to.graph.waiting.discard("m2")


@pytest.mark.parametrize("plant", [_uncounted, _unwaited, _over, _half_back, _misled])
def test_the_checker_sees_what_is_broken(plant: Callable[[Writer], None]) -> None:
    to = faded()
    assert check_memory(to.memory) == []
    plant(to)
    assert len(check_memory(to.memory)) == 1


# -- through the public API --------------------------------------------------------------


def wrote(user: User, count: int) -> None:
    for i in range(count):
        user.observe(f"Bo sold horse {i}. 小明看见了。", participants=["Bo", "小明"])


def test_a_user_is_limited_and_told_why(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        ana = rt.user("ana")
        wrote(ana, 6)
        pinned = ana.remember("Ana swore to come back.", pinned=True).memory_id
        guard = Profile(name="guard", memories=4)
        assert ana.profile() is None
        assert ana.set_profile(guard)
        assert not ana.set_profile(guard)
        assert ana.profile() == guard
        stats = ana.stats()
        assert (stats.active, stats.pinned, stats.is_over_budget) == (4, 1, False)
        assert stats.active_bytes == sum(len(i.text.encode()) + 4 * DIM for i in ana.list().items)
        page = ana.audit(limit=2)
        assert (page.total, len(page.lines)) == (3, 2)
        rest = ana.audit(limit=2, cursor=page.cursor)
        assert [*page.lines, *rest.lines] == ana.audit().lines
        assert rest.cursor is None
        assert [line.id for line in ana.audit().lines] == ["m1", "m2", "m3"]
        assert pinned in [item.id for item in ana.list().items]
        with pytest.raises(reverie.errors.InvalidLimitError):
            ana.audit(cursor="m3")
        # Put away, not lost: asked for, believed then, restored.
        (hit, *_) = ana.search("horse 0", include_archived=True)
        assert hit.status == "archived"
        item = ana.restore("m1")
        assert (item.status, ana.stats().active) == ("active", 4)


def test_where_a_budget_leaves_no_room_what_is_restored_is_archived_again(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        for user, none in (("ana", Profile(memories=0)), ("安娜", Profile(bytes=1))):
            ana = rt.user(user)
            ana.set_profile(none)
            kept = ana.remember("安娜养马。").memory_id
            assert ana.get(kept).status == "archived"
            assert ana.restore(kept).status == "archived"
            assert [line.why.split(":")[0] for line in ana.audit().lines] == ["budget"]
            ana.set_profile(Profile(memories=1))
            assert ana.restore(kept).status == "active"


def test_what_was_archived_for_a_budget_was_believed_before(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        ana = rt.user("ana")
        wrote(ana, 3)
        before = rt.now()
        clock = rt.clocks.of("default")
        assert isinstance(clock, SimulatedClock)
        clock.advance(DAY)
        ana.set_profile(Profile(memories=0))
        assert ana.list().total == 0
        page = ana.list(as_of=before)
        assert {item.status for item in page.items} == {"active"}
        assert page.total == 3


def test_profiles_go_back_and_along_with_save_slots(tmp_path: Path) -> None:
    with opened(tmp_path / "data", background=False) as rt:
        world = rt.world("w")
        world.set_profiles({"ana": Profile(memories=5), "bo": Profile(memories=2)})
        wrote(world.user("ana"), 4)
        rt.checkpoint("one", "w")
        digest = world.user("ana").digest()
        assert world.set_profiles({"ana": Profile(memories=1), "bo": Profile(memories=2)}) == 1
        assert world.user("ana").stats().active == 1
        rt.rewind("one", "w")
        assert world.user("ana").digest() == digest
        assert world.user("ana").profile() == Profile(memories=5)
        rt.fork("one", "w2", "w")
        assert rt.user("ana", "w2").profile() == Profile(memories=5)
        assert rt.user("ana", "w2").stats().active == 4
        with pytest.raises(reverie.errors.ConfigError, match="profile 'bad': memories"):
            world.set_profiles({"ana": None, "bo": Profile(name="bad", memories=-1)})
        assert world.user("ana").profile() is not None


def test_gists_are_made_in_the_background_and_answer(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as rt:
        ana = rt.user("ana")
        ana.set_profile(Profile(memories=5))
        wrote(ana, 30)
        ana.add("Hello there.", wait=True)  # extraction is what wakes the background
        rt.drain(60)
        lines_ = ana.audit().lines
        made = {line.summary for line in lines_ if line.became == "consolidated"}
        assert made
        hits = ana.search("Who sold a horse?", types="summary")
        assert made & {hit.id for hit in hits}
        assert rt.check() == []


# -- whatever is written, under whatever budget ------------------------------------------

WRITES = st.lists(
    st.tuples(
        st.sampled_from(["fact", "event", "preference"]),
        st.integers(0, 10),  # importance in tenths
        st.booleans(),  # pinned, if the next says so
        st.integers(0, 5),
        st.sampled_from(["Bo saw Ana.", "小明在桥上。", "It rained.", "x" * 200]),
        st.integers(0, 4),  # days that pass
        st.sampled_from(["keep", "keep", "keep", "profile", "read", "restore", "pin", "tend"]),
    ),
    max_size=30,
)
PROFILES = st.builds(
    Profile,
    memories=st.none() | st.integers(0, 12),
    bytes=st.none() | st.integers(0, 3000),
    archive_below=st.none() | st.sampled_from([0.0, 0.1, 0.4]),
    ttl_s=st.sampled_from([{}, {"event": 2 * DAY}]),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(writes=WRITES, profiles=st.lists(PROFILES, min_size=1, max_size=4), seed=st.integers(0, 9))
def test_a_budget_is_kept_after_any_event(
    writes: list[tuple[str, int, bool, int, str, int, str]], profiles: list[Profile], seed: int
) -> None:
    rng, to = random.Random(seed), limited(profiles[0])
    for i, (kind, tenths, pinned, lot, text, days, what) in enumerate(writes):
        chance = rng.random()
        known = [m for m in to.graph.nodes(Memory) if isinstance(m, Memory)]
        some = known[int(chance * len(known))] if known else None
        to.at += days * DAY
        match what:
            case "profile":
                chosen = profiles[int(chance * len(profiles))]
                to.emit(events.ProfileSet(at=to.at, profile=chosen))
            case "read" if some:
                to.touch([some.id], to.at)
            case "restore" if some and some.status == "archived":
                to.restore(some.id, "")
            case "pin" if some:
                to.edit(events.MemoryEdited(at=to.at, id=some.id, pinned=chance < 0.5))
            case "tend":
                tend(to)
                if (given_ := material(to.memory, gist.SUBJECT, to.at)) is not None:
                    ids = [source.id for source in given_.sources]
                    to.summarise("so", "u", ids, from_at=to.at, to_at=to.at, vector=None, gist=True)
            case _:
                is_pinned = pinned and lot == 3
                draft = fact(f"{text} ({i})", importance=tenths / 10, pinned=is_pinned)
                to.remember(msgspec.structs.replace(draft, kind=kind))
        within_budget(to, None)
        assert check_memory(to.memory) == []
    lines_ = audit.lines(to.memory, to.at)
    assert len(lines_) + to.graph.active >= to.graph.counters.get("m", 0)
    again = UserMemory()
    for event in to.events:
        apply(again, events.decode_event(events.encode_event(event)))
    again.seq = to.memory.seq
    assert state_digest(again) == state_digest(to.memory)
    assert budget.next_due(again) == budget.next_due(to.memory)
    loaded = decode_snapshot(encode_snapshot(to.memory))
    assert state_digest(loaded) == state_digest(to.memory)
    assert check_memory(loaded) == []


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(writes=WRITES, profiles=st.lists(PROFILES, min_size=1, max_size=4), seed=st.integers(0, 9))
def test_a_budget_is_kept_on_any_number_of_shards(
    writes: list[tuple[str, int, bool, int, str, int, str]], profiles: list[Profile], seed: int
) -> None:
    rng = random.Random(seed)
    steps = [(rng.random(), *write) for write in writes]
    seen = []
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for count in (1, 2, 3):
            patch.setattr(
                reverie.runtime,
                "InlineBackend",
                lambda folder, *_, n=count, **_settings: ShardsBackend(folder, n),
            )
            seen.append(_live(Path(name, str(count)), steps, profiles))
    assert seen[0] == seen[1] == seen[2]


def _live(folder: Path, steps: list[Any], profiles: list[Profile]) -> object:
    clock = SimulatedClock(START)
    fields: dict[str, Any] = {
        "embedder": HashEmbedder(DIM), "partitions": PARTITIONS, "background": False,
    }  # fmt: skip
    with reverie.open(folder, clock=clock, **fields) as rt:
        users = [rt.user(user_id) for user_id in ("ana", "小明")]
        for user in users:
            user.set_profile(profiles[0])
        for i, (chance, kind, tenths, pinned, lot, text, days, what) in enumerate(steps):
            user = users[lot % 2]
            known = user.list(include_archived=True, include_retired=True).items
            some = known[int(chance * len(known))].id if known else None
            clock.advance(days * DAY)
            match what:
                case "profile":
                    user.set_profile(profiles[int(chance * len(profiles))])
                case "read":
                    user.search(text, include_archived=True)
                case "restore" if some and user.get(some).status == "archived":
                    user.restore(some)
                case "pin" if some:
                    user.update(some, pinned=chance < 0.5)
                case "tend":
                    rt.world().tend()
                case _:
                    user.remember(
                        f"{text} ({i})",
                        kind=kind,
                        importance=tenths / 10,
                        pinned=pinned and lot == 3,
                    )
            _holds(user)
        rt.world().tend()
        assert rt.check() == []
        found = [(user.digest(), user.audit().lines) for user in users]
    with reverie.open(folder, clock=clock, **fields) as rt:  # replayed
        assert [rt.user(u).digest() for u in ("ana", "小明")] == [digest for digest, _ in found]
        rt.flush()
    return found


def _holds(user: User) -> None:
    stats, profile = user.stats(), user.profile()
    assert profile is not None
    over = (profile.memories is not None and stats.active > profile.memories) or (
        profile.bytes is not None and stats.active_bytes > profile.bytes
    )
    assert over == stats.is_over_budget
    assert not over or stats.active == stats.pinned
    page = user.audit(limit=1000)
    gone = [line for line in page.lines if line.id != "u"]
    assert stats.active + len(gone) >= stats.memories  # nothing was replaced here
    assert all(line.why for line in gone)


def test_the_benchmark_in_small(tmp_path: Path) -> None:
    events_ = budgets.make_events(300, 8, 1, chinese=True)
    embedder = budgets.Known(HashEmbedder(64), [e.text for e in events_])
    args = argparse.Namespace(memories=40, free=False)
    with opened(tmp_path / "data", embedder=embedder, background=False) as rt:
        clock = rt.clocks.of("town")
        assert isinstance(clock, SimulatedClock)
        rows = budgets.measure(rt, clock, events_, args)
    kept = {what: is_kept for what, _, _, is_kept in rows}
    assert len(kept) > 8
    assert False not in kept.values(), kept
