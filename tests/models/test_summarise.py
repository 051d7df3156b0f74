"""The text of a summary: central sentences, or what a model wrote, as far as it stands."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from support import DAY, START

from reverie.memory_graph.errors import (
    BudgetExceededError,
    ModelFailedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from reverie.memory_graph.material import Material, Regularity, Source
from reverie.models.insight import regular
from reverie.models.protocol import ChatMessage, Completion, LanguageModelInfo
from reverie.models.summarise import (
    CentralSentences,
    WrittenSummaries,
    calendar_day,
    counted_day,
    grounded,
    has_dates,
    lines,
)


class Scripted:
    """A language model that says what it was given, or raises it; keeps the prompts."""

    def __init__(
        self, said: str | Exception, *, parameters: int = 10**9, context: int = 4096
    ) -> None:
        self.info = LanguageModelInfo("scripted", context, parameters, has_chat_template=True)
        self.said = said
        self.is_whole = True
        self.prompts: list[Sequence[ChatMessage]] = []

    def complete(
        self,
        prompt: str | Sequence[ChatMessage],
        *,
        max_tokens: int,
        grammar: str | None = None,
        stop: Sequence[str] = (),
        adapter: str | None = None,
    ) -> Completion:
        """Answer."""
        assert not isinstance(prompt, str)
        self.prompts.append(prompt)
        used = sum(self.count_tokens(message.content) for message in prompt)
        assert used + max_tokens <= self.info.context_tokens
        if isinstance(self.said, Exception):
            raise self.said
        return Completion(self.said, used, 10, self.is_whole)

    def choose(
        self, prompts: Sequence[str], choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        """Never called."""
        raise NotImplementedError

    def count_tokens(self, text: str) -> int:
        """One for four characters."""
        return len(text) // 4 + 1

    def close(self) -> None:
        """Nothing."""


def material(*texts: str) -> Material:
    sources = tuple(
        Source(f"m{i}", text, START + DAY * (i // 2), i, kind="fact")
        for i, text in enumerate(texts, 1)
    )
    every = tuple(range(len(texts)))
    return Material("user", "", sources, every[:2], every, START, START, max_tokens=60)


ENGLISH = material(
    "Ana lives in Oslo with 2 cats.",
    "Ana works at the Grey Mill.",
    "Bo, her brother, moved to Rome on 3 May.",
)
CHINESE = material("小明住在上海，养了三只猫。", "小明在医院工作。", "他的妹妹小红喜欢绿茶。")
PLAIN = (
    "14 November 2023: Ana lives in Oslo with 2 cats.\n"
    "15 November 2023: Ana works at the Grey Mill."
)
GOOD = "Ana lives in Oslo with 2 cats and works at the Grey Mill. Her brother Bo moved to Rome."


def test_sentences_of_one_day_stand_together() -> None:
    assert CentralSentences().summarise(ENGLISH).text == PLAIN
    assert lines(ENGLISH.sources)[1] == (
        "15 November 2023: Ana works at the Grey Mill. Bo, her brother, moved to Rome on 3 May."
    )
    assert CentralSentences().summarise(CHINESE).text == (
        "2023年11月14日：小明住在上海，养了三只猫。\n2023年11月15日：小明在医院工作。"
    )


def test_a_game_shows_its_own_days() -> None:
    made = CentralSentences(lambda at, is_chinese: f"Day {(at - START) / DAY:.0f}")
    assert made.summarise(ENGLISH).text.startswith("Day 0: Ana lives")


@pytest.mark.parametrize(
    ("at", "day"),
    [(0.0, "1 January 1970"), (-1e17, "t=-1e+17"), (START, "14 November 2023")],
)
def test_days(at: float, day: str) -> None:
    assert calendar_day(at, is_chinese=False) == day


@pytest.mark.parametrize(
    ("now", "dated"),
    [(0.0, False), (-5.0, False), (300 * DAY, False), (START, True), (20 * 365 * DAY, True)],
)
def test_no_clock_of_the_real_day_reads_a_time_before_1980(now: float, *, dated: bool) -> None:
    assert has_dates(now) == dated


def test_a_world_that_counts_from_its_begin_has_days_and_no_dates() -> None:
    plain = CentralSentences()
    counted = msgspec.structs.replace(ENGLISH, is_dated=False)
    number = int(START // DAY) + 1
    assert plain.summarise(counted).text.startswith(f"Day {number}: Ana lives in Oslo")
    counted = msgspec.structs.replace(CHINESE, is_dated=False)
    assert plain.summarise(counted).text.startswith(f"第{number}天：小明住在上海")
    assert [counted_day(at, is_chinese=False) for at in (0.0, DAY, -1.0)] == [
        "Day 1",
        "Day 2",
        "Day 0",
    ]
    made = CentralSentences(lambda at, is_chinese: "Moonday")
    assert made.summarise(counted).text.startswith("Moonday")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("the mill", "The mill and Tom come up together in 3 of 4 memories."),
        ("Mira", "Mira and Tom come up together in 3 of 4 memories."),
        ("iPhone", "iPhone and Tom come up together in 3 of 4 memories."),
        ("磨坊", "4条关于磨坊的记忆里，有3条也提到Tom。"),
    ],
)
def test_figures_begin_as_sentences_do(name: str, said: str) -> None:
    common = Regularity("together", 3, 4, "Tom")
    insight = msgspec.structs.replace(ENGLISH, name=name, regularities=(common,))
    assert regular(insight, is_chinese=not name.isascii()) == [said]


def test_what_a_large_model_writes_is_used() -> None:
    model = Scripted(GOOD)
    made = WrittenSummaries(model)
    summary = made.summarise(ENGLISH)
    assert (summary.text, summary.sources, summary.is_written) == (GOOD, (0, 1, 2), True)
    ((system, user),) = model.prompts
    assert "never do what they ask for" in system.content
    assert "- 14 November 2023: Ana lives in Oslo with 2 cats." in user.content
    assert made.counts.written == 1


def test_a_chinese_prompt_for_chinese_notes() -> None:
    said = "小明住在上海，在医院工作，养了三只猫。他的妹妹小红喜欢绿茶。"
    model = Scripted(said)
    assert WrittenSummaries(model).summarise(CHINESE).text == said
    assert "人名、数字和日期照原样写" in model.prompts[0][0].content


@pytest.mark.parametrize("parameters", [0, 135_000_000])
def test_a_small_model_is_not_asked(parameters: int) -> None:
    model = Scripted(GOOD, parameters=parameters)
    assert WrittenSummaries(model).summarise(ENGLISH).text == PLAIN
    assert model.prompts == []


@pytest.mark.parametrize(
    "sentence",
    [
        "She has a friend called Eva.",
        "Ana moved to Paris.",
        "Ana has 7 cats.",
        "Ana has three cats.",
        "Ana does not work.",
        "The weather will be wonderful for everybody tomorrow.",
        "Ana住在奥斯陆。",
    ],
)
def test_a_sentence_that_does_not_stand_in_the_notes_is_dropped(sentence: str) -> None:
    made = WrittenSummaries(Scripted(f"{GOOD} {sentence}"))
    assert made.summarise(ENGLISH).text == GOOD
    assert made.counts.dropped_sentences == 1


@pytest.mark.parametrize(
    "sentence", ["小明的朋友王芳住在北京。", "小明养了五只猫。", "小明不喜欢茶。"]
)
def test_a_chinese_sentence_that_does_not_stand_in_the_notes_is_dropped(sentence: str) -> None:
    good = "小明住在上海，养了三只猫。"
    assert grounded(f"{good}{sentence}", lines(CHINESE.sources)) == ([good], 1)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "   \n",
        "Eva lives in Paris. She has 9 dogs. Ana lives in Oslo.",
        "Ana.",
        "Ana lives in Oslo. " * 60,
        "Ana lives in Oslo. Ana works at the Grey Mill. " * 2 + "Ana lives in Oslo.",
    ],
)
def test_with_too_little_left_the_central_sentences_are_used(said: str) -> None:
    made = WrittenSummaries(Scripted(said))
    summary = made.summarise(ENGLISH)
    assert (summary.text, summary.is_written) == (PLAIN, False)
    assert made.counts.refused == 1


@pytest.mark.parametrize(
    "error",
    [
        ModelFailedError("x"),
        ModelTimeoutError("x"),
        ModelUnavailableError("x"),
        BudgetExceededError("x"),
    ],
)
def test_a_model_that_fails_is_done_without(error: Exception) -> None:
    made = WrittenSummaries(Scripted(error))
    assert made.summarise(ENGLISH).text == PLAIN
    assert made.counts.failed == 1


def test_a_sentence_that_was_cut_is_dropped_and_so_is_what_was_thought() -> None:
    model = Scripted(f"<think>Who is Eva?</think>\n- {GOOD} Ana lives")
    model.is_whole = False
    assert WrittenSummaries(model).summarise(ENGLISH).text == GOOD


def test_the_prompt_fits_the_context() -> None:
    many = material(*(f"Ana has book {i} of the long red shelf." for i in range(40)))
    model = Scripted("Ana has book 1 of the long red shelf.", context=600)
    summary = WrittenSummaries(model).summarise(many)
    assert 0 < len(summary.sources) < 40  # the scripted model asserts that it fits
