"""The adapters that ship: whole, small, documented, and better than none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from gguf import GGUFReader

from reverie.memory_graph.errors import ModelMissingError
from reverie.models.adapters import FOLDER, shipped
from reverie.models.digest import file_digest
from reverie.models.prompts import PAIR_CHOICES, pair_prompt
from reverie.models.thresholds import read_thresholds

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
SURE = (  # what any version has to know
    ("User lives in Oslo", "User moved to Rome", " replaced"),
    ("User works at Stripe", "User quit their job at Stripe", " ended"),
    ("User plays the violin", "User is allergic to peanuts", " unrelated"),
    ("用户住在杭州", "用户搬到了深圳", " replaced"),
    ("用户养了一只猫", "用户在学日语", " unrelated"),
)


def test_the_pair_adapter_ships_with_its_card() -> None:
    assert "pair" in shipped()
    for name, path in shipped().items():
        assert path.stat().st_size < 8_000_000
        fields = GGUFReader(path).fields
        assert fields["general.type"].contents() == "adapter"
        assert name in (FOLDER / "MODEL_CARD.md").read_text("utf-8")


def test_thresholds_are_strict_enough_to_be_one_sided() -> None:
    found = read_thresholds(shipped()["pair"])
    assert 0.5 <= found.same < 1
    assert 0.5 <= found.replaced < 1
    assert 0.5 <= found.ended < 1


def test_the_figures_beside_it_say_that_it_does_little_harm() -> None:
    card = msgspec.json.decode((FOLDER / "pair.json").read_bytes())
    for split in ("validation", "test", "heldout"):
        figures = card["figures"][split]
        assert figures["right"] > 0.8
        assert figures["harmful"] < 0.04


@pytest.fixture
def smollm(models_folder: Path) -> Path:
    path = models_folder / MODEL
    if not path.exists():
        msg = f"{MODEL} is missing"
        raise ModelMissingError(msg, model=MODEL)
    return path


@pytest.mark.model
def test_it_is_for_the_model_that_it_names_and_answers_plain_questions(smollm: Path) -> None:
    from reverie.models.llama_language import LlamaLanguageModel

    card = msgspec.json.decode((FOLDER / "pair.json").read_bytes())
    assert card["base_digest"] == file_digest(smollm)
    asked = [pair_prompt(old, new) for old, new, _ in SURE]
    model = LlamaLanguageModel(smollm, context_tokens=256, adapters=shipped())
    rows = model.choose(asked, PAIR_CHOICES, adapter="pair")
    bare = model.choose(asked, PAIR_CHOICES)
    model.close()
    wanted = [PAIR_CHOICES.index(choice) for *_, choice in SURE]

    def right(found: list[list[float]]) -> int:
        return sum(row.index(max(row)) == w for row, w in zip(found, wanted, strict=True))

    assert right(rows) == len(SURE)
    assert right(bare) < len(SURE)
