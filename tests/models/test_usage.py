"""Who pays for a model call, what it cost, and budgets that hold."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_language import FakeLanguageModel

from reverie.memory_graph.errors import (
    BudgetExceededError,
    ModelFailedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from reverie.memory_graph.ids import Key
from reverie.models import usage
from reverie.models.language import HostedModel
from reverie.models.protocol import ChatMessage, Completion, LanguageModelInfo
from reverie.models.usage import (
    NOBODY,
    Budget,
    Meter,
    MeteredLanguageModel,
    Usage,
    UsageRow,
    calls_left,
    charged_to,
    purpose,
)


def echo(prompt: str) -> str:
    return "one two three"


def metered(
    budget: Budget | None = None, model: FakeLanguageModel | None = None
) -> tuple[MeteredLanguageModel, Meter, FakeLanguageModel]:
    model = model or FakeLanguageModel(echo)
    meter, now = Meter(budget), iter(range(1000))
    return MeteredLanguageModel(model, meter, clock=lambda: float(next(now))), meter, model


def test_calls_are_counted_by_user_and_purpose() -> None:
    model, meter, _ = metered()
    assert isinstance(model, HostedModel)
    with charged_to("game", "李雷"):
        with purpose("extract"):
            model.complete("你好 hello", max_tokens=9)
            model.complete([ChatMessage("user", "x y")], max_tokens=2)
        with purpose("decide"):
            model.choose(["a b", "c"], ["x", "y"])
    with charged_to("game", "ana"):
        model.complete("x", max_tokens=9)
    model.complete("x", max_tokens=9)
    assert meter.rows("game") == [
        UsageRow("game", "ana", "other", Usage(1, 0, 0, 1, 3, 1.0)),
        UsageRow("game", "李雷", "decide", Usage(1, 0, 0, 3, 0, 1.0)),
        UsageRow("game", "李雷", "extract", Usage(2, 0, 0, 4 + 3, 3 + 2, 2.0)),
    ]
    assert meter.used(*NOBODY) == Usage(1, 0, 0, 1, 3, 1.0)
    assert meter.used("game", "李雷").tokens == 15
    assert meter.total().calls == 5
    assert meter.used("game", "nobody yet") == Usage()


def test_a_budget_of_calls_is_kept_per_user() -> None:
    model, meter, inner = metered(Budget(calls=2))
    for user in ("ana", "bo"):
        with charged_to("w", user), purpose("extract"):
            for _ in range(2):
                model.complete("x", max_tokens=1)
            with pytest.raises(BudgetExceededError) as caught:
                model.complete("x", max_tokens=1)
        assert caught.value.details == {
            "world": "w",
            "user_id": user,
            "budget": "calls",
            "limit": 2,
        }
        assert (meter.used("w", user).calls, meter.used("w", user).refused) == (2, 1)
    assert len(inner.calls) == 4
    for _ in range(5):
        model.complete("x", max_tokens=1)  # nobody's
    meter.set_budget("w", "ana", Budget(calls=3))
    with charged_to("w", "ana"):
        model.choose(["x"], ["a", "b"])
        with pytest.raises(BudgetExceededError):
            model.choose(["x"], ["a", "b"])
        meter.set_budget("w", "ana", None)
        meter.reset("w", "ana")
        model.complete("x", max_tokens=1)
    assert meter.used("w", "ana") == Usage(1, 0, 0, 1, 1, 1.0)


def test_a_budget_of_tokens_is_never_overrun() -> None:
    model, meter, inner = metered(Budget(tokens=20))
    with charged_to("w", "ana"):
        with pytest.raises(BudgetExceededError):
            model.complete("a b c", max_tokens=18)  # may become 21
        assert inner.calls == []
        model.complete("a b c", max_tokens=17)  # becomes 6
        model.choose(["a b c d", "e"], ["x", "y"])  # 11
        model.complete("a", max_tokens=8)
        with pytest.raises(BudgetExceededError) as caught:
            model.choose(["a b c d e f"], ["x", "y"])
    assert caught.value.budget == "tokens"  # type: ignore[attr-defined]
    assert meter.used("w", "ana").tokens == 15


def test_calls_at_the_same_time_do_not_overrun_a_budget() -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    def wait(prompt: str) -> str:
        started.release()
        assert go_on.wait(30)
        return "done"

    model, meter, inner = metered(Budget(calls=3, tokens=100), FakeLanguageModel(wait))

    def call() -> None:
        with charged_to("w", "ana"):
            model.complete("x", max_tokens=10)

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call) for _ in range(8)]
        for _ in range(3):
            assert started.acquire(timeout=30)
        go_on.set()
        failed = [call.exception(30) for call in calls]
    assert sum(error is None for error in failed) == 3
    assert {type(error) for error in failed if error} == {BudgetExceededError}
    assert (len(inner.calls), meter.used("w", "ana").calls) == (3, 3)


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (ModelUnavailableError("away"), 0),
        (ModelFailedError("garbage"), 1),
        (ModelTimeoutError("slow"), 1),
        (ValueError("a bug"), 0),
    ],
)
def test_what_failed_is_counted_if_the_model_was_at_work(error: Exception, counted: int) -> None:
    model, meter, _ = metered(Budget(calls=5, tokens=50), FakeLanguageModel(lambda _: error))
    with charged_to("w", "ana"), pytest.raises(type(error)):
        model.complete("a b", max_tokens=10)
    used = meter.used("w", "ana")
    assert (used.calls, used.failed) == (counted, counted)
    # What was set aside is free again, but for what the model may have used.
    with charged_to("w", "ana"), pytest.raises(type(error)):
        model.complete("a b", max_tokens=48 - 12 * counted)


def test_a_cap_on_the_calls_of_a_block() -> None:
    model, _, inner = metered()
    assert calls_left() is None
    with charged_to("w", "ana", calls=2):
        model.complete("x", max_tokens=1)
        assert calls_left() == 1
        with charged_to("w", "ana", calls=1):  # a block within has its own
            model.complete("x", max_tokens=1)
            assert calls_left() == 0
        model.choose(["x"], ["a", "b"])
        with pytest.raises(ModelFailedError, match="2 model calls"):
            model.complete("x", max_tokens=1)
    assert len(inner.calls) == 3
    assert calls_left() is None


def test_threads_begin_without_a_payer() -> None:
    model, meter, _ = metered()
    with charged_to("w", "ana"), purpose("extract"), ThreadPoolExecutor(1) as pool:
        pool.submit(model.complete, "x", max_tokens=1).result()
        pool.submit(
            contextvars.copy_context().run, lambda: model.complete("x", max_tokens=1)
        ).result()
    assert [(row.user_id, row.purpose) for row in meter.rows()] == [
        ("", "other"),
        ("ana", "extract"),
    ]


def test_counters_are_kept_over_a_restart() -> None:
    model, meter, _ = metered()
    with charged_to("w", "ana"), purpose("extract"):
        model.complete("x", max_tokens=2)
    model, after, _ = metered(Budget(calls=2))
    after.restore(meter.rows())
    assert after.rows() == meter.rows()
    with charged_to("w", "ana"), purpose("extract"):
        model.complete("x", max_tokens=1)
        with pytest.raises(BudgetExceededError):
            model.complete("x", max_tokens=1)
    assert meter.used("w", "ana").calls == 1


def test_counters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MAX_USERS", 3)
    model, meter, _ = metered()
    meter.set_budget("w", "0", Budget(calls=1))
    for number in range(9):
        with charged_to("w", str(number)), purpose(f"p{number}"):
            model.complete("x", max_tokens=1)
    kept = {row.user_id for row in meter.rows()}
    assert "0" in kept  # its budget needs its counters
    assert "8" in kept
    assert len(kept) <= 4
    assert meter.total().calls == 9
    with charged_to("w", "0"), pytest.raises(BudgetExceededError):
        model.complete("x", max_tokens=1)
    for number in range(40):
        with charged_to("w", "8"), purpose(f"purpose {number}"):
            model.complete("x", max_tokens=1)
    rows = [row for row in meter.rows() if row.user_id == "8"]
    assert len(rows) <= usage.MAX_PURPOSES + 1
    assert sum(row.usage.calls for row in rows) == 41


class Bare:
    """A `LanguageModel` with nothing beyond the protocol, as a user may bring one."""

    info = LanguageModelInfo("bare:1", 100, 0, has_chat_template=False)

    def complete(self, prompt: object, **_: object) -> Completion:
        return Completion("one two", 2, 2, is_whole=True)

    def choose(self, prompts: list[str], choices: list[str], **_: object) -> list[list[float]]:
        return [[1.0, 0.0] for _ in prompts]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def close(self) -> None:
        pass


def test_a_model_of_somebody_else_is_metered_too() -> None:
    meter = Meter(Budget(tokens=12))
    model = MeteredLanguageModel(Bare(), meter)  # type: ignore[arg-type]
    with charged_to("w", "ana"):
        model.complete([ChatMessage("user", "x y"), ChatMessage("user", "z")], max_tokens=4)
        assert model.choose(["a b c", "d"], ["x", "y"]) == [[1.0, 0.0]] * 2
        with pytest.raises(BudgetExceededError):
            model.complete("a b", max_tokens=3)
    assert meter.used("w", "ana").tokens == 8
    model.clear()
    assert Key("w", "ana") in meter._accounts
