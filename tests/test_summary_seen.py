"""The running summary of the user: context for a language model, nothing for rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripted_model import ScriptedModel
from support import Sentences, opened

from reverie.actors import commands as c
from reverie.models.chat_prompts import EXTRACTION_TOKENS
from reverie.models.extract_model import MAX_LINE_CHARS, open_model_extractor
from reverie.models.layers import LayeredExtractor
from reverie.models.protocol import Extraction, Extractor, Turn
from reverie.models.recalled import extract_said, is_summary, split_summary
from reverie.models.rules import RulesExtractor
from reverie.models.salient import SalientExtractor

FACTS = [
    "Ana teaches chess in Bergen.",
    "Tom keeps two goats.",
    "The ferry leaves at nine.",
    "安娜养了一只猫，叫豆豆。",
    "汤姆在成都教书。",
]


def said(text: str, name: str = "t1") -> Turn:
    return Turn(name, "user", "user", text, 0.0)


def told(text: str) -> Turn:
    return Turn("s1", "summary", "system", text, 0.0)


class Sees(Sentences):
    """Keeps every turn, and notes the history that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[Turn]] = []

    def extract(self, turns: Sequence[Turn], history: Sequence[Turn]) -> list[Extraction]:
        self.seen.append(list(history))
        return super().extract(turns, history)


def test_the_summary_goes_before_the_history_until_it_is_retired(tmp_path: Path) -> None:
    sees = Sees()
    with opened(tmp_path / "data", extractor=sees, background=False) as rt:
        ana = rt.user("ana")
        ana.add("First.", wait=True)
        assert [t.text for t in sees.seen[-1]] == []
        for fact in FACTS:
            ana.remember(fact)
        ana.summarise()
        ana.add("Second. 第二。", wait=True)
        first, *rest = sees.seen[-1]
        assert is_summary(first)
        assert first.id.startswith("y")
        assert "Bergen" in first.text
        assert [t.text for t in rest] == ["First."]
        ana.delete("m2")
        batch = rt.call(c.Turns(world="default", user_id="ana", now=rt.now()))
        assert batch.history == []


@pytest.mark.parametrize(
    "extractor",
    [RulesExtractor(), SalientExtractor(), LayeredExtractor()],
    ids=lambda made: type(made).__name__,
)
@pytest.mark.parametrize(
    ("summary", "answer"),
    [
        ("User has a sister, Ana. Where does User live?", "In Lisbon."),
        ("用户有一个姐姐安娜。你住在哪里？", "里斯本。"),
        ("Ana moved to Oslo. She keeps goats.", "She has moved to Bergen."),
        ("安娜搬到了成都。", "她搬到上海了。"),
    ],
)
def test_rules_read_nothing_out_of_the_summary(
    extractor: Extractor, summary: str, answer: str
) -> None:
    alone = extractor.extract([said(answer)], [])
    assert extractor.extract([said(answer)], [told(summary)]) == alone
    before = [Turn("t0", "assistant", "assistant", "Do you know her?", 0.0)]
    with_summary = extractor.extract([said(answer)], [told(summary), *before])
    assert with_summary == extractor.extract([said(answer)], before)


def test_the_summary_itself_is_never_extracted() -> None:
    sees = Sees()
    turns = [told("Ana lives in Oslo. 安娜住在成都。"), said("I sing.")]
    first, second = extract_said(sees, turns, [])
    assert first == Extraction("s1")
    assert [m.text for m in second.memories] == ["I sing."]
    assert split_summary(turns) == ("Ana lives in Oslo. 安娜住在成都。", [turns[1]])
    assert split_summary(turns[::-1]) == ("", turns[::-1])  # only the first one can be it


def answer(*memories: str) -> str:
    rows = [
        {"text": text, "kind": "fact", "confidence": 0.9, "importance": 0.5} for text in memories
    ]
    return json.dumps({"memories": rows, "entities": [], "relations": []})


@pytest.mark.parametrize(
    ("summary", "turn", "repeats", "fresh"),
    [
        (
            "Ana teaches chess in Oslo. User likes green tea.",
            "I visited Ana in Oslo and I don't like green tea any more.",
            "Ana teaches chess in Oslo",
            "User no longer likes green tea",
        ),
        (
            "安娜在成都教围棋。用户喜欢绿茶。",
            "我去成都看了安娜，我不再喜欢绿茶了。",
            "安娜在成都教围棋",
            "用户不再喜欢绿茶了",
        ),
    ],
)
def test_what_the_summary_says_is_not_said_again(
    summary: str, turn: str, repeats: str, fresh: str
) -> None:
    model = open_model_extractor(ScriptedModel(answer(repeats, fresh)))
    (found,) = model.extract([said(turn)], [told(summary)])
    assert [m.text for m in found.memories] == [fresh]
    assert model.counts.dropped == 1
    # The owner may say it again: that is a duplicate for the decision, not for the extraction.
    model = open_model_extractor(ScriptedModel(answer(repeats)))
    (found,) = model.extract([said(repeats)], [told(summary)])
    assert [m.text for m in found.memories] == [repeats]


@pytest.mark.parametrize("line", ["I counted {} sheep by the river. ", "我在河边数了{}只羊。"])
def test_the_summary_is_cut_first_when_the_prompt_does_not_fit(line: str) -> None:
    history = [said(line.format(at), f"h{at}") for at in range(8)]
    short = ScriptedModel(answer())
    open_model_extractor(short).extract([said(line.format(99))], history)
    used = short.count_tokens(short.asked[0].text)
    model = ScriptedModel(answer(), context_tokens=used + EXTRACTION_TOKENS + 160)
    extractor = open_model_extractor(model)
    summary = "Ana keeps goats. " * 400
    extractor.extract([said(line.format(99))], [told(summary), *history])
    shown = json.loads(model.asked[0].messages[-1].content)
    assert len(shown["earlier"]) == len(history)
    assert len(shown.get("summary", "")) < MAX_LINE_CHARS
    assert extractor.counts.trimmed == 1
