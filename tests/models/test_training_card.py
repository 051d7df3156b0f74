"""How thresholds are chosen and figures counted, with answers made here."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from reverie.memory_graph.drafts import Known
from reverie.models.prompts import PAIR_CHOICES, SpanFact, format_spans
from reverie.models.standin import HashEmbedder
from reverie.models.training import LABELS, Pair, SpanCase, card, cases, deciding
from reverie.models.training.decisions import Case, KnownMemory
from reverie.models.training.pairs import Label


def pair(label: Label, number: int = 0, language: str = "en") -> Pair:
    return Pair(f"old {number}", f"new {number}", label, "home", "near", language)  # type: ignore[arg-type]


def sure(label: Label, share: float) -> list[float]:
    rest = (1 - share) / 3
    return [share if name == label else rest for name in LABELS]


class Asked:
    """A model that answers by the number in the question."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        assert tuple(choices) == PAIR_CHOICES
        assert adapter == "pair"
        self.batches.append(len(prompts))
        return [sure(LABELS[int(p.split("old ")[1].split("\n")[0]) % 4], 0.9) for p in prompts]


class Sure:
    """A model that calls every pair replaced, and is surer the higher a number in the question."""

    info = None

    def __init__(self) -> None:
        self.asked = 0

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        self.asked += len(prompts)
        return [sure("replaced", 0.9 if "orbs" in p else 0.7) for p in prompts]


def case(number: int, *, changed: bool, op: str = "") -> deciding.Asked:
    """A change that the model is sure of, or two matters that it takes for one, less surely."""
    thing = "orbs" if changed else "lamps"
    memories = (KnownMemory(1, f"Zanthor tends {thing} by the lake no {number}"),)
    made = Case(
        id=f"v{number}",
        lang="en",
        kind="x",
        shape="changed" if changed else "near",
        split="validation",
        memories=memories,
        candidate=f"Zanthor juggles {thing} by the lake no {number}",
        op=op or ("UPDATE" if changed else "ADD"),  # type: ignore[arg-type]
        target=1 if changed and not op else None,
    )
    known = [Known("1", memories[0].text, similarity=0.8)]
    return deciding.Asked(made, known)


def test_a_threshold_keeps_harm_rare() -> None:
    asked = [case(i, changed=i % 2 == 0) for i in range(40)]
    memo = deciding.Memo(Sure(), "pair")  # type: ignore[arg-type]
    found = deciding.choose_thresholds(memo, asked)  # type: ignore[arg-type]
    assert 0.7 < found["replaced"] <= 0.9
    assert deciding.decide_cases(memo, asked, found) == (40, 0)  # type: ignore[arg-type]
    loose = {**found, "replaced": 0.5}
    assert deciding.decide_cases(memo, asked, loose) == (20, 20)  # type: ignore[arg-type]


def test_a_classifier_that_is_never_rarely_wrong_changes_nothing() -> None:
    asked = [case(i, changed=True, op="ADD") for i in range(20)]
    memo = deciding.Memo(Sure(), "pair")  # type: ignore[arg-type]
    found = deciding.choose_thresholds(memo, asked)  # type: ignore[arg-type]
    assert deciding.decide_cases(memo, asked, found) == (20, 0)  # type: ignore[arg-type]


def test_a_memory_too_far_away_is_not_asked_about() -> None:
    near = case(1, changed=True)
    far = near._replace(known=[msgspec.structs.replace(near.known[0], similarity=0.1)])
    follow = {"replaced": 0.5, "ended": 0.5}
    assert deciding.decide_cases(Sure(), [near], follow) == (1, 0)  # type: ignore[arg-type]
    assert deciding.decide_cases(Sure(), [far], follow) == (0, 0)  # type: ignore[arg-type]


def test_memories_come_nearest_first() -> None:
    embedder = HashEmbedder()
    found = deciding.with_memories(cases("test", 40), {"en": embedder, "zh": embedder})
    assert {item.case.lang for item in found} == set(deciding.NEARNESS)
    for item in found:
        assert {known.id for known in item.known} == {str(m.id) for m in item.case.memories}
        near = [known.similarity for known in item.known]
        assert near == sorted(near, reverse=True)


def test_a_memo_asks_each_question_once() -> None:
    model = Sure()
    memo = deciding.Memo(model, "pair")  # type: ignore[arg-type]
    assert memo.choose(["a", "b"], PAIR_CHOICES) == memo.choose(["b", "a"], PAIR_CHOICES)
    assert model.asked == 2


def test_an_answer_below_its_threshold_changes_nothing() -> None:
    assert card.followed(sure("ended", 0.8), {"ended": 0.9}) == "unrelated"
    assert card.followed(sure("ended", 0.95), {"ended": 0.9}) == "ended"
    assert card.followed(sure("unrelated", 0.4), {"ended": 0.9}) == "unrelated"


def test_figures_count_harm_apart() -> None:
    pairs = [pair("replaced"), pair("unrelated"), pair("same", language="zh"), pair("ended")]
    rows = [
        sure("replaced", 0.9),
        sure("ended", 0.9),  # harmful
        sure("unrelated", 0.9),  # a spare statement
        sure("ended", 0.6),  # not sure enough
    ]
    found = card.measure(pairs, rows, {"replaced": 0.8, "ended": 0.8, "same": 0.8})
    assert found.right == 0.5
    assert found.followed_right == 0.25
    assert found.harmful == 0.25
    assert found.kept == 0.5
    assert found.by_language == {"en": 0.333, "zh": 0.0}


def test_the_bare_model_and_an_adapter_are_asked_alike() -> None:
    model = Asked()
    pairs = [pair(LABELS[i % 4], i) for i in range(100)]
    rows = card.ask(model, pairs, "pair")  # type: ignore[arg-type]
    assert model.batches == [64, 36]
    assert card.measure(pairs, rows, {}).right == 1.0


@pytest.mark.parametrize(
    ("said", "precision", "recall"),
    [
        ("User | lives_in | Oslo\nUser | likes | tea", 1.0, 1.0),
        ("User | lives_in | Oslo", 1.0, 0.5),
        ("User | lives_in | Oslo\nUser | likes | Oslo", 0.5, 0.5),
        ("none", 0.0, 0.0),
    ],
)
def test_span_figures_are_of_whole_lines(said: str, precision: float, recall: float) -> None:
    facts = (SpanFact("User", "lives_in", "Oslo"), SpanFact("User", "likes", "tea"))
    case = SpanCase("User", "I live in Oslo and love tea", (), facts, "en")
    assert format_spans(facts).count("\n") == 1
    found = card.measure_spans([case], [said])
    assert (found.precision, found.recall) == (precision, recall)


def test_span_figures_count_what_fires_on_nothing() -> None:
    case = SpanCase("用户", "好的，谢谢你！", (), (), "zh")
    assert card.measure_spans([case], ["none"]).fires_on_idle == 0
    assert card.measure_spans([case], ["用户 | likes | 谢谢"]).fires_on_idle == 1
