"""The network in torch, the loop, and export. What needs torch is skipped without the extra."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter

from reverie.memory_graph.errors import ConfigError, ModelMissingError
from reverie.models.prompts import PAIR_CHOICES, pair_prompt
from reverie.models.training.export import write_adapter

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
WIDTH, HEADS, KV_HEADS, LAYERS, INNER, WORDS = 16, 4, 2, 3, 24, 40
TEXTS = ("Old: User lives in Oslo\nNew: 用户住在杭州 now!\nRelation:", "  3,14 l'été C++\n\nok  ")


def silent(_line: str) -> None:
    """No report."""


@pytest.fixture
def tiny_llama(tmp_path: Path) -> Path:
    """A Llama of three layers with random weights, in the file's own form."""
    rng = np.random.default_rng(3)
    writer = GGUFWriter(tmp_path / "tiny.gguf", "llama")
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_embedding_length(WIDTH)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)

    def matrix(name: str, *shape: int) -> None:
        values = rng.standard_normal(shape) / np.sqrt(shape[-1])
        writer.add_tensor(name, values.astype(np.float32))

    matrix("token_embd.weight", WORDS, WIDTH)
    matrix("output_norm.weight", WIDTH)
    kv_width = WIDTH // HEADS * KV_HEADS
    for layer in range(LAYERS):
        matrix(f"blk.{layer}.attn_norm.weight", WIDTH)
        matrix(f"blk.{layer}.ffn_norm.weight", WIDTH)
        matrix(f"blk.{layer}.attn_q.weight", WIDTH, WIDTH)
        matrix(f"blk.{layer}.attn_k.weight", kv_width, WIDTH)
        matrix(f"blk.{layer}.attn_v.weight", kv_width, WIDTH)
        matrix(f"blk.{layer}.attn_output.weight", WIDTH, WIDTH)
        matrix(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "tiny.gguf"


@pytest.fixture
def task() -> tuple[list[Any], Any]:
    """Examples that are easy to learn: the answer is told by the first token."""
    loop = pytest.importorskip("reverie.models.training.loop", exc_type=ImportError)
    rng = np.random.default_rng(5)
    made = []
    for i in range(64):
        length = int(rng.integers(3, 7))
        first = i % 2
        ids = (first, *map(int, rng.integers(4, WORDS, length - 1)))
        made.append(loop.Example(ids, ((length - 1, 2 + first),)))
    settings = loop.Settings(
        "pair", 64, rank=4, alpha=8, layers=2, batch=8, rate=2e-2, epochs=12, choices=(2, 3)
    )
    return made, settings


def network(path: Path, *, fast: bool = False) -> Any:
    found = pytest.importorskip("reverie.models.training.network", exc_type=ImportError)
    return found.Network(path, rank=4, alpha=8, first=-2, seed=1, fast=fast)


def right(net: Any, examples: list[Any]) -> float:
    from reverie.models.training.loop import Example, scores

    asked = [Example(e.ids, ()) for e in examples]
    found = scores(net, asked, (2, 3)).argmax(-1).tolist()
    return float(
        sum(f == e.answers[0][1] - 2 for f, e in zip(found, examples, strict=True)) / len(found)
    )


def test_fresh_lora_changes_nothing_and_padding_changes_nothing(tiny_llama: Path) -> None:
    torch = pytest.importorskip("torch")
    net = network(tiny_llama)
    ids = torch.tensor([[1, 5, 9, 0], [3, 4, 6, 8]])
    with torch.no_grad():
        all_layers = [*net.lower(), *net.upper()]
        both = net.run(net.embed(ids), all_layers)
        alone = net.run(net.embed(ids[:1, :3]), all_layers)
        net.lora.clear()
        bare = net.run(net.embed(ids), all_layers)
    assert torch.allclose(both, bare)
    assert torch.allclose(both[0, :3], alone[0], atol=1e-5)


def test_training_learns_the_same_each_time(tiny_llama: Path, tmp_path: Path, task: Any) -> None:
    torch = pytest.importorskip("torch")
    from reverie.models.training.loop import train

    examples, settings = task
    nets = []
    for run in "ab":
        net = network(tiny_llama)
        assert right(net, examples) < 0.8
        train(net, examples, settings, tmp_path / run, silent)
        assert right(net, examples) > 0.95
        nets.append(net)
    for name, values in nets[0].lora.items():
        assert torch.equal(values, nets[1].lora[name])


def test_a_run_that_was_ended_goes_on_to_the_same_end(
    tiny_llama: Path, tmp_path: Path, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    from reverie.models.training import loop

    examples, settings = task
    whole = network(tiny_llama)
    loop.train(whole, examples, settings, tmp_path / "whole", silent)
    monkeypatch.setattr(loop, "_SAVE_EVERY_STEPS", 10)

    class EndedError(Exception):
        """The run was ended."""

    def end(line: str) -> None:
        if "step 30" in line:
            raise EndedError

    cut = network(tiny_llama)
    with pytest.raises(EndedError):
        loop.train(cut, examples, settings, tmp_path / "cut", end)
    again = network(tiny_llama)
    lines: list[str] = []
    loop.train(again, examples, settings, tmp_path / "cut", lines.append)
    assert not any("step 10 " in line for line in lines)
    for name, values in whole.lora.items():
        assert torch.allclose(values, again.lora[name], atol=1e-6), name


def test_a_folder_of_other_settings_is_refused(tiny_llama: Path, tmp_path: Path, task: Any) -> None:
    import msgspec

    from reverie.models.training.loop import train

    examples, settings = task
    short = msgspec.structs.replace(settings, epochs=1)
    train(network(tiny_llama), examples, short, tmp_path / "run", silent)
    other = msgspec.structs.replace(short, seed=8)
    with pytest.raises(ConfigError, match="other settings"):
        train(network(tiny_llama), examples, other, tmp_path / "run", silent)


def test_an_adapter_file_holds_the_matrices_in_16_bits(tmp_path: Path) -> None:
    matrices = {
        "blk.1.attn_q.weight.lora_a": np.full((2, 4), 0.5, np.float32),
        "blk.1.attn_q.weight.lora_b": np.arange(8, dtype=np.float32).reshape(4, 2),
    }
    write_adapter(tmp_path / "x.gguf", matrices, alpha=4.0, name="test")
    reader = GGUFReader(tmp_path / "x.gguf")
    assert reader.fields["general.type"].contents() == "adapter"
    assert reader.fields["adapter.type"].contents() == "lora"
    assert reader.fields["adapter.lora.alpha"].contents() == 4.0
    found = {t.name: t for t in reader.tensors}
    assert set(found) == set(matrices)
    for name, values in matrices.items():
        assert found[name].data.dtype == np.float16
        assert np.array_equal(found[name].data, values)
    assert not list(tmp_path.glob("*.partial"))


# -- with the real model ----------------------------------------------------------------


@pytest.fixture
def smollm(models_folder: Path) -> Path:
    path = models_folder / MODEL
    if not path.exists():
        msg = f"{MODEL} is missing"
        raise ModelMissingError(msg, model=MODEL)
    return path


@pytest.fixture
def tokenizer(smollm: Path) -> Callable[[str], list[int]]:
    pytest.importorskip("tokenizers")
    from reverie.models.training.tokens import Tokenizer

    return Tokenizer(smollm).encode


@pytest.mark.model
def test_tokens_are_those_of_llama_cpp(smollm: Path, tokenizer: Callable[[str], list[int]]) -> None:
    from llama_cpp import Llama

    llama = Llama(str(smollm), vocab_only=True, verbose=False)
    for text in (*TEXTS, *PAIR_CHOICES):
        assert tokenizer(text) == llama.tokenize(text.encode(), add_bos=False, special=False)
    llama.close()


@pytest.mark.model
def test_an_adapter_says_the_same_in_torch_and_in_llama_cpp(
    smollm: Path, tokenizer: Callable[[str], list[int]], tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from reverie.models.llama_language import LlamaLanguageModel
    from reverie.models.training.loop import Example, scores
    from reverie.models.training.network import Network

    net = Network(smollm, rank=4, alpha=8, first=-4, seed=1, fast=False)
    maker = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, values in net.lora.items():
            if name.endswith("lora_b"):
                values.copy_(torch.randn(values.shape, generator=maker) * 0.3)
    matrices = {name: values.detach().numpy() for name, values in net.lora.items()}
    write_adapter(tmp_path / "x.gguf", matrices, alpha=8.0, name="test")
    asked = [
        pair_prompt("User lives in Oslo", "User moved to Rome"),
        pair_prompt("用户住在杭州", "用户搬到了深圳"),
        pair_prompt("Torvin sells swords", "Torvin fears wolves"),
    ]
    choices = [tokenizer(choice)[0] for choice in PAIR_CHOICES]
    examples = [Example(tuple(tokenizer(prompt)), ()) for prompt in asked]
    ours = scores(net, examples, choices)
    model = LlamaLanguageModel(smollm, context_tokens=256, adapters={"x": tmp_path / "x.gguf"})
    theirs = np.array(model.choose(asked, PAIR_CHOICES, adapter="x"))
    bare = np.array(model.choose(asked, PAIR_CHOICES))
    model.close()
    assert np.abs(torch.softmax(ours, -1).numpy() - theirs).max() < 0.12  # llama.cpp rounds states
    assert np.abs(bare - theirs).max() > 0.2  # the adapter does something
