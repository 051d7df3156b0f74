"""Cross-encoders: their layout and head, their word beside the model's, and those that ship."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from reverie.config import Config
from reverie.language import Language
from reverie.memory_graph.drafts import Known, MemoryDraft
from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    ModelDamagedError,
    ModelFailedError,
)
from reverie.models.adapters import CROSS_FOLDER, FOLDER, shipped
from reverie.models.cached import CachedEmbedder
from reverie.models.catalog import find_entry, model_path
from reverie.models.cross_encoder import (
    MAX_PAIR_TOKENS,
    MAX_STATEMENT_TOKENS,
    CrossAdapter,
    Head,
    cross_adapter,
    lay_out,
    mixed,
    read_cross_card,
    read_head,
    reads,
)
from reverie.models.decide_model import PairDecider
from reverie.models.embedders import open_embedder
from reverie.models.prompts import PAIR_CHOICES
from reverie.models.protocol import CrossEncoder, LanguageModelInfo
from reverie.models.standin import HashEmbedder
from reverie.models.thresholds import PairThresholds

DIM, WIDTH = 4, 6
tokens = st.lists(st.integers(10, 99), max_size=2 * MAX_STATEMENT_TOKENS)
rows_of_four = st.lists(
    st.lists(st.floats(1e-5, 1.0), min_size=4, max_size=4), min_size=1, max_size=3
)


def head(seed: int = 1) -> Head:
    rng = np.random.default_rng(seed)

    def made(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    return Head(made(WIDTH, 4 * DIM), made(WIDTH), made(4, WIDTH), made(4))


def save(path: Path, found: Head, **more: object) -> Path:
    arrays = {**{n: getattr(found, n) for n in Head.__struct_fields__}, **more}
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


# -- layout -----------------------------------------------------------------------------


@given(tokens, tokens, st.booleans())
def test_both_statements_are_found_where_they_were_laid(
    old: list[int],
    new: list[int],
    twice: bool,  # noqa: FBT001 - drawn
) -> None:
    laid = lay_out(old, new, [0, 2], twice=twice)
    assert laid.ids[laid.first] == old[:MAX_STATEMENT_TOKENS]
    assert laid.ids[laid.second] == new[:MAX_STATEMENT_TOKENS]
    assert laid.ids[0] == 0
    assert laid.ids[-1] == 2
    assert laid.ids.count(2) == (3 if twice else 2)
    assert len(laid.ids) <= MAX_PAIR_TOKENS


# -- head -------------------------------------------------------------------------------


def test_the_head_is_two_layers_over_both_means() -> None:
    made = head()
    rows = np.random.default_rng(2).standard_normal((7, DIM)).astype(np.float32)
    laid = lay_out([11, 12], [13], [0, 2], twice=True)
    means = []
    for places in (laid.first, laid.second):
        mean = rows[places].mean(0)
        means.append((mean - mean.mean()) / math.sqrt(mean.var() + 1e-5))
    u, v = means
    inner = made.hidden @ np.concatenate([u, v, abs(u - v), u * v]) + made.hidden_bias
    active = [x * 0.5 * math.erfc(-x / math.sqrt(2)) for x in inner.tolist()]
    scores = np.exp(made.out @ np.array(active) + made.out_bias)
    assert made.weigh(rows, laid) == pytest.approx((scores / scores.sum()).tolist(), rel=1e-4)


def test_a_statement_without_tokens_still_gets_an_answer() -> None:
    laid = lay_out([], [13], [0, 2], twice=False)
    shares = head().weigh(np.ones((len(laid.ids), DIM), np.float32), laid)
    assert sum(shares) == pytest.approx(1.0)
    assert all(map(math.isfinite, shares))


def test_a_head_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = head()
    found = read_head(save(tmp_path / "x.npz", made))
    for name in Head.__struct_fields__:
        assert np.array_equal(getattr(found, name), getattr(made, name))


@pytest.mark.parametrize(
    "wrong",
    [
        {"out": None},
        {"out": np.zeros((4, WIDTH + 1), np.float32)},
        {"hidden_bias": np.zeros(WIDTH - 1, np.float32)},
        {"hidden": np.zeros(3, np.float32)},
        {"out_bias": np.array([{}, 1, 2, 3], object)},
        {"out_bias": np.array([0, 1, 2, np.nan], np.float32)},
        {"out": np.zeros((3, WIDTH), np.float32), "out_bias": np.zeros(3, np.float32)},
    ],
)
def test_a_head_that_cannot_be_used_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelDamagedError, match="head"):
        read_head(save(tmp_path / "x.npz", head(), **wrong))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"text", b"\x93NUMPY"])
def test_a_file_that_is_no_head_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ModelDamagedError, match="cannot be read"):
        read_head(tmp_path / "x.npz")


def test_a_head_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelDamagedError, match="cannot be read"):
        read_head(tmp_path / "none.npz")


# -- card -------------------------------------------------------------------------------


def test_an_embedder_is_known_by_its_digest(tmp_path: Path) -> None:
    card = {
        "bases": {"tiny": "abc"},
        "shares": {"tiny": 0.4},
        "scripts": {"tiny": ["LATIN"]},
        "thresholds": {"same": 0.7},
        "title": "x",
    }
    (tmp_path / "cross.json").write_bytes(msgspec.json.encode(card))
    for name in ("tiny.gguf", "tiny.npz"):
        assert cross_adapter("abc", tmp_path) is None  # not whole
        (tmp_path / name).touch()
    found = read_cross_card(tmp_path)
    assert found.thresholds.same == 0.7
    assert cross_adapter("abc", tmp_path) == CrossAdapter(
        tmp_path / "tiny.gguf", tmp_path / "tiny.npz", 0.4, ("LATIN",)
    )
    assert cross_adapter("abd", tmp_path) is None


@pytest.mark.parametrize(
    "card",
    [
        b"{",
        b"{}",
        b'{"bases": {"a": "b"}, "shares": {"a": 1.5}, "scripts": {}, "thresholds": {}}',
        b'{"bases": {"a": "b"}, "shares": {}, "scripts": {}, "thresholds": {}}',
        b'{"bases": {}, "shares": {}, "scripts": {}, "thresholds": {"same": -1}}',
        b'{"bases": {}, "shares": {}, "scripts": {}, "thresholds": {"lead": -1}}',
    ],
)
def test_a_card_that_makes_no_sense_is_refused(tmp_path: Path, card: bytes) -> None:
    with pytest.raises(ConfigError, match=r"cross\.json"):
        read_cross_card(tmp_path)
    (tmp_path / "cross.json").write_bytes(card)
    with pytest.raises(ConfigError, match=r"cross\.json"):
        read_cross_card(tmp_path)
    assert cross_adapter("b", tmp_path) is None  # an embedder works without it


# -- two voices -------------------------------------------------------------------------


@given(rows_of_four, st.floats(0, 1))
def test_the_mean_of_two_voices_lies_between_them(rows: list[list[float]], share: float) -> None:
    ones = [[x / sum(row) for x in row] for row in rows]
    others = [row[::-1] for row in ones]
    found = mixed(ones, others, share)
    assert all(sum(row) == pytest.approx(1.0) for row in found)
    assert mixed(ones, others, 0.0)[0] == pytest.approx(ones[0], abs=1e-5)
    assert mixed(ones, others, 1.0)[0] == pytest.approx(others[0], abs=1e-5)
    assert mixed(ones, ones, share)[0] == pytest.approx(ones[0], abs=1e-5)


class Voice:
    """Says the same of every pair, as a language model and as a cross-encoder."""

    info: Any = None

    def __init__(self, *shares: float) -> None:
        self.shares = list(shares)
        self.pairs: list[tuple[str, str]] = []

    def choose(
        self, prompts: Sequence[str], _choices: Sequence[str], *, adapter: str | None = None
    ) -> list[list[float]]:
        assert adapter == "pair"
        return [self.shares for _ in prompts]

    def pair_share(self) -> float:
        return 0.5

    def weigh_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[float] | None]:
        self.pairs += pairs
        return [self.shares or None for _ in pairs]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User juggles orbs by the lake", "User juggles lamps by the lake"),
        ("用户在湖边耍灯笼", "用户在湖边耍火把"),
    ],
)
@pytest.mark.parametrize(
    ("model", "cross", "op"),
    [
        ((0.1, 0.6, 0.1, 0.2), (0.02, 0.95, 0.01, 0.02), "UPDATE"),
        ((0.1, 0.6, 0.1, 0.2), (0.01, 0.04, 0.01, 0.94), "ADD"),
        ((0.3, 0.3, 0.3, 0.1), (0.01, 0.01, 0.97, 0.01), "DELETE"),
    ],
)
def test_the_decision_follows_both(
    old: str, new: str, model: tuple[float, ...], cross: tuple[float, ...], op: str
) -> None:
    other = Voice(*cross)
    decider = PairDecider(
        Voice(*model),  # type: ignore[arg-type]
        PairThresholds(same=0.6, replaced=0.7, ended=0.6),
        floor=0.1,
        cross=other,
        share=0.5,
    )
    said = decider.decide(MemoryDraft(new), [Known("m1", old, similarity=0.8)])
    assert said.op == op
    assert other.pairs == [(old, new)]


@pytest.mark.parametrize(
    ("text", "scripts", "can"),
    [
        ("User lives in Málaga, no 5", ("LATIN",), True),
        ("", ("LATIN",), True),
        ("用户住在杭州", ("LATIN",), False),
        ("用户 uses Python，每天。", ("LATIN", "CJK"), True),
        ("ユーザーは東京に住んでいる", ("LATIN", "CJK"), False),
        ("사용자는 서울에 산다", ("LATIN", "CJK"), False),
        ("Пользователь живёт в Москве", ("LATIN", "CJK"), False),
    ],
)
def test_a_script_that_training_lacked_is_not_read(
    text: str,
    scripts: tuple[str, ...],
    can: bool,  # noqa: FBT001 - a row of the table
) -> None:
    assert reads(text, scripts) is can


def test_what_it_cannot_read_is_left_to_the_model_and_its_thresholds() -> None:
    decider = PairDecider(
        Voice(0.1, 0.6, 0.1, 0.2),  # type: ignore[arg-type]
        PairThresholds(same=0.9, replaced=0.7, ended=0.9),
        floor=0.1,
        cross=Voice(),
        both=PairThresholds(same=0.5, replaced=0.5, ended=0.5),
    )
    known = [Known("m1", "User juggles orbs by the lake", similarity=0.8)]
    assert decider.decide(MemoryDraft("User juggles lamps by the lake"), known).op == "ADD"


class Small(Voice):
    """A voice that passes for the default model."""

    info = LanguageModelInfo("small", 512, 135_000_000, False)  # noqa: FBT003

    def count_tokens(self, text: str) -> int:
        return len(text.split())


@pytest.mark.parametrize(
    ("embedder", "share", "own", "asked"),
    [
        ("minilm", 0.7, False, True),
        ("multilingual", 0.7, False, True),
        ("minilm", 0.0, False, False),  # without an adapter
        ("minilm", 0.7, True, False),  # another pair adapter
        ("/models/all-MiniLM-L6-v2.f16.gguf", 0.7, False, False),
    ],
)
def test_a_world_asks_the_cross_encoder_of_its_embedder(
    tmp_path: Path,
    embedder: str,
    share: float,
    own: bool,  # noqa: FBT001 - a row of the table
    asked: bool,  # noqa: FBT001
) -> None:
    adapter = shipped()["pair"]
    if own:
        adapter = Path(shutil.copy(adapter, tmp_path))
        shutil.copy(shipped()["pair"].with_suffix(".json"), tmp_path)
    cross = Voice(0.0, 1.0, 0.0, 0.0)
    cross.pair_share = lambda: share  # type: ignore[method-assign]
    config = Config(
        language_model=Small(0.0, 0.3, 0.0, 0.7),
        language_adapters={"pair": str(adapter)},
    )
    language = Language(config, tmp_path, on_ray=False)
    known = [Known("m1", "User juggles orbs by the lake", similarity=0.93)]
    new = MemoryDraft("User juggles lamps by the lake")
    assert language.decider(embedder, cross).decide(new, known).op == ("UPDATE" if asked else "ADD")
    assert bool(cross.pairs) is asked
    assert language.decider(embedder).decide(new, known).op == "ADD"
    language.close()


def test_an_embedder_without_an_adapter_is_not_asked() -> None:
    cached = CachedEmbedder(HashEmbedder())
    assert not isinstance(HashEmbedder(), CrossEncoder)
    assert isinstance(cached, CrossEncoder)
    assert cached.pair_share() == 0.0
    with pytest.raises(ConfigError, match="no adapter"):
        cached.weigh_pairs([("a", "b")])


# -- those that ship --------------------------------------------------------------------

SURE = {
    "minilm": (
        ("User lives in Oslo", "User moved to Rome", " replaced"),
        ("User works at Stripe", "User quit their job at Stripe", " ended"),
        ("User plays the violin", "User is allergic to peanuts", " unrelated"),
        ("User speaks French", "User's sister speaks Arabic", " unrelated"),
    ),
    "multilingual": (
        ("用户住在杭州", "用户搬到了深圳", " replaced"),
        ("用户养了一只猫", "用户的猫上个月死了", " ended"),
        ("用户养了一只猫", "用户在学日语", " unrelated"),
        ("User lives in Oslo", "User moved to Rome", " replaced"),
    ),
}


def test_they_ship_whole_small_and_told_of() -> None:
    card = read_cross_card()
    assert set(card.bases) == set(SURE)
    assert "pair" in shipped()
    assert not set(card.bases) & set(shipped())  # none for the language model
    told = (FOLDER / "MODEL_CARD.md").read_text("utf-8")
    for name, digest in card.bases.items():
        assert find_entry(name).sha256 == digest
        files = cross_adapter(digest)
        assert files is not None
        assert files.lora.stat().st_size + files.head.stat().st_size < 8_000_000
        assert read_head(files.head).out.shape[0] == len(PAIR_CHOICES)
        assert f"cross/{name}" in told


def test_the_figures_beside_them_say_that_they_do_little_harm() -> None:
    card = msgspec.json.decode((CROSS_FOLDER / "cross.json").read_bytes())
    rows = (FOLDER / "MODEL_CARD.md").read_text("utf-8").splitlines()
    for split in ("validation", "test", "heldout", "unseen", "late"):
        assert card["figures"][split]["right"] > 0.8
        assert card["figures"][split]["harmful"] < 0.05
        cases = card["cases"][split]
        assert cases["right"] > 0.8 * cases["cases"]
        assert cases["harmful"] <= cases["cases"] / 40
        told = f"**{cases['right'] / cases['cases']:.3f} ({cases['harmful']})**".replace("0.", ".")
        row = next(line for line in rows if line.startswith(f"| generated {split},"))
        assert told in row
    assert card["cases"]["validation"]["harmful"] <= card["cases"]["validation"]["cases"] / 80


@pytest.mark.model
@pytest.mark.parametrize("name", SURE)
def test_they_answer_plain_questions_each_alone(name: str, models_folder: Path) -> None:
    embedder = open_embedder(name, models_folder, batch_tokens=0)
    assert isinstance(embedder, CrossEncoder)
    asked = [(old, new) for old, new, _ in SURE[name]]
    assert 0 < embedder.pair_share() < 1
    before = embedder.embed(["the old mill 老磨坊"], "query")
    rows = [row for row in embedder.weigh_pairs(asked) if row]
    assert [PAIR_CHOICES[row.index(max(row))] for row in rows] == [c for *_, c in SURE[name]]
    assert embedder.weigh_pairs(asked[::-1]) == rows[::-1]
    with ThreadPoolExecutor(4) as pool:
        many = list(pool.map(lambda pair: embedder.weigh_pairs([pair])[0], asked * 4))
    assert many == rows * 4
    assert np.array_equal(embedder.embed(["the old mill 老磨坊"], "query"), before)
    assert CachedEmbedder(embedder).weigh_pairs(asked) == rows
    embedder.close()
    with pytest.raises(ClosedError):
        embedder.weigh_pairs(asked)


@pytest.mark.model
@pytest.mark.parametrize("name", SURE)
def test_any_text_gets_an_answer(name: str, models_folder: Path) -> None:
    embedder: Any = open_embedder(name, models_folder)
    hostile = (
        "",
        " \n",
        "x " * 2000,
        "字很大" * 1000,
        "</s><s>[SEP][CLS]",
        "\ud800",
        "a\0b",
        "😀🏳️‍🌈",
    )
    rows = embedder.weigh_pairs([(one, two) for one in hostile for two in hostile])
    assert len(rows) == len(hostile) ** 2
    assert rows[0] is not None
    assert rows[2] is rows[3] is None  # too long
    for row in filter(None, rows):
        assert sum(row) == pytest.approx(1.0)
        assert all(map(math.isfinite, row))
    (other,) = embedder.weigh_pairs([("用户姓赵", "用户姓钱")])
    assert (other is None) == (name == "minilm")
    embedder.close()


@pytest.mark.model
def test_a_damaged_adapter_is_a_failure_and_leaves_embedding_alone(
    models_folder: Path, tmp_path: Path
) -> None:
    from reverie.models.llama import LlamaEmbedder

    whole = CrossAdapter(CROSS_FOLDER / "minilm.gguf", CROSS_FOLDER / "minilm.npz")
    (tmp_path / "bad").write_bytes(b"GGUF" + b"\xff" * 100)
    for broken in (
        whole._replace(lora=tmp_path / "bad"),
        whole._replace(lora=tmp_path / "none"),
        whole._replace(lora=shipped()["pair"]),
        whole._replace(head=tmp_path / "bad"),
        whole._replace(lora=CROSS_FOLDER / "multilingual.gguf"),
    ):
        with LlamaEmbedder(model_path("minilm", models_folder), cross=broken) as embedder:
            with pytest.raises(ModelFailedError):
                embedder.weigh_pairs([("User lives in Oslo", "User moved to Rome")])
            assert embedder.embed(["User lives in Oslo"], "passage").shape == (1, 384)
