"""The training of cross-encoders, on a tiny BERT; what needs torch is skipped without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from gguf import GGUFWriter

from reverie.memory_graph.errors import ConfigError
from reverie.models.catalog import model_path
from reverie.models.cross_encoder import CrossAdapter, lay_out

WIDTH, HEADS, LAYERS, INNER, WORDS, PLACES = 16, 4, 2, 24, 40, 32


@pytest.fixture
def cross() -> Any:
    return pytest.importorskip("reverie.models.training.cross", exc_type=ImportError)


@pytest.fixture
def tiny_bert(tmp_path: Path) -> Path:
    """A BERT of two layers with random weights, in the file's own form."""
    rng = np.random.default_rng(3)
    writer = GGUFWriter(tmp_path / "tiny.gguf", "bert")
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_embedding_length(WIDTH)
    writer.add_layer_norm_eps(1e-12)

    def matrix(name: str, *shape: int) -> None:
        values = rng.standard_normal(shape) / np.sqrt(shape[-1])
        writer.add_tensor(name, values.astype(np.float32))

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(WIDTH, np.float32))

    matrix("token_embd.weight", WORDS, WIDTH)
    matrix("position_embd.weight", PLACES, WIDTH)
    matrix("token_types.weight", 2, WIDTH)
    norm("token_embd_norm")
    for layer in range(LAYERS):
        for target in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{target}.weight", WIDTH, WIDTH)
            matrix(f"blk.{layer}.{target}.bias", WIDTH)
        matrix(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_up.bias", INNER)
        matrix(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
        matrix(f"blk.{layer}.ffn_down.bias", WIDTH)
        norm(f"blk.{layer}.attn_output_norm")
        norm(f"blk.{layer}.layer_output_norm")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "tiny.gguf"


@pytest.fixture
def settings(cross: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Settings and examples that are easy: the label tells whether both begin alike."""
    rng = np.random.default_rng(5)
    examples = []
    for i in range(96):
        first = int(rng.integers(4, 8))
        second = first if i % 2 else 4 + (first - 3) % 4
        old, new = (
            [begin, *map(int, rng.integers(8, WORDS, int(rng.integers(1, 4))))]
            for begin in (first, second)
        )
        examples.append(cross.CrossExample(lay_out(old, new, [2, 3], twice=False), i % 2))
    monkeypatch.setattr(cross, "cross_examples", lambda *_: examples)
    made = cross.CrossSettings("tiny", ("en",), batch=8, epochs=19.5, rate=1e-2, warm_steps=10)
    return msgspec.structs.replace(made, rank=4, alpha=8.0)


def silent(_line: str) -> None:
    """No report."""


def test_padding_changes_nothing(tiny_bert: Path) -> None:
    encoder = pytest.importorskip("reverie.models.training.encoder", exc_type=ImportError)
    net = encoder.PairEncoder(tiny_bert, rank=4, alpha=8.0, choices=4, seed=1, fast=False)
    short, long = (
        lay_out([5], [6], [2, 3], twice=True),
        lay_out([5] * 6, [6] * 7, [2, 3], twice=True),
    )
    both = net.scores([short, long]).detach().numpy()
    assert both.shape == (2, 4)
    assert np.allclose(both[0], net.scores([short]).detach().numpy()[0], atol=1e-5)
    assert not np.allclose(both[0], both[1], atol=1e-3)


def test_it_learns_the_same_each_time(
    cross: Any, settings: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    nets = [cross.train_cross(settings, tiny_bert, tmp_path / run, silent) for run in "ab"]
    examples = cross.cross_examples()
    found = nets[0].scores([e.tokens for e in examples]).argmax(-1).tolist()
    right = sum(f == e.label for f, e in zip(found, examples, strict=True))
    assert right > 0.9 * len(examples)
    for name, values in nets[0].state().items():
        assert torch.equal(values, nets[1].state()[name]), name


def test_a_run_that_was_ended_goes_on_to_the_same_end(
    cross: Any, settings: Any, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    whole = cross.train_cross(settings, tiny_bert, tmp_path / "whole", silent)
    monkeypatch.setattr(cross, "_SAVE_EVERY_STEPS", 20)

    class EndedError(Exception):
        """The run was ended."""

    def end(line: str) -> None:
        if "step 60" in line:
            raise EndedError

    with pytest.raises(EndedError):
        cross.train_cross(settings, tiny_bert, tmp_path / "cut", end)
    lines: list[str] = []
    again = cross.train_cross(settings, tiny_bert, tmp_path / "cut", lines.append)
    assert not any("step 20 " in line for line in lines)
    for name, values in whole.state().items():
        assert torch.allclose(values, again.state()[name], atol=1e-5), name


def test_a_folder_of_other_settings_is_refused(
    cross: Any, settings: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    short = msgspec.structs.replace(settings, epochs=1.0)
    cross.train_cross(short, tiny_bert, tmp_path / "run", silent)
    other = msgspec.structs.replace(short, seed=8)
    with pytest.raises(ConfigError, match="other settings"):
        cross.train_cross(other, tiny_bert, tmp_path / "run", silent)


@pytest.mark.model
@pytest.mark.parametrize("name", ["minilm", "multilingual"])
def test_llama_computes_what_was_trained(
    cross: Any, name: str, models_folder: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from reverie.models.llama import LlamaEmbedder
    from reverie.models.training.encoder import PairEncoder

    path = model_path(name, models_folder)
    net = PairEncoder(path, rank=4, alpha=8.0, choices=4, seed=1, fast=False)
    maker = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for key, values in net.lora.items():  # as after training: B is not zero
            if key.endswith("lora_b"):
                values.copy_(torch.randn(values.shape, generator=maker) * 0.05)
        net.head.out.weight.mul_(8.0)
    cross.write_cross(net, name, tmp_path)
    files = CrossAdapter(tmp_path / f"{name}.gguf", tmp_path / f"{name}.npz")
    embedder = LlamaEmbedder(path, cross=files)
    pairs = [
        ("User lives in Oslo", "User moved to Rome last week"),
        ("用户住在杭州", "用户搬到了深圳"),
        ("Old Marn rides a war goat", "The mill is closed"),
    ]
    with torch.no_grad():
        scores = net.scores([embedder.pair_tokens(*pair) for pair in pairs])
    wanted = torch.softmax(scores, -1).numpy()
    found = np.array(embedder.weigh_pairs(pairs))
    embedder.close()
    assert np.abs(wanted - found).max() < 0.05
    assert np.ptp(wanted, axis=0).max() > 0.1  # the pairs are told apart
