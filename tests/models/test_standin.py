"""The stand-in embedder: deterministic, and searchable in several scripts."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reverie.memory_graph.errors import ClosedError, ConfigError, InvalidValueError
from reverie.models.embedders import open_embedder
from reverie.models.standin import HashEmbedder

TEXTS = ["Ana moved to Oslo in March.", "安娜三月搬到奥斯陆。", "", "...", "🙂 café"]


def rank(query: str, passages: list[str]) -> list[str]:
    """The passages, nearest first."""
    embedder = HashEmbedder()
    scores = embedder.embed(passages, "passage") @ embedder.embed([query], "query")[0]
    return [passages[index] for index in np.argsort(-scores)]


@given(st.lists(st.text(), max_size=5))
def test_any_text_gives_unit_rows(texts: list[str]) -> None:
    rows = HashEmbedder(64).embed(texts, "passage")
    assert rows.dtype == np.float32
    assert rows.shape == (len(texts), 64)
    assert rows.flags.c_contiguous
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_lone_surrogates_are_survived() -> None:
    assert np.isfinite(HashEmbedder().embed(["\ud800 x\udfff"], "query")).all()


def test_vectors_are_the_same_on_every_machine() -> None:
    rows = HashEmbedder().embed(TEXTS, "passage")
    signs = np.sign(np.round(rows * 1e4)).astype(np.int8)
    assert sha256(signs.tobytes()).hexdigest()[:16] == "987b489d5a74f220"


def test_vectors_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from reverie.models.standin import HashEmbedder; import hashlib, sys\n"
        "rows = HashEmbedder().embed(sys.argv[1:], 'passage')\n"
        "print(hashlib.sha256(rows.tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, *TEXTS],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            cwd="/",
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1


def test_a_vector_does_not_depend_on_what_came_before() -> None:
    used = HashEmbedder()
    used.embed([f"word{number} filler" for number in range(500)], "passage")
    assert np.array_equal(used.embed(TEXTS, "query"), HashEmbedder().embed(TEXTS, "query"))


@pytest.mark.parametrize(
    ("query", "best", "others"),
    [
        (
            "Which city did Ana move to?",
            "Ana moved to the city of Oslo in March.",
            ["The blacksmith owes the guard silver.", "I bake bread in the morning.", "It rained."],
        ),
        (
            "peanut allergy",
            "My sister is allergic to peanuts.",
            ["My brother is a pilot.", "We walked to the lake.", "Allegro is a tempo."],
        ),
        (
            "安娜现在住在哪里",
            "安娜三月搬到奥斯陆，现在住在港口附近。",
            ["我妹妹对花生过敏。", "今天下雨了。", "铁匠欠卫兵十二枚银币。"],
        ),
        ("コーヒーが好き", "私は毎朝コーヒーを飲むのが好きです", ["東京の夏は暑い", "猫がいます"]),
        ("커피를 좋아해", "저는 매일 아침 커피를 마셔요", ["비가 온다", "고양이가 있다"]),
        ("cafe in zurich", "Das Café in Zürich", ["Ein Haus am See", "Der Müller schuldet Silber"]),
        ("бабушкин пирог", "Бабушка испекла пирог", ["Идёт дождь", "Кузнец должен серебро"]),
    ],
)
def test_texts_that_share_words_rank_first(query: str, best: str, others: list[str]) -> None:
    assert rank(query, [*others, best])[0] == best


def test_common_words_count_little() -> None:
    best = "Greta keeps bees"
    assert rank("what is it that Greta has", ["what is it that he has", best])[0] == best


def test_counts_words_and_characters() -> None:
    embedder = HashEmbedder()
    assert embedder.count_tokens("Ana moved, to Oslo!") == 4
    assert embedder.count_tokens("安娜 moved") == 3
    assert embedder.count_tokens("हिन्दी भाषा") == 2
    assert embedder.unknown_share("安娜") == 0


def test_threads_share_one() -> None:
    embedder = HashEmbedder()
    texts = [f"many different words number{number}" for number in range(200)]
    expected = HashEmbedder().embed(texts, "passage")
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: embedder.embed([text], "passage")[0], texts))
    assert np.array_equal(np.array(rows), expected)


def test_misuse_is_refused(tmp_path: Path) -> None:
    for dim in (0, 12, 5000, -8):
        with pytest.raises(ConfigError):
            HashEmbedder(dim)
    embedder = open_embedder("standin", tmp_path)
    assert embedder.info.id.startswith("standin:")
    with pytest.raises(InvalidValueError):
        embedder.embed(["x"], "document")  # type: ignore[arg-type]
    embedder.close()
    for call in (lambda: embedder.embed([], "query"), lambda: embedder.count_tokens("")):
        with pytest.raises(ClosedError):
            call()
