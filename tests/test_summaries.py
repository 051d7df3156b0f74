"""Which summaries are due, what goes into them, what leaves them: on a state without a shard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from support import DAY, START, fact, writer

from reverie.memory_graph import central, check, material, summaries as s
from reverie.memory_graph.check import check_memory
from reverie.memory_graph.drafts import TurnDraft
from reverie.memory_graph.errors import UnknownMemoryError
from reverie.memory_graph.events import MemoryEdited
from reverie.memory_graph.material import Material
from reverie.memory_graph.nodes import USER_NODE, Memory, Message, Summary
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot, state_digest
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.summaries import SummaryPolicy, due
from reverie.memory_graph.talk import Period, is_named, named, talk
from reverie.memory_graph.write import Writer, changed
from reverie.models.summarise import CentralSentences

POLICY = SummaryPolicy(messages=6, least=3, members=2, memories=4)
ALL = SummaryPolicy(everything=True)
TOPICS = ["tea", "Oslo", "bees", "rain", "chess", "trains", "bread", "piano"]


def said(memory: UserMemory, *texts: str, session: str = "s", at: float = START) -> list[str]:
    """Store turns, one a minute, that nothing was extracted from."""
    drafts = [TurnDraft(t, session=session, said_at=at + 60 * i) for i, t in enumerate(texts)]
    return writer(at, memory).turns(drafts, pending=False)


def kept(memory: UserMemory, text: str, at: float = START, **fields: Any) -> str:
    return writer(at, memory).remember(fact(text, valid_from=at, **fields))


def chat(memory: UserMemory, count: int, session: str = "s", at: float = START) -> list[str]:
    """Store turns that each gave a memory; return the ids of the memories."""
    turns = said(
        memory,
        *(f"I talked about {TOPICS[i % 8]} with {i} friends." for i in range(count)),
        session=session,
        at=at,
    )
    return [
        kept(memory, f"Ana talked about {TOPICS[i % 8]} with {i} friends.", at, sources=(turn,))
        for i, turn in enumerate(turns)
    ]


def summarised(memory: UserMemory, subject: str, at: float = START) -> str:
    """Keep the summary of a subject as the background does; return its id."""
    given = s.material(memory, subject, at)
    assert given is not None
    made = CentralSentences().summarise(given)
    return writer(at, memory).summarise(
        made.text,
        subject,
        [given.sources[i].id for i in made.sources],
        from_at=given.from_at,
        to_at=given.to_at,
        vector=None,
        covers=given.covers,
    )


def node(memory: UserMemory, summary_id: str) -> Summary:
    found = memory.graph.node(summary_id)
    assert isinstance(found, Summary)
    return found


def text_of(given: Material | None) -> str:
    assert given is not None
    return CentralSentences().summarise(given).text


# -- when one is due ---------------------------------------------------------------------


def test_a_session_is_due_after_so_many_turns_and_then_after_as_many_new_ones() -> None:
    memory = UserMemory()
    said(memory, *["I live in Oslo."] * 2, "I keep three bees.", "I like tea.", "Bo sings.")
    assert list(due(memory, START, POLICY)) == []
    said(memory, "Ana paints.")
    assert list(due(memory, START, POLICY)) == ["s1"]
    summarised(memory, "s1")
    assert list(due(memory, START, POLICY)) == []
    said(memory, *["More of it."] * 5)
    assert list(due(memory, START, POLICY)) == []
    said(memory, "And more.")
    assert list(due(memory, START, POLICY)) == ["s1"]


def test_a_session_that_has_ended_is_due_with_fewer() -> None:
    memory = UserMemory()
    said(memory, "我住在上海。", "我喜欢绿茶。", "我养了三只猫。")
    assert list(due(memory, START, POLICY)) == []
    assert list(due(memory, START + POLICY.idle_s - 1, POLICY)) == []
    assert list(due(memory, START + POLICY.idle_s, POLICY)) == ["s1"]  # idle
    said(memory, "Another one begins.", session="s2")
    assert list(due(memory, START, POLICY)) == ["s1"]  # another goes on
    said(memory, "Back again.")
    assert list(due(memory, START, POLICY)) == []


def test_what_was_imported_long_ago_is_not_idle_by_when_it_was_said() -> None:
    memory = UserMemory()
    old = [TurnDraft(f"Turn {i} of tea.", said_at=START - 400 * DAY) for i in range(3)]
    writer(START, memory).turns(old, pending=False)
    assert list(due(memory, START + 1, POLICY)) == []


def test_topics_and_the_user_are_due_by_new_memories() -> None:
    memory = UserMemory()
    kept(memory, "Ana likes tea.", topics=("drinks",))
    assert list(due(memory, START, POLICY)) == []
    kept(memory, "Ana likes milk.", topics=("Drinks", "white"))
    assert list(due(memory, START, POLICY)) == [memory.graph.topics["drinks"]]
    kept(memory, "Ana is 30.")
    kept(memory, "Ana lives in Oslo.")
    assert list(due(memory, START, POLICY)) == [USER_NODE, memory.graph.topics["drinks"]]
    for subject in list(due(memory, START, POLICY)):
        summarised(memory, subject)
    assert list(due(memory, START, POLICY)) == []
    assert list(due(memory, START, ALL)) == [memory.graph.topics["white"]]
    assert s.material(memory, memory.graph.topics["white"], START) is None  # one statement


def test_with_many_memories_the_user_is_due_after_a_tenth() -> None:
    memory = UserMemory()
    for i in range(100):
        kept(memory, f"Fact {i}.")
    summarised(memory, USER_NODE)
    for i in range(9):
        kept(memory, f"New fact {i}.")
    assert list(due(memory, START, POLICY)) == []
    kept(memory, "The tenth.")
    assert list(due(memory, START, POLICY)) == [USER_NODE]


# -- what is told ------------------------------------------------------------------------


def test_memories_are_told_and_not_the_turns_they_came_from() -> None:
    memory = UserMemory()
    chat(memory, 6)
    given = s.material(memory, "s1", START)
    assert given is not None
    assert {source.id[0] for source in given.sources} == {"m"}
    assert given.messages == 6
    assert text_of(given).startswith("14 November 2023: Ana talked about")


def test_turns_without_a_memory_are_told_with_their_speaker_and_without_questions() -> None:
    memory = UserMemory()
    turns = [
        TurnDraft("How are you? I bought 3 red bikes in Oslo.", said_at=START),
        TurnDraft("What did you pay?", speaker="Bo", said_at=START),
        TurnDraft("My sister Eva paid 300 euros for them.", speaker="Bo", said_at=START + DAY),
    ]
    writer(START, memory).turns(turns, pending=False)
    text = text_of(s.material(memory, "s1", START))
    assert text == (
        "14 November 2023: user: I bought 3 red bikes in Oslo.\n"
        "15 November 2023: Bo: My sister Eva paid 300 euros for them."
    )


def test_chinese_is_told_as_chinese_writes() -> None:
    memory = UserMemory()
    kept(memory, "小明住在上海。", at=START)
    kept(memory, "小明养了三只猫", at=START + DAY)
    kept(memory, "小红讨厌下雨", at=START + DAY, provenance="told", told_by="王芳")
    assert text_of(s.material(memory, USER_NODE, START + 2 * DAY)) == (
        "2023年11月15日：小红讨厌下雨（王芳说）。小明养了三只猫。\n2023年11月14日：小明住在上海。"
    )


def test_yesterday_is_told_with_the_day_on_which_it_was_said() -> None:
    memory = UserMemory()
    (turn,) = said(memory, "I went to Rome yesterday.")
    kept(memory, "Ana went to Rome yesterday.", at=START - DAY, sources=(turn,))
    kept(memory, "Ana was born in Rome.", at=START - DAY, sources=(turn,))
    assert text_of(s.material(memory, "s1", START)) == (
        "13 November 2023: Ana was born in Rome.\n14 November 2023: Ana went to Rome yesterday."
    )


def test_the_users_summary_tells_what_holds_newest_first_and_then_events() -> None:
    memory = UserMemory()
    kept(memory, "Ana moved to Rome.", at=START - 3 * DAY, kind="event")
    old = kept(memory, "Ana lives in Rome.", at=START - 2 * DAY, kind="fact")
    kept(memory, "Ana likes green tea.", at=START - DAY, kind="preference")
    kept(memory, "Ana works at the mill.", at=START, kind="fact")
    kept(memory, "Ana rents a room until then.", at=START - DAY, valid_to=START - 10)
    writer(START, memory).remember(fact("Ana lives in Oslo.", valid_from=START), (old,))
    lines = text_of(s.material(memory, USER_NODE, START)).split("\n")
    assert lines == [
        "14 November 2023: Ana lives in Oslo. Ana works at the mill.",
        "13 November 2023: Ana likes green tea.",
        "11 November 2023: Ana moved to Rome.",
    ]


def test_equal_statements_are_told_once_and_the_text_is_bounded() -> None:
    memory = UserMemory()
    for i in range(60):
        said(memory, f"I have been planting {i} apple trees in my garden in Oslo.", at=START + i)
    for i in range(60):
        topic = TOPICS[i % 8]
        said(memory, f"The {topic} of number {i} was better than all {topic} of {i + 1}.")
    given = s.material(memory, "s1", START, 120)
    assert given is not None
    text = text_of(given)
    assert text.count("apple trees") == 1
    assert 40 < material.size(text) <= 120 + 8 * len(given.picked)  # days and speakers come to it


@pytest.mark.parametrize("text", ["word " * 200_000, "字" * 300_000, "a" * 500_000, "? " * 100_000])
def test_an_endless_turn_is_cut(text: str) -> None:
    memory = UserMemory()
    said(memory, text, "I have two cats.", "I live in Oslo.")
    given = s.material(memory, "s1", START)
    assert given is not None
    assert all(len(source.text) <= material.MAX_CHARS for source in given.sources)


def test_a_long_session_is_told_of_its_newest_part_and_goes_on_from_what_was_told() -> None:
    memory = UserMemory()
    said(memory, *(f"Number {i} is about {TOPICS[i % 8]} and more." for i in range(3000)))
    first = s.material(memory, "s1", START)
    assert first is not None
    assert first.covers == first.messages == 3000
    assert len(first.sources) <= material.MAX_SOURCES + material.MAX_PICKED
    assert min(int(source.id[1:]) for source in first.sources) > 3000 - s.MAX_WALK
    told = set(memory.graph.heads_by_kind(summarised(memory, "s1"))["DERIVED_FROM"])
    said(memory, "The last one is about rain.")
    second = s.material(memory, "s1", START)
    assert second is not None
    assert {source.id for source in second.sources} == told | {"t3001"}


# -- what leaves a summary ----------------------------------------------------------------

AWAY: dict[str, Callable[[Writer, str], object]] = {
    "delete": lambda w, m: w.retire(m, "expired", "deleted"),
    "archive": lambda w, m: w.retire(m, "archived", "archived"),
    "a time to live": lambda w, m: w.edit(_edit(m)),
}


def _edit(memory_id: str) -> MemoryEdited:
    return changed(START + 1, memory_id, ttl_s=DAY)


@pytest.mark.parametrize("how", AWAY)
def test_what_is_put_away_leaves_every_summary_at_once(how: str) -> None:
    memory = UserMemory()
    chat(memory, 8)
    secret = kept(memory, "Ana's code is 4711.", sources=("t1",), topics=("codes",))
    kept(memory, "Bo's code is 1234.", topics=("codes",))
    topic = memory.graph.topics["codes"]
    made = [summarised(memory, subject) for subject in ("s1", topic, USER_NODE)]
    assert "4711" in node(memory, made[1]).text
    AWAY[how](writer(START + 1, memory), secret)
    shown = [node(memory, i) for i in made if secret in _sources(memory, i) or i == made[0]]
    assert {summary.retired_at for summary in shown if "4711" in summary.text} == {START + 1}
    assert check_memory(memory) == []
    for subject in list(due(memory, START, POLICY)):
        given = s.material(memory, subject, START)
        assert given is None or secret not in {source.id for source in given.sources}
        assert given is None or "4711" not in text_of(given)
    assert s.material(memory, topic, START) is None  # one statement is left


def _sources(memory: UserMemory, summary_id: str) -> set[str]:
    return set(memory.graph.heads_by_kind(summary_id).get("DERIVED_FROM", ()))


def test_a_turn_whose_memory_is_put_away_is_not_told_either() -> None:
    memory = UserMemory()
    turns = said(memory, "My code is 4711.", "I live in Oslo.", "我喜欢绿茶。", "Bo has a boat.")
    summary = summarised(memory, "s1")
    assert turns[0] in _sources(memory, summary)
    late = kept(memory, "Ana's code is 4711.", sources=(turns[0],))  # extracted afterwards
    writer(START + 1, memory).retire(late, "expired", "deleted")
    assert node(memory, summary).retired_at == START + 1
    assert list(due(memory, START, POLICY)) == ["s1"]
    again = summarised(memory, "s1")
    assert "4711" not in node(memory, again).text
    assert "Oslo" in node(memory, again).text
    assert list(due(memory, START, POLICY)) == []


def test_what_was_replaced_makes_the_users_summary_stale_and_stays_in_the_session() -> None:
    memory = UserMemory()
    ids = chat(memory, 6)
    session, user = summarised(memory, "s1"), summarised(memory, USER_NODE)
    told = next(i for i in ids if i in _sources(memory, user) & _sources(memory, session))
    writer(START + 1, memory).remember(fact("Ana is silent now."), (told,))
    assert [node(memory, i).retired_at for i in (session, user)] == [None, None]
    assert list(due(memory, START, POLICY)) == [USER_NODE]
    given = s.material(memory, USER_NODE, START)
    assert told not in {source.id for source in given.sources}  # type: ignore[union-attr]


def test_what_is_restored_comes_back() -> None:
    memory = UserMemory()
    chat(memory, 6)
    secret = kept(memory, "Ana's code is 4711, say 4711.", sources=("t1",), importance=1.0)
    writer(START, memory).retire(secret, "archived", "")
    summarised(memory, USER_NODE)
    summarised(memory, "s1")
    assert list(due(memory, START, POLICY)) == []
    writer(START, memory).restore(secret, "")
    assert list(due(memory, START, POLICY)) == [USER_NODE, "s1"]
    for subject in (USER_NODE, "s1"):
        given = s.material(memory, subject, START)
        assert secret in {source.id for source in given.sources}  # type: ignore[union-attr]


def test_a_summary_is_never_made_of_a_summary() -> None:
    memory = UserMemory()
    chat(memory, 8)
    first = summarised(memory, "s1")
    second = summarised(memory, "s1")
    assert node(memory, first).retired_at == START
    assert all(i[0] in "mt" for i in _sources(memory, second))
    assert memory.graph.summaries == {"s1": second}


# -- of a period or a topic -----------------------------------------------------------------


def test_a_topic_an_entity_and_a_period() -> None:
    memory = UserMemory()
    said(memory, "I saw Eva in Oslo.", "I met nobody at all today.")
    said(memory, "Rain fell on the roof all day.", session="other", at=START + DAY)
    kept(memory, "Ana saw Eva.", sources=("t1",), topics=("family",))
    assert is_named(memory, "Family")
    assert not is_named(memory, "school")
    whole = talk(memory, Period(), "", None, 200)
    assert whole.messages == 3
    assert text_of(whole).startswith("14 November 2023: Ana saw Eva. user: I met nobody")
    family = talk(memory, Period(), "family", named(memory, "family"), 200)
    assert (family.messages, text_of(family)) == (1, "14 November 2023: Ana saw Eva.")
    late = talk(memory, Period(since=START + 100, until=START + 2 * DAY), "", None, 200)
    assert (late.messages, late.from_at, late.to_at) == (1, START + 100, START + 2 * DAY)
    assert "Rain" in text_of(late)
    other = talk(memory, Period(session="other"), "", None, 200)
    assert (other.messages, other.from_at) == (1, START + DAY)
    nothing = talk(memory, Period(until=0.0), "", None, 200)
    assert (nothing.messages, nothing.sources, text_of(nothing)) == (0, (), "")
    with pytest.raises(UnknownMemoryError, match="no session 'x'"):
        talk(memory, Period(session="x"), "", None, 200)


# -- central statements ---------------------------------------------------------------------


def test_the_statement_that_is_like_the_others_is_central() -> None:
    texts = ["tea green cup", "tea green leaf", "tea cup leaf green", "rain roof", "piano"]
    like = central.likeness([frozenset(t.split()) for t in texts], [None] * 5)
    score = central.scores(like, [1.0] * 5)
    assert int(np.argmax(score)) == 2
    assert central.chosen(score, like, [1] * 5, 5, 5)[0] == 2
    assert central.chosen(score, like, [9] * 5, 1, 5) == [2]  # the best though it is too large


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefgh"), max_size=4), min_size=1, max_size=12),
    st.integers(1, 30),
    st.integers(1, 12),
)
def test_any_statements_can_be_rated(words: list[frozenset[str]], budget: int, most: int) -> None:
    like = central.likeness(words, [None] * len(words))
    assert like.shape == (len(words), len(words))
    assert (like >= 0).all()
    assert (like <= 1).all()
    score = central.scores(like, [1.0 + i for i in range(len(words))])
    assert np.isfinite(score).all()
    picked = central.chosen(score, like, [3] * len(words), budget, most)
    assert 1 <= len(picked) <= most
    assert len(set(picked)) == len(picked)
    assert 3 * len(picked) <= max(3, budget)


def test_vectors_decide_where_words_do_not() -> None:
    rng = np.random.default_rng(1)
    near = rng.normal(size=16)
    vectors = [near + 0.1 * rng.normal(size=16) for _ in range(3)]
    vectors += [rng.normal(size=16) for _ in range(5)]
    units = [(v / np.linalg.norm(v)).astype(np.float32) for v in vectors]
    words = [frozenset({f"w{i}"}) for i in range(8)]
    score = central.scores(central.likeness(words, units), [1.0] * 8)
    assert set(np.argsort(-score)[:3].tolist()) == {0, 1, 2}


_PROGRAM = """
from test_summaries import chat, summarised, UserMemory, USER_NODE, state_digest, node
memory = UserMemory()
chat(memory, 40)
made = [summarised(memory, subject) for subject in ("s1", USER_NODE)]
print([node(memory, i).text for i in made], state_digest(memory))
"""


def test_hash_seeds_and_snapshots_change_nothing() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            capture_output=True,
            check=True,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": str(Path(__file__).parent),
            },
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(found) == 1
    memory = UserMemory()
    ids = chat(memory, 12)
    summarised(memory, "s1")
    writer(START, memory).retire(ids[0], "expired", "")
    again = decode_snapshot(encode_snapshot(memory))
    assert state_digest(again) == state_digest(memory)
    assert (again.graph.summaries, again.graph.outdated, again.graph.veiled) == (
        memory.graph.summaries,
        memory.graph.outdated,
        memory.graph.veiled,
    )
    assert list(due(again, START, ALL)) == list(due(memory, START, ALL))
    for subject in due(again, START, ALL):
        assert s.material(again, subject, START) == s.material(memory, subject, START)
    assert isinstance(again.graph.node(ids[0]), Memory)


# -- whatever is done ------------------------------------------------------------------------

TELLING = ("keep", "say", "say and keep", "extract")
ACTS = (*TELLING, "replace", "delete", "archive", "restore", "end", "summarise")


@example([("say", 0)] * 3 + [("summarise", 0), ("extract", 0), ("delete", 0), ("summarise", 0)])
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 9)), max_size=40))
def test_no_summary_shows_what_was_put_away(acts: list[tuple[str, int]]) -> None:
    """Each statement has a word of its own; a turn has the words of the memory that it gave."""
    memory = UserMemory()
    ids: list[str] = []
    for step, (act, number) in enumerate(acts):
        if act == "summarise":
            for subject in list(due(memory, START + step, ALL)):
                if s.material(memory, subject, START + step) is not None:
                    told = node(memory, summarised(memory, subject, START + step)).text
                    assert not _words(told) & _words_of(memory, ids, lambda m: m.status != "active")
        elif act in TELLING:
            _tell(memory, ids, act, number, step)
        elif ids:
            _change(memory, ids, act, ids[number % len(ids)], step)
        away = _words_of(memory, ids, check._is_put_away)
        for summary in memory.graph.nodes(Summary):
            assert isinstance(summary, Summary)
            assert summary.retired_at is not None or not _words(summary.text) & away
        assert check_memory(memory) == []
    assert state_digest(decode_snapshot(encode_snapshot(memory))) == state_digest(memory)


def _text(step: int) -> str:
    return f"Ana counted word{step}x on the {TOPICS[step % 8]}."


def _tell(memory: UserMemory, ids: list[str], act: str, number: int, step: int) -> None:
    text, at = _text(step), START + step
    if act == "keep":
        ids.append(kept(memory, text, at, topics=(f"topic {number % 2}",)))
        return
    if act == "extract":  # of a turn that may have been told already
        turns = [t.id for t in memory.graph.nodes(Message) if not material.made_of(memory, t.id)]
        if turns:
            ids.append(kept(memory, memory.text_of(turns[0]) or "", at, sources=(turns[0],)))
        return
    (turn,) = said(memory, text, session=f"s{number % 2}", at=at)
    if act == "say and keep":
        ids.append(kept(memory, text, at, sources=(turn,)))


def _change(memory: UserMemory, ids: list[str], act: str, old: str, step: int) -> None:
    made, known = writer(START + step, memory), memory.graph.get(old, Memory)
    if act == "replace" and known.retired_at is None:
        ids.append(made.remember(fact(_text(step), valid_from=START + step), (old,)))
    elif act == "restore" and known.status != "active":
        made.restore(old, "")
    elif act == "end":
        made.edit(changed(START + step, old, ttl_s=DAY))
    elif act in {"delete", "archive"}:
        made.retire(old, "expired" if act == "delete" else "archived", "")


def _words(text: str) -> set[str]:
    return set(re.findall(r"word\d+x", text))


def _words_of(memory: UserMemory, ids: list[str], which: Callable[[Memory], bool]) -> set[str]:
    nodes = [memory.graph.get(i, Memory) for i in ids]
    return {word for m in nodes if which(m) for word in _words(m.text)}
