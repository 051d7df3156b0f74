"""How much statements matter, by what they say and by what is known already."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.drafts import MemoryDraft
from reverie.models.protocol import Turn
from reverie.models.rules import RulesExtractor
from reverie.models.rules.importance import (
    EXPLICIT,
    FAMILIAR,
    HIGHEST,
    KEPT_FROM,
    importance_of_text,
    is_asked_for,
    is_worth_keeping,
    novelty,
    weighed,
)

shares = st.floats(0, 1)
cosines = st.lists(st.floats(-1, 1), max_size=12)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("The soup was warm there.", "I loved the soup there."),  # emotion
        ("User thinks about the job.", "User quit the job."),  # decision
        ("User has a meeting.", "User has a meeting at 14:30."),  # number
        ("用户在想这份工作", "用户决定辞职"),
        ("用户有猫", "用户有三只猫"),
        ("用户住在这里", "用户痛恨住在这里"),
    ],
)
def test_emotion_decisions_and_numbers_weigh(less: str, more: str) -> None:
    assert importance_of_text(less) < importance_of_text(more)


def test_names_weight_and_certainty_count() -> None:
    plain = importance_of_text("x")
    assert importance_of_text("x", names=2) > plain
    assert importance_of_text("x", weighty=True) > plain
    assert importance_of_text("x", sure=False) < plain
    best = importance_of_text("I married Ana and quit, 3 decided!", 0.5, names=3, weighty=True)
    assert best == HIGHEST < EXPLICIT


@pytest.mark.parametrize(
    "text",
    ["Remember that I park on level 3.", "Keep in mind that I work nights.",
     "Don't forget that I fly on Friday.", "记住我对花生过敏。",
     "别忘了我周五要去医院。", "请记一下，密码在抽屉里。"],
)  # fmt: skip
def test_what_is_asked_for_is_of_highest_importance(text: str) -> None:
    assert is_asked_for(text)
    (found,) = RulesExtractor().extract([Turn("t1", "user", "user", text, 0.0)], [])
    (draft,) = found.memories
    assert (draft.importance, draft.pinned) == (EXPLICIT, True)


@pytest.mark.parametrize(
    "text", ["I remember Oslo.", "Do you remember me?", "我记得他。", "We note a change.", ""]
)
def test_remembering_is_not_asking(text: str) -> None:
    assert not is_asked_for(text)


@given(cosines)
def test_novelty_falls_with_the_nearest(similar: list[float]) -> None:
    new = novelty(similar)
    assert 0.0 <= new <= 1.0
    assert novelty([*similar, 1.0]) == 0.0
    assert novelty([*similar, 0.3]) <= new
    assert novelty([]) == 1.0
    assert novelty([0.85], 0.95) == pytest.approx(0.75)
    assert novelty([0.85], 0.95) > novelty([0.85])


@given(importance=shares, similar=cosines, pinned=st.booleans(), polarity=st.sampled_from([1, -1]))
def test_what_is_known_matters_less_but_nothing_is_lost_by_it(
    importance: float, similar: list[float], *, pinned: bool, polarity: int
) -> None:
    draft = MemoryDraft("x", importance=importance, pinned=pinned, polarity=polarity)
    new = weighed(draft, similar)
    assert importance * (1 - FAMILIAR) - 0.01 <= new.importance <= importance + 0.01
    if pinned or polarity < 0 or importance == EXPLICIT:
        assert new == draft
    if novelty(similar) == 1.0:
        assert new == draft


@given(shares, shares)
def test_the_threshold_keeps_what_was_asked_for_and_what_corrects(
    importance: float, least: float
) -> None:
    draft = MemoryDraft("x", importance=importance)
    assert is_worth_keeping(draft, least) == (importance >= least)
    assert is_worth_keeping(MemoryDraft("x", importance=importance, pinned=True), least)
    assert is_worth_keeping(MemoryDraft("x", importance=importance, polarity=-1), least)
    assert is_worth_keeping(draft, 0.0)


def test_the_proposed_threshold_drops_no_claim_that_is_new() -> None:
    said = ["I live in Oslo.", "I like figs.", "I went to the market with Ana.", "我喜欢喝茶。"]
    turns = [Turn(f"t{i}", "user", "user", text, 0.0) for i, text in enumerate(said)]
    drafts = [d for e in RulesExtractor().extract(turns, []) for d in e.memories]
    assert len(drafts) == len(said)
    assert all(is_worth_keeping(weighed(d, [0.5]), KEPT_FROM) for d in drafts)
    assert not is_worth_keeping(MemoryDraft("ok", importance=importance_of_text("ok")), KEPT_FROM)
