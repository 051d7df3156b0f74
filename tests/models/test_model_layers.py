"""The model layers with real weights: grammars that llama.cpp follows, and lawful answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reverie.memory_graph.drafts import Known, MemoryDraft, checked
from reverie.models.decide_model import ChatDecider
from reverie.models.extract_model import SPAN_ADAPTER, open_model_extractor
from reverie.models.grounding import Source
from reverie.models.language import HostedModel, LanguageSettings, open_in_process
from reverie.models.protocol import Turn

pytestmark = [pytest.mark.model, pytest.mark.slow]

TURNS = (
    Turn(
        "t1", "user", "user", "I moved from Bern to Zurich last week, my cat Miso hates it.", 1.7e9
    ),
    Turn("t2", "user", "user", "我住在成都，养了一只猫叫豆豆。", 1.7e9),
)


@pytest.fixture(scope="module")
def small() -> Iterator[HostedModel]:
    model = open_in_process(LanguageSettings(model="smollm2", context_tokens=4096))
    yield model
    model.close()


def test_the_chat_grammar_is_followed_and_its_answer_grounded(small: HostedModel) -> None:
    """135M parameters answer badly, and still only in the form and words that are allowed."""
    extractor = open_model_extractor(small, "chat")
    for turn, found in zip(TURNS, extractor.extract(TURNS, []), strict=True):
        label = "User" if turn.text.isascii() else "用户"
        source = Source(turn.text, [t.text for t in TURNS if t is not turn], (label,))
        for draft in found.memories:
            checked(draft)
            assert source.fault(draft.text) == ""
    assert 2 <= extractor.counts.calls <= 4


def test_the_span_grammar_is_followed_without_an_adapter(
    small: HostedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = small.complete

    def bare(*args: object, adapter: str | None = None, **rest: object) -> object:
        assert adapter == SPAN_ADAPTER
        return complete(*args, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(small, "complete", bare)
    extractor = open_model_extractor(small, "span")
    for turn, found in zip(TURNS, extractor.extract(TURNS, []), strict=True):
        for draft in found.memories:
            checked(draft)
        assert all(entity.name in turn.text for entity in found.entities)


def test_a_decision_is_one_of_those_offered(small: HostedModel) -> None:
    known = [Known("m7", "User lives in Bern", similarity=0.6), Known("m8", "User likes figs")]
    said = ChatDecider(small).decide(MemoryDraft("User moved to Zurich"), known)
    assert said.target in {None, "m7"}
