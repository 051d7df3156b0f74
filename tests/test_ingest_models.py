"""The ingestor and a language model: who pays, budgets that are spent, and caps on calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_language import FakeLanguageModel
from support import fact, opened

from reverie import Runtime
from reverie.actors import ingest
from reverie.memory_graph.drafts import Decision, Known, MemoryDraft
from reverie.memory_graph.errors import BudgetExceededError
from reverie.models.protocol import Extraction, LanguageModel, Turn
from reverie.models.usage import Budget, Meter, MeteredLanguageModel, Usage


class Asks:
    """An extractor and decider that ask a model `calls` times for each turn, and once a draft."""

    def __init__(self, model: LanguageModel, calls: int = 1) -> None:
        self._model = model
        self._calls = calls

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        for turn in turns:
            for _ in range(self._calls * (100 if "endless" in turn.text else 1)):
                self._model.complete(turn.text, max_tokens=2)
        return [Extraction(turn.id, (fact(turn.text, sources=(turn.id,)),)) for turn in turns]

    def decide(self, draft: MemoryDraft, known: Sequence[Known]) -> Decision:
        self._model.choose([draft.text], ["a", "b"])
        return Decision("ADD")


def metered(budget: Budget | None = None) -> MeteredLanguageModel:
    model = FakeLanguageModel(lambda _: "one two three")
    return MeteredLanguageModel(model, Meter(budget), clock=lambda: 0.0)


def wait_until_done(rt: Runtime, user: str) -> None:
    for _ in range(500):
        if not rt.user(user).stats().pending:
            return
        threading.Event().wait(0.02)
    pytest.fail("turns go on waiting")


def test_calls_are_charged_to_the_user_and_the_purpose(tmp_path: Path) -> None:
    model = metered()
    asks = Asks(model)
    with opened(tmp_path / "data", extractor=asks, decider=asks) as rt:
        rt.user("ana").add("I like tea.", wait=True)  # in this thread
        rt.user("李雷", "game").add(["我喜欢茶。", "你好。"])  # in the background
        rt.drain(30)
    rows = {(r.world, r.user_id, r.purpose): r.usage for r in model.meter.rows()}
    assert rows == {
        ("default", "ana", "extract"): Usage(1, prompt_tokens=3, completion_tokens=2),
        ("default", "ana", "decide"): Usage(1, prompt_tokens=3),
        ("game", "李雷", "extract"): Usage(2, prompt_tokens=8, completion_tokens=4),
        ("game", "李雷", "decide"): Usage(2, prompt_tokens=8),
    }


def test_turns_wait_until_there_is_a_budget_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "RETRY_S", 0.05)
    model = metered(Budget(calls=3))
    asks = Asks(model)
    with opened(tmp_path / "data", extractor=asks, decider=asks) as rt:
        rt.user("ana").add(["I like tea.", "我喜欢茶。"])
        with pytest.raises(BudgetExceededError) as caught:
            rt.drain(30)
        assert (caught.value.user_id, caught.value.budget) == ("ana", "calls")  # type: ignore[attr-defined]
        assert rt.user("ana").stats().pending == 2
        rt.user("bo").add("I like tea, too.")  # has a budget of his own
        wait_until_done(rt, "bo")
        assert rt.quarantined() == []
        assert model.meter.used("default", "ana").calls == 3
        model.meter.set_budget("default", "ana", Budget(calls=20))
        wait_until_done(rt, "ana")
        assert rt.user("ana").stats().memories == 2
        assert rt.ingestor.counts.failed == 0


def test_a_turn_that_asks_without_end_is_quarantined(tmp_path: Path) -> None:
    model = metered()
    asks = Asks(model)
    with opened(tmp_path / "data", extractor=asks, decider=asks) as rt:
        rt.user("ana").add(["I like tea.", "An endless tale. 没完没了。", "I like milk."])
        rt.drain(30)
        (user,) = rt.quarantined()
        assert len(user.turn_ids) == 1
        assert f"{ingest.MODEL_CALLS} model calls" in user.errors[0]
        assert rt.user("ana").stats().memories == 2
    assert model.meter.used("default", "ana").calls < 10 * ingest.MODEL_CALLS
