"""The llama.cpp embedder on a tiny model with random weights: everything but quality."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest

from reverie.memory_graph.errors import (
    ClosedError,
    ConfigError,
    InvalidValueError,
    ModelDamagedError,
    ModelMissingError,
)
from reverie.models.embedders import open_embedder
from reverie.models.llama import LlamaEmbedder

TEXTS = [*(("hello world " * count).strip() for count in (9, 1, 5, 0, 3)), "abc.", "x y z"]


@pytest.fixture
def embedder(tiny_bert: Path) -> Iterator[LlamaEmbedder]:
    with LlamaEmbedder(tiny_bert, max_tokens=32) as embedder:
        yield embedder


def test_gives_unit_rows_in_order(embedder: LlamaEmbedder) -> None:
    rows = embedder.embed(TEXTS, "passage")
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), 32)
    assert rows.flags.c_contiguous
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for text, row in zip(TEXTS, rows, strict=True):
        assert embedder.embed([text], "passage")[0] @ row > 0.9999
    assert embedder.embed([], "query").shape == (0, 32)


def test_the_same_call_gives_the_same_bits(embedder: LlamaEmbedder) -> None:
    assert np.array_equal(embedder.embed(TEXTS, "query"), embedder.embed(TEXTS, "query"))


def test_one_by_one_vectors_do_not_depend_on_company(tiny_bert: Path) -> None:
    with LlamaEmbedder(tiny_bert, max_tokens=32, batch_tokens=0) as embedder:
        rows = embedder.embed(TEXTS, "query")
        for text, row in zip(TEXTS, rows, strict=True):
            assert np.array_equal(embedder.embed([text], "query")[0], row)


def test_long_texts_are_cut_at_max_tokens(embedder: LlamaEmbedder) -> None:
    # 32 tokens hold the two special ones and 30 words; what follows cannot matter.
    rows = embedder.embed(["hello " * 30, "hello " * 30 + "world " * 900], "query")
    assert rows[0] @ rows[1] > 0.9999
    assert embedder.embed(["hello " * 29 + "world"], "query")[0] @ rows[0] < 0.9999
    embedder.embed(["hello " * 1_000_000], "query")  # is not read to its end


def test_counts_and_unknown_share(embedder: LlamaEmbedder) -> None:
    assert embedder.count_tokens("") == 0
    assert embedder.count_tokens("hello world. ab") == 5
    assert embedder.unknown_share("hello world") == 0
    assert embedder.unknown_share("hello 你 world 好") == 0.5
    assert embedder.unknown_share("") == 0


def test_special_tokens_in_a_text_are_text(embedder: LlamaEmbedder) -> None:
    assert embedder.count_tokens("[SEP]") > 1


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\u202e", "🙂" * 300, " " * 5000, "a" * 5000])
def test_odd_texts_are_embedded(embedder: LlamaEmbedder, text: str) -> None:
    assert np.isfinite(embedder.embed([text], "query")).all()


def test_prefixes_are_put_before_and_are_part_of_the_identity(tiny_bert: Path) -> None:
    plain = LlamaEmbedder(tiny_bert, max_tokens=32)
    prefixed = LlamaEmbedder(tiny_bert, max_tokens=32, query_prefix="a ", passage_prefix="b ")
    assert np.array_equal(prefixed.embed(["hello"], "query"), plain.embed(["a hello"], "query"))
    assert np.array_equal(prefixed.embed(["hello"], "passage"), plain.embed(["b hello"], "query"))
    swapped = LlamaEmbedder(tiny_bert, max_tokens=32, query_prefix="a b ")
    assert len({plain.info.id, prefixed.info.id, swapped.info.id}) == 3
    assert plain.info.id.startswith("all-minilm-l6-v2:f16:")


def test_equal_files_have_equal_identity(tiny_bert: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other name.gguf"
    copy.write_bytes(tiny_bert.read_bytes())
    ids = {open_embedder(str(file), tmp_path, max_tokens=32).info for file in (tiny_bert, copy)}
    assert len(ids) == 1


def test_threads_share_one(embedder: LlamaEmbedder) -> None:
    expected = {text: embedder.embed([text], "query")[0] for text in TEXTS}
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(embedder.embed, [text], "query") for text in TEXTS * 20]
        counts = [pool.submit(embedder.count_tokens, "hello") for _ in range(100)]
    assert all(count.result() == 1 for count in counts)
    for text, call in zip(TEXTS * 20, calls, strict=True):
        assert np.array_equal(call.result()[0], expected[text])


def test_closed_while_in_use(tiny_bert: Path) -> None:
    embedder = LlamaEmbedder(tiny_bert, max_tokens=32)
    started = threading.Event()

    def work() -> None:
        while True:
            embedder.embed(TEXTS, "query")
            started.set()

    with ThreadPoolExecutor(2) as pool:
        workers = [pool.submit(work) for _ in range(2)]
        assert started.wait(30)
        embedder.close()
        embedder.close()
        for worker in workers:
            assert isinstance(worker.exception(30), ClosedError)
    for call in (lambda: embedder.embed([], "query"), lambda: embedder.count_tokens("")):
        with pytest.raises(ClosedError):
            call()


def test_a_dropped_embedder_is_freed(tiny_bert: Path) -> None:
    embedder = LlamaEmbedder(tiny_bert, max_tokens=32)
    native = embedder._native
    del embedder
    gc.collect()
    assert native._model is None


def test_misuse_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    for threads, max_tokens, batch_tokens in ((0, 32, 0), (1, 4, 0), (1, 65, 0), (1, 32, -1)):
        with pytest.raises(ConfigError):
            LlamaEmbedder(
                tiny_bert, threads=threads, max_tokens=max_tokens, batch_tokens=batch_tokens
            )
    with pytest.raises(ModelMissingError):
        open_embedder(str(tmp_path / "none.gguf"), tmp_path)
    with pytest.raises(ModelMissingError, match="reverie models pull minilm"):
        open_embedder("minilm", tmp_path)
    with LlamaEmbedder(tiny_bert, max_tokens=32) as embedder, pytest.raises(InvalidValueError):
        embedder.embed(["x"], "document")  # type: ignore[arg-type]


def test_a_model_that_does_not_pool_is_no_embedder(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "chat.gguf", "llama")
    writer.add_name("Chat")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_tensor("x", np.zeros(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ConfigError, match="no embedding model"):
        LlamaEmbedder(tmp_path / "chat.gguf", max_tokens=32)


def test_a_pinned_name_with_other_content_is_damaged(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "all-MiniLM-L6-v2.f16.gguf").write_bytes(tiny_bert.read_bytes())
    with pytest.raises(ModelDamagedError, match="reverie models pull minilm"):
        open_embedder("minilm", tmp_path)


def test_damaged_files_do_not_end_the_process(tiny_bert: Path, tmp_path: Path) -> None:
    """In a child process, which must live through all of them and print nothing."""
    whole = tiny_bert.read_bytes()
    at = whole.index(b"tokenizer.ggml.bos_token_id") + len(b"tokenizer.ggml.bos_token_id") + 4
    unknown = whole.replace(b"blk.0.attn_q.weight", b"blk.0.attn_Q.weight")
    variants = [whole[:-7], whole[:500], whole[:at] + b"\xff" + whole[at + 1 :], unknown, b"GGUF"]
    for number, variant in enumerate(variants):
        (tmp_path / f"{number}.gguf").write_bytes(variant)
    code = (
        "import sys, pathlib\n"
        "from reverie.memory_graph.errors import ModelDamagedError\n"
        "from reverie.models.llama import LlamaEmbedder\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        LlamaEmbedder(pathlib.Path(name), max_tokens=32)\n"
        "    except ModelDamagedError:\n"
        "        continue\n"
        "    sys.exit(f'{name} was accepted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *sorted(map(str, tmp_path.glob("*.gguf")))],
        env={"PYTHONPATH": ":".join(sys.path)},
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
