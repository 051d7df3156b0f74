"""Headers: read, cut and damaged."""

from __future__ import annotations

import contextlib
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from reverie.memory_graph.errors import ModelDamagedError
from reverie.models.gguf_header import read_header


def test_reads_what_it_is(tiny_bert: Path) -> None:
    header = read_header(tiny_bert)
    assert (header.architecture, header.name, header.file_type) == (
        "bert",
        "all-minilm-l6-v2",
        "f16",
    )
    assert header.integer("*.embedding_length") == 32
    assert header.integer("*.pooling_type") == gguf.PoolingType.MEAN
    assert header.integer("*.no_such_key") is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_file_is_refused(tiny_bert: Path, tmp_path: Path, data: st.DataObject) -> None:
    whole = tiny_bert.read_bytes()
    cut = data.draw(st.integers(0, len(whole) - 1))
    file = tmp_path / "cut.gguf"
    file.write_bytes(whole[:cut])
    with pytest.raises(ModelDamagedError):
        read_header(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_a_typed_error_or_harmless(
    tiny_bert: Path, tmp_path: Path, data: st.DataObject
) -> None:
    broken = bytearray(tiny_bert.read_bytes()[:6000])
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, 4000))] = data.draw(st.integers(0, 255))
    file = tmp_path / "broken.gguf"
    file.write_bytes(bytes(broken) + tiny_bert.read_bytes()[6000:])
    with contextlib.suppress(ModelDamagedError):  # any other error fails the test
        assert read_header(file).architecture


def write_gguf(path: Path, **values: int) -> Path:
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_token_list(["a", "b"])
    for key, value in values.items():
        writer.add_uint32(key.replace("__", "."), value)
    writer.add_tensor("x", np.zeros(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_values_that_would_abort_the_process(tmp_path: Path) -> None:
    read_header(write_gguf(tmp_path / "fine.gguf", bert__attention__head_count=4))
    for values in (
        {"bert__attention__head_count": 0},
        {"bert__attention__head_count": 3, "bert__embedding_length": 32},
        {"bert__block_count": 1 << 30},
        {"tokenizer__ggml__bos_token_id": 2},
    ):
        with pytest.raises(ModelDamagedError):
            read_header(write_gguf(tmp_path / "bad.gguf", **values))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x63\0\0\0", b"<html>not found</html>"])
def test_files_of_another_kind(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "page.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelDamagedError):
        read_header(file)
