"""The signals of the ranking against slow, plain twins, and what must not change them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support import DAY, DIM, START, fact, vector, writer

from reverie.memory_graph import nodes as n, signals, text as analysis, words
from reverie.memory_graph.asked import Entries
from reverie.memory_graph.drafts import EntityDraft, TurnDraft, TurnOutcome
from reverie.memory_graph.filters import compile_filter
from reverie.memory_graph.passages import EARLIER, K1, LATER, MIX, MIX_REACH, REACH, B
from reverie.memory_graph.search import Query, search
from reverie.memory_graph.signals import AFTER_S, BEFORE_S, WEIGHTS
from reverie.memory_graph.snapshot import decode_snapshot, encode_snapshot
from reverie.memory_graph.state import UserMemory
from reverie.memory_graph.views import Hit
from reverie.memory_graph.visible import Moment
from reverie.memory_graph.write import Writer
from reverie.models.standin import HashEmbedder

WORDS = "tea bees mill Oslo ferry gate harbour ? yesterday two 绿茶 上海 蜜蜂 昨天 三个".split()
SPEAKERS = ("Ana", "Bo", "小明")

Said = tuple[str, str, str]  # session, speaker, text

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
said = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(SPEAKERS), texts)
talks = st.lists(said, min_size=1, max_size=14)


def talked(said: Sequence[Said], *, with_vectors: bool = True) -> Writer:
    """Return a memory of a conversation, a turn a day."""
    made = writer()
    for day, (session, speaker, text) in enumerate(said):
        made.at = START + day * DAY
        data = vector(text) if with_vectors else None
        made.turns([TurnDraft(text, session, speaker, vector=data)], pending=False)
    return made


def synced(memory: UserMemory) -> UserMemory:
    memory.words.settle()
    memory.passages.sync(memory.graph, memory.words)
    return memory


def entries(memory: UserMemory, question: str) -> Entries:
    return memory.words.ask(analysis.query_terms(question)).entries()


def chains(said: Sequence[Said]) -> dict[str, list[int]]:
    """Return the rows of each session, in order."""
    found: dict[str, list[int]] = {}
    for row, (session, _, _) in enumerate(said):
        found.setdefault(session, []).append(row)
    return found


def neighbours(said: Sequence[Said], row: int, reach: int) -> dict[int, int]:
    """Return {other row of the session: how far after `row` it stands}, itself too."""
    chain = chains(said)[said[row][0]]
    place = chain.index(row)
    return {other: at - place for at, other in enumerate(chain) if abs(at - place) <= reach}


def bm25(
    documents: Sequence[dict[str, float]],
    lengths: Sequence[float],
    terms: Sequence[str],
    having: Callable[[str], int],
    total: int,
) -> list[float]:
    mean = sum(lengths) / len(lengths)
    scores = []
    for counts, length in zip(documents, lengths, strict=True):
        score = 0.0
        for term in terms:
            idf = math.log1p((total - having(term) + 0.5) / (having(term) + 0.5))
            amount = counts.get(term, 0.0)
            norm = K1 * (1 - B + B * length / (mean or 1.0))
            score += idf * (K1 + 1) * amount / (amount + norm) if amount else 0.0
        scores.append(score)
    return scores


def counted(text: str, share: float = 1.0) -> dict[str, float]:
    found: dict[str, float] = {}
    for term in analysis.terms(text):
        found[term] = found.get(term, 0.0) + share
    return found


def together(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    return {term: sum(p.get(term, 0.0) for p in parts) for part in parts for term in part}


# -- each against its twin ----------------------------------------------------------------


@pytest.mark.parametrize("small", [0, 512])  # an index answers in two ways
@given(said=talks, question=texts)
def test_around_is_bm25_over_a_window(small: int, said: list[Said], question: str) -> None:
    with mock.patch.object(words, "_FEW", small):
        memory = synced(talked(said).memory)
        counts = [counted(text) for _, _, text in said]
        windows, lengths = [], []
        for row in range(len(said)):
            shares = {
                other: EARLIER**-off if off < 0 else LATER**off
                for other, off in neighbours(said, row, REACH).items()
            }
            windows.append(together([counted(said[o][2], s) for o, s in shares.items()]))
            lengths.append(sum(s * sum(counts[o].values()) for o, s in shares.items()))
        terms = [term for term, _ in analysis.query_terms(question)]
        having = [sum(term in d for d in counts) for term in terms]
        wanted = bm25(
            windows, lengths, terms, dict(zip(terms, having, strict=True)).__getitem__, len(said)
        )
        mean = sum(lengths) / len(lengths) or 1.0
        norms = [K1 * (1 - B + B * length / mean) for length in lengths]
        assert memory.passages.window_norm == pytest.approx(norms)
        own = memory.words.ask(analysis.query_terms(question)).array()
        found = signals.around(entries(memory, question), memory.passages, own)
        assert found == pytest.approx(wanted, abs=1e-9)
        with mock.patch.object(signals, "MANY", 0):  # then only what is near the best is looked at
            near = signals.around(entries(memory, question), memory.passages, own)
            assert near == pytest.approx(found, abs=1e-9)
            with mock.patch.object(signals, "NEAR_BEST", 1):
                near = signals.around(entries(memory, question), memory.passages, own)
                best = int(np.argmax(own))
                assert near[best] == pytest.approx(found[best])
                assert (near <= found + 1e-9).all()


@given(said=talks, question=texts)
def test_session_is_bm25_of_whole_sessions(said: list[Said], question: str) -> None:
    made = talked(said)
    made.remember(fact("a memory with honey bees 蜜蜂", sources=("t1",)))
    made.remember(fact("another with tea 绿茶"))
    memory = synced(made.memory)
    sessions = chains(said)
    documents = [together([counted(said[r][2]) for r in rows]) for rows in sessions.values()]
    lengths = [sum(d.values()) for d in documents]
    terms = list({term for term, _ in analysis.query_terms(question)})  # each once
    wanted = dict(
        zip(
            sessions,
            bm25(
                documents,
                lengths,
                terms,
                lambda term: sum(term in d for d in documents),
                len(sessions),
            ),
            strict=True,
        )
    )
    found = signals.session(entries(memory, question), memory.passages)
    by_row = [wanted[session] for session, _, _ in said]
    # A memory counts with the session of the turn that it comes from; one without has none.
    assert found == pytest.approx([*by_row, wanted[said[0][0]], 0.0], abs=1e-9)


@given(said=talks, names=st.sets(st.sampled_from(SPEAKERS)))
def test_speaker_is_who_said_it(said: list[Said], names: set[str]) -> None:
    memory = synced(talked(said).memory)
    ids = {e.id for name in names if (e := memory.graph.entity_named(name)) is not None}
    found = signals.speaker(memory.passages, ids)
    spoke = [float(speaker in names) for _, speaker, _ in said]
    assert (found is None) == (not any(spoke))
    if found is not None:
        assert found.tolist() == spoke


def test_time_decays_more_slowly_after_than_before() -> None:
    made = talked([("a", "Ana", "x")] * 60)
    memory = synced(made.memory)
    start, end = START + 20 * DAY, START + 30 * DAY
    found = signals.time(memory.passages, [(start, end)])
    assert found[20:31].tolist() == [1.0] * 11
    assert found[37] == pytest.approx(math.exp(-7 * DAY / AFTER_S))
    assert found[17] == pytest.approx(math.exp(-3 * DAY / BEFORE_S))
    assert (np.diff(found[30:]) < 0).all()
    assert (np.diff(found[:21]) > 0).all()
    twice = signals.time(memory.passages, [(start, end), (START, START + DAY)])
    assert (twice >= found).all()
    assert twice[0] == 1.0
    assert signals.time(memory.passages, []).tolist() == [0.0] * 60


ANSWERS = [
    ("When did Ana go?", [1.0, 0.0, 0.0, 0.0, 0.0]),
    ("How many has she?", [0.0, 1.0, 0.0, 0.0, 1.0]),
    ("Who came?", [0.0, 0.0, 0.5, 1.0, 0.0]),
    ("How long ago was that?", [1.0, 1.0, 0.0, 0.0, 1.0]),
    ("什么时候去的？", [1.0, 0.0, 0.0, 0.0, 0.0]),
    ("有几个？", [0.0, 1.0, 0.0, 0.0, 1.0]),
    ("谁来了？", [0.0, 0.0, 0.5, 1.0, 0.0]),
]


@pytest.mark.parametrize(("question", "wanted"), ANSWERS)
def test_answer_is_what_is_asked_for(question: str, wanted: list[float]) -> None:
    said = ["I went yesterday.", "She has two.", "He saw Carla.", "He saw Dora and Emil.", "三个。"]
    memory = synced(talked([("a", "Ana", text) for text in said]).memory)
    found = signals.answer(memory.passages, question)
    assert found is not None
    assert found.tolist() == wanted


def test_a_question_that_asks_for_nothing_has_no_answer() -> None:
    memory = synced(talked([("a", "Ana", "Two came yesterday.")]).memory)
    assert signals.answer(memory.passages, "What does she like?") is None
    assert signals.answer(memory.passages, "她喜欢什么？") is None


@given(said=talks)
def test_length_is_a_z_score_of_different_words(said: list[Said]) -> None:
    memory = synced(talked(said).memory)
    logs = [math.log1p(len(counted(text))) for _, _, text in said]
    mean, spread = float(np.mean(logs)), float(np.std(logs))
    found = memory.passages.fixed.get("length", np.zeros(len(said)))
    if spread > 1e-6:
        wanted = [(x - mean) / spread for x in logs]
        assert found == pytest.approx(wanted, abs=1e-4)
    else:
        assert np.abs(found).max() < 1.1  # nothing to tell them apart by but rounding


def test_names_questions_and_replies() -> None:
    said = [
        ("a", "Ana", "Where is Carla?"),
        ("a", "Bo", "With Ana and Dora in Rome."),  # Ana speaks here: her name is no news
        ("b", "Ana", "Is it? Yes."),
        ("b", "小明", "《红楼梦》好看吗？"),
        ("b", "小明", "好看。"),
    ]
    columns = synced(talked(said).memory).passages.columns
    assert np.expm1(columns["names"]).round(3).tolist() == [1.0, 2.0, 0.0, 2.0, 0.0]
    assert columns["asks"].tolist() == [True, False, False, True, False]
    assert columns["replies"].tolist() == [False, True, False, True, True]


def mix(said: Sequence[Said], question: str, lacking: frozenset[int] = frozenset()) -> list[float]:
    """The twin of `mixed`: the cosine with the sum of the vectors around, NaN without an own."""
    embedder = HashEmbedder(DIM)
    query = embedder.embed([question], "query")[0].astype(float)
    rows = embedder.embed([text for _, _, text in said], "passage").astype(float)
    found = []
    for row in range(len(said)):
        whole = np.zeros(DIM)
        for other, off in neighbours(said, row, MIX_REACH).items():
            if other not in lacking:
                whole += MIX ** abs(off) * rows[other]
        found.append(
            math.nan if row in lacking else float(query @ whole / (np.linalg.norm(whole) or 1.0))
        )
    return found


def mixed(memory: UserMemory, question: str) -> list[float]:
    """Return the mixed cosines of all rows, as a search computes them."""
    synced(memory)
    index = memory.vectors
    assert index is not None
    query = HashEmbedder(DIM).embed([question], "query")[0]
    rows = memory.passages.vector_rows(memory.words, index.table)
    every = np.arange(memory.passages.count)
    near = index.search(query, 50)
    cosines = index.cosines(query, near, np.arange(len(index.table.ids)))
    found, _ = signals.mixed(memory.passages, every, rows, cosines, index.table)
    shown: list[float] = np.where(rows >= 0, found, math.nan).tolist()
    return shown


@given(said=talks, more=talks, question=texts)
def test_meaning_is_mixed_with_the_vectors_around(
    said: list[Said], more: list[Said], question: str
) -> None:
    made = talked(said)
    assert mixed(made.memory, question) == pytest.approx(mix(said, question), abs=1e-5)
    for session, speaker, text in more:  # the norms that are kept must follow
        made.turns([TurnDraft(text, session, speaker, vector=vector(text))], pending=False)
    whole = [*said, *more]
    assert mixed(made.memory, question) == pytest.approx(mix(whole, question), abs=1e-5)


@given(said=talks, lacking=st.sets(st.integers(0, 13)), question=texts)
def test_vectors_that_come_later_are_mixed_in(
    said: list[Said], lacking: set[int], question: str
) -> None:
    late = frozenset(row for row in lacking if row < len(said) - 1)
    made = writer()
    for row, (session, speaker, text) in enumerate(said):
        data = None if row in late else vector(text)
        made.turns([TurnDraft(text, session, speaker, vector=data)], pending=True)
    found = mixed(made.memory, question)
    assert found == pytest.approx(mix(said, question, late), abs=1e-5, nan_ok=True)
    made.outcomes(
        [TurnOutcome(f"t{row + 1}", "skipped", vector(said[row][2])) for row in sorted(late)]
    )
    assert mixed(made.memory, question) == pytest.approx(mix(said, question), abs=1e-5)


# -- what must not change them --------------------------------------------------------------


def asked(memory: UserMemory, question: str, **fields: Any) -> list[Hit]:
    fields = {"moment": Moment(START + 99 * DAY), "limit": 50, **fields}
    query = HashEmbedder(DIM).embed([question], "query")[0]
    return search(memory, Query(question, query, **fields))


def close(ours: Sequence[Hit], theirs: Sequence[Hit]) -> None:
    """Assert that two answers are the same, up to the last bits of sums in another order."""
    assert [hit.id for hit in ours] == [hit.id for hit in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.parts == pytest.approx(other.parts, abs=1e-5)
        assert (one.text, one.reasons) == (other.text, other.reasons)


Step = Callable[[Writer], object]


def add_turn(kind: str, said: Said, made: Writer) -> None:
    session, speaker, text = said
    data = None if kind == "bare" else vector(text)
    made.turns([TurnDraft(text, session, speaker, vector=data)], pending=kind != "done")


def settle(made: Writer) -> None:
    """Settle every turn that waits, with its vector."""
    for node in list(made.graph.nodes(n.Message)):
        if isinstance(node, n.Message) and node.status == "pending":
            made.outcomes([TurnOutcome(node.id, "skipped", vector(node.text))])


def keep(text: str, made: Writer) -> None:
    names = tuple(EntityDraft(w) for w in text.split() if w.istitle())
    sources = ("t1",) if made.graph.node("t1") is not None else ()
    made.remember(fact(text, entities=names, sources=sources))


def replace(text: str, made: Writer) -> None:
    active = [i for ids in made.graph.statements.values() for i in ids]
    made.remember(fact(text), tuple(active[:1]))


steps = st.lists(
    st.one_of(
        st.builds(partial, st.just(add_turn), st.sampled_from(["bare", "pending", "done"]), said),
        st.just(settle),
        texts.map(lambda text: partial(keep, text)),
        texts.map(lambda text: partial(replace, text)),
    ),
    min_size=1,
    max_size=14,
)


@given(steps=steps, question=texts)
def test_it_does_not_matter_when_somebody_searched(steps: list[Step], question: str) -> None:
    often, once = writer(), writer()
    for day, step in enumerate(steps):
        often.at = once.at = START + day * DAY
        step(often)
        step(once)
        asked(often.memory, question)
    ours = asked(often.memory, question)
    close(ours, asked(once.memory, question))
    close(ours, asked(decode_snapshot(encode_snapshot(once.memory)), question))


@given(said=talks, question=texts)
def test_rows_that_are_dead_are_never_found(said: list[Said], question: str) -> None:
    made = talked(said)
    before = asked(made.memory, question)
    for row, (_, _, text) in enumerate(said):
        made.memory.words.add(f"t{row + 1}", text)  # again: the old rows die
    assert made.memory.words.analysed == len(said)
    found = asked(made.memory, question)
    assert len(found) == len({hit.id for hit in found})
    assert {hit.id for hit in before} == {hit.id for hit in found}


@given(said=talks, hidden=talks, question=texts)
def test_hidden_texts_do_not_lower_the_scores_of_others(
    said: list[Said], hidden: list[Said], question: str
) -> None:
    made = talked([*said, *((f"other {session}", "Bo", text) for session, _, text in hidden)])
    where = compile_filter({"session": {"in": ["a", "b", "c"]}}, made.memory)
    found = asked(made.memory, question, where=where)
    assert {hit.id for hit in found} <= {f"t{row + 1}" for row in range(len(said))}
    for name in ("words", "around", "session"):
        best = max((hit.parts.get(name, 0.0) for hit in found), default=0.0)
        assert best == pytest.approx(signals.weights_for(question)[name], abs=1e-4) or best == 0.0


def test_a_hidden_text_with_every_word_takes_nothing_from_the_others() -> None:
    made = talked([("a", "Ana", "tea and honey"), ("b", "Bo", "tea mill ferry gate harbour")])
    where = compile_filter({"session": "a"}, made.memory)
    (hit,) = asked(made.memory, "tea mill ferry gate harbour", where=where)
    for name in ("words", "around", "session"):
        assert hit.parts[name] == pytest.approx(WEIGHTS[name], abs=1e-4)


@given(said=talks, later=talks, question=texts)
def test_turns_that_were_said_later_change_nothing_as_of_before(
    said: list[Said], later: list[Said], question: str
) -> None:
    made = talked(said)
    then = Moment(START + 99 * DAY, as_of=START + (len(said) - 1) * DAY + 1.0)
    before = {hit.id: hit for hit in asked(made.memory, question, moment=then)}
    made.at = START + 50 * DAY
    for session, speaker, text in later:
        made.turns([TurnDraft(text, session, speaker, vector=vector(text))], pending=False)
    after = {hit.id: hit for hit in asked(made.memory, question, moment=then)}
    assert set(after) <= {f"t{row + 1}" for row in range(len(said))}
    for node_id, hit in after.items():
        old = before.get(node_id)
        # How rare a word is depends on all texts, as does the mean length; where nothing of the
        # question stands, nothing may come from what was said later.
        for name in ("words", "around", "session", "speaker", "answer", "replies", "asks"):
            was = 0.0 if old is None else old.parts.get(name, 0.0)
            assert (hit.parts.get(name, 0.0) == 0.0) == (was == 0.0), (name, node_id)


def test_the_meaning_of_what_was_said_later_is_not_mixed_in_as_of_before() -> None:
    made = talked([(f"talk {number}", "Ana", f"gate {number}") for number in range(40)])
    then = Moment(START + 99 * DAY, as_of=START + 45 * DAY)

    def meaning() -> float:
        hits = {hit.id: hit for hit in asked(made.memory, "honey bees", moment=then)}
        return hits["t1"].parts["meaning"]

    before = meaning()
    made.at = START + 50 * DAY
    made.turns([TurnDraft("honey bees", "talk 0", vector=vector("honey bees"))], pending=False)
    # Only the background that cosines are held against may move, and by one of forty.
    assert meaning() == pytest.approx(before, abs=0.1)
    now = {hit.id: hit for hit in asked(made.memory, "honey bees")}
    assert now["t1"].parts["meaning"] > before + 0.3
