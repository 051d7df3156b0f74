"""The pulled models against the reference implementation; see tests/data/make_*_reference.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reverie.memory_graph.context import assemble, utc_day
from reverie.memory_graph.errors import ConfigError
from reverie.memory_graph.views import Hit
from reverie.models.catalog import CATALOG, model_path
from reverie.models.digest import sha256_of
from reverie.models.embedders import open_embedder
from reverie.models.llama import LlamaEmbedder
from reverie.models.protocol import Float32

pytestmark = pytest.mark.model

DATA = Path(__file__).resolve().parent.parent / "data"
GROUPS = json.loads((DATA / "reference_texts.json").read_text("utf-8"))
TEXTS: list[str] = [text for group in GROUPS.values() for text in group]
# llama.cpp drops the vowel signs of Indic scripts, which BERT keeps.
INDIC = [index for index, text in enumerate(TEXTS) if "\u0900" <= text[0] <= "\u0dff"]


def cosines(rows: Float32, file: str) -> Float32:
    with np.load(DATA / file) as reference:
        similarity: Float32 = (rows * reference["vectors"]).sum(axis=1)
    return similarity


def nearest(embedder: LlamaEmbedder, pairs: list[tuple[str, str]]) -> list[int]:
    """For each question, the number of the passage that is nearest to it."""
    queries = embedder.embed([question for question, _ in pairs], "query")
    passages = embedder.embed([answer for _, answer in pairs], "passage")
    return [int(best) for best in (queries @ passages.T).argmax(axis=1)]


@pytest.mark.parametrize("batch_tokens", [0, 128])
def test_minilm_is_the_reference_model(models_folder: Path, batch_tokens: int) -> None:
    embedder = open_embedder("minilm", models_folder, batch_tokens=batch_tokens)
    similarity = cosines(embedder.embed(TEXTS, "passage"), "minilm_reference.npz")
    assert (np.delete(similarity, INDIC) >= 0.9999).all()
    assert (similarity[INDIC] >= 0.98).all()
    with np.load(DATA / "minilm_reference.npz") as reference:
        counts = [min(256, embedder.count_tokens(text) + 2) for text in TEXTS]
        assert np.array_equal(np.delete(counts, INDIC), np.delete(reference["tokens"], INDIC))
    embedder.close()


@pytest.mark.parametrize("batch_tokens", [0, 128])
def test_multilingual_is_the_reference_model(models_folder: Path, batch_tokens: int) -> None:
    embedder = open_embedder("multilingual", models_folder, batch_tokens=batch_tokens)
    assert (cosines(embedder.embed(TEXTS, "passage"), "e5_reference.npz") >= 0.999).all()
    embedder.close()


def test_multilingual_reads_the_same_tokens(models_folder: Path) -> None:
    embedder = open_embedder("multilingual", models_folder)
    assert isinstance(embedder, LlamaEmbedder)
    with np.load(DATA / "e5_reference.npz") as reference:
        ends = np.cumsum([0, *reference["tokens"]])
        for text, begin, end in zip(TEXTS, ends, ends[1:], strict=False):
            ours = embedder._tokens_of(f"passage: {text}")
            assert ours == reference["ids"][begin:end].tolist(), text
    embedder.close()


PAIRS = [
    ("安娜现在住在哪个城市？", "安娜三月搬到了奥斯陆。"),
    ("谁不能吃花生？", "我妹妹对坚果和花生过敏。"),
    ("他欠了多少钱？", "铁匠还没有把十二枚银币还给卫兵。"),
    ("你周末喜欢做什么？", "星期六我常常去山里徒步。"),
    ("Where does Ana live now?", "Ana moved to Oslo in March."),
    ("Who must not eat peanuts?", "My sister is allergic to nuts."),
]


def test_multilingual_finds_chinese_paraphrases(models_folder: Path) -> None:
    embedder = open_embedder("multilingual", models_folder)
    chinese, english = PAIRS[:4], PAIRS[4:]
    assert isinstance(embedder, LlamaEmbedder)
    assert nearest(embedder, chinese) == [0, 1, 2, 3]
    assert nearest(embedder, english) == [0, 1]
    assert all(embedder.unknown_share(text) == 0 for pair in PAIRS for text in pair)
    embedder.close()


def test_minilm_says_that_it_cannot_read_chinese(models_folder: Path) -> None:
    embedder = open_embedder("minilm", models_folder)
    assert embedder.unknown_share("谁不能吃花生？安娜在奥斯陆。") > 0.3
    assert embedder.unknown_share("Who must not eat peanuts?") == 0
    embedder.close()


def test_both_embedders_have_384_dimensions_but_not_one_identity(models_folder: Path) -> None:
    minilm = open_embedder("minilm", models_folder)
    multilingual = open_embedder("multilingual", models_folder)
    by_path = open_embedder(str(model_path("multilingual", models_folder)), Path("/nowhere"))
    assert minilm.info.dim == multilingual.info.dim == 384
    assert minilm.info.id != multilingual.info.id
    assert by_path.info == multilingual.info  # known by its checksum, prefixes and all
    for embedder in (minilm, multilingual, by_path):
        embedder.close()


def test_a_language_model_is_no_embedder(models_folder: Path) -> None:
    with pytest.raises(ConfigError, match="no embedding model"):
        open_embedder("smollm2", models_folder)


def test_the_pulled_files_are_the_pinned(models_folder: Path) -> None:
    for name, entry in CATALOG.items():
        assert sha256_of(model_path(name, models_folder)) == entry.sha256


@pytest.mark.parametrize("name", ["minilm", "multilingual"])
def test_a_block_for_a_prompt_keeps_its_budget_by_the_models_own_tokens(
    models_folder: Path, name: str
) -> None:
    embedder = open_embedder(name, models_folder)
    hits = [
        Hit(
            id=f"m{i}",
            type="memory",
            kind="fact",
            text=text,
            at=i * 86_400.0,
            recorded_at=0.0,
            score=float(-i),
            parts={},
        )
        for i, text in enumerate(TEXTS)
    ]
    every = len(assemble(hits, 1_000_000, embedder.count_tokens, utc_day).hits)
    for budget in (1, 17, 60, 137, 400, 801):
        block = assemble(hits, budget, embedder.count_tokens, utc_day)
        assert block.tokens == embedder.count_tokens(block.text) <= budget
        assert budget < 60 or block.tokens > 0.8 * budget
        assert len(block.hits) + block.left_out == every
    embedder.close()
